// Objects, classes, the look-up behind objc_msgSend, and the list of reports. Autorelease pools are in objc_pool.cpp.
#include "objc_runtime.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "objc_pool.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" void pond_objc_refused();
extern "C" void pond_objc_refused_stret();

namespace pond {
namespace {

constexpr size_t kCells = size_t(1) << 24;   // address space only: 1 GiB, touched as objects are made
constexpr size_t kQuarantine = size_t(1) << 16;  // dead cells kept by name before one is used again

struct Runtime {
  Object* cells;
  std::atomic<size_t> used{0};
  std::atomic<uint64_t> serial{0};
  std::atomic<uint32_t> session{0};
  std::atomic<int> version{15};
  uint32_t sessions = 0;
  std::mutex mu;  // dead, classes, selectors
  std::deque<Object*> dead;
  std::vector<Class*> classes;
  std::unordered_map<std::string, SEL> selectors;
  std::mutex reportsMu;
  std::vector<std::pair<std::string, int>> reports;  // text, times
  std::map<std::string, size_t> seen;
  std::atomic<const Method*> cache[4096]{};

  Runtime() {
    void* p = mmap(nullptr, kCells * sizeof(Object), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
      std::fprintf(stderr, "pond stand-in: no address space for objects\n");
      std::abort();
    }
    cells = static_cast<Object*>(p);
  }
};

Runtime& rt() {
  static Runtime* r = new Runtime;  // never destroyed: threads may still send messages at exit
  return *r;
}

thread_local const Method* tMethod;
thread_local bool tOfClass;

Object* newCell(Class* cls, State* state, uint32_t session) {
  Runtime& r = rt();
  Object* o = nullptr;
  {
    std::lock_guard g(r.mu);
    if (r.dead.size() > kQuarantine) {
      o = r.dead.front();
      r.dead.pop_front();
    } else if (r.used.load() < kCells) {
      o = r.cells + r.used.load();
      r.used.fetch_add(1);
    }
  }
  if (!o) {
    std::fprintf(stderr, "pond stand-in: more than %zu objects alive\n", kCells);
    std::abort();
  }
  o->isa = cls;
  o->state = state;
  o->refs = 1;
  o->held = 0;
  o->session = session;
  o->serial = ++r.serial;
  o->life = Life::alive;
  state->self = o;
  return o;
}

void destroy(Object* o) {
  State* s = o->state;
  o->life = Life::dead;
  delete s;
  o->state = nullptr;
  std::lock_guard g(rt().mu);
  rt().dead.push_back(o);
}

std::string vtext(const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = std::vsnprintf(nullptr, 0, format, again);
  va_end(again);
  std::string s(size_t(n), 0);
  std::vsnprintf(s.data(), size_t(n) + 1, format, args);
  return s;
}

void record(const char* kind, const std::string& what) {
  Runtime& r = rt();
  std::string line = std::string(kind) + "\t" + what;
  std::lock_guard g(r.reportsMu);
  constexpr size_t most = 1000;  // a program that goes on regardless must not fill the memory
  if (r.reports.size() >= most && !r.seen.contains(line)) line = "more\tfurther reports that were not kept";
  auto [it, fresh] = r.seen.try_emplace(line, r.reports.size());
  if (fresh) r.reports.emplace_back(line, 1);
  else r.reports[it->second].second++;
}

// Wanted is what a parameter expects, for the report.
std::string wanted(const Param& p) { return p.cls ? p.cls->name : "an object"; }

// checkArguments compares the saved registers with the method's parameters; false: the message is refused.
bool checkArguments(const Method* m, const Frame* f) {
  bool good = true;
  for (size_t i = 0; i < m->params.size(); i++) {
    const Param& p = m->params[i];
    if (p.kind == Param::other) continue;
    uint64_t v = p.integer >= 0 ? f->integer[p.integer] : f->stack()[p.stack];
    if (p.kind == Param::boolean) {
      if ((v & 0xff) > 1) {
        misuse("argument-type", "argument %zu: got %llu, want a BOOL (0 or 1)", i + 1, static_cast<unsigned long long>(v & 0xff));
        good = false;
      }
      continue;
    }
    if (v == 0) {
      if (!p.nullable) {
        misuse("argument-type", "argument %zu: got nil, want %s", i + 1, p.kind == Param::pointer ? "a pointer" : wanted(p).c_str());
        good = false;
      }
      continue;
    }
    if (p.kind != Param::object) continue;
    const void* q = reinterpret_cast<const void*>(v);
    if (!isObject(q)) {
      misuse("argument-type", "argument %zu: got 0x%llx, which is no object, want %s", i + 1, static_cast<unsigned long long>(v), wanted(p).c_str());
      good = false;
      continue;
    }
    const Object* o = static_cast<const Object*>(q);
    if (o->life != Life::alive || (o->session && outside(o) <= 0)) {
      misuse("use-after-release", "argument %zu: %s has been released", i + 1, describe(o).c_str());
      good = false; // what only Metal still holds may go at any moment
    }
    if (p.cls && !o->isa->derives(p.cls)) {
      misuse("argument-type", "argument %zu: got %s, want %s", i + 1, describe(o).c_str(), p.cls->name);
      good = false;
    }
  }
  return good;
}

const Method* findMethod(Class* cls, SEL sel) {
  Runtime& r = rt();
  size_t h = (reinterpret_cast<uintptr_t>(cls) >> 4 ^ reinterpret_cast<uintptr_t>(sel) >> 3) & 4095;
  const Method* m = r.cache[h].load(std::memory_order_acquire);
  if (m && m->cls == cls && m->sel == sel) return m;
  m = cls->find(sel);
  if (m && m->cls == cls) r.cache[h].store(m, std::memory_order_release);
  return m;
}

IMP refused(int stret) {
#if defined(__x86_64__)
  return stret ? pond_objc_refused_stret : pond_objc_refused;
#else
  (void)stret;
  return pond_objc_refused;
#endif
}

}  // namespace

// ---- reports

std::string text(const char* format, ...) {
  va_list a;
  va_start(a, format);
  std::string s = vtext(format, a);
  va_end(a);
  return s;
}

void report(const char* kind, const char* format, ...) {
  va_list a;
  va_start(a, format);
  record(kind, vtext(format, a));
  va_end(a);
}

void misuse(const char* kind, const char* format, ...) {
  va_list a;
  va_start(a, format);
  std::string s = vtext(format, a);
  va_end(a);
  std::string where = current();
  record(kind, where.empty() ? s : where + ": " + s);
}

std::string describe(const Object* o) {
  if (!o) return "nil";
  if (o->session == 0) return std::string("class ") + o->isa->name;
  return text("%s #%llu", o->isa->name, static_cast<unsigned long long>(o->serial));
}

std::string current() {
  if (!tMethod) return "";
  return text("%c[%s %s]", tOfClass ? '+' : '-', tMethod->cls->name, tMethod->sel);
}

std::vector<std::string> takeReports() {
  Runtime& r = rt();
  std::vector<std::string> out;
  std::lock_guard g(r.reportsMu);
  for (auto& [line, times] : r.reports) out.push_back(times > 1 ? text("%s (%d times)", line.c_str(), times) : line);
  r.reports.clear();
  r.seen.clear();
  return out;
}

// ---- classes

Class::Class(const char* n, Class* s, bool protocol) : name(n), super(s), meta(nullptr), isProtocol(protocol) {}

const Method* Class::find(SEL sel) const {
  for (const Class* c = this; c; c = c->super)
    for (const Method* m = c->methods; m; m = m->next)
      if (m->sel == sel) return m;
  return nullptr;
}

bool Class::derives(const Class* c) const {
  for (const Class* k = this; k; k = k->super)
    if (k == c) return true;
  return false;
}

Class* newClass(const char* name, Class* super, bool protocol) {
  Class* c = new Class(name, super, protocol);
  c->meta = new Class(name, super ? super->meta : c, protocol);
  newCell(c->meta, c, 0);
  std::lock_guard g(rt().mu);
  rt().classes.push_back(c);
  return c;
}

EXPORT SEL sel_registerName(const char* name) {
  Runtime& r = rt();
  std::lock_guard g(r.mu);
  auto it = r.selectors.find(name);
  if (it != r.selectors.end()) return it->second;
  return r.selectors[name] = strdup(name);
}

EXPORT const char* sel_getName(SEL sel) { return sel; }

EXPORT Object* objc_getClass(const char* name) {
  Runtime& r = rt();
  std::lock_guard g(r.mu);
  for (Class* c : r.classes)
    if (!c->isProtocol && c->since <= r.version && !std::strcmp(c->name, name)) return c->self;
  return nullptr;
}

EXPORT Object* object_getClass(const Object* o) {
  if (!isObject(o) || !o->isa->self) return nullptr;
  return o->isa->self;
}

EXPORT const char* class_getName(const Object* cls) {
  return isObject(cls) && cls->session == 0 ? stateOf<Class>(cls)->name : "nil";
}

// Places an argument as the processor's calling convention does, to find it again in a Frame.
struct Placer {
  int integer = 2, stack = 0;
  Param place(const Type& t) {
    Param p{t.kind, t.nullable, t.cls ? *t.cls : nullptr, -1, -1};
    if (t.floating) return p;  // few enough for the vector registers
    int words = t.words;
#if defined(__aarch64__)
    if (words > 2) words = 1;  // a pointer to the caller's copy
    bool memory = false;
#else
    bool memory = words > 2;
#endif
    if (!memory && integer + words <= Frame::integerRegisters) {
      p.integer = int16_t(integer);
      integer += words;
      return p;
    }
#if defined(__aarch64__)
    integer = Frame::integerRegisters;
#endif
    p.stack = int16_t(stack);
    stack += words;
    return p;
  }
};

std::string encoding(const Type& t) { return t.cls ? std::string("@\"") + (*t.cls)->name + "\"" : t.code; }

void addMethod(Class* cls, const char* sel, IMP imp, int since, const Type& result, const Type* const* args, size_t n) {
  Method* m = new Method{cls, sel_registerName(sel), imp, encoding(result), {}, false, since, cls->methods};
  Placer p;
#if defined(__x86_64__)
  m->stret = result.words > 2;
  if (m->stret) p.integer = 3;
#endif
  for (const Method* k = cls->methods; k; k = k->next)
    if (k->sel == m->sel) {
      std::fprintf(stderr, "pond stand-in: [%s %s] defined twice\n", cls->name, sel);
      std::abort();
    }
  for (size_t i = 0; i < n; i++) {
    m->types += encoding(*args[i]);
    m->params.push_back(p.place(*args[i]));
  }
  cls->methods = m;
}

std::string methodTable() {
  Runtime& r = rt();
  std::lock_guard g(r.mu);
  std::string s;
  for (Class* c : r.classes)
    for (int meta = 0; meta < 2; meta++)
      for (const Method* m = (meta ? c->meta : c)->methods; m; m = m->next)
        s += text("%s\t%c\t%s\t%s\t%d\n", c->name, meta ? '+' : '-', m->sel, m->types.c_str(), m->since);
  return s;
}

// ---- the look-up

EXPORT IMP pond_objc_lookup(Object* self, SEL sel, const Frame* frame, int stret) {
  if (!isObject(self)) {
    report("no-object", "message %s to 0x%llx, which is no object", sel, static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(self)));
    return refused(stret);
  }
  Class* cls = self->isa;
  bool ofClass = cls->meta == nullptr;
  if (self->life != Life::alive) {
    bool over = !std::strcmp(sel, "release") || !std::strcmp(sel, "autorelease");
    report(over ? "over-release" : "use-after-release", "-[%s %s]: %s has been released", cls->name, sel, describe(self).c_str());
    return refused(stret);
  }
  const Method* m = findMethod(cls, sel);
  if (!m || m->since > rt().version) {
    report("unknown-selector", "%c[%s %s]: unrecognized selector sent to %s", ofClass ? '+' : '-', cls->name, sel, describe(self).c_str());
    return refused(stret);
  }
  tMethod = m;
  tOfClass = ofClass;
  if (m->stret != (stret != 0)) {
    misuse("result-type", "sent through %s, want %s", stret ? "objc_msgSend_stret" : "objc_msgSend", m->stret ? "objc_msgSend_stret" : "objc_msgSend");
    return refused(stret);
  }
  if (self->session && outside(self) <= 0) { // not run: another thread may let go of it at any moment
    bool over = !std::strcmp(sel, "release") || !std::strcmp(sel, "autorelease");
    misuse(over ? "over-release" : "use-after-release", "the program has released %s; only Metal still holds it", describe(self).c_str());
    return refused(stret);
  }
  if (!checkArguments(m, frame)) return refused(stret);
  return m->imp;
}

