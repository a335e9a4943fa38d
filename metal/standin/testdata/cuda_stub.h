// What the shim uses of CUDA, declared for clang's CUDA front end where no CUDA is installed: enough to compile device code, not to link it.
#pragma once
#include <cstddef>
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

struct Three { unsigned x, y, z; };
extern __device__ const Three threadIdx, blockIdx, blockDim, gridDim;
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = ~0u);
__device__ void __threadfence_block();
__device__ unsigned __activemask();
template <class T> __device__ T __shfl_sync(unsigned mask, T v, int lane, int width = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32);
template <class T> __device__ T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32);
template <class T> __device__ T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32);
template <class T> __device__ T __reduce_add_sync(unsigned mask, T v);
template <class T> __device__ T __reduce_max_sync(unsigned mask, T v);
template <class T> __device__ T __reduce_min_sync(unsigned mask, T v);
__device__ unsigned __reduce_and_sync(unsigned mask, unsigned v);
__device__ unsigned __reduce_or_sync(unsigned mask, unsigned v);
__device__ unsigned __reduce_xor_sync(unsigned mask, unsigned v);
__device__ unsigned __ballot_sync(unsigned mask, int p);
__device__ int __all_sync(unsigned mask, int p);
__device__ int __any_sync(unsigned mask, int p);
__device__ int __ffs(int);
__device__ unsigned __byte_perm(unsigned, unsigned, unsigned);
__device__ __host__ int __popcll(unsigned long long);
__device__ __host__ int __clzll(long long);
__device__ __host__ int __ffsll(long long);
template <class T> __device__ T atomicAdd(T*, T);
template <class T> __device__ T atomicExch(T*, T);
template <class T> __device__ T atomicMax(T*, T);
template <class T> __device__ T atomicMin(T*, T);
template <class T> __device__ T atomicAnd(T*, T);
template <class T> __device__ T atomicOr(T*, T);
template <class T> __device__ T atomicXor(T*, T);
template <class T> __device__ T atomicCAS(T*, T, T);
extern "C" __device__ __host__ float rsqrtf(float);
__device__ unsigned __isShared(const void*);
__device__ size_t __cvta_generic_to_shared(const void*);
extern "C" __device__ void* memcpy(void*, const void*, size_t);
extern "C" __device__ void* memset(void*, int, size_t);
#define ONE(f) extern "C" __device__ float f(float);
ONE(expf) ONE(exp2f) ONE(logf) ONE(log2f) ONE(log10f) ONE(sqrtf) ONE(sinf) ONE(cosf) ONE(tanf) ONE(asinf) ONE(acosf) ONE(atanf) ONE(sinhf) ONE(coshf) ONE(tanhf)
ONE(asinhf) ONE(acoshf) ONE(atanhf) ONE(floorf) ONE(ceilf) ONE(truncf) ONE(roundf) ONE(rintf) ONE(fabsf)
#undef ONE
#define TWO(f) extern "C" __device__ float f(float, float);
TWO(fminf) TWO(powf) TWO(fmodf) TWO(atan2f) TWO(copysignf) TWO(fdimf) TWO(nextafterf)
#undef TWO
extern "C" __device__ float fmaf(float, float, float);
extern "C" __device__ float ldexpf(float, int);

// The names that CUDA has outside every namespace, which must not get in the way of the text's own.
struct float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
__device__ __host__ float max(float, float);
__device__ __host__ int max(int, int);
__device__ __host__ unsigned min(unsigned, unsigned);
__device__ __host__ float rsqrt(float);
