// msl_host.h - what rewritten kernel text includes: Metal's execution model on a processor.
//
// A thread of a kernel is a fiber of the runtime (msl_schedule.cpp). Threads of a simdgroup run one after the other until one needs
// the others: it leaves its value in an Exchange and the next lane runs; the last to arrive completes the operation. Products of
// simdgroup matrices need no such stop (msl_matrix.h). A thread that never waits costs no switch at all.
//
// This file also registers kernels, function constants and threadgroup variables of one kernel library in its Module.
#pragma once
#include <algorithm>

#include "msl_math.h"

#if defined(__SANITIZE_THREAD__)
#define MSL_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MSL_CHECKED 1
#endif
#endif
#ifndef MSL_CHECKED
#define MSL_CHECKED 0
#endif
// The shim's own bookkeeping is not the kernel's traffic.
#define MSL_SILENT __attribute__((no_sanitize("thread")))
#define MSL_KERNEL static

#include "msl_runtime.h"

namespace msl {
// Arguments of an entry point: proxies that become whatever the kernel's parameter is.
struct BufferArg {
  int index;
  template <class T> operator T*() const { return (T*)context->buffers[index]; }
  template <class T> operator T&() const { return *(T*)context->buffers[index]; }
};
struct ThreadgroupArg {
  int index;
  template <class T> operator T*() const { return (T*)context->threadgroupArgs[index]; }
  template <class T> operator T&() const { return *(T*)context->threadgroupArgs[index]; }
};
struct Position { // converts to the types Metal allows for positions
  uint32_t x, y, z;
  operator metal::uint() const { return x; }
  operator metal::ushort() const { return metal::ushort(x); }
  operator metal::uint2() const { return metal::uint2(x, y); }
  operator metal::uint3() const { return metal::uint3(x, y, z); }
  operator metal::ushort2() const { return metal::ushort2(x, y); }
  operator metal::ushort3() const { return metal::ushort3(x, y, z); }
  template <class T> operator T() const = delete; // int, for one
};
struct Index { // and for indexes
  uint32_t x;
  operator metal::uint() const { return x; }
  operator metal::ushort() const { return metal::ushort(x); }
  template <class T> operator T() const = delete;
};
MSL_SILENT inline Position position(const uint32_t* p) { return {p[0], p[1], p[2]}; }
MSL_SILENT inline Position thread_position_in_grid() {
  const Context* c = context;
  const Lane* l = c->lane;
  return {c->group[0] * c->full[0] + l->x, c->group[1] * c->full[1] + l->y, c->group[2] * c->full[2] + l->z};
}
MSL_SILENT inline Position thread_position_in_threadgroup() { const Lane* l = context->lane; return {l->x, l->y, l->z}; }
MSL_SILENT inline Position threadgroup_position_in_grid() { return position(context->group); }
MSL_SILENT inline Position threads_per_threadgroup() { return position(context->size); }
MSL_SILENT inline Position dispatch_threads_per_threadgroup() { return position(context->full); }
MSL_SILENT inline Position threads_per_grid() { return position(context->grid); }
MSL_SILENT inline Position threadgroups_per_grid() { return position(context->groups); }
MSL_SILENT inline Index thread_index_in_threadgroup() { return {context->lane->linear}; }
MSL_SILENT inline Index thread_index_in_simdgroup() { return {context->lane->lane}; }
MSL_SILENT inline Index simdgroup_index_in_threadgroup() { return {context->lane->simdgroup}; }
MSL_SILENT inline Index simdgroups_per_threadgroup() { const uint32_t* s = context->size; return {(s[0] * s[1] * s[2] + 31) / 32}; }
MSL_SILENT inline Index dispatch_simdgroups_per_threadgroup() { const uint32_t* s = context->full; return {(s[0] * s[1] * s[2] + 31) / 32}; }
inline Index threads_per_simdgroup() { return {32}; }
inline Index thread_execution_width() { return {32}; }
MSL_SILENT inline Index thread_index_in_quadgroup() { return {context->lane->lane & 3u}; }
MSL_SILENT inline Index quadgroup_index_in_threadgroup() { return {uint32_t(context->lane->linear) / 4}; }
MSL_SILENT inline Index quadgroups_per_threadgroup() { const uint32_t* s = context->size; return {(s[0] * s[1] * s[2] + 3) / 4}; }
MSL_SILENT inline Index dispatch_quadgroups_per_threadgroup() { const uint32_t* s = context->full; return {(s[0] * s[1] * s[2] + 3) / 4}; }

// ---- registration --------------------------------------------------------------------------------------------------

static Module module = {MSL_ABI, MSL_CHECKED, nullptr, nullptr, nullptr, nullptr};
extern "C" __attribute__((visibility("default"), used)) const Module* msl_module() { return &module; }

template <class P> struct Described; // what a parameter's type says
template <class T> constexpr uint32_t bytesOf() { if constexpr (std::is_void_v<T>) return 1; else return sizeof(T); }
template <class T> constexpr uint32_t alignOf() { if constexpr (std::is_void_v<T>) return 1; else return alignof(T); }
template <class P> struct Described { static constexpr ArgType type = {0, 0, 0, 0}; };
template <class T> struct Described<T*> { static constexpr ArgType type = {std::is_const_v<T> ? MSL_READ : MSL_READ_WRITE, bytesOf<T>(), alignOf<T>(), 0}; };
template <class T> struct Described<T&> { static constexpr ArgType type = {std::is_const_v<T> ? MSL_READ : MSL_READ_WRITE, bytesOf<T>(), alignOf<T>(), 1}; };
template <class... P> struct Signature { static constexpr ArgType types[sizeof...(P) + 1] = {Described<P>::type..., {0, 0, 0, 0}}; };
template <class... P> const ArgType* signatureOf(void (*)(P...)) { return Signature<P...>::types; }

struct KernelRegistration : KernelEntry {
  template <class... P>
  KernelRegistration(const char* name, void (*run)(), const ArgName* names, int args, uint32_t maxThreads, bool synchronises, const void* tag, const char* const* constants, void (*f)(P...))
      : KernelEntry{name, run, names, signatureOf(f), args, maxThreads, synchronises, tag, constants, nullptr} {
    KernelEntry** last = &module.kernels;
    while (*last) last = &(*last)->next;
    *last = this;
  }
};
template <class Tag> struct TagIdentity { static inline char here = 0; };
template <class Tag> const void* tagOf() { return &TagIdentity<Tag>::here; }
struct VariableRegistration : VariableEntry {
  VariableRegistration(const void* tag, int slot, uint32_t bytes) : VariableEntry{tag, slot, bytes, module.variables} { module.variables = this; }
};
template <class A, class Tag, int Slot> struct ThreadgroupVariable { static inline VariableRegistration entry{tagOf<Tag>(), Slot, sizeof(A)}; };
template <class A, class Tag, int Slot> MSL_SILENT inline A& threadgroupVariable(const char* name) {
  static_assert(Slot < MSL_MAX_SLOTS);
  (void)&ThreadgroupVariable<A, Tag, Slot>::entry; // instantiates the registration
  if (MSL_CHECKED) noteVariable(Slot, sizeof(A), name);
  return *(A*)context->slots[Slot];
}
template <class T> constexpr uint32_t scalarOf() {
  using namespace metal;
  return is_same_v<T, bool> ? MSL_BOOL : is_same_v<T, half> ? MSL_HALF : is_same_v<T, bfloat> ? MSL_BFLOAT : is_same_v<T, float> ? MSL_FLOAT
       : !is_integral_v<T> ? 0 : sizeof(T) == 1 ? (is_signed_v<T> ? MSL_INT8 : MSL_UINT8) : sizeof(T) == 2 ? (is_signed_v<T> ? MSL_INT16 : MSL_UINT16)
       : sizeof(T) == 4 ? (is_signed_v<T> ? MSL_INT32 : MSL_UINT32) : (is_signed_v<T> ? MSL_INT64 : MSL_UINT64);
}
template <class T> struct ConstantRegistration : ConstantEntry {
  ConstantRegistration(const char* name, uint32_t index, T* value, bool* defined, bool optional)
      : ConstantEntry{name, index, scalarOf<T>(), sizeof(T), value, defined, optional, module.constants} { module.constants = this; }
};
struct DerivedConstant : DerivedEntry { // in the order of the text: one may use another
  DerivedConstant(void (*compute)()) : DerivedEntry{compute, nullptr} {
    DerivedEntry** last = &module.derived;
    while (*last) last = &(*last)->next;
    *last = this;
  }
};
} // namespace msl

#include "msl_simd.h"
#include "msl_matrix.h"
#include "msl_atomic.h"
#include "msl_tensor.h"
