// msl_lint.h - kernel text as types only, for clang: address spaces are real here, so that a pointer into the wrong one, or a cast that
// forgets its own, is the error that Apple's compiler gives. Nothing is defined; sizes and results mean nothing.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace metal {
using namespace std;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
typedef __bf16 bfloat;
template <class T, int N> struct msl_vec { typedef T type __attribute__((ext_vector_type(N))); };
template <class T, int N> using vec = typename msl_vec<T, N>::type;
#define MSL_NAMES(T, NAME) \
  typedef vec<T, 2> NAME##2; typedef vec<T, 3> NAME##3; typedef vec<T, 4> NAME##4; typedef vec<T, 2> packed_##NAME##2; typedef vec<T, 3> packed_##NAME##3; typedef vec<T, 4> packed_##NAME##4;
MSL_NAMES(bool, bool) MSL_NAMES(signed char, char) MSL_NAMES(uchar, uchar) MSL_NAMES(short, short) MSL_NAMES(ushort, ushort) MSL_NAMES(int, int)
MSL_NAMES(uint, uint) MSL_NAMES(long, long) MSL_NAMES(ulong, ulong) MSL_NAMES(float, float) MSL_NAMES(half, half) MSL_NAMES(bfloat, bfloat)
#undef MSL_NAMES
template <class V, class... A> V msl_make(A...);
template <class To, class From> To as_type(From);

template <class T> struct msl_up { typedef T type; };
template <> struct msl_up<bfloat> { typedef float type; };
#define MSL_UNARY(NAME) template <class T> typename msl_up<T>::type NAME(T);
#define MSL_UNARY_ALL                                                                                          \
  MSL_UNARY(exp) MSL_UNARY(exp2) MSL_UNARY(exp10) MSL_UNARY(log) MSL_UNARY(log2) MSL_UNARY(log10) MSL_UNARY(sqrt) MSL_UNARY(rsqrt) MSL_UNARY(sin) MSL_UNARY(cos) MSL_UNARY(tan) \
  MSL_UNARY(sinpi) MSL_UNARY(cospi) MSL_UNARY(asin) MSL_UNARY(acos) MSL_UNARY(atan) MSL_UNARY(sinh) MSL_UNARY(cosh) MSL_UNARY(tanh) MSL_UNARY(asinh) MSL_UNARY(acosh) MSL_UNARY(atanh) \
  MSL_UNARY(floor) MSL_UNARY(ceil) MSL_UNARY(trunc) MSL_UNARY(round) MSL_UNARY(rint) MSL_UNARY(fabs) MSL_UNARY(fract) MSL_UNARY(saturate) MSL_UNARY(sign)
