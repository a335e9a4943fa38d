// msl_runtime.h - what a kernel library and the runtime share: the running thread's context, exchanges between lanes, registrations.
#pragma once
#include "msl_run.h"

enum { MSL_MAX_SLOTS = 64 };

namespace msl {
struct Worker;

// Who a thread is inside its threadgroup.
struct Lane { uint16_t linear, lane, simdgroup, x, y, z; };

// One simdgroup operation in flight. Each lane leaves up to 16 bytes; res holds what one lane computed for all.
struct Exchange {
  alignas(64) unsigned char slot[32][16];
  alignas(16) unsigned char result[16];
  uint32_t arrived, active;
  int site, readers;
  bool haveResult;
  const char* file; // of the lane that came first, for reports
  Exchange* next;
};

// A value of a simdgroup matrix, row by row, widened to float. It lives while a lane's variable refers to it.
struct Matrix { alignas(64) float e[64]; int references; Matrix* next; };

// The matrix operations of a simdgroup, in program order. The first lane to reach one computes it, the others take its result; they stop
// for each other once around the ring, so an entry is never reused early.
enum { MSL_JOURNAL = 64 };
struct Journal {
  struct { Matrix* value; int site; } ops[MSL_JOURNAL];
  uint32_t count, lane[32]; // operations computed, and passed by each lane
  bool whole;               // the simdgroup has all 32 threads
};

struct Context {
  const Lane* lane;                                       // the running thread
  uint32_t group[3], size[3], full[3], groups[3], grid[3]; // of the running threadgroup; full is the size of those not at the edge
  void* buffers[MSL_MAX_BUFFERS];
  void* threadgroupArgs[MSL_MAX_THREADGROUP_ARGS];
  void* slots[MSL_MAX_SLOTS]; // threadgroup variables of the running kernel
  Journal* journals;          // one a simdgroup
  Matrix* freeMatrices;
  uint64_t matrixOps;
  Worker* worker;
};
extern __thread Context* context __attribute__((tls_model("initial-exec")));

// site is a line of the text and, from bit 20, the kind of operation: lanes meet where both agree.
enum Operation { OP_SUM = 1, OP_PRODUCT, OP_MAX, OP_MIN, OP_AND, OP_OR, OP_XOR, OP_SHUFFLE, OP_SHUFFLE_XOR, OP_SHUFFLE_DOWN, OP_SHUFFLE_UP, OP_FILL, OP_BROADCAST, OP_SCAN, OP_VOTE, OP_FIRST, OP_BARRIER, OP_QUAD, OP_LOAD, OP_STORE, OP_MULTIPLY, OP_GATHER, OP_FILLED, OP_TENSOR, OP_TENSOR_END };
struct Where { // of a call in the kernel text: a default argument Where::here() is the caller's place
  int line;
  const char* file;
  static constexpr Where here(int line = __builtin_LINE(), const char* file = __builtin_FILE()) { return {line, file}; }
};
inline constexpr int siteOf(Where w, Operation op) { return w.line | int(op) << 20; }

Exchange* meet(uint64_t low, uint64_t high, int site, const char* file); // returns when the lanes that take part have arrived
void done(Exchange*);                                  // this lane has read what it wanted
void threadgroupBarrier(Where where, uint32_t flags);
void simdgroupBarrier(Where where, uint32_t flags);
void noteVariable(int slot, uint32_t bytes, const char* name);
void noteAtomic(const volatile void* p, uint32_t bytes);
void noteAccess(const void* p, uint32_t bytes, bool store);
Matrix* moreMatrices();
[[noreturn]] void stop(Where where, const char* why); // ends the dispatch with a report
void multiply(float* d, const float* a, const float* b, const float* c);

// Registrations, filled by static initialisers of the kernel library.
struct ArgName { const char* name; int role, index; }; // role: 0 buffer, 1 threadgroup, 2 built-in
struct ArgType { uint32_t access, bytes, align, reference; };
struct KernelEntry { const char* name; void (*run)(); const ArgName* names; const ArgType* types; int args; uint32_t maxThreads; bool synchronises; const void* tag; const char* const* constants; KernelEntry* next; }; // constants: the names of those it reads, then null
struct VariableEntry { const void* tag; int slot; uint32_t bytes; VariableEntry* next; };
struct ConstantEntry { const char* name; uint32_t index, type, bytes; void* value; bool* defined; bool optional; ConstantEntry* next; };
struct DerivedEntry { void (*compute)(); DerivedEntry* next; };
struct Module { uint32_t abi; int checked; KernelEntry* kernels; VariableEntry* variables; ConstantEntry* constants; DerivedEntry* derived; };
} // namespace msl
