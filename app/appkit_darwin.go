package app

import (
	"errors"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
)

// The few messages that Pond sends to AppKit and Foundation, one function each, so that selector and types stand side by side; the table in
// messages_test.go holds all of them. What is sent to nil, because a class is missing, answers zero.

const accessoryPolicy = 1 // NSApplicationActivationPolicyAccessory

// BecomeAccessory takes Pond out of the Dock and leaves its icon in the menu bar. Fyne's driver makes every program an ordinary app when it starts, so this comes
// after it, on the main thread: https://developer.apple.com/documentation/appkit/nsapplication/setactivationpolicy(_:)
func BecomeAccessory() {
	nsApplicationSetActivationPolicy(nsApplicationShared(class("NSApplication")), accessoryPolicy)
}

// Activate brings Pond's windows before those of other apps, which an accessory's are not by themselves. On the main thread, and only upon
// what the user did: https://developer.apple.com/documentation/appkit/nsapplication/activate(ignoringotherapps:)
func Activate() {
	nsApplicationActivate(nsApplicationShared(class("NSApplication")), true)
}

// IconHidden reports whether Pond's icon is on no screen: AppKit keeps the window of an icon that it hides, and moves it off all of them. It asks
// AppKit, so it is for the main thread. An icon whose window cannot be found is taken for a visible one.
func IconHidden() bool {
	windows := nsApplicationWindows(nsApplicationShared(class("NSApplication")))
	for i := range nsArrayCount(windows) {
		w := nsArrayAt(windows, i)
		if nsStringText(nsObjectClassName(w)) == "NSStatusBarWindow" {
			return nsWindowScreen(w) == 0
		}
	}
	return false
}

// https://developer.apple.com/documentation/appkit/nsapplication/windows
func nsApplicationWindows(app objc.ID) objc.ID {
	return objc.Send[objc.ID](app, objc.RegisterName("windows"))
}

// https://developer.apple.com/documentation/foundation/nsarray/count
func nsArrayCount(a objc.ID) uint {
	return objc.Send[uint](a, objc.RegisterName("count"))
}

// https://developer.apple.com/documentation/foundation/nsarray/object(at:)
func nsArrayAt(a objc.ID, i uint) objc.ID {
	return objc.Send[objc.ID](a, objc.RegisterName("objectAtIndex:"), i)
}

// https://developer.apple.com/documentation/objectivec/nsobject-swift.class/classname
func nsObjectClassName(o objc.ID) objc.ID {
	return objc.Send[objc.ID](o, objc.RegisterName("className"))
}

// https://developer.apple.com/documentation/appkit/nswindow/screen
func nsWindowScreen(w objc.ID) objc.ID {
	return objc.Send[objc.ID](w, objc.RegisterName("screen"))
}

func class(name string) objc.ID { return objc.ID(objc.GetClass(name)) }

// https://developer.apple.com/documentation/appkit/nsapplication/shared
func nsApplicationShared(class objc.ID) objc.ID {
	return objc.Send[objc.ID](class, objc.RegisterName("sharedApplication"))
}

func nsApplicationSetActivationPolicy(app objc.ID, policy int) bool {
	return objc.Send[bool](app, objc.RegisterName("setActivationPolicy:"), policy)
}

func nsApplicationActivate(app objc.ID, ignoringOthers bool) {
	app.Send(objc.RegisterName("activateIgnoringOtherApps:"), ignoringOthers)
}

// https://developer.apple.com/documentation/foundation/nsstring/init(utf8string:)
func nsStringFrom(class objc.ID, text string) objc.ID {
	return objc.Send[objc.ID](class, objc.RegisterName("stringWithUTF8String:"), text)
}

// https://developer.apple.com/documentation/foundation/nsstring/utf8string
func nsStringText(s objc.ID) string {
	return objc.Send[string](s, objc.RegisterName("UTF8String"))
}

// https://developer.apple.com/documentation/foundation/nserror/localizeddescription
func nsErrorDescription(e objc.ID) objc.ID {
	return objc.Send[objc.ID](e, objc.RegisterName("localizedDescription"))
}

// text makes an NSString that lives until the thread's pool is drained; the callers are short or on the main thread.
func text(s string) objc.ID { return nsStringFrom(class("NSString"), s) }

// failure is the error that a message left behind.
func failure(e objc.ID) error {
	if e == 0 {
		return errors.New("the system said no, and not why")
	}
	return errors.New(nsStringText(nsErrorDescription(e)))
}

// framework loads a framework of the system by its name.
func framework(name string) (uintptr, error) {
	return purego.Dlopen("/System/Library/Frameworks/"+name+".framework/"+name, purego.RTLD_LAZY|purego.RTLD_GLOBAL)
}
