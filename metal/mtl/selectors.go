package mtl

import "strings"

// Everything that this package says to Objective-C is in the table below: selector, owner, result and arguments as Apple's headers
// declare them. A test holds every call in the source to its row, and every row to the headers where they are at hand.
//
// Ownership follows Apple's rule of names: what a selector that begins with new, alloc, copy, init or retain returns is the caller's, to be
// released once; everything else belongs to the autorelease pool or to the object that was asked.
// https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/MemoryMgmt/Articles/mmRules.html

// selector is the index of a registered selector: sel_a_b stands for a:b:.
type selector int

const (
	sel_addAllocation selector = iota
	sel_addComputePipelineFunctionsWithDescriptor_error
	sel_addResidencySet
	sel_allocatedSize
	sel_arrayWithObject
	sel_bytes
	sel_code
	sel_commandBuffer
	sel_commandBufferWithDescriptor
	sel_commit
	sel_computeCommandEncoderWithDescriptor
	sel_computeCommandEncoderWithDispatchType
	sel_computePassDescriptor
	sel_contents
	sel_count
	sel_counterSets
	sel_currentAllocatedSize
	sel_dispatchThreadgroups_threadsPerThreadgroup
	sel_dispatchThreads_threadsPerThreadgroup
	sel_domain
	sel_encodeSignalEvent_value
	sel_encodeWaitForEvent_value
	sel_endEncoding
	sel_endResidency
	sel_error
	sel_fileURLWithPath
	sel_functionNames
	sel_GPUEndTime
	sel_GPUStartTime
	sel_hasUnifiedMemory
	sel_length
	sel_localizedDescription
	sel_maxBufferLength
	sel_maxThreadgroupMemoryLength
	sel_maxThreadsPerThreadgroup
	sel_maxTotalThreadsPerThreadgroup
	sel_memoryBarrierWithResources_count
	sel_memoryBarrierWithScope
	sel_name
	sel_new
	sel_newBinaryArchiveWithDescriptor_error
	sel_newBufferWithBytes_length_options
	sel_newBufferWithBytesNoCopy_length_options_deallocator
	sel_newBufferWithLength_options
	sel_newCommandQueue
	sel_newComputePipelineStateWithDescriptor_options_reflection_error
	sel_newComputePipelineStateWithFunction_error
	sel_newCounterSampleBufferWithDescriptor_error
	sel_newFunctionWithName
	sel_newFunctionWithName_constantValues_error
	sel_newLibraryWithData_error
	sel_newLibraryWithSource_options_error
	sel_newLibraryWithURL_error
	sel_newResidencySetWithDescriptor_error
	sel_newSharedEvent
	sel_objectAtIndex
	sel_objectAtIndexedSubscript
	sel_popDebugGroup
	sel_pushDebugGroup
	sel_recommendedMaxWorkingSetSize
	sel_release
	sel_removeAllocation
	sel_removeResidencySet
	sel_requestResidency
	sel_resolveCounterRange
	sel_respondsToSelector
	sel_retain
	sel_sampleBufferAttachments
	sel_serializeToURL_error
	sel_setBinaryArchives
	sel_setBuffer_offset_atIndex
	sel_setBytes_length_atIndex
	sel_setCaptureObject
	sel_setComputeFunction
	sel_setComputePipelineState
	sel_setConstantValue_type_atIndex
	sel_setCounterSet
	sel_setDestination
	sel_setDispatchType
	sel_setEndOfEncoderSampleIndex
	sel_setErrorOptions
	sel_setFastMathEnabled
	sel_setInitialCapacity
	sel_setLabel
	sel_setLanguageVersion
	sel_setMathMode
	sel_setMaxTotalThreadsPerThreadgroup
	sel_setOutputURL
	sel_setRetainedReferences
	sel_setSampleBuffer
	sel_setSampleCount
	sel_setSignaledValue
	sel_setStartOfEncoderSampleIndex
	sel_setStorageMode
	sel_setThreadgroupMemoryLength_atIndex
	sel_setThreadGroupSizeIsMultipleOfThreadExecutionWidth
	sel_setUrl
	sel_sharedCaptureManager
	sel_signaledValue
	sel_startCaptureWithDescriptor_error
	sel_staticThreadgroupMemoryLength
	sel_status
	sel_stopCapture
	sel_stringWithUTF8String
	sel_supportsCounterSampling
	sel_supportsDestination
	sel_supportsFamily
	sel_threadExecutionWidth
	sel_useResource_usage
	sel_useResources_count_usage
	sel_UTF8String
	sel_waitUntilCompleted
	sel_waitUntilSignaledValue_timeoutMS
	numSelectors
)

