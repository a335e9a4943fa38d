// msl_atomic.h - atomics of 32 bits, relaxed as Metal's are. They report themselves to the checks.
#pragma once

namespace metal {
template <class T> struct atomic {
  static_assert(is_same_v<T, int> || is_same_v<T, uint> || is_same_v<T, float> || is_same_v<T, bool>, "atomics hold int, uint, float or bool");
  T value;
  atomic() = default;
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;
typedef atomic<bool> atomic_bool;

#define MSL_ORDER(o) if (o != memory_order_relaxed) msl::stop(line, "atomics take memory_order_relaxed only")
template <class T> MSL_SILENT inline T atomic_load_explicit(const volatile atomic<T>* p, memory_order o, MSL_LINE) {
  MSL_ORDER(o);
  msl::noteAtomic(p, sizeof(T));
  T t;
  __atomic_load((T*)&p->value, &t, __ATOMIC_RELAXED);
  return t;
}
template <class T> MSL_SILENT inline void atomic_store_explicit(volatile atomic<T>* p, std::type_identity_t<T> v, memory_order o, MSL_LINE) {
  MSL_ORDER(o);
  msl::noteAtomic(p, sizeof(T));
  __atomic_store((T*)&p->value, &v, __ATOMIC_RELAXED);
}
template <class T, class F> MSL_SILENT inline T msl_atomic_update(volatile atomic<T>* p, F f) {
  msl::noteAtomic(p, sizeof(T));
  T old, now;
  __atomic_load((T*)&p->value, &old, __ATOMIC_RELAXED);
  do now = f(old);
  while (!__atomic_compare_exchange((T*)&p->value, &old, &now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
template <class T> MSL_SILENT inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* p, T* expected, std::type_identity_t<T> v, memory_order o, memory_order o2, MSL_LINE) {
  MSL_ORDER(o);
  MSL_ORDER(o2);
  msl::noteAtomic(p, sizeof(T));
  return __atomic_compare_exchange((T*)&p->value, expected, &v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#define MSL_ATOMIC(NAME, EXPR, WHERE)                                                                          \
  template <class T> requires(WHERE) MSL_SILENT inline T NAME(volatile atomic<T>* p, std::type_identity_t<T> b, memory_order o, MSL_LINE) { \
    MSL_ORDER(o);                                                                                              \
    return msl_atomic_update(p, [b](T a) MSL_SILENT { return T(EXPR); });                                      \
  }
MSL_ATOMIC(atomic_exchange_explicit, ((void)a, b), true)
MSL_ATOMIC(atomic_fetch_add_explicit, a + b, (!is_same_v<T, bool>)) MSL_ATOMIC(atomic_fetch_sub_explicit, a - b, (!is_same_v<T, bool>))
MSL_ATOMIC(atomic_fetch_max_explicit, a < b ? b : a, is_integral_v<T>) MSL_ATOMIC(atomic_fetch_min_explicit, b < a ? b : a, is_integral_v<T>)
MSL_ATOMIC(atomic_fetch_and_explicit, a & b, is_integral_v<T>) MSL_ATOMIC(atomic_fetch_or_explicit, a | b, is_integral_v<T>) MSL_ATOMIC(atomic_fetch_xor_explicit, a ^ b, is_integral_v<T>)
#undef MSL_ATOMIC
#undef MSL_ORDER
} // namespace metal
