package mtl

import "unsafe"

// CaptureManager is MTLCaptureManager: it records GPU work for Xcode. Writing to a file needs MTL_CAPTURE_ENABLED=1 in the environment.
// https://developer.apple.com/documentation/metal/mtlcapturemanager
type CaptureManager struct{ object }

// SharedCaptureManager borrows the one of the process.
func (rt *Runtime) SharedCaptureManager() CaptureManager {
	return CaptureManager{rt.object(rt.class(class_MTLCaptureManager).send(sel_sharedCaptureManager))}
}

// SupportsDestination reports whether captures can go there.
func (m CaptureManager) SupportsDestination(destination int) bool {
	return isTrue(m.send(sel_supportsDestination, uintptr(destination)))
}

// StartCaptureWithDescriptor starts recording.
func (m CaptureManager) StartCaptureWithDescriptor(c CaptureDescriptor) error {
	var e uintptr
	if !isTrue(m.send(sel_startCaptureWithDescriptor_error, c.id, uintptr(unsafe.Pointer(&e)))) {
		return m.rt.failed(e)
	}
	return nil
}

// StopCapture ends recording.
func (m CaptureManager) StopCapture() { m.send(sel_stopCapture) }

// CaptureDescriptor is MTLCaptureDescriptor. https://developer.apple.com/documentation/metal/mtlcapturedescriptor
type CaptureDescriptor struct{ object }

// NewCaptureDescriptor returns an owned descriptor.
func (rt *Runtime) NewCaptureDescriptor() CaptureDescriptor {
	return CaptureDescriptor{rt.object(rt.class(class_MTLCaptureDescriptor).send(sel_new))}
}

// SetCaptureDevice records all that a device does.
func (c CaptureDescriptor) SetCaptureDevice(d Device) { c.send(sel_setCaptureObject, d.id) }

// SetDestination chooses where the capture goes.
func (c CaptureDescriptor) SetDestination(destination int) {
	c.send(sel_setDestination, uintptr(destination))
}

// SetOutputURL is the file of a CaptureDestinationGPUTraceDocument.
func (c CaptureDescriptor) SetOutputURL(u URL) { c.send(sel_setOutputURL, u.id) }
