// cuda_memory.cpp - memory that CPU and GPU share, as Metal promises it, made of two: a buffer lies on the GPU for good, and its pages in the program's address
// space are copied over when either side looks.
//
// Each chunk of a buffer is in one of three states: clean (both have the same; the page can be read, not written), dirty (the program wrote; it goes over
// before the next pass that uses it), stale (a kernel may have written; the page cannot be touched). The page tables say which, so nothing is spent on what
// nobody touches: a token costs a fault a buffer that the program writes or reads, and weights cost none. Plain device memory, because memory that the
// driver moves by itself would fault on the GPU in every step.
//
// A fault is a signal on the thread that touched the page. The handler only asks; a thread of our own copies and answers, because nothing of the driver
// may be called in a handler.
//
// Invariants: views are never touched here, aliases are; addresses are never given twice.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "cuda_internal.h"

namespace pondcuda {
namespace {
constexpr uint64_t pageBytes = 4096, guardBytes = 64 << 10, chunkBytes = 1 << 20, arenaBytes = uint64_t(4) << 40;
enum State : uint8_t { clean, dirty, stale };

struct Arena {
  char *view = nullptr, *alias = nullptr;
  int file = -1, ask[2] = {-1, -1};
  std::string wrong;
  std::mutex mu; // protects all below, and the memories
  uint64_t used = guardBytes;
  std::map<uintptr_t, std::unique_ptr<Memory>> all; // by view
  std::vector<Memory*> waiting;                     // with dirty chunks
};

Arena& arena();

bool covers(const Memory& m, uintptr_t p) { return p >= uintptr_t(m.view) && p < uintptr_t(m.view) + std::max<uint64_t>(m.bytes, 1); }

Memory* find(Arena& a, const void* p) {
  auto it = a.all.upper_bound(uintptr_t(p));
  if (it == a.all.begin()) return nullptr;
  Memory* m = (--it)->second.get();
  return covers(*m, uintptr_t(p)) ? m : nullptr;
}

uint64_t lengthOf(const Memory& m, size_t chunk) { return std::min(chunkBytes, m.bytes - chunk * chunkBytes); }

void protect(const Memory& m, size_t chunk, size_t chunks, int how) {
  const uint64_t at = chunk * chunkBytes, n = std::min(chunks * chunkBytes, m.bytes - at);
  mprotect(m.view + at, (n + pageBytes - 1) / pageBytes * pageBytes, how);
}

// ---- faults

struct Ask {
  void* address;
  std::atomic<int> answer{0}; // 1: try again, 2: not our business
};

void futexWait(std::atomic<int>* a) { syscall(SYS_futex, a, FUTEX_WAIT, 0, nullptr, nullptr, 0); }
void futexWake(std::atomic<int>* a) { syscall(SYS_futex, a, FUTEX_WAKE, 1, nullptr, nullptr, 0); }

struct sigaction before;

void onFault(int sig, siginfo_t* info, void* context) {
  Arena& a = arena();
  const uintptr_t p = uintptr_t(info->si_addr);
  if (p >= uintptr_t(a.view) && p < uintptr_t(a.view) + arenaBytes) {
    const int saved = errno;
    Ask ask{info->si_addr};
    Ask* which = &ask;
    if (write(a.ask[1], &which, sizeof which) == ssize_t(sizeof which)) {
      while (ask.answer.load() == 0) futexWait(&ask.answer);
      errno = saved;
      if (ask.answer.load() == 1) return;
    }
    errno = saved;
  }
  if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(sig, info, context);
  else if (before.sa_handler == SIG_DFL) signal(sig, SIG_DFL); // it happens again, and ends the process
  else if (before.sa_handler != SIG_IGN) before.sa_handler(sig);
}

// serve brings a touched chunk to where the touch is allowed. A store to a stale chunk takes two rounds.
bool serve(Arena& a, void* address) {
  std::lock_guard g(a.mu);
  Memory* m = find(a, address);
  if (!m) return false;
  const size_t c = size_t(static_cast<char*>(address) - m->view) / chunkBytes;
  switch (m->states[c]) {
    case stale: {
      Driver& d = driver();
      // Behind a sticky error of the GPU nothing can be read; the program sees what it had, and the error in its command buffer.
      if (d.cuMemcpyDtoHAsync_v2(m->alias + c * chunkBytes, m->device + c * chunkBytes, lengthOf(*m, c), d.copies) == 0) d.cuStreamSynchronize(d.copies);
      m->states[c] = clean;
      m->stale--;
      protect(*m, c, 1, PROT_READ);
      break;
    }
    case clean:
      m->states[c] = dirty;
      protect(*m, c, 1, PROT_READ | PROT_WRITE);
      if (!m->waiting) {
        m->waiting = true;
        a.waiting.push_back(m);
      }
      break;
    default: break; // another thread was faster
  }
  return true;
}

void serveFaults(Arena* a) {
  driver().enter();
  for (;;) {
    Ask* which;
    if (read(a->ask[0], &which, sizeof which) != ssize_t(sizeof which)) continue;
    which->answer = serve(*a, which->address) ? 1 : 2;
    futexWake(&which->answer);
  }
}

std::string open(Arena& a) {
  if (!driver().wrong.empty()) return driver().wrong;
  a.file = memfd_create("pond-cuda", MFD_CLOEXEC);
  if (a.file < 0 || ftruncate(a.file, off_t(arenaBytes)) || pipe2(a.ask, O_CLOEXEC)) return std::string("address space for buffers: ") + strerror(errno);
  void* view = mmap(nullptr, arenaBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, a.file, 0);
  void* alias = mmap(nullptr, arenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a.file, 0);
  if (view == MAP_FAILED || alias == MAP_FAILED) return std::string("address space for buffers: ") + strerror(errno);
  a.view = static_cast<char*>(view);
  a.alias = static_cast<char*>(alias);
  // A thread without signals of the program's: a Go program's handlers expect its own threads.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread(serveFaults, &a).detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return "";
}

Arena& arena() {
  static Arena* a = [] {
    Arena* made = new Arena; // never destroyed: the thread that serves outlives main
    made->wrong = open(*made);
    return made;
  }();
  return *a;
}

// install takes faults, in front of whoever has them now. The arena is there before, so that the handler finds it made.
void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    arena();
    struct sigaction sa = {};
    sa.sa_sigaction = onFault;
    sa.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &sa, &before);
  });
}
} // namespace

