#include "foundation.h"

#include <unistd.h>

#include <cstring>
#include <thread>

namespace pond {

Class* rootClass() { return classOf<Root>; }

Object* newString(const std::string& s) { return autorelease(create<String>(s)->self); }

Object* newArray(const std::vector<State*>& v) {
  Array* a = create<Array>();
  for (State* s : v) a->items.emplace_back(s);
  return autorelease(a->self);
}

Error* makeError(const char* domain, NSInteger code, const std::string& description) {
  Error* e = create<Error>();
  e->domain = domain;
  e->code = code;
  e->description = description;
  return e;
}

void fail(Object** error, const char* domain, NSInteger code, const std::string& description) {
  if (error) *error = autorelease(makeError(domain, code, description)->self);
}

namespace {

// ---- NSObject

Object* root_alloc(Object* cls, SEL) {
  Class* c = stateOf<Class>(cls);
  if (!c->make) {
    misuse("no-alloc", "%s is made by Metal, not by the program", c->name);
    return nullptr;
  }
  return make(c, c->make());
}
Object* root_new(Object* cls, SEL sel) { return root_alloc(cls, sel); }
Object* root_init(Object* self, SEL) { return self; }
Object* root_retain(Object* self, SEL) {
  retain(self);
  return self;
}
void root_release(Object* self, SEL) { release(self); }
Object* root_autorelease(Object* self, SEL) { return autorelease(self); }
NSUInteger root_retainCount(Object* self, SEL) { return NSUInteger(self->refs.load()); }
bool responds(const Class* c, SEL sel) {
  const Method* m = sel ? c->find(sel) : nullptr;
  return m && m->since <= systemVersion();
}
Bool root_respondsToSelector(Object* self, SEL, Selector sel) { return responds(self->isa, sel.name); }
Bool class_instancesRespondToSelector(Object* cls, SEL, Selector sel) { return responds(stateOf<Class>(cls), sel.name); }
Object* root_class(Object* self, SEL) { return self->isa->self; }
Object* class_class(Object* cls, SEL) { return cls; }
Bool root_isKindOfClass(Object* self, SEL, Any cls) { return self->isa->derives(stateOf<Class>(cls.o)); }
Bool root_isEqual(Object* self, SEL, Object* other) { return self == other; }
NSUInteger root_hash(Object* self, SEL) { return self->serial; }
Object* root_description(Object* self, SEL) { return newString("<" + describe(self) + ">"); }

// ---- NSString

Object* string_stringWithUTF8String(Object*, SEL, const char* s) { return newString(s); }
Object* string_string(Object*, SEL) { return newString(""); }
In<String> string_initWithUTF8String(In<String> self, SEL, const char* s) {
  self->s = s;
  return self;
}
In<String> string_initWithBytes_length_encoding(In<String> self, SEL, const void* bytes, NSUInteger n, NSUInteger encoding) {
  if (encoding != 4) misuse("argument-type", "got string encoding %llu, want 4 (UTF-8)", static_cast<unsigned long long>(encoding));
  if (n) self->s.assign(static_cast<const char*>(bytes), n);
  return self;
}
const char* string_UTF8String(In<String> self, SEL) { return self->s.c_str(); }
NSUInteger string_length(In<String> self, SEL) {  // UTF-16 units
  NSUInteger n = 0;
  for (unsigned char c : self->s) n += (c & 0xc0) != 0x80 ? (c >= 0xf0 ? 2 : 1) : 0;
  return n;
}
NSUInteger string_lengthOfBytesUsingEncoding(In<String> self, SEL, NSUInteger) { return self->s.size(); }
Bool string_isEqualToString(In<String> self, SEL, In<String> other) { return self->s == other->s; }
Object* string_description(In<String> self, SEL) { return share(self.o); }

// ---- NSArray, NSData, NSURL, NSDictionary, NSNumber

Object* array_array(Object*, SEL) { return newArray({}); }
Object* array_arrayWithObject(Object*, SEL, Any o) { return newArray({o.o->state}); }
Object* array_arrayWithObjects_count(Object*, SEL, Object* const* items, NSUInteger n) {
  std::vector<State*> v;
  for (NSUInteger i = 0; i < n; i++) {
    if (!isObject(items[i]) || items[i]->life != Life::alive) {
      misuse("argument-type", "element %llu is no object", static_cast<unsigned long long>(i));
      return nullptr;
    }
    v.push_back(items[i]->state);
  }
  return newArray(v);
}
NSUInteger array_count(In<Array> self, SEL) { return self->items.size(); }
Object* array_objectAtIndex(In<Array> self, SEL, NSUInteger i) {
  if (i >= self->items.size()) {
    misuse("range", "got index %llu of %zu", static_cast<unsigned long long>(i), self->items.size());
    return nullptr;
  }
  return share(self->items[i].object());
}
Object* array_firstObject(In<Array> self, SEL) { return self->items.empty() ? nullptr : share(self->items[0].object()); }

Object* data_dataWithBytes_length(Object*, SEL, const void* p, NSUInteger n) {
  return autorelease(create<Data>(n ? std::string(static_cast<const char*>(p), n) : std::string())->self);
}
const void* data_bytes(In<Data> self, SEL) { return self->bytes.data(); }
NSUInteger data_length(In<Data> self, SEL) { return self->bytes.size(); }

Object* url_fileURLWithPath(Object*, SEL, In<String> p) { return autorelease(create<Url>(p->s)->self); }
Object* url_fileURLWithPath_isDirectory(Object*, SEL, In<String> p, bool) { return autorelease(create<Url>(p->s)->self); }
Object* url_path(In<Url> self, SEL) { return newString(self->path); }
Object* url_absoluteString(In<Url> self, SEL) { return newString("file://" + self->path); }
Bool url_isFileURL(In<Url>, SEL) { return true; }

Object* dictionary_dictionaryWithObjects_forKeys_count(Object*, SEL, Object* const* values, Object* const* keys, NSUInteger n) {
  Dictionary* d = create<Dictionary>();
  for (NSUInteger i = 0; i < n; i++) {
    if (!isObject(keys[i]) || !keys[i]->isa->derives(classOf<String>) || !isObject(values[i])) {
      misuse("argument-type", "pair %llu is not a string and an object", static_cast<unsigned long long>(i));
      continue;
    }
    d->items.emplace_back(stateOf<String>(keys[i]), values[i]->state);
  }
  return autorelease(d->self);
}
NSUInteger dictionary_count(In<Dictionary> self, SEL) { return self->items.size(); }
Object* dictionary_objectForKey(In<Dictionary> self, SEL, In<String> key) {
  for (auto& [k, v] : self->items)
    if (k->s == key->s) return share(v.object());
  return nullptr;
}

template <class T>
Object* number_with(Object*, SEL, T v) {
  Number* n = create<Number>();
  n->real = double(v);
  n->whole = int64_t(v);
  return autorelease(n->self);
}
Bool number_boolValue(In<Number> self, SEL) { return self->whole != 0; }
int64_t number_integerValue(In<Number> self, SEL) { return self->whole; }
uint64_t number_unsignedLongLongValue(In<Number> self, SEL) { return uint64_t(self->whole); }
double number_doubleValue(In<Number> self, SEL) { return self->real; }

// ---- NSError, NSProcessInfo

Object* error_localizedDescription(In<Error> self, SEL) { return newString(self->description); }
Object* error_domain(In<Error> self, SEL) { return newString(self->domain); }
NSInteger error_code(In<Error> self, SEL) { return self->code; }
Object* error_userInfo(In<Error> self, SEL) {
  if (!self->info) return autorelease(create<Dictionary>()->self);
  return share(self->info.object());
}
Object* error_localizedFailureReason(In<Error>, SEL) { return nullptr; }
Object* error_description(In<Error> self, SEL) {
  return newString(text("Error Domain=%s Code=%lld \"%s\"", self->domain.c_str(), static_cast<long long>(self->code), self->description.c_str()));
}

Object* info_processInfo(Object*, SEL) { return autorelease(create<ProcessInfo>()->self); }
NSOperatingSystemVersion info_operatingSystemVersion(In<ProcessInfo>, SEL) { return {systemVersion(), 0, 0}; }
Bool info_isOperatingSystemAtLeastVersion(In<ProcessInfo>, SEL, NSOperatingSystemVersion v) { return systemVersion() >= v.major; }
uint64_t info_physicalMemory(In<ProcessInfo>, SEL) { return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)); }
NSUInteger info_activeProcessorCount(In<ProcessInfo>, SEL) { return std::thread::hardware_concurrency(); }
NSInteger info_thermalState(In<ProcessInfo>, SEL) { return 0; }
Bool info_isLowPowerModeEnabled(In<ProcessInfo>, SEL) { return false; }

