// msl_cuda.h - what kernel text rewritten for CUDA includes: Metal's execution model on an NVIDIA GPU (sm_90).
//
// A threadgroup is a block, a simdgroup a warp, threadgroup memory shared memory, a thread a thread: nothing is emulated, and a fault of the text is
// one here. A file is compiled for one kernel at a time: MSL_ENTRY_name chooses it, MSL_CONSTANT_n gives the bits of function constant n.
//
// Arithmetic: products and sums may be contracted, as Apple's compiler may do; division, sqrt and the functions are CUDA's accurate ones (2 units in the last
// place at most, rsqrt too) unless the library is compiled with fast math (-use_fast_math). Denormals are kept. Of fast::, exp, exp2 and divide are the
// approximate instructions (2^-21, denormals flushed), the others precise::.
//
// MSL_NAN_FIRST fills threadgroup memory with NaN bit patterns before the kernel uses it.
#pragma once
#define MSL_GPU 1
#include "msl_cuda_abi.h"
#include "msl_math.h"

#define MSL_DEVICE __device__
#define MSL_KERNEL static __device__ inline __attribute__((always_inline))
#define MSL_TABLE static __device__ // program-scope arrays, which code may index
#define MSL_GPU_INLINE __device__ inline __attribute__((always_inline))

namespace msl {
// The argument block of a kernel, by its signature: what msl_cuda_args says, cut behind the last reference.
template <class P> constexpr uint32_t referenceBytes = 0;
template <class T> constexpr uint32_t referenceBytes<T&> = (sizeof(T) + 15) / 16 * 16;
template <class F> struct Block;
template <class... P> struct Block<void (*)(P...)> {
  uint64_t buffers[MSL_MAX_BUFFERS];
  uint64_t reserved;
  uint32_t threadgroupAt[MSL_MAX_THREADGROUP_ARGS];
  static constexpr uint32_t sizes[sizeof...(P) + 1] = {referenceBytes<P>..., 0};
  static constexpr uint32_t before(int parameter) { uint32_t n = 0; for (int i = 0; i < parameter; i++) n += sizes[i]; return n; }
  static constexpr uint32_t total = before(sizeof...(P));
  static_assert(total <= MSL_CUDA_REFERENCE_BYTES, "the references of a kernel are too large together");
  alignas(16) unsigned char references[total ? total : 16];

  template <int I> struct At;
  template <int I, class First, class... Rest> struct Pick : Pick<I - 1, Rest...> {};
  template <class First, class... Rest> struct Pick<0, First, Rest...> { typedef First type; };
  template <int I> using Parameter = typename Pick<I, P...>::type;

  // Parameter I, bound as [[buffer(Index)]]: a pointer from the table, or a reference into the block.
  template <int I, int Index> MSL_GPU_INLINE Parameter<I> buffer() const {
    typedef Parameter<I> Q;
    if constexpr (std::is_reference_v<Q>) {
      static_assert(std::is_const_v<std::remove_reference_t<Q>>, "a reference to device memory is not supported on this executor; use a pointer");
      return *(std::remove_reference_t<Q>*)(references + before(I));
    } else {
      return (Q)buffers[Index];
    }
  }
  template <int I, int Index> MSL_GPU_INLINE Parameter<I> threadgroup() const;
};

extern __shared__ __align__(16) unsigned char dynamicMemory[];
template <class... P> template <int I, int Index> MSL_GPU_INLINE typename Block<void (*)(P...)>::template Parameter<I> Block<void (*)(P...)>::threadgroup() const {
  typedef Parameter<I> Q;
  if constexpr (std::is_reference_v<Q>) return *(std::remove_reference_t<Q>*)(dynamicMemory + threadgroupAt[Index]);
  else return (Q)(dynamicMemory + threadgroupAt[Index]);
}

MSL_GPU_INLINE uint32_t linear() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
MSL_GPU_INLINE uint32_t threads() { return blockDim.x * blockDim.y * blockDim.z; }

MSL_GPU_INLINE void poison(void* p, uint32_t bytes) {
#ifdef MSL_NAN_FIRST
  for (uint32_t i = linear(); i < bytes; i += threads()) ((unsigned char*)p)[i] = 0xff;
  __syncthreads();
#else
  (void)p, (void)bytes;
#endif
}
// The first thing a kernel does. A launch with a programmatic edge begins while the one before it runs, and waits here until that one's stores are
// seen; without one both instructions do nothing.
MSL_GPU_INLINE void begin() {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#ifdef MSL_NAN_FIRST
  uint32_t bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  poison(dynamicMemory, bytes);
#endif
}
template <class T> struct Room { alignas(16) unsigned char bytes[sizeof(T)]; };
#define MSL_THREADGROUP(T, name) __shared__ msl::Room<T> mslRoom_##name; T& name = *(T*)mslRoom_##name.bytes; msl::poison(mslRoom_##name.bytes, sizeof(T));

struct Position { // converts to the types Metal allows for positions
  uint32_t x, y, z;
  MSL_GPU_INLINE operator metal::uint() const { return x; }
  MSL_GPU_INLINE operator metal::ushort() const { return metal::ushort(x); }
  MSL_GPU_INLINE operator metal::uint2() const { return metal::uint2(x, y); }
  MSL_GPU_INLINE operator metal::uint3() const { return metal::uint3(x, y, z); }
  MSL_GPU_INLINE operator metal::ushort2() const { return metal::ushort2(x, y); }
  MSL_GPU_INLINE operator metal::ushort3() const { return metal::ushort3(x, y, z); }
};
struct Index { // and for indexes
  uint32_t x;
  MSL_GPU_INLINE operator metal::uint() const { return x; }
  MSL_GPU_INLINE operator metal::ushort() const { return metal::ushort(x); }
};
MSL_GPU_INLINE Position thread_position_in_grid() { return {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y, blockIdx.z * blockDim.z + threadIdx.z}; }
MSL_GPU_INLINE Position thread_position_in_threadgroup() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
MSL_GPU_INLINE Position threadgroup_position_in_grid() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
MSL_GPU_INLINE Position threads_per_threadgroup() { return {blockDim.x, blockDim.y, blockDim.z}; }
MSL_GPU_INLINE Position dispatch_threads_per_threadgroup() { return threads_per_threadgroup(); }
MSL_GPU_INLINE Position threads_per_grid() { return {gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z}; }
MSL_GPU_INLINE Position threadgroups_per_grid() { return {gridDim.x, gridDim.y, gridDim.z}; }
MSL_GPU_INLINE Index thread_index_in_threadgroup() { return {linear()}; }
MSL_GPU_INLINE Index thread_index_in_simdgroup() { return {linear() & 31u}; }
MSL_GPU_INLINE Index simdgroup_index_in_threadgroup() { return {linear() >> 5}; }
MSL_GPU_INLINE Index simdgroups_per_threadgroup() { return {(threads() + 31) / 32}; }
MSL_GPU_INLINE Index dispatch_simdgroups_per_threadgroup() { return simdgroups_per_threadgroup(); }
MSL_GPU_INLINE Index threads_per_simdgroup() { return {32}; }
MSL_GPU_INLINE Index thread_execution_width() { return {32}; }
MSL_GPU_INLINE Index thread_index_in_quadgroup() { return {linear() & 3u}; }
MSL_GPU_INLINE Index quadgroup_index_in_threadgroup() { return {linear() >> 2}; }
MSL_GPU_INLINE Index quadgroups_per_threadgroup() { return {(threads() + 3) / 4}; }
MSL_GPU_INLINE Index dispatch_quadgroups_per_threadgroup() { return quadgroups_per_threadgroup(); }

// The value of a function constant from its bits, low byte first.
template <class T> constexpr T constantOf(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) return bits & 1;
  else if constexpr (std::is_integral_v<T>) return T(bits);
  else if constexpr (std::is_same_v<T, float>) return __builtin_bit_cast(float, uint32_t(bits));
  else { T t{}; t.bits = uint16_t(bits); return t; } // half, bfloat
}
} // namespace msl

#include "msl_cuda_simd.h"
#include "msl_cuda_matrix.h"
#include "msl_cuda_atomic.h"
#include "msl_cuda_tensor.h"