Memory* findMemory(const void* p) {
  Arena& a = arena();
  std::lock_guard g(a.mu);
  return find(a, p);
}

std::string uploadWritten(const std::vector<Memory*>& used, Stream stream) {
  Arena& a = arena();
  Driver& d = driver();
  std::lock_guard g(a.mu);
  std::string wrong;
  std::erase_if(a.waiting, [&](Memory* m) {
    if (!std::binary_search(used.begin(), used.end(), m)) return false;
    for (size_t c = 0; c < m->states.size(); c++) {
      if (m->states[c] != dirty) continue;
      m->states[c] = clean; // before the copy: a store during it makes the chunk dirty again
      protect(*m, c, 1, PROT_READ);
      if (Result r = d.cuMemcpyHtoDAsync_v2(m->device + c * chunkBytes, m->alias + c * chunkBytes, lengthOf(*m, c), stream)) wrong = d.text(r, "cuMemcpyHtoDAsync");
    }
    m->waiting = false;
    return true;
  });
  return wrong;
}

void willWrite(const std::vector<Memory*>& written) {
  std::lock_guard g(arena().mu);
  for (Memory* m : written) {
    if (m->stale == m->states.size()) continue;
    // What the program wrote and no pass has taken yet stays.
    for (size_t c = 0; c < m->states.size(); c++) {
      if (m->states[c] != clean) continue;
      size_t end = c;
      for (; end < m->states.size() && m->states[end] == clean; end++) m->states[end] = stale;
      m->stale += end - c;
      protect(*m, c, end - c, PROT_NONE);
      c = end;
    }
  }
}
} // namespace pondcuda

