// msl_math.h - Metal's math, integer, relational and geometric functions.
//
// Each is a float function, lifted to half (through float, one rounding) and to vectors; the library has no bfloat versions, as in
// Metal: a bfloat argument becomes a float. Results are the C library's, so they are the same on every run and compiler here, and differ from
// a GPU's within the error bounds that the Metal specification gives.
#pragma once
#include "msl_types.h"

namespace metal {
#define MSL_UNARY(NAME, EXPR)                                                                                  \
  MSL_INLINE float NAME(float x) { return EXPR; }                                                              \
  MSL_INLINE half NAME(half h) { float x = h; return half(float(EXPR)); }                                      \
  MSL_INLINE float NAME(bfloat b) { float x = b; return EXPR; }                                                \
  template <MslVector A> MSL_INLINE auto NAME(const A& a) {                                                    \
    vec<decltype(NAME(a.get(0))), msl_len<A>> r;                                                               \
    for (int i = 0; i < msl_len<A>; i++) r.d[i] = NAME(a.get(i));                                              \
    return r;                                                                                                  \
  }
#ifdef MSL_GPU
#define MSL_RSQRT(x) ::rsqrtf(x) // one instruction and one step more, within 2 units in the last place
#else
#define MSL_RSQRT(x) 1.0f / ::sqrtf(x)
#endif
#define MSL_UNARY_EXP MSL_UNARY(exp, ::expf(x)) MSL_UNARY(exp2, ::exp2f(x))
#define MSL_UNARY_FAST                                                                                         \
  MSL_UNARY(exp10, ::powf(10.0f, x))                                                                           \
  MSL_UNARY(log, ::logf(x)) MSL_UNARY(log2, ::log2f(x)) MSL_UNARY(log10, ::log10f(x))                          \
  MSL_UNARY(sqrt, ::sqrtf(x)) MSL_UNARY(rsqrt, MSL_RSQRT(x))                                              \
  MSL_UNARY(sin, ::sinf(x)) MSL_UNARY(cos, ::cosf(x)) MSL_UNARY(tan, ::tanf(x))                                \
  MSL_UNARY(sinpi, ::sinf(3.14159265358979f * x)) MSL_UNARY(cospi, ::cosf(3.14159265358979f * x))              \
  MSL_UNARY(asin, ::asinf(x)) MSL_UNARY(acos, ::acosf(x)) MSL_UNARY(atan, ::atanf(x))                          \
  MSL_UNARY(sinh, ::sinhf(x)) MSL_UNARY(cosh, ::coshf(x)) MSL_UNARY(tanh, ::tanhf(x))                          \
  MSL_UNARY(asinh, ::asinhf(x)) MSL_UNARY(acosh, ::acoshf(x)) MSL_UNARY(atanh, ::atanhf(x))                    \
  MSL_UNARY(floor, ::floorf(x)) MSL_UNARY(ceil, ::ceilf(x)) MSL_UNARY(trunc, ::truncf(x))                      \
  MSL_UNARY(round, ::roundf(x)) MSL_UNARY(rint, ::rintf(x)) MSL_UNARY(fabs, ::fabsf(x))                        \
  MSL_UNARY(fract, ::fminf(x - ::floorf(x), 0x1.fffffep-1f))                                                   \
  MSL_UNARY(saturate, x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f)                                                 \
  MSL_UNARY(sign, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : (x == 0.0f ? x : 0.0f)))
MSL_UNARY_EXP
MSL_UNARY_FAST
namespace precise { MSL_UNARY_EXP MSL_UNARY_FAST }
namespace fast {
#ifdef MSL_GPU
MSL_UNARY(exp, ::msl_exp2(x * 1.44269504f)) MSL_UNARY(exp2, ::msl_exp2(x))
#else
MSL_UNARY_EXP
#endif
MSL_UNARY_FAST
} // namespace fast
#undef MSL_UNARY_EXP
#undef MSL_UNARY
#undef MSL_UNARY_FAST
#undef MSL_RSQRT

// The type two scalars meet in: half with half is half; any bfloat makes it float.
template <class A> using msl_math = conditional_t<is_same_v<A, bfloat>, float, A>;
template <class A, class B> struct msl_meeting { typedef std::common_type_t<A, B> type; };
template <class A, class B> requires(msl_is_small<A> || msl_is_small<B>) struct msl_meeting<A, B> { typedef typename msl_promoted<A, B>::type type; };
template <class A, class B> using msl_common = typename msl_meeting<msl_math<A>, msl_math<B>>::type;
#define MSL_BINARY(NAME, EXPR)                                                                                 \
  template <MslScalar A, MslScalar B> MSL_INLINE constexpr msl_common<A, B> NAME(A a_, B b_) {                 \
    using R = msl_common<A, B>;                                                                                \
    R a = R(a_), b = R(b_);                                                                                    \
    return R(EXPR);                                                                                            \
  }                                                                                                            \
  template <class A, class B> requires msl_agree<A, B> MSL_INLINE auto NAME(const A& a, const B& b) {          \
    using T = msl_element2<A, B>;                                                                              \
    vec<msl_math<T>, msl_len2<A, B>> r;                                                                        \
    for (int i = 0; i < msl_len2<A, B>; i++) r.d[i] = NAME(T(msl_at(a, i)), T(msl_at(b, i)));                  \
    return r;                                                                                                  \
  }
