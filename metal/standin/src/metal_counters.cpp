// Timestamps in counter sample buffers, pass descriptors, and the stand-in's own counters.
#include <cstring>

#include "metal_objects.h"

namespace pond {
namespace {

using ull = unsigned long long;

Object* device_counterSets(In<Device>, SEL) {
  CounterSet* s = create<CounterSet>();
  Object* a = newArray({s});
  release(s->self);
  return a;
}
Object* set_name(In<CounterSet> self, SEL) { return newString(self->name); }

void descriptor_setCounterSet(In<CounterSampleBufferDescriptor> self, SEL, Maybe<CounterSet> s) { self->set = Held<CounterSet>(s.get()); }
void descriptor_setStorageMode(In<CounterSampleBufferDescriptor> self, SEL, NSUInteger m) { self->storage = m; }
void descriptor_setSampleCount(In<CounterSampleBufferDescriptor> self, SEL, NSUInteger n) { self->samples = n; }

Object* device_newCounterSampleBuffer(In<Device> self, SEL, In<CounterSampleBufferDescriptor> d, Object** error) {
  constexpr const char* domain = "MTLCounterErrorDomain";
  constexpr NSUInteger most = 4096;  // 32 KiB of samples of 8 bytes, the limit of Apple's chips
  if (!d->set) return fail(error, domain, 1, "the descriptor has no counter set"), nullptr;
  if (d->samples == 0 || d->samples > most) return fail(error, domain, 1, text("got %llu samples, want 1 to %llu", ull(d->samples), ull(most))), nullptr;
  if (d->storage != 0 && d->storage != 2) return fail(error, domain, 2, text("got storage mode %llu, want shared or private", ull(d->storage))), nullptr;
  CounterSampleBuffer* b = create<CounterSampleBuffer>();
  b->device = Held<Device>(self.get());
  b->label = d->label;
  b->samples.assign(d->samples, ~uint64_t(0));  // MTLCounterErrorValue until sampled
  return b->self;
}
Object* samples_resolve(In<CounterSampleBuffer> self, SEL, NSRange r) {
  std::lock_guard g(self->mu);
  if (r.location > self->samples.size() || r.length > self->samples.size() - r.location) {
    misuse("range", "got samples %llu+%llu of %zu", ull(r.location), ull(r.length), self->samples.size());
    return nullptr;
  }
  return autorelease(create<Data>(std::string(reinterpret_cast<const char*>(self->samples.data() + r.location), r.length * 8))->self);
}
NSUInteger samples_count(In<CounterSampleBuffer> self, SEL) { return self->samples.size(); }
Object* samples_label(In<CounterSampleBuffer> self, SEL) { return newString(self->label); }

Object* pass_computePassDescriptor(Object*, SEL) { return autorelease(create<ComputePassDescriptor>()->self); }
NSUInteger pass_dispatchType(In<ComputePassDescriptor> self, SEL) { return self->dispatchType; }
void pass_setDispatchType(In<ComputePassDescriptor> self, SEL, NSUInteger t) { self->dispatchType = t; }
Object* pass_attachments(In<ComputePassDescriptor> self, SEL) {
  if (!self->attachments) {
    SampleAttachments* a = create<SampleAttachments>();
    self->attachments = Held<SampleAttachments>(a);
    release(a->self);
  }
  return share(self->attachments.object());
}
Object* attachments_at(In<SampleAttachments> self, SEL, NSUInteger i) {
  if (i > 3) return misuse("range", "got attachment %llu, want at most 3", ull(i)), nullptr;
  Held<SampleAttachment>& h = self->at[i];
  if (!h) {
    SampleAttachment* a = create<SampleAttachment>();
    h = Held<SampleAttachment>(a);
    release(a->self);
  }
  return share(h.object());
}
void attachment_setSampleBuffer(In<SampleAttachment> self, SEL, Maybe<CounterSampleBuffer> b) { self->buffer = Held<CounterSampleBuffer>(b.get()); }
void attachment_setStart(In<SampleAttachment> self, SEL, NSUInteger i) { self->start = i; }
void attachment_setEnd(In<SampleAttachment> self, SEL, NSUInteger i) { self->end = i; }

std::string quoted(const std::string& s) {
  std::string o = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') o += '\\', o += char(c);
    else if (c < 0x20) o += text("\\u%04x", unsigned(c));
    else o += char(c);
  }
  return o + "\"";
}

}  // namespace

