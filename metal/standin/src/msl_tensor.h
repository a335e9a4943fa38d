// msl_tensor.h - the part of Metal 4's tensors and of MetalPerformancePrimitives' tensor_ops that matrix kernels use.
//
// Which thread holds which element of a cooperative tensor is undocumented, but for the 16 x 16 fragments of one simdgroup that public code relies
// on; kernels must ask get_multidimensional_index. Products are sums over k in ascending order, in float. Not here: reductions, map_iterator,
// tensor_handle arguments, int4 and fp8 elements, register operands of several simdgroups.
#pragma once

#include "msl_tensor_types.h"

namespace mpp { namespace tensor_ops {
// A tile of Rows x Cols whose elements lie in the registers of Threads threads.
template <class T, int Rows, int Cols, int Threads> struct msl_cooperative {
  static constexpr int capacity = (Rows * Cols + Threads - 1) / Threads;
  static constexpr bool fragments = Threads == 32 && Rows % 16 == 0 && Cols % 16 == 0;
  typedef T element_type;
  T e[capacity];
  struct place { int row, col; };
  MSL_SILENT static int thread() { return Threads == 1 ? 0 : Threads == 32 ? msl_lane() : int(msl::context->lane->linear) % Threads; }
  static place at(int i, int thread) {
    if constexpr (fragments) {
      const int q = thread >> 2, f = i >> 3, x = i & 7, across = Cols / 16;
      return {f / across * 16 + ((q & 4) | (thread >> 1 & 3)) + (x >> 2) * 8, f % across * 16 + ((q & 2) | (thread & 1)) * 4 + (x & 3)};
    }
    const int l = i * Threads + thread;
    return {l / Cols, l % Cols};
  }
  static ushort get_capacity() { return capacity; }
  static bool is_valid_element(int i) { return at(i, thread()).row < Rows; }
  static array<int, 2> get_multidimensional_index(int i) { const place p = at(i, thread()); return {{p.col, p.row}}; }
  T& operator[](int i) { return e[i]; }
  const T& operator[](int i) const { return e[i]; }
  template <class X> void store(const X& t) const {
    for (int i = 0; i < capacity; i++) {
      const place p = at(i, thread());
      if (p.row < Rows && p.col < t.extent[0] && p.row < t.extent[1]) t.data[p.row * t.stride[1] + p.col * t.stride[0]] = typename X::value_type(e[i]);
    }
  }
  template <class X> void load(const X& t) {
    for (int i = 0; i < capacity; i++) {
      const place p = at(i, thread());
      const bool inside = p.row < Rows && p.col < t.extent[0] && p.row < t.extent[1];
      e[i] = inside ? T(t.data[p.row * t.stride[1] + p.col * t.stride[0]]) : T(0.0f);
    }
  }
};
template <class X> inline constexpr bool msl_registers = false;
template <class T, int R, int C, int N> inline constexpr bool msl_registers<msl_cooperative<T, R, C, N>> = true;

template <matmul2d_descriptor D, class Scope> struct matmul2d {
  static constexpr int threads = Scope::threads, depth = D.k > 0 ? D.k : 1;
  static constexpr bool adds = D.what == matmul2d_descriptor::mode::multiply_accumulate;
  template <class A, class B, class T> msl_cooperative<T, D.m, D.n, threads> get_destination_cooperative_tensor() const { return {}; }
  template <class A, class B, class C> msl_cooperative<A, D.left ? depth : D.m, D.left ? D.m : depth, threads> get_left_input_cooperative_tensor() const { return {}; }
  template <class A, class B, class C> msl_cooperative<B, D.right ? D.n : depth, D.right ? depth : D.n, threads> get_right_input_cooperative_tensor() const { return {}; }

  template <class A, class B, class C> void run(const A& a, const B& b, C&& c, MSL_LINE) const {
    typedef std::remove_cvref_t<C> To;
    if constexpr (msl_registers<A> || msl_registers<B>) {
      static_assert(msl_registers<A> && msl_registers<B> && msl_registers<To> && threads == 32, "register operands: both, and of one simdgroup");
      registers(a, b, c, line);
    } else if constexpr (msl_registers<To>) {
      for (int i = 0; i < To::capacity; i++) {
        const auto p = To::at(i, To::thread());
        if (p.row < D.m) put(c.e[i], dot(a, b, p.row, p.col));
      }
    } else {
      const int me = threads == 1 ? 0 : msl_cooperative<float, D.m, D.n, threads>::thread();
      for (int l = me; l < D.m * D.n; l += threads) {
        const int row = l / D.n, col = l % D.n;
        if (col < c.extent[0] && row < c.extent[1]) put(c.data[row * c.stride[1] + col * c.stride[0]], dot(a, b, row, col));
      }
    }
  }

 private:
  template <class X> static void put(X& x, float sum) { x = X(adds ? float(x) + sum : sum); }
  // Element (row, col) of the product of two tensors in memory; what lies outside them is zero.
  template <class A, class B> static float dot(const A& a, const B& b, int row, int col) {
    constexpr int ar = D.left ? 0 : 1, ak = 1 - ar, bc = D.right ? 1 : 0, bk = 1 - bc;
    if (row >= a.extent[ar] || col >= b.extent[bc]) return 0.0f;
    long n = std::min(a.extent[ak], b.extent[bk]);
    if (D.k > 0 && n > D.k) n = D.k;
    float sum = 0.0f;
    for (long k = 0; k < n; k++) sum += float(a.data[row * a.stride[ar] + k * a.stride[ak]]) * float(b.data[col * b.stride[bc] + k * b.stride[bk]]);
    return sum;
  }
  // Every lane shows where its registers are, computes its own elements, and waits until all have read them.
  template <class A, class B, class C> MSL_SILENT static void registers(const A& a, const B& b, C& c, msl::Where line) {
    struct Both { const A* a; const B* b; } mine{&a, &b};
    msl::Exchange* x = msl_meet(mine, line, msl::OP_TENSOR);
    if (x->active != ~0u) msl::stop(line, "tensor operation without all 32 lanes of a simdgroup");
    float left[D.m][depth], right[depth][D.n];
    for (int lane = 0; lane < 32; lane++) {
      const Both other = msl_slot<Both>(x, lane);
      for (int i = 0; i < A::capacity; i++) {
        const auto p = A::at(i, lane);
        (D.left ? left[p.col][p.row] : left[p.row][p.col]) = float(other.a->e[i]);
      }
      for (int i = 0; i < B::capacity; i++) {
        const auto p = B::at(i, lane);
        (D.right ? right[p.col][p.row] : right[p.row][p.col]) = float(other.b->e[i]);
      }
    }
    msl::done(x);
    for (int i = 0; i < C::capacity; i++) {
      const auto p = C::at(i, msl_lane());
      float sum = 0.0f;
      for (int k = 0; k < depth; k++) sum += left[p.row][k] * right[k][p.col];
      put(c.e[i], sum);
    }
    msl::done(msl_meet(0, line, msl::OP_TENSOR_END));
  }
};
} }
