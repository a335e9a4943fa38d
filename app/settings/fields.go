package settings

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is how a value is chosen.
type Kind int

// The kinds. Every value has a text: see Field.Text.
const (
	Toggle  Kind = iota // "true" or "false"
	Number              // whole; empty where Optional
	Decimal             // empty where Optional
	Text
	Secret // a text that is not shown unasked
	Folder // absolute; empty: the default one
	Choice // one of Choices
	Words  // texts with commas between
)

// Section groups fields as a person looks for them.
type Section string

// The sections, in their order.
const (
	General  Section = "General"
	Endpoint Section = "Endpoint"
	Engine   Section = "Model"
	Chat     Section = "Chat"
)

// Option is one value of a Choice, or a suggested one of a Number.
type Option struct{ Value, Label string }

// Field is one setting: its key in the file, what a person reads of it, and its limits.
type Field struct {
	Key      string
	Section  Section // empty: for the file alone, no window shows it
	Title    string
	Help     string // one line
	Kind     Kind
	Choices  []Option
	Optional bool    // an empty text is a value: the default
	Min, Max float64 // of Number and Decimal
	Unit     string
	Restart  bool // counts from the next start of the endpoint

	at    func(*Settings) any // pointer to the value
	extra func(Settings) error
}

// Fields lists all settings, in the order in which they are shown.
func Fields() []Field {
	return []Field{
		{Key: "start_serving", Section: General, Title: "Start serving when Pond opens", Kind: Toggle, Help: "Loads the model as soon as Pond is opened; opening at login is a choice of its own.",
			at: func(s *Settings) any { return &s.StartServing }},
		{Key: "on_battery", Section: General, Title: "On battery", Kind: Choice, Help: "What happens to the work while the machine runs on its battery.",
			Choices: []Option{{string(BatteryGoOn), "Go on"}, {string(BatteryPause), "Pause new work"}, {string(BatteryStop), "Stop"}},
			at:      func(s *Settings) any { return &s.OnBattery }},
		{Key: "quiet", Section: General, Title: "Let other apps go first", Kind: Toggle, Help: "Pond rests after each step for as long as it took: half the speed, and a machine that stays smooth.",
			at: func(s *Settings) any { return &s.Quiet }},
		{Key: "notifications", Section: General, Title: "Notifications", Kind: Toggle, Help: "Tells when a download is finished, or when something failed while no window was open.",
			at: func(s *Settings) any { return &s.Notifications }},
		{Key: "look_for_updates", Section: General, Title: "Look for updates", Kind: Toggle, Help: "Asks for Pond's releases once a day, sends nothing else, and installs a newer one when you quit. Only an app that says where it came from does this.",
			at: func(s *Settings) any { return &s.LookForUpdates }},

		{Key: "port", Section: Endpoint, Title: "Port", Kind: Number, Min: 1, Max: 65535, Restart: true, Help: "Clients connect to http://127.0.0.1:PORT/v1.",
			at: func(s *Settings) any { return &s.Port }},
		{Key: "api_key", Section: Endpoint, Title: "API key", Kind: Secret, Restart: true, Help: "Clients must send it; empty asks for none, which is allowed on this machine alone.",
			at: func(s *Settings) any { return &s.Key }, extra: checkKey},
		{Key: "lan", Section: Endpoint, Title: "Let other machines connect", Kind: Toggle, Restart: true, Help: "Off: this machine alone. On: everybody on the network who has the key; Pond makes one if there is none.",
			at: func(s *Settings) any { return &s.LAN }},
		{Key: "allowed_hosts", Section: Endpoint, Title: "Further names", Kind: Words, Restart: true, Help: "Names by which other machines call this one, besides its own name and addresses.",
			at: func(s *Settings) any { return &s.Hosts }, extra: checkHosts},
		{Key: "allowed_origins", Section: Endpoint, Title: "Allowed web pages", Kind: Words, Restart: true, Help: "Pages beyond this machine that may call the endpoint from a browser, such as https://chat.example.",
			at: func(s *Settings) any { return &s.Origins }, extra: checkOrigins},
		{Key: "address", Kind: Text, Restart: true, Help: "host:port, instead of the port and the network switch.",
			at: func(s *Settings) any { return &s.Address }, extra: checkAddress},

		{Key: "model", Section: Engine, Title: "Model", Kind: Text, Restart: true, Help: "qwen3.6-35b-a3b, pond-demo, or a folder; empty takes the best that this machine can run.",
			at: func(s *Settings) any { return &s.Model }},
		{Key: "models_dir", Section: Engine, Title: "Model folder", Kind: Folder, Restart: true, Help: "Where models are kept; empty is Pond's own folder. A drive that is not connected is waited for, never replaced.",
			at: func(s *Settings) any { return &s.ModelsDir }},
		{Key: "context_tokens", Section: Engine, Title: "Longest conversation", Kind: Number, Max: 1 << 20, Unit: "tokens", Restart: true, Help: "0 takes what the memory allows at the moment of the start.",
			Choices: []Option{{"0", "Automatic"}, {"8192", "8K"}, {"16384", "16K"}, {"32768", "32K"}, {"65536", "64K"}, {"131072", "128K"}},
			at:      func(s *Settings) any { return &s.ContextTokens }},
		{Key: "idle_minutes", Section: Engine, Title: "Unload when idle", Kind: Choice, Help: "Gives the memory back after a while without work; the next request loads the model again.",
			Choices: []Option{{"0", "Never"}, {"5", "After 5 minutes"}, {"15", "After 15 minutes"}, {"60", "After an hour"}},
			at:      func(s *Settings) any { return &s.IdleMinutes }},
		{Key: "conversations_gb", Section: Engine, Title: "Conversations on the disk", Kind: Choice, Restart: true, Help: "Spares reading a long conversation again after a restart or an unload. What was said can be told from these files; off removes them.",
			Choices: []Option{{"0", "Off"}, {"2", "Up to 2 GB"}, {"8", "Up to 8 GB"}, {"32", "Up to 32 GB"}, {"128", "Up to 128 GB"}},
			at:      func(s *Settings) any { return &s.DiskGB }},

		{Key: "temperature", Section: Chat, Title: "Temperature", Kind: Decimal, Max: 2, Optional: true, Help: "0 always takes the likeliest word, 2 is the wildest; empty is what the model's makers recommend.",
			at: func(s *Settings) any { return &s.Temperature }},
		{Key: "top_p", Section: Chat, Title: "Top-p", Kind: Decimal, Max: 1, Optional: true, Help: "Chooses among the likeliest words that together have this probability; empty is what the model's makers recommend.",
			at: func(s *Settings) any { return &s.TopP }},
		{Key: "top_k", Section: Chat, Title: "Top-k", Kind: Number, Max: 1 << 20, Optional: true, Help: "Chooses among so many words at most; empty is what the model's makers recommend.",
			at: func(s *Settings) any { return &s.TopK }},
		{Key: "max_tokens", Section: Chat, Title: "Longest answer", Kind: Number, Max: 1 << 20, Unit: "tokens", Help: "0 is as long as the conversation leaves room for.",
			at: func(s *Settings) any { return &s.MaxTokens }},
		{Key: "no_thinking", Section: Chat, Title: "Answer without thinking", Kind: Toggle, Help: "Answers at once: faster, and weaker on hard questions.",
			at: func(s *Settings) any { return &s.NoThinking }},
		{Key: "hide_thinking", Section: Chat, Title: "Hide thinking", Kind: Toggle, Help: "Shows only how long the model thought.",
			at: func(s *Settings) any { return &s.HideThinking }},
		{Key: "system_prompt", Section: Chat, Title: "System prompt", Kind: Text, Help: "What the model is told at the beginning of a new chat.",
			at: func(s *Settings) any { return &s.SystemPrompt }},
		{Key: "cmd_enter_sends", Section: Chat, Title: "Command-Return sends", Kind: Toggle, Help: "Return alone breaks the line then; for those who compose text, as in Japanese or Chinese. On Linux it is Control-Return.",
			at: func(s *Settings) any { return &s.CmdEnterSends }},
	}
}

