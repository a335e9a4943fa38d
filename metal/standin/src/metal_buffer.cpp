// MTLBuffer and residency sets.
#include <algorithm>
#include <cstring>

#include "metal_objects.h"

namespace pond {

Buffer::~Buffer() {
  World& w = world();
  {
    std::lock_guard g(w.buffersMu);
    w.buffers.erase(this);
  }
  if (inFlight > 0) {
    report("freed-in-flight", "buffer %s is freed while a command buffer that does not retain it is using it", label.empty() ? describe(self).c_str() : label.c_str());
    return;  // its memory stays, so that the kernel finds some
  }
  if (base) {
    msl_traffic t{};
    w.kernels.msl_memory_traffic(base, &t);
    {
      std::lock_guard g(w.totals->mu);
      msl_traffic& sum = w.totals->buffers[label];
      sum.loadBytes += t.loadBytes;
      sum.storeBytes += t.storeBytes;
      sum.loadLines += t.loadLines;
      sum.storeLines += t.storeLines;
    }
    w.kernels.msl_memory_free(base);
  }
  w.allocated -= bytes;
  if (deallocator) reinterpret_cast<void (*)(Block*, void*, NSUInteger)>(deallocator->invoke)(deallocator, base, bytes);
}

namespace {

// checkOptions looks at the three fields of MTLResourceOptions: cache mode, storage mode, hazard tracking.
bool checkOptions(NSUInteger options) {
  NSUInteger cache = options & 15, storage = options >> 4 & 15, hazard = options >> 8;
  const unsigned long long got = options;
  if (cache > 1 || storage > 3 || hazard > 2) return misuse("options", "got resource options 0x%llx, which no combination of modes gives", got), false;
  if (storage == 1) return misuse("options", "got storage mode managed, want shared or private: Apple Silicon has one memory"), false;
  if (storage == 3) return misuse("options", "got storage mode memoryless, which buffers cannot have"), false;
  return true;
}

Object* newBuffer(In<Device> self, NSUInteger length, NSUInteger options, void* wrapped, Block* deallocator) {
  World& w = world();
  if (length == 0) return misuse("length", "got length 0, want at least 1"), nullptr;
  if (!checkOptions(options)) return nullptr;
  if (length > w.config.maxBufferLength) {
    misuse("length", "got length %llu, want at most maxBufferLength %llu", static_cast<unsigned long long>(length), static_cast<unsigned long long>(w.config.maxBufferLength));
    return nullptr;
  }
  if (w.faults.due("allocation", nullptr)) return nullptr;
  void* base = wrapped ? w.kernels.msl_memory_wrap(wrapped, length, "buffer") : w.kernels.msl_memory_new(length, "buffer", 0);
  if (!base) return nullptr;
  Buffer* b = create<Buffer>();
  b->device = Held<Device>(self.get());
  b->options = options;
  b->bytes = length;
  b->base = base;
  b->wrapped = wrapped != nullptr;
  b->deallocator = deallocator;
  w.allocated += length;
  std::lock_guard g(w.buffersMu);
  w.buffers.insert(b);
  return b->self;
}

Object* device_newBufferWithLength(In<Device> self, SEL, NSUInteger length, NSUInteger options) { return newBuffer(self, length, options, nullptr, nullptr); }
Object* device_newBufferWithBytes(In<Device> self, SEL, const void* bytes, NSUInteger length, NSUInteger options) {
  if (!bytes) return misuse("argument-type", "got no bytes"), nullptr;
  if ((options >> 4 & 15) == 2) return misuse("options", "got storage mode private, want shared: the program's bytes cannot be copied there"), nullptr;
  Object* o = newBuffer(self, length, options, nullptr, nullptr);
  if (o) std::memcpy(stateOf<Buffer>(o)->base, bytes, length);
  return o;
}
Object* device_newBufferWithBytesNoCopy(In<Device> self, SEL, void* bytes, NSUInteger length, NSUInteger options, BlockArg deallocator) {
  auto address = reinterpret_cast<uintptr_t>(bytes);
  if (!bytes || address % kPageBytes || length % kPageBytes) {
    misuse("alignment", "got address 0x%llx and length %llu, want multiples of the page of %llu bytes", static_cast<unsigned long long>(address), static_cast<unsigned long long>(length),
           static_cast<unsigned long long>(kPageBytes));
    return nullptr;
  }
  if ((options >> 4 & 15) != 0) return misuse("options", "got a storage mode that is not shared: memory of the program can be nothing else"), nullptr;
  if (deallocator.b && !checkBlock(deallocator.b, "v@?^vQ")) return nullptr;
  return newBuffer(self, length, options, bytes, deallocator.b);
}

void* buffer_contents(In<Buffer> self, SEL) {
  if ((self->options >> 4 & 15) == 2) return misuse("options", "the storage mode is private: the program cannot see the memory"), nullptr;
  return self->base;
}
NSUInteger buffer_length(In<Buffer> self, SEL) { return self->bytes; }
uint64_t buffer_gpuAddress(In<Buffer> self, SEL) { return reinterpret_cast<uint64_t>(self->base); }
void buffer_didModifyRange(In<Buffer>, SEL, NSRange) { misuse("options", "the storage mode is not managed, so there is nothing to announce"); }
void resource_setLabel(In<Buffer> self, SEL, Maybe<String> label) {
  self->label = label ? label->s : "";
  world().kernels.msl_memory_label(self->base, self->label.c_str());
}
Object* resource_device(In<Resource> self, SEL) { return share(self->device.object()); }
NSUInteger resource_options(In<Resource> self, SEL) { return self->options; }
NSUInteger resource_storageMode(In<Resource> self, SEL) { return self->options >> 4 & 15; }
NSUInteger resource_hazardTrackingMode(In<Resource> self, SEL) { return self->untracked() ? 1 : 2; }
NSUInteger resource_cpuCacheMode(In<Resource> self, SEL) { return self->options & 15; }
NSUInteger allocation_allocatedSize(In<Allocation> self, SEL) { return (self->bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }
NSUInteger resource_setPurgeableState(In<Resource>, SEL, NSUInteger state) {
  if (state > 4 || state == 0) misuse("argument-type", "got purgeable state %llu, want 1 to 4", static_cast<unsigned long long>(state));
  return 2;
}

// ---- residency

Object* device_newResidencySet(In<Device>, SEL, In<ResidencySetDescriptor> d, Object**) {
  ResidencySet* r = create<ResidencySet>();
  r->label = d->label;
  return r->self;
}
void descriptor_setInitialCapacity(In<ResidencySetDescriptor> self, SEL, NSUInteger n) { self->initialCapacity = n; }
Object* set_label(In<ResidencySet> self, SEL) { return newString(self->label); }
void set_addAllocation(In<ResidencySet> self, SEL, In<Allocation> a) {
  std::lock_guard g(self->mu);
  self->pending[a.o] = Held<Allocation>(a.get());
}
void set_removeAllocation(In<ResidencySet> self, SEL, In<Allocation> a) {
  std::lock_guard g(self->mu);
  if (!self->pending.erase(a.o)) misuse("residency", "%s is not in the set", describe(a.o).c_str());
}
void set_addAllocations_count(In<ResidencySet> self, SEL, Object* const* a, NSUInteger n) {
  std::lock_guard g(self->mu);
  for (NSUInteger i = 0; i < n; i++) {
    if (!isObject(a[i]) || a[i]->life != Life::alive || !a[i]->isa->derives(classOf<Allocation>)) {
      misuse("argument-type", "element %llu is no MTLAllocation", static_cast<unsigned long long>(i));
      return;
    }
    self->pending[a[i]] = Held<Allocation>(stateOf<Allocation>(a[i]));
  }
}
void set_removeAllAllocations(In<ResidencySet> self, SEL) {
  std::lock_guard g(self->mu);
  self->pending.clear();
}
void set_commit(In<ResidencySet> self, SEL) {
  std::unordered_map<Object*, Held<Allocation>> old;  // let go outside the lock
  std::lock_guard g(self->mu);
  old = std::exchange(self->committed, self->pending);
}
void set_requestResidency(In<ResidencySet> self, SEL) { self->requested = true; }
void set_endResidency(In<ResidencySet> self, SEL) {
  if (!self->requested) misuse("residency", "residency was not requested");
  self->requested = false;
}
Bool set_containsAllocation(In<ResidencySet> self, SEL, In<Allocation> a) {
  std::lock_guard g(self->mu);
  return self->pending.contains(a.o);
}
NSUInteger set_allocationCount(In<ResidencySet> self, SEL) {
  std::lock_guard g(self->mu);
  return self->pending.size();
}
uint64_t set_allocatedSize(In<ResidencySet> self, SEL) {
  std::lock_guard g(self->mu);
  uint64_t sum = 0;
  for (auto& [o, a] : self->committed) sum += (a->bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  return sum;
}

}  // namespace

// Stricter than a Mac, where a buffer that is bound directly is resident by that: once a program keeps residency sets, each buffer must be in one; where it
// keeps none, an encoder that names buffers by useResource: must name all, and those that its kernels may write as written.
void checkResident(CommandBuffer& c) {
  std::vector<Held<ResidencySet>> sets = c.residency;
  {
    std::lock_guard g(c.queue->mu);
    sets.insert(sets.end(), c.queue->residency.begin(), c.queue->residency.end());
  }
  std::sort(sets.begin(), sets.end(), [](auto& x, auto& y) { return x.get() < y.get(); });
  sets.erase(std::unique(sets.begin(), sets.end(), [](auto& x, auto& y) { return x.get() == y.get(); }), sets.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (auto& r : sets) locks.emplace_back(r->mu);
  for (Step& s : c.steps) {
    if (!s.pass) continue;
    if (sets.empty() && s.pass->madeResident.empty()) continue;
    for (auto& [b, write] : s.pass->uses) {
      auto named = s.pass->madeResident.find(b->self);
      bool in = named != s.pass->madeResident.end(), waiting = false;
      auto name = [&b = b] { return b->label.empty() ? describe(b->self) : b->label; };
      constexpr NSUInteger writes = 2;
      if (in && write && !(named->second & writes)) misuse("residency", "buffer %s is named by useResource: of %s as read, and a kernel may write it", name().c_str(), s.pass->label.c_str());
      for (auto& r : sets) in = in || r->committed.contains(b->self);
      if (in) continue;
      for (auto& r : sets) waiting = waiting || r->pending.contains(b->self);
      if (sets.empty()) misuse("residency", "buffer %s is used by %s, which names others by useResource: and not this one", name().c_str(), s.pass->label.c_str());
      else misuse("residency", "buffer %s is used by %s and is in no residency set%s", name().c_str(), s.pass->label.c_str(), waiting ? " (it was added, but the set not committed)" : "");
    }
  }
}

void methodsOfBuffer() {
  Definer(classOf<Device>)
      .on("newBufferWithLength:options:", device_newBufferWithLength)
      .on("newBufferWithBytes:length:options:", device_newBufferWithBytes)
      .on("newBufferWithBytesNoCopy:length:options:deallocator:", device_newBufferWithBytesNoCopy)
      .since(15)
      .on("newResidencySetWithDescriptor:error:", device_newResidencySet);
  Definer(classOf<Allocation>).on("allocatedSize", allocation_allocatedSize);
  Definer(classOf<Resource>)
      .on("device", resource_device)
      .on("resourceOptions", resource_options)
      .on("storageMode", resource_storageMode)
      .on("hazardTrackingMode", resource_hazardTrackingMode)
      .on("cpuCacheMode", resource_cpuCacheMode)
      .on("setPurgeableState:", resource_setPurgeableState);
  Definer(classOf<Buffer>)
      .on("contents", buffer_contents)
      .on("length", buffer_length)
      .on("gpuAddress", buffer_gpuAddress)
      .on("didModifyRange:", buffer_didModifyRange)
      .on("setLabel:", resource_setLabel);
  Definer(classOf<ResidencySetDescriptor>).since(15).on("setInitialCapacity:", descriptor_setInitialCapacity).on("label", labelOf).on("setLabel:", setLabelOf);
  Definer(classOf<ResidencySet>)
      .since(15)
      .on("label", set_label)
      .on("addAllocation:", set_addAllocation)
      .on("removeAllocation:", set_removeAllocation)
      .on("addAllocations:count:", set_addAllocations_count)
      .on("removeAllAllocations", set_removeAllAllocations)
      .on("commit", set_commit)
      .on("requestResidency", set_requestResidency)
      .on("endResidency", set_endResidency)
      .on("containsAllocation:", set_containsAllocation)
      .on("allocationCount", set_allocationCount)
      .on("allocatedSize", set_allocatedSize);
}

}  // namespace pond
