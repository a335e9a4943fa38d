// MTLComputePipelineState and binary archives.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "metal_objects.h"

namespace pond {

Pipeline::~Pipeline() {
  if (pipeline) world().kernels.msl_pipeline_free(pipeline);
}

namespace {

constexpr const char* kPipelineDomain = "MTLComputePipelineErrorDomain";
constexpr const char* kArchiveDomain = "MTLBinaryArchiveDomain";
constexpr const char* kArchiveHead = "pond stand-in archive 1";

// archived names a specialised function: what an archive keeps instead of machine code.
std::string archived(const Function& f) {
  std::string s = f.name;
  for (auto& [index, bytes] : f.constants) {
    s += text(" %u=", index);
    for (unsigned char c : bytes) s += text("%02x", unsigned(c));
  }
  return s;
}

Object* newPipeline(In<Device> self, Function* f, const PipelineDescriptor* d, NSUInteger options, Object** error) {
  World& w = world();
  const Kernels& k = w.kernels;
  std::string what;
  if (w.faults.due("pipeline", &what)) return fail(error, kPipelineDomain, 2, what), nullptr;
  constexpr NSUInteger failOnMiss = 4;
  if (options & failOnMiss) {
    bool found = false;
    if (d && d->archives)
      for (auto& a : d->archives->items) {
        auto* archive = static_cast<BinaryArchive*>(a.get());
        std::lock_guard g(archive->mu);
        found = found || archive->functions.contains(archived(*f));
      }
    if (!found) return fail(error, kPipelineDomain, 1, f->name + " is in none of the binary archives"), nullptr;
  }
  std::vector<msl_constant> constants;
  for (auto& [index, bytes] : f->constants) constants.push_back({index, uint32_t(bytes.size()), bytes.data()});
  char why[2048] = "";
  msl_pipeline* made = k.msl_pipeline_new(f->library->lib, f->name.c_str(), constants.data(), int(constants.size()), why, sizeof why);
  if (!made) return fail(error, kPipelineDomain, 1, why), nullptr;
  Pipeline* p = create<Pipeline>();
  p->device = Held<Device>(self.get());
  p->function = Held<Function>(f);
  p->pipeline = made;
  k.msl_kernel_describe(f->library->lib, f->name.c_str(), &p->info);
  for (uint32_t i = 0; i < p->info.args; i++) {
    msl_arg_info a;
    if (k.msl_kernel_arg(f->library->lib, f->name.c_str(), int(i), &a) == 0) p->args.push_back(a);
  }
  p->maxThreads = std::min<NSUInteger>(p->info.maxThreads, w.config.maxThreads);
  p->label = f->name;
  if (d) {
    if (d->maxThreads && d->maxThreads < p->maxThreads) p->maxThreads = d->maxThreads;
    p->multipleOfWidth = d->multipleOfWidth;
    if (!d->label.empty()) p->label = d->label;
  }
  if (p->info.threadgroupBytes > MSL_MAX_THREADGROUP_BYTES) {
    fail(error, kPipelineDomain, 3, text("%s: got %u bytes of threadgroup memory, want at most %d", f->name.c_str(), p->info.threadgroupBytes, int(MSL_MAX_THREADGROUP_BYTES)));
    release(p->self);
    return nullptr;
  }
  return p->self;
}

Object* device_newPipelineWithFunction(In<Device> self, SEL, In<Function> f, Object** error) { return newPipeline(self, f.get(), nullptr, 0, error); }
Object* device_newPipelineWithDescriptor(In<Device> self, SEL, In<PipelineDescriptor> d, NSUInteger options, Object** reflection, Object** error) {
  if (reflection && (options & 3)) misuse("unsupported", "the stand-in has no reflection, want options without 1 and 2");
  if (!d->function) return misuse("argument-type", "the descriptor has no compute function"), nullptr;
  return newPipeline(self, d->function.get(), d.get(), options, error);
}

void descriptor_setComputeFunction(In<PipelineDescriptor> self, SEL, Maybe<Function> f) { self->function = Held<Function>(f.get()); }
Object* descriptor_computeFunction(In<PipelineDescriptor> self, SEL) { return share(self->function.object()); }
void descriptor_setMaxTotalThreads(In<PipelineDescriptor> self, SEL, NSUInteger n) {
  if (n > MSL_MAX_THREADS) misuse("threads", "got %llu threads a threadgroup, want at most %d", static_cast<unsigned long long>(n), int(MSL_MAX_THREADS));
  self->maxThreads = n;
}
void descriptor_setMultipleOfWidth(In<PipelineDescriptor> self, SEL, bool v) { self->multipleOfWidth = v; }
void descriptor_setBinaryArchives(In<PipelineDescriptor> self, SEL, Maybe<Array> a) {
  if (a)
    for (auto& i : a->items)
      if (!i.object()->isa->derives(classOf<BinaryArchive>)) {
        misuse("argument-type", "got %s in the array, want MTLBinaryArchive", describe(i.object()).c_str());
        return;
      }
  self->archives = Held<Array>(a.get());
}

NSUInteger pipeline_maxTotalThreads(In<Pipeline> self, SEL) { return self->maxThreads; }
NSUInteger pipeline_threadExecutionWidth(In<Pipeline>, SEL) { return MSL_SIMD_WIDTH; }
NSUInteger pipeline_staticThreadgroupMemoryLength(In<Pipeline> self, SEL) { return self->info.threadgroupBytes; }
Object* pipeline_label(In<Pipeline> self, SEL) { return newString(self->label); }
Object* pipeline_device(In<Pipeline> self, SEL) { return share(self->device.object()); }

// ---- binary archives: the names of what was added, in a text file

Object* device_newBinaryArchive(In<Device> self, SEL, In<BinaryArchiveDescriptor> d, Object** error) {
  BinaryArchive* a = create<BinaryArchive>();
  a->device = Held<Device>(self.get());
  if (d->url) {
    std::ifstream f(d->url->path);
    std::string line;
    if (!f) {
      release(a->self);
      return fail(error, kArchiveDomain, 1, "no such archive: " + d->url->path), nullptr;
    }
    if (!std::getline(f, line) || line != kArchiveHead) {
      release(a->self);
      return fail(error, kArchiveDomain, 1, d->url->path + " is no binary archive of this device"), nullptr;
    }
    while (std::getline(f, line)) a->functions.insert(line);
  }
  return a->self;
}
Bool archive_addFunctions(In<BinaryArchive> self, SEL, In<PipelineDescriptor> d, Object** error) {
  if (!d->function) return fail(error, kArchiveDomain, 3, "the descriptor has no compute function"), false;
  std::lock_guard g(self->mu);
  self->functions.insert(archived(*d->function.get()));
  return true;
}
Bool archive_serializeToURL(In<BinaryArchive> self, SEL, In<Url> url, Object** error) {
  std::lock_guard g(self->mu);
  if (self->functions.empty()) return fail(error, kArchiveDomain, 2, "the archive is empty"), false;
  std::ofstream f(url->path);
  f << kArchiveHead << "\n";
  for (auto& s : self->functions) f << s << "\n";
  f.close();
  if (!f) return fail(error, kArchiveDomain, 1, "cannot write " + url->path), false;
  return true;
}
void descriptor_setUrl(In<BinaryArchiveDescriptor> self, SEL, Maybe<Url> u) { self->url = Held<Url>(u.get()); }

}  // namespace

void methodsOfPipeline() {
  Definer(classOf<Device>)
      .on("newComputePipelineStateWithFunction:error:", device_newPipelineWithFunction)
      .on("newComputePipelineStateWithDescriptor:options:reflection:error:", device_newPipelineWithDescriptor)
      .on("newBinaryArchiveWithDescriptor:error:", device_newBinaryArchive);
  Definer(classOf<PipelineDescriptor>)
      .on("label", labelOf)
      .on("setLabel:", setLabelOf)
      .on("computeFunction", descriptor_computeFunction)
      .on("setComputeFunction:", descriptor_setComputeFunction)
      .on("setMaxTotalThreadsPerThreadgroup:", descriptor_setMaxTotalThreads)
      .on("setThreadGroupSizeIsMultipleOfThreadExecutionWidth:", descriptor_setMultipleOfWidth)
      .on("setBinaryArchives:", descriptor_setBinaryArchives);
  Definer(classOf<Pipeline>)
      .on("label", pipeline_label)
      .on("device", pipeline_device)
      .on("maxTotalThreadsPerThreadgroup", pipeline_maxTotalThreads)
      .on("threadExecutionWidth", pipeline_threadExecutionWidth)
      .on("staticThreadgroupMemoryLength", pipeline_staticThreadgroupMemoryLength);
  Definer(classOf<BinaryArchiveDescriptor>).on("setUrl:", descriptor_setUrl);
  Definer(classOf<BinaryArchive>)
      .on("addComputePipelineFunctionsWithDescriptor:error:", archive_addFunctions)
      .on("serializeToURL:error:", archive_serializeToURL);
}

}  // namespace pond
