package openai

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Rules for fields that the API has and Pond has not:
//
//   - a value that asks for nothing (the neutral ones below) passes, because clients write out the API's defaults;
//   - any other value is refused by name: an answer that ignored it would look like one that obeyed;
//   - fields of other local servers that bind the form of the answer are refused too, for the same reason;
//   - what clients send unasked and nothing can be done about (hosted search of agents) is taken and named as ignored: refusing it would refuse the clients;
//   - fields that cannot change the answer (hints, see takeHints) are checked for their type and pass.

// refusal is one field that is not implemented.
type refusal struct {
	name    string
	neutral []string // JSON literals that ask for nothing; null and absent always do
	advice  string   // what to do instead; "" where leaving it out is all there is to say
}

func chatRefusals() []refusal {
	return []refusal{
		{"audio", nil, "Pond answers in text"},
		{"function_call", []string{`"auto"`, `"none"`}, "use tools and tool_choice"},
		{"functions", []string{`[]`}, "use tools"},
		{"modalities", []string{`[]`, `["text"]`}, "Pond answers in text"},
		{"moderation", nil, "nothing leaves this machine, and nothing is moderated"},
		{"prediction", nil, "Pond does not speculate"},
		{"prompt_cache_options", []string{`{}`}, "the prompt cache works by itself"},
		{"prompt_cache_retention", []string{`"in_memory"`, `"in-memory"`}, "the prompt cache is in memory"},
		{"store", []string{`false`}, "answers are kept, in memory, by /v1/responses alone"},
		{"verbosity", []string{`"medium"`}, "ask for it in the prompt"},
		{"web_search_options", nil, "offer a search tool in tools"},
		{"add_generation_prompt", []string{`true`}, ""},
		{"continue_final_message", []string{`false`}, "use /v1/completions to continue a text"},
	}
}

func completionRefusals() []refusal {
	return []refusal{
		{"best_of", []string{`1`}, "use n and choose"},
		{"suffix", []string{`""`}, "the model does not fill in the middle"},
		{"response_format", []string{`{"type":"text"}`}, ""},
	}
}

// sharedRefusals hold for every endpoint that generates.
func sharedRefusals() []refusal {
	list := []refusal{
		{"service_tier", []string{`"auto"`, `"default"`}, ""},
		{"ignore_eos", []string{`false`}, ""},
		{"min_tokens", []string{`0`}, ""},
		{"stop_token_ids", []string{`[]`}, "use stop"},
	}
	for _, name := range []string{"grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "json_schema", "structured_outputs"} {
		list = append(list, refusal{name, []string{`""`, `{}`, `[]`}, "use response_format"})
	}
	return list
}

// refuse takes the listed fields from o and fails on the first with a value that asks for something.
func (o *object) refuse(list []refusal) {
	for _, f := range list {
		raw, ok := o.take(f.name)
		if !ok {
			continue
		}
		if f.isNeutral(raw) {
			continue
		}
		message := "not implemented"
		if len(f.neutral) > 0 {
			message += ": got " + clip(compact(raw)) + ", want " + f.neutral[0] + " or nothing"
		} else {
			message += ": leave it out"
		}
		if f.advice != "" {
			message += " (" + f.advice + ")"
		}
		o.report.fail(o.at(f.name), CodeUnsupported, "%s", message)
	}
}

func (f refusal) isNeutral(raw json.RawMessage) bool {
	if slices.Contains(f.neutral, compact(raw)) {
		return true
	}
	// 1 may be written 1.0.
	got, ok := parseNumber(raw)
	if !ok {
		return false
	}
	return slices.ContainsFunc(f.neutral, func(literal string) bool {
		want, ok := parseNumber(json.RawMessage(literal))
		return ok && want == got
	})
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// takeHints takes the fields that address a hosted service and cannot change an answer here: their types are checked, their
// values are not used.
func (o *object) takeHints() {
	for _, name := range []string{"user", "safety_identifier", "prompt_cache_key"} {
		o.str(name)
	}
	if m := o.object("metadata"); m != nil {
		for name, raw := range m.fields {
			if kind := kindOf(raw); kind != "a string" && kind != "null" {
				// One fixed path whichever entry is met first: a map has no order.
				o.report.fail(o.at("metadata"), CodeInvalidType, "an entry: got %s, want a string", kind)
			}
			delete(m.fields, name)
		}
	}
}
