// MTLComputeCommandEncoder: each dispatch is checked and bound when it is encoded, as Metal's validation layer does, and stricter.
//
// Invariant: a dispatch records addresses, so a buffer that it uses is held by the command buffer (retained references) or counted in flight.
#include <cstring>

#include "metal_objects.h"

namespace pond {

Encoder::~Encoder() {
  if (!ended) report("encoder-open", "encoder %s is released without endEncoding", label.c_str());
  if (commands && commands->open == this) commands->open = nullptr;
}

namespace {

using ull = unsigned long long;

// open says whether e still records.
bool open(In<Encoder> e) {
  if (e->ended) misuse("after-end", "endEncoding was called on %s", e->label.c_str());
  return !e->ended;
}

void setLabel(In<Encoder> e, SEL, Maybe<String> label) { e->label = e->pass->label = label ? label->s : "encoder"; }

// remember keeps an object alive until the command buffer has run, where it retains references.
void remember(In<Encoder> e, Object* o) {
  if (e->commands->retained) e->commands->references.try_emplace(o, Held<State>(o->state));
}

void setPipeline(In<Encoder> e, SEL, In<Pipeline> p) {
  if (!open(e)) return;
  e->pipeline = Held<Pipeline>(p.get());
}

bool slotIndex(NSUInteger i) {
  if (i < kMaxBuffers) return true;
  misuse("range", "got buffer index %llu, want at most %llu", ull(i), ull(kMaxBuffers - 1));
  return false;
}

void setBuffer(In<Encoder> e, SEL, Maybe<Buffer> b, NSUInteger offset, NSUInteger i) {
  if (!open(e) || !slotIndex(i)) return;
  Encoder::Slot& s = e->slots[i];
  s = {};
  if (!b) return;
  if (offset >= b->bytes) {
    misuse("offset", "got offset %llu at index %llu, want less than the length %llu of buffer %s", ull(offset), ull(i), ull(b->bytes), b->label.c_str());
    return;
  }
  if (offset % 4) misuse("offset", "got offset %llu at index %llu, want a multiple of 4", ull(offset), ull(i));
  s.buffer = b.o;
  s.serial = b.o->serial;
  s.offset = offset;
  remember(e, b.o);
}

// bound returns the slot's buffer; null where it is not set or has been released since.
Buffer* bound(const Encoder::Slot& s) {
  if (!s.buffer || s.buffer->life != Life::alive || s.buffer->serial != s.serial) return nullptr;
  return stateOf<Buffer>(s.buffer);
}

void setBufferOffset(In<Encoder> e, SEL, NSUInteger offset, NSUInteger i) {
  if (!open(e) || !slotIndex(i)) return;
  Encoder::Slot& s = e->slots[i];
  const Buffer* b = bound(s);
  if (!b) return misuse("unset-buffer", "index %llu has no buffer whose offset could be set", ull(i));
  if (offset >= b->bytes || offset % 4) return misuse("offset", "got offset %llu at index %llu, want a multiple of 4 less than %llu", ull(offset), ull(i), ull(b->bytes));
  s.offset = offset;
}

void setBytes(In<Encoder> e, SEL, const void* p, NSUInteger n, NSUInteger i) {
  if (!open(e) || !slotIndex(i)) return;
  if (n == 0 || n > MSL_MAX_BYTES_ARG) return misuse("length", "got %llu bytes at index %llu, want 1 to %d", ull(n), ull(i), int(MSL_MAX_BYTES_ARG));
  if (!p) return misuse("argument-type", "got no bytes at index %llu", ull(i));
  e->slots[i] = {};
  e->slots[i].bytes = &e->pass->inlined.emplace_back(static_cast<const char*>(p), n);
}

void setThreadgroupMemory(In<Encoder> e, SEL, NSUInteger n, NSUInteger i) {
  if (!open(e)) return;
  if (i >= MSL_MAX_THREADGROUP_ARGS) return misuse("range", "got threadgroup index %llu, want at most %d", ull(i), int(MSL_MAX_THREADGROUP_ARGS) - 1);
  if (n % 16) return misuse("alignment", "got %llu bytes of threadgroup memory at index %llu, want a multiple of 16", ull(n), ull(i));
  if (n > MSL_MAX_THREADGROUP_BYTES) return misuse("threadgroup-memory", "got %llu bytes of threadgroup memory at index %llu, want at most %d", ull(n), ull(i), int(MSL_MAX_THREADGROUP_BYTES));
  e->threadgroup[i] = n;
}

// bind fills the dispatch's bindings from the encoder's slots; false: something that the kernel takes is missing.
bool bind(In<Encoder> e, const Pipeline& p, Dispatch& d) {
  bool good = true;
  NSUInteger dynamic = 0;
  for (NSUInteger n : e->threadgroup) dynamic += n;  // what is set counts until it is set again, asked for or not
  for (const msl_arg_info& a : p.args) {
    if (a.kind == MSL_ARG_THREADGROUP) {
      NSUInteger n = a.index < MSL_MAX_THREADGROUP_ARGS ? e->threadgroup[a.index] : 0;
      if (n == 0) {
        misuse("threadgroup-memory", "%s: %s at [[threadgroup(%u)]] has no memory: want setThreadgroupMemoryLength:atIndex: first", p.label.c_str(), a.name, a.index);
        good = false;
      }
      if (a.index < MSL_MAX_THREADGROUP_ARGS) d.grid.threadgroupBytes[a.index] = uint32_t(n);
      continue;
    }
    const Encoder::Slot& s = e->slots[a.index];
    msl_binding b{a.index, 0, nullptr, 0, nullptr};
    if (s.bytes) {
      if (a.access & MSL_WRITE) {
        misuse("unset-buffer", "%s: %s at index %u is written by the kernel and has setBytes, want a buffer", p.label.c_str(), a.name, a.index);
        good = false;
      }
      b.inlineBytes = uint32_t(s.bytes->size());
      b.lenBytes = s.bytes->size();
      b.base = const_cast<char*>(s.bytes->data());
      b.label = a.name;
    } else if (const Buffer* buffer = bound(s)) {
      b.base = static_cast<char*>(buffer->base) + s.offset;
      b.lenBytes = buffer->bytes - s.offset;
      if (a.alignBytes && s.offset % a.alignBytes) {
        misuse("offset", "%s: %s at index %u has offset %llu, want a multiple of %u", p.label.c_str(), a.name, a.index, ull(s.offset), a.alignBytes);
        good = false;
      }
    } else {
      if (s.buffer) misuse("use-after-release", "%s: %s at index %u has been released since it was set", p.label.c_str(), a.name, a.index);
      else misuse("unset-buffer", "%s: %s at index %u is not set", p.label.c_str(), a.name, a.index);
      good = false;
      continue;
    }
    if (b.lenBytes < (a.reference ? a.elementBytes : 1)) {
      misuse("offset", "%s: %s at index %u has %llu bytes, want the %u of its type", p.label.c_str(), a.name, a.index, ull(b.lenBytes), a.elementBytes);
      good = false;
    }
    d.bindings.push_back(b);
  }
  if (dynamic + p.info.threadgroupBytes > MSL_MAX_THREADGROUP_BYTES) {
    misuse("threadgroup-memory", "%s: got %llu + %u bytes of threadgroup memory, want at most %d", p.label.c_str(), ull(dynamic), p.info.threadgroupBytes, int(MSL_MAX_THREADGROUP_BYTES));
    good = false;
  }
  return good;
}

bool checkThreads(const Pipeline& p, MTLSize t) {
  if (t.width == 0 || t.height == 0 || t.depth == 0) return misuse("threads", "%s: got a threadgroup of %llu x %llu x %llu threads", p.label.c_str(), ull(t.width), ull(t.height), ull(t.depth)), false;
  bool large = t.width > MSL_MAX_THREADS || t.height > MSL_MAX_THREADS || t.depth > MSL_MAX_THREADS;
  if (large || t.width * t.height * t.depth > p.maxThreads)
    return misuse("threads", "%s: got a threadgroup of %llu x %llu x %llu threads, want at most %llu", p.label.c_str(), ull(t.width), ull(t.height), ull(t.depth), ull(p.maxThreads)), false;
  if (p.multipleOfWidth && t.width * t.height * t.depth % MSL_SIMD_WIDTH)
    return misuse("threads", "%s: got %llu threads a threadgroup, want the multiple of %d that the pipeline promises", p.label.c_str(), ull(t.width * t.height * t.depth), int(MSL_SIMD_WIDTH)), false;
  return true;
}

// use notes that the next dispatch touches b.
void use(In<Encoder> e, Buffer* b, bool write) {
  remember(e, b->self);
  auto [it, fresh] = e->pass->uses.try_emplace(b, false);
  if (fresh) b->inFlight++;
  it->second = it->second || write;
  if (!e->concurrent || world().kernels.msl_submit) return;  // where times are taken, what costs one is left to the processor's runtime
  auto before = e->uncovered.find(b);
  if (before != e->uncovered.end() && (write || before->second))
    misuse("missing-barrier", "buffer %s was used before a memoryBarrierWithResources: that does not name it", b->label.empty() ? describe(b->self).c_str() : b->label.c_str());
  e->touched[b] = e->touched[b] || write;
}

// record checks everything that can be known now and appends the dispatch to its level.
void record(In<Encoder> e, Dispatch d, MTLSize threads) {
  if (!e->pipeline) return misuse("no-pipeline", "no pipeline is set");
  const Pipeline& p = *e->pipeline.get();
  if (!checkThreads(p, threads)) return;
  d.pipeline = e->pipeline;
  d.label = e->groups.empty() ? p.label : e->groups.back();
  d.grid.threads[0] = uint32_t(threads.width);
  d.grid.threads[1] = uint32_t(threads.height);
  d.grid.threads[2] = uint32_t(threads.depth);
  if (!bind(e, p, d)) return;
  // Only now, when nothing is missing: what is used, and how.
  for (const msl_arg_info& a : p.args)
    if (a.kind == MSL_ARG_BUFFER)
      if (Buffer* b = bound(e->slots[a.index])) use(e, b, a.access & MSL_WRITE);
  remember(e, e->pipeline.object());
  if (e->fresh || !e->concurrent) e->pass->levels.emplace_back();
  e->fresh = false;
  e->pass->levels.back().push_back(std::move(d));
}

void dispatchThreadgroups(In<Encoder> e, SEL, MTLSize groups, MTLSize threads) {
  if (!open(e)) return;
  if (groups.width == 0 || groups.height == 0 || groups.depth == 0 || groups.width > kMaxGroups || groups.height > kMaxGroups || groups.depth > kMaxGroups)
    return misuse("grid", "got a grid of %llu x %llu x %llu threadgroups, want 1 to %llu in each", ull(groups.width), ull(groups.height), ull(groups.depth), ull(kMaxGroups));
  Dispatch d;
  d.grid.groups[0] = uint32_t(groups.width);
  d.grid.groups[1] = uint32_t(groups.height);
  d.grid.groups[2] = uint32_t(groups.depth);
  record(e, std::move(d), threads);
}

void dispatchThreads(In<Encoder> e, SEL, MTLSize grid, MTLSize threads) {
  if (!open(e)) return;
  if (threads.width == 0 || threads.height == 0 || threads.depth == 0 || grid.width == 0 || grid.height == 0 || grid.depth == 0)
    return misuse("grid", "got a grid of %llu x %llu x %llu threads, want at least 1 in each", ull(grid.width), ull(grid.height), ull(grid.depth));
  Dispatch d;
  const NSUInteger g[3] = {grid.width, grid.height, grid.depth}, t[3] = {threads.width, threads.height, threads.depth};
  for (int i = 0; i < 3; i++) {
    NSUInteger n = (g[i] + t[i] - 1) / t[i];
    if (n > kMaxGroups) return misuse("grid", "got %llu threadgroups, want at most %llu", ull(n), ull(kMaxGroups));
    d.grid.groups[i] = uint32_t(n);
    d.grid.last[i] = uint32_t(g[i] % t[i]);
  }
  record(e, std::move(d), threads);
}

void dispatchIndirect(In<Encoder> e, SEL, In<Buffer> b, NSUInteger offset, MTLSize threads) {
  if (!open(e)) return;
  if (offset % 4 || b->bytes < 12 || offset > b->bytes - 12) return misuse("offset", "got indirect offset %llu in buffer %s, want a multiple of 4 with 12 bytes behind it", ull(offset), b->label.c_str());
  Dispatch d;
  d.indirect = static_cast<char*>(b->base) + offset;
  use(e, b.get(), false);
  record(e, std::move(d), threads);
}

void memoryBarrierWithScope(In<Encoder> e, SEL, NSUInteger scope) {
  if (!open(e)) return;
  if (scope == 0 || scope > 3) return misuse("argument-type", "got barrier scope %llu, want 1 (buffers), 2 (textures) or both", ull(scope));
  if (scope & 1) {
    e->fresh = true;
    e->touched.clear();
    e->uncovered.clear();
  }
  std::lock_guard g(world().totals->mu);
  world().totals->barriers++;
}

bool resources(Object* const* r, NSUInteger n) {
  for (NSUInteger i = 0; i < n; i++)
    if (!r || !isObject(r[i]) || r[i]->life != Life::alive || !r[i]->isa->derives(classOf<Resource>)) return misuse("argument-type", "element %llu is no MTLResource", ull(i)), false;
  return true;
}

// A barrier for named resources opens a level like any other; uncovered keeps what it does not name, for the dispatches behind it.
void memoryBarrierWithResources(In<Encoder> e, SEL, Object* const* r, NSUInteger n) {
  if (!open(e) || !resources(r, n)) return;
  if (n == 0) return misuse("argument-type", "got no resources, want at least one");
  e->fresh = true;
  for (auto& [b, write] : e->touched) e->uncovered[b] = e->uncovered[b] || write;
  e->touched.clear();
  for (NSUInteger i = 0; i < n; i++) e->uncovered.erase(stateOf<Buffer>(r[i]));
  std::lock_guard g(world().totals->mu);
  world().totals->barriers++;
}

void useResources(In<Encoder> e, SEL, Object* const* r, NSUInteger n, NSUInteger usage) {
  if (!open(e) || !resources(r, n)) return;
  if (usage == 0 || usage > 7) misuse("argument-type", "got resource usage %llu, want read (1), write (2) or both", ull(usage));
  for (NSUInteger i = 0; i < n; i++) {
    e->pass->madeResident[r[i]] |= usage;
    remember(e, r[i]);
  }
}
void useResource(In<Encoder> e, SEL sel, In<Resource> r, NSUInteger usage) { useResources(e, sel, &r.o, 1, usage); }

void updateFence(In<Encoder> e, SEL, In<Fence> f) {
  if (open(e)) e->pass->updates.emplace_back(f.get());
}
void waitForFence(In<Encoder> e, SEL, In<Fence> f) {
  if (!open(e)) return;
  if (!e->pass->updates.empty()) misuse("fence", "the encoder updates a fence already: want waitForFence: before it");
  e->pass->waits.emplace_back(f.get());
}

void pushDebugGroup(In<Encoder> e, SEL, In<String> s) {
  if (open(e)) e->groups.push_back(s->s);
}
void popDebugGroup(In<Encoder> e, SEL) {
  if (!open(e)) return;
  if (e->groups.empty()) return misuse("debug-group", "no debug group is open");
  e->groups.pop_back();
}
void insertDebugSignpost(In<Encoder> e, SEL, In<String>) { open(e); }

void sampleCounters(In<Encoder>, SEL, In<CounterSampleBuffer>, NSUInteger, bool) {
  misuse("unsupported", "Apple's chips take no counter samples between dispatches, only at the ends of an encoder");
}

NSUInteger dispatchType(In<Encoder> e, SEL) { return e->concurrent; }
Object* encoder_device(In<Encoder> e, SEL) { return share(e->commands->queue->device.object()); }

void endEncoding(In<Encoder> e, SEL) {
  if (!open(e)) return;
  if (!e->groups.empty()) misuse("debug-group", "%zu debug groups are still open", e->groups.size());
  e->ended = true;
  e->commands->open = nullptr;
}

}  // namespace

void methodsOfEncoder() {
  Definer(classOf<Encoder>)
      .on("setLabel:", setLabel)
      .on("device", encoder_device)
      .on("dispatchType", dispatchType)
      .on("setComputePipelineState:", setPipeline)
      .on("setBuffer:offset:atIndex:", setBuffer)
      .on("setBufferOffset:atIndex:", setBufferOffset)
      .on("setBytes:length:atIndex:", setBytes)
      .on("setThreadgroupMemoryLength:atIndex:", setThreadgroupMemory)
      .on("dispatchThreadgroups:threadsPerThreadgroup:", dispatchThreadgroups)
      .on("dispatchThreads:threadsPerThreadgroup:", dispatchThreads)
      .on("dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:", dispatchIndirect)
      .on("memoryBarrierWithScope:", memoryBarrierWithScope)
      .on("memoryBarrierWithResources:count:", memoryBarrierWithResources)
      .on("useResource:usage:", useResource)
      .on("useResources:count:usage:", useResources)
      .on("updateFence:", updateFence)
      .on("waitForFence:", waitForFence)
      .on("pushDebugGroup:", pushDebugGroup)
      .on("popDebugGroup", popDebugGroup)
      .on("insertDebugSignpost:", insertDebugSignpost)
      .on("sampleCountersInBuffer:atSampleIndex:withBarrier:", sampleCounters)
      .on("endEncoding", endEncoding);
}

}  // namespace pond
