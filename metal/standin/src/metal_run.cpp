// Running: each queue has a thread that takes its command buffers in the order of enqueueing and runs their passes, level by level. With a runtime that
// drives a GPU it gives them to the GPU and goes on, and a second thread waits for them in the same order.
//
// Invariants:
//  * A command buffer is held by its lane from commit until its handlers have run; the lane never holds one that may not come.
//  * What a command buffer retained is let go before waitUntilCompleted returns, so that a program that released everything has no leaks.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "metal_objects.h"

extern "C" uintptr_t objc_autoreleasePoolPush();
extern "C" void objc_autoreleasePoolPop(uintptr_t);

namespace pond {

struct Failure {
  NSInteger code = 0;
  std::string description;
};

// Flight is a command buffer that was begun, with what is to be done in order when the GPU has done its part.
struct Flight {
  Held<CommandBuffer> c;
  Failure failure;
  double start = 0;
  struct Item {
    Pass* pass = nullptr;  // of c's steps
    msl_submission* submission = nullptr;
    std::shared_ptr<PassOrder> order;
    Event* event = nullptr;  // of c's steps: to be signalled
    uint64_t value = 0;
  };
  std::vector<Item> items;
};

struct Lane {
  std::mutex mu;
  std::condition_variable work, room, landing;
  std::deque<std::unique_ptr<Flight>> flights;
  struct Entry {
    CommandBuffer* c;
    Held<CommandBuffer> held;  // from commit on
  };
  std::deque<Entry> order;
  NSUInteger limit = 0, existing = 0, committed = 0;
  bool started = false, stop = false;
};

uint64_t gpuNanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000 + uint64_t(t.tv_nsec);
}
double gpuSeconds() { return double(gpuNanoseconds()) * 1e-9; }

