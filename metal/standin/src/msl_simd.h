// msl_simd.h - barriers, and operations between the lanes of a simdgroup and of a quadgroup.
#pragma once

namespace metal {
// The Metal library defines simdgroup operations for scalars and vectors other than bfloat, bool and 64-bit integers.
template <class T> concept MslSimd = MslValue<T> && !is_same_v<msl_element<T>, bfloat> && !is_same_v<msl_element<T>, bool> && sizeof(msl_element<T>) <= 4;
template <class T> concept MslSimdInteger = MslSimd<T> && is_integral_v<msl_element<T>>;

#define MSL_LINE msl::Where line = msl::Where::here()
inline void threadgroup_barrier(mem_flags f, MSL_LINE) { msl::threadgroupBarrier(line, uint(f)); }
inline void simdgroup_barrier(mem_flags f, MSL_LINE) { msl::simdgroupBarrier(line, uint(f)); }

MSL_SILENT inline int msl_lane() { return msl::context->lane->lane; }
template <class T> MSL_SILENT inline msl::Exchange* msl_meet(const T& v, msl::Where line, msl::Operation op) {
  static_assert(sizeof(T) <= 16);
  uint64_t b[2] = {0, 0};
  memcpy((void*)b, (const void*)&v, sizeof(T));
  return msl::meet(b[0], b[1], msl::siteOf(line, op), line.file);
}
template <class T> MSL_SILENT inline T msl_slot(const msl::Exchange* x, int lane) { T t; memcpy((void*)&t, x->slot[lane], sizeof(T)); return t; }

// All lanes get the same bits. A full simdgroup is folded pairwise (lane i with i+16, i+8, …), as hardware may; the order is fixed.
template <class T, class F> MSL_SILENT inline T msl_reduce(const T& v, msl::Where line, msl::Operation op, F f) {
  msl::Exchange* x = msl_meet(v, line, op);
  if (!x->haveResult) {
    T all[32];
    uint32_t m = x->active;
    if (m == ~0u) {
      for (int i = 0; i < 32; i++) all[i] = msl_slot<T>(x, i);
      for (int half_ = 16; half_; half_ >>= 1)
        for (int i = 0; i < half_; i++) all[i] = f(all[i], all[i + half_]);
    } else {
      all[0] = msl_slot<T>(x, __builtin_ctz(m));
      for (m &= m - 1; m; m &= m - 1) all[0] = f(all[0], msl_slot<T>(x, __builtin_ctz(m)));
    }
    memcpy((void*)x->result, (const void*)&all[0], sizeof(T));
    x->haveResult = true;
  }
  T r;
  memcpy((void*)&r, (const void*)x->result, sizeof(T));
  msl::done(x);
  return r;
}
#define MSL_REDUCE(NAME, CONCEPT, OP, EXPR) template <CONCEPT T> inline T NAME(T v, MSL_LINE) { return msl_reduce(v, line, msl::OP, [](const T& a, const T& b) MSL_SILENT { return T(EXPR); }); }
MSL_REDUCE(simd_sum, MslSimd, OP_SUM, a + b) MSL_REDUCE(simd_product, MslSimd, OP_PRODUCT, a * b) MSL_REDUCE(simd_max, MslSimd, OP_MAX, max(a, b)) MSL_REDUCE(simd_min, MslSimd, OP_MIN, min(a, b))
MSL_REDUCE(simd_and, MslSimdInteger, OP_AND, a & b) MSL_REDUCE(simd_or, MslSimdInteger, OP_OR, a | b) MSL_REDUCE(simd_xor, MslSimdInteger, OP_XOR, a ^ b)
#undef MSL_REDUCE

// The value of another lane. Where Metal leaves the result undefined (no such lane, or it takes no part) it is all ones: NaN.
template <class T> MSL_SILENT inline T msl_take(const T& v, int from, bool exists, msl::Where line, msl::Operation op) {
  msl::Exchange* x = msl_meet(v, line, op);
  T r;
  if (exists && (x->active >> (from & 31) & 1)) r = msl_slot<T>(x, from & 31);
  else memset((void*)&r, 0xff, sizeof(T));
  msl::done(x);
  return r;
}
template <MslSimd T> inline T simd_shuffle(T v, ushort lane, MSL_LINE) { return msl_take(v, lane, lane < 32, line, msl::OP_SHUFFLE); }
template <MslSimd T> inline T simd_broadcast(T v, ushort lane, MSL_LINE) { return msl_take(v, lane, lane < 32, line, msl::OP_BROADCAST); }
template <MslSimd T> inline T simd_shuffle_xor(T v, ushort mask, MSL_LINE) { return msl_take(v, msl_lane() ^ mask, mask < 32, line, msl::OP_SHUFFLE_XOR); }
template <MslSimd T> inline T simd_shuffle_down(T v, ushort delta, MSL_LINE) { int l = msl_lane() + delta; return msl_take(v, l, l < 32, line, msl::OP_SHUFFLE_DOWN); }
template <MslSimd T> inline T simd_shuffle_up(T v, ushort delta, MSL_LINE) { int l = msl_lane() - delta; return msl_take(v, l, l >= 0, line, msl::OP_SHUFFLE_UP); }
template <MslSimd T> inline T simd_shuffle_rotate_down(T v, ushort delta, MSL_LINE) { return msl_take(v, msl_lane() + delta & 31, true, line, msl::OP_SHUFFLE); }
template <MslSimd T> inline T simd_shuffle_rotate_up(T v, ushort delta, MSL_LINE) { return msl_take(v, msl_lane() - delta & 31, true, line, msl::OP_SHUFFLE); }
template <MslSimd T> inline T simd_shuffle_and_fill_down(T v, T fill, ushort delta, MSL_LINE) {
  int l = msl_lane() + delta;
  T a = msl_take(v, l, l < 32, line, msl::OP_SHUFFLE_DOWN), b = msl_take(fill, l & 31, true, line, msl::OP_FILL);
  return l < 32 ? a : b;
}
template <MslSimd T> inline T simd_shuffle_and_fill_up(T v, T fill, ushort delta, MSL_LINE) {
  int l = msl_lane() - delta;
  T a = msl_take(v, l, l >= 0, line, msl::OP_SHUFFLE_UP), b = msl_take(fill, l & 31, true, line, msl::OP_FILL);
  return l >= 0 ? a : b;
}
template <MslSimd T> MSL_SILENT inline T simd_broadcast_first(T v, MSL_LINE) {
  msl::Exchange* x = msl_meet(v, line, msl::OP_BROADCAST);
  T r = msl_slot<T>(x, __builtin_ctz(x->active));
  msl::done(x);
  return r;
}

template <class T, class F> MSL_SILENT inline T msl_scan(const T& v, T start, bool inclusive, msl::Where line, F f) {
  msl::Exchange* x = msl_meet(v, line, msl::OP_SCAN);
  T a = start;
  for (int i = 0, n = msl_lane() + inclusive; i < n; i++)
    if (x->active >> i & 1) a = f(a, msl_slot<T>(x, i));
  msl::done(x);
  return a;
}
template <MslSimd T> inline T simd_prefix_inclusive_sum(T v, MSL_LINE) { return msl_scan(v, T(0), true, line, [](T a, T b) MSL_SILENT { return T(a + b); }); }
template <MslSimd T> inline T simd_prefix_exclusive_sum(T v, MSL_LINE) { return msl_scan(v, T(0), false, line, [](T a, T b) MSL_SILENT { return T(a + b); }); }
template <MslSimd T> inline T simd_prefix_inclusive_product(T v, MSL_LINE) { return msl_scan(v, T(1), true, line, [](T a, T b) MSL_SILENT { return T(a * b); }); }
template <MslSimd T> inline T simd_prefix_exclusive_product(T v, MSL_LINE) { return msl_scan(v, T(1), false, line, [](T a, T b) MSL_SILENT { return T(a * b); }); }

struct simd_vote {
  typedef ulong vote_t;
  explicit simd_vote(vote_t v = 0) : votes(v), active(0xffffffff) {}
  explicit operator vote_t() const { return votes; }
  bool all() const { return votes == active; }
  bool any() const { return votes != 0; }
  vote_t votes, active;
};
MSL_SILENT inline simd_vote simd_ballot(bool p, MSL_LINE) {
  unsigned char b = p;
  msl::Exchange* x = msl_meet(b, line, msl::OP_VOTE);
  simd_vote v;
  for (int i = 0; i < 32; i++)
    if ((x->active >> i & 1) && x->slot[i][0]) v.votes |= 1ul << i;
  v.active = x->active;
  msl::done(x);
  return v;
}
inline simd_vote simd_active_threads_mask(MSL_LINE) { return simd_ballot(true, line); }
inline bool simd_all(bool p, MSL_LINE) { return simd_ballot(p, line).all(); }
inline bool simd_any(bool p, MSL_LINE) { return simd_ballot(p, line).any(); }
MSL_SILENT inline bool simd_is_first(MSL_LINE) {
  unsigned char b = 0;
  msl::Exchange* x = msl_meet(b, line, msl::OP_FIRST);
  bool first = __builtin_ctz(x->active) == msl_lane();
  msl::done(x);
  return first;
}

template <class T, class F> MSL_SILENT inline T msl_quad(const T& v, msl::Where line, F f) {
  msl::Exchange* x = msl_meet(v, line, msl::OP_QUAD);
  T a{};
  bool first = true;
  for (int i = msl_lane() & ~3, e = i + 4; i < e; i++)
    if (x->active >> i & 1) {
      T b = msl_slot<T>(x, i);
      a = first ? b : f(a, b);
      first = false;
    }
  msl::done(x);
  return a;
}
template <MslSimd T> inline T quad_sum(T v, MSL_LINE) { return msl_quad(v, line, [](T a, T b) MSL_SILENT { return T(a + b); }); }
template <MslSimd T> inline T quad_product(T v, MSL_LINE) { return msl_quad(v, line, [](T a, T b) MSL_SILENT { return T(a * b); }); }
template <MslSimd T> inline T quad_max(T v, MSL_LINE) { return msl_quad(v, line, [](T a, T b) MSL_SILENT { return T(max(a, b)); }); }
template <MslSimd T> inline T quad_min(T v, MSL_LINE) { return msl_quad(v, line, [](T a, T b) MSL_SILENT { return T(min(a, b)); }); }
template <MslSimd T> inline T quad_shuffle(T v, ushort lane, MSL_LINE) { return msl_take(v, (msl_lane() & ~3) | (lane & 3), lane < 4, line, msl::OP_QUAD); }
template <MslSimd T> inline T quad_broadcast(T v, ushort lane, MSL_LINE) { return msl_take(v, (msl_lane() & ~3) | (lane & 3), lane < 4, line, msl::OP_QUAD); }
template <MslSimd T> inline T quad_shuffle_xor(T v, ushort mask, MSL_LINE) { return msl_take(v, msl_lane() ^ (mask & 3), mask < 4, line, msl::OP_QUAD); }
template <MslSimd T> inline T quad_shuffle_down(T v, ushort delta, MSL_LINE) { int l = (msl_lane() & 3) + delta; return msl_take(v, (msl_lane() & ~3) + (l & 3), l < 4, line, msl::OP_QUAD); }
template <MslSimd T> inline T quad_shuffle_up(T v, ushort delta, MSL_LINE) { int l = (msl_lane() & 3) - delta; return msl_take(v, (msl_lane() & ~3) + (l & 3), l >= 0, line, msl::OP_QUAD); }
} // namespace metal
