// msl_check.cpp - sees every load and store of a library compiled with -fsanitize=thread: the compiler calls the __tsan_ functions, and
// these are ours; the sanitizer's own runtime is not linked.
//
// A pair of accesses to the same place, one of them a store, by different threads, is a race unless a barrier stands between:
//   - in threadgroup memory, a threadgroup_barrier, or a simdgroup_barrier when both are of one simdgroup;
//   - in device memory, a threadgroup_barrier when both are of one threadgroup; nothing within a dispatch, or among dispatches with the
//     same options.group, orders two threadgroups.
// Device memory is watched in units of two bytes, threadgroup memory by the byte. A store of a single byte to device memory is not
// checked for races, because its neighbour may be another thread's.
#include "msl_internal.h"

namespace msl {
static bool inside(const Worker* w, const char* p, const char* area, size_t bytes) { return p >= area && p < area + bytes; }

static void localBounds(Worker* w, uint64_t off, uint32_t n, bool store, void* pc) {
  const char* near = "?";
  int64_t best = INT64_MAX, rel = 0;
  for (int v : w->usedVariables) {
    const int64_t r = int64_t(off) - w->variables[v].offset;
    const int64_t distance = r < 0 ? -r : r - int64_t(w->variables[v].bytes) + n;
    if (distance < best) {
      best = distance;
      rel = r;
      near = w->variables[v].name;
    }
  }
  report(w, pc, "%s out of bounds of threadgroup memory: byte %lld of %s", store ? "store" : "load", (long long)rel, near);
}

static void localAccess(Worker* w, uint64_t off, uint32_t n, bool store, bool atomic, void* pc) {
  (store ? w->counts.tgStoreBytes : w->counts.tgLoadBytes) += n;
  if (!w->check) return;
  const char* name = nullptr;
  for (int v : w->usedVariables)
    if (off >= w->variables[v].offset && off + n <= w->variables[v].offset + w->variables[v].bytes) name = w->variables[v].name;
  if (!name) {
    localBounds(w, off, n, store, pc);
    return;
  }
  const Lane& l = *w->c.lane;
  const uint16_t me = l.linear, simd = l.simdgroup, simdEpoch = uint16_t(w->simd[simd].epoch);
  const uint32_t now = w->epoch;
  for (uint64_t i = off; i < off + n; i++) {
    LocalCell& c = w->local[i];
    if (atomic) {
      c.writeEpoch = now;
      c.writer = SEVERAL_THREADS;
      continue;
    }
    const bool otherWrote = c.writeEpoch == now && c.writer != me && c.writer != SEVERAL_THREADS && !(c.writer >> 5 == simd && c.writerSimd != simdEpoch);
    if (store) {
      const bool otherRead = c.readEpoch == now && (c.several || c.reader != me) && !(!c.several && c.reader >> 5 == simd && c.readerSimd != simdEpoch);
      if (otherWrote || otherRead) report(w, pc, "race on threadgroup memory %s: a thread writes what another thread %s without a barrier between", name, otherWrote ? "wrote" : "read");
      c.writeEpoch = now;
      c.writer = me;
      c.writerSimd = simdEpoch;
      continue;
    }
    if (c.writeEpoch < w->firstEpoch) report(w, pc, "load of threadgroup memory that nobody wrote: %s", name);
    if (otherWrote) report(w, pc, "race on threadgroup memory %s: a thread reads what another thread wrote without a barrier between", name);
    if (c.readEpoch != now || (!c.several && c.reader >> 5 == simd && c.readerSimd != simdEpoch)) {
      c.readEpoch = now;
      c.several = false;
    } else if (c.reader != me) {
      c.several = true;
    }
    c.reader = me;
    c.readerSimd = simdEpoch;
  }
}

// Whether an earlier access by someone else is unordered with one by this thread.
static bool unordered(const Worker* w, const Touched& t, uint16_t me) {
  if (t.dispatch != w->d->id) return false;
  if (t.group != w->groupNumber) return true;
  return t.epoch == uint16_t(w->epoch) && t.thread != me;
}

static void race(Worker* w, const Memory* m, const Touched& t, bool stored, const char* doing, void* pc) {
  const std::string other = t.group == w->groupNumber || t.group == SEVERAL_GROUPS ? "" : dispatchOfGroup(w->d->id, t.group);
  const char* done = stored ? "wrote" : "read";
  if (!other.empty())
    report(w, pc, "race on buffer %s: this dispatch %s what %s %s, without a barrier between the two dispatches", m->label.c_str(), doing, other.c_str(), done);
  else
    report(w, pc, "race on buffer %s: a thread %s what a thread of %s threadgroup %s", m->label.c_str(), doing, t.group == w->groupNumber ? "the same" : "another", done);
}

static void remember(const Worker* w, Touched& t, uint16_t me, bool read) {
  if (read && t.dispatch == w->d->id) {
    if (t.group != w->groupNumber) {
      t.group = SEVERAL_GROUPS;
      return;
    }
    if (t.epoch == uint16_t(w->epoch) && t.thread != me) {
      t.thread = SEVERAL_THREADS;
      return;
    }
  }
  t = {w->d->id, w->groupNumber, me, uint16_t(w->epoch)};
}

static void deviceChecks(Worker* w, Memory* m, size_t off, uint32_t n, bool store, void* pc) {
  if (!m->unwritten.empty()) {
    for (size_t i = off; i < off + n; i++) {
      if (!store && m->unwritten[i]) {
        report(w, pc, "load of memory that nobody wrote: buffer %s, byte %zu of %llu", m->label.c_str(), i, (unsigned long long)m->bytes);
        break;
      }
      if (store) m->unwritten[i] = false;
    }
  }
  if (store && n == 1) return;
  if (m->cells.empty()) m->cells.resize(m->bytes / PAGE + 1);
  const uint16_t me = w->c.lane->linear;
  for (size_t i = off >> 1; i <= (off + n - 1) >> 1; i++) {
    auto& page = m->cells[i / CELLS];
    if (!page) page = std::make_unique<Cell[]>(CELLS);
    Cell& c = page[i % CELLS];
    if (unordered(w, c.write, me)) race(w, m, c.write, true, store ? "writes" : "reads", pc);
    if (store) {
      if (unordered(w, c.read, me)) race(w, m, c.read, false, "writes", pc);
      remember(w, c.write, me, false);
    } else {
      remember(w, c.read, me, true);
    }
  }
}

static __attribute__((noinline)) void access(Worker* w, const char* p, uint32_t n, bool store, bool atomic, void* pc) {
  if (inside(w, p, w->area, THREADGROUP_AREA)) {
    localAccess(w, p - w->area, n, store, atomic, pc);
    return;
  }
  if (inside(w, p, w->stacks, STACKS_BYTES)) return; // a private variable
  auto& known = w->lookups[uintptr_t(p) >> 12 & 255];
  if (known.page != uintptr_t(p) >> 12 || known.generation != memoryGeneration()) known = {uintptr_t(p) >> 12, memoryGeneration(), findMemory(p)};
  Memory* m = known.memory;
  // Wrapped memory shares its first and last page with strangers.
  if (m && !m->map && (p < m->base || p >= m->base + m->bytes)) m = findMemory(p);
  else if (!m) m = findMemory(p);
  if (!m) return;
  if (p < m->base || p + n > m->base + m->bytes) {
    const Lane& l = *w->c.lane;
    report(w, pc, "%s out of bounds: buffer %s, byte %lld of %llu, thread %u of threadgroup %u", store ? "store" : "load", m->label.c_str(), (long long)(p - m->base), (unsigned long long)m->bytes, l.linear, w->groupNumber - w->d->groupBase);
    return;
  }
  const size_t off = p - m->base;
  (store ? w->counts.storeBytes : w->counts.loadBytes) += n;
  if (w->count) {
    (store ? m->traffic.storeBytes : m->traffic.loadBytes) += n;
    auto& lines = m->lines[store];
    for (size_t l = off >> 6; l <= (off + n - 1) >> 6; l++) lines[l >> 6] |= 1ull << (l & 63);
  }
  if (!w->check) return;
  if (atomic) {
    if (!m->unwritten.empty() && store) std::fill(m->unwritten.begin() + off, m->unwritten.begin() + off + n, false);
    return;
  }
  deviceChecks(w, m, off, n, store, pc);
}

static inline __attribute__((always_inline)) void hook(const void* p, size_t n, bool store) {
  Context* c = context;
  if (!c || !n) return;
  Worker* w = c->worker;
  if (w->check || w->count) access(w, (const char*)p, uint32_t(n), store, false, __builtin_return_address(0));
}

void noteAccess(const void* p, uint32_t bytes, bool store) { hook(p, bytes, store); }

void noteAtomic(const volatile void* p, uint32_t bytes) {
  Worker* w = context->worker;
  w->counts.atomics++;
  if (w->check || w->count) access(w, (const char*)p, bytes, true, true, __builtin_return_address(0));
}
} // namespace msl

