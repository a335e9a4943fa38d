package qwen36

import (
	"encoding/binary"
	"fmt"

	"pond/inference/checkpoint"
)

// maxScannedBytes bounds the scales and biases that are scanned: the real model's 2.2 GB would cost a second reading of the disk, the
// demo model's 4 MB cost a millisecond.
const maxScannedBytes = 64 << 20

// checkNumbers refuses NaN and infinities, which only damaged files hold and which make every answer NaN: in all tensors that are not
// quantised, and in scales and biases where they are few. Codes have no wrong values.
func checkNumbers(tensors []checkpoint.Tensor, wants []Want) error {
	grouped := 0
	for i, t := range tensors {
		if wants[i].DType == checkpoint.BF16 && wants[i].Module != "" {
			grouped += len(t.Data)
		}
	}
	for i, t := range tensors {
		if wants[i].DType != checkpoint.BF16 || wants[i].Module != "" && grouped > maxScannedBytes {
			continue
		}
		if at := notFinite(t.Data); at >= 0 {
			what := "an infinity"
			if binary.LittleEndian.Uint16(t.Data[2*at:])&0x7f != 0 { // any bit of the fraction
				what = "NaN"
			}
			return fmt.Errorf("%s: %s: element %d: got %s, want a number: the file is damaged", t.File, t.Name, at, what)
		}
	}
	return nil
}

// notFinite is the index of the first BF16 that is NaN or infinite, or -1.
func notFinite(data []byte) int {
	const exponent = 0x7f80
	for i := 0; i+1 < len(data); i += 2 {
		if binary.LittleEndian.Uint16(data[i:])&exponent == exponent {
			return i / 2
		}
	}
	return -1
}