// ---- objects

bool isObject(const void* p) {
  Runtime& r = rt();
  uintptr_t off = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(r.cells);
  return off < r.used.load() * sizeof(Object) && off % sizeof(Object) == 0;
}

Object* make(Class* cls, State* state) { return newCell(cls, state, session()); }

Object* immortal(Class* cls, State* state) { return newCell(cls, state, 0); }

void retain(Object* o) {
  if (o->session) o->refs++;
}

void release(Object* o) {
  if (!o->session) return;
  if (o->life != Life::alive || outside(o) <= 0) {
    report("over-release", "%s is released more often than it was retained", describe(o).c_str());
    return;
  }
  if (o->refs.fetch_sub(1) == 1) destroy(o);
}

void hold(Object* o) {
  if (!o->session) return;
  o->refs++;
  o->held++;
}

void unhold(Object* o) {
  if (!o->session) return;
  o->held--;
  if (o->refs.fetch_sub(1) == 1) destroy(o);
}

EXPORT Object* objc_retain(Object* o) {
  if (!o) return nullptr;
  if (!isObject(o)) {
    report("no-object", "objc_retain of 0x%llx, which is no object", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(o)));
    return o;
  }
  if (o->life != Life::alive) {
    report("use-after-release", "objc_retain: %s has been released", describe(o).c_str());
    return o;
  }
  retain(o);
  return o;
}

