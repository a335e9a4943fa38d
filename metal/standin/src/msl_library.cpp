// msl_library.cpp - opens kernel libraries, answers what they hold, makes pipelines.
#include <dlfcn.h>

#include <algorithm>

#include "msl_internal.h"

namespace msl {
int fail(char* text, size_t textBytes, const std::string& s) {
  if (text && textBytes) snprintf(text, textBytes, "%s", s.c_str());
  return 1;
}

static std::atomic<msl_symboliser> symboliser{nullptr};

std::string place(msl_library* lib, void* pc) {
  if (!pc) return "";
  Dl_info info;
  if (!dladdr((char*)pc - 1, &info) || uintptr_t(info.dli_fbase) != lib->base) return "";
  char b[300];
  const uint64_t offset = uintptr_t(pc) - 1 - lib->base;
  if (msl_symboliser f = symboliser.load(); f && f(lib->path.c_str(), offset, b, sizeof b)) return std::string(b) + ": ";
  return "";
}

static const KernelEntry* find(const msl_library* lib, const char* name) {
  for (const KernelEntry* k = lib->module->kernels; k; k = k->next)
    if (!strcmp(k->name, name)) return k;
  return nullptr;
}

static const ConstantEntry* constantAt(const msl_library* lib, uint32_t index) {
  for (const ConstantEntry* c = lib->module->constants; c; c = c->next)
    if (c->index == index) return c;
  return nullptr;
}

static bool reads(const KernelEntry* k, const ConstantEntry* c) {
  for (const char* const* name = k->constants; *name; name++)
    if (!strcmp(*name, c->name)) return true;
  return false;
}

static uint32_t measure(const msl_library* lib, const KernelEntry* k, uint32_t* slots) {
  memset(slots, 0, sizeof(uint32_t) * MSL_MAX_SLOTS);
  for (const VariableEntry* v = lib->module->variables; v; v = v->next)
    if (v->tag == k->tag && v->bytes > slots[v->slot]) slots[v->slot] = v->bytes;
  uint32_t sum = 0;
  for (int i = 0; i < MSL_MAX_SLOTS; i++) sum += (slots[i] + 15) & ~15u;
  return sum;
}
} // namespace msl

using namespace msl;

extern "C" {
uint32_t msl_abi(void) { return MSL_ABI; }
void msl_set_symboliser(msl_symboliser f) { symboliser = f; }

msl_library* msl_library_open(const char* path, char* text, size_t textBytes) {
  void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* why = h ? nullptr : dlerror();
  auto get = h ? (const Module* (*)())dlsym(h, "msl_module") : nullptr;
  if (!get) {
    fail(text, textBytes, std::string(path) + ": " + (why ? why : "not a kernel library"));
    return nullptr;
  }
  const Module* m = get();
  if (m->abi != MSL_ABI) {
    fail(text, textBytes, std::string(path) + ": made for another version of the runtime");
    return nullptr;
  }
  Dl_info info;
  const uintptr_t base = dladdr((void*)get, &info) ? uintptr_t(info.dli_fbase) : 0;
  return new msl_library{path, m, base, nullptr};
}

const char* msl_library_path(const msl_library* lib) { return lib->path.c_str(); }

int msl_library_checked(const msl_library* lib) { return lib->module->checked; }

int msl_library_kernels(const msl_library* lib) {
  int n = 0;
  for (const KernelEntry* k = lib->module->kernels; k; k = k->next) n++;
  return n;
}

const char* msl_library_kernel(const msl_library* lib, int i) {
  for (const KernelEntry* k = lib->module->kernels; k; k = k->next)
    if (i-- == 0) return k->name;
  return nullptr;
}

int msl_kernel_describe(const msl_library* lib, const char* name, msl_kernel_info* out) {
  const KernelEntry* k = find(lib, name);
  if (!k) return -1;
  uint32_t slots[MSL_MAX_SLOTS];
  *out = {0, k->maxThreads ? k->maxThreads : uint32_t(MSL_MAX_THREADS), measure(lib, k, slots), k->synchronises};
  for (int i = 0; i < k->args; i++) out->args += k->names[i].role != 2;
  return 0;
}

int msl_kernel_arg(const msl_library* lib, const char* name, int index, msl_arg_info* out) {
  const KernelEntry* k = find(lib, name);
  if (!k) return -1;
  for (int i = 0; i < k->args; i++) {
    const ArgName& a = k->names[i];
    const ArgType& t = k->types[i];
    if (a.role == 2 || index-- != 0) continue;
    *out = {a.name, uint32_t(a.role), uint32_t(a.index), t.access, t.bytes, t.align, t.reference};
    return 0;
  }
  return -1;
}

int msl_library_constants(const msl_library* lib) {
  int n = 0;
  for (const ConstantEntry* c = lib->module->constants; c; c = c->next) n++;
  return n;
}

int msl_library_constant(const msl_library* lib, int i, msl_constant_info* out) {
  for (const ConstantEntry* c = lib->module->constants; c; c = c->next)
    if (i-- == 0) {
      *out = {c->name, c->index, c->type, c->bytes, c->optional};
      return 0;
    }
  return -1;
}

int msl_kernel_reads(const msl_library* lib, const char* name, int i) {
  const KernelEntry* k = find(lib, name);
  for (const ConstantEntry* c = lib->module->constants; k && c; c = c->next)
    if (i-- == 0) return reads(k, c);
  return 0;
}

msl_pipeline* msl_pipeline_new(msl_library* lib, const char* name, const msl_constant* constants, int n, char* text, size_t textBytes) {
  const KernelEntry* k = find(lib, name);
  if (!k) {
    fail(text, textBytes, std::string("no kernel named ") + name);
    return nullptr;
  }
  auto p = std::make_unique<msl_pipeline>();
  p->library = lib;
  p->kernel = k;
  for (int i = 0; i < n; i++) {
    const ConstantEntry* c = constantAt(lib, constants[i].index);
    if (!c) continue; // Metal ignores values that no function asks for
    if (c->bytes != constants[i].bytes) {
      fail(text, textBytes, std::string(name) + ": function constant " + c->name + ": got " + std::to_string(constants[i].bytes) + " bytes, want " + std::to_string(c->bytes));
      return nullptr;
    }
    const char* v = (const char*)constants[i].value;
    p->constants.emplace_back(c, std::vector<char>(v, v + c->bytes));
  }
  for (const ConstantEntry* c = lib->module->constants; c; c = c->next) {
    auto given = [c](const auto& v) { return v.first == c; };
    if (c->optional || !reads(k, c) || std::any_of(p->constants.begin(), p->constants.end(), given)) continue;
    fail(text, textBytes, std::string(name) + ": function constant " + c->name + " (index " + std::to_string(c->index) + ") has no value, and the kernel reads it");
    return nullptr;
  }
  p->threadgroupBytes = measure(lib, k, p->slotBytes);
  return p.release();
}

void msl_pipeline_free(msl_pipeline* p) {
  if (!p) return;
  if (p->library->specialised == p) p->library->specialised = nullptr;
  delete p;
}
}
