package detour

import (
	"errors"
	"slices"
	"testing"

	"pond/metal"
	"pond/metal/host"
	"pond/metal/kernels"
)

// counting counts the passes that reach the device below.
type counting struct {
	metal.Device
	runs int
	fail error
}

func (c *counting) Run(p metal.Pass, o metal.RunOptions) error {
	c.runs++
	if c.fail != nil {
		return c.fail
	}
	return c.Device.Run(p, o)
}

// program routes two tokens, lists their pairs by expert, and beside it normalises a row: the last two share a level.
func program(t *testing.T, d metal.Device) (p metal.Program, offsets metal.Buffer) {
	t.Helper()
	buffer := func(name string, words int) metal.Buffer {
		b, err := d.NewBuffer(name, int64(4*words))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	moe := kernels.MoEParams{M: 2, D: 64, E: 3, T: 2, I: 64, SI: 64}
	logits, ids, weights, order, offsets := buffer("logits", 2*4), buffer("ids", 4), buffer("weights", 2*3), buffer("order", 4), buffer("offsets", 4)
	copy(logits.F32(), []float32{3, 1, 2, 0, 1, 2, 3, 0}) // experts 0 and 2; 2 and 1
	gu, act := buffer("gu", 2), buffer("act", 1)
	whole := func(bs ...metal.Buffer) (out []metal.Slice) {
		for _, b := range bs {
			out = append(out, metal.Slice{Buffer: b, Len: int64(len(b.Bytes()))})
		}
		return out
	}
	return metal.Program{Label: "test", Levels: [][]metal.Dispatch{
		{{Label: "route", Kernel: "moe_route", Params: moe, Items: 2, Args: whole(logits, ids, weights)}},
		{{Label: "group", Kernel: "moe_group", Params: moe, Items: 1, Args: whole(ids, order, offsets)},
			{Label: "silu", Kernel: "silu_mul", Params: kernels.SiluMulParams{M: 1, I: 1}, Items: 1, Args: whole(gu, act)}},
		{{Label: "silu again", Kernel: "silu_mul", Params: kernels.SiluMulParams{M: 1, I: 1}, Items: 1, Args: whole(gu, act)}},
	}}, offsets
}

func TestTheHostComesInBetween(t *testing.T) {
	below := &counting{Device: host.Open(host.Exact, 1)}
	d, err := New(below, "moe_group")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, offsets := program(t, d)
	pass, err := d.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	var seen [][]string
	tap := func(level int, ds []metal.Dispatch) {
		if level != len(seen) {
			t.Errorf("got level %d, want %d", level, len(seen))
		}
		var names []string
		for _, x := range ds {
			names = append(names, x.Label)
		}
		seen = append(seen, names)
	}
	if err := d.Run(pass, metal.RunOptions{Tap: tap}); err != nil {
		t.Fatal(err)
	}
	if got, want := offsets.U32(), []uint32{0, 1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("got offsets %v, want %v", got, want)
	}
	if below.runs != 2 {
		t.Errorf("got %d passes, want 2: one to the level of the host's kernel, one from there on", below.runs)
	}
	if len(seen) != 3 || !slices.Equal(seen[1], []string{"group", "silu"}) {
		t.Errorf("got levels %v, want all three, the second whole", seen)
	}
	clear(offsets.U32())
	if err := d.Start(pass, metal.RunOptions{}).Wait(); err != nil || offsets.U32()[3] != 4 {
		t.Errorf("started: got offsets %v, %v", offsets.U32(), err)
	}
	below.fail = errors.New("the GPU failed")
	if err := d.Run(pass, metal.RunOptions{}); !errors.Is(err, below.fail) {
		t.Errorf("got %v, want the device's failure", err)
	}
}

func TestUnknownKernel(t *testing.T) {
	below := host.Open(host.Exact, 1)
	defer below.Close()
	if _, err := New(below, "moe_grouping"); err == nil {
		t.Error("got no error for a kernel that there is not")
	}
}
