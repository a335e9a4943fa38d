package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/inference/chat"
	"pond/inference/checkpoint"
	"pond/inference/tokenizer"
	"pond/server"
)

func newInspect(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect",
		Short: "Look inside: tokens, prompts, plans, logits, tensors",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInspectTokens(s), newInspectPrompt(s), newInspectPlan(s), newInspectLogits(s), newInspectTensors(s))
	return cmd
}

func modelFlag(cmd *cobra.Command, model *string) {
	cmd.Flags().StringVar(model, "model", "", "pond-demo (built in), qwen3.6-35b-a3b, or a folder with a model (default: the one in the settings, else pond-demo)")
}

// files are the model's files, wherever it lies.
func files(m app.Model) fs.FS {
	if m.Files != nil {
		return m.Files
	}
	return os.DirFS(m.Dir)
}

// inspected finds the model that an inspecting command was pointed at.
func inspected(s streams, name string) (app.Model, error) {
	chosen, err := loadSettings()
	if err != nil {
		return app.Model{}, err
	}
	return findModel(s, name, chosen)
}

// openTokenizer reads the tokenizer of a model and nothing else of it.
func openTokenizer(s streams, name string) (*tokenizer.Tokenizer, error) {
	m, err := inspected(s, name)
	if err != nil {
		return nil, err
	}
	text, err := checkpoint.ReadSide(files(m), "tokenizer.json")
	if err != nil {
		return nil, &exitError{exitBadModel, fmt.Errorf("model %s: %w", m.ID, err)}
	}
	t, err := tokenizer.Load(text)
	if err != nil {
		return nil, &exitError{exitBadModel, fmt.Errorf("model %s: %w", m.ID, err)}
	}
	return t, nil
}

func newInspectTokens(s streams) *cobra.Command {
	var model string
	var special bool
	cmd := &cobra.Command{
		Use:   "tokens TEXT",
		Short: "Show the tokens of a text, one a line: id, and the bytes it stands for",
		Args:  oneArg("one text, in quotes"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := openTokenizer(s, model)
			if err != nil {
				return err
			}
			ids := t.Encode(args[0])
			if special {
				ids = t.EncodeSpecial(args[0])
			}
			for _, id := range ids {
				printToken(s.out, t, id)
			}
			return nil
		},
	}
	modelFlag(cmd, &model)
	cmd.Flags().BoolVar(&special, "special", false, "recognise control tokens such as <|im_end|> in the text; otherwise they are ordinary text, as in a user's message")
	return cmd
}

func printToken(w io.Writer, t *tokenizer.Tokenizer, id int32) {
	mark := ""
	if t.Added(id) {
		mark = "  control"
	}
	fmt.Fprintf(w, "%6d  %q%s\n", id, t.Bytes(id), mark)
}

func newInspectPrompt(s streams) *cobra.Command {
	var model string
	var tokens bool
	cmd := &cobra.Command{
		Use:   "prompt FILE",
		Short: "Show the prompt that a conversation becomes",
		Long: `Reads a chat request as POST /v1/chat/completions takes it ("messages", and "tools" and the rest where wanted; - is the standard input) and
prints the text that the model is given. It needs no model unless --tokens is given.`,
		Args: oneArg("one file with a conversation, or -"),
		RunE: func(_ *cobra.Command, args []string) error {
			body, err := readFile(args[0], s.in)
			if err != nil {
				return err
			}
			c, err := server.Conversation(body)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			p, err := chat.Render(c)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if !tokens {
				for _, piece := range p.Pieces {
					fmt.Fprint(s.out, piece.Text)
				}
				fmt.Fprintln(s.out)
				return nil
			}
			t, err := openTokenizer(s, model)
			if err != nil {
				return err
			}
			for _, id := range t.EncodePieces(p.Pieces) {
				printToken(s.out, t, id)
			}
			return nil
		},
	}
	modelFlag(cmd, &model)
	cmd.Flags().BoolVar(&tokens, "tokens", false, "show its tokens instead")
	return cmd
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

func newInspectTensors(s streams) *cobra.Command {
	var model, match string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tensors",
		Short: "List the tensors of a model",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := inspected(s, model)
			if err != nil {
				return err
			}
			c, err := openCheckpoint(m)
			if err != nil {
				return &exitError{exitBadModel, fmt.Errorf("model %s: %w", m.ID, err)}
			}
			defer c.Close()
			names := slices.DeleteFunc(c.Names(), func(n string) bool { return !strings.Contains(n, match) })
			rows := make([]tensorRow, len(names))
			total := 0
			for i, name := range names {
				t, _ := c.Tensor(name)
				rows[i] = tensorRow{t.Name, string(t.DType), t.Shape, len(t.Data), t.File}
				total += len(t.Data)
			}
			if asJSON {
				return writeJSON(s.out, rows)
			}
			for _, r := range rows {
				fmt.Fprintf(s.out, "%-84s %-5s %-20s %12d  %s\n", r.Name, r.DType, fmt.Sprint(r.Shape), r.Bytes, r.File)
			}
			fmt.Fprintf(s.out, "%d tensors, %d bytes\n", len(rows), total)
			return nil
		},
	}
	modelFlag(cmd, &model)
	cmd.Flags().StringVar(&match, "match", "", "only tensors with this in their name")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// tensorRow is one line of `pond inspect tensors`.
type tensorRow struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
	File  string `json:"file"`
}

func openCheckpoint(m app.Model) (*checkpoint.Checkpoint, error) {
	if m.Files != nil {
		return checkpoint.OpenFS(m.Files)
	}
	return checkpoint.OpenDir(m.Dir)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