namespace {

enum ErrorCode : NSInteger { internalError = 1, timeoutError = 2, pageFault = 3, outOfMemory = 8 };

// injected turns the name of a fault into what a Mac's driver says.
Failure injected(const std::string& name) {
  if (name == "timeout") return {timeoutError, "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)"};
  if (name == "page-fault") return {pageFault, "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)"};
  if (name == "out-of-memory") return {outOfMemory, "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"};
  return {internalError, "Internal Error (0000000e:Internal Error)"};
}

bool runDispatch(const Dispatch& d, uint64_t group, uint64_t seed, Failure* failure) {
  World& w = world();
  msl_grid grid = d.grid;
  if (d.indirect) std::memcpy(grid.groups, d.indirect, sizeof grid.groups);
  if (grid.groups[0] == 0 || grid.groups[1] == 0 || grid.groups[2] == 0) return true;  // an indirect grid may be empty
  msl_options o{};
  o.order = w.config.order;
  o.flags = w.config.flags;
  o.seed = seed;
  o.workers = w.config.workers;
  o.group = group;
  msl_counts counts{};
  char why[8192] = "";
  double start = gpuSeconds();
  int rc = w.kernels.msl_run(d.pipeline->pipeline, d.bindings.data(), int(d.bindings.size()), &grid, &o, &counts, why, sizeof why);
  double seconds = gpuSeconds() - start;
  {
    std::lock_guard g(w.totals->mu);
    Totals& t = *w.totals;
    t.dispatches++;
    auto* sum = reinterpret_cast<uint64_t*>(&t.counts);
    auto* add = reinterpret_cast<uint64_t*>(&counts);
    constexpr size_t n = offsetof(msl_counts, threadgroupBytes) / sizeof(uint64_t);
    for (size_t i = 0; i < n; i++) sum[i] += add[i];
    t.counts.threadgroupBytes = std::max(t.counts.threadgroupBytes, counts.threadgroupBytes);
    auto& k = t.kernels[d.pipeline->function->name];
    k.first++;
    k.second += seconds;
  }
  if (rc == 0) return true;
  std::string what = why;
  while (!what.empty() && what.back() == '\n') what.pop_back();
  report("kernel", "%s: %s", d.label.c_str(), what.c_str());
  if (failure->code == 0) {
    *failure = injected("page-fault");
    failure->description += ": " + d.label + ": " + what;
  }
  return false;
}

void sample(const Pass& p, bool end) {
  for (auto& [buffer, indices] : p.samples) {
    NSUInteger i = end ? indices.second : indices.first;
    std::lock_guard g(buffer->mu);
    if (i < buffer->samples.size()) buffer->samples[i] = gpuNanoseconds();
  }
}

void runPass(Pass& p, Failure* failure) {
  World& w = world();
  for (auto& level : p.levels) {
    uint64_t group = ++w.group;
    std::vector<size_t> order(level.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    std::mt19937_64 random(w.config.seed * 0x9e3779b97f4a7c15u + group);
    if (w.config.shuffleDispatches) std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) runDispatch(level[i], group, random(), failure);
    std::lock_guard g(w.totals->mu);
    w.totals->levels++;
  }
  std::lock_guard g(w.totals->mu);
  w.totals->passes++;
}

void waitForEvent(Event& e, uint64_t value, Failure* failure) {
  // A Mac's driver gives up after some seconds; generous here, since the machine may be slow.
  constexpr auto patience = std::chrono::seconds(120);
  std::unique_lock l(e.mu);
  if (e.changed.wait_for(l, patience, [&] { return e.value >= value || e.promised >= value; })) return;
  report("event", "event %s: nobody signals value %llu", e.label.c_str(), static_cast<unsigned long long>(value));
  *failure = injected("timeout");
}

// checkHeld reports what a command buffer that retains nothing needs and the program has let go of.
void checkHeld(const CommandBuffer& c) {
  if (c.retained) return;
  auto check = [&](Object* o) {
    if (o && outside(o) <= 0) report("freed-in-flight", "%s is released while a command buffer that does not retain it is using it", describe(o).c_str());
  };
  for (const Step& s : c.steps) {
    check(s.event.object());
    if (!s.pass) continue;
    for (auto& level : s.pass->levels)
      for (const Dispatch& d : level) check(d.pipeline.object());
    for (auto& f : s.pass->waits) check(f.object());
    for (auto& f : s.pass->updates) check(f.object());
  }
}

// submitPass gives a pass to the GPU; null: it failed.
msl_submission* submitPass(const Pass& p, Failure* failure) {
  World& w = world();
  std::vector<msl_dispatch> all;
  uint32_t level = 0;
  for (auto& l : p.levels) {
    for (const Dispatch& d : l) {
      if (d.indirect) report("unsupported", "%s: a GPU's threadgroup counts are not read from memory here", d.label.c_str());
      all.push_back({d.pipeline->pipeline, d.bindings.data(), uint32_t(d.bindings.size()), level, &d.grid});
    }
    level++;
  }
  char why[8192] = "";
  msl_submission* s = w.kernels.msl_submit(all.data(), int(all.size()), w.config.flags, why, sizeof why);
  if (!s) {
    report("kernel", "%s: %s", p.label.c_str(), why);
    *failure = injected("internal");
    failure->description += ": " + p.label + ": " + why;
  }
  std::lock_guard g(w.totals->mu);
  w.totals->passes++;
  w.totals->levels += p.levels.size();
  w.totals->dispatches += all.size();
  return s;
}

// finishPass waits for it; the time on the GPU comes back.
double finishPass(const Flight::Item& i, Failure* failure) {
  World& w = world();
  char why[8192] = "";
  double seconds = 0;
  int rc = w.kernels.msl_finish(i.submission, &seconds, why, sizeof why);
  if (rc) {
    report("kernel", "%s: %s", i.pass->label.c_str(), why);
    if (failure->code == 0) {
      *failure = injected(rc == MSL_FAULT ? "page-fault" : rc == MSL_TIMEOUT ? "timeout" : "internal");
      failure->description += ": " + i.pass->label + ": " + why;
    }
  }
  std::lock_guard g(w.totals->mu);
  w.totals->gpuSeconds += seconds;
  if (i.pass->levels.size() == 1 && i.pass->levels[0].size() == 1) {
    auto& k = w.totals->kernels[i.pass->levels[0][0].pipeline->function->name];
    k.first++;
    k.second += seconds;
  }
  return seconds;
}

void signal(Event& e, uint64_t value) {
  std::lock_guard g(e.mu);
  if (value < e.value) report("event", "event %s: signals %llu after %llu: values of an event only grow", e.label.c_str(), static_cast<unsigned long long>(value), static_cast<unsigned long long>(e.value));
  e.value = std::max(e.value, value);
  e.changed.notify_all();
}

// runSteps runs what was recorded, or gives it to the GPU. After a failure the rest is skipped, signals too: Apple promises none of a command buffer that
// failed, so who waits for one has to be let go by the program.
void runSteps(CommandBuffer& c, Flight& f) {
  const bool gpu = world().kernels.msl_submit;
  Passes waited, done;  // passes before everything that follows; passes of this command buffer
  for (Step& s : c.steps) {
    if (s.event && !s.signal) {
      if (f.failure.code == 0) waitForEvent(*s.event.get(), s.value, &f.failure);
      std::lock_guard g(s.event->mu);
      auto it = s.event->signals.lower_bound(s.value);
      if (it != s.event->signals.end()) waited.insert(it->second.begin(), it->second.end());
    } else if (s.event) {
      if (f.failure.code != 0) continue;
      {
        std::lock_guard g(s.event->mu);
        Passes& before = s.event->signals[s.value];
        before.insert(waited.begin(), waited.end());
        before.insert(done.begin(), done.end());
        while (s.event->signals.size() > 256) s.event->signals.erase(s.event->signals.begin());
        if (gpu) {
          s.event->promised = std::max(s.event->promised, s.value);
          s.event->changed.notify_all();
        }
      }
      if (gpu) f.items.push_back({nullptr, nullptr, nullptr, s.event.get(), s.value});
      else signal(*s.event.get(), s.value);
    } else {
      if (f.failure.code != 0) {
        s.pass->state = 2;
        continue;
      }
      auto order = beginPass(*s.pass, c.submission, waited);
      done[order->serial] = order->submission;
      done.insert(order->before.begin(), order->before.end());
      sample(*s.pass, false);
      if (gpu && !s.pass->levels.empty()) {
        s.pass->state = 3;
        if (msl_submission* made = submitPass(*s.pass, &f.failure)) f.items.push_back({s.pass.get(), made, order, nullptr, 0});
        else s.pass->state = 4;
        continue;
      }
      runPass(*s.pass, &f.failure);
      sample(*s.pass, true);
      endPass(*s.pass, *order);
      s.pass->state = f.failure.code ? 4 : 1;
    }
  }
}

// landSteps waits for what the GPU was given; the time that it spent comes back.
double landSteps(Flight& f) {
  double seconds = 0;
  for (Flight::Item& i : f.items) {
    if (i.event) {
      if (f.failure.code == 0) signal(*i.event, i.value);
      continue;
    }
    seconds += finishPass(i, &f.failure);
    sample(*i.pass, true);
    endPass(*i.pass, *i.order);
    i.pass->state = f.failure.code ? 4 : 1;
  }
  return seconds;
}

Held<Error> errorOf(const CommandBuffer& c, const Failure& f) {
  Error* e = makeError("MTLCommandBufferErrorDomain", f.code, f.description);
  Held<Error> held(e);
  release(e->self);
  if (c.errorOptions & 1) {
    std::vector<State*> infos;
    std::vector<Object*> made;
    for (const Step& s : c.steps)
      if (s.pass) {
        EncoderInfo* i = create<EncoderInfo>();
        i->label = s.pass->label;
        i->state = s.pass->state;
        infos.push_back(i);
        made.push_back(i->self);
      }
    Dictionary* d = create<Dictionary>();
    d->items.emplace_back(stateOf<String>(newString("MTLCommandBufferEncoderInfoErrorKey")), newArray(infos)->state);
    e->info = Held<Dictionary>(d);
    release(d->self);
    for (Object* o : made) release(o);
  }
  return held;
}

void call(std::vector<Block*>& blocks, CommandBuffer& c) {
  for (Block* b : std::exchange(blocks, {})) {
    uintptr_t pool = objc_autoreleasePoolPush();
    retain(c.self);
    reinterpret_cast<void (*)(Block*, Object*)>(b->invoke)(b, c.self);
    release(c.self);
    objc_autoreleasePoolPop(pool);
  }
}

// begin runs a command buffer, or gives it to the GPU.
std::unique_ptr<Flight> begin(Held<CommandBuffer> held) {
  World& w = world();
  CommandBuffer& c = *held.get();
  auto f = std::make_unique<Flight>();
  f->c = std::move(held);
  uintptr_t pool = objc_autoreleasePoolPush();
  {
    std::lock_guard g(c.mu);
    c.status = 3;
    c.changed.notify_all();
  }
  call(c.scheduled, c);
  std::string what;
  if (w.faults.due("gpu-error", &what)) f->failure = injected(what);
  checkHeld(c);
  f->start = gpuSeconds();
  runSteps(c, *f);
  objc_autoreleasePoolPop(pool);
  return f;
}

// land completes a command buffer that was begun.
void land(std::unique_ptr<Flight> f) {
  World& w = world();
  CommandBuffer& c = *f->c.get();
  uintptr_t pool = objc_autoreleasePoolPush();
  double seconds = landSteps(*f);
  double end = gpuSeconds();
  double start = w.kernels.msl_submit ? end - seconds : f->start;
  checkHeld(c);
  const Failure& failure = f->failure;
  Held<Error> error = failure.code ? errorOf(c, failure) : Held<Error>();
  for (Step& s : c.steps)
    if (s.pass)
      for (auto& [b, write] : s.pass->uses) b->inFlight--;
  std::vector<Step>().swap(c.steps);
  std::map<Object*, Held<State>>().swap(c.references);
  std::vector<Held<ResidencySet>>().swap(c.residency);
  hazardComplete(*c.submission);
  {
    std::lock_guard g(w.totals->mu);
    w.totals->commandBuffers++;
  }
  c.left = true;
  laneLeave(*c.queue->lane, true);
  {
    std::lock_guard g(c.mu);
    c.gpuStart = start;
    c.gpuEnd = end;
    c.kernelStart = f->start;
    c.kernelEnd = end;
    c.error = error;
    c.status = failure.code ? 5 : 4;
  }
  call(c.completed, c);
  objc_autoreleasePoolPop(pool);
  {
    std::lock_guard g(c.mu);
    c.done = true;
    c.changed.notify_all();
  }
  f.reset();
  std::lock_guard g(w.busyMu);
  w.busy--;
  w.idle.notify_all();
}

// landAll completes what the GPU was given, in order.
void landAll(std::shared_ptr<Lane> lane) {
  for (;;) {
    std::unique_ptr<Flight> f;
    {
      std::unique_lock l(lane->mu);
      lane->landing.wait(l, [&] { return !lane->flights.empty(); });
      f = std::move(lane->flights.front());
      lane->flights.pop_front();
    }
    if (!f) return;
    land(std::move(f));
  }
}

void loop(std::shared_ptr<Lane> lane) {
  const bool gpu = world().kernels.msl_submit;
  auto fly = [&](std::unique_ptr<Flight> f) {
    std::lock_guard g(lane->mu);
    lane->flights.push_back(std::move(f));
    lane->landing.notify_one();
  };
  if (gpu) std::thread(landAll, lane).detach();
  for (;;) {
    Held<CommandBuffer> c;
    {
      std::unique_lock l(lane->mu);
      lane->work.wait(l, [&] { return lane->stop || (!lane->order.empty() && lane->order.front().held); });
      if (lane->order.empty()) break;
      c = std::move(lane->order.front().held);
      lane->order.pop_front();
    }
    std::unique_ptr<Flight> f = begin(std::move(c));
    if (gpu) fly(std::move(f));
    else land(std::move(f));
  }
  if (gpu) fly(nullptr);
}

}  // namespace

