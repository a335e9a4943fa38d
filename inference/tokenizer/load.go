package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The parts of tokenizer.json that decide what a text's ids are. A pointer is
// nil where the file has no such key. Keys unknown here are not looked at.
type fileJSON struct {
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	Added         []addedJSON     `json:"added_tokens"`
	Normalizer    *componentJSON  `json:"normalizer"`
	PreTokenizer  *componentJSON  `json:"pre_tokenizer"`
	PostProcessor *componentJSON  `json:"post_processor"`
	Decoder       *componentJSON  `json:"decoder"`
	Model         *modelJSON      `json:"model"`
}

type addedJSON struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// componentJSON is a normalizer, pre-tokenizer, post-processor or decoder.
type componentJSON struct {
	Type           string          `json:"type"`
	PreTokenizers  []componentJSON `json:"pretokenizers"`
	Pattern        map[string]any  `json:"pattern"`
	Behavior       string          `json:"behavior"`
	Invert         bool            `json:"invert"`
	AddPrefixSpace *bool           `json:"add_prefix_space"`
	UseRegex       *bool           `json:"use_regex"`
}

type modelJSON struct {
	Type         string    `json:"type"`
	Dropout      *float64  `json:"dropout"`
	Unknown      *string   `json:"unk_token"`
	WordPrefix   *string   `json:"continuing_subword_prefix"`
	WordSuffix   *string   `json:"end_of_word_suffix"`
	ByteFallback bool      `json:"byte_fallback"`
	IgnoreMerges bool      `json:"ignore_merges"`
	Vocab        vocabJSON `json:"vocab"`
	Merges       mergeJSON `json:"merges"`
}

