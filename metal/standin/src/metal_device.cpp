// MTLDevice, the captures, and what a session of the stand-in shares.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

#include "metal_objects.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace pond {

World& world() {
  static World* w = new World;  // never destroyed: queues' threads may outlive main
  return *w;
}

std::string Kernels::load(const char* path) {
  void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // two runtimes in one process keep apart
  if (!h) return dlerror();
#define POND_MSL_LOAD(f)                                       \
  f = reinterpret_cast<decltype(f)>(dlsym(h, #f));             \
  if (!f) return std::string(path) + " has no function " #f;
  POND_MSL_FUNCTIONS(POND_MSL_LOAD)
#undef POND_MSL_LOAD
  msl_submit = reinterpret_cast<decltype(msl_submit)>(dlsym(h, "msl_submit"));
  msl_finish = reinterpret_cast<decltype(msl_finish)>(dlsym(h, "msl_finish"));
  if (!msl_submit != !msl_finish) return std::string(path) + " has one of msl_submit and msl_finish";
  if (msl_abi() != MSL_ABI) return text("%s: got interface %u, want %u", path, msl_abi(), unsigned(MSL_ABI));
  return "";
}

bool Faults::due(const char* kind, std::string* what) {
  std::lock_guard g(mu);
  auto it = at.find(kind);
  if (it == at.end() || --it->second.first > 0) return false;
  if (what) *what = it->second.second;
  at.erase(it);
  return true;
}

Object* labelOf(In<Labelled> self, SEL) { return self->label.empty() ? nullptr : newString(self->label); }
void setLabelOf(In<Labelled> self, SEL, Maybe<String> label) { self->label = label ? label->s : ""; }

namespace {

Object* device_name(In<Device>, SEL) { return newString(world().config.name); }
uint64_t device_registryID(In<Device>, SEL) { return 0x100000abc; }
Bool device_supportsFamily(In<Device>, SEL, int64_t family) {
  const Config& c = world().config;
  if (family > 1000 && family <= 1000 + c.family) return true;
  if (family >= 3001 && family <= 3003) return true;
  return family == 2002 || family == 5001 || (family == 5002 && c.macos >= 26);
}
MTLSize device_maxThreadsPerThreadgroup(In<Device>, SEL) { return {MSL_MAX_THREADS, MSL_MAX_THREADS, MSL_MAX_THREADS}; }
NSUInteger device_maxThreadgroupMemoryLength(In<Device>, SEL) { return MSL_MAX_THREADGROUP_BYTES; }
NSUInteger device_maxBufferLength(In<Device>, SEL) { return world().config.maxBufferLength; }
uint64_t device_recommendedMaxWorkingSetSize(In<Device>, SEL) { return world().config.workingSet; }
NSUInteger device_currentAllocatedSize(In<Device>, SEL) { return world().allocated; }
Bool device_yes(In<Device>, SEL) { return true; }
Bool device_no(In<Device>, SEL) { return false; }
Bool device_supportsCounterSampling(In<Device>, SEL, NSUInteger point) { return point == 0; }  // stage boundary, as Apple's chips
void device_sampleTimestamps_gpuTimestamp(In<Device>, SEL, uint64_t* cpu, uint64_t* gpu) {
  if (cpu) *cpu = gpuNanoseconds();
  if (gpu) *gpu = gpuNanoseconds();
}

// ---- captures: a document is a folder with a note of what would be in it

Object* manager_shared(Object*, SEL) { return world().captureManager; }
Bool manager_supportsDestination(In<CaptureManager>, SEL, NSInteger d) { return d == 2; }  // without MTL_CAPTURE_ENABLED a Mac has not even this
Bool manager_startCaptureWithDescriptor_error(In<CaptureManager> self, SEL, In<CaptureDescriptor> d, Object** error) {
  const char* domain = "MTLCaptureErrorDomain";
  if (self->capturing) return fail(error, domain, 2, "a capture is already running"), false;
  if (d->destination != 2) return fail(error, domain, 1, text("capture destination %lld is not supported", static_cast<long long>(d->destination))), false;
  if (!d->object) return fail(error, domain, 3, "the descriptor has no capture object"), false;
  Class* c = d->object.object()->isa;
  if (!c->derives(classOf<Device>) && !c->derives(classOf<Queue>)) return fail(error, domain, 3, std::string("cannot capture ") + c->name), false;
  if (!d->url) return fail(error, domain, 3, "the descriptor has no output URL"), false;
  std::string path = d->url->path;
  if (access(path.c_str(), F_OK) == 0) return fail(error, domain, 3, path + " exists already"), false;
  FILE* f = std::fopen(path.c_str(), "w");
  if (!f) return fail(error, domain, 3, "cannot write " + path), false;
  std::fprintf(f, "capture of %s by the stand-in\n", c->name);
  std::fclose(f);
  self->capturing = true;
  self->path = path;
  return true;
}
void manager_stopCapture(In<CaptureManager> self, SEL) {
  if (!self->capturing) misuse("capture", "no capture is running");
  self->capturing = false;
}
Bool manager_isCapturing(In<CaptureManager> self, SEL) { return self->capturing; }
void capture_setCaptureObject(In<CaptureDescriptor> self, SEL, Object* o) { self->object = o ? Held<State>(o->state) : Held<State>(); }
void capture_setDestination(In<CaptureDescriptor> self, SEL, int64_t d) { self->destination = d; }
void capture_setOutputURL(In<CaptureDescriptor> self, SEL, Maybe<Url> u) { self->url = Held<Url>(u.get()); }

}  // namespace

void methodsOfDevice() {
  Definer(classOf<Device>)
      .on("name", device_name)
      .on("registryID", device_registryID)
      .on("supportsFamily:", device_supportsFamily)
      .on("maxThreadsPerThreadgroup", device_maxThreadsPerThreadgroup)
      .on("maxThreadgroupMemoryLength", device_maxThreadgroupMemoryLength)
      .on("maxBufferLength", device_maxBufferLength)
      .on("recommendedMaxWorkingSetSize", device_recommendedMaxWorkingSetSize)
      .on("currentAllocatedSize", device_currentAllocatedSize)
      .on("hasUnifiedMemory", device_yes)
      .on("isLowPower", device_no)
      .on("isHeadless", device_no)
      .on("isRemovable", device_no)
      .on("supportsCounterSampling:", device_supportsCounterSampling)
      .on("sampleTimestamps:gpuTimestamp:", device_sampleTimestamps_gpuTimestamp);
  Definer(classOf<CaptureManager>)
      .onClass("sharedCaptureManager", manager_shared)
      .on("supportsDestination:", manager_supportsDestination)
      .on("startCaptureWithDescriptor:error:", manager_startCaptureWithDescriptor_error)
      .on("stopCapture", manager_stopCapture)
      .on("isCapturing", manager_isCapturing);
  Definer(classOf<CaptureDescriptor>)
      .on("setCaptureObject:", capture_setCaptureObject)
      .on("setDestination:", capture_setDestination)
      .on("setOutputURL:", capture_setOutputURL);
}

// define every class first, so that methods may name any of them as an argument.
void defineMetal() {
  Class* root = rootClass();
  define<Labelled>("MTLLabelled", root, true);
  Definer(classOf<Labelled>).on("label", labelOf).on("setLabel:", setLabelOf);
  Class* labelled = classOf<Labelled>;
  metalProtocol<Device>("MTLDevice", root);
  metalProtocol<Allocation>("MTLAllocation", labelled);
  metalProtocol<Resource>("MTLResource", classOf<Allocation>);
  metalProtocol<Buffer>("MTLBuffer", classOf<Resource>);
  metalProtocol<ResidencySet>("MTLResidencySet", root);
  metalProtocol<Library>("MTLLibrary", labelled);
  metalProtocol<Function>("MTLFunction", labelled);
  metalProtocol<BinaryArchive>("MTLBinaryArchive", labelled);
  metalProtocol<Pipeline>("MTLComputePipelineState", root);
  metalProtocol<Event>("MTLEvent", labelled);
  metalProtocol<SharedEvent>("MTLSharedEvent", classOf<Event>);
  metalProtocol<Fence>("MTLFence", labelled);
  metalProtocol<CounterSet>("MTLCounterSet", root);
  metalProtocol<CounterSampleBuffer>("MTLCounterSampleBuffer", root);
  metalProtocol<Queue>("MTLCommandQueue", labelled);
  metalProtocol<CommandBuffer>("MTLCommandBuffer", labelled);
  metalProtocol<Encoder>("MTLComputeCommandEncoder", labelled);
  metalProtocol<EncoderInfo>("MTLCommandBufferEncoderInfo", root);
  metalClass<CompileOptions>("MTLCompileOptions");
  metalClass<ConstantValues>("MTLFunctionConstantValues");
  metalClass<BinaryArchiveDescriptor>("MTLBinaryArchiveDescriptor");
  metalClass<CounterSampleBufferDescriptor>("MTLCounterSampleBufferDescriptor");
  metalClass<ComputePassDescriptor>("MTLComputePassDescriptor");
  metalClass<CommandBufferDescriptor>("MTLCommandBufferDescriptor");
  metalClass<CaptureDescriptor>("MTLCaptureDescriptor");
  metalClass<PipelineDescriptor>("MTLComputePipelineDescriptor");
  metalClass<ResidencySetDescriptor>("MTLResidencySetDescriptor");
  classOf<ResidencySetDescriptor>->since = 15;
  define<SampleAttachments>("MTLComputePassSampleBufferAttachmentDescriptorArray", root, false);
  define<SampleAttachment>("MTLComputePassSampleBufferAttachmentDescriptor", root, false);
  define<CaptureManager>("MTLCaptureManager", root, false);
}

}  // namespace pond

using namespace pond;

EXPORT Object* MTLCreateSystemDefaultDevice() {
  Object* d = world().device;
  if (d) retain(d);
  return d;
}

EXPORT Object* MTLCopyAllDevices() {
  Object* d = world().device;
  if (!d) return nullptr;
  Array* a = create<Array>();
  a->items.emplace_back(d->state);
  return a->self;
}
