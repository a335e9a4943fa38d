package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"pond/inference/grammar"
	"pond/inference/sample"
)

// schemaMaker makes schemas as clients send them: nested objects, lists, choices, references, names and values in several scripts.
type schemaMaker struct {
	*rand.Rand
	defs []string // names that may be referred to
}

func (g *schemaMaker) pick(all ...string) string { return all[g.IntN(len(all))] }

func (g *schemaMaker) name(i int) string {
	return g.pick("name", "city", "größe", "日付", "tags", "is_open", "café", "значение", "n", "line item", "emoji😀") + g.pick("", "", strconv.Itoa(i))
}

func (g *schemaMaker) whole(depth int) string {
	defs := ""
	if g.IntN(3) == 0 {
		tree := `{"type":"object","properties":{"value":{"type":"integer","minimum":0,"maximum":9},"children":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["value"],"additionalProperties":false}`
		defs = `,"$defs":{"tree":` + tree + `,"kind":{"enum":["a","b\n","ü"]}}`
		g.defs = []string{"tree", "kind"}
	}
	return `{` + g.object(depth) + defs + `}`
}

func (g *schemaMaker) any(depth int) string {
	switch n := g.IntN(12); {
	case n < 4:
		return `{"type":"string"` + g.text() + `}`
	case n < 6:
		return g.pick(`{"type":"integer"}`, `{"type":"integer","minimum":1,"maximum":31}`, `{"type":"integer","minimum":-40,"multipleOf":5,"maximum":40}`)
	case n == 6:
		return g.pick(`{"type":"number"}`, `{"type":"number","minimum":0,"maximum":1}`, `{"type":["number","null"],"exclusiveMinimum":-3.5}`)
	case n == 7:
		return g.pick(`{"type":"boolean"}`, `{"type":["boolean","null"]}`, `{"const":"ß"}`, `{"enum":["rot","grün","蓝",3,null]}`)
	case n == 8 && len(g.defs) > 0:
		return `{"$ref":"#/$defs/` + g.pick(g.defs...) + `"}`
	case depth == 0:
		return `{"type":"null"}`
	case n == 9:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, g.any(depth-1), g.any(depth-1))
	case n == 10:
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, g.any(depth-1), g.IntN(2), 2+g.IntN(3))
	}
	return `{` + g.object(depth-1) + `}`
}

func (g *schemaMaker) text() string {
	return g.pick("", `,"maxLength":12`, `,"minLength":1,"maxLength":20`, `,"format":"date"`, `,"format":"uuid"`, `,"pattern":"^[A-Z]{2}-\\d{1,3}$"`, `,"enum":["on","off","naïve"]`)
}

func (g *schemaMaker) object(depth int) string {
	var props, required []string
	seen := map[string]bool{}
	for i := range 1 + g.IntN(4) {
		name := g.name(i)
		if seen[name] {
			continue
		}
		seen[name] = true
		quoted, _ := json.Marshal(name)
		props = append(props, string(quoted)+":"+g.any(depth))
		if g.IntN(3) > 0 {
			required = append(required, string(quoted))
		}
	}
	return fmt.Sprintf(`"type":"object","properties":{%s},"required":[%s],"additionalProperties":false`, strings.Join(props, ","), strings.Join(required, ","))
}

// TestGeneratedSchemas asks the demo model at temperature 1 and has each whole answer judged by a validator that nobody here wrote. The long
// form, make schemas, prints its figures: POND_SCHEMAS is how many.
func TestGeneratedSchemas(t *testing.T) {
	count, most, depth := 10, 64, 0
	if n, err := strconv.Atoi(os.Getenv("POND_SCHEMAS")); err == nil {
		count, most, depth = n, 512, 3
	}
	e := openDemo(t)
	g := &schemaMaker{Rand: rand.New(rand.NewPCG(20, 26))}
	var whole, valid, tokens, steps int
	var waited, compiled time.Duration
	var slowest []time.Duration
	for i := range count {
		g.defs = nil
		text := g.whole(depth)
		start := time.Now()
		f, err := grammar.Schema(json.RawMessage(text), true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		compiled += time.Since(start)
		c := user("Invent an example.")
		if depth > 0 {
			c = user("Invent an example that fits this schema, as JSON: " + text)
		}
		off := false
		c.Thinking = &off
		a, err := e.Chat(context.Background(), ChatRequest{Conversation: c, Generation: Generation{MaxTokens: most, Format: f, Sampling: &sample.Params{Temperature: 1, Seed: uint64(i)}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		tokens += r.Usage.CompletionTokens
		waited += r.Usage.MaskTime
		steps += r.Usage.MaskSteps
		slowest = append(slowest, r.Usage.MaskTime/time.Duration(max(1, r.Usage.MaskSteps)))
		if r.Finish != FinishStop {
			if os.Getenv("POND_SCHEMAS") != "" {
				t.Logf("%s: finish %s behind …%q", text, r.Finish, r.Answer.Content[max(0, len(r.Answer.Content)-80):])
			}
			continue
		}
		whole++
		if err := judge(text, r.Answer.Content); err != nil {
			t.Errorf("%s: got %s: %v", text, r.Answer.Content, err)
			continue
		}
		valid++
	}
	slices.Sort(slowest)
	t.Logf("%d schemas, compiled in %v each: %d answers ended within %d tokens (%.1f %%), %d of them valid; %.0f tokens each; waited %v a step for masks, in the slowest answer %v",
		count, compiled/time.Duration(count), whole, most, 100*float64(whole)/float64(count), valid, float64(tokens)/float64(count), waited/time.Duration(max(1, steps)), slowest[len(slowest)-1])
	if most == 512 && float64(whole) < 0.95*float64(count) {
		t.Errorf("got %d of %d answers that ended, want 95 %%", whole, count)
	}
	if whole == 0 {
		t.Error("no answer came to its end")
	}
}

func judge(schema, content string) error {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return err
	}
	if err := c.AddResource("mem:///schema.json", v); err != nil {
		return err
	}
	s, err := c.Compile("mem:///schema.json")
	if err != nil {
		return err
	}
	got, err := jsonschema.UnmarshalJSON(strings.NewReader(content))
	if err != nil {
		return err
	}
	return s.Validate(got)
}