MSL_UNARY_ALL
MSL_UNARY(abs)
#define MSL_BINARY(NAME) template <class A, class B> auto NAME(A a, B b) -> remove_reference_t<decltype(a + b)>;
#define MSL_BINARY_ALL MSL_BINARY(max) MSL_BINARY(min) MSL_BINARY(fmax) MSL_BINARY(fmin) MSL_BINARY(pow) MSL_BINARY(powr) MSL_BINARY(fmod) MSL_BINARY(atan2) MSL_BINARY(divide)
MSL_BINARY_ALL
MSL_BINARY(copysign) MSL_BINARY(fdim) MSL_BINARY(step) MSL_BINARY(absdiff)
namespace precise { MSL_UNARY_ALL MSL_BINARY_ALL }
namespace fast { MSL_UNARY_ALL MSL_BINARY_ALL }
template <class A, class B, class C> A clamp(A, B, C);
template <class T> T fma(T, T, T);
template <class T> T max3(T, T, T);
template <class T> T min3(T, T, T);
template <class T> T median3(T, T, T);
template <class A, class B, class C> A mix(A, B, C);
template <class T> T smoothstep(T, T, T);
template <class T, class C> T select(T, T, C);
float ldexp(float, int);
float nextafter(float, float);
template <class V> auto dot(V a, V b) -> remove_cvref_t<decltype(a[0])>;
template <class V> auto length(V a) -> remove_cvref_t<decltype(a[0])>;
template <class V> auto length_squared(V a) -> remove_cvref_t<decltype(a[0])>;
template <class V> V normalize(V);
bool isnan(float), isinf(float), isfinite(float), isnormal(float), signbit(float);
template <class V> bool all(V);
template <class V> bool any(V);
template <class T> T popcount(T);
template <class T> T clz(T);
template <class T> T ctz(T);
template <class T> T reverse_bits(T);
template <class T> T extract_bits(T, uint, uint);
template <class T> T insert_bits(T, T, uint, uint);
template <class T> T rotate(T, T);
template <class T> T mulhi(T, T);
template <class T> T mul24(T, T);
template <class T> T mad24(T, T, T);
float4 unpack_unorm4x8_to_float(uint);
float2 unpack_half2x16_to_float(uint);
template <class T, size_t N> struct array { T elements[N]; T& operator[](size_t); const T& operator[](size_t) const; static constexpr size_t size() { return N; } };

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
mem_flags operator|(mem_flags, mem_flags);
enum memory_order { memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
inline constexpr size_t dynamic_extent = ~size_t(0);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);
#define MSL_LANES(NAME) template <class T> T NAME(T);
MSL_LANES(simd_sum) MSL_LANES(simd_product) MSL_LANES(simd_max) MSL_LANES(simd_min) MSL_LANES(simd_and) MSL_LANES(simd_or) MSL_LANES(simd_xor) MSL_LANES(simd_broadcast_first)
MSL_LANES(simd_prefix_inclusive_sum) MSL_LANES(simd_prefix_exclusive_sum) MSL_LANES(simd_prefix_inclusive_product) MSL_LANES(simd_prefix_exclusive_product)
MSL_LANES(quad_sum) MSL_LANES(quad_product) MSL_LANES(quad_max) MSL_LANES(quad_min)
#undef MSL_LANES
#define MSL_LANES(NAME) template <class T> T NAME(T, ushort);
MSL_LANES(simd_shuffle) MSL_LANES(simd_broadcast) MSL_LANES(simd_shuffle_xor) MSL_LANES(simd_shuffle_up) MSL_LANES(simd_shuffle_down) MSL_LANES(simd_shuffle_rotate_up) MSL_LANES(simd_shuffle_rotate_down)
MSL_LANES(quad_shuffle) MSL_LANES(quad_broadcast) MSL_LANES(quad_shuffle_xor) MSL_LANES(quad_shuffle_up) MSL_LANES(quad_shuffle_down)
#undef MSL_LANES
template <class T> T simd_shuffle_and_fill_up(T, T, ushort);
template <class T> T simd_shuffle_and_fill_down(T, T, ushort);
struct simd_vote { typedef ulong vote_t; explicit simd_vote(vote_t = 0); explicit operator vote_t() const; bool all() const; bool any() const; };
simd_vote simd_ballot(bool);
simd_vote simd_active_threads_mask();
bool simd_all(bool), simd_any(bool), simd_is_first();
} // namespace metal

#define M_E_F 2.71828174591064f
#define M_PI_F 3.14159274101257f
#define M_PI_2_F 1.57079637050629f
#define M_1_PI_F 0.318309873342514f
#define M_2_PI_F 0.636619746685028f
#define M_2_SQRTPI_F 1.12837922573090f
#define M_SQRT2_F 1.41421353816986f
#define M_SQRT1_2_F 0.707106769084930f
#define M_LOG2E_F 1.44269502162933f
#define M_LN2_F 0.693147182464600f
#define M_LN10_F 2.30258512496948f
#define HALF_MAX half(65504.0f)
#ifndef MAXFLOAT
#define MAXFLOAT FLT_MAX
#endif

#define MSL_KERNEL static
// From here on the words of the kernel text are address spaces.
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2))) const
#define threadgroup __attribute__((address_space(3)))
#define thread