// counterReport is what standin.Report reads; buffers' traffic since the last call of it is summed by label.
std::string counterReport() {
  World& w = world();
  std::map<std::string, uint64_t> sizes;
  {
    std::lock_guard b(w.buffersMu);
    std::lock_guard g(w.totals->mu);
    for (Buffer* buffer : w.buffers) {
      msl_traffic t{};
      w.kernels.msl_memory_traffic(buffer->base, &t);
      msl_traffic& sum = w.totals->buffers[buffer->label];
      sum.loadBytes += t.loadBytes;
      sum.storeBytes += t.storeBytes;
      sum.loadLines += t.loadLines;
      sum.storeLines += t.storeLines;
      sizes[buffer->label] += buffer->bytes;
    }
  }
  std::lock_guard g(w.totals->mu);
  const Totals& t = *w.totals;
  const msl_counts& c = t.counts;
  std::string s = text("{\"CommandBuffers\":%llu,\"Passes\":%llu,\"Levels\":%llu,\"Dispatches\":%llu,\"Barriers\":%llu", ull(t.commandBuffers), ull(t.passes), ull(t.levels), ull(t.dispatches), ull(t.barriers));
  s += text(",\"Threadgroups\":%llu,\"Threads\":%llu,\"SimdOps\":%llu,\"MatrixOps\":%llu,\"ThreadgroupBarriers\":%llu,\"SimdgroupBarriers\":%llu", ull(c.threadgroups), ull(c.threads), ull(c.simdOps),
            ull(c.matrixOps), ull(c.tgBarriers), ull(c.sgBarriers));
  s += text(",\"LoadBytes\":%llu,\"StoreBytes\":%llu,\"ThreadgroupLoadBytes\":%llu,\"ThreadgroupStoreBytes\":%llu,\"Atomics\":%llu,\"ThreadgroupBytes\":%llu", ull(c.loadBytes), ull(c.storeBytes),
            ull(c.tgLoadBytes), ull(c.tgStoreBytes), ull(c.atomics), ull(c.threadgroupBytes));
  s += text(",\"GPUSeconds\":%.9f", t.gpuSeconds);
  s += ",\"Buffers\":[";
  const char* comma = "";
  for (auto& [label, b] : t.buffers) {
    s += text("%s{\"Label\":%s,\"LenBytes\":%llu,\"LoadBytes\":%llu,\"StoreBytes\":%llu,\"LoadLines\":%llu,\"StoreLines\":%llu}", comma, quoted(label).c_str(), ull(sizes.contains(label) ? sizes[label] : 0),
              ull(b.loadBytes), ull(b.storeBytes), ull(b.loadLines), ull(b.storeLines));
    comma = ",";
  }
  s += "],\"Kernels\":[";
  comma = "";
  for (auto& [name, k] : t.kernels) {
    s += text("%s{\"Name\":%s,\"Dispatches\":%llu,\"Seconds\":%.9f}", comma, quoted(name).c_str(), ull(k.first), k.second);
    comma = ",";
  }
  return s + "]}";
}

void methodsOfCounters() {
  Definer(classOf<Device>)
      .on("counterSets", device_counterSets)
      .on("newCounterSampleBufferWithDescriptor:error:", device_newCounterSampleBuffer);
  Definer(classOf<CounterSet>).on("name", set_name);
  Definer(classOf<CounterSampleBufferDescriptor>)
      .on("label", labelOf)
      .on("setLabel:", setLabelOf)
      .on("setCounterSet:", descriptor_setCounterSet)
      .on("setStorageMode:", descriptor_setStorageMode)
      .on("setSampleCount:", descriptor_setSampleCount);
  Definer(classOf<CounterSampleBuffer>)
      .on("label", samples_label)
      .on("sampleCount", samples_count)
      .on("resolveCounterRange:", samples_resolve);
  Definer(classOf<ComputePassDescriptor>)
      .onClass("computePassDescriptor", pass_computePassDescriptor)
      .on("dispatchType", pass_dispatchType)
      .on("setDispatchType:", pass_setDispatchType)
      .on("sampleBufferAttachments", pass_attachments);
  Definer(classOf<SampleAttachments>).on("objectAtIndexedSubscript:", attachments_at);
  Definer(classOf<SampleAttachment>)
      .on("setSampleBuffer:", attachment_setSampleBuffer)
      .on("setStartOfEncoderSampleIndex:", attachment_setStart)
      .on("setEndOfEncoderSampleIndex:", attachment_setEnd);
}

}  // namespace pond
