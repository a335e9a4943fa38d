// The stand-in's Objective-C runtime: objects, classes, methods with checked argument types, reference counts, reports.
//
// Invariants:
//  * An object is a 64-byte cell of one arena, so any value can be asked whether it is an object, without touching foreign memory.
//  * A cell that died keeps its class and its "dead" mark until many others have died after it: a use after release is named, not a crash.
//  * References that objects of the stand-in have to each other (Held) are counted apart from those of the program: a release too
//    many, a use of an object that only the stand-in still holds, and a leak are each seen at once.
//  * A message that is refused is reported and returns 0; it never runs the method.
#pragma once
#include <algorithm>
#include <thread>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pond {

using SEL = const char*;  // interned: one address for a name
using IMP = void (*)();
using NSUInteger = uint64_t;
using NSInteger = int64_t;

struct MTLSize {
  NSUInteger width, height, depth;
};
struct NSRange {
  NSUInteger location, length;
};
struct NSOperatingSystemVersion {
  NSInteger major, minor, patch;
};

struct Class;
struct Object;

// What an object of the stand-in is, besides its cell.
struct State {
  Object* self = nullptr;
  virtual ~State() = default;
};

enum class Life : uint32_t { free, alive, dead };

struct alignas(64) Object {
  Class* isa;
  State* state;
  std::atomic<int32_t> refs;  // all references
  std::atomic<int32_t> held;  // those of them that other objects of the stand-in have
  std::atomic<Life> life;
  uint32_t session;  // the session (pond_standin_open) that made it; 0 for classes and other immortal objects
  uint64_t serial;   // the n-th object of the process, for reports
};
static_assert(sizeof(Object) == 64);

// Registers and stack of a message, as objc_msgSend saved them.
struct Frame {
#if defined(__x86_64__)
  uint64_t integer[6];
  const uint64_t* stack() const { return reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(this) + 0xc0 + 16); }
  static constexpr int integerRegisters = 6;
#else
  uint64_t integer[8];
  const uint64_t* stack() const { return reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(this) - 16 + 224); }
  static constexpr int integerRegisters = 8;
#endif
};

struct Param {
  enum Kind : uint8_t { other, object, boolean, pointer, block } kind;
  bool nullable;
  Class* cls;       // of an object; null: any
  int16_t integer;  // index of its integer register, or -1
  int16_t stack;    // index of its stack word, or -1
};

struct Method {
  Class* cls;
  SEL sel;
  IMP imp;
  std::string types;  // type encoding as Objective-C writes it: result, arguments from the third on
  std::vector<Param> params;
  bool stret;  // the result goes through memory
  int since;   // macOS version that brought it
  Method* next;
};

struct Class : State {
  const char* name;
  Class* super;
  Class* meta;         // null for a metaclass
  bool isProtocol;     // Apple's classes behind a protocol are private: objc_getClass does not find them
  int since = 0;       // macOS version that brought it
  Method* methods = nullptr;
  State* (*make)() = nullptr;  // alloc; null where only the framework makes objects
  Class(const char* n, Class* s, bool protocol);
  const Method* find(SEL sel) const;
  bool derives(const Class* c) const;
};

// ---- reports

// report records one misuse; kind is a stable word for tests ("over-release"), the text says what was got and wanted.
__attribute__((format(printf, 2, 3))) void report(const char* kind, const char* format, ...);
// misuse is report with the message in progress in front.
__attribute__((format(printf, 2, 3))) void misuse(const char* kind, const char* format, ...);
std::string describe(const Object* o);  // "MTLBuffer #12"
std::string current();                  // "-[MTLBuffer length]", the message in progress on this thread
std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// ---- objects

