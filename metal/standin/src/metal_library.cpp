// MTLLibrary, MTLFunction, function constants and compile options. Compiling is the program's own: a callback into Go.
#include <cstring>
#include <fstream>
#include <sstream>

#include "metal_objects.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace pond {
namespace {

constexpr const char* kLibraryDomain = "MTLLibraryErrorDomain";
enum : NSInteger { kUnsupported = 1, kInternal = 2, kCompileFailure = 3, kFunctionNotFound = 5, kFileNotFound = 6 };

// load opens a library of kernels that was compiled before.
Object* load(In<Device> self, const std::string& path, Object** error) {
  World& w = world();
  char why[4096];
  msl_library* lib = w.kernels.msl_library_open(path.c_str(), why, sizeof why);
  if (!lib) return fail(error, kLibraryDomain, kInternal, why), nullptr;
  if (w.config.flags & (MSL_CHECK | MSL_COUNT) && !w.kernels.msl_library_checked(lib))
    return fail(error, kLibraryDomain, kInternal, path + " was compiled without the hooks that checks and counts need"), nullptr;
  Library* l = create<Library>();
  l->device = Held<Device>(self.get());
  l->lib = lib;
  return l->self;
}

Object* compile(In<Device> self, const std::string& source, const CompileOptions* o, Object** error) {
  World& w = world();
  std::string what;
  if (w.faults.due("compile", &what)) return fail(error, kLibraryDomain, kCompileFailure, what), nullptr;
  if (!w.config.compile) return fail(error, kLibraryDomain, kInternal, "the stand-in was opened without a compiler"), nullptr;
  CompileOptions plain;
  if (!o) o = &plain;
  Job job;
  job.source = source;
  job.options = text("language=%llu\nmath=%s\n", static_cast<unsigned long long>(o->languageVersion), o->mathMode == 0 || !o->fastMath ? "safe" : o->mathMode == 1 ? "relaxed" : "fast");
  if (o->macros)
    for (auto& [k, v] : o->macros->items) {
      std::string value = v.object()->isa->derives(classOf<String>) ? static_cast<String*>(v.get())->s : v.object()->isa->derives(classOf<Number>) ? std::to_string(static_cast<Number*>(v.get())->whole) : "";
      job.options += "macro " + k->s + "=" + value + "\n";
    }
  w.config.compile(reinterpret_cast<uintptr_t>(&job));
  if (!job.answered) return fail(error, kLibraryDomain, kInternal, "the compiler gave no answer"), nullptr;
  if (!job.ok) return fail(error, kLibraryDomain, kCompileFailure, job.result), nullptr;
  return load(self, job.result, error);
}

Object* device_newLibraryWithSource(In<Device> self, SEL, In<String> source, Maybe<CompileOptions> options, Object** error) {
  return compile(self, source->s, options.get(), error);
}

// A library's file or data would be AIR, which only Apple's tools make and only Apple's GPUs run. In its place the stand-in takes Metal text, and from a file
// what Precompile wrote: a library of this machine's.
Object* fromBytes(In<Device> self, const std::string& bytes, Object** error) {
  if (bytes.starts_with("MTLB")) return fail(error, kLibraryDomain, kUnsupported, "the stand-in runs Metal text and libraries of its own, not a library of Apple's"), nullptr;
  return compile(self, bytes, nullptr, error);
}
Object* device_newLibraryWithURL(In<Device> self, SEL, In<Url> url, Object** error) {
  std::ifstream f(url->path, std::ios::binary);
  if (!f) return fail(error, kLibraryDomain, kFileNotFound, "library not found: " + url->path), nullptr;
  std::stringstream all;
  all << f.rdbuf();
  const std::string bytes = all.str();
  return bytes.starts_with("\x7f" "ELF") ? load(self, url->path, error) : fromBytes(self, bytes, error);
}
Object* device_newLibraryWithData(In<Device> self, SEL, In<Data> data, Object** error) { return fromBytes(self, data->bytes, error); }

// ---- compile options

NSUInteger options_languageVersion(In<CompileOptions> self, SEL) { return self->languageVersion; }
void options_setLanguageVersion(In<CompileOptions> self, SEL, NSUInteger v) {
  const NSUInteger newest = systemVersion() >= 26 ? 0x40000 : systemVersion() >= 15 ? 0x30002 : 0x30001;
  if (v > newest || v < 0x10000) misuse("language", "got language version 0x%llx, want at most 0x%llx on macOS %d", static_cast<unsigned long long>(v), static_cast<unsigned long long>(newest), systemVersion());
  self->languageVersion = v;
}
Bool options_fastMathEnabled(In<CompileOptions> self, SEL) { return self->fastMath; }
void options_setFastMathEnabled(In<CompileOptions> self, SEL, bool v) { self->fastMath = v; }
NSInteger options_mathMode(In<CompileOptions> self, SEL) { return self->mathMode; }
void options_setMathMode(In<CompileOptions> self, SEL, NSInteger v) {
  if (v < 0 || v > 2) misuse("argument-type", "got math mode %lld, want 0 (safe), 1 (relaxed) or 2 (fast)", static_cast<long long>(v));
  self->mathMode = v;
}
void options_setPreserveInvariance(In<CompileOptions> self, SEL, bool v) { self->preserveInvariance = v; }
void options_setOptimizationLevel(In<CompileOptions> self, SEL, NSInteger v) { self->optimization = v; }
void options_setMaxTotalThreadsPerThreadgroup(In<CompileOptions> self, SEL, NSUInteger v) { self->maxThreads = v; }
void options_setPreprocessorMacros(In<CompileOptions> self, SEL, Maybe<Dictionary> d) { self->macros = Held<Dictionary>(d.get()); }

// ---- function constants

// bytesOf is the size of a MTLDataType that a function constant may have; 0: none of them.
size_t bytesOf(NSUInteger type) {
  switch (type) {
    case 3: case 29: case 33: return 4;        // float, int, uint
    case 16: case 37: case 41: case 121: return 2;  // half, short, ushort, bfloat
    case 45: case 49: case 53: return 1;       // char, uchar, bool
    case 81: case 85: return 8;                // long, ulong
    default: return 0;
  }
}
// scalarOf is the type in the kernel runtime's words.
uint32_t scalarOf(NSUInteger type) {
  switch (type) {
    case 3: return MSL_FLOAT;
    case 16: return MSL_HALF;
    case 29: return MSL_INT32;
    case 33: return MSL_UINT32;
    case 37: return MSL_INT16;
    case 41: return MSL_UINT16;
    case 45: return MSL_INT8;
    case 49: return MSL_UINT8;
    case 53: return MSL_BOOL;
    case 81: return MSL_INT64;
    case 85: return MSL_UINT64;
    case 121: return MSL_BFLOAT;
    default: return 0;
  }
}
bool valueOf(const void* p, NSUInteger type, ConstantValues::Value* v) {
  size_t n = bytesOf(type);
  if (!n) return misuse("argument-type", "got data type %llu, want that of a scalar", static_cast<unsigned long long>(type)), false;
  if (!p) return misuse("argument-type", "got no value"), false;
  *v = {type, std::string(static_cast<const char*>(p), n)};
  if (type == 53 && static_cast<unsigned char>(v->bytes[0]) > 1) return misuse("argument-type", "got a bool of %u, want 0 or 1", unsigned(static_cast<unsigned char>(v->bytes[0]))), false;
  return true;
}
void constants_setValue_atIndex(In<ConstantValues> self, SEL, const void* p, NSUInteger type, NSUInteger index) {
  ConstantValues::Value v;
  if (valueOf(p, type, &v)) self->byIndex[index] = v;
}
void constants_setValue_withName(In<ConstantValues> self, SEL, const void* p, NSUInteger type, In<String> name) {
  ConstantValues::Value v;
  if (valueOf(p, type, &v)) self->byName[name->s] = v;
}
void constants_reset(In<ConstantValues> self, SEL) {
  self->byIndex.clear();
  self->byName.clear();
}

// ---- libraries and functions

Object* library_functionNames(In<Library> self, SEL) {
  const Kernels& k = world().kernels;
  std::vector<State*> names;
  std::vector<Object*> made;
  for (int i = 0; i < k.msl_library_kernels(self->lib); i++) {
    String* s = create<String>(k.msl_library_kernel(self->lib, i));
    names.push_back(s);
    made.push_back(s->self);
  }
  Object* a = newArray(names);
  for (Object* o : made) release(o);
  return a;
}

Function* newFunction(In<Library> self, const std::string& name) {
  msl_kernel_info info;
  if (world().kernels.msl_kernel_describe(self->lib, name.c_str(), &info) != 0) return nullptr;
  Function* f = create<Function>();
  f->library = Held<Library>(self.get());
  f->name = name;
  return f;
}

Object* library_newFunctionWithName(In<Library> self, SEL, In<String> name) {
  Function* f = newFunction(self, name->s);
  return f ? f->self : nullptr;
}

Object* library_newFunctionWithName_constantValues(In<Library> self, SEL, In<String> name, In<ConstantValues> values, Object** error) {
  const Kernels& k = world().kernels;
  Function* f = newFunction(self, name->s);
  if (!f) return fail(error, kLibraryDomain, kFunctionNotFound, "the library has no function " + name->s), nullptr;
  f->specialised = true;
  std::string wrong;
  std::set<NSUInteger> unknown;
  for (auto& [i, v] : values->byIndex) unknown.insert(i);
  for (int i = 0; i < k.msl_library_constants(self->lib); i++) {
    msl_constant_info c;
    k.msl_library_constant(self->lib, i, &c);
    unknown.erase(c.index);
    auto it = values->byIndex.find(c.index);
    auto named = values->byName.find(c.name ? c.name : "");
    const ConstantValues::Value* v = it != values->byIndex.end() ? &it->second : named != values->byName.end() ? &named->second : nullptr;
    if (!v) {
      if (!c.optional && k.msl_kernel_reads(self->lib, name->s.c_str(), i)) wrong = text("%s: function constant %s (index %u) has no value", name->s.c_str(), c.name, c.index);
      continue;
    }
    if (c.type && scalarOf(v->type) != c.type) wrong = text("function constant %s (index %u): got data type %llu, which is not the declared one", c.name, c.index, static_cast<unsigned long long>(v->type));
    f->constants.emplace_back(c.index, v->bytes);
  }
  // A Mac ignores an index that no constant has; a program that sends one believes in a constant that is not there.
  for (NSUInteger i : unknown) misuse("constants", "the library declares no function constant with index %llu", static_cast<unsigned long long>(i));
  if (!wrong.empty()) {
    release(f->self);
    return fail(error, kLibraryDomain, kCompileFailure, wrong), nullptr;
  }
  return f->self;
}

Object* library_device(In<Library> self, SEL) { return share(self->device.object()); }
Object* function_name(In<Function> self, SEL) { return newString(self->name); }
Object* function_device(In<Function> self, SEL) { return share(self->library->device.object()); }
NSUInteger function_functionType(In<Function>, SEL) { return 3; }  // kernel

}  // namespace

