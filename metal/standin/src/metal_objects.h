// What the Metal objects of the stand-in hold. Their methods are in the metal_*.cpp file of each class; running is in metal_run.cpp.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "foundation.h"
#include "msl_run.h"

namespace pond {

using CallbackJob = uintptr_t (*)(uintptr_t job);

// Limits and numbers of the device that is played: Apple family 9, macOS 15.
constexpr NSUInteger kMaxBuffers = MSL_MAX_BUFFERS;
constexpr NSUInteger kPageBytes = 16384;  // of Apple Silicon: what newBufferWithBytesNoCopy must be aligned to
constexpr NSUInteger kMaxGroups = 0xffffffff;

// ---- the kernel runtime, loaded by dlopen

struct Kernels {
#define POND_MSL_FUNCTIONS(F) \
  F(msl_abi) F(msl_library_open) F(msl_library_checked) F(msl_library_kernels) F(msl_library_kernel) F(msl_kernel_describe) F(msl_kernel_arg) \
  F(msl_library_constants) F(msl_library_constant) F(msl_kernel_reads) F(msl_pipeline_new) F(msl_pipeline_free) F(msl_memory_new) F(msl_memory_wrap) \
  F(msl_memory_label) F(msl_memory_free) F(msl_memory_traffic) F(msl_run)
#define POND_MSL_FIELD(f) decltype(&::f) f = nullptr;
  POND_MSL_FUNCTIONS(POND_MSL_FIELD)
#undef POND_MSL_FIELD
  // Both or none: a runtime that drives a GPU takes passes, and runs them while the program goes on.
  decltype(&::msl_submit) msl_submit = nullptr;
  decltype(&::msl_finish) msl_finish = nullptr;
  std::string load(const char* path);  // "" or what is wrong
};

// ---- what the program asked of this session (pond_standin_open, config lines)

struct Config {
  std::string runtime;           // path of the kernel runtime
  std::string name = "Pond stand-in";
  int macos = 15;
  uint32_t order = MSL_ASCENDING;
  uint32_t flags = 0;            // MSL_POISON | MSL_CHECK | MSL_COUNT
  uint64_t seed = 1;
  uint32_t workers = 0;
  bool shuffleDispatches = false;
  uint64_t maxBufferLength = uint64_t(1) << 36;
  uint64_t workingSet = uint64_t(24) << 30;
  int family = 9;                // Apple GPU family
  NSUInteger maxThreads = MSL_MAX_THREADS;  // of a pipeline, as if its kernel needed many registers
  CallbackJob compile = nullptr;
};

// Faults asked for, each for the n-th event from when it was asked.
struct Faults {
  std::mutex mu;
  std::map<std::string, std::pair<uint64_t, std::string>> at;  // kind -> events to go, text
  // due counts one event of the kind and says whether it fails; *what is the text that was asked for.
  bool due(const char* kind, std::string* what);
};

struct Totals {
  std::mutex mu;
  msl_counts counts{};
  uint64_t commandBuffers = 0, passes = 0, levels = 0, dispatches = 0, barriers = 0, messages = 0;
  double gpuSeconds = 0;  // that a GPU worked, by its own clock
  std::map<std::string, msl_traffic> buffers;   // by label, of buffers that are gone
  std::map<std::string, std::pair<uint64_t, double>> kernels;  // dispatches, seconds
};

struct Device;
struct Buffer;
struct World {
  Kernels kernels;
  Config config;
  Faults faults;
  std::unique_ptr<Totals> totals = std::make_unique<Totals>();
  Object* device = nullptr;
  Object* captureManager = nullptr;
  std::mutex buffersMu;
  std::set<Buffer*> buffers;
  std::atomic<uint64_t> allocated{0};
  std::atomic<uint64_t> group{0};  // msl_options.group: a new number for every level
  // Work in flight over all queues.
  std::mutex busyMu;
  std::condition_variable idle;
  int busy = 0;
};
World& world();

struct Job {  // one call of the compiler, owned by newLibraryWithSource
  std::string source, options, result;
  bool ok = false, answered = false;
};

// ---- hazards between passes (metal_hazards.cpp)

struct Submission {  // of one command buffer
  std::atomic<uint64_t> committed{0}, completed{0};  // moments on one clock of commits and completions
};
// Passes by number, with the submission that each belongs to.
using Passes = std::map<uint64_t, std::shared_ptr<Submission>>;
struct PassOrder {
  uint64_t serial;
  std::string label;
  std::shared_ptr<Submission> submission;
  Passes before;  // what fences and events put before this one
};
void hazardCommit(Submission& s);
void hazardComplete(Submission& s);

// ---- classes

struct Labelled : Root {
  std::string label;
};

struct Device : Root {};

struct Allocation : Labelled {
  uint64_t bytes = 0;
};
struct Resource : Allocation {
  Held<Device> device;
  NSUInteger options = 0;
  bool untracked() const { return (options >> 8 & 3) == 1; }
};
struct Buffer : Resource {
  void* base = nullptr;
  bool wrapped = false;
  Block* deallocator = nullptr;
  std::atomic<int> inFlight{0};  // passes that use it and have not finished
  // Accesses of earlier passes, for untracked buffers; guarded by the hazards' mutex.
  std::shared_ptr<PassOrder> writer;
  std::vector<std::shared_ptr<PassOrder>> readers;
  ~Buffer() override;
};

struct ResidencySetDescriptor : Labelled {
  NSUInteger initialCapacity = 0;
};
struct ResidencySet : Labelled {
  std::mutex mu;
  std::unordered_map<Object*, Held<Allocation>> pending, committed;
  bool requested = false;
};

struct CompileOptions : Root {
  NSUInteger languageVersion = 0x30002;
  NSInteger mathMode = 2;  // fast
  bool fastMath = true, preserveInvariance = false;
  NSUInteger maxThreads = 0;
  NSInteger optimization = 0;
  Held<Dictionary> macros;
};

struct Library : Labelled {
  Held<Device> device;
  msl_library* lib = nullptr;
};
struct ConstantValues : Root {
  struct Value { NSUInteger type; std::string bytes; };
  std::map<NSUInteger, Value> byIndex;
  std::map<std::string, Value> byName;
};
struct Function : Labelled {
  Held<Library> library;
  std::string name;
  std::vector<std::pair<uint32_t, std::string>> constants;
  bool specialised = false;
};
struct BinaryArchiveDescriptor : Root {
  Held<Url> url;
};
struct BinaryArchive : Labelled {
  Held<Device> device;
  std::mutex mu;
  std::set<std::string> functions;
};
struct PipelineDescriptor : Labelled {
  Held<Function> function;
  NSUInteger maxThreads = 0;
  bool multipleOfWidth = false;
  Held<Array> archives;
};
struct Pipeline : Labelled {
  Held<Device> device;
  Held<Function> function;
  msl_pipeline* pipeline = nullptr;
  msl_kernel_info info{};
  std::vector<msl_arg_info> args;
  NSUInteger maxThreads = MSL_MAX_THREADS;
  bool multipleOfWidth = false;
  ~Pipeline() override;
};

struct Event : Labelled {
  Held<Device> device;
  std::mutex mu;
  std::condition_variable changed;
  uint64_t value = 0, promised = 0;   // promised: by command buffers that the GPU has and that everything given to it later comes behind
  std::map<uint64_t, Passes> signals;  // value -> passes before it
};
struct SharedEvent : Event {};
struct Fence : Labelled {
  Held<Device> device;
  Passes before;  // guarded by the hazards' mutex
};

struct CounterSet : Root {
  std::string name = "timestamp";
};
struct CounterSampleBufferDescriptor : Labelled {
  Held<CounterSet> set;
  NSUInteger storage = 0, samples = 0;
};
struct CounterSampleBuffer : Labelled {
  Held<Device> device;
  std::mutex mu;
  std::vector<uint64_t> samples;
};
struct SampleAttachment : Root {
  Held<CounterSampleBuffer> buffer;
  NSUInteger start = ~NSUInteger(0), end = ~NSUInteger(0);
};
struct SampleAttachments : Root {
  std::map<NSUInteger, Held<SampleAttachment>> at;
};
struct ComputePassDescriptor : Root {
  NSUInteger dispatchType = 0;
  Held<SampleAttachments> attachments;
};

struct CaptureDescriptor : Root {
  Held<State> object;
  NSInteger destination = 1;
  Held<Url> url;
};
struct CaptureManager : Root {
  bool capturing = false;
  std::string path;
};

// ---- recorded work

struct Dispatch {
  Held<Pipeline> pipeline;
  std::string label;  // the encoder's innermost debug group, or the kernel's name
  std::vector<msl_binding> bindings;
  msl_grid grid{};
  void* indirect = nullptr;  // three uint32 threadgroup counts, read when it runs
};
struct Pass {
  std::string label;
  std::vector<std::vector<Dispatch>> levels;
  std::deque<std::string> inlined;  // what setBytes copied
  std::unordered_map<Buffer*, bool> uses;  // and whether one of them writes
  std::map<Object*, NSUInteger> madeResident;  // by useResource:, and the usage that was named
  std::vector<Held<Fence>> waits, updates;
  std::vector<std::pair<Held<CounterSampleBuffer>, std::pair<NSUInteger, NSUInteger>>> samples;
  int state = 0;                    // MTLCommandEncoderErrorState: 0 unknown, 1 completed, 2 affected, 3 pending, 4 faulted
};
struct Step {  // of a command buffer: a pass, a signal or a wait
  std::shared_ptr<Pass> pass;
  Held<Event> event;
  uint64_t value = 0;
  bool signal = false;
};

struct Queue;
struct Lane;  // the thread that runs a queue's command buffers
struct Encoder;
struct CommandBufferDescriptor : Root {
  bool retained = true;
  NSUInteger errorOptions = 0;
};
struct CommandBuffer : Labelled {
  Held<Queue> queue;
  bool retained = true;
  NSUInteger errorOptions = 0;
  std::mutex mu;
  std::condition_variable changed;
  std::atomic<NSUInteger> status{0};
  std::atomic<bool> done{false};  // handlers have run
  Held<Error> error;
  double gpuStart = 0, gpuEnd = 0, kernelStart = 0, kernelEnd = 0;
  std::vector<Block*> scheduled, completed;
  Encoder* open = nullptr;
  std::vector<Step> steps;
  std::map<Object*, Held<State>> references;
  std::vector<Held<ResidencySet>> residency;
  std::shared_ptr<Submission> submission = std::make_shared<Submission>();
  int groups = 0;      // debug groups open
  bool left = false;   // no longer counts against the queue's limit
  ~CommandBuffer() override;
};
struct Queue : Labelled {
  Held<Device> device;
  NSUInteger limit = 64;
  std::shared_ptr<Lane> lane;
  std::mutex mu;
  std::vector<Held<ResidencySet>> residency;
  ~Queue() override;
};
struct Encoder : Labelled {
  Held<CommandBuffer> commands;
  std::shared_ptr<Pass> pass = std::make_shared<Pass>();
  bool concurrent = false, ended = false, fresh = true;  // fresh: the next dispatch opens a level
  Held<Pipeline> pipeline;
  struct Slot {  // not holding the buffer: with unretained references nothing on a Mac does
    Object* buffer = nullptr;
    uint64_t serial = 0;
    NSUInteger offset = 0;
    const std::string* bytes = nullptr;
  } slots[kMaxBuffers];
  NSUInteger threadgroup[MSL_MAX_THREADGROUP_ARGS] = {};
  std::vector<std::string> groups;
  std::map<Buffer*, bool> touched, uncovered;  // since the last barrier; before one for named resources that does not name them. true: written
  ~Encoder() override;
};
struct EncoderInfo : Root {
  std::string label;
  NSInteger state = 0;
};

// ---- between the files

template <class T>
Definer metalProtocol(const char* name, Class* super) { return define<T>(name, super, true); }
template <class T>
Definer metalClass(const char* name) {
  Definer d = define<T>(name, rootClass(), false);
  classOf<T>->make = [] { return static_cast<State*>(new T); };
  return d;
}
Object* labelOf(In<Labelled> self, SEL);
void setLabelOf(In<Labelled> self, SEL, Maybe<String> label);

// Running (metal_run.cpp).
std::shared_ptr<Lane> newLane(NSUInteger limit);
void closeLane(Lane& lane);
bool laneAdmit(Lane& lane);     // waits for one of the queue's command buffers to be free; false: it never will be
void laneLeave(Lane& lane, bool committed);  // a command buffer has run, or is gone without
void laneEnqueue(Lane& lane, CommandBuffer* c);
void laneForget(Lane& lane, CommandBuffer* c);  // enqueued, and gone before commit
void laneCommit(Lane& lane, CommandBuffer* c);
void waitIdle();
double gpuSeconds();
uint64_t gpuNanoseconds();

// Hazards (metal_hazards.cpp).
std::shared_ptr<PassOrder> beginPass(const Pass& p, const std::shared_ptr<Submission>& s, const Passes& waited);
void endPass(const Pass& p, const PassOrder& o);

void checkResident(CommandBuffer& c);  // at commit (metal_buffer.cpp)
std::string counterReport();           // JSON (metal_counters.cpp)

void defineMetal();
void methodsOfDevice();
void methodsOfBuffer();
void methodsOfLibrary();
void methodsOfPipeline();
void methodsOfQueue();
void methodsOfEncoder();
void methodsOfSync();
void methodsOfCounters();

}  // namespace pond
