/*
 * msl_cuda_abi.h - the border between a kernel compiled for an NVIDIA GPU and the runtime that launches it.
 *
 * A kernel library stays what it is on the processor: a shared library that msl_library_open loads and whose tables (names, arguments,
 * function constants, static threadgroup memory) the functions of msl_run.h read. Beside it lies the same text rewritten for CUDA. For
 * each pipeline, that is for a kernel and the values of the function constants that it reads, the compile driver (cuda.go) makes one cubin of
 * that text: the constants are constant expressions there, so loops over them unroll and arrays stay in registers, as Metal does when it makes a
 * pipeline. The runtime asks for the cubin by a callback when a pipeline is made. Cubins are kept in the cache folder by what they are made of,
 * so a second process, or a machine the folder was carried to, compiles nothing.
 *
 * The cubin: machine code for sm_90a, loaded by cuModuleLoad or cudaLibraryLoadFromFile. It holds one kernel, MSL_CUDA_ENTRY, with one
 * parameter, msl_cuda_args by value:
 *
 *   extern "C" __global__ void msl_kernel(const __grid_constant__ msl_cuda_args);
 *
 * Launch: grid = msl_grid.groups, block = msl_grid.threads, one warp a simdgroup in the order of the linear thread index. Dynamic shared memory holds
 * the [[threadgroup(n)]] arguments. The parameter is copied by the launch, or by the node of a graph when that is made.
 *
 * What the runtime must refuse, because the compiled kernel does not look:
 *   - a threadgroup at the edge that is smaller than the others (msl_grid.last other than 0 or threads);
 *   - a constant T& bound to memory, and a pointer bound to setBytes: the first is read from the argument block, the second is an address;
 *   - more threads than the kernel's registers allow (CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, often below 1,024), groups[1] or [2] over 65,535,
 *     threads of a simdgroup operation that are no multiple of 32;
 *   - what msl_run refuses on the processor: nothing bound, a wrong alignment, too little memory for a reference, too much threadgroup memory.
 *     Static threadgroup memory is CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES; Metal's limit of 32 KiB holds for it and the dynamic part together.
 */
#pragma once
#include "msl_run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MSL_CUDA_ABI 1
#define MSL_CUDA_ENTRY "msl_kernel"
#define MSL_CUDA_WAITS 1 /* a kernel lets its dependents start at once, and waits for those it depends on: programmatic edges of a graph are right */

enum { MSL_CUDA_REFERENCE_BYTES = 3584 }; /* most bytes of all references of a kernel, so that a parameter stays below 4,096 */

/*
 * The parameter of a kernel. A kernel's own parameter ends behind its last reference; the launch copies only as many bytes as it declares, so the
 * runtime may always pass a whole one.
 */
typedef struct {
  uint64_t buffers[MSL_MAX_BUFFERS]; /* by n of [[buffer(n)]]: the address on the device, offset added, of what a pointer is bound to */
  uint64_t reserved;
  uint32_t threadgroupAt[MSL_MAX_THREADGROUP_ARGS]; /* by n of [[threadgroup(n)]]: its first byte in dynamic shared memory, a multiple of 16 */
  /*
   * The values of the references (constant T&), in the order of msl_kernel_arg, each from a multiple of 16 on: the first at 0, the next at
   * the first's elementBytes rounded up to 16, and so on.
   */
  unsigned char references[MSL_CUDA_REFERENCE_BYTES];
} msl_cuda_args;

/* Flags of a compilation: bits of msl_options.flags that change the code. */
enum { MSL_CUDA_POISON = MSL_POISON }; /* threadgroup memory is NaN before each threadgroup: costs stores and a barrier a variable */

/*
 * Gives the path of the cubin for a kernel of a library, compiling it if the cache has none. library is the path that msl_library_open
 * got; constants may hold values that the kernel does not read. 0: out is the path; else out is a text. It may be called from any thread.
 */
typedef int (*msl_cuda_compiler)(const char* library, const char* kernel, const msl_constant* constants, int32_t n, uint32_t flags, char* out, size_t outBytes);

/* A function of the CUDA runtime's library: sets the callback, once, before a pipeline is made. */
void msl_cuda_set_compiler(msl_cuda_compiler f);

#ifdef __cplusplus
}
static_assert(sizeof(msl_cuda_args) == 288 + MSL_CUDA_REFERENCE_BYTES);
#endif
