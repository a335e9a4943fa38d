// msl_tensor_types.h - tensors over memory, and what describes a product of two: the part of tensor operations that says nothing of who computes.
//
// Dimension 0 is the innermost: a tensor of extents (columns, rows) is a row-major matrix.
#pragma once

namespace metal {
template <class I, size_t R> struct dextents {
  I e[R];
  static MSL_INLINE constexpr size_t rank() { return R; }
  dextents() = default;
  template <class... A> requires(sizeof...(A) == R) MSL_INLINE constexpr dextents(A... a) : e{I(a)...} {}
  MSL_INLINE constexpr I extent(size_t i) const { return e[i]; }
};
template <class I, size_t... S> struct extents {
  I e[sizeof...(S)];
  static MSL_INLINE constexpr size_t rank() { return sizeof...(S); }
  template <class... A> MSL_INLINE constexpr extents(A... a) { // the dynamic ones in order
    const I given[] = {I(0), I(a)...};
    const size_t fixed[] = {S...};
    for (size_t i = 0, k = 1; i < sizeof...(S); i++) e[i] = fixed[i] == dynamic_extent ? given[k++] : I(fixed[i]);
  }
  MSL_INLINE constexpr I extent(size_t i) const { return e[i]; }
};
struct tensor_inline {};
struct tensor_handle {};
struct tensor_offset {};
struct execution_thread { static constexpr int threads = 1; };
struct execution_simdgroup { static constexpr int threads = 32; };
template <int N> struct execution_simdgroups { static constexpr int threads = 32 * N; };

template <class T, class E, class D = tensor_inline> struct tensor {
  static_assert(is_same_v<D, tensor_inline> || is_same_v<D, tensor_offset>, "tensors bound as arguments are not supported here");
  static constexpr size_t rank = E::rank();
  typedef T element_type;
  typedef remove_cv_t<T> value_type;
  typedef tensor<T, dextents<int, rank>, D> part;
  T* data;
  long extent[rank], stride[rank];
  tensor() = default;
  MSL_INLINE tensor(T* p, const E& e) : data(p) {
    long s = 1;
    for (size_t i = 0; i < rank; s *= extent[i++]) extent[i] = e.extent(i), stride[i] = s;
  }
  template <class S> MSL_INLINE tensor(T* p, const E& e, const S& s) : data(p) { for (size_t i = 0; i < rank; i++) extent[i] = e.extent(i), stride[i] = s[i]; }
  static MSL_INLINE constexpr size_t get_rank() { return rank; }
  MSL_INLINE int get_extent(size_t i) const { return int(extent[i]); }
  MSL_INLINE int get_stride(size_t i) const { return int(stride[i]); }
  // From an origin on; the extents end where the tensor does.
  template <class... A> requires(sizeof...(A) == rank) MSL_INLINE part slice(A... a) const {
    const long origin[] = {long(a)...};
    part t;
    t.data = data;
    for (size_t i = 0; i < rank; i++) {
      t.data += origin[i] * stride[i];
      t.extent[i] = extent[i] - origin[i];
      t.stride[i] = stride[i];
    }
    return t;
  }
  template <size_t... S, class... A> requires(sizeof...(S) == rank && sizeof...(A) == rank) MSL_INLINE part slice(A... a) const {
    part t = slice(a...);
    const size_t most[] = {S...};
    for (size_t i = 0; i < rank; i++)
      if (most[i] != dynamic_extent && t.extent[i] > long(most[i])) t.extent[i] = long(most[i]);
    return t;
  }
};
template <class T, class E> tensor(T*, E) -> tensor<T, E, tensor_inline>;
template <class T, class E, class S> tensor(T*, E, S) -> tensor<T, E, tensor_inline>;
} // namespace metal

namespace mpp { namespace tensor_ops {
using namespace metal;
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool left, right, relaxed; // left, right: that operand is transposed
  mode what;
  MSL_INLINE constexpr matmul2d_descriptor(int m, int n, int k = int(dynamic_extent), bool left = false, bool right = false, bool relaxed = false, mode what = mode::multiply)
      : m(m), n(n), k(k), left(left), right(right), relaxed(relaxed), what(what) {}
};
} }