// Load reads a tokenizer.json. It refuses a file that asks for another pipeline
// than the one of the package comment, and one that contradicts itself: the
// error says what was got and what is wanted.
func Load(tokenizerJSON []byte) (*Tokenizer, error) {
	var f fileJSON
	if err := json.Unmarshal(tokenizerJSON, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", inWords(err))
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	t := &Tokenizer{classes: newClassTable()}
	if err := t.fill(&f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// inWords says what encoding/json found without the names of Go's types.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return err
	case kind.Field == "":
		return fmt.Errorf("got %s, want a JSON object", kind.Value)
	}
	return fmt.Errorf("%s: got %s, want another kind of value", kind.Field, kind.Value)
}

// check compares the pipeline with ours.
func (f *fileJSON) check() error {
	if f.Model == nil || f.Model.Type != "BPE" {
		got := "none"
		if f.Model != nil {
			got = fmt.Sprintf("%q", f.Model.Type)
		}
		return fmt.Errorf("model: got type %s, want %q", got, "BPE")
	}
	m := f.Model
	switch {
	case given(f.Truncation):
		return fmt.Errorf("truncation: got %.60s, want null", f.Truncation)
	case given(f.Padding):
		return fmt.Errorf("padding: got %.60s, want null", f.Padding)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("model.dropout: got %v, want null", *m.Dropout)
	case m.Unknown != nil:
		return fmt.Errorf("model.unk_token: got %q, want null", *m.Unknown)
	case m.WordPrefix != nil && *m.WordPrefix != "":
		return fmt.Errorf("model.continuing_subword_prefix: got %q, want none", *m.WordPrefix)
	case m.WordSuffix != nil && *m.WordSuffix != "":
		return fmt.Errorf("model.end_of_word_suffix: got %q, want none", *m.WordSuffix)
	case m.ByteFallback:
		return fmt.Errorf("model.byte_fallback: got true, want false")
	case f.Normalizer.kind() != "NFC":
		return fmt.Errorf("normalizer: got %s, want NFC", f.Normalizer.kind())
	case f.Decoder.kind() != "ByteLevel":
		return fmt.Errorf("decoder: got %s, want ByteLevel", f.Decoder.kind())
	case f.PostProcessor != nil && f.PostProcessor.Type != "ByteLevel":
		return fmt.Errorf("post_processor: got %s, want ByteLevel or null", f.PostProcessor.kind())
	}
	return f.PreTokenizer.checkPreTokenizer()
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (c *componentJSON) kind() string {
	if c == nil {
		return "none"
	}
	return c.Type
}

func (c *componentJSON) checkPreTokenizer() error {
	const want = "Sequence of Split and ByteLevel"
	if c.kind() != "Sequence" {
		return fmt.Errorf("pre_tokenizer: got %s, want a %s", c.kind(), want)
	}
	var kinds []string
	for _, p := range c.PreTokenizers {
		kinds = append(kinds, p.Type)
	}
	if got := strings.Join(kinds, " and "); got != "Split and ByteLevel" {
		return fmt.Errorf("pre_tokenizer: got a Sequence of %s, want a %s", cmp.Or(got, "nothing"), want)
	}
	split, bytes := c.PreTokenizers[0], c.PreTokenizers[1]
	pattern, ok := split.Pattern["Regex"].(string)
	switch {
	case !ok:
		return fmt.Errorf("pre_tokenizer Split: got pattern %v, want a Regex", split.Pattern)
	case pattern != Pattern && !strings.Contains(pattern, `\p{M}`):
		return fmt.Errorf(`pre_tokenizer Split: got regex %s without \p{M} (a re-exported file that lost combining marks), want %s`, pattern, Pattern)
	case pattern != Pattern:
		return fmt.Errorf("pre_tokenizer Split: got regex %s, want %s", pattern, Pattern)
	case split.Behavior != "Isolated":
		return fmt.Errorf("pre_tokenizer Split: got behavior %q, want %q", split.Behavior, "Isolated")
	case split.Invert:
		return fmt.Errorf("pre_tokenizer Split: got invert true, want false")
	case bytes.AddPrefixSpace == nil || *bytes.AddPrefixSpace:
		return fmt.Errorf("pre_tokenizer ByteLevel: got add_prefix_space true, want false")
	case bytes.UseRegex == nil || *bytes.UseRegex: // absent means true
		return fmt.Errorf("pre_tokenizer ByteLevel: got use_regex true, want false")
	}
	return nil
}

// fill builds the tables from a file whose pipeline is ours.
func (t *Tokenizer) fill(f *fileJSON) error {
	byID, err := t.fillAdded(f)
	if err != nil {
		return err
	}
	if err := t.fillTokens(f, byID); err != nil {
		return err
	}
	return t.fillMerges(f.Model)
}

// fillAdded checks the added tokens and returns the text of every id, base
// tokens in the byte alphabet and added tokens as they are.
func (t *Tokenizer) fillAdded(f *fileJSON) (byID []string, err error) {
	total := len(f.Model.Vocab)
	for _, a := range f.Added {
		if _, ok := f.Model.Vocab[a.Content]; !ok {
			total++
		}
	}
	byID = make([]string, total)
	t.added = make([]bool, total)
	t.addedID = make(map[string]int32, len(f.Added))
	place := func(text string, id int64) error {
		switch {
		case text == "":
			return fmt.Errorf("token %d: got an empty text, want bytes", id)
		case id < 0 || id >= int64(total):
			return fmt.Errorf("token %q: got id %d, want one below %d, the number of tokens", text, id, total)
		case byID[id] != "" && byID[id] != text:
			return fmt.Errorf("id %d: got tokens %q and %q, want one", id, byID[id], text)
		}
		byID[id] = text
		return nil
	}
	for text, id := range f.Model.Vocab {
		if err := place(text, id); err != nil {
			return nil, err
		}
	}
	for _, a := range f.Added {
		if _, twice := t.addedID[a.Content]; twice {
			return nil, fmt.Errorf("added token %q: got two entries, want one", a.Content)
		}
		if id, ok := f.Model.Vocab[a.Content]; ok && id != a.ID {
			return nil, fmt.Errorf("added token %q: got id %d, want %d as in model.vocab", a.Content, a.ID, id)
		}
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return nil, fmt.Errorf("added token %q: got single_word %v, lstrip %v, rstrip %v, normalized %v, want false for each",
				a.Content, a.SingleWord, a.LStrip, a.RStrip, a.Normalized)
		}
		if err := place(a.Content, a.ID); err != nil {
			return nil, err
		}
		t.added[a.ID] = true
		t.addedID[a.Content] = int32(a.ID)
		first := &t.matcher[a.Content[0]]
		*first = append(*first, a.Content)
	}
	for _, tokens := range t.matcher {
		slices.SortFunc(tokens, func(a, b string) int { return len(b) - len(a) })
	}
	return byID, nil
}

// fillTokens lays the tokens' bytes into the arena and finds the single bytes.
func (t *Tokenizer) fillTokens(f *fileJSON, byID []string) error {
	alphabet := newByteAlphabet()
	if f.Model.IgnoreMerges {
		t.whole = make(map[string]int32, len(f.Model.Vocab))
	}
	for b := range t.byteID {
		t.byteID[b] = -1
	}
	t.offsets = make([]uint32, 1, len(byID)+1)
	for id, text := range byID {
		from := len(t.arena)
		if t.added[id] {
			t.arena = append(t.arena, text...)
		} else {
			for _, r := range text {
				b, ok := alphabet[r]
				if !ok {
					return fmt.Errorf("token %d %q: got the character %q, want only the byte alphabet", id, text, r)
				}
				t.arena = append(t.arena, b)
			}
			token := t.arena[from:]
			if len(token) == 1 {
				t.byteID[token[0]] = int32(id)
			}
			if t.whole != nil {
				t.whole[string(token)] = int32(id)
			}
		}
		t.offsets = append(t.offsets, uint32(len(t.arena)))
	}
	for b, id := range t.byteID {
		if id < 0 {
			return fmt.Errorf("model.vocab: got no token for the byte 0x%02x, want one for each of the 256", b)
		}
	}
	return nil
}

// fillMerges builds the merge table. A merge never makes an added token: text
// could reach that id without its being recognised as special.
func (t *Tokenizer) fillMerges(m *modelJSON) error {
	base := func(text string) (int32, error) {
		id, ok := m.Vocab[text]
		if !ok {
			return 0, fmt.Errorf("%q is not in model.vocab", text)
		}
		if t.added[id] {
			return 0, fmt.Errorf("%q is an added token", text)
		}
		return int32(id), nil
	}
	t.merges = newMergeTable(len(m.Merges))
	for i, pair := range m.Merges {
		var ids [3]int32
		for j, text := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			id, err := base(text)
			if err != nil {
				return fmt.Errorf("merge %d: got %q and %q, want base tokens that make one: %w", i, pair[0], pair[1], err)
			}
			ids[j] = id
		}
		if !t.merges.add(ids[0], ids[1], ids[2]) {
			return fmt.Errorf("merge %d: got %q and %q a second time, want each pair once", i, pair[0], pair[1])
		}
	}
	return nil
}

// newByteAlphabet is the printable alphabet of byte-level BPE (openai/gpt-2,
// bytes_to_unicode): printable bytes of Latin-1 stand for themselves, the other
// 68 in increasing order for U+0100 and on.
func newByteAlphabet() map[rune]byte {
	alphabet := make(map[rune]byte, 256)
	other := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174) {
			r = other
			other++
		}
		alphabet[r] = byte(b)
	}
	return alphabet
}
