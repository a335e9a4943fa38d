// msl_dispatch.cpp - one dispatch: what is bound is checked against the kernel, function constants are put in place, threadgroups are spread
// over workers, what was seen is collected.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <numeric>
#include <thread>

#include "msl_internal.h"

namespace msl {
void layout(Worker* w);

static void run(Worker* w, Dispatch* d) {
  installFaultHandler();
  w->d = d;
  w->aborted = false;
  w->counts = {};
  w->c.matrixOps = 0;
  w->check = d->options.flags & MSL_CHECK;
  w->count = d->options.flags & MSL_COUNT;
  w->usual = d->options.order == MSL_ASCENDING;
  if (w->check && w->local.empty()) w->local.resize(THREADGROUP_AREA);
  memcpy(w->c.buffers, d->buffers, sizeof d->buffers);
  for (int i = 0; i < 3; i++) {
    w->c.groups[i] = d->grid.groups[i];
    w->c.full[i] = d->grid.threads[i];
    w->c.grid[i] = d->grid.last[i] ? (d->grid.groups[i] - 1) * d->grid.threads[i] + d->grid.last[i] : d->grid.groups[i] * d->grid.threads[i];
  }
  layout(w);
  context = &w->c;
  const uint64_t n = d->groups, chunk = std::min<uint64_t>(16, n / 64 + 1);
  uint64_t stride = 1; // shuffled: groups in steps that are prime to their number
  if (d->options.order == MSL_SHUFFLED)
    for (stride = 7919 + d->options.seed % 104729; std::gcd(stride, n) != 1;) stride++;
  for (;;) {
    const uint64_t a = d->next.fetch_add(chunk);
    if (a >= n || w->aborted) break;
    for (uint64_t i = a; i < std::min(a + chunk, n) && !w->aborted; i++) {
      uint64_t k = i;
      if (d->options.order == MSL_DESCENDING) k = n - 1 - i;
      if (d->options.order == MSL_SHUFFLED) k = uint64_t(((unsigned __int128)i * stride + d->options.seed) % n);
      w->position = i;
      runGroup(w, k);
    }
  }
  context = nullptr;
  w->counts.matrixOps = w->c.matrixOps;
  w->counts.simdOps += w->c.matrixOps;
}

// Threads that wait for dispatches, so that one costs a wake-up and no thread. They live as long as the process. A dispatch waits for those that have
// joined it and for no other: on a busy machine the caller has often done everything before a helper is given a processor.
struct Pool {
  std::mutex mu; // protects all below
  std::condition_variable wake, finished;
  Dispatch* d = nullptr;
  uint64_t number = 0;
  uint32_t joined = 0; // helpers at work on d
  std::deque<Worker*> workers; // [0] belongs to the caller
  void loop(size_t id) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> lock(mu);
    for (;;) {
      wake.wait(lock, [&] { return number != seen; });
      seen = number;
      Dispatch* mine = d;
      if (!mine || id >= mine->options.workers) continue;
      joined++;
      lock.unlock();
      msl::run(workers[id], mine);
      lock.lock();
      if (--joined == 0) finished.notify_one();
    }
  }
  void run(Dispatch* dispatch) {
    const uint32_t n = dispatch->options.workers;
    {
      std::unique_lock<std::mutex> lock(mu);
      while (workers.size() < n) {
        workers.push_back(newWorker());
        if (const size_t id = workers.size() - 1) std::thread([this, id] { loop(id); }).detach();
      }
      for (uint32_t i = 0; i < n; i++) workers[i]->counts = {}; // of one that comes too late, too
      if (n > 1) {
        d = dispatch;
        number++;
        wake.notify_all();
      }
    }
    msl::run(workers[0], dispatch);
    if (n > 1) {
      std::unique_lock<std::mutex> lock(mu);
      d = nullptr;
      finished.wait(lock, [&] { return joined == 0; });
    }
  }
};

// What one dispatch after the other needs: serialised by mu.
struct Device {
  std::mutex mu;
  Pool pool;
  uint32_t lastID = 0;
  uint64_t group = 0; // of the last dispatch
  uint32_t groupID = 0, groupBase = 0;
  std::vector<std::pair<uint32_t, std::string>> members; // first threadgroup number and kernel of each dispatch of the group
  std::vector<char*> inlineArgs;                         // guarded memory for setBytes, by index
};
static Device& device() {
  static Device* d = new Device;
  return *d;
}

std::string dispatchOfGroup(uint32_t, uint32_t number) {
  Device& dev = device();
  std::string name;
  size_t i = 0, mine = dev.members.size() - 1;
  for (; i < dev.members.size(); i++) {
    if (dev.members[i].first > number) break;
    name = dev.members[i].second;
  }
  return i == mine + 1 ? "" : name; // the running dispatch itself
}