// origin says where a row comes from.
type origin uint8

const (
	sdk14      origin = iota // the declarations of the macOS 14.2 SDK
	unverified               // newer than that, from the Apple page in docs below; asked for with respondsToSelector: before use
)

// method is one row. Kind is '+' for a message to a class, '-' for one to an instance.
type method struct {
	sel     selector
	owner   string // class or protocol that declares it
	kind    byte
	text    string
	returns string
	args    []string
	from    origin
}

// owned reports whether what the method returns is the caller's to release.
func (m method) owned() bool {
	for _, prefix := range []string{"new", "alloc", "copy", "init", "retain"} {
		if rest, ok := strings.CutPrefix(m.text, prefix); ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
	}
	return false
}

// methods is the table.
var methods = []method{
	{sel_new, "NSObject", '+', "new", "instancetype", nil, sdk14},
	{sel_retain, "NSObject", '-', "retain", "instancetype", nil, sdk14},
	{sel_release, "NSObject", '-', "release", "void", nil, sdk14},
	{sel_respondsToSelector, "NSObject", '-', "respondsToSelector:", "BOOL", []string{"SEL"}, sdk14},
	{sel_stringWithUTF8String, "NSString", '+', "stringWithUTF8String:", "instancetype", []string{"const char *"}, sdk14},
	{sel_UTF8String, "NSString", '-', "UTF8String", "const char *", nil, sdk14},
	{sel_localizedDescription, "NSError", '-', "localizedDescription", "NSString *", nil, sdk14},
	{sel_code, "NSError", '-', "code", "NSInteger", nil, sdk14},
	{sel_domain, "NSError", '-', "domain", "NSErrorDomain", nil, sdk14},
	{sel_arrayWithObject, "NSArray", '+', "arrayWithObject:", "instancetype", []string{"ObjectType"}, sdk14},
	{sel_count, "NSArray", '-', "count", "NSUInteger", nil, sdk14},
	{sel_objectAtIndex, "NSArray", '-', "objectAtIndex:", "ObjectType", []string{"NSUInteger"}, sdk14},
	{sel_bytes, "NSData", '-', "bytes", "const void *", nil, sdk14},
	{sel_length, "NSData", '-', "length", "NSUInteger", nil, sdk14},
	{sel_fileURLWithPath, "NSURL", '+', "fileURLWithPath:", "NSURL *", []string{"NSString *"}, sdk14},
	{sel_name, "MTLDevice", '-', "name", "NSString *", nil, sdk14},
	{sel_maxThreadsPerThreadgroup, "MTLDevice", '-', "maxThreadsPerThreadgroup", "MTLSize", nil, sdk14},
	{sel_maxThreadgroupMemoryLength, "MTLDevice", '-', "maxThreadgroupMemoryLength", "NSUInteger", nil, sdk14},
	{sel_maxBufferLength, "MTLDevice", '-', "maxBufferLength", "NSUInteger", nil, sdk14},
	{sel_recommendedMaxWorkingSetSize, "MTLDevice", '-', "recommendedMaxWorkingSetSize", "uint64_t", nil, sdk14},
	{sel_currentAllocatedSize, "MTLDevice", '-', "currentAllocatedSize", "NSUInteger", nil, sdk14},
	{sel_hasUnifiedMemory, "MTLDevice", '-', "hasUnifiedMemory", "BOOL", nil, sdk14},
	{sel_supportsFamily, "MTLDevice", '-', "supportsFamily:", "BOOL", []string{"MTLGPUFamily"}, sdk14},
	{sel_newCommandQueue, "MTLDevice", '-', "newCommandQueue", "id<MTLCommandQueue>", nil, sdk14},
	{sel_newBufferWithLength_options, "MTLDevice", '-', "newBufferWithLength:options:", "id<MTLBuffer>", []string{"NSUInteger", "MTLResourceOptions"}, sdk14},
	{sel_newBufferWithBytes_length_options, "MTLDevice", '-', "newBufferWithBytes:length:options:", "id<MTLBuffer>", []string{"const void *", "NSUInteger", "MTLResourceOptions"}, sdk14},
	{sel_newBufferWithBytesNoCopy_length_options_deallocator, "MTLDevice", '-', "newBufferWithBytesNoCopy:length:options:deallocator:", "id<MTLBuffer>", []string{"void *", "NSUInteger", "MTLResourceOptions", "void (^)(void *, NSUInteger)"}, sdk14},
	{sel_newLibraryWithSource_options_error, "MTLDevice", '-', "newLibraryWithSource:options:error:", "id<MTLLibrary>", []string{"NSString *", "MTLCompileOptions *", "NSError * *"}, sdk14},
	{sel_newLibraryWithURL_error, "MTLDevice", '-', "newLibraryWithURL:error:", "id<MTLLibrary>", []string{"NSURL *", "NSError * *"}, sdk14},
	{sel_newLibraryWithData_error, "MTLDevice", '-', "newLibraryWithData:error:", "id<MTLLibrary>", []string{"dispatch_data_t", "NSError * *"}, sdk14},
	{sel_newComputePipelineStateWithFunction_error, "MTLDevice", '-', "newComputePipelineStateWithFunction:error:", "id<MTLComputePipelineState>", []string{"id<MTLFunction>", "NSError * *"}, sdk14},
	{sel_newComputePipelineStateWithDescriptor_options_reflection_error, "MTLDevice", '-', "newComputePipelineStateWithDescriptor:options:reflection:error:", "id<MTLComputePipelineState>", []string{"MTLComputePipelineDescriptor *", "MTLPipelineOption", "MTLAutoreleasedComputePipelineReflection *", "NSError * *"}, sdk14},
	{sel_newBinaryArchiveWithDescriptor_error, "MTLDevice", '-', "newBinaryArchiveWithDescriptor:error:", "id<MTLBinaryArchive>", []string{"MTLBinaryArchiveDescriptor *", "NSError * *"}, sdk14},
	{sel_newSharedEvent, "MTLDevice", '-', "newSharedEvent", "id<MTLSharedEvent>", nil, sdk14},
	{sel_counterSets, "MTLDevice", '-', "counterSets", "NSArray<id<MTLCounterSet>> *", nil, sdk14},
	{sel_supportsCounterSampling, "MTLDevice", '-', "supportsCounterSampling:", "BOOL", []string{"MTLCounterSamplingPoint"}, sdk14},
	{sel_newCounterSampleBufferWithDescriptor_error, "MTLDevice", '-', "newCounterSampleBufferWithDescriptor:error:", "id<MTLCounterSampleBuffer>", []string{"MTLCounterSampleBufferDescriptor *", "NSError * *"}, sdk14},
	{sel_newResidencySetWithDescriptor_error, "MTLDevice", '-', "newResidencySetWithDescriptor:error:", "id<MTLResidencySet>", []string{"MTLResidencySetDescriptor *", "NSError * *"}, unverified},
	{sel_setLabel, "MTLCommandQueue", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_commandBuffer, "MTLCommandQueue", '-', "commandBuffer", "id<MTLCommandBuffer>", nil, sdk14},
	{sel_commandBufferWithDescriptor, "MTLCommandQueue", '-', "commandBufferWithDescriptor:", "id<MTLCommandBuffer>", []string{"MTLCommandBufferDescriptor *"}, sdk14},
	{sel_addResidencySet, "MTLCommandQueue", '-', "addResidencySet:", "void", []string{"id<MTLResidencySet>"}, unverified},
	{sel_removeResidencySet, "MTLCommandQueue", '-', "removeResidencySet:", "void", []string{"id<MTLResidencySet>"}, unverified},
	{sel_setRetainedReferences, "MTLCommandBufferDescriptor", '-', "setRetainedReferences:", "void", []string{"BOOL"}, sdk14},
	{sel_setErrorOptions, "MTLCommandBufferDescriptor", '-', "setErrorOptions:", "void", []string{"MTLCommandBufferErrorOption"}, sdk14},
	{sel_setLabel, "MTLCommandBuffer", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_computeCommandEncoderWithDispatchType, "MTLCommandBuffer", '-', "computeCommandEncoderWithDispatchType:", "id<MTLComputeCommandEncoder>", []string{"MTLDispatchType"}, sdk14},
	{sel_computeCommandEncoderWithDescriptor, "MTLCommandBuffer", '-', "computeCommandEncoderWithDescriptor:", "id<MTLComputeCommandEncoder>", []string{"MTLComputePassDescriptor *"}, sdk14},
	{sel_encodeSignalEvent_value, "MTLCommandBuffer", '-', "encodeSignalEvent:value:", "void", []string{"id<MTLEvent>", "uint64_t"}, sdk14},
	{sel_encodeWaitForEvent_value, "MTLCommandBuffer", '-', "encodeWaitForEvent:value:", "void", []string{"id<MTLEvent>", "uint64_t"}, sdk14},
	{sel_commit, "MTLCommandBuffer", '-', "commit", "void", nil, sdk14},
	{sel_waitUntilCompleted, "MTLCommandBuffer", '-', "waitUntilCompleted", "void", nil, sdk14},
	{sel_status, "MTLCommandBuffer", '-', "status", "MTLCommandBufferStatus", nil, sdk14},
	{sel_error, "MTLCommandBuffer", '-', "error", "NSError *", nil, sdk14},
	{sel_GPUStartTime, "MTLCommandBuffer", '-', "GPUStartTime", "CFTimeInterval", nil, sdk14},
	{sel_GPUEndTime, "MTLCommandBuffer", '-', "GPUEndTime", "CFTimeInterval", nil, sdk14},
	{sel_setLabel, "MTLCommandEncoder", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_pushDebugGroup, "MTLCommandEncoder", '-', "pushDebugGroup:", "void", []string{"NSString *"}, sdk14},
	{sel_popDebugGroup, "MTLCommandEncoder", '-', "popDebugGroup", "void", nil, sdk14},
	{sel_endEncoding, "MTLCommandEncoder", '-', "endEncoding", "void", nil, sdk14},
	{sel_setComputePipelineState, "MTLComputeCommandEncoder", '-', "setComputePipelineState:", "void", []string{"id<MTLComputePipelineState>"}, sdk14},
	{sel_setBuffer_offset_atIndex, "MTLComputeCommandEncoder", '-', "setBuffer:offset:atIndex:", "void", []string{"id<MTLBuffer>", "NSUInteger", "NSUInteger"}, sdk14},
	{sel_setBytes_length_atIndex, "MTLComputeCommandEncoder", '-', "setBytes:length:atIndex:", "void", []string{"const void *", "NSUInteger", "NSUInteger"}, sdk14},
	{sel_setThreadgroupMemoryLength_atIndex, "MTLComputeCommandEncoder", '-', "setThreadgroupMemoryLength:atIndex:", "void", []string{"NSUInteger", "NSUInteger"}, sdk14},
	{sel_dispatchThreadgroups_threadsPerThreadgroup, "MTLComputeCommandEncoder", '-', "dispatchThreadgroups:threadsPerThreadgroup:", "void", []string{"MTLSize", "MTLSize"}, sdk14},
	{sel_dispatchThreads_threadsPerThreadgroup, "MTLComputeCommandEncoder", '-', "dispatchThreads:threadsPerThreadgroup:", "void", []string{"MTLSize", "MTLSize"}, sdk14},
	{sel_memoryBarrierWithScope, "MTLComputeCommandEncoder", '-', "memoryBarrierWithScope:", "void", []string{"MTLBarrierScope"}, sdk14},
	{sel_memoryBarrierWithResources_count, "MTLComputeCommandEncoder", '-', "memoryBarrierWithResources:count:", "void", []string{"id<MTLResource> const *", "NSUInteger"}, sdk14},
	{sel_useResource_usage, "MTLComputeCommandEncoder", '-', "useResource:usage:", "void", []string{"id<MTLResource>", "MTLResourceUsage"}, sdk14},
	{sel_useResources_count_usage, "MTLComputeCommandEncoder", '-', "useResources:count:usage:", "void", []string{"id<MTLResource> const *", "NSUInteger", "MTLResourceUsage"}, sdk14},
	{sel_setFastMathEnabled, "MTLCompileOptions", '-', "setFastMathEnabled:", "void", []string{"BOOL"}, sdk14},
	{sel_setLanguageVersion, "MTLCompileOptions", '-', "setLanguageVersion:", "void", []string{"MTLLanguageVersion"}, sdk14},
	{sel_setMathMode, "MTLCompileOptions", '-', "setMathMode:", "void", []string{"MTLMathMode"}, unverified},
	{sel_setLabel, "MTLLibrary", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_functionNames, "MTLLibrary", '-', "functionNames", "NSArray<NSString *> *", nil, sdk14},
	{sel_newFunctionWithName, "MTLLibrary", '-', "newFunctionWithName:", "id<MTLFunction>", []string{"NSString *"}, sdk14},
	{sel_newFunctionWithName_constantValues_error, "MTLLibrary", '-', "newFunctionWithName:constantValues:error:", "id<MTLFunction>", []string{"NSString *", "MTLFunctionConstantValues *", "NSError * *"}, sdk14},
	{sel_setConstantValue_type_atIndex, "MTLFunctionConstantValues", '-', "setConstantValue:type:atIndex:", "void", []string{"const void *", "MTLDataType", "NSUInteger"}, sdk14},
	{sel_setLabel, "MTLComputePipelineDescriptor", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_setComputeFunction, "MTLComputePipelineDescriptor", '-', "setComputeFunction:", "void", []string{"id<MTLFunction>"}, sdk14},
	{sel_setMaxTotalThreadsPerThreadgroup, "MTLComputePipelineDescriptor", '-', "setMaxTotalThreadsPerThreadgroup:", "void", []string{"NSUInteger"}, sdk14},
	{sel_setThreadGroupSizeIsMultipleOfThreadExecutionWidth, "MTLComputePipelineDescriptor", '-', "setThreadGroupSizeIsMultipleOfThreadExecutionWidth:", "void", []string{"BOOL"}, sdk14},
	{sel_setBinaryArchives, "MTLComputePipelineDescriptor", '-', "setBinaryArchives:", "void", []string{"NSArray<id<MTLBinaryArchive>> *"}, sdk14},
	{sel_maxTotalThreadsPerThreadgroup, "MTLComputePipelineState", '-', "maxTotalThreadsPerThreadgroup", "NSUInteger", nil, sdk14},
	{sel_threadExecutionWidth, "MTLComputePipelineState", '-', "threadExecutionWidth", "NSUInteger", nil, sdk14},
	{sel_staticThreadgroupMemoryLength, "MTLComputePipelineState", '-', "staticThreadgroupMemoryLength", "NSUInteger", nil, sdk14},
	{sel_setUrl, "MTLBinaryArchiveDescriptor", '-', "setUrl:", "void", []string{"NSURL *"}, sdk14},
	{sel_setLabel, "MTLBinaryArchive", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_addComputePipelineFunctionsWithDescriptor_error, "MTLBinaryArchive", '-', "addComputePipelineFunctionsWithDescriptor:error:", "BOOL", []string{"MTLComputePipelineDescriptor *", "NSError * *"}, sdk14},
	{sel_serializeToURL_error, "MTLBinaryArchive", '-', "serializeToURL:error:", "BOOL", []string{"NSURL *", "NSError * *"}, sdk14},
	{sel_setLabel, "MTLResource", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_contents, "MTLBuffer", '-', "contents", "void *", nil, sdk14},
	{sel_length, "MTLBuffer", '-', "length", "NSUInteger", nil, sdk14},
	{sel_setLabel, "MTLResidencySetDescriptor", '-', "setLabel:", "void", []string{"NSString *"}, unverified},
	{sel_setInitialCapacity, "MTLResidencySetDescriptor", '-', "setInitialCapacity:", "void", []string{"NSUInteger"}, unverified},
	{sel_addAllocation, "MTLResidencySet", '-', "addAllocation:", "void", []string{"id<MTLAllocation>"}, unverified},
	{sel_removeAllocation, "MTLResidencySet", '-', "removeAllocation:", "void", []string{"id<MTLAllocation>"}, unverified},
	{sel_commit, "MTLResidencySet", '-', "commit", "void", nil, unverified},
	{sel_requestResidency, "MTLResidencySet", '-', "requestResidency", "void", nil, unverified},
	{sel_endResidency, "MTLResidencySet", '-', "endResidency", "void", nil, unverified},
	{sel_allocatedSize, "MTLResidencySet", '-', "allocatedSize", "uint64_t", nil, unverified},
	{sel_signaledValue, "MTLSharedEvent", '-', "signaledValue", "uint64_t", nil, sdk14},
	{sel_setSignaledValue, "MTLSharedEvent", '-', "setSignaledValue:", "void", []string{"uint64_t"}, sdk14},
	{sel_waitUntilSignaledValue_timeoutMS, "MTLSharedEvent", '-', "waitUntilSignaledValue:timeoutMS:", "BOOL", []string{"uint64_t", "uint64_t"}, unverified},
	{sel_setDispatchType, "MTLComputePassDescriptor", '-', "setDispatchType:", "void", []string{"MTLDispatchType"}, sdk14},
	{sel_sampleBufferAttachments, "MTLComputePassDescriptor", '-', "sampleBufferAttachments", "MTLComputePassSampleBufferAttachmentDescriptorArray *", nil, sdk14},
	{sel_computePassDescriptor, "MTLComputePassDescriptor", '+', "computePassDescriptor", "MTLComputePassDescriptor *", nil, sdk14},
	{sel_objectAtIndexedSubscript, "MTLComputePassSampleBufferAttachmentDescriptorArray", '-', "objectAtIndexedSubscript:", "MTLComputePassSampleBufferAttachmentDescriptor *", []string{"NSUInteger"}, sdk14},
	{sel_setSampleBuffer, "MTLComputePassSampleBufferAttachmentDescriptor", '-', "setSampleBuffer:", "void", []string{"id<MTLCounterSampleBuffer>"}, sdk14},
	{sel_setStartOfEncoderSampleIndex, "MTLComputePassSampleBufferAttachmentDescriptor", '-', "setStartOfEncoderSampleIndex:", "void", []string{"NSUInteger"}, sdk14},
	{sel_setEndOfEncoderSampleIndex, "MTLComputePassSampleBufferAttachmentDescriptor", '-', "setEndOfEncoderSampleIndex:", "void", []string{"NSUInteger"}, sdk14},
	{sel_name, "MTLCounterSet", '-', "name", "NSString *", nil, sdk14},
	{sel_setLabel, "MTLCounterSampleBufferDescriptor", '-', "setLabel:", "void", []string{"NSString *"}, sdk14},
	{sel_setCounterSet, "MTLCounterSampleBufferDescriptor", '-', "setCounterSet:", "void", []string{"id<MTLCounterSet>"}, sdk14},
	{sel_setStorageMode, "MTLCounterSampleBufferDescriptor", '-', "setStorageMode:", "void", []string{"MTLStorageMode"}, sdk14},
	{sel_setSampleCount, "MTLCounterSampleBufferDescriptor", '-', "setSampleCount:", "void", []string{"NSUInteger"}, sdk14},
	{sel_resolveCounterRange, "MTLCounterSampleBuffer", '-', "resolveCounterRange:", "NSData *", []string{"NSRange"}, sdk14},
	{sel_sharedCaptureManager, "MTLCaptureManager", '+', "sharedCaptureManager", "MTLCaptureManager *", nil, sdk14},
	{sel_supportsDestination, "MTLCaptureManager", '-', "supportsDestination:", "BOOL", []string{"MTLCaptureDestination"}, sdk14},
	{sel_startCaptureWithDescriptor_error, "MTLCaptureManager", '-', "startCaptureWithDescriptor:error:", "BOOL", []string{"MTLCaptureDescriptor *", "NSError * *"}, sdk14},
	{sel_stopCapture, "MTLCaptureManager", '-', "stopCapture", "void", nil, sdk14},
	{sel_setCaptureObject, "MTLCaptureDescriptor", '-', "setCaptureObject:", "void", []string{"id"}, sdk14},
	{sel_setDestination, "MTLCaptureDescriptor", '-', "setDestination:", "void", []string{"MTLCaptureDestination"}, sdk14},
	{sel_setOutputURL, "MTLCaptureDescriptor", '-', "setOutputURL:", "void", []string{"NSURL *"}, sdk14},
}

