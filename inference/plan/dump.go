package plan

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Summary counts what a run of the plan costs.
type Summary struct {
	Dispatches   int   `json:"dispatches"`
	Levels       int   `json:"levels"`
	WeightBytes  int64 `json:"weight_bytes"`  // read from weights
	StateBytes   int64 `json:"state_bytes"`   // read and written in state
	OtherBytes   int64 `json:"other_bytes"`   // activations
	ScratchBytes int64 `json:"scratch_bytes"` // memory held by scratch, inputs and outputs
}

// Summary adds up the plan.
func (p *Plan) Summary() Summary {
	s := Summary{Dispatches: len(p.Dispatches), Levels: p.Levels}
	for _, d := range p.Dispatches {
		for _, a := range d.Args {
			switch p.Buffers[a.Range.Buffer].Class {
			case Weight:
				s.WeightBytes += a.Bytes()
			case State:
				s.StateBytes += a.Bytes()
			default:
				s.OtherBytes += a.Bytes()
			}
		}
	}
	s.ScratchBytes = p.ScratchBytes
	for _, b := range p.Buffers {
		if b.Class == Input || b.Class == Output {
			s.ScratchBytes += b.LenBytes
		}
	}
	return s
}

// ParamText prints a parameter struct as name=value pairs, in field order, zero values left out.
func ParamText(params any) string {
	v := reflect.ValueOf(params)
	if v.Kind() != reflect.Struct {
		return ""
	}
	var out []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			out = append(out, fmt.Sprintf("%s=%v", v.Type().Field(i).Name, f.Interface()))
		}
	}
	return strings.Join(out, " ")
}

// Dump writes the plan as stable text: one line a dispatch, a blank line between levels.
func (p *Plan) Dump(w io.Writer) error {
	s := p.Summary()
	if _, err := fmt.Fprintf(w, "plan %s: %d dispatches, %d levels, %d weight bytes, %d state bytes, %d activation bytes a run; %d bytes of scratch\n",
		p.Name, s.Dispatches, s.Levels, s.WeightBytes, s.StateBytes, s.OtherBytes, s.ScratchBytes); err != nil {
		return err
	}
	last := -1
	for i, d := range p.Dispatches {
		if p.Level[i] != last {
			last = p.Level[i]
			if _, err := fmt.Fprintf(w, "\nlevel %d\n", last); err != nil {
				return err
			}
		}
		var args []string
		for _, a := range d.Args {
			b := p.Buffers[a.Range.Buffer]
			at := ""
			if a.Range.Off != 0 || a.Range.Len != b.LenBytes {
				at = fmt.Sprintf("[%d:%d]", a.Range.Off, a.Range.Off+a.Range.Len)
			}
			args = append(args, fmt.Sprintf("%s:%s=%s%s", a.Param, a.Access, b.Name, at))
		}
		if _, err := fmt.Fprintf(w, "  %s  %s  items=%d bytes=%d  %s  (%s)\n", d.Name, d.Kernel, d.Items, d.Bytes(), ParamText(d.Params), strings.Join(args, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// Row is one dispatch of a plan as data, for `pond inspect plan --json`.
type Row struct {
	Name   string   `json:"name"`
	Kernel string   `json:"kernel"`
	Level  int      `json:"level"`
	Items  int      `json:"items"`
	Bytes  int64    `json:"bytes"`
	Params string   `json:"params"`
	Reads  []string `json:"reads"`
	Writes []string `json:"writes"`
}

// Rows lists the dispatches in the order in which they run.
func (p *Plan) Rows() []Row {
	rows := make([]Row, len(p.Dispatches))
	for i, d := range p.Dispatches {
		r := Row{Name: d.Name, Kernel: d.Kernel, Level: p.Level[i], Items: d.Items, Bytes: d.Bytes(), Params: ParamText(d.Params)}
		for _, a := range d.Args {
			name := p.Buffers[a.Range.Buffer].Name
			if a.Access&Read != 0 {
				r.Reads = append(r.Reads, name)
			}
			if a.Access&Write != 0 {
				r.Writes = append(r.Writes, name)
			}
		}
		rows[i] = r
	}
	return rows
}