MSL_BINARY(max, a < b ? b : a) MSL_BINARY(min, b < a ? b : a)
MSL_BINARY(fmax, a < b || a != a ? b : a) MSL_BINARY(fmin, b < a || a != a ? b : a)
MSL_BINARY(pow, ::powf(float(a), float(b))) MSL_BINARY(powr, ::powf(float(a), float(b))) MSL_BINARY(fmod, ::fmodf(float(a), float(b)))
MSL_BINARY(atan2, ::atan2f(float(a), float(b))) MSL_BINARY(copysign, ::copysignf(float(a), float(b))) MSL_BINARY(fdim, ::fdimf(float(a), float(b)))
MSL_BINARY(step, b < a ? R(0) : R(1)) MSL_BINARY(divide, a / b) MSL_BINARY(absdiff, a > b ? a - b : b - a)
#undef MSL_BINARY
namespace precise { using metal::atan2, metal::divide, metal::fmax, metal::fmin, metal::fmod, metal::max, metal::min, metal::pow, metal::powr; }
#ifdef MSL_GPU
namespace fast { MSL_INLINE float divide(float a, float b) { return a * ::msl_reciprocal(b); } }
#endif
namespace fast { using metal::atan2, metal::divide, metal::fmax, metal::fmin, metal::fmod, metal::max, metal::min, metal::pow, metal::powr; }

template <MslValue A> MSL_INLINE A max3(A a, A b, A c) { return max(a, max(b, c)); }
template <MslValue A> MSL_INLINE A min3(A a, A b, A c) { return min(a, min(b, c)); }
template <MslScalar A> MSL_INLINE A median3(A a, A b, A c) { return max(min(a, b), min(max(a, b), c)); }
template <MslScalar A, MslScalar B, MslScalar C> MSL_INLINE constexpr auto clamp(A x, B lo, C hi) { return min(max(x, lo), hi); }
template <MslVector A, MslValue B, MslValue C> MSL_INLINE auto clamp(const A& x, const B& lo, const C& hi) { return min(max(x, lo), hi); }
MSL_INLINE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
MSL_INLINE half fma(half a, half b, half c) { return half(::fmaf(a, b, c)); }
template <class T, int N> MSL_INLINE vec<T, N> fma(const vec<T, N>& a, const vec<T, N>& b, const vec<T, N>& c) { vec<T, N> r; for (int i = 0; i < N; i++) r.d[i] = fma(a.d[i], b.d[i], c.d[i]); return r; }
template <MslValue A, MslValue B, MslValue C> MSL_INLINE auto mix(const A& a, const B& b, const C& t) { return a + (b - a) * t; }
template <MslValue A> MSL_INLINE auto smoothstep(const A& lo, const A& hi, const A& x) { auto t = clamp((x - lo) / (hi - lo), A(0), A(1)); return t * t * (A(3) - A(2) * t); }
MSL_INLINE float ldexp(float a, int b) { return ::ldexpf(a, b); }
MSL_INLINE float nextafter(float a, float b) { return ::nextafterf(a, b); }
template <std::integral A> MSL_INLINE constexpr A abs(A a) { if constexpr (is_signed_v<A>) return a < 0 ? A(-a) : a; else return a; }
MSL_INLINE float abs(float a) { return ::fabsf(a); }
MSL_INLINE half abs(half a) { a.bits &= 0x7fff; return a; }
MSL_INLINE float abs(bfloat a) { return ::fabsf(a); }
template <MslVector A> MSL_INLINE auto abs(const A& a) { vec<decltype(abs(a.get(0))), msl_len<A>> r; for (int i = 0; i < msl_len<A>; i++) r.d[i] = abs(a.get(i)); return r; }

#define MSL_TEST(NAME, EXPR)                                                                                   \
  MSL_INLINE bool NAME(float x) { return EXPR; }                                                               \
  template <MslVector A> MSL_INLINE vec<bool, msl_len<A>> NAME(const A& a) { vec<bool, msl_len<A>> r; for (int i = 0; i < msl_len<A>; i++) r.d[i] = NAME(float(a.get(i))); return r; }
