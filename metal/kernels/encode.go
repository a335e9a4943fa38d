package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
)

// EncodeParams lays a parameter struct out as the Metal kernels read it: the fields in order, inner structs and arrays element by element,
// each value four bytes little endian. An int becomes an int32, a bool 0 or 1; an int that does not fit is an error that
// names the field.
func EncodeParams(params any) ([]byte, error) {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("parameters: got %T, want a struct", params)
	}
	return appendParams(nil, v, v.Type().Name())
}

func appendParams(dst []byte, v reflect.Value, path string) ([]byte, error) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			var err error
			if dst, err = appendParams(dst, v.Field(i), path+"."+v.Type().Field(i).Name); err != nil {
				return nil, err
			}
		}
		return dst, nil
	case reflect.Array:
		for i := range v.Len() {
			var err error
			if dst, err = appendParams(dst, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return nil, err
			}
		}
		return dst, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := v.Int()
		if n < math.MinInt32 || n > math.MaxInt32 {
			return nil, fmt.Errorf("parameter %s: got %d, want a value of 32 bits", path, n)
		}
		return binary.LittleEndian.AppendUint32(dst, uint32(int32(n))), nil
	case reflect.Bool:
		var n uint32
		if v.Bool() {
			n = 1
		}
		return binary.LittleEndian.AppendUint32(dst, n), nil
	case reflect.Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v.Float()))), nil
	}
	return nil, fmt.Errorf("parameter %s: got a %s, want int, bool, float32, or arrays and structs of them", path, v.Type())
}
