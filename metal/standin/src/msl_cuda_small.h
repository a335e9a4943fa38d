// msl_cuda_small.h - half and bfloat on an NVIDIA GPU: one conversion instruction each way, to nearest even; in constant expressions by integers. A NaN
// that is rounded becomes the canonical one. And the two instructions behind fast:: that are worth having: 2^x and 1/x within 2^-22, denormals flushed.
#pragma once
#include <cstdint>
#include <type_traits>

#ifdef __CUDA_ARCH__
__device__ inline float msl_exp2(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ inline float msl_reciprocal(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
#else
__host__ float msl_exp2(float x); // never called: host code is not made
__host__ float msl_reciprocal(float x);
#endif

namespace metal {
struct msl_half_format {
  static MSL_INLINE constexpr float widen(uint16_t b) {
#ifdef __CUDA_ARCH__
    if (!std::is_constant_evaluated()) return widenHere(b);
#endif
    const uint32_t sign = uint32_t(b & 0x8000) << 16, e = b >> 10 & 31, m = b & 0x3ff;
    if (e == 31) return __builtin_bit_cast(float, sign | 0x7f800000u | m << 13);
    if (e) return __builtin_bit_cast(float, sign | (e + 112) << 23 | m << 13);
    const float f = float(m) * 0x1p-24f;
    return sign ? -f : f;
  }
  static MSL_INLINE constexpr uint16_t round(float f) {
#ifdef __CUDA_ARCH__
    if (!std::is_constant_evaluated()) return roundHere(f);
#endif
    const uint32_t u = __builtin_bit_cast(uint32_t, f), a = u & 0x7fffffffu;
    const uint16_t sign = uint16_t(u >> 16 & 0x8000u);
    if (a > 0x7f800000u) return uint16_t(sign | 0x7e00);
    if (a >= 0x477ff000u) return uint16_t(sign | 0x7c00);               // from 65,520 up: infinity
    if (a >= 0x38800000u) return uint16_t(sign | (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13);
    const uint32_t shift = 126 - (a >> 23), m = (a & 0x7fffffu) | 0x800000u; // a number below 2^-14: units of 2^-24
    if (shift > 24) return sign;
    const uint32_t q = m >> shift, rest = m & ((1u << shift) - 1), half_ = 1u << (shift - 1);
    return uint16_t(sign | (q + (rest > half_ || (rest == half_ && (q & 1)))));
  }
  static constexpr bool fromFloat = true; // implicitly
#ifdef __CUDA_ARCH__
  static __device__ inline float widenHere(uint16_t b) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(b)); return f; }
  static __device__ inline uint16_t roundHere(float f) { uint16_t b; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(f)); return b; }
#endif
};
struct msl_bfloat_format {
  static MSL_INLINE constexpr float widen(uint16_t b) { return __builtin_bit_cast(float, uint32_t(b) << 16); }
  static MSL_INLINE constexpr uint16_t round(float f) {
#ifdef __CUDA_ARCH__
    if (!std::is_constant_evaluated()) return roundHere(f);
#endif
    const uint32_t u = __builtin_bit_cast(uint32_t, f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t(u >> 16 | 0x40u);
    return uint16_t((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  static constexpr bool fromFloat = false;
#ifdef __CUDA_ARCH__
  static __device__ inline uint16_t roundHere(float f) { uint16_t b; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f)); return b; }
#endif
};
} // namespace metal