MSL_TEST(isnan, x != x) MSL_TEST(isinf, ::fabsf(x) == __builtin_inff()) MSL_TEST(isfinite, ::fabsf(x) < __builtin_inff()) MSL_TEST(signbit, msl_bits(x) >> 31)
MSL_TEST(isnormal, ::fabsf(x) < __builtin_inff() && ::fabsf(x) >= FLT_MIN)
#undef MSL_TEST
template <MslVector A> MSL_INLINE bool all(const A& a) { for (int i = 0; i < msl_len<A>; i++) if (!a.get(i)) return false; return true; }
template <MslVector A> MSL_INLINE bool any(const A& a) { for (int i = 0; i < msl_len<A>; i++) if (a.get(i)) return true; return false; }
MSL_INLINE bool all(bool b) { return b; }
MSL_INLINE bool any(bool b) { return b; }
template <MslScalar A> MSL_INLINE A select(A a, A b, bool c) { return c ? b : a; }
template <class T, int N> MSL_INLINE vec<T, N> select(const vec<T, N>& a, const vec<T, N>& b, const vec<bool, N>& c) { vec<T, N> r; for (int i = 0; i < N; i++) r.d[i] = c.d[i] ? b.d[i] : a.d[i]; return r; }

template <MslVector A, MslVector B> requires msl_agree<A, B> MSL_INLINE msl_element<A> dot(const A& a, const B& b) {
  using T = msl_element<A>;
  T s = T(a.get(0) * b.get(0));
  for (int i = 1; i < msl_len<A>; i++) s = T(s + T(a.get(i) * b.get(i)));
  return s;
}
template <MslVector A> MSL_INLINE msl_element<A> length_squared(const A& a) { return dot(a, a); }
template <MslVector A> MSL_INLINE msl_element<A> length(const A& a) { return sqrt(dot(a, a)); }
template <MslVector A> MSL_INLINE msl_vector<A> normalize(const A& a) { return a * rsqrt(dot(a, a)); }

// ---- integers ---------------------------------------------------------------------------------------------------------
#define MSL_INTEGER(NAME, EXPR)                                                                                \
  template <std::integral A> MSL_INLINE A NAME(A a) { using U = make_unsigned_t<A>; U x = U(a); constexpr int bits = 8 * sizeof(A); (void)bits; return A(EXPR); } \
  template <MslVector A> MSL_INLINE msl_vector<A> NAME(const A& a) { msl_vector<A> r; for (int i = 0; i < msl_len<A>; i++) r.d[i] = NAME(a.get(i)); return r; }
#ifdef MSL_GPU
MSL_INTEGER(popcount, __popcll(x)) MSL_INTEGER(clz, __clzll(x) - (64 - bits)) MSL_INTEGER(ctz, x ? __ffsll((long long)x) - 1 : bits)
#else
MSL_INTEGER(popcount, __builtin_popcountll(x)) MSL_INTEGER(clz, x ? __builtin_clzll(x) - (64 - bits) : bits) MSL_INTEGER(ctz, x ? __builtin_ctzll(x) : bits)
#endif
template <std::integral A> MSL_INLINE A reverse_bits(A a) { A r = 0; for (unsigned i = 0; i < 8 * sizeof(A); i++) r = A(r << 1 | (a >> i & 1)); return r; }
#undef MSL_INTEGER
template <std::integral A> MSL_INLINE A extract_bits(A a, uint offset, uint n) {
  using U = make_unsigned_t<A>;
  const uint bits = 8 * sizeof(A);
  if (n == 0) return 0;
  U x = U(U(a) << (bits - offset - n));
  return A(A(x) >> (bits - n)); // arithmetic for signed, logical for unsigned
}
template <std::integral A> MSL_INLINE A insert_bits(A base, A insert, uint offset, uint n) {
  using U = make_unsigned_t<A>;
  const U mask = U((n >= 8 * sizeof(A) ? ~U(0) : U((U(1) << n) - 1)) << offset);
  return A((U(base) & ~mask) | (U(U(insert) << offset) & mask));
}
template <std::integral A> MSL_INLINE A rotate(A a, A n) { using U = make_unsigned_t<A>; const U bits = 8 * sizeof(A), k = U(n) % bits; return k ? A(U(U(a) << k) | U(U(a) >> (bits - k))) : a; }
MSL_INLINE uint mulhi(uint a, uint b) { return uint(uint64_t(a) * b >> 32); }
MSL_INLINE int mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
MSL_INLINE ulong mulhi(ulong a, ulong b) { return ulong((unsigned __int128)a * b >> 64); }
MSL_INLINE int mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
MSL_INLINE uint mul24(uint a, uint b) { return (a & 0xffffff) * (b & 0xffffff); }
MSL_INLINE int mad24(int a, int b, int c) { return mul24(a, b) + c; }
MSL_INLINE uint mad24(uint a, uint b, uint c) { return mul24(a, b) + c; }
MSL_INLINE float4 unpack_unorm4x8_to_float(uint x) { return float4((x & 255) / 255.0f, (x >> 8 & 255) / 255.0f, (x >> 16 & 255) / 255.0f, (x >> 24) / 255.0f); }
MSL_INLINE float2 unpack_half2x16_to_float(uint x) { half a, b; a.bits = ushort(x); b.bits = ushort(x >> 16); return float2(float(a), float(b)); }

enum class mem_flags : uint { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8 };
MSL_INLINE mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
enum memory_order { memory_order_relaxed, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };
inline constexpr size_t dynamic_extent = ~size_t(0);
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