// docs are the pages that unverified rows were read from.
var docs = map[string]string{
	"MTLDevice":                 "https://developer.apple.com/documentation/metal/mtldevice/makeresidencyset(descriptor:)",
	"MTLCommandQueue":           "https://developer.apple.com/documentation/metal/mtlcommandqueue/addresidencyset(_:)",
	"MTLCompileOptions":         "https://developer.apple.com/documentation/metal/mtlcompileoptions/mathmode",
	"MTLResidencySetDescriptor": "https://developer.apple.com/documentation/metal/mtlresidencysetdescriptor",
	"MTLResidencySet":           "https://developer.apple.com/documentation/metal/mtlresidencyset",
	"MTLSharedEvent":            "https://developer.apple.com/documentation/metal/mtlsharedevent/wait(untilsignaledvalue:timeoutms:)",
}

// class is the index of a class that is messaged by name: class_X stands for X.
type class int

const (
	class_MTLBinaryArchiveDescriptor class = iota
	class_MTLCaptureDescriptor
	class_MTLCaptureManager
	class_MTLCommandBufferDescriptor
	class_MTLCompileOptions
	class_MTLComputePassDescriptor
	class_MTLComputePipelineDescriptor
	class_MTLCounterSampleBufferDescriptor
	class_MTLFunctionConstantValues
	class_MTLResidencySetDescriptor
	class_NSArray
	class_NSString
	class_NSURL
	numClasses
)

