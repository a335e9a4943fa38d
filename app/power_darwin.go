package app

import (
	"fmt"
	"sync"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

const (
	idleSleepAssertion = "PreventUserIdleSystemSleep" // kIOPMAssertPreventUserIdleSystemSleep: the screen may go dark
	assertionOn        = 255                          // kIOPMAssertionLevelOn
	remainingUnlimited = -2                           // kIOPSTimeRemainingUnlimited: there is power
)

// power is what Pond uses of IOKit.
type power struct {
	// https://developer.apple.com/documentation/iokit/1557134-iopmassertioncreatewithname
	create func(kind objc.ID, level uint32, name objc.ID, id *uint32) int32
	// https://developer.apple.com/documentation/iokit/1557090-iopmassertionrelease
	release func(id uint32) int32
	// https://developer.apple.com/documentation/iokit/1523835-iopsgettimeremainingestimate
	remaining func() float64
}

// loadPower finds the functions; an IOKit without them is an error.
func loadPower() (p power, err error) {
	lib, err := framework("IOKit")
	if err != nil {
		return p, fmt.Errorf("power: %w", err)
	}
	defer func() {
		if r := recover(); r != nil { // purego's answer to a missing symbol
			err = fmt.Errorf("power: %v", r)
		}
	}()
	purego.RegisterLibFunc(&p.create, lib, "IOPMAssertionCreateWithName")
	purego.RegisterLibFunc(&p.release, lib, "IOPMAssertionRelease")
	purego.RegisterLibFunc(&p.remaining, lib, "IOPSGetTimeRemainingEstimate")
	return p, nil
}

// keepAwake holds an assertion. An NSString is a CFString: they are the same to both sides.
func (p power) keepAwake(reason string) (func(), error) {
	var id uint32
	if code := p.create(text(idleSleepAssertion), assertionOn, text(reason), &id); code != 0 {
		return nil, fmt.Errorf("power: got IOReturn %#x for an assertion, want 0", uint32(code))
	}
	var once sync.Once
	return func() { once.Do(func() { p.release(id) }) }, nil
}

// onBattery: the estimate is unlimited while there is power; any other value, also "not known yet", is of a battery.
func (p power) onBattery() (on, known bool) { return p.remaining() != remainingUnlimited, true }
