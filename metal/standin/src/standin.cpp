// What Go asks of the stand-in itself, beside Metal: a session with its options, misuse reports, leaks, counters, faults, and the compiler's jobs.
// Texts come back as handles: pond_standin_text gives the characters, pond_standin_text_free lets go.
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "metal_objects.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace pond;

namespace {

std::string* handle(std::string s) { return s.empty() ? nullptr : new std::string(std::move(s)); }

std::string joined(const std::vector<std::string>& lines) {
  std::string s;
  for (const std::string& l : lines) {
    // A line each: texts of several lines are folded.
    for (char c : l) s += c == '\n' ? '\v' : c;
    s += '\n';
  }
  return s;
}

void defineAll() {
  static bool done = [] {
    defineFoundation();
    defineMetal();
    methodsOfFoundation();
    methodsOfDevice();
    methodsOfBuffer();
    methodsOfLibrary();
    methodsOfPipeline();
    methodsOfQueue();
    methodsOfEncoder();
    methodsOfSync();
    methodsOfCounters();
    return true;
  }();
  (void)done;
}

// configure reads one "key=value" line; false: no such key.
bool configure(Config& c, const std::string& key, const std::string& value) {
  auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
  if (key == "runtime") c.runtime = value;
  else if (key == "name") c.name = value;
  else if (key == "macos") c.macos = int(number());
  else if (key == "order") c.order = uint32_t(number());
  else if (key == "flags") c.flags = uint32_t(number());
  else if (key == "seed") c.seed = number();
  else if (key == "workers") c.workers = uint32_t(number());
  else if (key == "shuffleDispatches") c.shuffleDispatches = number() != 0;
  else if (key == "maxBufferLength") c.maxBufferLength = number();
  else if (key == "workingSet") c.workingSet = number();
  else if (key == "family") c.family = int(number());
  else if (key == "maxThreads") c.maxThreads = number();
  else return false;
  return true;
}

}  // namespace

// Classes exist as soon as the library is loaded, as they do on a Mac.
__attribute__((constructor)) static void loaded() { defineAll(); }

// pond_standin_open begins a session; one at a time in a process. The result is null, or what is wrong.
EXPORT std::string* pond_standin_open(const char* config, uintptr_t compile) {
  World& w = world();
  if (session()) return handle("a session is open already: one at a time in a process");
  Config c;
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) {
    size_t eq = line.find('=');
    if (eq == std::string::npos || !configure(c, line.substr(0, eq), line.substr(eq + 1))) return handle("unknown option: " + line);
  }
  c.compile = reinterpret_cast<CallbackJob>(compile);
  std::string wrong = w.kernels.load(c.runtime.c_str());
  if (!wrong.empty()) return handle("kernel runtime: " + wrong);
  w.config = c;
  w.totals = std::make_unique<Totals>();
  {
    std::lock_guard g(w.faults.mu);
    w.faults.at.clear();
  }
  beginSession(c.macos);
  takeReports();
  w.device = create<Device>()->self;
  hold(w.device);
  release(w.device);
  if (!w.captureManager) w.captureManager = immortal(classOf<CaptureManager>, new CaptureManager);
  stateOf<CaptureManager>(w.captureManager)->capturing = false;
  return nullptr;
}

// pond_standin_close waits for work in flight and ends the session. The result lists what the program still holds, a line each.
EXPORT std::string* pond_standin_close() {
  World& w = world();
  if (!session()) return nullptr;
  waitIdle();
  std::vector<std::string> leaks = endSession();
  unhold(std::exchange(w.device, nullptr));
  w.config.compile = nullptr;
  return handle(joined(leaks));
}

// pond_standin_reports takes the misuses since the last call: "kind\ttext" a line.
EXPORT std::string* pond_standin_reports() { return handle(joined(takeReports())); }

EXPORT std::string* pond_standin_counters() { return handle(counterReport()); }

EXPORT void pond_standin_reset_counters() {
  World& w = world();
  counterReport();  // takes the buffers' traffic
  std::lock_guard g(w.totals->mu);
  Totals& t = *w.totals;
  t.counts = {};
  t.commandBuffers = t.passes = t.levels = t.dispatches = t.barriers = 0;
  t.gpuSeconds = 0;
  t.buffers.clear();
  t.kernels.clear();
}

// pond_standin_methods lists all classes' methods: "class\t-\tselector\ttypes\tmacOS" a line.
EXPORT std::string* pond_standin_methods() { return handle(methodTable()); }

// pond_standin_fault makes the n-th event of a kind from now fail: "gpu-error", "allocation", "compile", "pipeline".
EXPORT void pond_standin_fault(const char* kind, uint64_t n, const char* what) {
  std::lock_guard g(world().faults.mu);
  world().faults.at[kind] = {n, what};
}

EXPORT const char* pond_standin_text(const std::string* h) { return h ? h->c_str() : ""; }
EXPORT void pond_standin_text_free(std::string* h) { delete h; }

EXPORT const char* pond_standin_job_source(const Job* j) { return j->source.c_str(); }
EXPORT const char* pond_standin_job_options(const Job* j) { return j->options.c_str(); }
EXPORT void pond_standin_job_done(Job* j, int ok, const char* result) {
  j->ok = ok != 0;
  j->answered = true;
  j->result = result;
}