namespace metal {
template <class T, int R = 8, int C = 8> struct simdgroup_matrix {
  typedef vec<T, 2> storage_type;
  storage_type e;
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
  storage_type& thread_elements();
  const storage_type& thread_elements() const;
};
typedef simdgroup_matrix<float> simdgroup_float8x8;
typedef simdgroup_matrix<half> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat> simdgroup_bfloat8x8;
template <class T, int R = 8, int C = 8> simdgroup_matrix<T, R, C> make_filled_simdgroup_matrix(T);
#define MSL_MEMORY(SPACE)                                                                                      \
  template <class T> void simdgroup_load(simdgroup_matrix<T>&, const SPACE T*, ulong = 8, ulong2 = {}, bool = false); \
  template <class T> void simdgroup_store(const simdgroup_matrix<T>&, SPACE T*, ulong = 8, ulong2 = {}, bool = false);
MSL_MEMORY(device) MSL_MEMORY(threadgroup)
template <class T> void simdgroup_load(simdgroup_matrix<T>&, constant T*, ulong = 8, ulong2 = {}, bool = false);
#undef MSL_MEMORY
template <class D, class A, class B, class C> void simdgroup_multiply_accumulate(simdgroup_matrix<D>&, const simdgroup_matrix<A>&, const simdgroup_matrix<B>&, const simdgroup_matrix<C>&);
template <class D, class A, class B> void simdgroup_multiply(simdgroup_matrix<D>&, const simdgroup_matrix<A>&, const simdgroup_matrix<B>&);

template <class T> struct atomic { T value; };
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;
#define MSL_UPDATE(SPACE, NAME) template <class T> T NAME(SPACE atomic<T>*, type_identity_t<T>, memory_order);
#define MSL_ATOMICS(SPACE)                                                                                     \
  template <class T> T atomic_load_explicit(const SPACE atomic<T>*, memory_order);                             \
  template <class T> void atomic_store_explicit(SPACE atomic<T>*, type_identity_t<T>, memory_order);           \
  template <class T> bool atomic_compare_exchange_weak_explicit(SPACE atomic<T>*, T*, type_identity_t<T>, memory_order, memory_order); \
  MSL_UPDATE(SPACE, atomic_exchange_explicit) MSL_UPDATE(SPACE, atomic_fetch_add_explicit) MSL_UPDATE(SPACE, atomic_fetch_sub_explicit) MSL_UPDATE(SPACE, atomic_fetch_max_explicit) \
  MSL_UPDATE(SPACE, atomic_fetch_min_explicit) MSL_UPDATE(SPACE, atomic_fetch_and_explicit) MSL_UPDATE(SPACE, atomic_fetch_or_explicit) MSL_UPDATE(SPACE, atomic_fetch_xor_explicit)
MSL_ATOMICS(device) MSL_ATOMICS(threadgroup)
#undef MSL_ATOMICS
#undef MSL_UPDATE

// ---- tensors: the element type carries its address space -----------------------------------------------------------------
template <class I, size_t R> struct dextents { dextents() = default; template <class... A> requires(sizeof...(A) == R) constexpr dextents(A...); static constexpr size_t rank() { return R; } I extent(size_t) const; };
template <class I, size_t... S> struct extents { template <class... A> constexpr extents(A...); static constexpr size_t rank() { return sizeof...(S); } I extent(size_t) const; };
struct tensor_inline {};
struct tensor_handle {};
struct tensor_offset {};
struct execution_thread {};
struct execution_simdgroup {};
template <int N> struct execution_simdgroups {};
template <class T, class E, class D = tensor_inline> struct tensor {
  typedef T element_type;
  tensor() = default;
  tensor(T*, const E&);
  template <class S> tensor(T*, const E&, const S&);
  static constexpr size_t get_rank() { return E::rank(); }
  int get_extent(size_t) const;
  int get_stride(size_t) const;
  template <class... A> tensor<T, dextents<int, E::rank()>, D> slice(A...) const;
  template <size_t... S, class... A> requires(sizeof...(S) == E::rank()) tensor<T, dextents<int, E::rank()>, D> slice(A...) const;
};
template <class T, class E> tensor(T*, E) -> tensor<T, E, tensor_inline>;
template <class T, class E, class S> tensor(T*, E, S) -> tensor<T, E, tensor_inline>;
} // namespace metal

namespace mpp { namespace tensor_ops {
using namespace metal;
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool left, right, relaxed;
  mode what;
  constexpr matmul2d_descriptor(int m, int n, int k = -1, bool left = false, bool right = false, bool relaxed = false, mode what = mode::multiply) : m(m), n(n), k(k), left(left), right(right), relaxed(relaxed), what(what) {}
};
template <class T> struct msl_cooperative {
  typedef T element_type;
  T& operator[](int);
  const T& operator[](int) const;
  ushort get_capacity() const;
  bool is_valid_element(int) const;
  array<int, 2> get_multidimensional_index(int) const;
  template <class U, class E, class D> void store(const tensor<U, E, D>&) const;
  template <class U, class E, class D> void load(const tensor<U, E, D>&);
};
template <matmul2d_descriptor D, class Scope> struct matmul2d {
  template <class A, class B, class T> msl_cooperative<T> get_destination_cooperative_tensor() const;
  template <class A, class B, class C> msl_cooperative<A> get_left_input_cooperative_tensor() const;
  template <class A, class B, class C> msl_cooperative<B> get_right_input_cooperative_tensor() const;
  template <class A, class B, class C> void run(const A&, const B&, C&&) const;
};
} }
