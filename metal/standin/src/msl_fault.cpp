// msl_fault.cpp - turns a memory fault of a kernel into a report.
//
// The handler moves the faulting thread to a spare stack and lets it return there; abandon() then goes back to the dispatch as if the threadgroup
// had ended. A fault outside a kernel goes to the handler that was there before, in Go's case the Go runtime's.
#include <signal.h>
#include <sys/ucontext.h>
#include <ucontext.h>

#include "msl_internal.h"

namespace msl {
static void faultExit() {
  Worker* w = context->worker;
  const char* p = (const char*)w->faultAddress;
  const Lane l = *w->c.lane;
  const uint32_t group = w->groupNumber - w->d->groupBase;
  void* pc = (void*)(w->faultPC + 1); // reports look one byte back, where a call was
  if (Memory* m = findMemory(p))
    report(w, pc, "access out of bounds: buffer %s, byte %lld of %llu, thread %u of threadgroup %u", m->label.c_str(), (long long)(p - m->base), (unsigned long long)m->bytes, l.linear, group);
  else if (p >= w->stacks && p < w->stacks + STACKS_BYTES)
    report(w, pc, "stack overflow, thread %u of threadgroup %u: a thread has %d bytes", l.linear, group, STACK_BYTES);
  else if (!p)
    report(w, pc, "null pointer, thread %u of threadgroup %u", l.linear, group);
  else
    report(w, pc, "access of memory that belongs to no buffer, at %p, thread %u of threadgroup %u", (const void*)p, l.linear, group);
  abandon(w);
}

static void trapExit() {
  Worker* w = context->worker;
  report(w, (void*)(w->faultPC + 1), "index out of bounds of an array, vector that is not aligned, or division by zero: thread %u of threadgroup %u", w->c.lane->linear, w->groupNumber - w->d->groupBase);
  abandon(w);
}

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
static struct sigaction before[5];

static void handle(int sig, siginfo_t* info, void* u) {
  Context* c = context;
  if (!c) {
    for (int i = 0; i < 5; i++) {
      if (signals[i] != sig) continue;
      const struct sigaction& b = before[i];
      if (b.sa_flags & SA_SIGINFO) b.sa_sigaction(sig, info, u);
      else if (b.sa_handler == SIG_DFL) signal(sig, SIG_DFL); // it happens again, and ends the process
      else if (b.sa_handler != SIG_IGN) b.sa_handler(sig);
    }
    return;
  }
  Worker* w = c->worker;
  w->faultAddress = uintptr_t(info->si_addr);
  ucontext_t* uc = (ucontext_t*)u;
  void (*exit)() = sig == SIGSEGV || sig == SIGBUS ? faultExit : trapExit;
  const uintptr_t top = uintptr_t(w->faultStack) + FAULT_STACK;
#if defined(__x86_64__)
  w->faultPC = uc->uc_mcontext.gregs[REG_RIP];
  uc->uc_mcontext.gregs[REG_RIP] = greg_t(exit);
  uc->uc_mcontext.gregs[REG_RSP] = greg_t((top & ~uintptr_t(15)) - 8);
#else
  w->faultPC = uc->uc_mcontext.pc;
  uc->uc_mcontext.pc = uintptr_t(exit);
  uc->uc_mcontext.sp = top & ~uintptr_t(15);
#endif
}

// The handlers are installed once; a thread that has no alternative stack gets one. A Go program has handlers of its own, which must stay
// reachable: see handle.
void installFaultHandler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction sa = {};
    sa.sa_sigaction = handle;
    sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 5; i++) sigaction(signals[i], &sa, &before[i]);
  });
  stack_t ss;
  if (sigaltstack(nullptr, &ss) == 0 && ss.ss_flags & SS_DISABLE) {
    static thread_local std::unique_ptr<char[]> stack;
    stack = std::make_unique<char[]>(65536);
    ss.ss_sp = stack.get();
    ss.ss_size = 65536;
    ss.ss_flags = 0;
    sigaltstack(&ss, nullptr);
  }
}
} // namespace msl