// FieldOf finds a field by its key.
func FieldOf(key string) (Field, bool) {
	all := Fields()
	i := slices.IndexFunc(all, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return Field{}, false
	}
	return all[i], true
}

// Text is a value as text; empty for an optional one that nobody chose.
func (f Field) Text(s Settings) string {
	switch v := f.at(&s).(type) {
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *string:
		return *v
	case *Battery:
		return string(*v)
	case *[]string:
		return strings.Join(*v, ", ")
	case **int:
		if *v != nil {
			return strconv.Itoa(**v)
		}
	case **float64:
		if *v != nil {
			return strconv.FormatFloat(**v, 'f', -1, 64)
		}
	}
	return ""
}

// With is s with this value read from text. The error says what is wanted; whether the settings as a whole hold is Validate's to say. To
// let other machines connect makes a key where there is none.
func (f Field) With(s Settings, text string) (Settings, error) {
	text = strings.TrimSpace(text)
	wrong := fmt.Errorf("got %q, want %s", text, f.wants())
	switch v := f.at(&s).(type) {
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return s, wrong
		}
		*v = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return s, wrong
		}
		*v = n
	case *string:
		*v = text
	case *Battery:
		*v = Battery(text)
	case *[]string:
		*v = nil // the slice before belongs to other settings too
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				*v = append(*v, word)
			}
		}
	case **int:
		*v = nil
		if text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return s, wrong
			}
			*v = &n
		}
	case **float64:
		*v = nil
		if text != "" {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return s, wrong
			}
			*v = &x
		}
	}
	if s.LAN && s.Key == "" && f.Key == "lan" {
		s.Key = NewKey()
	}
	return s, f.check(s)
}

