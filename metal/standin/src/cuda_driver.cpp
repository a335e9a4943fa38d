// cuda_driver.cpp - loads NVIDIA's driver and opens the first device.
#include "cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace pondcuda {
std::string Driver::text(Result r, const char* what) const {
  const char *name = nullptr, *sentence = nullptr;
  if (cuGetErrorName) cuGetErrorName(r, &name);
  if (cuGetErrorString) cuGetErrorString(r, &sentence);
  return std::string(what) + ": " + (name ? name : "error " + std::to_string(r)) + (sentence ? std::string(" (") + sentence + ")" : "");
}

static std::string load(Driver& d) {
  const char* chosen = std::getenv("POND_STANDIN_CUDA_DRIVER");
  void* h = dlopen(chosen && *chosen ? chosen : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!h) return std::string("no NVIDIA driver: ") + dlerror();
#define POND_CUDA_LOAD(f, arguments)                     \
  d.f = reinterpret_cast<decltype(d.f)>(dlsym(h, #f)); \
  if (!d.f) return "the NVIDIA driver is too old: it has no " #f;
  POND_CUDA_FUNCTIONS(POND_CUDA_LOAD)
#undef POND_CUDA_LOAD
  int device = 0;
  char name[200] = "";
  if (Result r = d.cuInit(0)) return d.text(r, "cuInit");
  if (Result r = d.cuDeviceGet(&device, 0)) return d.text(r, "cuDeviceGet");
  if (Result r = d.cuDeviceGetName(name, sizeof name, device)) return d.text(r, "cuDeviceGetName");
  d.name = name;
  if (Result r = d.cuDevicePrimaryCtxRetain(&d.context, device)) return d.text(r, "cuDevicePrimaryCtxRetain");
  if (Result r = d.cuCtxSetCurrent(d.context)) return d.text(r, "cuCtxSetCurrent");
  if (Result r = d.cuStreamCreate(&d.work, streamNonBlocking)) return d.text(r, "cuStreamCreate");
  if (Result r = d.cuStreamCreate(&d.copies, streamNonBlocking)) return d.text(r, "cuStreamCreate");
  return "";
}

Driver& driver() {
  static Driver* d = [] {
    Driver* made = new Driver; // never destroyed: threads may outlive main
    made->wrong = load(*made);
    return made;
  }();
  return *d;
}
} // namespace pondcuda
