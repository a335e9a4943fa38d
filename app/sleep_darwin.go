package app

import (
	"context"
	"fmt"

	"github.com/ebitengine/purego/objc"
)

// Notifications of NSWorkspace: https://developer.apple.com/documentation/appkit/nsworkspace/willsleepnotification and .../didwakenotification
const (
	willSleepName = "NSWorkspaceWillSleepNotification"
	didWakeName   = "NSWorkspaceDidWakeNotification"
)

// watchSleep tells when the machine is about to sleep and when it woke, until ctx is done. The notifications come on the main thread; told must not
// wait. The observer is of a class made here, which can be made once in a process.
func watchSleep(ctx context.Context, told func(awake bool)) error {
	observer, err := objc.RegisterClass("PondSleepObserver", objc.GetClass("NSObject"), nil, nil, []objc.MethodDef{
		{Cmd: objc.RegisterName("pondWillSleep:"), Fn: func(_ objc.ID, _ objc.SEL, _ objc.ID) { told(false) }},
		{Cmd: objc.RegisterName("pondDidWake:"), Fn: func(_ objc.ID, _ objc.SEL, _ objc.ID) { told(true) }},
	})
	if err != nil {
		return fmt.Errorf("sleep and wake: %w", err)
	}
	center := nsWorkspaceCenter(nsWorkspaceShared(class("NSWorkspace")))
	if center == 0 {
		return fmt.Errorf("sleep and wake: %w", ErrNotHere) // AppKit is not loaded
	}
	self := nsObjectNew(objc.ID(observer))
	nsCenterAdd(center, self, objc.RegisterName("pondWillSleep:"), text(willSleepName), 0)
	nsCenterAdd(center, self, objc.RegisterName("pondDidWake:"), text(didWakeName), 0)
	context.AfterFunc(ctx, func() { nsCenterRemove(center, self) })
	return nil
}

// https://developer.apple.com/documentation/appkit/nsworkspace/shared
func nsWorkspaceShared(class objc.ID) objc.ID {
	return objc.Send[objc.ID](class, objc.RegisterName("sharedWorkspace"))
}

// https://developer.apple.com/documentation/appkit/nsworkspace/notificationcenter
func nsWorkspaceCenter(workspace objc.ID) objc.ID {
	return objc.Send[objc.ID](workspace, objc.RegisterName("notificationCenter"))
}

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/new
func nsObjectNew(class objc.ID) objc.ID {
	return objc.Send[objc.ID](class, objc.RegisterName("new"))
}

// https://developer.apple.com/documentation/foundation/notificationcenter/addobserver(_:selector:name:object:)
func nsCenterAdd(center, observer objc.ID, selector objc.SEL, name, object objc.ID) {
	center.Send(objc.RegisterName("addObserver:selector:name:object:"), observer, selector, name, object)
}

// https://developer.apple.com/documentation/foundation/notificationcenter/removeobserver(_:)
func nsCenterRemove(center, observer objc.ID) {
	center.Send(objc.RegisterName("removeObserver:"), observer)
}