// wants says in words what a value is.
func (f Field) wants() string {
	switch f.Kind {
	case Toggle:
		return "true or false"
	case Number:
		return fmt.Sprintf("a whole number from %g to %g", f.Min, f.Max)
	case Decimal:
		return fmt.Sprintf("a number from %g to %g", f.Min, f.Max)
	case Choice:
		var words []string
		for _, o := range f.Choices {
			words = append(words, o.Value)
		}
		return "one of " + strings.Join(words, ", ")
	case Words:
		return "a list of strings"
	case Folder:
		return "an absolute path, or nothing"
	}
	return "a string"
}

// check holds a value to its limits.
func (f Field) check(s Settings) error {
	text := f.Text(s)
	if f.extra != nil {
		return f.extra(s)
	}
	ok := true
	switch f.Kind {
	case Number, Decimal:
		if text == "" {
			break
		}
		x, err := strconv.ParseFloat(text, 64)
		ok = err == nil && x >= f.Min && x <= f.Max // false for NaN
	case Choice:
		ok = slices.ContainsFunc(f.Choices, func(o Option) bool { return o.Value == text })
	case Folder:
		ok = text == "" || filepath.IsAbs(text)
	}
	if !ok {
		return fmt.Errorf("got %q, want %s", text, f.wants())
	}
	return nil
}

func checkAddress(s Settings) error {
	if s.Address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("got %q, want host:port such as %s", s.Address, DefaultAddress)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("got port %q, want 0 to 65535", port)
	}
	return nil
}

// checkKey wants what can stand in a header. The key itself is never part of the message.
func checkKey(s Settings) error {
	if strings.ContainsFunc(s.Key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("got characters that no key has, want printable ASCII without spaces")
	}
	return nil
}

func checkHosts(s Settings) error {
	for _, h := range s.Hosts {
		if h == "" || h == "*" || strings.ContainsAny(h, "/@ ") {
			return fmt.Errorf("got %q, want a name or an address, such as my-mac.local", h)
		}
	}
	return nil
}

func checkOrigins(s Settings) error {
	for _, o := range s.Origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return fmt.Errorf("got %q, want a page's scheme and host, such as https://chat.example", o)
		}
	}
	return nil
}

// NewKey makes an API key that nobody can guess.
func NewKey() string {
	var b [24]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return "pond-" + base64.RawURLEncoding.EncodeToString(b[:])
}
