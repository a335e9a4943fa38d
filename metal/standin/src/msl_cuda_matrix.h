// msl_cuda_matrix.h - simdgroup_matrix, 8 x 8, on the tensor units.
//
// A product of 8x8 matrices is half of the smallest multiplication that NVIDIA's units do, 16 x 8 x 8. The other half is put to use where an operand
// is float: rows 0 to 7 take its leading part (11 bits, tf32), rows 8 to 15 what is left of it, and the two halves of the result are added.
//
//   operands           instructions                                   error of a product, relative
//   float, float       2 mma tf32: (ah + al)(bl), then (ah + al)(bh)   2^-21: parts of 11 bits, the rest is cut off
//   float, bfloat/half 1 mma tf32: (ah + al) b                         2^-21
//   bfloat/half, float 2 mma tf32: a (bl), then a (bh)                 2^-21; the lower half unused
//   bfloat/half alike  1 mma bf16 or f16, the lower half unused        none
//
// The units cut off what does not fit when they add, so that a long sum would drift: each product begins at zero, and is added to what was there by an
// ordinary addition. With MSL_MATRIX_EXACT float operands go by multiply-adds in float, k ascending, operands by
// exchange: ten times slower, for telling errors of a kernel from those of this file.
//
// A lane holds row lane/4, columns 2*(lane%4) and the next: NVIDIA's layout, not Apple's, so thread_elements() is not here. As right operand of a product a
// matrix is needed by columns. A load of floats brings both forms and the compiler drops the one that nobody uses; one of 16 bits brings the form that lies
// side by side, two neighbours in one word. That, like a result, is turned where it is used as the other.
#pragma once

namespace metal {
// Two neighbours of a matrix; of 16 bits they are one word, so that what is on its way from memory takes a register and not two.
template <class T> struct msl_neighbours {
  T v[2];
  MSL_GPU_INLINE T get(int i) const { return v[i]; }
  MSL_GPU_INLINE void set(T first, T second) { v[0] = first, v[1] = second; }
};
template <class T> requires msl_is_small<T> struct msl_neighbours<T> {
  uint word;
  MSL_GPU_INLINE T get(int i) const { T t; t.bits = uint16_t(i ? word >> 16 : word); return t; }
  MSL_GPU_INLINE void set(T first, T second) { word = uint(first.bits) | uint(second.bits) << 16; }
};

template <class T, int Rows = 8, int Cols = 8> struct simdgroup_matrix {
  static_assert(Rows == 8 && Cols == 8, "simdgroup_matrix is 8 x 8");
  static_assert(is_same_v<T, float> || is_same_v<T, half> || is_same_v<T, bfloat>, "simdgroup_matrix holds float, half or bfloat");
  msl_neighbours<T> row;    // of row lane/4: columns 2*(lane%4), 2*(lane%4)+1
  msl_neighbours<T> column; // of column lane/4: rows 2*(lane%4), 2*(lane%4)+1
  bool both;   // column is valid
  MSL_GPU_INLINE simdgroup_matrix() : both(true) { memset((void*)&row, 0xff, sizeof row); memset((void*)&column, 0xff, sizeof column); } // NaN until it is loaded
  MSL_GPU_INLINE explicit simdgroup_matrix(T diagonal) : both(true) {
    const int r = msl_lane() >> 2, c = (msl_lane() & 3) * 2;
    row.set(r == c ? diagonal : T(0.0f), r == c + 1 ? diagonal : T(0.0f));
    column = row;
  }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int R = 8, int C = 8> MSL_GPU_INLINE simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, R, C> m;
  m.row.set(v, v);
  m.column = m.row;
  m.both = false; // as it would be in a loop that adds to it: the compiler need not tell the first round from the others
  return m;
}

template <class T, class U> MSL_GPU_INLINE void simdgroup_load(simdgroup_matrix<T>& m, const U* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  static_assert(is_same_v<T, remove_cv_t<U>>, "simdgroup_load: the matrix and the memory have different element types");
  p += origin.y * stride + origin.x;
  const ulong down = transposed ? 1 : stride, right = transposed ? stride : 1;
  const ulong r = ulong(msl_lane() >> 2), c = ulong((msl_lane() & 3) * 2);
  if constexpr (msl_is_small<T>) { // one load, which faults where a pair does not lie at a multiple of four bytes; one instruction makes columns of rows
    (transposed ? m.column : m.row).word = *(const uint*)(p + r * stride + c);
    if (transposed) m.row.set(p[c * stride + r], p[(c + 1) * stride + r]);
    m.both = transposed;
  } else {
    m.row.set(p[r * down + c * right], p[r * down + (c + 1) * right]);
    m.column.set(p[c * down + r * right], p[(c + 1) * down + r * right]);
    m.both = true;
  }
}
template <class T, class U> MSL_GPU_INLINE void simdgroup_store(const simdgroup_matrix<T>& m, U* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  static_assert(is_same_v<T, U>, "simdgroup_store: the matrix and the memory have different element types");
  p += origin.y * stride + origin.x;
  const ulong down = transposed ? 1 : stride, right = transposed ? stride : 1;
  const ulong r = ulong(msl_lane() >> 2), c = ulong((msl_lane() & 3) * 2);
  for (int i = 0; i < 2; i++) p[r * down + (c + i) * right] = m.row.get(i);
}

// Two 16-bit elements of a row become two of a column.
MSL_GPU_INLINE uint msl_turn(uint pair) {
  uint r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(pair));
  return r;
}
struct msl_pair { float x, y; };
template <class T> MSL_GPU_INLINE msl_pair msl_column(const simdgroup_matrix<T>& m) {
  if (m.both) return {float(m.column.get(0)), float(m.column.get(1))};
  if constexpr (is_same_v<T, float>) {
    const uint a = msl_bits(m.row.get(0)), b = msl_bits(m.row.get(1));
    const uint low = msl_turn(__byte_perm(a, b, 0x5410)), high = msl_turn(__byte_perm(a, b, 0x7632));
    return {__builtin_bit_cast(float, __byte_perm(low, high, 0x5410)), __builtin_bit_cast(float, __byte_perm(low, high, 0x7632))};
  } else {
    msl_neighbours<T> turned;
    turned.word = msl_turn(m.row.word);
    return {float(turned.get(0)), float(turned.get(1))};
  }
}
template <class T> MSL_GPU_INLINE uint msl_packed_column(const simdgroup_matrix<T>& m) {
  return m.both ? m.column.word : msl_turn(m.row.word);
}

