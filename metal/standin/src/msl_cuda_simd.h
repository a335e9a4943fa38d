// msl_cuda_simd.h - barriers, and operations between the lanes of a simdgroup and of a quadgroup, by the warp's exchanges.
//
// Every lane of a simdgroup takes part: the text calls these in flow that is uniform over the simdgroup, which the processor's checks watch. A whole
// simdgroup is folded as the processor's runtime folds it (lane i with i+16, i+8, ...), so sums have the same bits there and here.
#pragma once

namespace metal {
template <class T> concept MslSimd = MslValue<T> && !is_same_v<msl_element<T>, bfloat> && !is_same_v<msl_element<T>, bool> && sizeof(msl_element<T>) <= 4;
template <class T> concept MslSimdInteger = MslSimd<T> && is_integral_v<msl_element<T>>;
inline constexpr unsigned msl_everyone = 0xffffffffu;

MSL_GPU_INLINE void threadgroup_barrier(mem_flags f) {
  if (uint(f) & uint(mem_flags::mem_device)) __threadfence_block();
  __syncthreads();
}
MSL_GPU_INLINE void simdgroup_barrier(mem_flags f) {
  if (uint(f) & uint(mem_flags::mem_device)) __threadfence_block();
  __syncwarp();
}

MSL_GPU_INLINE int msl_lane() { return int(msl::linear() & 31u); }
// A value of up to 16 bytes in words, each through f.
template <class T, class F> MSL_GPU_INLINE T msl_words(const T& v, F f) {
  constexpr int n = (sizeof(T) + 3) / 4;
  unsigned w[n] = {};
  memcpy((void*)w, (const void*)&v, sizeof(T));
  for (int i = 0; i < n; i++) w[i] = f(w[i]);
  T r;
  memcpy((void*)&r, (const void*)w, sizeof(T));
  return r;
}
// Where Metal leaves a result undefined (no such lane) it is all ones, NaN, as on the processor.
template <class T> MSL_GPU_INLINE T msl_defined(const T& v, bool exists) {
  return msl_words(v, [=](unsigned w) { return exists ? w : 0xffffffffu; });
}
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle(T v, ushort lane) { return msl_defined(msl_words(v, [=](unsigned w) { return __shfl_sync(msl_everyone, w, lane); }), lane < 32); }
template <MslSimd T> MSL_GPU_INLINE T simd_broadcast(T v, ushort lane) { return simd_shuffle(v, lane); }
template <MslSimd T> MSL_GPU_INLINE T simd_broadcast_first(T v) { return simd_shuffle(v, ushort(0)); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_xor(T v, ushort mask) { return msl_defined(msl_words(v, [=](unsigned w) { return __shfl_xor_sync(msl_everyone, w, mask); }), mask < 32); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_down(T v, ushort delta) { return msl_defined(msl_words(v, [=](unsigned w) { return __shfl_down_sync(msl_everyone, w, delta); }), msl_lane() + delta < 32); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_up(T v, ushort delta) { return msl_defined(msl_words(v, [=](unsigned w) { return __shfl_up_sync(msl_everyone, w, delta); }), msl_lane() - int(delta) >= 0); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_rotate_down(T v, ushort delta) { return simd_shuffle(v, ushort((msl_lane() + delta) & 31)); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_rotate_up(T v, ushort delta) { return simd_shuffle(v, ushort((msl_lane() - delta) & 31)); }
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_and_fill_down(T v, T fill, ushort delta) {
  const int l = msl_lane() + delta;
  const T a = simd_shuffle(v, ushort(l & 31)), b = simd_shuffle(fill, ushort(l & 31));
  return l < 32 ? a : b;
}
template <MslSimd T> MSL_GPU_INLINE T simd_shuffle_and_fill_up(T v, T fill, ushort delta) {
  const int l = msl_lane() - delta;
  const T a = simd_shuffle(v, ushort(l & 31)), b = simd_shuffle(fill, ushort(l & 31));
  return l >= 0 ? a : b;
}

template <class T, class F> MSL_GPU_INLINE T msl_reduce(T a, int widest, F f) {
#pragma unroll
  for (int s = widest; s; s >>= 1) a = f(a, simd_shuffle_xor(a, ushort(s)));
  return a;
}
// Whole numbers of 32 bits have an instruction of their own.
template <class T> concept MslWord = is_same_v<T, int> || is_same_v<T, uint>;
#define MSL_REDUCE_WORD(NAME, CALL) template <MslWord T> MSL_GPU_INLINE T simd_##NAME(T v) { return T(CALL); }
MSL_REDUCE_WORD(sum, __reduce_add_sync(msl_everyone, v)) MSL_REDUCE_WORD(max, __reduce_max_sync(msl_everyone, v)) MSL_REDUCE_WORD(min, __reduce_min_sync(msl_everyone, v))
MSL_REDUCE_WORD(and, __reduce_and_sync(msl_everyone, uint(v))) MSL_REDUCE_WORD(or, __reduce_or_sync(msl_everyone, uint(v))) MSL_REDUCE_WORD(xor, __reduce_xor_sync(msl_everyone, uint(v)))
#undef MSL_REDUCE_WORD
#define MSL_REDUCE(NAME, CONCEPT, EXPR)                                                                        \
  template <CONCEPT T> requires(!MslWord<T>) MSL_GPU_INLINE T simd_##NAME(T v) { return msl_reduce(v, 16, [](T a, T b) { return T(EXPR); }); } \
  template <CONCEPT T> MSL_GPU_INLINE T quad_##NAME(T v) { return msl_reduce(v, 2, [](T a, T b) { return T(EXPR); }); }
MSL_REDUCE(sum, MslSimd, a + b) MSL_REDUCE(product, MslSimd, a * b) MSL_REDUCE(max, MslSimd, max(a, b)) MSL_REDUCE(min, MslSimd, min(a, b))
MSL_REDUCE(and, MslSimdInteger, a & b) MSL_REDUCE(or, MslSimdInteger, a | b) MSL_REDUCE(xor, MslSimdInteger, a ^ b)
#undef MSL_REDUCE

template <class T, class F> MSL_GPU_INLINE T msl_scan(T v, T start, bool inclusive, F f) {
#pragma unroll
  for (int s = 1; s < 32; s <<= 1) {
    const T before = simd_shuffle(v, ushort((msl_lane() - s) & 31));
    if (msl_lane() >= s) v = f(before, v);
  }
  if (inclusive) return v;
  const T before = simd_shuffle(v, ushort((msl_lane() - 1) & 31));
  return msl_lane() == 0 ? start : before;
}
template <MslSimd T> MSL_GPU_INLINE T simd_prefix_inclusive_sum(T v) { return msl_scan(v, T(0), true, [](T a, T b) { return T(a + b); }); }
template <MslSimd T> MSL_GPU_INLINE T simd_prefix_exclusive_sum(T v) { return msl_scan(v, T(0), false, [](T a, T b) { return T(a + b); }); }
template <MslSimd T> MSL_GPU_INLINE T simd_prefix_inclusive_product(T v) { return msl_scan(v, T(1), true, [](T a, T b) { return T(a * b); }); }
template <MslSimd T> MSL_GPU_INLINE T simd_prefix_exclusive_product(T v) { return msl_scan(v, T(1), false, [](T a, T b) { return T(a * b); }); }

struct simd_vote {
  typedef ulong vote_t;
  MSL_GPU_INLINE explicit simd_vote(vote_t v = 0) : votes(v) {}
  MSL_GPU_INLINE explicit operator vote_t() const { return votes; }
  MSL_GPU_INLINE bool all() const { return votes == msl_everyone; }
  MSL_GPU_INLINE bool any() const { return votes != 0; }
  vote_t votes;
};
MSL_GPU_INLINE simd_vote simd_ballot(bool p) { return simd_vote(ulong(__ballot_sync(msl_everyone, p))); }
MSL_GPU_INLINE simd_vote simd_active_threads_mask() { return simd_vote(ulong(__activemask())); }
MSL_GPU_INLINE bool simd_all(bool p) { return __all_sync(msl_everyone, p); }
MSL_GPU_INLINE bool simd_any(bool p) { return __any_sync(msl_everyone, p); }
MSL_GPU_INLINE bool simd_is_first() { return __ffs(int(__activemask())) - 1 == msl_lane(); }

template <MslSimd T> MSL_GPU_INLINE T quad_shuffle(T v, ushort lane) { return msl_defined(simd_shuffle(v, ushort((msl_lane() & ~3) | (lane & 3))), lane < 4); }
template <MslSimd T> MSL_GPU_INLINE T quad_broadcast(T v, ushort lane) { return quad_shuffle(v, lane); }
template <MslSimd T> MSL_GPU_INLINE T quad_shuffle_xor(T v, ushort mask) { return msl_defined(simd_shuffle_xor(v, ushort(mask & 3)), mask < 4); }
template <MslSimd T> MSL_GPU_INLINE T quad_shuffle_down(T v, ushort delta) { const int l = (msl_lane() & 3) + delta; return msl_defined(simd_shuffle(v, ushort((msl_lane() & ~3) + (l & 3))), l < 4); }
template <MslSimd T> MSL_GPU_INLINE T quad_shuffle_up(T v, ushort delta) { const int l = (msl_lane() & 3) - int(delta); return msl_defined(simd_shuffle(v, ushort((msl_lane() & ~3) + (l & 3))), l >= 0); }
} // namespace metal
