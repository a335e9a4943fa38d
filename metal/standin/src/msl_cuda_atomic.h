// msl_cuda_atomic.h - atomics of 32 bits, relaxed as Metal's are. An order other than relaxed does not compile to anything stronger: Metal has none, and the
// processor's runtime refuses it.
#pragma once

namespace metal {
template <class T> struct atomic {
  static_assert(is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, float>, "atomics hold int, uint or float on this executor");
  T value;
  atomic() = default;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;

template <class T> MSL_GPU_INLINE T atomic_load_explicit(const volatile atomic<T>* p, memory_order) { return *(const volatile T*)&p->value; }
template <class T> MSL_GPU_INLINE void atomic_store_explicit(volatile atomic<T>* p, std::type_identity_t<T> v, memory_order) { *(volatile T*)&p->value = v; }
#define MSL_ATOMIC(NAME, CALL, WHERE)                                                                          \
  template <class T> requires(WHERE) MSL_GPU_INLINE T NAME(volatile atomic<T>* p, std::type_identity_t<T> v, memory_order) { return CALL; }
MSL_ATOMIC(atomic_exchange_explicit, atomicExch((T*)&p->value, v), true)
MSL_ATOMIC(atomic_fetch_add_explicit, atomicAdd((T*)&p->value, v), true) MSL_ATOMIC(atomic_fetch_sub_explicit, atomicAdd((T*)&p->value, T(-v)), true)
MSL_ATOMIC(atomic_fetch_max_explicit, atomicMax((T*)&p->value, v), is_integral_v<T>) MSL_ATOMIC(atomic_fetch_min_explicit, atomicMin((T*)&p->value, v), is_integral_v<T>)
MSL_ATOMIC(atomic_fetch_and_explicit, atomicAnd((T*)&p->value, v), is_integral_v<T>) MSL_ATOMIC(atomic_fetch_or_explicit, atomicOr((T*)&p->value, v), is_integral_v<T>)
MSL_ATOMIC(atomic_fetch_xor_explicit, atomicXor((T*)&p->value, v), is_integral_v<T>)
#undef MSL_ATOMIC
template <class T> MSL_GPU_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* p, T* expected, std::type_identity_t<T> v, memory_order, memory_order) {
  const uint want = __builtin_bit_cast(uint, *expected), was = atomicCAS((uint*)&p->value, want, __builtin_bit_cast(uint, v));
  *expected = __builtin_bit_cast(T, was);
  return was == want;
}
} // namespace metal