bool isObject(const void* p);  // a cell of the arena that was once handed out
Object* make(Class* cls, State* state);  // one reference, the caller's
Object* immortal(Class* cls, State* state);
void retain(Object* o);
void release(Object* o);
Object* autorelease(Object* o);  // hands the caller's reference to the innermost pool
void hold(Object* o);            // references of the stand-in itself
void unhold(Object* o);
// outside is how many references the program has. Another thread may be between the two counts of a reference of the stand-in's own, so that
// none is seen for a moment; what the program has let go of stays so.
inline int32_t outside(const Object* o) {
  int32_t n = o->refs.load() - o->held.load();
  for (int i = 0; n <= 0 && i < 100; i++) {
    std::this_thread::yield();
    n = std::max(n, o->refs.load() - o->held.load());
  }
  return n;
}

// share is what a getter returns: a reference of the program's, let go by the pool.
inline Object* share(Object* o) {
  if (!o) return nullptr;
  retain(o);
  return autorelease(o);
}

template <class T>
T* stateOf(const Object* o) {
  return o ? static_cast<T*>(o->state) : nullptr;
}

// Held is a reference from one object of the stand-in to another.
template <class T>
class Held {
 public:
  Held() = default;
  Held(T* s) : o_(s ? s->self : nullptr) { if (o_) hold(o_); }
  Held(const Held& h) : o_(h.o_) { if (o_) hold(o_); }
  Held(Held&& h) noexcept : o_(std::exchange(h.o_, nullptr)) {}
  Held& operator=(Held h) noexcept { std::swap(o_, h.o_); return *this; }
  ~Held() { if (o_) unhold(o_); }
  T* get() const { return stateOf<T>(o_); }
  T* operator->() const { return get(); }
  explicit operator bool() const { return o_ != nullptr; }
  Object* object() const { return o_; }
 private:
  Object* o_ = nullptr;
};

// Arguments of methods: the wrapper is passed as the pointer it holds. The class is checked before the method runs.
template <class T>
struct In {  // never nil
  using Type = T;
  Object* o;
  T* operator->() const { return stateOf<T>(o); }
  T* get() const { return stateOf<T>(o); }
};
template <class T>
struct Maybe {  // nil allowed
  using Type = T;
  Object* o;
  T* operator->() const { return stateOf<T>(o); }
  T* get() const { return stateOf<T>(o); }
  explicit operator bool() const { return o != nullptr; }
};
struct Any {  // an object of any class, not nil
  Object* o;
};
struct Selector {  // an argument that is a SEL
  SEL name;
};

// What a method that answers BOOL returns. Only the low byte is defined by the calling convention; the rest is made rubbish, so that a program that looks at
// the whole register is wrong here as well.
struct Bool {
  uint64_t bits;
  Bool(bool b) : bits(0x5a5a5a5a5a5a5a00 | uint64_t(b)) {}
};

// A block as the compiler lays it out (Block ABI, clang's Block-ABI-Apple): only global blocks, which need no copy.
struct BlockDescriptor {
  uintptr_t reserved, size;
  uintptr_t rest[3];  // copy and dispose helpers where flags say so, then the signature
};
struct Block {
  void* isa;
  int32_t flags, reserved;
  void (*invoke)();
  BlockDescriptor* descriptor;
};
struct BlockArg {
  Block* b;
};
// checkBlock says whether b is a global block with the signature (or none) and reports what is wrong with it.
bool checkBlock(const Block* b, const char* signature);

// ---- methods

Class* newClass(const char* name, Class* super, bool protocol);

// ClassOf<T>() is the class whose objects have the state T; each state type has one. Set once by define().
template <class T>
inline Class* classOf = nullptr;

// What a method's type says about one argument or its result.
struct Type {
  const char* code;           // Objective-C's type encoding; of an object whose class is known, its beginning
  Param::Kind kind = Param::other;
  bool nullable = true;
  bool floating = false;
  uint8_t words = 1;          // 8-byte words
  Class* const* cls = nullptr;
};

