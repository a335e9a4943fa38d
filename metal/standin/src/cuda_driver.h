// cuda_driver.h - what the CUDA executor uses of NVIDIA's driver API, declared here so that it builds without a toolkit. The library comes with the driver
// (libcuda.so.1) and is loaded when the executor starts. Names, numbers and structures: https://docs.nvidia.com/cuda/cuda-driver-api/
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

namespace pondcuda {
using Result = int; // CUresult; 0 is success
using DeviceAddress = uint64_t;
using Context = struct CUctx_opaque*;
using Stream = struct CUstream_opaque*;
using Event = struct CUevent_opaque*;
using Module = struct CUmod_opaque*;
using Function = struct CUfunc_opaque*;
using Graph = struct CUgraph_opaque*;
using GraphNode = struct CUgraphNode_opaque*;
using GraphExec = struct CUgraphExec_opaque*;

enum : Result { outOfMemory = 2, notReady = 600, illegalAddress = 700, launchTimeout = 702, misalignedAddress = 716 };
enum { functionMaxThreads = 0, functionSharedBytes = 1, functionLocalBytes = 3, functionRegisters = 4, functionMaxDynamicShared = 8 };
enum { streamNonBlocking = 1 };

struct KernelNode { // CUDA_KERNEL_NODE_PARAMS_v2
  Function function;
  uint32_t grid[3], block[3], sharedBytes;
  void** parameters;
  void** extra;
  void* kernel;
  Context context;
};
struct Edge { // CUgraphEdgeData
  uint8_t fromPort, toPort, type, reserved[5];
};
// A kernel behind this edge may be launched when the one before it says so; it waits itself for the results (griddepcontrol.wait).
inline constexpr Edge programmaticEdge = {1, 0, 1, {}};

struct Driver {
#define POND_CUDA_FUNCTIONS(F)                                                                             \
  F(cuInit, (unsigned))                                                                                    \
  F(cuDeviceGet, (int*, int))                                                                              \
  F(cuDeviceGetName, (char*, int, int))                                                                    \
  F(cuDeviceGetAttribute, (int*, int, int))                                                                \
  F(cuDevicePrimaryCtxRetain, (Context*, int))                                                             \
  F(cuCtxSetCurrent, (Context))                                                                            \
  F(cuCtxSynchronize, ())                                                                                  \
  F(cuMemGetInfo_v2, (size_t*, size_t*))                                                                   \
  F(cuMemAlloc_v2, (DeviceAddress*, size_t))                                                               \
  F(cuMemFree_v2, (DeviceAddress))                                                                         \
  F(cuMemsetD8Async, (DeviceAddress, unsigned char, size_t, Stream))                                       \
  F(cuMemcpyHtoDAsync_v2, (DeviceAddress, const void*, size_t, Stream))                                    \
  F(cuMemcpyDtoHAsync_v2, (void*, DeviceAddress, size_t, Stream))                                          \
  F(cuMemcpyDtoDAsync_v2, (DeviceAddress, DeviceAddress, size_t, Stream))                                  \
  F(cuStreamCreate, (Stream*, unsigned))                                                                   \
  F(cuStreamSynchronize, (Stream))                                                                         \
  F(cuStreamWaitEvent, (Stream, Event, unsigned))                                                          \
  F(cuEventCreate, (Event*, unsigned))                                                                     \
  F(cuEventRecord, (Event, Stream))                                                                        \
  F(cuEventSynchronize, (Event))                                                                           \
  F(cuEventQuery, (Event))                                                                                 \
  F(cuEventElapsedTime, (float*, Event, Event))                                                            \
  F(cuModuleLoadData, (Module*, const void*))                                                              \
  F(cuModuleUnload, (Module))                                                                              \
  F(cuModuleGetFunction, (Function*, Module, const char*))                                                 \
  F(cuFuncGetAttribute, (int*, int, Function))                                                             \
  F(cuFuncSetAttribute, (Function, int, int))                                                              \
  F(cuLaunchKernel, (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**, void**)) \
  F(cuGraphCreate, (Graph*, unsigned))                                                                     \
  F(cuGraphDestroy, (Graph))                                                                               \
  F(cuGraphAddKernelNode_v2, (GraphNode*, Graph, const GraphNode*, size_t, const KernelNode*))             \
  F(cuGraphAddDependencies_v2, (Graph, const GraphNode*, const GraphNode*, const Edge*, size_t))           \
  F(cuGraphInstantiateWithFlags, (GraphExec*, Graph, unsigned long long))                                  \
  F(cuGraphExecDestroy, (GraphExec))                                                                       \
  F(cuGraphLaunch, (GraphExec, Stream))                                                                    \
  F(cuGetErrorString, (Result, const char**))                                                              \
  F(cuGetErrorName, (Result, const char**))
#define POND_CUDA_FIELD(f, arguments) Result(*f) arguments = nullptr;
  POND_CUDA_FUNCTIONS(POND_CUDA_FIELD)
#undef POND_CUDA_FIELD

  Context context = nullptr;
  Stream work = nullptr, copies = nullptr; // where dispatches run, in order; where the program's own looks at memory are served
  std::string name, wrong;                 // of the device; why there is none

  // enter makes the context this thread's: each thread that calls the driver begins with it.
  void enter() { cuCtxSetCurrent(context); }
  std::string text(Result r, const char* what) const; // "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"
};

// The driver with a context on the first device, opened once; wrong is not empty where that failed. POND_STANDIN_CUDA_DRIVER names another library, for tests.
Driver& driver();
} // namespace pondcuda
