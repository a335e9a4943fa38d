package inference

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openWith opens the tiny model with one side file replaced and returns what was logged.
func openWith(t *testing.T, name string, text []byte) (string, error) {
	t.Helper()
	dir := writeTiny(t)
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	e, err := Open(t.Context(), Options{Model: FromDir(dir), ContextTokens: 64, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil {
		e.Close()
	}
	return log.String(), err
}

// TestDamagedSideFiles: a tokenizer_config.json that was halved, emptied or replaced was accepted in silence, and the messages of the
// others doubled the file's name and spoke of Go's types.
func TestDamagedSideFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"tokenizer_config.json", `{"bos_token": `, "tokenizer_config.json: the JSON text ends too early, want a JSON object"},
		{"tokenizer_config.json", ``, "tokenizer_config.json: the JSON text ends too early, want a JSON object"},
		{"tokenizer_config.json", `["x"]`, "tokenizer_config.json: got array, want a JSON object"},
		{"tokenizer_config.json", `null`, "tokenizer_config.json: got null, want a JSON object"},
		{"tokenizer_config.json", `{"pretokenize_regex":"\\p{L}+"}`, `tokenizer_config.json: pretokenize_regex: got "\\p{L}+", want an expression with \p{M}`},
		{"tokenizer_config.json", `{"pretokenize_regex":7}`, `tokenizer_config.json: pretokenize_regex: got 7, want an expression with \p{M}`},
		{"generation_config.json", ``, "generation_config.json: the JSON text ends too early, want a JSON object"},
		{"generation_config.json", `[1]`, "generation_config.json: got array, want a JSON object"},
		{"generation_config.json", `hello`, "generation_config.json: got no JSON at byte 1: "},
		{"config.json", `[]`, "config.json: got array, want a JSON object"},
		{"tokenizer.json", `{"model":`, "tokenizer.json: unexpected end of JSON input"},
		{"tokenizer.json", `[]`, "tokenizer.json: got array, want a JSON object"},
		{"tokenizer.json", `{"model":[]}`, "tokenizer.json: model: got array, want another kind of value"},
	} {
		_, err := openWith(t, c.name, []byte(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "json.") {
			t.Errorf("%s %s: got %v\nwant %s", c.name, c.text, err, c.want)
		}
	}
	for _, text := range []string{`{}`, `{"pretokenize_regex":null}`, `{"pretokenize_regex":"[\\p{L}\\p{M}]+"}`} {
		if _, err := openWith(t, "tokenizer_config.json", []byte(text)); err != nil {
			t.Errorf("tokenizer_config.json %s: got %v", text, err)
		}
	}
}

// TestForeignChatTemplate: whoever edits the template, or damages it, hears that it has no effect.
func TestForeignChatTemplate(t *testing.T) {
	const line = "chat_template.jinja differs from the one Pond renders; it is not used"
	published, err := os.ReadFile("../assets/demo/chat_template.jinja")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{nil, published[:len(published)/2], []byte("{{ hello }}"), published} {
		log, err := openWith(t, "chat_template.jinja", text)
		want := 1
		if bytes.Equal(text, published) {
			want = 0
		}
		if err != nil || strings.Count(log, line) != want {
			t.Errorf("%.20s: got %v and the log\n%s\nwant the line %d times", text, err, log, want)
		}
	}
}
