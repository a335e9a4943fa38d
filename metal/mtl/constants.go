package mtl

// Apple's constants by Apple's names, without the prefix MTL. The test that checks the selectors checks these values too.

// Resource options. https://developer.apple.com/documentation/metal/mtlresourceoptions
const (
	ResourceStorageModeShared           = 0
	ResourceHazardTrackingModeUntracked = 256
)

// StorageModeShared is memory that CPU and GPU both see. https://developer.apple.com/documentation/metal/mtlstoragemode
const StorageModeShared = 0

// DispatchType says whether the dispatches of an encoder wait for each other by themselves.
// https://developer.apple.com/documentation/metal/mtldispatchtype
type DispatchType uint64

const (
	DispatchTypeSerial     DispatchType = 0
	DispatchTypeConcurrent DispatchType = 1
)

// BarrierScopeBuffers orders accesses to all buffers. https://developer.apple.com/documentation/metal/mtlbarrierscope
const BarrierScopeBuffers = 1

// ResourceUsage is what kernels do to a resource. https://developer.apple.com/documentation/metal/mtlresourceusage
type ResourceUsage uint64

const (
	ResourceUsageRead  ResourceUsage = 1
	ResourceUsageWrite ResourceUsage = 2
)

// CommandBufferStatus is where a command buffer stands. https://developer.apple.com/documentation/metal/mtlcommandbufferstatus
type CommandBufferStatus uint64

const (
	CommandBufferStatusNotEnqueued CommandBufferStatus = 0
	CommandBufferStatusEnqueued    CommandBufferStatus = 1
	CommandBufferStatusCommitted   CommandBufferStatus = 2
	CommandBufferStatusScheduled   CommandBufferStatus = 3
	CommandBufferStatusCompleted   CommandBufferStatus = 4
	CommandBufferStatusError       CommandBufferStatus = 5
)

// CommandBufferErrorOptionEncoderExecutionStatus makes the error of a command buffer name the encoder that failed.
// https://developer.apple.com/documentation/metal/mtlcommandbuffererroroption
const CommandBufferErrorOptionEncoderExecutionStatus = 1

// LanguageVersion of the Metal text. https://developer.apple.com/documentation/metal/mtllanguageversion
type LanguageVersion uint64

const (
	LanguageVersion3_1 LanguageVersion = 196609
	LanguageVersion3_2 LanguageVersion = 196610 // macOS 15: newer than the headers at hand, from the page above
	LanguageVersion4_0 LanguageVersion = 262144 // macOS 26: likewise
)

// MathModeSafe forbids rewriting of floating-point arithmetic (macOS 15: from the page).
// https://developer.apple.com/documentation/metal/mtlmathmode
const MathModeSafe = 0

// DataType is the type of a function constant. https://developer.apple.com/documentation/metal/mtldatatype
type DataType uint64

const (
	DataTypeFloat DataType = 3
	DataTypeInt   DataType = 29
	DataTypeUInt  DataType = 33
	DataTypeBool  DataType = 53
)

// GPUFamily is a set of features that chips share. https://developer.apple.com/documentation/metal/mtlgpufamily
type GPUFamily uint64

const (
	GPUFamilyApple7  GPUFamily = 1007 // M1
	GPUFamilyApple8  GPUFamily = 1008 // M2
	GPUFamilyApple9  GPUFamily = 1009 // M3, M4
	GPUFamilyApple10 GPUFamily = 1010 // M5: newer than the headers at hand, from the page above
	GPUFamilyMetal3  GPUFamily = 5001
	GPUFamilyMetal4  GPUFamily = 5002 // macOS 26: likewise
)

// CounterSamplingPointAtStageBoundary is the one place where Apple's own chips take timestamps: the ends of an encoder.
// https://developer.apple.com/documentation/metal/mtlcountersamplingpoint
const CounterSamplingPointAtStageBoundary = 0

// Where a capture goes. https://developer.apple.com/documentation/metal/mtlcapturedestination
const (
	CaptureDestinationDeveloperTools   = 1
	CaptureDestinationGPUTraceDocument = 2
)

// PipelineOptionNone asks for no reflection. https://developer.apple.com/documentation/metal/mtlpipelineoption
const PipelineOptionNone = 0
