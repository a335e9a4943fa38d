// msl_fiber.h - stacks and switching between them, for x86-64 and aarch64.
//
// A switch saves what the calling convention says a callee keeps and returns on the other stack. It ends in ret, because an indirect jump
// would unbalance the processor's return predictor (measured: three times the cost). ucontext would save the signal mask too, by a system call.
#pragma once
#include <cstdint>
#include <cstring>

namespace msl {
struct Fiber {
  void* sp;
  Fiber* next; // in the list of idle ones
  char* low;
  size_t bytes;
};
} // namespace msl

extern "C" void msl_switch(void** from, void* to);

#if defined(__x86_64__)
namespace msl {
inline void prepare(Fiber* f, void (*entry)()) {
  void** s = (void**)(((uintptr_t)f->low + f->bytes) & ~uintptr_t(63));
  *--s = nullptr; // the stack is a multiple of 16, less 8, where entry begins
  *--s = (void*)entry;
  for (int i = 0; i < 6; i++) *--s = nullptr;
  f->sp = s;
}
} // namespace msl
#elif defined(__aarch64__)
namespace msl {
inline void prepare(Fiber* f, void (*entry)()) {
  void** s = (void**)(((uintptr_t)f->low + f->bytes) & ~uintptr_t(63));
  s -= 20;
  memset(s, 0, 160);
  s[11] = (void*)entry; // x30
  f->sp = s;
}
} // namespace msl
#else
#error "the fiber switch is written for x86-64 and aarch64"
#endif
