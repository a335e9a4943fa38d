package gpu_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/kernels"
	"pond/metal/standin"
)

// m5 plays a GPU with tensor units on the first system that knows them.
func m5() standin.Options { return standin.Options{MacOS: 26, Family: 10} }

func TestTensorOpsAreUsedWhereTheGPUHasUnits(t *testing.T) {
	for name, c := range map[string]struct {
		o    gputest.Options
		want bool
		note string
	}{
		"M5 on macOS 26":                 {gputest.Options{Standin: m5()}, true, "with tensor operations"},
		"M4 on macOS 26":                 {gputest.Options{Standin: standin.Options{MacOS: 26, Family: 9}}, false, ""},
		"M5 on macOS 15":                 {gputest.Options{Standin: standin.Options{MacOS: 15, Family: 10}}, false, "without tensor operations: they need macOS 26"},
		"switched off":                   {gputest.Options{Standin: m5(), GPU: gpu.Options{TensorOpsOff: func() bool { return true }}}, false, ""},
		"M4 on macOS 26, when asked for": {gputest.Options{Standin: standin.Options{MacOS: 26, Family: 9}, GPU: gpu.Options{EmulatedTensorOps: true}}, true, "with tensor operations"},
	} {
		t.Run(name, func(t *testing.T) {
			d := gputest.Open(t, c.o)
			if got := len(d.TensorKernels()) > 0; got != c.want {
				t.Errorf("got %v, want %v: %s", got, c.want, d.Name())
			}
			if _, note, _ := strings.Cut(d.Name(), ", "); note != c.note {
				t.Errorf("got %q in the name, want %q", note, c.note)
			}
			if n := d.Live(); n != 0 {
				t.Errorf("%d buffers of the check are left", n)
			}
		})
	}
}

// TestPlantedTensorFaultsLeadToSimdgroupMatrices: a text that this system does not compile, or that gives other numbers, is not used, and the
// name of the device, which doctor and status show, says why. Where only attention is wrong, products stay by tensor operations.
func TestPlantedTensorFaultsLeadToSimdgroupMatrices(t *testing.T) {
	var want []float32
	t.Run("simdgroup matrices", func(t *testing.T) { want = product(t, gputest.Open(t, gputest.Options{})) })
	for name, c := range map[string]struct{ from, to, want string }{
		"not transposed":         {"int(TILE_DEPTH), false, true, false", "int(TILE_DEPTH), false, false, false", "q4_gemm: element "},
		"sums not cleared":       {"acc[i] = 0.0f;", "acc[i] = 1.0f;", "q4_gemm: element "},
		"overwritten sums":       {"mode::multiply_accumulate", "mode::multiply", "q4_gemm: element "},
		"sums in bf16":           {"float>();\n    for (ushort i = 0; i < acc.get_capacity(); ++i) {\n        acc[i] = 0.0f;", "bfloat>();\n    for (ushort i = 0; i < acc.get_capacity(); ++i) {\n        acc[i] = bfloat(0.0f);", "q4_gemm: element "},
		"a step's tiles mixed":   {"% 2 * stage", "% 2 * (stage / 2)", "q4_gemm: element "},
		"silu of the wrong half": {"silu(mem[m * RESULT_LD + c])", "silu(mem[m * RESULT_LD + 32 + c])", "moe_gate_up_grouped: element "},
		"keys not transposed":    {"any_depth, false, true, false", "any_depth, false, false, false", "attn_prefill_bf16: element "},
		"no mask":                {"const bool masked = t0 + KEY_STEP > pos + m + 1;", "const bool masked = false;", "attn_prefill_bf16: element "},
		"a key too few":          {"t0 + part_col + i / 2 * 8 + i % 2 > pos + m", "t0 + part_col + i / 2 * 8 + i % 2 >= pos + m", "attn_prefill_bf16: element "},
		"sums never rescaled":    {"if (rescale != 0)", "if (rescale > 1)", "attn_prefill_bf16: element "},
		"rescaled by column":     {"get_multidimensional_index(i)[1]];", "get_multidimensional_index(i)[0] % 64];", "attn_prefill_bf16: element "},
		"values not added up":    {"any_depth, false, false, false, matmul2d_descriptor::mode::multiply_accumulate", "any_depth, false, false, false, matmul2d_descriptor::mode::multiply", "attn_prefill_bf16: element "},
		"every part the first":   {"SPLIT ? tg.z : 0", "0", "attn_prefill_split_bf16: element "},
		"no language for it":     {"using namespace mpp::tensor_ops;", "using namespace mpp::no_such;", "do not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			if brief := []string{"keys not transposed", "sums never rescaled", "a key too few"}; strings.HasPrefix(c.want, "attn_") && !slices.Contains(brief, name) && os.Getenv("POND_METAL_CHECK") == "" {
				t.Skip("a text to compile for each fault: POND_METAL_CHECK=1 runs all of them")
			}
			text := strings.Replace(kernels.TensorSource(), c.from, c.to, 1)
			if text == kernels.TensorSource() {
				t.Fatalf("the text has no %q", c.from)
			}
			d := gputest.Open(t, gputest.Options{Standin: m5(), GPU: gpu.Options{TensorSource: text}})
			if strings.HasPrefix(c.want, "attn_") { // products need not wait for attention
				names := d.TensorKernels()
				if slices.Contains(names, "attn_prefill_bf16") || !slices.Contains(names, "q4_gemm") || !strings.Contains(d.Name(), "with tensor operations but for attention: "+c.want) {
					t.Errorf("got %s, %v by tensor operations, want it to say %q of attention alone", d.Name(), names, c.want)
				}
				if d.Standin != nil {
					d.Standin.Reports() // what the fault itself was charged with
				}
				return
			}
			if len(d.TensorKernels()) > 0 || !strings.Contains(d.Name(), "without tensor operations: ") || !strings.Contains(d.Name(), c.want) {
				t.Errorf("got %s, want it to work without, and to say %q", d.Name(), c.want)
			}
			if d.Standin != nil {
				d.Standin.Reports() // what the fault itself was charged with
			}
			if got := product(t, d); !slices.Equal(got, want) {
				t.Errorf("got %v, want the products of simdgroup matrices %v", got, want)
			}
		})
	}
}

// product is one q4_gemm of numbers that bf16 would round.
func product(t *testing.T, d *gputest.Device) []float32 {
	t.Helper()
	const rows, width, columns = 3, 64, 5
	x, y := newBuffer(t, d, "x", rows*width), newBuffer(t, d, "y", rows*columns)
	for i := range x.F32() {
		x.F32()[i] = 1 / float32(i+3)
	}
	args := []metal.Slice{{Buffer: x, Len: 4 * rows * width}, {Buffer: y, Len: 4 * rows * columns}}
	for _, n := range []int{columns * width / 2, columns * 2, columns * 2} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i*37 + 60)
		}
		w, err := d.PlaceWeights("w", data)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, metal.Slice{Buffer: w, Len: int64(n)})
	}
	p := kernels.LinearParams{M: rows, K: width, Bits: 4, Rows: [kernels.MaxSegments]int{columns}}
	pass, err := d.Compile(metal.Program{Label: "product", Levels: [][]metal.Dispatch{{{Label: "product", Kernel: "q4_gemm", Params: p, Items: columns, Args: args}}}})
	if err == nil {
		err = d.Run(pass, metal.RunOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(y.F32())
}
