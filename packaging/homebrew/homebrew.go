// Package homebrew writes what Homebrew installs Pond by: a cask for the app and a formula for the program without its window.
//
// It knows digests and addresses, and downloads nothing. Start with Recipe.
package homebrew

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"text/template"
)

//go:embed cask.rb.tmpl
var cask string

//go:embed formula.rb.tmpl
var formula string

// Recipe is what both are filled with.
type Recipe struct {
	Version, ID string
	URL         string // folder of the release's files, without a slash at the end
	Homepage    string
	AppSHA256   string            // of the zip, hexadecimal
	TarSHA256   map[string]string // by "darwin-arm64" and its like
}

// Targets are the systems that the formula has a program for.
func Targets() []string { return []string{"darwin-arm64", "linux-amd64", "linux-arm64"} }

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// plain is a text that needs no quoting in Ruby.
var plain = regexp.MustCompile(`^[A-Za-z0-9._:/-]+$`)

// Cask is the app's.
func (r Recipe) Cask() ([]byte, error) { return r.fill("cask", cask) }

// Formula is the program's.
func (r Recipe) Formula() ([]byte, error) { return r.fill("formula", formula) }

func (r Recipe) fill(name, text string) ([]byte, error) {
	for _, s := range []string{r.Version, r.ID, r.URL, r.Homepage} {
		if !plain.MatchString(s) {
			return nil, fmt.Errorf("homebrew: got %q, want letters, digits and . _ : / -", s)
		}
	}
	digests := []string{r.AppSHA256}
	for _, t := range Targets() {
		digests = append(digests, r.TarSHA256[t])
	}
	if i := slices.IndexFunc(digests, func(d string) bool { return !digest.MatchString(d) }); i >= 0 {
		return nil, fmt.Errorf("homebrew: digest %d: got %q, want 64 hexadecimal digits", i, digests[i])
	}
	t, err := template.New(name).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("homebrew: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, r); err != nil {
		return nil, fmt.Errorf("homebrew: %w", err)
	}
	return b.Bytes(), nil
}