void report(Worker* w, void* pc, const char* format, ...) {
  char b[512];
  va_list a;
  va_start(a, format);
  vsnprintf(b, sizeof b, format, a);
  va_end(a);
  Dispatch* d = w->d;
  std::lock_guard<std::mutex> lock(d->mu);
  const std::string kind = std::string(format, strnlen(format, 60)) + (pc ? "" : " " + std::string(b, strnlen(b, 60)));
  for (Report& r : d->reports) { // one for each place and kind, the first in the dispatch's order: workers may come in any
    if (r.pc != pc || r.kind != kind) continue;
    if (w->position < r.at) r.at = w->position, r.text = b;
    return;
  }
  if (d->reports.size() < 20) d->reports.push_back({pc, w->position, kind, b});
}

// What was seen, a sentence a line. On the caller's own stack: the symboliser may be Go code, which a fiber's stack cannot carry.
//
// Chunks are handed out in order and a worker does not leave one before its end or a fault, so the first threadgroup that ends the dispatch is the same
// whatever the number of workers and their pace; what a faster one saw behind it is left out.
static std::string render(Dispatch* d) {
  std::string text;
  std::stable_sort(d->reports.begin(), d->reports.end(), [](const Report& a, const Report& b) { return a.at < b.at; });
  for (const Report& r : d->reports) {
    if (r.at > d->ended) break;
    text += std::string(text.empty() ? "" : "\n") + d->pipeline->kernel->name + ": " + place(d->pipeline->library, r.pc) + r.text;
  }
  return text;
}

static std::string bind(Dispatch* d, const msl_binding* bindings, int n) {
  const KernelEntry* k = d->pipeline->kernel;
  Device& dev = device();
  memset(d->buffers, 0, sizeof d->buffers);
  const msl_binding* at[MSL_MAX_BUFFERS] = {};
  char b[400];
  for (int i = 0; i < n; i++) {
    if (bindings[i].index >= MSL_MAX_BUFFERS) return "buffer index " + std::to_string(bindings[i].index) + ": the last is 30";
    at[bindings[i].index] = &bindings[i];
  }
  for (int i = 0; i < k->args; i++) {
    const ArgName& a = k->names[i];
    const ArgType& t = k->types[i];
    if (a.role == 1 && !d->grid.threadgroupBytes[a.index]) {
      snprintf(b, sizeof b, "threadgroup memory %s at index %d has no length", a.name, a.index);
      return b;
    }
    if (a.role == 1 && d->grid.threadgroupBytes[a.index] % 16) {
      snprintf(b, sizeof b, "threadgroup memory %s at index %d has %u bytes: the length must be a multiple of 16", a.name, a.index, d->grid.threadgroupBytes[a.index]);
      return b;
    }
    if (a.role != 0) continue;
    const msl_binding* x = at[a.index];
    if (!x || !x->base) {
      snprintf(b, sizeof b, "buffer %s at index %d is not set", a.name, a.index);
      return b;
    }
    const uint64_t bytes = x->inlineBytes ? x->inlineBytes : x->lenBytes;
    if (t.reference && bytes < t.bytes) {
      snprintf(b, sizeof b, "buffer %s at index %d: got %llu bytes, the kernel reads %u", a.name, a.index, (unsigned long long)bytes, t.bytes);
      return b;
    }
    if (x->inlineBytes) {
      if (x->inlineBytes > MSL_MAX_BYTES_ARG) {
        snprintf(b, sizeof b, "setBytes for %s at index %d: got %u bytes, at most %d", a.name, a.index, x->inlineBytes, MSL_MAX_BYTES_ARG);
        return b;
      }
      if (t.access != MSL_READ) {
        snprintf(b, sizeof b, "setBytes for %s at index %d: the kernel may write to it", a.name, a.index);
        return b;
      }
      if (dev.inlineArgs.empty())
        for (int j = 0; j < MSL_MAX_BUFFERS; j++) dev.inlineArgs.push_back((char*)msl_memory_new(MSL_MAX_BYTES_ARG, ("bytes at index " + std::to_string(j)).c_str(), 0));
      char* to = dev.inlineArgs[a.index] + ((MSL_MAX_BYTES_ARG - x->inlineBytes) & ~15u);
      memcpy(to, x->base, x->inlineBytes);
      d->buffers[a.index] = to;
      continue;
    }
    if (uintptr_t(x->base) % t.align) {
      snprintf(b, sizeof b, "buffer %s at index %d: the address is no multiple of %u, the alignment of its elements", a.name, a.index, t.align);
      return b;
    }
    d->buffers[a.index] = x->base;
    if (x->label && *x->label)
      if (Memory* m = findMemory(x->base); m && m->label.empty()) m->label = x->label;
  }
  return "";
}

