// msl_memory.cpp - memory that kernels read and write: guard zones, names, traffic.
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <shared_mutex>

#include "msl_internal.h"

namespace msl {
// All memory by its first mapped byte. The mutex protects the map; an entry's own fields belong to the dispatch that runs.
struct Registry {
  std::shared_mutex mu;
  std::map<uintptr_t, std::unique_ptr<Memory>> all;
  std::atomic<uint64_t> generation{1};
};
static Registry& registry() {
  static Registry* r = new Registry; // never destroyed: threads may outlive static objects
  return *r;
}
uint64_t memoryGeneration() { return registry().generation.load(std::memory_order_relaxed); }

static uintptr_t first(const Memory* m) { return uintptr_t(m->map ? m->map : m->base); }
static uintptr_t end(const Memory* m) { return m->map ? uintptr_t(m->map) + m->mapBytes : uintptr_t(m->base) + m->bytes; }

Memory* findMemory(const void* p) {
  Registry& r = registry();
  std::shared_lock<std::shared_mutex> lock(r.mu);
  auto it = r.all.upper_bound(uintptr_t(p));
  if (it == r.all.begin()) return nullptr;
  Memory* m = (--it)->second.get();
  return uintptr_t(p) < end(m) ? m : nullptr;
}

static void* add(std::unique_ptr<Memory> m) {
  void* base = m->base;
  for (auto& l : m->lines) l.resize(m->bytes / 4096 + 2);
  Registry& r = registry();
  std::unique_lock<std::shared_mutex> lock(r.mu);
  r.all[first(m.get())] = std::move(m);
  r.generation++;
  return base;
}
} // namespace msl

using namespace msl;

extern "C" {
void* msl_memory_new(uint64_t bytes, const char* label, uint32_t flags) {
  const uint64_t page = flags & MSL_PAGE_ALIGNED ? 16384 : PAGE;
  const uint64_t body = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
  const uint64_t length = body + 2 * GUARD_BYTES + (page - PAGE);
  char* map = (char*)mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  char* start = (char*)((uintptr_t(map) + GUARD_BYTES + page - 1) / page * page);
  if (mprotect(start, body, PROT_READ | PROT_WRITE)) {
    munmap(map, length);
    return nullptr;
  }
  auto m = std::make_unique<Memory>();
  m->map = map;
  m->mapBytes = length;
  // Up against the guard zone behind it, as far as the alignment allows.
  m->base = flags & MSL_PAGE_ALIGNED ? start : start + ((body - bytes) & ~uint64_t(15));
  m->bytes = bytes;
  m->label = label ? label : "";
  return add(std::move(m));
}

void* msl_memory_wrap(void* base, uint64_t bytes, const char* label) {
  auto m = std::make_unique<Memory>();
  m->map = nullptr;
  m->mapBytes = 0;
  m->base = (char*)base;
  m->bytes = bytes;
  m->label = label ? label : "";
  return add(std::move(m));
}

void msl_memory_label(void* base, const char* label) {
  if (Memory* m = findMemory(base)) m->label = label ? label : "";
}

void msl_memory_free(void* base) {
  if (!base) return;
  Registry& r = registry();
  std::unique_lock<std::shared_mutex> lock(r.mu);
  auto it = r.all.upper_bound(uintptr_t(base));
  if (it == r.all.begin()) return;
  Memory* m = (--it)->second.get();
  if (m->base != base) return;
  if (m->map) munmap(m->map, m->mapBytes);
  r.all.erase(it);
  r.generation++;
}

void msl_memory_unwritten(void* base, uint64_t offset, uint64_t bytes) {
  Memory* m = findMemory(base);
  if (!m || offset > m->bytes) return;
  if (m->unwritten.empty()) m->unwritten.resize(m->bytes);
  std::fill(m->unwritten.begin() + offset, m->unwritten.begin() + offset + std::min(bytes, m->bytes - offset), true);
}

void msl_memory_traffic(void* base, msl_traffic* out) {
  memset(out, 0, sizeof *out);
  Memory* m = findMemory(base);
  if (!m) return;
  *out = m->traffic;
  for (uint64_t b : m->lines[0]) out->loadLines += __builtin_popcountll(b);
  for (uint64_t b : m->lines[1]) out->storeLines += __builtin_popcountll(b);
  m->traffic = {};
  for (auto& l : m->lines) std::fill(l.begin(), l.end(), 0);
}
}
