// cuda_run.cpp - pipelines, and dispatches on the GPU.
//
// A pass becomes one CUDA graph: a node a dispatch, an edge from each dispatch of a level to each of the next, which is what a concurrent encoder with a
// barrier between levels says. The graph is kept under everything that went into it (pipelines, grids, addresses, parameters), and a step of decoding
// repeats all of that, so that from the second on it is found and launched. A pass of one dispatch is launched as it is.
//
// POND_STANDIN_CUDA_EDGES=early makes the edges between levels of one dispatch each programmatic: the second kernel is put on the GPU while the first one
// works, and waits itself. On an H200 that costs more than it saves (3.46 ms a token against 2.94): what waits takes the place of what works.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "cuda_internal.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace pondcuda {
int fail(char* text, size_t textBytes, const std::string& s) {
  if (text && textBytes) snprintf(text, textBytes, "%s", s.c_str());
  return 1;
}

namespace {
struct Code {
  Function function = nullptr;
  int maxThreads = 0, sharedBytes = 0;
  std::string wrong;
};
} // namespace
} // namespace pondcuda

struct msl_pipeline {
  uint64_t serial; // never used twice
  msl_library* library;
  std::string kernel;
  std::vector<std::pair<msl_constant, std::string>> constants;
  std::vector<msl_arg_info> args;
  msl_kernel_info info;
  pondcuda::Code code[2]; // [1]: with poison, made when it is asked for
};

namespace pondcuda {
namespace {

// What a graph, or a single launch, was made from.
struct Launch {
  GraphExec exec = nullptr;
  // a single launch
  Function function = nullptr;
  msl_grid grid{};
  uint32_t sharedBytes = 0;
  std::unique_ptr<msl_cuda_args> args;
  std::vector<Memory*> used, written; // sorted, each once
  int flying = 0;
};

struct Executor {
  std::atomic<msl_cuda_compiler> compiler{nullptr};
  std::mutex codesMu;
  std::map<std::string, Code> codes; // by path of the cubin; kernels are not unloaded
  std::atomic<uint64_t> pipelines{0};

