package mtl

import (
	"errors"
	"fmt"
	"unsafe"
)

// String is NSString. https://developer.apple.com/documentation/foundation/nsstring
type String struct{ object }

// StringWithUTF8String makes a string that belongs to the pool.
func (rt *Runtime) StringWithUTF8String(s string) String {
	return String{rt.object(rt.class(class_NSString).send(sel_stringWithUTF8String, uintptr(unsafe.Pointer(cString(s)))))}
}

// UTF8String copies the text.
func (s String) UTF8String() string { return goString(s.send(sel_UTF8String)) }

// Array is NSArray. https://developer.apple.com/documentation/foundation/nsarray
type Array struct{ object }

// arrayWithObject makes an array of one element that belongs to the pool.
func (rt *Runtime) arrayWithObject(o object) Array {
	return Array{rt.object(rt.class(class_NSArray).send(sel_arrayWithObject, o.id))}
}

// Count is the number of elements.
func (a Array) Count() int { return int(a.send(sel_count)) }

// objectAtIndex borrows an element.
func (a Array) objectAtIndex(i int) object { return a.rt.object(a.send(sel_objectAtIndex, uintptr(i))) }

// Data is NSData. https://developer.apple.com/documentation/foundation/nsdata
type Data struct{ object }

// Bytes copies the contents.
func (d Data) Bytes() []byte {
	n := d.send(sel_length)
	p := d.send(sel_bytes)
	if n == 0 || p == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(pointer(p)), int(n))...)
}

// URL is NSURL. https://developer.apple.com/documentation/foundation/nsurl
type URL struct{ object }

// FileURLWithPath makes a URL that belongs to the pool.
func (rt *Runtime) FileURLWithPath(path string) URL {
	return URL{rt.object(rt.class(class_NSURL).send(sel_fileURLWithPath, rt.StringWithUTF8String(path).id))}
}

// Error is what an NSError said, copied: it outlives the pool. https://developer.apple.com/documentation/foundation/nserror
type Error struct {
	Domain string
	Code   int
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s %d)", e.Text, e.Domain, e.Code) }

// errorOf copies an NSError; nil for no object.
func (rt *Runtime) errorOf(id uintptr) error {
	e := rt.object(id)
	if e.Nil() {
		return nil
	}
	domain := String{rt.object(e.send(sel_domain))}
	text := String{rt.object(e.send(sel_localizedDescription))}
	return &Error{Domain: domain.UTF8String(), Code: int(int32(e.send(sel_code))), Text: text.UTF8String()}
}

// failed is the error of a call that gave no result.
func (rt *Runtime) failed(id uintptr) error {
	if err := rt.errorOf(id); err != nil {
		return err
	}
	return errors.New("no result and no reason was given")
}
