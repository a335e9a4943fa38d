// MTLEvent, MTLSharedEvent and MTLFence.
#include <chrono>

#include "metal_objects.h"

namespace pond {
namespace {

Object* device_newEvent(In<Device> self, SEL) {
  Event* e = create<Event>();
  e->device = Held<Device>(self.get());
  return e->self;
}
Object* device_newSharedEvent(In<Device> self, SEL) {
  SharedEvent* e = create<SharedEvent>();
  e->device = Held<Device>(self.get());
  return e->self;
}
Object* device_newFence(In<Device> self, SEL) {
  Fence* f = create<Fence>();
  f->device = Held<Device>(self.get());
  return f->self;
}
Object* event_device(In<Event> self, SEL) { return share(self->device.object()); }
Object* fence_device(In<Fence> self, SEL) { return share(self->device.object()); }

uint64_t event_signaledValue(In<SharedEvent> self, SEL) {
  std::lock_guard g(self->mu);
  return self->value;
}
void event_setSignaledValue(In<SharedEvent> self, SEL, uint64_t v) {
  std::lock_guard g(self->mu);
  if (v < self->value) misuse("event", "got value %llu after %llu: values of an event only grow", static_cast<unsigned long long>(v), static_cast<unsigned long long>(self->value));
  self->value = v;
  self->changed.notify_all();
}
Bool event_waitUntilSignaledValue(In<SharedEvent> self, SEL, uint64_t v, uint64_t ms) {
  Held<SharedEvent> keep(self.get());
  std::unique_lock l(self->mu);
  auto reached = [&] { return self->value >= v; };
  if (ms > uint64_t(1) << 40) {
    self->changed.wait(l, reached);
    return true;
  }
  return self->changed.wait_for(l, std::chrono::milliseconds(ms), reached);
}

}  // namespace

void methodsOfSync() {
  Definer(classOf<Device>)
      .on("newEvent", device_newEvent)
      .on("newSharedEvent", device_newSharedEvent)
      .on("newFence", device_newFence);
  Definer(classOf<Event>).on("device", event_device);
  Definer(classOf<Fence>).on("device", fence_device);
  Definer(classOf<SharedEvent>)
      .on("signaledValue", event_signaledValue)
      .on("setSignaledValue:", event_setSignaledValue)
      .since(15)
      .on("waitUntilSignaledValue:timeoutMS:", event_waitUntilSignaledValue);
}

}  // namespace pond
