package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"pond/app/console"
	"pond/inference"
	"pond/inference/chat"
)

// wildest is the highest temperature, as at the endpoint.
const wildest = 2

// samplingFlags change how tokens are chosen; a flag that is not given leaves the model card's value.
type samplingFlags struct {
	temperature float64
	maxTokens   int
	seed        uint64
	noThink     bool

	cmd *cobra.Command
}

func (f *samplingFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.Float64Var(&f.temperature, "temperature", 0, "0 always takes the likeliest token, 2 is the wildest (default: the model card's)")
	flags.IntVar(&f.maxTokens, "max-tokens", 0, "longest answer in tokens, thinking included (default: what the context leaves, at most 32768)")
	flags.Uint64Var(&f.seed, "seed", 0, "the same seed gives the same answer (default: a new one each time)")
	flags.BoolVar(&f.noThink, "no-think", false, "answer at once, without thinking")
}

// generation is the request part of the flags.
func (f *samplingFlags) generation() (inference.Generation, error) {
	if f.maxTokens < 0 || f.maxTokens == 0 && f.cmd.Flags().Changed("max-tokens") {
		return inference.Generation{}, usageError("--max-tokens: got %d, want at least 1", f.maxTokens)
	}
	p := inference.DefaultSampling(!f.noThink)
	if f.cmd.Flags().Changed("temperature") {
		if !(f.temperature >= 0 && f.temperature <= wildest) {
			return inference.Generation{}, usageError("--temperature: got %v, want 0 to %d", f.temperature, wildest)
		}
		p.Temperature = f.temperature
	}
	if f.cmd.Flags().Changed("seed") {
		p.Seed = f.seed
	}
	if err := p.Validate(); err != nil {
		return inference.Generation{}, &exitError{exitUsage, err}
	}
	return inference.Generation{MaxTokens: f.maxTokens, Sampling: &p}, nil
}

func newChat(s streams) *cobra.Command {
	var engine engineFlags
	var sampling samplingFlags
	var once string
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk to the model in the terminal",
		Long: `Talks to the model in the terminal; it needs no running endpoint. The thinking is shown dim. Ctrl-C stops the answer, not the program; at
the prompt it clears the line, and on an empty line the second one leaves, as does Ctrl-D. /help lists what else can be typed.

With --once it answers one question; where the output is no terminal that is the answer's text alone. Where the input is no terminal each of its
lines is a question.

Exit codes: 1 a question of --once or of an input that is no terminal got no answer, 2 a flag is wrong, 3 the model is not installed, 4 the model cannot be opened, 6 the executor does not run here, 7 there is not enough
memory, 130 stopped by Ctrl-C with --once or where the input is no terminal.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			generation, err := sampling.generation()
			if err != nil {
				return err
			}
			interrupts := make(chan os.Signal, 1)
			signal.Notify(interrupts, os.Interrupt)
			defer signal.Stop(interrupts)
			session := newSession(s)
			session.NoThinking, session.Interrupts = sampling.noThink, interrupts
			e, _, err := engine.open(cmd.Context(), s)
			if err != nil {
				return err
			}
			defer e.Close()
			session.Ask = asker(e, generation)
			session.Greeting = e.Info().ID + " · /new begins anew, /help lists more, Ctrl-D leaves"
			if cmd.Flags().Changed("once") {
				session.Keyboard = nil // there is nothing to read
				return session.Once(cmd.Context(), once)
			}
			return session.Run(cmd.Context())
		},
	}
	engine.add(cmd)
	sampling.add(cmd)
	cmd.Flags().StringVar(&once, "once", "", "ask this one question, print the answer and end")
	return cmd
}

// newSession is a console session on what the streams are: terminals or not, and whether they know escape sequences.
func newSession(s streams) *console.Session {
	typed, shown, noted, dumb := isTerminal(s.in), isTerminal(s.out), isTerminal(s.err), isDumb()
	session := &console.Session{
		In: s.in, Out: s.out, Notes: s.err, Typed: typed, Terminal: shown, Drawing: shown && noted && !dumb,
		Color: shown && noted && !dumb && os.Getenv("NO_COLOR") == "",
	}
	if typed && noted && !dumb {
		session.Keyboard = file(s.in)
	}
	if shown {
		session.Columns = func() int { return columns(s.out) }
	}
	return session
}

// asker lets a console session ask the engine.
func asker(e *inference.Engine, g inference.Generation) console.Ask {
	return func(ctx context.Context, c chat.Conversation, emit func([]chat.Event), progress func(done, total int)) (console.Figures, error) {
		// The engine tells of progress on its own goroutine and must not wait; the last news is enough.
		type news struct{ done, total int }
		latest := make(chan news, 1)
		g.OnPrefill = func(done, total int) {
			select {
			case <-latest:
			default:
			}
			latest <- news{done, total}
		}
		answer, err := e.Chat(ctx, inference.ChatRequest{Conversation: c, Generation: g})
		if err != nil {
			return console.Figures{}, inWords(err)
		}
		updates := make(chan inference.Update)
		go func() {
			defer close(updates)
			for {
				u, more := answer.Next()
				if !more {
					return
				}
				updates <- u
			}
		}()
		for open := true; open; {
			select {
			case n := <-latest:
				progress(n.done, n.total)
			case u, more := <-updates:
				if open = more; more {
					emit(u.Events)
				}
			}
		}
		r := answer.Result()
		return console.Figures{
			PromptTokens: r.Usage.PromptTokens, CompletionTokens: r.Usage.CompletionTokens,
			Prefill: r.Usage.PrefillTime, Decode: r.Usage.DecodeTime, Truncated: r.Finish == inference.FinishLength,
		}, withCode(answer.Err())
	}
}

// inWords says of a conversation that does not fit what a person can do about it.
func inWords(err error) error {
	var c *inference.ContextError
	if !errors.As(err, &c) {
		return err
	}
	return fmt.Errorf("the conversation takes %d tokens and the context holds %d, the answer included: shorten it, begin anew with /new, or give a longer --context", c.PromptTokens, c.LimitTokens)
}