template <class T>
Definer foundation(const char* name, bool allocatable = true) {
  Definer d = define<T>(name, rootClass(), false);
  if (allocatable) classOf<T>->make = [] { return static_cast<State*>(new T); };
  return d;
}

}  // namespace

void defineFoundation() {
  define<Root>("NSObject", nullptr, false);
  foundation<String>("NSString");
  foundation<Array>("NSArray");
  foundation<Data>("NSData");
  foundation<Url>("NSURL", false);
  foundation<Number>("NSNumber", false);
  foundation<Dictionary>("NSDictionary");
  foundation<Error>("NSError", false);
  foundation<ProcessInfo>("NSProcessInfo", false);
}

void methodsOfFoundation() {
  Definer(classOf<Root>)
      .onClass("alloc", root_alloc)
      .onClass("new", root_new)
      .onClass("class", class_class)
      .onClass("instancesRespondToSelector:", class_instancesRespondToSelector)
      .on("init", root_init)
      .on("retain", root_retain)
      .on("release", root_release)
      .on("autorelease", root_autorelease)
      .on("retainCount", root_retainCount)
      .on("respondsToSelector:", root_respondsToSelector)
      .on("class", root_class)
      .on("isKindOfClass:", root_isKindOfClass)
      .on("isEqual:", root_isEqual)
      .on("hash", root_hash)
      .on("description", root_description);
  Definer(classOf<String>)
      .onClass("stringWithUTF8String:", string_stringWithUTF8String)
      .onClass("string", string_string)
      .on("initWithUTF8String:", string_initWithUTF8String)
      .on("initWithBytes:length:encoding:", string_initWithBytes_length_encoding)
      .on("UTF8String", string_UTF8String)
      .on("length", string_length)
      .on("lengthOfBytesUsingEncoding:", string_lengthOfBytesUsingEncoding)
      .on("isEqualToString:", string_isEqualToString)
      .on("description", string_description);
  Definer(classOf<Array>)
      .onClass("array", array_array)
      .onClass("arrayWithObject:", array_arrayWithObject)
      .onClass("arrayWithObjects:count:", array_arrayWithObjects_count)
      .on("count", array_count)
      .on("objectAtIndex:", array_objectAtIndex)
      .on("objectAtIndexedSubscript:", array_objectAtIndex)
      .on("firstObject", array_firstObject);
  Definer(classOf<Data>)
      .onClass("dataWithBytes:length:", data_dataWithBytes_length)
      .on("bytes", data_bytes)
      .on("length", data_length);
  Definer(classOf<Url>)
      .onClass("fileURLWithPath:", url_fileURLWithPath)
      .onClass("fileURLWithPath:isDirectory:", url_fileURLWithPath_isDirectory)
      .on("path", url_path)
      .on("absoluteString", url_absoluteString)
      .on("isFileURL", url_isFileURL);
  Definer(classOf<Dictionary>)
      .onClass("dictionaryWithObjects:forKeys:count:", dictionary_dictionaryWithObjects_forKeys_count)
      .on("count", dictionary_count)
      .on("objectForKey:", dictionary_objectForKey);
  Definer(classOf<Number>)
      .onClass("numberWithBool:", number_with<bool>)
      .onClass("numberWithInt:", number_with<int32_t>)
      .onClass("numberWithUnsignedInteger:", number_with<uint64_t>)
      .onClass("numberWithInteger:", number_with<int64_t>)
      .onClass("numberWithDouble:", number_with<double>)
      .on("boolValue", number_boolValue)
      .on("integerValue", number_integerValue)
      .on("unsignedLongLongValue", number_unsignedLongLongValue)
      .on("doubleValue", number_doubleValue);
  Definer(classOf<Error>)
      .on("localizedDescription", error_localizedDescription)
      .on("localizedFailureReason", error_localizedFailureReason)
      .on("domain", error_domain)
      .on("code", error_code)
      .on("userInfo", error_userInfo)
      .on("description", error_description);
  Definer(classOf<ProcessInfo>)
      .onClass("processInfo", info_processInfo)
      .on("operatingSystemVersion", info_operatingSystemVersion)
      .on("isOperatingSystemAtLeastVersion:", info_isOperatingSystemAtLeastVersion)
      .on("physicalMemory", info_physicalMemory)
      .on("activeProcessorCount", info_activeProcessorCount)
      .on("thermalState", info_thermalState)
      .on("isLowPowerModeEnabled", info_isLowPowerModeEnabled);
}

}  // namespace pond
