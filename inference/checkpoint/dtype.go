package checkpoint

// DType is an element type by the name that safetensors gives it.
type DType string

// The element types of safetensors. All are parsed, so that a wrong one can be refused with its name and shape by
// whoever knows what was wanted.
const (
	Bool    DType = "BOOL"
	F4      DType = "F4"
	F6E2M3  DType = "F6_E2M3"
	F6E3M2  DType = "F6_E3M2"
	F8E4M3  DType = "F8_E4M3"
	F8E5M2  DType = "F8_E5M2"
	F8E8M0  DType = "F8_E8M0"
	F16     DType = "F16"
	BF16    DType = "BF16"
	F32     DType = "F32"
	F64     DType = "F64"
	Complex DType = "C64"
	I8      DType = "I8"
	I16     DType = "I16"
	I32     DType = "I32"
	I64     DType = "I64"
	U8      DType = "U8"
	U16     DType = "U16"
	U32     DType = "U32"
	U64     DType = "U64"
)

// Bits returns the width of one element, or 0 for a name that safetensors does not define. Source: enum Dtype and
// Dtype::bitsize in huggingface/safetensors, safetensors/src/tensor.rs.
func (d DType) Bits() int {
	switch d {
	case F4:
		return 4
	case F6E2M3, F6E3M2:
		return 6
	case Bool, F8E4M3, F8E5M2, F8E8M0, I8, U8:
		return 8
	case F16, BF16, I16, U16:
		return 16
	case F32, I32, U32:
		return 32
	case F64, I64, U64, Complex:
		return 64
	}
	return 0
}
