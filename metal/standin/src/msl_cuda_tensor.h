// msl_cuda_tensor.h - tensor operations on NVIDIA's tensor units, at their full width: products of 16 x 8 x 16 of bfloat or half, sums in float.
//
// Operands are tensors in memory, the destination is cooperative. The simdgroups of an operation share its rows and columns as evenly as they
// divide; a lane holds pairs of neighbouring columns. Operands in threadgroup memory, whose rows begin at multiples of 16 bytes and hold all
// of the tile, are brought to the units eight rows at a time (ldmatrix). Rows in device memory that begin at multiples of 16 bytes are read 16 bytes
// a lane, which then holds other elements than the units' fragments name: dims of both operands in the same other order where both lie along them, and
// other columns of the result where the right operand lies across. The rest is read element by element. What is outside is zero.
// The units cut off what does not fit when they add: a sum of k products is off by up to k * 2^-24 of its largest part, against 2^-9 by which
// bfloat operands are rounded.
//
// Not here: operands in registers, float operands, destinations in memory.
#pragma once
#include "msl_tensor_types.h"

namespace mpp { namespace tensor_ops {
// Apart: neighbouring columns of a fragment lie cols/8 apart, not side by side.
template <class T, int Rows, int Cols, int Threads, bool Apart> struct msl_cooperative {
  static_assert(is_same_v<T, float>, "sums are float");
  static_assert(Threads % 32 == 0, "an operation takes whole simdgroups");
  static constexpr int simdgroups = Threads / 32;
  static constexpr bool square = simdgroups % 4 == 0 && Rows % 32 == 0;
  static constexpr int down = square ? 2 : Rows % (16 * simdgroups) == 0 ? simdgroups : 1, across = simdgroups / down;
  static constexpr int rows = Rows / down, cols = Cols / across; // of a simdgroup
  static_assert(rows % 16 == 0 && cols % 8 == 0 && rows * down == Rows && cols * across == Cols, "the tile does not divide into 16 x 8 for each simdgroup");
  static constexpr int capacity = rows * cols / 32, tall = rows / 16, wide = cols / 8;
  typedef T element_type;
  T e[capacity];
  static MSL_GPU_INLINE int firstRow() { return int(msl::linear() / 32) % simdgroups / across * rows; }
  static MSL_GPU_INLINE int firstCol() { return int(msl::linear() / 32) % simdgroups % across * cols; }
  struct place { int row, col; };
  static MSL_GPU_INLINE place at(int i) {
    const int tile = i / 4, lane = msl_lane();
    return {firstRow() + tile / wide * 16 + lane / 4 + i % 4 / 2 * 8, column(tile % wide, lane % 4 * 2 + i % 2)};
  }
  static MSL_GPU_INLINE int column(int fragment, int c) { return firstCol() + (Apart ? c * wide + fragment : fragment * 8 + c); }
  static MSL_GPU_INLINE ushort get_capacity() { return capacity; }
  static MSL_GPU_INLINE bool is_valid_element(int) { return true; }
  static MSL_GPU_INLINE array<int, 2> get_multidimensional_index(int i) { const place p = at(i); return {{p.col, p.row}}; }
  MSL_GPU_INLINE T& operator[](int i) { return e[i]; }
  MSL_GPU_INLINE const T& operator[](int i) const { return e[i]; }
  template <class X> MSL_GPU_INLINE void store(const X& t) const {
#pragma unroll
    for (int i = 0; i < capacity; i++) {
      const place p = at(i);
      if (p.col < t.extent[0] && p.row < t.extent[1]) t.data[p.row * t.stride[1] + p.col * t.stride[0]] = typename X::value_type(e[i]);
    }
  }
  template <class X> MSL_GPU_INLINE void load(const X& t) {
#pragma unroll
    for (int i = 0; i < capacity; i++) {
      const place p = at(i);
      e[i] = p.col < t.extent[0] && p.row < t.extent[1] ? T(t.data[p.row * t.stride[1] + p.col * t.stride[0]]) : T(0.0f);
    }
  }
};

template <matmul2d_descriptor D, class Scope> struct matmul2d {
  static constexpr int threads = Scope::threads;
  static constexpr bool adds = D.what == matmul2d_descriptor::mode::multiply_accumulate;
  template <class A, class B, class T> MSL_GPU_INLINE msl_cooperative<T, D.m, D.n, threads, !D.right> get_destination_cooperative_tensor() const { return {}; }

  template <class A, class B, class C> MSL_GPU_INLINE void run(const A& a, const B& b, C&& c) const {
    typedef std::remove_cvref_t<C> To;
    typedef typename A::value_type T;
    static_assert(is_same_v<T, typename B::value_type> && (is_same_v<T, bfloat> || is_same_v<T, half>), "operands are both bfloat or both half on this executor");
    if (!adds)
      for (int i = 0; i < To::capacity; i++) c.e[i] = 0.0f;
    constexpr int ar = D.left ? 0 : 1, bc = D.right ? 1 : 0;
    long depth = min(a.extent[1 - ar], b.extent[1 - bc]);
    if (D.k > 0 && depth > D.k) depth = D.k;
    if constexpr (!D.left && D.right && D.k > 0 && D.k % 16 == 0 && To::wide % 2 == 0) {
      if (depth == D.k && a.extent[ar] >= D.m && b.extent[bc] >= D.n && rows(a) && rows(b)) {
        whole<T>(a, b, c);
        return;
      }
    }
    const int g = msl_lane() / 4, t = msl_lane() % 4 * 2;
    int k = 0;
    if constexpr (!D.left && D.right) {
      if (along<0>(a) && along<0>(b)) k = dims<T>(a, b, c, depth);
    } else if constexpr (!D.left && !D.right && To::wide == 8) {
      if (a.extent[1] >= D.m && rows(a) && along<0>(b) && b.extent[0] >= D.n) k = values<T>(a, b, c, depth);
    }
#pragma unroll 1
    for (; k < depth; k += 16) {
      uint left[To::tall][4], right[To::wide][2];
      for (int i = 0; i < To::tall; i++)
        for (int h = 0; h < 4; h++) left[i][h] = pair<ar>(a, To::firstRow() + 16 * i + h % 2 * 8 + g, k + h / 2 * 8 + t, depth);
      for (int j = 0; j < To::wide; j++)
        for (int h = 0; h < 2; h++) right[j][h] = pair<bc>(b, To::column(j, g), k + 8 * h + t, depth);
      multiply_tiles<T>(c, left, right);
    }
  }

 private:
  // Whether 16 bytes can be read at once along dimension I.
  template <int I, class A> static MSL_GPU_INLINE bool along(const A& a) {
    return !__isShared((const void*)a.data) && a.stride[I] == 1 && a.stride[1 - I] % 8 == 0 && (uint64_t)a.data % 16 == 0;
  }
  struct words { uint x, y, z, w; };
  static MSL_GPU_INLINE words eight(const void* p, bool inside) {
    words r = {0, 0, 0, 0};
    if (inside) asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(p));
    return r;
  }
  // Both operands lie along k: 32 of it at a time, of which a lane has eight neighbours. Returns where the rest begins.
  template <class T, class A, class B, class To> static MSL_GPU_INLINE int dims(const A& a, const B& b, To& c, long depth) {
    const int g = msl_lane() / 4, at = msl_lane() % 4 * 8;
    int k = 0;
#pragma unroll 2
    for (; k + 32 <= depth; k += 32) {
      words l[To::tall][2], r[To::wide];
#pragma unroll
      for (int i = 0; i < To::tall; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int row = To::firstRow() + 16 * i + 8 * h + g;
          l[i][h] = eight(&a.data[row * a.stride[1] + k + at], row < a.extent[1]);
        }
#pragma unroll
      for (int j = 0; j < To::wide; j++) {
        const int row = To::column(j, g);
        r[j] = eight(&b.data[row * b.stride[1] + k + at], row < b.extent[1]);
      }
      uint left[To::tall][4], right[To::wide][2];
#pragma unroll
      for (int i = 0; i < To::tall; i++) left[i][0] = l[i][0].x, left[i][1] = l[i][1].x, left[i][2] = l[i][0].y, left[i][3] = l[i][1].y;
#pragma unroll
      for (int j = 0; j < To::wide; j++) right[j][0] = r[j].x, right[j][1] = r[j].y;
      multiply_tiles<T>(c, left, right);
#pragma unroll
      for (int i = 0; i < To::tall; i++) left[i][0] = l[i][0].z, left[i][1] = l[i][1].z, left[i][2] = l[i][0].w, left[i][3] = l[i][1].w;
#pragma unroll
      for (int j = 0; j < To::wide; j++) right[j][0] = r[j].z, right[j][1] = r[j].w;
      multiply_tiles<T>(c, left, right);
    }
    return k;
  }
  // The left operand in threadgroup memory, the right one across k: of four rows a lane reads the eight columns that it has in the eight fragments.
  template <class T, class A, class B, class To> static MSL_GPU_INLINE int values(const A& a, const B& b, To& c, long depth) {
    const int lane = msl_lane(), g = lane / 4, t = lane % 4 * 2, which = lane / 8, row = lane % 8;
    int k = 0;
#pragma unroll 2
    for (; k + 16 <= depth; k += 16) {
      uint left[To::tall][4], right[To::wide][2];
      words v[4];
#pragma unroll
      for (int i = 0; i < 4; i++) v[i] = eight(&b.data[(k + t + i / 2 * 8 + i % 2) * b.stride[1] + To::column(0, g)], true);
#pragma unroll
      for (int i = 0; i < To::tall; i++) four(left[i], &a.data[(To::firstRow() + 16 * i + which % 2 * 8 + row) * a.stride[1] + k + which / 2 * 8]);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const uint first[4] = {v[2 * h].x, v[2 * h].y, v[2 * h].z, v[2 * h].w}, second[4] = {v[2 * h + 1].x, v[2 * h + 1].y, v[2 * h + 1].z, v[2 * h + 1].w};
#pragma unroll
        for (int j = 0; j < 8; j++) right[j][h] = j % 2 ? first[j / 2] >> 16 | (second[j / 2] & 0xffff0000u) : (first[j / 2] & 0xffffu) | second[j / 2] << 16;
      }
      multiply_tiles<T>(c, left, right);
    }
    return k;
  }
  template <class T, class A, class B, class To> static MSL_GPU_INLINE void whole(const A& a, const B& b, To& c) {
    const int lane = msl_lane(), which = lane / 8, row = lane % 8; // of four blocks of 8 x 8, which and whose row this lane points to
#pragma unroll
    for (int k = 0; k < D.k; k += 16) {
      uint left[To::tall][4], right[To::wide][2];
#pragma unroll
      for (int i = 0; i < To::tall; i++) four(left[i], &a.data[(To::firstRow() + 16 * i + which % 2 * 8 + row) * a.stride[1] + k + which / 2 * 8]);
#pragma unroll
      for (int j = 0; j < To::wide; j += 2) {
        uint both[4];
        four(both, &b.data[(To::firstCol() + 8 * j + which / 2 * 8 + row) * b.stride[1] + k + which % 2 * 8]);
        right[j][0] = both[0], right[j][1] = both[1], right[j + 1][0] = both[2], right[j + 1][1] = both[3];
      }
      multiply_tiles<T>(c, left, right);
    }
  }
  // Whether ldmatrix can take the rows of a tensor.
  template <class A> static MSL_GPU_INLINE bool rows(const A& a) {
    return __isShared((const void*)a.data) && a.stride[0] == 1 && a.stride[1] % 8 == 0 && (uint64_t)a.data % 16 == 0;
  }
  template <class P> static MSL_GPU_INLINE void four(uint (&r)[4], const P* p) {
    const uint at = uint(__cvta_generic_to_shared((const void*)p));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  }
  // Elements k and k+1 of row r, whose dimension is Outer; zero outside.
  template <int Outer, class A> static MSL_GPU_INLINE uint pair(const A& a, int r, int k, long depth) {
    uint w = 0;
    for (int i = 0; i < 2; i++)
      if (r < a.extent[Outer] && k + i < depth) w |= uint(a.data[r * a.stride[Outer] + (k + i) * a.stride[1 - Outer]].bits) << (16 * i);
    return w;
  }
  template <class T, class C, int Wide> static MSL_GPU_INLINE void multiply_tiles(C& c, const uint (&left)[C::tall][4], const uint (&right)[Wide][2]) {
#pragma unroll
    for (int i = 0; i < C::tall; i++)
#pragma unroll
      for (int j = 0; j < Wide; j++) multiply<T>(&c.e[(i * C::wide + j) * 4], left[i], right[j]);
  }
  template <class T> static MSL_GPU_INLINE void multiply(float* d, const uint (&a)[4], const uint (&b)[2]) {
    if constexpr (is_same_v<T, bfloat>)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
} }