void methodsOfLibrary() {
  Definer(classOf<Device>)
      .on("newLibraryWithSource:options:error:", device_newLibraryWithSource)
      .on("newLibraryWithURL:error:", device_newLibraryWithURL)
      .on("newLibraryWithData:error:", device_newLibraryWithData);
  Definer(classOf<CompileOptions>)
      .on("languageVersion", options_languageVersion)
      .on("setLanguageVersion:", options_setLanguageVersion)
      .on("fastMathEnabled", options_fastMathEnabled)
      .on("setFastMathEnabled:", options_setFastMathEnabled)
      .on("setPreserveInvariance:", options_setPreserveInvariance)
      .on("setOptimizationLevel:", options_setOptimizationLevel)
      .on("setMaxTotalThreadsPerThreadgroup:", options_setMaxTotalThreadsPerThreadgroup)
      .on("setPreprocessorMacros:", options_setPreprocessorMacros)
      .since(15)
      .on("mathMode", options_mathMode)
      .on("setMathMode:", options_setMathMode);
  Definer(classOf<ConstantValues>)
      .on("setConstantValue:type:atIndex:", constants_setValue_atIndex)
      .on("setConstantValue:type:withName:", constants_setValue_withName)
      .on("reset", constants_reset);
  Definer(classOf<Library>)
      .on("functionNames", library_functionNames)
      .on("device", library_device)
      .on("newFunctionWithName:", library_newFunctionWithName)
      .on("newFunctionWithName:constantValues:error:", library_newFunctionWithName_constantValues);
  Definer(classOf<Function>)
      .on("name", function_name)
      .on("device", function_device)
      .on("functionType", function_functionType);
}

}  // namespace pond

using namespace pond;

// dispatch_data_t is an object on a Mac too. Only the default destructor is modelled: the bytes are copied.
EXPORT Object* dispatch_data_create(const void* bytes, size_t n, void* queue, void* destructor) {
  if (queue || destructor) report("dispatch-data", "dispatch_data_create: got a queue or a destructor, want neither: the bytes are copied");
  return create<Data>(n ? std::string(static_cast<const char*>(bytes), n) : std::string())->self;
}
EXPORT void dispatch_release(Object* o) {
  if (o && isObject(o)) release(o);
  else report("no-object", "dispatch_release of what is no object");
}
