// msl_internal.h - the runtime's own structures. msl_schedule.cpp runs threads, msl_dispatch.cpp dispatches, msl_memory.cpp keeps memory,
// msl_check.cpp watches accesses, msl_fault.cpp turns signals into reports, msl_library.cpp is the table of contents.
#pragma once
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "msl_fiber.h"
#include "msl_runtime.h"

struct msl_library {
  std::string path;
  const msl::Module* module;
  uintptr_t base;                      // where it is loaded, for reports
  struct msl_pipeline* specialised;    // whose constants its variables hold
};
struct msl_pipeline {
  msl_library* library;
  const msl::KernelEntry* kernel;
  std::vector<std::pair<const msl::ConstantEntry*, std::vector<char>>> constants;
  uint32_t slotBytes[MSL_MAX_SLOTS]; // threadgroup variables, the most of a template's instantiations
  uint32_t threadgroupBytes;
};

namespace msl {
enum { STACK_BYTES = 64 << 10, GUARD_BYTES = 64 << 10, THREADGROUP_AREA = 128 << 10, RED_ZONE = 64, PAGE = 4096 };

struct Simdgroup {
  uint32_t full, alive, runnable, started, atBarrier; // bits are lanes
  Exchange *open, *idle;
  uint32_t epoch; // of simdgroup barriers since the last threadgroup barrier
  uint16_t base;
};

// Who touched two bytes of device memory last. Dispatch numbers make old entries void without clearing.
struct Touched { uint32_t dispatch, group; uint16_t thread, epoch; };
enum : uint32_t { SEVERAL_GROUPS = ~0u };
enum : uint16_t { SEVERAL_THREADS = 0xffff };
struct Cell { Touched write, read; };
enum { CELLS = PAGE / 2 };

struct Memory {
  char* map;        // with guard zones; null when wrapped
  size_t mapBytes;
  char* base;
  uint64_t bytes;
  std::string label;
  msl_traffic traffic{};
  std::vector<uint64_t> lines[2];             // a bit for each 64-byte line loaded, stored
  std::vector<std::unique_ptr<Cell[]>> cells; // by page of the memory
  std::vector<bool> unwritten;                // by byte; empty: everything is written
};
Memory* findMemory(const void* p); // guard zones included
uint64_t memoryGeneration();

// Who touched a byte of threadgroup memory last.
struct LocalCell { uint32_t writeEpoch, readEpoch; uint16_t writer, writerSimd, reader, readerSimd; bool several; };

// What was seen where. Lines are looked up when the dispatch is over.
struct Report {
  void* pc;
  uint64_t at; // position of the threadgroup in the dispatch's order
  std::string kind, text;
};

struct Dispatch {
  msl_pipeline* pipeline;
  msl_grid grid;
  msl_options options;
  uint32_t threads;  // in a full threadgroup
  uint64_t groups;
  std::atomic<uint64_t> next{0};
  void* buffers[MSL_MAX_BUFFERS];
  uint32_t id, groupBase; // for the race checks
  std::mutex mu;          // protects reports, ended
  uint64_t ended = ~0ull; // position of the first threadgroup that was abandoned
  std::vector<Report> reports;
};

struct Worker {
  Context c;
  Dispatch* d;
  // scheduling
  Lane lanes[MSL_MAX_THREADS];
  uint32_t laneShape[3];
  Simdgroup simd[32];
  Fiber* fiberOf[MSL_MAX_THREADS];
  Fiber *current, *idle, home;
  std::vector<Fiber*> fibers;
  char* stacks;
  Exchange exchanges[32 * 4];
  std::vector<Exchange*> moreExchanges;
  std::vector<Matrix*> matrixBlocks;
  Journal journals[32];
  uint32_t simdgroups, simd_, lane_, alive, waiting; // simd_ and lane_ are the running thread's
  Where barrier; // where the first thread waits
  bool barrierMixed, someExited, straight, usual, aborted;
  uint64_t random;
  // threadgroup memory
  char* area;
  uint32_t top;
  struct { uint32_t offset, bytes; const char* name; } variables[MSL_MAX_SLOTS + MSL_MAX_THREADGROUP_ARGS];
  std::vector<int> usedVariables;
  // checks
  bool check, count;
  uint64_t position; // of the running threadgroup in the dispatch's order
  uint32_t groupNumber, epoch, firstEpoch;
  std::vector<LocalCell> local;
  struct { uintptr_t page; uint64_t generation; Memory* memory; } lookups[256];
  uintptr_t faultAddress, faultPC;
  char* faultStack;
  msl_counts counts;

  uint64_t rnd() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  }
};
inline constexpr size_t FAULT_STACK = 64 << 10, STACKS_BYTES = size_t(1024) * STACK_BYTES;

Worker* newWorker();
void runGroup(Worker* w, uint64_t index);
void reset(Worker* w); // after an abort: fibers, exchanges and matrices are made anew
void installFaultHandler();
void report(Worker* w, void* pc, const char* format, ...) __attribute__((format(printf, 3, 4)));
[[noreturn]] void abandon(Worker* w); // leaves the running threadgroup, and the dispatch
std::string place(msl_library* lib, void* pc); // "file.metal:12: " or ""
int fail(char* text, size_t textBytes, const std::string& s);
void registerStacks(Worker* w);
std::string dispatchOfGroup(uint32_t dispatch, uint32_t group); // name of the kernel that owns a threadgroup number
} // namespace msl
