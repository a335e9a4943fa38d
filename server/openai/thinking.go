package openai

import "math"

// switches gathers the places where clients turn thinking on and off. Two that contradict each other are refused: no order of
// precedence would be the one that the client had in mind.
type switches struct {
	req  *ChatRequest
	from string // the path that decided
}

func (s *switches) set(r *report, path string, on *bool) {
	if on == nil {
		return
	}
	if s.req.Thinking != nil && *s.req.Thinking != *on {
		r.fail(path, CodeInvalidValue, "contradicts %s: one turns thinking on and the other off", s.from)
	}
	s.req.Thinking, s.from = on, path
}

// effort takes a word for how much to think, and turns it into a budget.
func (s *switches) effort(o *object, name string) (word string) {
	effort := o.str(name)
	if effort == nil {
		return ""
	}
	on := *effort != "none"
	switch *effort {
	case "none", "high", "xhigh", "max":
	case "minimal":
		s.req.ThinkingBudget = BudgetMinimal
	case "low":
		s.req.ThinkingBudget = BudgetLow
	case "medium":
		s.req.ThinkingBudget = BudgetMedium
	default:
		o.report.fail(o.at(name), CodeInvalidValue, "got %q, want none, minimal, low, medium, high, xhigh or max", clip(*effort))
		return ""
	}
	s.set(o.report, o.at(name), &on)
	return *effort
}

// budget takes a number of tokens, which is more exact than an effort and so wins over it; 0 turns thinking off.
func (s *switches) budget(o *object, name string) {
	n := o.integer(name, 0, unboundedNumber)
	if n == nil {
		return
	}
	on := *n > 0
	s.set(o.report, o.at(name), &on)
	s.req.ThinkingBudget = int(min(*n, math.MaxInt32))
}

// thinking takes the fields of the chat API and of the servers whose clients know this model.
func (o *object) thinking(req *ChatRequest) {
	s := &switches{req: req}
	preserve := func(b *bool) {
		if b != nil {
			req.PreserveThinking = *b
		}
	}
	s.effort(o, "reasoning_effort")
	s.set(o.report, o.at("enable_thinking"), o.boolean("enable_thinking"))
	s.budget(o, "thinking_budget")
	preserve(o.boolean("preserve_thinking"))
	if kwargs := o.object("chat_template_kwargs"); kwargs != nil {
		s.set(o.report, kwargs.at("enable_thinking"), kwargs.boolean("enable_thinking"))
		s.budget(kwargs, "thinking_budget")
		preserve(kwargs.boolean("preserve_thinking"))
		kwargs.refuse([]refusal{
			{"add_generation_prompt", []string{`true`}, ""},
			{"add_vision_id", []string{`false`}, "Pond reads text only"},
		})
		kwargs.finish()
	}
}