static void specialise(msl_pipeline* p) {
  msl_library* lib = p->library;
  if (lib->specialised == p) return;
  for (const ConstantEntry* c = lib->module->constants; c; c = c->next) {
    *c->defined = false;
    memset(c->value, 0, c->bytes);
  }
  for (auto& [c, value] : p->constants) {
    memcpy(c->value, value.data(), c->bytes);
    *c->defined = true;
  }
  for (const DerivedEntry* e = lib->module->derived; e; e = e->next) e->compute();
  lib->specialised = p;
}

static std::string limits(Dispatch* d) {
  const msl_grid& g = d->grid;
  const KernelEntry* k = d->pipeline->kernel;
  const uint64_t threads = uint64_t(g.threads[0]) * g.threads[1] * g.threads[2], most = k->maxThreads ? k->maxThreads : uint32_t(MSL_MAX_THREADS);
  char b[300];
  if (threads == 0 || uint64_t(g.groups[0]) * g.groups[1] * g.groups[2] == 0) return "the grid is empty";
  if (threads > most) {
    snprintf(b, sizeof b, "got %llu threads in a threadgroup, at most %llu", (unsigned long long)threads, (unsigned long long)most);
    return b;
  }
  uint64_t bytes = d->pipeline->threadgroupBytes;
  for (uint32_t n : g.threadgroupBytes) bytes += n;
  if (bytes > MSL_MAX_THREADGROUP_BYTES) {
    snprintf(b, sizeof b, "got %llu bytes of threadgroup memory, at most %d", (unsigned long long)bytes, MSL_MAX_THREADGROUP_BYTES);
    return b;
  }
  for (int i = 0; i < 3; i++)
    if (g.last[i] > g.threads[i]) return "the last threadgroup has more threads than the others";
  return "";
}
} // namespace msl

using namespace msl;

extern "C" int msl_run(msl_pipeline* p, const msl_binding* bindings, int n, const msl_grid* grid, const msl_options* o, msl_counts* counts, char* text, size_t textBytes) {
  Device& dev = device();
  std::lock_guard<std::mutex> lock(dev.mu);
  Dispatch d;
  d.pipeline = p;
  d.grid = *grid;
  d.options = o ? *o : msl_options{};
  d.groups = uint64_t(grid->groups[0]) * grid->groups[1] * grid->groups[2];
  d.threads = grid->threads[0] * grid->threads[1] * grid->threads[2];
  const std::string prefix = std::string(p->kernel->name) + ": ";
  const bool watch = d.options.flags & (MSL_CHECK | MSL_COUNT);
  if (watch && !p->library->module->checked) return fail(text, textBytes, prefix + "the library was compiled without access hooks, which checks and counts need");
  std::string bad = limits(&d);
  if (bad.empty()) bad = bind(&d, bindings, n);
  if (!bad.empty()) return fail(text, textBytes, prefix + bad);
  specialise(p);
  d.id = ++dev.lastID;
  d.groupBase = 0;
  if (d.options.group && d.options.group == dev.group) {
    d.id = dev.groupID;
    d.groupBase = dev.groupBase;
  } else {
    dev.members.clear();
  }
  dev.group = d.options.group;
  dev.groupID = d.id;
  dev.groupBase = d.groupBase + uint32_t(d.groups);
  dev.members.emplace_back(d.groupBase, p->kernel->name);
  if (!d.options.workers) d.options.workers = d.groups * d.threads >= 16000 && std::thread::hardware_concurrency() > 1 ? 2 : 1;
  if (watch || d.groups < 2 * d.options.workers) d.options.workers = 1;
  if (d.options.workers > 64) d.options.workers = 64;
  dev.pool.run(&d);
  if (counts) {
    msl_counts sum = *counts;
    for (uint32_t i = 0; i < d.options.workers; i++) {
      uint64_t* to = (uint64_t*)&sum;
      const uint64_t* from = (const uint64_t*)&dev.pool.workers[i]->counts;
      for (size_t f = 0; f < offsetof(msl_counts, threadgroupBytes) / 8; f++) to[f] += from[f];
    }
    sum.dispatches++;
    uint64_t bytes = p->threadgroupBytes;
    for (uint32_t b : grid->threadgroupBytes) bytes += b;
    sum.threadgroupBytes = std::max(sum.threadgroupBytes, bytes);
    *counts = sum;
  }
  if (!d.reports.empty()) return fail(text, textBytes, render(&d));
  fail(text, textBytes, "");
  return 0;
}
