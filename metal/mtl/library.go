package mtl

import "unsafe"

// CompileOptions is MTLCompileOptions. https://developer.apple.com/documentation/metal/mtlcompileoptions
type CompileOptions struct{ object }

// NewCompileOptions returns owned options.
func (rt *Runtime) NewCompileOptions() CompileOptions {
	return CompileOptions{rt.object(rt.class(class_MTLCompileOptions).send(sel_new))}
}

// SetLanguageVersion chooses the language.
func (o CompileOptions) SetLanguageVersion(v LanguageVersion) {
	o.send(sel_setLanguageVersion, uintptr(v))
}

// SetSafeMath forbids rewriting of floating-point arithmetic, by the property of macOS 15 where there is one, else by its elder.
func (o CompileOptions) SetSafeMath() {
	if o.responds(sel_setMathMode) {
		o.send(sel_setMathMode, uintptr(MathModeSafe))
		return
	}
	o.send(sel_setFastMathEnabled, yes(false))
}

// Library is MTLLibrary. https://developer.apple.com/documentation/metal/mtllibrary
type Library struct{ object }

// SetLabel names the library in tools.
func (l Library) SetLabel(s String) { l.send(sel_setLabel, s.id) }

// FunctionNames lists the kernels.
func (l Library) FunctionNames() []string {
	a := Array{l.rt.object(l.send(sel_functionNames))}
	out := make([]string, a.Count())
	for i := range out {
		out[i] = String{a.objectAtIndex(i)}.UTF8String()
	}
	return out
}

// NewFunctionWithName returns an owned function; false when the library has none of that name.
func (l Library) NewFunctionWithName(name String) (Function, bool) {
	f := Function{l.rt.object(l.send(sel_newFunctionWithName, name.id))}
	return f, !f.Nil()
}

// NewFunctionWithConstantValues returns an owned function with its constants set.
func (l Library) NewFunctionWithConstantValues(name String, v FunctionConstantValues) (Function, error) {
	var e uintptr
	f := Function{l.rt.object(l.send(sel_newFunctionWithName_constantValues_error, name.id, v.id, uintptr(unsafe.Pointer(&e))))}
	if f.Nil() {
		return f, l.rt.failed(e)
	}
	return f, nil
}

// Function is MTLFunction. https://developer.apple.com/documentation/metal/mtlfunction
type Function struct{ object }

// FunctionConstantValues is MTLFunctionConstantValues. https://developer.apple.com/documentation/metal/mtlfunctionconstantvalues
type FunctionConstantValues struct{ object }

// NewFunctionConstantValues returns owned values, none set.
func (rt *Runtime) NewFunctionConstantValues() FunctionConstantValues {
	return FunctionConstantValues{rt.object(rt.class(class_MTLFunctionConstantValues).send(sel_new))}
}

// SetBool sets constant i.
func (v FunctionConstantValues) SetBool(b bool, i int) {
	value := byte(yes(b))
	v.send(sel_setConstantValue_type_atIndex, uintptr(unsafe.Pointer(&value)), uintptr(DataTypeBool), uintptr(i))
}

// SetInt sets constant i.
func (v FunctionConstantValues) SetInt(n int32, i int) {
	v.send(sel_setConstantValue_type_atIndex, uintptr(unsafe.Pointer(&n)), uintptr(DataTypeInt), uintptr(i))
}