template <class T> constexpr Type typeOf{nullptr};
template <> constexpr inline Type typeOf<void>{"v"};
template <> constexpr inline Type typeOf<bool>{"B", Param::boolean};
template <> constexpr inline Type typeOf<Bool>{"B"};
template <> constexpr inline Type typeOf<uint8_t>{"C"};
template <> constexpr inline Type typeOf<int32_t>{"i"};
template <> constexpr inline Type typeOf<uint32_t>{"I"};
template <> constexpr inline Type typeOf<uint64_t>{"Q"};
template <> constexpr inline Type typeOf<int64_t>{"q"};
template <> constexpr inline Type typeOf<double>{"d", Param::other, true, true};
template <> constexpr inline Type typeOf<const char*>{"*", Param::pointer, false};
template <> constexpr inline Type typeOf<void*>{"^v"};
template <> constexpr inline Type typeOf<const void*>{"^v"};
template <> constexpr inline Type typeOf<uint64_t*>{"^Q"};
template <> constexpr inline Type typeOf<Object**>{"^@"};
template <> constexpr inline Type typeOf<Object* const*>{"^@"};
template <> constexpr inline Type typeOf<Object*>{"@", Param::object};
template <> constexpr inline Type typeOf<Any>{"@", Param::object, false};
template <> constexpr inline Type typeOf<Selector>{":"};
template <> constexpr inline Type typeOf<BlockArg>{"@?", Param::block};
template <> constexpr inline Type typeOf<NSRange>{"{_NSRange=QQ}", Param::other, true, false, 2};
template <> constexpr inline Type typeOf<MTLSize>{"{?=QQQ}", Param::other, true, false, 3};
template <> constexpr inline Type typeOf<NSOperatingSystemVersion>{"{?=qqq}", Param::other, true, false, 3};
template <class T> constexpr inline Type typeOf<In<T>>{"@", Param::object, false, false, 1, &classOf<T>};
template <class T> constexpr inline Type typeOf<Maybe<T>>{"@", Param::object, true, false, 1, &classOf<T>};

void addMethod(Class* cls, const char* sel, IMP imp, int since, const Type& result, const Type* const* args, size_t n);

// Definer adds methods to a class; instance methods are R f(In<T> self, SEL, args...), class methods R f(Object* cls, SEL, args...).
class Definer {
 public:
  explicit Definer(Class* c) : cls_(c) {}
  Definer& since(int version) { since_ = version; return *this; }
  template <class S, class R, class... A>
  Definer& on(const char* sel, R (*f)(S, SEL, A...)) { add(cls_, sel, f); return *this; }
  template <class S, class R, class... A>
  Definer& onClass(const char* sel, R (*f)(S, SEL, A...)) { add(cls_->meta, sel, f); return *this; }
 private:
  template <class S, class R, class... A>
  void add(Class* cls, const char* sel, R (*f)(S, SEL, A...)) {
    static constexpr const Type* args[] = {&typeOf<A>..., nullptr};
    addMethod(cls, sel, reinterpret_cast<IMP>(f), since_, typeOf<R>, args, sizeof...(A));
  }
  Class* cls_;
  int since_ = 0;
};

// define makes the class for state T. Call it for every class before adding methods that name it.
template <class T>
Definer define(const char* name, Class* super, bool protocol) {
  classOf<T> = newClass(name, super, protocol);
  return Definer(classOf<T>);
}

// create makes an object of T's class with one reference, the caller's.
template <class T, class... A>
T* create(A&&... a) {
  T* s = new T(std::forward<A>(a)...);
  make(classOf<T>, s);
  return s;
}

// ---- a session: from pond_standin_open to pond_standin_close

uint32_t session();      // its number, 0 outside
int systemVersion();     // the macOS version that is played
void beginSession(int version);
std::vector<std::string> endSession();  // leaks, one line each; pools left open are reports
std::vector<std::string> takeReports(); // "kind\ttext"
std::string methodTable();              // "class\t-\tselector\ttypes\tsince\n" for every method

}  // namespace pond