EXPORT void objc_release(Object* o) {
  if (!o) return;
  if (!isObject(o)) report("no-object", "objc_release of 0x%llx, which is no object", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(o)));
  else release(o);
}

bool checkBlock(const Block* b, const char* signature) {
  constexpr int32_t global = 1 << 28, hasSignature = 1 << 30, hasCopy = 1 << 25;
  if (b->isa != pondGlobalBlock() || !(b->flags & global)) {
    misuse("block", "got a block that is not global, want one that needs no copy");
    return false;
  }
  if (!b->invoke || !b->descriptor || b->descriptor->size < sizeof(Block)) {
    misuse("block", "the block has no function or no descriptor");
    return false;
  }
  if (b->flags & hasSignature) {
    const char* got = reinterpret_cast<const char*>(b->descriptor->rest[b->flags & hasCopy ? 2 : 0]);
    if (!got || std::strcmp(got, signature)) {
      misuse("block", "the block's signature is %s, want %s", got ? got : "missing", signature);
      return false;
    }
  }
  return true;
}

// ---- a session

uint32_t session() { return rt().session; }
int systemVersion() { return rt().version; }

void beginSession(int version) {
  Runtime& r = rt();
  r.version = version;
  r.session = ++r.sessions;
}

std::vector<std::string> endSession() {
  Runtime& r = rt();
  std::vector<std::string> leaks;
  size_t used = r.used;
  for (size_t i = 0; i < used; i++) {
    Object* o = r.cells + i;
    if (o->life == Life::alive && o->session == r.session && outside(o) > 0)
      leaks.push_back(text("%s: %d references of the program are left", describe(o).c_str(), outside(o)));
  }
  endPools();
  r.session = 0;
  return leaks;
}

}  // namespace pond

// The data symbol that a global block's isa points to; Foundation has it on a Mac.
EXPORT void* _NSConcreteGlobalBlock[32];
void* _NSConcreteGlobalBlock[32] = {};
void* pond::pondGlobalBlock() { return _NSConcreteGlobalBlock; }
