// msl_schedule.cpp - runs the threads of one threadgroup.
//
// Rules:
//   - Every suspended thread has a stack; a thread that ends hands its stack to the next one, so threads that never wait cost no switch.
//   - A lane that needs its simdgroup leaves a value in an Exchange and the next lane runs. The exchange completes when all living lanes
//     of the simdgroup have come, or when nothing else of it can run: then the lanes present are the active ones.
//   - A threadgroup barrier opens when every living thread waits at one. Waiting at different ones is an error always, waiting after others
//     have returned in check mode.
//   - The order of lanes, simdgroups and threadgroups follows the dispatch's options alone, so a run can be repeated.
#include "msl_internal.h"

#include <sys/mman.h>

namespace msl {
__thread Context* context __attribute__((tls_model("initial-exec")));

static void fiberMain();

static Fiber* takeFiber(Worker* w) {
  if (Fiber* f = w->idle) {
    w->idle = f->next;
    return f;
  }
  const size_t i = w->fibers.size();
  Fiber* f = new Fiber;
  char* m = w->stacks + i * STACK_BYTES;
  mprotect(m, PAGE, PROT_NONE); // an overflow faults
  f->low = m + PAGE;
  f->bytes = STACK_BYTES - PAGE - (i % 61) * 192; // equal frames must not share cache sets
  prepare(f, fiberMain);
  w->fibers.push_back(f);
  return f;
}

static inline int pick(Worker* w, uint32_t lanes) {
  switch (w->d->options.order) {
    case MSL_ASCENDING: return __builtin_ctz(lanes);
    case MSL_DESCENDING: return 31 - __builtin_clz(lanes);
  }
  const int r = w->rnd() & 31;
  const uint32_t turned = lanes >> r | (r ? lanes << (32 - r) : 0);
  return (__builtin_ctz(turned) + r) & 31;
}

static void complete(Worker* w, Simdgroup* s, Exchange* x) {
  Exchange** p = &s->open;
  while (*p != x) p = &(*p)->next;
  *p = x->next;
  x->active = x->arrived;
  x->readers = __builtin_popcount(x->active);
  x->haveResult = false;
  s->runnable |= x->active;
  w->counts.simdOps++;
  if (x->active != s->full && w->check) report(w, nullptr, "%s:%d: simdgroup operation with lanes %08x of %08x only", x->file, x->site & 0xfffff, x->active, s->full);
}

// The oldest open operation of a simdgroup in which nothing else can run goes ahead with the lanes it has.
static bool resolve(Worker* w, Simdgroup* s) {
  Exchange* oldest = s->open;
  if (!oldest) return false;
  while (oldest->next) oldest = oldest->next;
  complete(w, s, oldest);
  return true;
}

static void openBarrier(Worker* w) {
  const Where at = w->barrier;
  if (w->barrierMixed) report(w, nullptr, "%s:%d: threads of one threadgroup wait at different threadgroup_barriers, the first to wait here", at.file, at.line);
  if (w->someExited && w->check) report(w, nullptr, "%s:%d: threadgroup_barrier after some threads have returned", at.file, at.line);
  for (uint32_t i = 0; i < w->simdgroups; i++) {
    w->simd[i].runnable |= w->simd[i].atBarrier;
    w->simd[i].atBarrier = 0;
    w->simd[i].epoch = 0;
  }
  w->waiting = 0;
  w->barrierMixed = false;
  w->epoch++;
  w->counts.tgBarriers++;
}

// Chooses the next thread. False: the threadgroup is finished.
static bool choose(Worker* w) {
  Simdgroup* s = &w->simd[w->simd_];
  const uint32_t order = w->d->options.order;
  if (!s->runnable || order == MSL_SHUFFLED) {
    for (;;) {
      const uint32_t n = w->simdgroups, first = order == MSL_SHUFFLED && n > 1 ? w->rnd() % n : order == MSL_DESCENDING && w->simd_ == 0 ? n - 1 : w->simd_;
      bool found = false;
      for (uint32_t i = 0; i < n && !found; i++) {
        const uint32_t k = order == MSL_DESCENDING ? (first + n - i) % n : (first + i) % n;
        if (w->simd[k].runnable || resolve(w, &w->simd[k])) {
          w->simd_ = k;
          found = true;
        }
      }
      if (found) break;
      if (!w->alive) return false;
      openBarrier(w); // every living thread waits
    }
    s = &w->simd[w->simd_];
  }
  w->lane_ = pick(w, s->runnable);
  return true;
}

// Gives the processor to the next thread. A finished thread's stack goes on with a thread that has not begun, if that is next.
static void switchAway(Worker* w, bool finished) {
  Fiber* me = w->current;
  if (!finished) w->fiberOf[w->simd[w->simd_].base + w->lane_] = me;
  if (!choose(w)) {
    me->next = w->idle;
    w->idle = me;
    msl_switch(&me->sp, w->home.sp);
    return; // the next threadgroup begins on this stack
  }
  Simdgroup* s = &w->simd[w->simd_];
  const uint32_t id = s->base + w->lane_, bit = 1u << w->lane_;
  w->c.lane = &w->lanes[id];
  Fiber* to;
  if (s->started & bit) {
    to = w->fiberOf[id];
    if (to == me) return;
    if (finished) {
      me->next = w->idle;
      w->idle = me;
    }
  } else {
    s->started |= bit;
    if (finished) return;
    to = takeFiber(w);
  }
  w->current = to;
  w->counts.switches++;
  msl_switch(&me->sp, to->sp);
}

static void fiberMain() {
  Worker* w = context->worker;
  for (;;) {
    void (*run)() = w->d->pipeline->kernel->run;
    if (w->straight) {
      for (uint32_t n = w->alive, i = 0; i < n; i++) {
        const uint32_t id = w->d->options.order == MSL_DESCENDING ? n - 1 - i : i;
        w->c.lane = &w->lanes[id];
        run();
      }
      w->alive = 0;
      Fiber* me = w->current;
      me->next = w->idle;
      w->idle = me;
      msl_switch(&me->sp, w->home.sp);
      continue;
    }
    run();
    Simdgroup* s = &w->simd[w->simd_];
    const uint32_t bit = 1u << w->lane_;
    s->alive &= ~bit;
    s->runnable &= ~bit;
    if (--w->alive) w->someExited = true;
    // The others may have waited for this lane alone.
    for (Exchange* x = s->open; x; x = x->next)
      if (s->alive && x->arrived == s->alive) {
        complete(w, s, x);
        break;
      }
    switchAway(w, true);
  }
}

static __attribute__((noinline)) Exchange* openExchange(Worker* w, Simdgroup* s, int site, const char* file) {
  Exchange* x = s->open;
  while (x && x->site != site) x = x->next;
  if (x) return x;
  if ((x = s->idle)) {
    s->idle = x->next;
  } else {
    x = new Exchange;
    w->moreExchanges.push_back(x);
  }
  x->arrived = 0;
  x->site = site;
  x->file = file;
  x->next = s->open;
  return s->open = x;
}

Exchange* meet(uint64_t low, uint64_t high, int site, const char* file) {
  Worker* w = context->worker;
  Simdgroup* s = &w->simd[w->simd_];
  const uint32_t lane = w->lane_, bit = 1u << lane;
  Exchange* x = s->open;
  if (!x || x->site != site) x = openExchange(w, s, site, file);
  uint64_t* q = (uint64_t*)x->slot[lane];
  q[0] = low;
  q[1] = high;
  x->arrived |= bit;
  if (x->arrived == s->alive) {
    complete(w, s, x);
    if (w->d->options.order == MSL_ASCENDING) return x; // this lane goes on, the others follow
    switchAway(w, false);
    return x;
  }
  const uint32_t ready = s->runnable &= ~bit;
  if (ready && w->usual) { // on to the next lane of this simdgroup, without asking anyone
    const uint32_t next = __builtin_ctz(ready), id = s->base + next;
    Fiber *me = w->current, *to;
    w->fiberOf[s->base + lane] = me;
    w->lane_ = next;
    w->c.lane = &w->lanes[id];
    if (s->started >> next & 1) {
      to = w->fiberOf[id];
    } else {
      s->started |= 1u << next;
      to = takeFiber(w);
    }
    w->current = to;
    w->counts.switches++;
    msl_switch(&me->sp, to->sp);
    return x;
  }
  switchAway(w, false);
  return x;
}

void done(Exchange* x) {
  if (--x->readers) return;
  Worker* w = context->worker;
  Simdgroup* s = &w->simd[w->simd_];
  x->next = s->idle;
  s->idle = x;
}

void simdgroupBarrier(Where where, uint32_t) {
  Exchange* x = meet(0, 0, siteOf(where, OP_BARRIER), where.file);
  Worker* w = context->worker;
  if (!x->haveResult) {
    x->haveResult = true;
    w->simd[w->simd_].epoch++;
    w->counts.sgBarriers++;
  }
  done(x);
}

void threadgroupBarrier(Where where, uint32_t) {
  Worker* w = context->worker;
  Simdgroup* s = &w->simd[w->simd_];
  const uint32_t bit = 1u << w->lane_;
  if (w->waiting == 0) w->barrier = where;
  else if (where.line != w->barrier.line || where.file != w->barrier.file) w->barrierMixed = true;
  w->waiting++;
  s->atBarrier |= bit;
  s->runnable &= ~bit;
  if (w->waiting == w->alive) openBarrier(w);
  if (w->d->options.order == MSL_ASCENDING && s->runnable & bit) return;
  switchAway(w, false);
}

static void place(Worker* w, int variable, uint32_t bytes, const char* name) {
  const uint32_t offset = (w->top + RED_ZONE + 15) & ~15u;
  w->variables[variable].offset = offset;
  w->variables[variable].bytes = bytes;
  w->variables[variable].name = name;
  w->top = offset + bytes;
  w->usedVariables.push_back(variable);
}

void layout(Worker* w) { // where the dispatch's threadgroup memory lies; once a dispatch
  w->top = 0;
  w->usedVariables.clear();
  static const char* names[] = {"threadgroup(0)", "threadgroup(1)", "threadgroup(2)", "threadgroup(3)", "threadgroup(4)", "threadgroup(5)", "threadgroup(6)", "threadgroup(7)"};
  for (int i = 0; i < MSL_MAX_THREADGROUP_ARGS; i++) {
    w->c.threadgroupArgs[i] = nullptr;
    if (!w->d->grid.threadgroupBytes[i]) continue;
    place(w, MSL_MAX_SLOTS + i, w->d->grid.threadgroupBytes[i], names[i]);
    w->c.threadgroupArgs[i] = w->area + w->variables[MSL_MAX_SLOTS + i].offset;
  }
  for (int i = 0; i < MSL_MAX_SLOTS; i++) {
    w->c.slots[i] = nullptr;
    if (!w->d->pipeline->slotBytes[i]) continue;
    place(w, i, w->d->pipeline->slotBytes[i], "?");
    w->c.slots[i] = w->area + w->variables[i].offset;
  }
}

void noteVariable(int slot, uint32_t bytes, const char* name) {
  Worker* w = context->worker;
  w->variables[slot].bytes = bytes; // of this instantiation
  w->variables[slot].name = name;
}

Matrix* moreMatrices() {
  Worker* w = context->worker;
  enum { BLOCK = 64 };
  Matrix* b = (Matrix*)aligned_alloc(64, sizeof(Matrix) * BLOCK);
  if (!b) abort();
  w->matrixBlocks.push_back(b);
  for (int i = 0; i < BLOCK; i++) b[i].next = i + 1 < BLOCK ? &b[i + 1] : nullptr;
  return b;
}

void stop(Where where, const char* why) {
  Worker* w = context->worker;
  report(w, nullptr, "%s:%d: %s", where.file, where.line, why);
  abandon(w);
}

// A row of the product at a time, k in ascending order, each product and sum rounded.
void multiply(float* d, const float* a, const float* b, const float* c) {
  for (int i = 0; i < 8; i++) {
    float row[8];
    for (int j = 0; j < 8; j++) row[j] = c[i * 8 + j];
    for (int k = 0; k < 8; k++)
      for (int j = 0; j < 8; j++) row[j] += a[i * 8 + k] * b[k * 8 + j];
    for (int j = 0; j < 8; j++) d[i * 8 + j] = row[j];
  }
}

static void shapeLanes(Worker* w) {
  const uint32_t* size = w->c.size;
  if (!memcmp(size, w->laneShape, sizeof w->laneShape)) return;
  memcpy(w->laneShape, size, sizeof w->laneShape);
  for (uint32_t i = 0, n = size[0] * size[1] * size[2]; i < n; i++)
    w->lanes[i] = {uint16_t(i), uint16_t(i & 31), uint16_t(i >> 5), uint16_t(i % size[0]), uint16_t(i / size[0] % size[1]), uint16_t(i / size[0] / size[1])};
}

void runGroup(Worker* w, uint64_t index) {
  Dispatch* d = w->d;
  Context* c = &w->c;
  const uint32_t* groups = d->grid.groups;
  const uint32_t at[3] = {uint32_t(index % groups[0]), uint32_t(index / groups[0] % groups[1]), uint32_t(index / groups[0] / groups[1])};
  for (int i = 0; i < 3; i++) {
    c->group[i] = at[i];
    c->size[i] = at[i] == groups[i] - 1 && d->grid.last[i] ? d->grid.last[i] : d->grid.threads[i];
  }
  const uint32_t n = c->size[0] * c->size[1] * c->size[2];
  shapeLanes(w);
  w->simdgroups = (n + 31) / 32;
  w->alive = n;
  w->waiting = 0;
  w->someExited = w->barrierMixed = false;
  w->groupNumber = uint32_t(index) + d->groupBase;
  w->firstEpoch = ++w->epoch;
  w->random = (d->options.seed + 1) * 0x9E3779B97F4A7C15ull + ((index + 1) * 0xBF58476D1CE4E5B9ull | 1);
  w->straight = !d->pipeline->kernel->synchronises && d->options.order != MSL_SHUFFLED;
  for (uint32_t i = 0; i < w->simdgroups; i++) {
    Simdgroup* s = &w->simd[i];
    const uint32_t k = n - i * 32;
    s->full = s->alive = s->runnable = k >= 32 ? ~0u : (1u << k) - 1;
    s->started = s->atBarrier = 0;
    s->open = nullptr;
    s->epoch = 0;
    s->base = uint16_t(i * 32);
    w->journals[i].count = 0;
    w->journals[i].whole = s->full == ~0u;
    if (!w->straight) memset(w->journals[i].lane, 0, sizeof w->journals[i].lane);
  }
  if (d->options.flags & (MSL_POISON | MSL_CHECK)) memset(w->area, 0xff, THREADGROUP_AREA);
  w->counts.threadgroups++;
  w->counts.threads += n;
  w->simd_ = d->options.order == MSL_DESCENDING ? w->simdgroups - 1 : 0;
  choose(w);
  Simdgroup* s = &w->simd[w->simd_];
  s->started |= 1u << w->lane_;
  w->c.lane = &w->lanes[s->base + w->lane_];
  w->current = takeFiber(w);
  msl_switch(&w->home.sp, w->current->sp);
  if (w->aborted) {
    reset(w);
    return;
  }
  if (w->straight) return;
  for (uint32_t i = 0; i < w->simdgroups; i++)
    for (uint32_t l = 0; l < 32 && w->journals[i].whole; l++)
      if (w->journals[i].lane[l] != w->journals[i].count) {
        report(w, nullptr, "simdgroup_matrix operations by part of the lanes of simdgroup %u only", i);
        reset(w);
        break;
      }
}

void abandon(Worker* w) {
  {
    std::lock_guard<std::mutex> lock(w->d->mu);
    w->d->ended = std::min(w->d->ended, w->position);
  }
  w->d->next = ~0ull >> 1;
  w->aborted = true;
  void* dead;
  msl_switch(&dead, w->home.sp);
  abort(); // unreachable: nobody returns to a dead stack
}

void reset(Worker* w) {
  w->idle = nullptr;
  for (Fiber* f : w->fibers) {
    prepare(f, fiberMain);
    f->next = w->idle;
    w->idle = f;
  }
  for (int i = 0; i < 32; i++) {
    w->simd[i].idle = w->simd[i].open = nullptr;
    for (int j = 0; j < 4; j++) {
      Exchange* x = &w->exchanges[i * 4 + j];
      x->next = w->simd[i].idle;
      w->simd[i].idle = x;
    }
  }
  for (Exchange* x : w->moreExchanges) delete x;
  w->moreExchanges.clear();
  for (Matrix* m : w->matrixBlocks) free(m);
  w->matrixBlocks.clear();
  w->c.freeMatrices = nullptr;
}

Worker* newWorker() {
  Worker* w = new Worker();
  w->stacks = (char*)mmap(nullptr, STACKS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  w->area = (char*)mmap(nullptr, THREADGROUP_AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  w->faultStack = (char*)mmap(nullptr, FAULT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  w->c.worker = w;
  w->c.journals = w->journals;
  reset(w);
  return w;
}
} // namespace msl
