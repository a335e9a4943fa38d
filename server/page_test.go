package server

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The page needs no key, loads nothing from anywhere, and its policy allows its own script and style and nothing else.
func TestPage(t *testing.T) {
	l := serve(t, Options{APIKey: "sesame"})
	resp, err := http.Get(l.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, policy := string(body), resp.Header.Get("Content-Security-Policy")
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("got status %d and type %q", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q: want %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q: want nothing unsafe", policy)
	}
	for _, tag := range []string{"script", "style"} {
		inside := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(text, -1)
		if len(inside) != 1 {
			t.Fatalf("got %d %s elements, want 1", len(inside), tag)
		}
		sum := sha256.Sum256([]byte(inside[0][1]))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("policy %q: want %s", policy, want)
		}
	}
	for _, outside := range []*regexp.Regexp{
		regexp.MustCompile(`(src|srcset|action|poster)\s*=`), regexp.MustCompile(`href\s*=\s*"(https?:)?//`), regexp.MustCompile(`@import|url\(`),
		regexp.MustCompile(`\son[a-z]+\s*=\s*["']`), regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`),
	} {
		if found := outside.FindString(text); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	if strings.Contains(text, "sesame") {
		t.Error("the page holds the key")
	}
	// What the page asks for does need it.
	if status, err := http.Get(l.url + "/v1/pond/status"); err != nil || status.StatusCode != 401 {
		t.Errorf("status without a key: got %v, %v, want 401", status, err)
	}
}