std::shared_ptr<Lane> newLane(NSUInteger limit) {
  auto lane = std::make_shared<Lane>();
  lane->limit = limit;
  return lane;
}

void closeLane(Lane& lane) {
  std::lock_guard g(lane.mu);
  lane.stop = true;
  lane.work.notify_all();
}

bool laneAdmit(Lane& lane) {
  std::unique_lock l(lane.mu);
  while (lane.existing >= lane.limit) {
    if (lane.committed == 0) return false;
    lane.room.wait(l);
  }
  lane.existing++;
  return true;
}

void laneLeave(Lane& lane, bool committed) {
  std::lock_guard g(lane.mu);
  lane.existing--;
  if (committed) lane.committed--;
  lane.room.notify_all();
}

void laneEnqueue(Lane& lane, CommandBuffer* c) {
  std::lock_guard g(lane.mu);
  lane.order.push_back({c, {}});
}

void laneForget(Lane& lane, CommandBuffer* c) {
  std::lock_guard g(lane.mu);
  std::erase_if(lane.order, [&](const Lane::Entry& e) { return e.c == c; });
  lane.work.notify_all();
}

void laneCommit(Lane& lane, CommandBuffer* c) {
  World& w = world();
  {
    std::lock_guard g(w.busyMu);
    w.busy++;
  }
  std::lock_guard g(lane.mu);
  lane.committed++;
  for (Lane::Entry& e : lane.order)
    if (e.c == c) e.held = Held<CommandBuffer>(c);
  lane.work.notify_all();
  if (!lane.started) {
    lane.started = true;
    std::thread(loop, c->queue->lane).detach();
  }
}

void waitIdle() {
  World& w = world();
  std::unique_lock l(w.busyMu);
  w.idle.wait(l, [&] { return w.busy == 0; });
}

}  // namespace pond