using msl::hook;
extern "C" {
#define MSL_HOOKS(N)                                                        \
  void __tsan_read##N(void* p) { hook(p, N, false); }                       \
  void __tsan_write##N(void* p) { hook(p, N, true); }                       \
  void __tsan_unaligned_read##N(void* p) { hook(p, N, false); }             \
  void __tsan_unaligned_write##N(void* p) { hook(p, N, true); }             \
  void __tsan_volatile_read##N(void* p) { hook(p, N, false); }              \
  void __tsan_volatile_write##N(void* p) { hook(p, N, true); }              \
  void __tsan_read_write##N(void* p) { hook(p, N, false); hook(p, N, true); } \
  void __tsan_unaligned_read_write##N(void* p) { hook(p, N, false); hook(p, N, true); }
MSL_HOOKS(1) MSL_HOOKS(2) MSL_HOOKS(4) MSL_HOOKS(8) MSL_HOOKS(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read_range(void* p, long n) { hook(p, n, false); }
void __tsan_write_range(void* p, long n) { hook(p, n, true); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void* __tsan_memcpy(void* d, const void* s, size_t n) { hook(s, n, false); hook(d, n, true); return memcpy(d, s, n); }
void* __tsan_memset(void* d, int c, size_t n) { hook(d, n, true); return memset(d, c, n); }
void* __tsan_memmove(void* d, const void* s, size_t n) { hook(s, n, false); hook(d, n, true); return memmove(d, s, n); }
}