// classes are the names that objc_getClass is asked for. One that the system does not have is nil until it is used.
var classes = [numClasses]string{
	class_MTLBinaryArchiveDescriptor:       "MTLBinaryArchiveDescriptor",
	class_MTLCaptureDescriptor:             "MTLCaptureDescriptor",
	class_MTLCaptureManager:                "MTLCaptureManager",
	class_MTLCommandBufferDescriptor:       "MTLCommandBufferDescriptor",
	class_MTLCompileOptions:                "MTLCompileOptions",
	class_MTLComputePassDescriptor:         "MTLComputePassDescriptor",
	class_MTLComputePipelineDescriptor:     "MTLComputePipelineDescriptor",
	class_MTLCounterSampleBufferDescriptor: "MTLCounterSampleBufferDescriptor",
	class_MTLFunctionConstantValues:        "MTLFunctionConstantValues",
	class_MTLResidencySetDescriptor:        "MTLResidencySetDescriptor",
	class_NSArray:                          "NSArray",
	class_NSString:                         "NSString",
	class_NSURL:                            "NSURL",
}

// function is the index of a C function that the libraries export.
type function int

const (
	fn_objc_msgSend       function = iota
	fn_objc_msgSend_stret          // amd64 only: results of more than 16 bytes
	fn_objc_getClass
	fn_sel_registerName
	fn_objc_autoreleasePoolPush
	fn_objc_autoreleasePoolPop
	fn_MTLCreateSystemDefaultDevice
	fn_dispatch_data_create
	fn_dispatch_release
	numFunctions
)

// functions are their names.
var functions = [numFunctions]string{
	fn_objc_msgSend:                 "objc_msgSend",
	fn_objc_msgSend_stret:           "objc_msgSend_stret",
	fn_objc_getClass:                "objc_getClass",
	fn_sel_registerName:             "sel_registerName",
	fn_objc_autoreleasePoolPush:     "objc_autoreleasePoolPush",
	fn_objc_autoreleasePoolPop:      "objc_autoreleasePoolPop",
	fn_MTLCreateSystemDefaultDevice: "MTLCreateSystemDefaultDevice",
	fn_dispatch_data_create:         "dispatch_data_create",
	fn_dispatch_release:             "dispatch_release",
}
