// Autorelease pools. A token names one pool of the process, so that a pop on another thread, out of order or repeated is told apart.
#include "objc_pool.h"

#include <map>
#include <mutex>
#include <thread>

#include "objc_runtime.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace pond {
namespace {

struct Pool {
  uintptr_t token;
  std::vector<Object*> objects;
};

struct OpenPools {
  std::mutex mu;
  uintptr_t next = 0x10;
  std::map<uintptr_t, std::thread::id> thread;  // of each open pool
};

OpenPools& open() {
  static OpenPools* p = new OpenPools;
  return *p;
}

// The pools of one thread, innermost last.
struct Stack {
  std::vector<Pool> pools;
  ~Stack() {
    for (const Pool& p : pools) {
      report("pool", "a thread ended with an autorelease pool open and %zu objects in it", p.objects.size());
      std::lock_guard g(open().mu);
      open().thread.erase(p.token);
    }
  }
};
thread_local Stack tStack;

void drain(Pool p) {
  for (size_t i = p.objects.size(); i-- > 0;) release(p.objects[i]);
}

}  // namespace

EXPORT uintptr_t objc_autoreleasePoolPush() {
  uintptr_t token;
  {
    std::lock_guard g(open().mu);
    token = open().next += 0x10;
    open().thread[token] = std::this_thread::get_id();
  }
  tStack.pools.push_back({token, {}});
  return token;
}

EXPORT void objc_autoreleasePoolPop(uintptr_t token) {
  {
    std::lock_guard g(open().mu);
    auto it = open().thread.find(token);
    if (it == open().thread.end()) {
      report("pool", "objc_autoreleasePoolPop(0x%zx): no such pool is open", size_t(token));
      return;
    }
    if (it->second != std::this_thread::get_id()) {
      report("pool", "objc_autoreleasePoolPop(0x%zx): the pool was pushed on another thread", size_t(token));
      return;
    }
    open().thread.erase(it);
  }
  std::vector<Pool>& pools = tStack.pools;
  if (pools.back().token != token) report("pool", "objc_autoreleasePoolPop(0x%zx): an inner pool is still open", size_t(token));
  while (!pools.empty()) {
    Pool p = std::move(pools.back());
    pools.pop_back();
    bool last = p.token == token;
    if (!last) {
      std::lock_guard g(open().mu);
      open().thread.erase(p.token);
    }
    drain(std::move(p));
    if (last) return;
  }
}

Object* autorelease(Object* o) {
  if (!o || !o->session) return o;
  if (tStack.pools.empty()) {
    misuse("pool", "%s is autoreleased on a thread without a pool: it leaks", describe(o).c_str());
    return o;
  }
  tStack.pools.back().objects.push_back(o);
  return o;
}

void endPools() {
  std::lock_guard g(open().mu);
  if (!open().thread.empty()) report("pool", "%zu autorelease pools are still open at the end", open().thread.size());
}

}  // namespace pond

EXPORT pond::Object* objc_autorelease(pond::Object* o) { return pond::isObject(o) ? pond::autorelease(o) : o; }
EXPORT pond::Object* objc_retainAutoreleasedReturnValue(pond::Object* o) {
  if (pond::isObject(o)) pond::retain(o);
  return o;
}