// The leading part of a number that a tf32 operand holds. What a unit reads of a word is its upper 19 bits.
MSL_GPU_INLINE float msl_lead(float f) { return __builtin_bit_cast(float, msl_bits(f) & 0xffffe000u); }
MSL_GPU_INLINE void msl_mma_tf32(float (&d)[4], const float (&a)[4], float b0, float b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(msl_bits(a[0])), "r"(msl_bits(a[1])), "r"(msl_bits(a[2])), "r"(msl_bits(a[3])), "r"(msl_bits(b0)), "r"(msl_bits(b1)));
}

template <class D, class A, class B, class C>
MSL_GPU_INLINE void simdgroup_multiply_accumulate(simdgroup_matrix<D>& d, const simdgroup_matrix<A>& a, const simdgroup_matrix<B>& b, const simdgroup_matrix<C>& c) {
  float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if constexpr (msl_is_small<A> && is_same_v<A, B>) {
    const uint left = a.row.word, right = msl_packed_column(b);
    if constexpr (is_same_v<A, bfloat>)
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(left), "r"(0u), "r"(right));
    else
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]) : "r"(left), "r"(0u), "r"(right));
  } else {
    const msl_pair right = msl_column(b);
#ifdef MSL_MATRIX_EXACT
    for (int k = 0; k < 8; k++) { // lane (row r, k/2) has left elements of row r, lane (column n, k/2) right ones of column n
      const int r = msl_lane() >> 2, n = (msl_lane() & 3) * 2;
      const float even = __shfl_sync(msl_everyone, float(a.row.get(0)), r * 4 + k / 2), odd = __shfl_sync(msl_everyone, float(a.row.get(1)), r * 4 + k / 2);
      for (int i = 0; i < 2; i++) {
        const float x = __shfl_sync(msl_everyone, right.x, (n + i) * 4 + k / 2), y = __shfl_sync(msl_everyone, right.y, (n + i) * 4 + k / 2);
        s[i] += (k % 2 ? odd : even) * (k % 2 ? y : x);
      }
    }
#else
    // Of the eight columns of the left matrix, the unit's first four are the even ones, the others the odd ones; the right one's rows alike.
    const float x = float(a.row.get(0)), y = float(a.row.get(1));
    constexpr bool split = is_same_v<A, float>; // 16 bits are all leading
    const float left[4] = {split ? msl_lead(x) : x, split ? x - msl_lead(x) : 0.0f, split ? msl_lead(y) : y, split ? y - msl_lead(y) : 0.0f};
    if constexpr (is_same_v<B, float>) msl_mma_tf32(s, left, right.x - msl_lead(right.x), right.y - msl_lead(right.y));
    msl_mma_tf32(s, left, msl_lead(right.x), msl_lead(right.y));
    if constexpr (split) {
      s[0] += s[2];
      s[1] += s[3];
    }
#endif
  }
  d.row.set(D(float(c.row.get(0)) + s[0]), D(float(c.row.get(1)) + s[1]));
  d.both = false;
}
template <class D, class A, class B> MSL_GPU_INLINE void simdgroup_multiply(simdgroup_matrix<D>& d, const simdgroup_matrix<A>& a, const simdgroup_matrix<B>& b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D>(D(0.0f)));
}
template <class T> MSL_GPU_INLINE simdgroup_matrix<T> operator*(const simdgroup_matrix<T>& a, const simdgroup_matrix<T>& b) { simdgroup_matrix<T> d; simdgroup_multiply(d, a, b); return d; }
} // namespace metal
