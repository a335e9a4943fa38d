// MTLCommandQueue and MTLCommandBuffer: recording is here, running in metal_run.cpp.
#include <cstring>

#include "metal_objects.h"

namespace pond {

Queue::~Queue() { closeLane(*lane); }

CommandBuffer::~CommandBuffer() {
  if (status == 1) {
    report("not-committed", "command buffer %s was enqueued and is released without commit: its queue waits forever", label.c_str());
    laneForget(*queue->lane, this);
  }
  if (!left) laneLeave(*queue->lane, false);
  // A pass that never ran lets go of what it uses.
  if (status < 2)
    for (Step& s : steps)
      if (s.pass)
        for (auto& [b, write] : s.pass->uses) b->inFlight--;
}

namespace {

enum Status : NSUInteger { notEnqueued, enqueued, committed, scheduled, completed, error };

Object* newQueue(In<Device> self, NSUInteger limit) {
  if (limit == 0) return misuse("argument-type", "got a maximum of 0 command buffers"), nullptr;
  Queue* q = create<Queue>();
  q->device = Held<Device>(self.get());
  q->limit = limit;
  q->lane = newLane(limit);
  return q->self;
}
Object* device_newCommandQueue(In<Device> self, SEL) { return newQueue(self, 64); }
Object* device_newCommandQueueWithMax(In<Device> self, SEL, NSUInteger n) { return newQueue(self, n); }

Object* newCommandBuffer(In<Queue> self, bool retained, NSUInteger errorOptions) {
  if (!laneAdmit(*self->lane)) {
    misuse("too-many", "%llu command buffers exist and none is committed: a Mac waits here forever", static_cast<unsigned long long>(self->limit));
    return nullptr;
  }
  CommandBuffer* c = create<CommandBuffer>();
  c->queue = Held<Queue>(self.get());
  c->retained = retained;
  c->errorOptions = errorOptions;
  return autorelease(c->self);
}
Object* queue_commandBuffer(In<Queue> self, SEL) { return newCommandBuffer(self, true, 0); }
Object* queue_commandBufferWithUnretainedReferences(In<Queue> self, SEL) { return newCommandBuffer(self, false, 0); }
Object* queue_commandBufferWithDescriptor(In<Queue> self, SEL, In<CommandBufferDescriptor> d) { return newCommandBuffer(self, d->retained, d->errorOptions); }
Object* queue_device(In<Queue> self, SEL) { return share(self->device.object()); }
void queue_addResidencySet(In<Queue> self, SEL, In<ResidencySet> r) {
  std::lock_guard g(self->mu);
  if (self->residency.size() >= 32) misuse("residency", "got residency set 33, want at most 32 on a queue");
  for (auto& h : self->residency)
    if (h.object() == r.o) return;
  self->residency.emplace_back(r.get());
}
void queue_removeResidencySet(In<Queue> self, SEL, In<ResidencySet> r) {
  std::lock_guard g(self->mu);
  for (size_t i = 0; i < self->residency.size(); i++)
    if (self->residency[i].object() == r.o) {
      self->residency.erase(self->residency.begin() + long(i));
      return;
    }
  misuse("residency", "%s is not attached to the queue", describe(r.o).c_str());
}

void descriptor_setRetainedReferences(In<CommandBufferDescriptor> self, SEL, bool v) { self->retained = v; }
void descriptor_setErrorOptions(In<CommandBufferDescriptor> self, SEL, NSUInteger v) {
  if (v > 1) misuse("argument-type", "got error options %llu, want 0 or 1", static_cast<unsigned long long>(v));
  self->errorOptions = v;
}

// recording says whether c may still be recorded into.
bool recording(In<CommandBuffer> c) {
  if (c->status < committed && !c->open) return true;
  if (c->open) misuse("encoder-open", "the encoder %s is still open: want endEncoding first", c->open->label.c_str());
  else misuse("after-commit", "the command buffer is committed");
  return false;
}

Object* newEncoder(In<CommandBuffer> c, NSUInteger type, const ComputePassDescriptor* d) {
  if (!recording(c)) return nullptr;
  if (type > 1) return misuse("argument-type", "got dispatch type %llu, want 0 (serial) or 1 (concurrent)", static_cast<unsigned long long>(type)), nullptr;
  Encoder* e = create<Encoder>();
  e->commands = Held<CommandBuffer>(c.get());
  e->concurrent = type == 1;
  e->label = e->pass->label = "encoder";
  c->open = e;
  Step s;
  s.pass = e->pass;
  c->steps.push_back(s);
  if (d && d->attachments)
    for (auto& [i, a] : d->attachments->at)
      if (a->buffer) {
        for (NSUInteger n : {a->start, a->end})
          if (n != ~NSUInteger(0) && n >= a->buffer->samples.size())
            misuse("range", "got sample index %llu, want less than the %zu of the counter sample buffer", static_cast<unsigned long long>(n), a->buffer->samples.size());
        e->pass->samples.emplace_back(a->buffer, std::pair(a->start, a->end));
      }
  return autorelease(e->self);
}
Object* commands_computeEncoder(In<CommandBuffer> c, SEL) { return newEncoder(c, 0, nullptr); }
Object* commands_computeEncoderWithType(In<CommandBuffer> c, SEL, NSUInteger type) { return newEncoder(c, type, nullptr); }
Object* commands_computeEncoderWithDescriptor(In<CommandBuffer> c, SEL, In<ComputePassDescriptor> d) { return newEncoder(c, d->dispatchType, d.get()); }

void addEvent(In<CommandBuffer> c, In<Event> e, uint64_t value, bool signal) {
  if (!recording(c)) return;
  Step s;
  s.event = Held<Event>(e.get());
  s.value = value;
  s.signal = signal;
  c->steps.push_back(std::move(s));
}
void commands_encodeSignalEvent(In<CommandBuffer> c, SEL, In<Event> e, uint64_t v) { addEvent(c, e, v, true); }
void commands_encodeWaitForEvent(In<CommandBuffer> c, SEL, In<Event> e, uint64_t v) { addEvent(c, e, v, false); }
void commands_useResidencySet(In<CommandBuffer> c, SEL, In<ResidencySet> r) {
  if (recording(c)) c->residency.emplace_back(r.get());
}

void commands_enqueue(In<CommandBuffer> c, SEL) {
  if (c->status != notEnqueued) return misuse("after-commit", "the command buffer is enqueued or committed already");
  c->status = enqueued;
  laneEnqueue(*c->queue->lane, c.get());
}

void commands_commit(In<CommandBuffer> c, SEL) {
  if (c->status >= committed) return misuse("after-commit", "the command buffer is committed already");
  if (c->open) {
    misuse("encoder-open", "the encoder %s is still open: want endEncoding first", c->open->label.c_str());
    return;
  }
  if (c->groups) misuse("debug-group", "%d debug groups are still open", c->groups);
  checkResident(*c.get());
  hazardCommit(*c->submission);
  if (c->status == notEnqueued) laneEnqueue(*c->queue->lane, c.get());
  {
    std::lock_guard g(c->mu);
    c->status = committed;
  }
  laneCommit(*c->queue->lane, c.get());
}

void addHandler(In<CommandBuffer> c, Block* b, std::vector<Block*>& to) {
  if (c->status >= committed) return misuse("after-commit", "the command buffer is committed: the handler would not run");
  if (!b) return misuse("argument-type", "got no block");
  if (checkBlock(b, "v@?@")) to.push_back(b);
}
void commands_addCompletedHandler(In<CommandBuffer> c, SEL, BlockArg b) { addHandler(c, b.b, c->completed); }
void commands_addScheduledHandler(In<CommandBuffer> c, SEL, BlockArg b) { addHandler(c, b.b, c->scheduled); }

void commands_waitUntilCompleted(In<CommandBuffer> c, SEL) {
  if (c->status < committed) return misuse("not-committed", "the command buffer is not committed: a Mac waits here forever");
  Held<CommandBuffer> keep(c.get());
  // With a GPU a step is over before the system would have put this thread to sleep and woken it.
  if (world().kernels.msl_submit)
    for (double until = gpuSeconds() + 0.01; !c->done && gpuSeconds() < until;) {
    }
  std::unique_lock l(c->mu);
  c->changed.wait(l, [&] { return c->done.load(); });
}
void commands_waitUntilScheduled(In<CommandBuffer> c, SEL) {
  if (c->status < committed) return misuse("not-committed", "the command buffer is not committed: a Mac waits here forever");
  Held<CommandBuffer> keep(c.get());
  std::unique_lock l(c->mu);
  c->changed.wait(l, [&] { return c->status >= scheduled; });
}
NSUInteger commands_status(In<CommandBuffer> c, SEL) {
  std::lock_guard g(c->mu);
  return c->status;
}
Object* commands_error(In<CommandBuffer> c, SEL) {
  std::lock_guard g(c->mu);
  return share(c->error.object());
}
// Times are those of a finished command buffer; a Mac answers 0 before that, which a program would take for a measurement.
template <double CommandBuffer::* T>
double commands_time(In<CommandBuffer> c, SEL) {
  std::lock_guard g(c->mu);
  if (c->status < completed) misuse("too-early", "the command buffer has not completed");
  return c.get()->*T;
}
Object* commands_device(In<CommandBuffer> c, SEL) { return share(c->queue->device.object()); }
Object* commands_queue(In<CommandBuffer> c, SEL) { return share(c->queue.object()); }
Bool commands_retainedReferences(In<CommandBuffer> c, SEL) { return c->retained; }
NSUInteger commands_errorOptions(In<CommandBuffer> c, SEL) { return c->errorOptions; }
void commands_pushDebugGroup(In<CommandBuffer> c, SEL, In<String>) { c->groups++; }
void commands_popDebugGroup(In<CommandBuffer> c, SEL) {
  if (c->groups-- == 0) {
    c->groups = 0;
    misuse("debug-group", "no debug group is open");
  }
}

Object* info_label(In<EncoderInfo> self, SEL) { return newString(self->label); }
NSInteger info_errorState(In<EncoderInfo> self, SEL) { return self->state; }
Object* info_debugSignposts(In<EncoderInfo>, SEL) { return newArray({}); }

}  // namespace

void methodsOfQueue() {
  Definer(classOf<Device>)
      .on("newCommandQueue", device_newCommandQueue)
      .on("newCommandQueueWithMaxCommandBufferCount:", device_newCommandQueueWithMax);
  Definer(classOf<Queue>)
      .on("device", queue_device)
      .on("commandBuffer", queue_commandBuffer)
      .on("commandBufferWithUnretainedReferences", queue_commandBufferWithUnretainedReferences)
      .on("commandBufferWithDescriptor:", queue_commandBufferWithDescriptor)
      .since(15)
      .on("addResidencySet:", queue_addResidencySet)
      .on("removeResidencySet:", queue_removeResidencySet);
  Definer(classOf<CommandBufferDescriptor>)
      .on("setRetainedReferences:", descriptor_setRetainedReferences)
      .on("setErrorOptions:", descriptor_setErrorOptions);
  Definer(classOf<CommandBuffer>)
      .on("device", commands_device)
      .on("commandQueue", commands_queue)
      .on("retainedReferences", commands_retainedReferences)
      .on("errorOptions", commands_errorOptions)
      .on("computeCommandEncoder", commands_computeEncoder)
      .on("computeCommandEncoderWithDispatchType:", commands_computeEncoderWithType)
      .on("computeCommandEncoderWithDescriptor:", commands_computeEncoderWithDescriptor)
      .on("encodeSignalEvent:value:", commands_encodeSignalEvent)
      .on("encodeWaitForEvent:value:", commands_encodeWaitForEvent)
      .on("enqueue", commands_enqueue)
      .on("commit", commands_commit)
      .on("addCompletedHandler:", commands_addCompletedHandler)
      .on("addScheduledHandler:", commands_addScheduledHandler)
      .on("waitUntilCompleted", commands_waitUntilCompleted)
      .on("waitUntilScheduled", commands_waitUntilScheduled)
      .on("status", commands_status)
      .on("error", commands_error)
      .on("GPUStartTime", commands_time<&CommandBuffer::gpuStart>)
      .on("GPUEndTime", commands_time<&CommandBuffer::gpuEnd>)
      .on("kernelStartTime", commands_time<&CommandBuffer::kernelStart>)
      .on("kernelEndTime", commands_time<&CommandBuffer::kernelEnd>)
      .on("pushDebugGroup:", commands_pushDebugGroup)
      .on("popDebugGroup", commands_popDebugGroup)
      .since(15)
      .on("useResidencySet:", commands_useResidencySet);
  Definer(classOf<EncoderInfo>)
      .on("label", info_label)
      .on("errorState", info_errorState)
      .on("debugSignposts", info_debugSignposts);
}

}  // namespace pond
