package fetch

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"pond/inference/checkpoint/manifest"
)

// DefaultEndpoint is the hub that is asked where HF_ENDPOINT names no other.
const DefaultEndpoint = "https://huggingface.co"

// Source is one place that publishes the files.
type Source struct {
	Name  string   // for messages
	Base  string   // URL that a file's name is appended to; ends in a slash
	Token string   // bearer token for the host of Base, and for no other
	Lacks []string // files that this source has not
}

func (s Source) lacks(file string) bool { return slices.Contains(s.Lacks, file) }

// Sources are a manifest's sources at a hub: the environment says which (HF_ENDPOINT) and as whom (HF_TOKEN). The URLs are
// <endpoint>/<owner>/<name>/resolve/<revision>/<file>, as huggingface_hub asks for them.
func Sources(m manifest.Manifest, getenv func(string) string) ([]Source, error) {
	endpoint := strings.TrimRight(strings.TrimSpace(getenv("HF_ENDPOINT")), "/")
	if endpoint == "" {
		endpoint = DefaultEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("HF_ENDPOINT: got %q, want a URL such as %s", endpoint, DefaultEndpoint)
	}
	token := strings.TrimSpace(getenv("HF_TOKEN"))
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("HF_TOKEN: got characters that no token has, want printable ASCII")
	}
	var out []Source
	for _, s := range m.Sources {
		out = append(out, Source{
			Name:  u.Host + "/" + s.Repo,
			Base:  endpoint + "/" + s.Repo + "/resolve/" + url.PathEscape(s.Revision) + "/",
			Token: token,
			Lacks: s.Lacks,
		})
	}
	return out, nil
}