  std::mutex mu; // submissions come one at a time; protects all below
  std::list<std::pair<std::string, Launch>> kept; // the newest first
  std::unordered_map<uint64_t, std::list<std::pair<std::string, Launch>>::iterator> byHash;
  std::vector<Event> idleEvents;
  bool earlyEdges = [] {
    const char* e = std::getenv("POND_STANDIN_CUDA_EDGES");
    return e && std::string(e) == "early";
  }();
};
Executor& executor() {
  static Executor* e = new Executor; // never destroyed: threads may outlive main
  return *e;
}
constexpr size_t mostKept = 128;

// ---- code

Code loadCode(const std::string& path) {
  Executor& e = executor();
  Driver& d = driver();
  std::lock_guard g(e.codesMu);
  if (auto it = e.codes.find(path); it != e.codes.end()) return it->second;
  Code c;
  std::ifstream f(path, std::ios::binary);
  std::stringstream all;
  all << f.rdbuf();
  if (!f) {
    c.wrong = "cannot read " + path;
    return c;
  }
  d.enter();
  Module m = nullptr;
  if (Result r = d.cuModuleLoadData(&m, all.str().c_str())) c.wrong = d.text(r, "cuModuleLoadData");
  else if (Result r = d.cuModuleGetFunction(&c.function, m, MSL_CUDA_ENTRY)) c.wrong = d.text(r, "cuModuleGetFunction");
  else if (Result r = d.cuFuncGetAttribute(&c.maxThreads, functionMaxThreads, c.function)) c.wrong = d.text(r, "cuFuncGetAttribute");
  else if (Result r = d.cuFuncGetAttribute(&c.sharedBytes, functionSharedBytes, c.function)) c.wrong = d.text(r, "cuFuncGetAttribute");
  if (!c.wrong.empty()) c.wrong = path + ": " + c.wrong;
  return e.codes[path] = c;
}

Code codeOf(const msl_pipeline& p, uint32_t flags) {
  msl_cuda_compiler compile = executor().compiler;
  if (!compile) return {nullptr, 0, 0, "no compiler is set"};
  std::vector<msl_constant> constants;
  for (auto& [c, value] : p.constants) constants.push_back({c.index, c.bytes, value.data()});
  char out[8192] = "";
  if (compile(msl_library_path(p.library), p.kernel.c_str(), constants.data(), int32_t(constants.size()), flags, out, sizeof out)) return {nullptr, 0, 0, out};
  return loadCode(out);
}

// ---- one dispatch

__attribute__((format(printf, 2, 3))) std::string at(const msl_pipeline& p, const char* format, ...) {
  char b[400];
  va_list a;
  va_start(a, format);
  vsnprintf(b, sizeof b, format, a);
  va_end(a);
  return p.kernel + ": " + b;
}

std::string limits(const msl_pipeline& p, const Code& c, const msl_grid& g, uint32_t dynamic) {
  const uint64_t threads = uint64_t(g.threads[0]) * g.threads[1] * g.threads[2], most = std::min<uint64_t>(p.info.maxThreads, uint64_t(c.maxThreads));
  if (threads == 0 || uint64_t(g.groups[0]) * g.groups[1] * g.groups[2] == 0) return at(p, "the grid is empty");
  if (threads > most) return at(p, "got %llu threads in a threadgroup, at most %llu", (unsigned long long)threads, (unsigned long long)most);
  if (p.info.synchronises && threads % MSL_SIMD_WIDTH) return at(p, "got %llu threads in a threadgroup, want a multiple of 32 on this GPU", (unsigned long long)threads);
  if (g.groups[1] > 65535 || g.groups[2] > 65535) return at(p, "got %u x %u x %u threadgroups, want at most 65535 in the second and third dimension on this GPU", g.groups[0], g.groups[1], g.groups[2]);
  for (int i = 0; i < 3; i++)
    if (g.last[i] && g.last[i] != g.threads[i]) return at(p, "the last threadgroup has %u threads, want %u: this GPU has no threadgroups that are smaller at the edge", g.last[i], g.threads[i]);
  if (dynamic + uint32_t(c.sharedBytes) > MSL_MAX_THREADGROUP_BYTES) return at(p, "got %u bytes of threadgroup memory, at most %d", dynamic + uint32_t(c.sharedBytes), int(MSL_MAX_THREADGROUP_BYTES));
  return "";
}

std::string bindArguments(const msl_dispatch& x, const msl_pipeline& p, msl_cuda_args* out, uint32_t* dynamic, Launch* l) {
  memset(out, 0, sizeof *out);
  uint32_t reference = 0;
  *dynamic = 0;
  for (const msl_arg_info& a : p.args) {
    if (a.kind == MSL_ARG_THREADGROUP) {
      const uint32_t n = a.index < MSL_MAX_THREADGROUP_ARGS ? x.grid->threadgroupBytes[a.index] : 0;
      if (n == 0 || n % 16) return at(p, "threadgroup memory %s at index %u has %u bytes, want a multiple of 16", a.name, a.index, n);
      out->threadgroupAt[a.index] = *dynamic;
      *dynamic += n;
      continue;
    }
    const msl_binding* b = nullptr;
    for (uint32_t i = 0; i < x.count; i++)
      if (x.bindings[i].index == a.index) b = &x.bindings[i];
    if (!b || !b->base) return at(p, "buffer %s at index %u is not set", a.name, a.index);
    if (a.reference) {
      if (!b->inlineBytes) return at(p, "buffer %s at index %u is a reference and bound to memory, want setBytes on this GPU", a.name, a.index);
      if (b->inlineBytes < a.elementBytes) return at(p, "buffer %s at index %u: got %u bytes, the kernel reads %u", a.name, a.index, b->inlineBytes, a.elementBytes);
      if (reference + a.elementBytes > MSL_CUDA_REFERENCE_BYTES) return at(p, "the references take more than %d bytes", int(MSL_CUDA_REFERENCE_BYTES));
      memcpy(out->references + reference, b->base, a.elementBytes);
      reference += (a.elementBytes + 15) & ~15u;
      continue;
    }
    if (b->inlineBytes) return at(p, "buffer %s at index %u is a pointer and bound by setBytes, want a buffer on this GPU", a.name, a.index);
    Memory* m = findMemory(b->base);
    if (!m) return at(p, "buffer %s at index %u is at an address that belongs to no buffer", a.name, a.index);
    const uint64_t offset = uint64_t(static_cast<char*>(b->base) - m->view);
    if (a.alignBytes && (m->device + offset) % a.alignBytes) return at(p, "buffer %s at index %u: the address is no multiple of %u, the alignment of its elements", a.name, a.index, a.alignBytes);
    out->buffers[a.index] = m->device + offset;
    l->used.push_back(m);
    if (a.access & MSL_WRITE) l->written.push_back(m);
  }
  return "";
}

void once(std::vector<Memory*>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

// ---- passes

// keyOf is everything that a launch depends on.
void keyOf(const msl_dispatch* x, int n, uint32_t flags, std::string* key) {
  key->clear();
  auto add = [key](const auto& v) { key->append(reinterpret_cast<const char*>(&v), sizeof v); };
  add(flags);
  for (int i = 0; i < n; i++) {
    add(x[i].pipeline->serial);
    add(x[i].level);
    add(x[i].count);
    add(*x[i].grid);
    for (uint32_t j = 0; j < x[i].count; j++) {
      const msl_binding& b = x[i].bindings[j];
      add(b.index);
      add(b.inlineBytes);
      if (b.inlineBytes) key->append(static_cast<const char*>(b.base), b.inlineBytes);
      else add(b.base);
    }
  }
}

uint64_t hashOf(const std::string& s) {
  uint64_t h = 0x9e3779b97f4a7c15u, w;
  size_t i = 0;
  for (; i + 8 <= s.size(); i += 8) {
    memcpy(&w, s.data() + i, 8);
    h = (h ^ w) * 0xff51afd7ed558ccdu;
    h ^= h >> 29;
  }
  for (; i < s.size(); i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
  return h ^ s.size();
}

// build makes what a pass is launched by. "" or what is wrong.
std::string build(const msl_dispatch* x, int n, uint32_t flags, Launch* l) {
  Driver& d = driver();
  Graph graph = nullptr;
  if (n > 1)
    if (Result r = d.cuGraphCreate(&graph, 0)) return d.text(r, "cuGraphCreate");
  std::string wrong;
  std::vector<GraphNode> before, now; // nodes of the level before, and of this one
  for (int i = 0; i < n && wrong.empty(); i++) {
    msl_pipeline& p = *x[i].pipeline;
    Code& c = p.code[flags & MSL_CUDA_POISON ? 1 : 0];
    if (!c.function && c.wrong.empty()) c = codeOf(p, flags & MSL_CUDA_POISON);
    if (!c.wrong.empty()) {
      wrong = p.kernel + ": " + c.wrong;
      break;
    }
    auto args = std::make_unique<msl_cuda_args>();
    uint32_t dynamic = 0;
    wrong = bindArguments(x[i], p, args.get(), &dynamic, l);
    const msl_grid& g = *x[i].grid;
    if (wrong.empty()) wrong = limits(p, c, g, dynamic);
    if (!wrong.empty()) break;
    if (n == 1) {
      l->function = c.function;
      l->grid = g;
      l->sharedBytes = dynamic;
      l->args = std::move(args);
      break;
    }
    if (i > 0 && x[i].level != x[i - 1].level) before = std::exchange(now, {});
    void* parameters[] = {args.get()};
    KernelNode k{c.function, {g.groups[0], g.groups[1], g.groups[2]}, {g.threads[0], g.threads[1], g.threads[2]}, dynamic, parameters, nullptr, nullptr, nullptr};
    GraphNode node = nullptr;
    if (Result r = d.cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &k)) {
      wrong = p.kernel + ": " + d.text(r, "cuGraphAddKernelNode");
      break;
    }
    now.push_back(node);
#ifdef MSL_CUDA_WAITS
    const bool single = before.size() == 1 && (i + 1 == n || x[i + 1].level != x[i].level) && now.size() == 1;
    const Edge edge = single && executor().earlyEdges ? programmaticEdge : Edge{};
#else
    const Edge edge{};
#endif
    for (GraphNode b : before)
      if (Result r = d.cuGraphAddDependencies_v2(graph, &b, &node, &edge, 1)) wrong = p.kernel + ": " + d.text(r, "cuGraphAddDependencies");
  }
  if (wrong.empty() && n > 1)
    if (Result r = d.cuGraphInstantiateWithFlags(&l->exec, graph, 0)) wrong = d.text(r, "cuGraphInstantiate");
  if (graph) d.cuGraphDestroy(graph);
  once(l->used);
  once(l->written);
  return wrong;
}

Event takeEvent() {
  Executor& e = executor();
  if (e.idleEvents.empty()) {
    Event made = nullptr;
    driver().cuEventCreate(&made, 0);
    return made;
  }
  Event v = e.idleEvents.back();
  e.idleEvents.pop_back();
  return v;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// trim lets go of launches that were not used for longest.
void trim() {
  Executor& e = executor();
  for (auto it = e.kept.end(); e.kept.size() > mostKept && it != e.kept.begin();) {
    --it;
    if (it->second.flying) continue;
    if (it->second.exec) driver().cuGraphExecDestroy(it->second.exec);
    for (auto h = e.byHash.begin(); h != e.byHash.end(); ++h)
      if (h->second == it) {
        e.byHash.erase(h);
        break;
      }
    it = e.kept.erase(it);
  }
}
} // namespace
} // namespace pondcuda

using namespace pondcuda;

struct msl_submission {
  Launch* launch; // in the list of those kept, which does not move its elements
  Event start, end;
  std::string kernels; // for an error's text
};

EXPORT void msl_cuda_set_compiler(msl_cuda_compiler f) { executor().compiler = f; }

EXPORT msl_pipeline* msl_pipeline_new(msl_library* lib, const char* kernel, const msl_constant* constants, int n, char* text, size_t textBytes) {
  if (!driver().wrong.empty()) return fail(text, textBytes, driver().wrong), nullptr;
  // What is wrong with the constants libmsl says, whose function this one hides.
  using New = decltype(&msl_pipeline_new);
  using Free = void (*)(msl_pipeline*);
  static const New check = reinterpret_cast<New>(dlsym(RTLD_NEXT, "msl_pipeline_new"));
  static const Free free = reinterpret_cast<Free>(dlsym(RTLD_NEXT, "msl_pipeline_free"));
  if (!check || !free) return fail(text, textBytes, "the tables' library is not loaded"), nullptr;
  msl_pipeline* host = check(lib, kernel, constants, n, text, textBytes);
  if (!host) return nullptr;
  free(host);
  auto p = std::make_unique<msl_pipeline>();
  p->serial = ++executor().pipelines;
  p->library = lib;
  p->kernel = kernel;
  for (int i = 0; i < n; i++) p->constants.push_back({constants[i], std::string(static_cast<const char*>(constants[i].value), constants[i].bytes)});
  msl_kernel_describe(lib, kernel, &p->info);
  for (uint32_t i = 0; i < p->info.args; i++) {
    msl_arg_info a;
    if (msl_kernel_arg(lib, kernel, int(i), &a) == 0) p->args.push_back(a);
  }
  p->code[0] = codeOf(*p, 0);
  if (!p->code[0].wrong.empty()) return fail(text, textBytes, std::string(kernel) + ": " + p->code[0].wrong), nullptr;
  return p.release();
}

EXPORT void msl_pipeline_free(msl_pipeline* p) { delete p; }

EXPORT msl_submission* msl_submit(const msl_dispatch* x, int n, uint32_t flags, char* text, size_t textBytes) {
  Executor& e = executor();
  Driver& d = driver();
  if (!d.wrong.empty()) return fail(text, textBytes, d.wrong), nullptr;
  if (n < 1) return fail(text, textBytes, "nothing to run"), nullptr;
  d.enter();
  std::lock_guard g(e.mu);
  std::string key;
  key.reserve(size_t(n) * 512);
  keyOf(x, n, flags, &key);
  const uint64_t h = hashOf(key);
  auto found = e.byHash.find(h);
  if (found == e.byHash.end() || found->second->first != key) {
    Launch l;
    std::string wrong = build(x, n, flags, &l);
    if (!wrong.empty()) {
      if (l.exec) d.cuGraphExecDestroy(l.exec);
      return fail(text, textBytes, wrong), nullptr;
    }
    e.kept.emplace_front(std::move(key), std::move(l));
    e.byHash[h] = e.kept.begin();
    trim();
    found = e.byHash.find(h);
  } else {
    e.kept.splice(e.kept.begin(), e.kept, found->second);
  }
  Launch& l = found->second->second;
  std::string wrong = uploadWritten(l.used, d.work);
  if (!wrong.empty()) return fail(text, textBytes, wrong), nullptr;
  auto s = std::make_unique<msl_submission>();
  s->launch = &l;
  s->start = takeEvent();
  s->end = takeEvent();
  Result r = d.cuEventRecord(s->start, d.work);
  const char* what = "cuEventRecord";
  if (!r && l.exec) {
    r = d.cuGraphLaunch(l.exec, d.work);
    what = "cuGraphLaunch";
  } else if (!r) {
    void* parameters[] = {l.args.get()};
    const msl_grid& q = l.grid;
    r = d.cuLaunchKernel(l.function, q.groups[0], q.groups[1], q.groups[2], q.threads[0], q.threads[1], q.threads[2], l.sharedBytes, d.work, parameters, nullptr);
    what = "cuLaunchKernel";
  }
  if (!r) r = d.cuEventRecord(s->end, d.work);
  if (r) {
    e.idleEvents.push_back(s->start);
    e.idleEvents.push_back(s->end);
    return fail(text, textBytes, d.text(r, what)), nullptr;
  }
  l.flying++;
  willWrite(l.written);
  return s.release();
}

EXPORT int msl_finish(msl_submission* submission, double* seconds, char* text, size_t textBytes) {
  std::unique_ptr<msl_submission> s(submission);
  Executor& e = executor();
  Driver& d = driver();
  d.enter();
  // Looking costs a processor and saves the time that the system takes to wake a thread.
  Result r;
  while ((r = d.cuEventQuery(s->end)) == notReady) relax();
  float ms = 0;
  if (!r) r = d.cuEventElapsedTime(&ms, s->start, s->end);
  if (seconds) *seconds = double(ms) * 1e-3;
  std::lock_guard g(e.mu);
  willWrite(s->launch->written);
  s->launch->flying--;
  e.idleEvents.push_back(s->start);
  e.idleEvents.push_back(s->end);
  if (!r) return fail(text, textBytes, ""), 0;
  fail(text, textBytes, d.text(r, "the GPU stopped"));
  return r == illegalAddress || r == misalignedAddress ? MSL_FAULT : r == launchTimeout ? MSL_TIMEOUT : MSL_FAILED;
}

EXPORT int msl_run(msl_pipeline* p, const msl_binding* bindings, int n, const msl_grid* grid, const msl_options* o, msl_counts* counts, char* text, size_t textBytes) {
  const uint32_t flags = o ? o->flags : 0;
  if (flags & (MSL_CHECK | MSL_COUNT)) return fail(text, textBytes, p->kernel + ": checks and counts are made on the processor, want a session without them on this GPU");
  msl_dispatch x{p, bindings, uint32_t(n), 0, grid};
  msl_submission* s = msl_submit(&x, 1, flags & MSL_POISON, text, textBytes);
  if (!s) return MSL_FAILED;
  if (int rc = msl_finish(s, nullptr, text, textBytes)) {
    std::string what = text ? text : "";
    fail(text, textBytes, p->kernel + ": " + what);
    return rc;
  }
  if (counts) {
    counts->dispatches++;
    counts->threadgroups += uint64_t(grid->groups[0]) * grid->groups[1] * grid->groups[2];
    counts->threads += uint64_t(grid->groups[0]) * grid->groups[1] * grid->groups[2] * grid->threads[0] * grid->threads[1] * grid->threads[2];
  }
  return 0;
}
