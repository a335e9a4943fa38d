// cuda_internal.h - the CUDA executor's own structures. It is a second runtime behind msl_run.h: cuda_driver.cpp opens the GPU, cuda_memory.cpp keeps
// buffers on it and shows them to the program, cuda_run.cpp makes pipelines and runs dispatches. Tables of kernel libraries are still libmsl's.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "cuda_driver.h"
#include "msl_cuda_abi.h"

namespace pondcuda {
int fail(char* text, size_t textBytes, const std::string& s); // fills text, gives 1

// One buffer, in two places: on the GPU, where kernels use it, and in the program's address space, where a part of it may be behind.
struct Memory {
  char* view;            // what the program sees; protected as the states say
  char* alias;           // the same pages, never protected
  DeviceAddress device;
  uint64_t bytes;
  std::string label;
  std::vector<uint8_t> states; // of each chunk
  size_t stale = 0;      // how many are
  bool waiting = false;  // in the list of those with dirty chunks
};

Memory* findMemory(const void* p); // in the program's address space; null: none. The caller holds nothing
std::string uploadWritten(const std::vector<Memory*>& used, Stream stream); // what the program wrote goes to the GPU; used is sorted. "" or why not
void willWrite(const std::vector<Memory*>& written); // kernels write these: what the program has is behind
} // namespace pondcuda
