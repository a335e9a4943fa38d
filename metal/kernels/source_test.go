package kernels

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryMetalFileIsInTheSource: a file that the order leaves out would never be compiled.
func TestEveryMetalFileIsInTheSource(t *testing.T) {
	files, err := filepath.Glob("*.metal")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range files {
		if line := fmt.Sprintf("#line 1 %q\n", n); strings.Contains(Source(), line) == strings.Contains(TensorSource(), line) && n != "prelude.metal" &&
			!slices.Contains([]string{"product_tile.metal", "product_gemm.metal", "moe_tile.metal", "attention_places.metal", "attention_prefill.metal"}, n) {
			t.Errorf("%s: in neither text, or in both", n)
		}
	}
}

// TestParameterStructsAreTheSame: each struct in prelude.metal has the fields of the Go struct of its name, in order and kind.
func TestParameterStructsAreTheSame(t *testing.T) {
	for _, p := range []any{LinearParams{}, EmbedParams{}, NormParams{}, SiluMulParams{}, SampleParams{}, GDNParams{}, GDNOutParams{}, AttentionParams{}, MoEParams{}} {
		typ := reflect.TypeOf(p)
		var want strings.Builder
		fmt.Fprintf(&want, "struct %s {\n", typ.Name())
		for i := range typ.NumField() {
			f := typ.Field(i)
			switch f.Type.Kind() {
			case reflect.Int:
				fmt.Fprintf(&want, "    int %s;\n", f.Name)
			case reflect.Float32:
				fmt.Fprintf(&want, "    float %s;\n", f.Name)
			case reflect.Array:
				fmt.Fprintf(&want, "    int %s[%d];\n", f.Name, f.Type.Len())
			default:
				fmt.Fprintf(&want, "    %s %s;\n", f.Type.Name(), f.Name)
			}
		}
		want.WriteString("};\n")
		if !strings.Contains(Source(), want.String()) {
			t.Errorf("the Metal text lacks the struct\n%s", want.String())
		}
	}
}

// TestSignaturesAreTheSame: the Metal function of each kernel binds the buffers of its Go signature, by name and index, constant where they
// are only read, then its weight matrices, then its parameters.
func TestSignaturesAreTheSame(t *testing.T) {
	text := regexp.MustCompile(`\s+`).ReplaceAllString(Source(), " ")
	params := realParams(1)
	for _, k := range All() {
		start := regexp.MustCompile(`(kernel|\[\[kernel, max_total_threads_per_threadgroup\((\d+)\)\]\]) void ` + k.Name + `\(`).FindStringSubmatchIndex(text)
		if start == nil {
			t.Errorf("%s: no Metal function", k.Name)
			continue
		}
		if start[4] >= 0 { // a number of threads that the compiler may count on
			if got, want := text[start[4]:start[5]], fmt.Sprint(k.Grid(params[k.Name], 1).Threads[0]); got != want {
				t.Errorf("%s: compiled for %s threads, launched with %s at the real shape", k.Name, got, want)
			}
		}
		rest := text[start[1]:]
		signature, _, _ := strings.Cut(rest, "{")
		for i, b := range k.Buffers {
			typ := map[DType]string{F32: "float", U32: "uint", BF16: "bfloat", Code: "uchar"}[b.DType]
			if b.Access == Read {
				typ = "const " + typ
			}
			if want := fmt.Sprintf("device %s* %s [[buffer(%d)]]", typ, b.Name, i); !strings.Contains(signature, want) {
				t.Errorf("%s: got %s, want it to hold %q", k.Name, signature, want)
			}
		}
		at := len(k.Buffers)
		for s := range k.Segments {
			if want := fmt.Sprintf("WEIGHTS(%d, %d, %d, %d)", s, at, at+1, at+2); !strings.Contains(signature, want) {
				t.Errorf("%s: got %s, want it to hold %q", k.Name, signature, want)
			}
			at += SegmentArgs
		}
		if want := fmt.Sprintf("constant %T& p [[buffer(%d)]]", params[k.Name], at); !strings.Contains(signature, strings.ReplaceAll(want, "kernels.", "")) {
			t.Errorf("%s: got %s, want it to hold %q", k.Name, signature, want)
		}
		if strings.Contains(signature, "[[threadgroup(0)]]") != (k.Grid(params[k.Name], 1).ThreadgroupBytes > 0) {
			t.Errorf("%s: dynamic threadgroup memory in one of Metal text and grid only", k.Name)
		}
	}
}

// TestNarrowIntegers: rows, keys and tokens are never counted in 16 bits (a context has more than 65,536 of them). ushort stands only
// in the lane argument of a shuffle, half2 only where it is the codes of a word.
func TestNarrowIntegers(t *testing.T) {
	for i, line := range strings.Split(Source(), "\n") {
		code, _, _ := strings.Cut(line, "//")
		code = regexp.MustCompile(`simd_shuffle(_xor)?\((.*), ushort\(\w+(\(\w+\))?\)\)`).ReplaceAllString(code, "")
		code = regexp.MustCompile(`(half2 )?\w = as_type<half2>\(`).ReplaceAllString(code, "")
		if m := regexp.MustCompile(`\b(u?short\d?|u?int16_t|half\d?)\b`).FindString(code); m != "" {
			t.Errorf("line %d of the source uses %s: %s", i+1, m, line)
		}
	}
}
