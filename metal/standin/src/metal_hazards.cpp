// Hazards between passes over untracked buffers.
//
// Within an encoder barriers order dispatches, and the kernel runtime's check mode watches them byte by byte. Between encoders, of one command buffer
// or of two in flight, Metal orders only what it tracks: passes over untracked buffers may overlap unless a fence, an event or the program's own wait
// for completion puts one before the other. The stand-in runs passes one after another, so it would never show; this bookkeeping does.
//
// Rule: pass Q is before pass P if Q is in P's set (from fences and events, closed under what was before those), or Q's command buffer had completed when
// P's was committed. Two passes that share an untracked buffer, one of them writing it, must have one before the other.
#include "metal_objects.h"

namespace pond {
namespace {

struct Hazards {
  std::mutex mu;
  uint64_t clock = 0, passes = 0;
  std::set<uint64_t> inFlight;  // moments of commit of what has not completed
};
Hazards& hazards() {
  static Hazards* h = new Hazards;
  return *h;
}

bool isBefore(const PassOrder& q, const PassOrder& p) {
  if (p.before.contains(q.serial)) return true;
  uint64_t done = q.submission->completed;
  return done && done < p.submission->committed;
}

// forget drops passes that had completed before anything in flight was committed: they are before all that can still come, so sets stay small.
void forget(Passes& passes) {
  const Hazards& h = hazards();
  const uint64_t horizon = h.inFlight.empty() ? h.clock : *h.inFlight.begin();
  std::erase_if(passes, [&](auto& p) { return p.second->completed && p.second->completed < horizon; });
}

const char* nameOf(const Buffer& b) { return b.label.empty() ? "without label" : b.label.c_str(); }

}  // namespace

void hazardCommit(Submission& s) {
  std::lock_guard g(hazards().mu);
  hazards().inFlight.insert(s.committed = ++hazards().clock);
}

void hazardComplete(Submission& s) {
  std::lock_guard g(hazards().mu);
  s.completed = ++hazards().clock;
  hazards().inFlight.erase(s.committed);
}

std::shared_ptr<PassOrder> beginPass(const Pass& pass, const std::shared_ptr<Submission>& s, const Passes& waited) {
  Hazards& h = hazards();
  std::lock_guard g(h.mu);
  auto p = std::make_shared<PassOrder>();
  p->serial = ++h.passes;
  p->label = pass.label;
  p->submission = s;
  p->before = waited;
  for (auto& f : pass.waits) p->before.insert(f->before.begin(), f->before.end());
  forget(p->before);
  for (auto& [b, write] : pass.uses) {
    if (!b->untracked()) continue;
    if (b->writer && !isBefore(*b->writer, *p))
      report("missing-fence", "pass %s %s buffer %s, which pass %s writes, and no fence, event or wait is between them: untracked passes may overlap", p->label.c_str(), write ? "writes" : "reads", nameOf(*b),
             b->writer->label.c_str());
    if (write)
      for (auto& r : b->readers)
        if (!isBefore(*r, *p))
          report("missing-fence", "pass %s writes buffer %s, which pass %s reads, and no fence, event or wait is between them: untracked passes may overlap", p->label.c_str(), nameOf(*b), r->label.c_str());
    if (write) {
      b->writer = p;
      b->readers.clear();
    } else {
      std::erase_if(b->readers, [&](auto& r) { return isBefore(*r, *p); });
      b->readers.push_back(p);
    }
  }
  return p;
}

void endPass(const Pass& pass, const PassOrder& p) {
  Hazards& h = hazards();
  std::lock_guard g(h.mu);
  for (auto& f : pass.updates) {
    f->before.insert(p.before.begin(), p.before.end());
    f->before[p.serial] = p.submission;
    forget(f->before);
  }
}

}  // namespace pond