using namespace pondcuda;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void* msl_memory_new(uint64_t bytes, const char* label, uint32_t) {
  install();
  Arena& a = arena();
  Driver& d = driver();
  if (!a.wrong.empty()) return nullptr;
  d.enter();
  auto m = std::make_unique<Memory>();
  if (d.cuMemAlloc_v2(&m->device, std::max<uint64_t>(bytes, 1))) return nullptr;
  // On the stream of the work, so that it is done before any kernel.
  if (bytes && d.cuMemsetD8Async(m->device, 0, bytes, d.work)) {
    d.cuMemFree_v2(m->device);
    return nullptr;
  }
  m->bytes = bytes;
  m->label = label ? label : "";
  m->states.assign((bytes + chunkBytes - 1) / chunkBytes, clean);
  std::lock_guard g(a.mu);
  const uint64_t body = (bytes + pageBytes) / pageBytes * pageBytes; // at least a page
  if (a.used + body + guardBytes > arenaBytes) {
    d.cuMemFree_v2(m->device);
    return nullptr;
  }
  m->view = a.view + a.used;
  m->alias = a.alias + a.used;
  a.used += body + guardBytes;
  if (bytes) protect(*m, 0, m->states.size(), PROT_READ); // zero on both sides
  void* view = m->view;
  a.all[uintptr_t(view)] = std::move(m);
  return view;
}

// Memory of the program cannot be given to the GPU without copying.
EXPORT void* msl_memory_wrap(void*, uint64_t, const char*) { return nullptr; }

EXPORT void msl_memory_label(void* base, const char* label) {
  Arena& a = arena();
  std::lock_guard g(a.mu);
  if (Memory* m = find(a, base)) m->label = label ? label : "";
}

EXPORT void msl_memory_free(void* base) {
  if (!base) return;
  Arena& a = arena();
  driver().enter();
  std::lock_guard g(a.mu);
  auto it = a.all.find(uintptr_t(base));
  if (it == a.all.end()) return;
  Memory& m = *it->second;
  std::erase(a.waiting, &m);
  driver().cuMemFree_v2(m.device);
  const uint64_t body = (m.bytes + pageBytes) / pageBytes * pageBytes;
  mprotect(m.view, body, PROT_NONE);
  fallocate(a.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(m.view - a.view), off_t(body));
  a.all.erase(it);
}

EXPORT void msl_memory_unwritten(void*, uint64_t, uint64_t) {} // for checks, which compute-sanitizer makes here

EXPORT void msl_memory_traffic(void*, msl_traffic* out) { memset(out, 0, sizeof *out); }

EXPORT int msl_cuda_repeat(void* base, uint64_t bytes, const void* pattern, uint64_t patternBytes) {
  Memory* m = findMemory(base);
  Driver& d = driver();
  d.enter();
  const uint64_t off = m ? uint64_t(static_cast<char*>(base) - m->view) : 0;
  if (!m || patternBytes == 0 || bytes > m->bytes - off) return 1;
  const DeviceAddress to = m->device + off;
  const uint64_t first = std::min(bytes, patternBytes);
  if (d.cuMemcpyHtoDAsync_v2(to, pattern, first, d.work)) return 1;
  for (uint64_t done = first; done < bytes;) {
    const uint64_t n = std::min(bytes - done, done / patternBytes * patternBytes);
    if (d.cuMemcpyDtoDAsync_v2(to + done, to, n, d.work)) return 1;
    done += n;
  }
  if (d.cuStreamSynchronize(d.work)) return 1;
  willWrite({m});
  return 0;
}

EXPORT double msl_cuda_copy_rate(uint64_t bytes, int times) {
  Driver& d = driver();
  if (!d.wrong.empty()) return 0;
  d.enter();
  DeviceAddress from = 0, to = 0;
  Event start = nullptr, end = nullptr;
  float ms = 0;
  const bool good = !d.cuMemAlloc_v2(&from, bytes) && !d.cuMemAlloc_v2(&to, bytes) && !d.cuMemsetD8Async(from, 0x5a, bytes, d.work) && !d.cuMemcpyDtoDAsync_v2(to, from, bytes, d.work) &&
                    !d.cuEventCreate(&start, 0) && !d.cuEventCreate(&end, 0) && !d.cuEventRecord(start, d.work) && [&] {
                      for (int i = 0; i < times; i++)
                        if (d.cuMemcpyDtoDAsync_v2(to, from, bytes, d.work)) return false;
                      return true;
                    }() && !d.cuEventRecord(end, d.work) && !d.cuEventSynchronize(end) && !d.cuEventElapsedTime(&ms, start, end);
  if (from) d.cuMemFree_v2(from);
  if (to) d.cuMemFree_v2(to);
  return good && ms > 0 ? 2.0 * double(bytes) * times / (ms * 1e-3) : 0;
}
