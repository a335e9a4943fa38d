// msl_types.h - Metal's scalars and vectors for an ordinary C++20 compiler, and for CUDA (msl_cuda.h), where a macro MSL_GPU says so.
//
// Rules kept here: half and bfloat round to nearest even after every operation; a float becomes a bfloat only on request; vectors
// convert only on request, a scalar spreads over all components; a shift or comparison of vectors is componentwise. Swizzles are
// proxies that share the vector's memory; the pre-pass lists those that a text uses in MSL_SWIZZLES_n, because each one costs
// compile time.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#ifdef MSL_GPU
#define MSL_INLINE __host__ __device__ inline __attribute__((always_inline)) // __host__, so that constants may be computed by them
#include "msl_cuda_small.h"
#else
#define MSL_INLINE inline __attribute__((always_inline))
#endif

namespace metal {
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
using std::size_t;
using std::ptrdiff_t;
using std::bool_constant, std::conditional, std::conditional_t, std::decay_t, std::declval, std::enable_if, std::enable_if_t, std::false_type,
    std::index_sequence, std::integer_sequence, std::integral_constant, std::is_arithmetic_v, std::is_const_v, std::is_convertible_v, std::is_floating_point_v,
    std::is_integral, std::is_integral_v, std::is_pointer_v, std::is_same, std::is_same_v, std::is_signed_v, std::is_unsigned_v, std::make_index_sequence,
    std::make_signed_t, std::make_unsigned_t, std::remove_const_t, std::remove_cv_t, std::remove_pointer_t, std::remove_reference_t, std::true_type;

// ---- half and bfloat: 16 stored bits, arithmetic in float, one rounding each ----------------------------------------------

MSL_INLINE constexpr uint32_t msl_bits(float f) { return __builtin_bit_cast(uint32_t, f); }
#ifndef MSL_GPU
struct msl_half_format {
  static MSL_INLINE constexpr float widen(uint16_t b) { return float(__builtin_bit_cast(_Float16, b)); }
  static MSL_INLINE constexpr uint16_t round(float f) { return __builtin_bit_cast(uint16_t, _Float16(f)); }
  static constexpr bool fromFloat = true; // implicitly
};
struct msl_bfloat_format {
  static MSL_INLINE constexpr float widen(uint16_t b) { return __builtin_bit_cast(float, uint32_t(b) << 16); }
  static MSL_INLINE constexpr uint16_t round(float f) {
    uint32_t u = msl_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t(u >> 16 | 0x40u); // NaN stays NaN
    return uint16_t((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  static constexpr bool fromFloat = false;
};
#endif
template <class F> struct msl_small;
typedef msl_small<msl_half_format> half;
typedef msl_small<msl_bfloat_format> bfloat;
template <class T> inline constexpr bool msl_is_small = is_same_v<T, half> || is_same_v<T, bfloat>;
template <class T> concept MslSmall = msl_is_small<T>;
template <class T> concept MslScalar = is_arithmetic_v<T> || msl_is_small<T>;

template <class F> struct msl_small {
  uint16_t bits;
  msl_small() = default;
  template <class A> requires(is_arithmetic_v<A>) MSL_INLINE constexpr explicit(!F::fromFloat && is_floating_point_v<A>) msl_small(A a) : bits(F::round(float(a))) {}
  template <MslSmall A> requires(!is_same_v<A, msl_small>) MSL_INLINE constexpr explicit msl_small(A a) : bits(F::round(float(a))) {}
  MSL_INLINE constexpr operator float() const { return F::widen(bits); }
  MSL_INLINE constexpr msl_small operator-() const { msl_small r; r.bits = bits ^ 0x8000; return r; }
  MSL_INLINE constexpr msl_small operator+() const { return *this; }
  template <MslScalar B> MSL_INLINE constexpr msl_small& operator+=(B b) { return *this = msl_small(*this + b); }
  template <MslScalar B> MSL_INLINE constexpr msl_small& operator-=(B b) { return *this = msl_small(*this - b); }
  template <MslScalar B> MSL_INLINE constexpr msl_small& operator*=(B b) { return *this = msl_small(*this * b); }
  template <MslScalar B> MSL_INLINE constexpr msl_small& operator/=(B b) { return *this = msl_small(*this / b); }
};

// The type of an operation: with itself or an integer a small float stays what it is, with any other float it is float.
template <class A, class B> struct msl_promoted { typedef float type; };
template <MslSmall A> struct msl_promoted<A, A> { typedef A type; };
template <MslSmall A, std::integral B> struct msl_promoted<A, B> { typedef A type; };
template <std::integral A, MslSmall B> struct msl_promoted<A, B> { typedef B type; };
#define MSL_SMALL_OPERATOR(op)                                                                                 \
  template <MslScalar A, MslScalar B> requires(msl_is_small<A> || msl_is_small<B>)                             \
  MSL_INLINE constexpr typename msl_promoted<A, B>::type operator op(A a, B b) {                               \
    return typename msl_promoted<A, B>::type(float(a) op float(b));                                            \
  }
MSL_SMALL_OPERATOR(+) MSL_SMALL_OPERATOR(-) MSL_SMALL_OPERATOR(*) MSL_SMALL_OPERATOR(/)
#undef MSL_SMALL_OPERATOR
#define MSL_SMALL_COMPARISON(op)                                                                               \
  template <MslScalar A, MslScalar B> requires(msl_is_small<A> || msl_is_small<B>)                             \
  MSL_INLINE constexpr bool operator op(A a, B b) { return float(a) op float(b); }
MSL_SMALL_COMPARISON(<) MSL_SMALL_COMPARISON(>) MSL_SMALL_COMPARISON(<=) MSL_SMALL_COMPARISON(>=) MSL_SMALL_COMPARISON(==) MSL_SMALL_COMPARISON(!=)
#undef MSL_SMALL_COMPARISON

// ---- vectors -----------------------------------------------------------------------------------------------------------

template <class T, int N> struct vec;
template <class T, int N> struct packed_vec;
template <class T, int N, int... I> struct msl_swizzle;

// What a type is as a vector: its length (0 for a scalar) and its element.
template <class A> struct msl_shape { static constexpr int n = 0; typedef A element; };
template <class T, int N> struct msl_shape<vec<T, N>> { static constexpr int n = N; typedef T element; };
template <class T, int N> struct msl_shape<packed_vec<T, N>> { static constexpr int n = N; typedef T element; };
template <class T, int N, int... I> struct msl_shape<msl_swizzle<T, N, I...>> { static constexpr int n = sizeof...(I); typedef T element; };
template <class A> inline constexpr int msl_len = msl_shape<std::remove_cvref_t<A>>::n;
template <class A> inline constexpr int msl_count = msl_len<A> == 0 ? 1 : msl_len<A>;
template <class A> using msl_element = typename msl_shape<std::remove_cvref_t<A>>::element;
template <class A> concept MslVector = msl_len<A> > 0;
template <class A> concept MslValue = MslVector<A> || MslScalar<std::remove_cvref_t<A>>;
template <class A> using msl_vector = vec<msl_element<A>, msl_len<A>>;

template <class A> MSL_INLINE constexpr auto msl_at(const A& a, int i) {
  if constexpr (msl_len<A> == 0) return a;
  else return a.get(i);
}
template <class T, class A> MSL_INLINE constexpr T msl_to(A a) {
  if constexpr (is_same_v<T, bool>) return a != A(0);
  else return T(a);
}

template <class T, int N, int... I> struct msl_swizzle {
  T d[N];
  static constexpr int index[sizeof...(I)] = {I...};
  typedef vec<T, int(sizeof...(I))> value;
  MSL_INLINE T get(int i) const { return d[index[i]]; }
  MSL_INLINE operator value() const { return value(d[I]...); }
  MSL_INLINE msl_swizzle& operator=(const value& v) { for (int i = 0; i < int(sizeof...(I)); i++) d[index[i]] = v.d[i]; return *this; }
  MSL_INLINE msl_swizzle& operator=(const msl_swizzle& v) { return *this = value(v); } // through a copy: v may be ourselves, permuted
  MSL_INLINE T operator[](int i) const { return d[index[i]]; }
  MSL_INLINE value operator-() const { return -value(*this); }
  template <MslValue B> MSL_INLINE msl_swizzle& operator+=(const B& b) { return *this = value(*this) + b; }
  template <MslValue B> MSL_INLINE msl_swizzle& operator-=(const B& b) { return *this = value(*this) - b; }
  template <MslValue B> MSL_INLINE msl_swizzle& operator*=(const B& b) { return *this = value(*this) * b; }
  template <MslValue B> MSL_INLINE msl_swizzle& operator/=(const B& b) { return *this = value(*this) / b; }
};

#ifdef MSL_GPU // whole, so that a copy from memory is one load, and one to memory one store: a memcpy becomes a store for each byte
template <int Bytes, int Align> struct msl_unit_of { struct alignas(Align) type { unsigned char b[Bytes]; }; };
template <> struct msl_unit_of<2, 2> { using type = ::uint16_t; };
template <> struct msl_unit_of<4, 4> { using type = ::uint32_t; };
template <> struct msl_unit_of<8, 8> { using type = ::uint2; };
template <> struct msl_unit_of<16, 16> { using type = ::uint4; };
template <int Bytes, int Align> using msl_unit = typename msl_unit_of<Bytes, Align>::type;
#define MSL_WHOLE(A) const A
// Pairs of bfloat become floats by a shift and a mask of their word.
#define MSL_WIDEN(A, N)                                                                                        \
  if constexpr (N % 2 == 0 && is_same_v<T, float> && is_same_v<A, vec<bfloat, N>>) {                           \
    for (int i = 0; i < N; i += 2) {                                                                           \
      uint w;                                                                                                  \
      memcpy((void*)&w, (const void*)(a.d + i), 4);                                                            \
      d[i] = __builtin_bit_cast(float, w << 16);                                                               \
      d[i + 1] = __builtin_bit_cast(float, w & 0xffff0000u);                                                   \
    }                                                                                                          \
  } else
#define MSL_VECTOR_COPY(N)                                                                                     \
  vec(const vec& v) = default;                                                                                 \
  MSL_INLINE vec& operator=(const vec& v) { *(msl_unit<sizeof(vec), alignof(vec)>*)this = *(const msl_unit<sizeof(vec), alignof(vec)>*)&v; return *this; }
#else
#define MSL_WHOLE(A) const A&
#define MSL_WIDEN(A, N)
#define MSL_VECTOR_COPY(N)                                                                                     \
  MSL_INLINE constexpr vec(const vec& v) { for (int i = 0; i < N; i++) d[i] = v.d[i]; }                        \
  MSL_INLINE constexpr vec& operator=(const vec& v) { for (int i = 0; i < N; i++) d[i] = v.d[i]; return *this; }
#endif
#define MSL_VECTOR_BODY(N)                                                                                     \
  vec() = default;                                                                                             \
  MSL_VECTOR_COPY(N)                                                                                           \
  template <MslScalar A> MSL_INLINE constexpr vec(A a) { for (int i = 0; i < N; i++) d[i] = msl_to<T>(a); }    \
  template <MslVector A> requires(msl_len<A> == N && !is_same_v<A, vec>)                                       \
  MSL_INLINE constexpr explicit(!is_same_v<msl_element<A>, T>) vec(const A& from) { MSL_WHOLE(A) a = from; MSL_WIDEN(A, N) for (int i = 0; i < N; i++) d[i] = msl_to<T>(a.get(i)); } \
  template <MslValue... A> requires(sizeof...(A) > 1 && (msl_count<A> + ...) == N)                             \
  MSL_INLINE constexpr vec(const A&... a) { int k = 0; (append(k, a), ...); }                                  \
  template <class A> MSL_INLINE constexpr void append(int& k, const A& a) { for (int i = 0; i < msl_count<A>; i++) d[k++] = msl_to<T>(msl_at(a, i)); } \
  MSL_INLINE constexpr T get(int i) const { return d[i]; }                                                     \
  MSL_INLINE constexpr T& operator[](int i) { return d[i]; }                                                   \
  MSL_INLINE constexpr const T& operator[](int i) const { return d[i]; }                                       \
  MSL_INLINE constexpr vec operator-() const { vec r; for (int i = 0; i < N; i++) r.d[i] = T(-d[i]); return r; } \
  MSL_INLINE constexpr vec operator+() const { return *this; }                                                 \
  MSL_INLINE constexpr vec operator~() const requires is_integral_v<T> { vec r; for (int i = 0; i < N; i++) r.d[i] = T(~d[i]); return r; } \
  MSL_INLINE constexpr vec<bool, N> operator!() const { vec<bool, N> r; for (int i = 0; i < N; i++) r.d[i] = !d[i]; return r; } \
  MSL_INLINE vec& operator++() requires is_integral_v<T> { for (int i = 0; i < N; i++) d[i]++; return *this; } \
  MSL_INLINE vec& operator--() requires is_integral_v<T> { for (int i = 0; i < N; i++) d[i]--; return *this; }

#ifndef MSL_SWIZZLES_2
#define MSL_SWIZZLES_2
#define MSL_SWIZZLES_3
#define MSL_SWIZZLES_4
#endif
template <class T> struct alignas(sizeof(T) * 2) vec<T, 2> { union { T d[2]; struct { T x, y; }; struct { T r, g; }; MSL_SWIZZLES_2 }; MSL_VECTOR_BODY(2) };
template <class T> struct alignas(sizeof(T) * 4) vec<T, 3> { union { T d[3]; struct { T x, y, z; }; struct { T r, g, b; }; MSL_SWIZZLES_3 }; MSL_VECTOR_BODY(3) };
template <class T> struct alignas(sizeof(T) * 4) vec<T, 4> { union { T d[4]; struct { T x, y, z, w; }; struct { T r, g, b, a; }; MSL_SWIZZLES_4 }; MSL_VECTOR_BODY(4) };
#undef MSL_VECTOR_BODY
#undef MSL_VECTOR_COPY
#undef MSL_WHOLE
#undef MSL_WIDEN

template <class T, int N> struct packed_vec { // no padding, alignment of the element
  T d[N];
  packed_vec() = default;
  MSL_INLINE packed_vec(const vec<T, N>& v) { for (int i = 0; i < N; i++) d[i] = v.d[i]; }
  template <MslValue... A> requires((msl_count<A> + ...) == N && sizeof...(A) > 1) MSL_INLINE packed_vec(const A&... a) : packed_vec(vec<T, N>(a...)) {}
  template <MslScalar A> MSL_INLINE packed_vec(A a) : packed_vec(vec<T, N>(a)) {}
  MSL_INLINE operator vec<T, N>() const { vec<T, N> v; for (int i = 0; i < N; i++) v.d[i] = d[i]; return v; }
  MSL_INLINE T get(int i) const { return d[i]; }
  MSL_INLINE T& operator[](int i) { return d[i]; }
  MSL_INLINE const T& operator[](int i) const { return d[i]; }
};

// Vector with vector of the same length, or with a scalar.
template <class A, class B> inline constexpr bool msl_pairs = (MslVector<A> || MslVector<B>) && MslValue<A> && MslValue<B> && (msl_len<A> == msl_len<B> || msl_len<A> == 0 || msl_len<B> == 0);
// Two vectors must agree in their element: Metal converts none implicitly.
template <class A, class B> inline constexpr bool msl_agree = msl_pairs<A, B> && (msl_len<A> == 0 || msl_len<B> == 0 || is_same_v<msl_element<A>, msl_element<B>>);
template <class A, class B> inline constexpr int msl_len2 = msl_len<A> > msl_len<B> ? msl_len<A> : msl_len<B>;
template <class A, class B> using msl_element2 = conditional_t<(msl_len<A> > 0), msl_element<A>, msl_element<B>>;
#define MSL_VECTOR_OPERATOR(op)                                                                                \
  template <class A, class B> requires msl_agree<A, B>                                                         \
  MSL_INLINE constexpr vec<msl_element2<A, B>, msl_len2<A, B>> operator op(const A& a, const B& b) {           \
    using T = msl_element2<A, B>;                                                                              \
    vec<T, msl_len2<A, B>> r;                                                                                  \
    for (int i = 0; i < msl_len2<A, B>; i++) r.d[i] = T(T(msl_at(a, i)) op T(msl_at(b, i)));                   \
    return r;                                                                                                  \
  }                                                                                                            \
  template <class T, int N, class B> requires msl_agree<vec<T, N>, B> MSL_INLINE constexpr vec<T, N>& operator op##=(vec<T, N>& a, const B& b) { return a = a op b; }
MSL_VECTOR_OPERATOR(+) MSL_VECTOR_OPERATOR(-) MSL_VECTOR_OPERATOR(*) MSL_VECTOR_OPERATOR(/) MSL_VECTOR_OPERATOR(%)
MSL_VECTOR_OPERATOR(&) MSL_VECTOR_OPERATOR(|) MSL_VECTOR_OPERATOR(^) MSL_VECTOR_OPERATOR(<<) MSL_VECTOR_OPERATOR(>>)
#undef MSL_VECTOR_OPERATOR
#define MSL_VECTOR_COMPARISON(op)                                                                              \
  template <class A, class B> requires msl_agree<A, B>                                                         \
  MSL_INLINE constexpr vec<bool, msl_len2<A, B>> operator op(const A& a, const B& b) {                         \
    using T = msl_element2<A, B>;                                                                              \
    vec<bool, msl_len2<A, B>> r;                                                                               \
    for (int i = 0; i < msl_len2<A, B>; i++) r.d[i] = T(msl_at(a, i)) op T(msl_at(b, i));                      \
    return r;                                                                                                  \
  }
MSL_VECTOR_COMPARISON(<) MSL_VECTOR_COMPARISON(>) MSL_VECTOR_COMPARISON(<=) MSL_VECTOR_COMPARISON(>=) MSL_VECTOR_COMPARISON(==) MSL_VECTOR_COMPARISON(!=)
MSL_VECTOR_COMPARISON(&&) MSL_VECTOR_COMPARISON(||)
#undef MSL_VECTOR_COMPARISON

#define MSL_NAMES(T, NAME)                                                                                     \
  typedef vec<T, 2> NAME##2; typedef vec<T, 3> NAME##3; typedef vec<T, 4> NAME##4;                             \
  typedef packed_vec<T, 2> packed_##NAME##2; typedef packed_vec<T, 3> packed_##NAME##3; typedef packed_vec<T, 4> packed_##NAME##4;
MSL_NAMES(bool, bool) MSL_NAMES(signed char, char) MSL_NAMES(uchar, uchar) MSL_NAMES(short, short) MSL_NAMES(ushort, ushort) MSL_NAMES(int, int)
MSL_NAMES(uint, uint) MSL_NAMES(long, long) MSL_NAMES(ulong, ulong) MSL_NAMES(float, float) MSL_NAMES(half, half) MSL_NAMES(bfloat, bfloat)
#undef MSL_NAMES

template <class To, class From> MSL_INLINE To as_type(const From& from) {
  if constexpr (MslVector<From> && !is_same_v<From, msl_vector<From>>) return as_type<To>(msl_vector<From>(from)); // a swizzle or a packed vector
  else {
    static_assert(sizeof(To) == sizeof(From), "as_type: sizes differ");
    To to;
    memcpy((void*)&to, (const void*)&from, sizeof(To));
    return to;
  }
}

template <class T, size_t N> struct array {
  T elements[N];
  MSL_INLINE constexpr T& operator[](size_t i) { return elements[i]; }
  MSL_INLINE constexpr const T& operator[](size_t i) const { return elements[i]; }
  static constexpr size_t size() { return N; }
};

template <class T> struct numeric_limits : std::numeric_limits<T> {};
#define MSL_LIMITS(T, MAX, MIN, INF, EPS)                                                                      \
  template <> struct numeric_limits<T> {                                                                       \
    static constexpr bool is_specialized = true, is_integer = false, is_signed = true;                         \
    static constexpr T of(uint16_t b) { T t{}; t.bits = b; return t; }                                         \
    static constexpr T max() { return of(MAX); }                                                               \
    static constexpr T lowest() { return of(MAX | 0x8000); }                                                   \
    static constexpr T min() { return of(MIN); }                                                               \
    static constexpr T infinity() { return of(INF); }                                                          \
    static constexpr T quiet_NaN() { return of(INF | 0x7f); }                                                  \
    static constexpr T epsilon() { return of(EPS); }                                                           \
  };
MSL_LIMITS(half, 0x7bff, 0x0400, 0x7c00, 0x1400)
MSL_LIMITS(bfloat, 0x7f7f, 0x0080, 0x7f80, 0x3c00)
#undef MSL_LIMITS
} // namespace metal
