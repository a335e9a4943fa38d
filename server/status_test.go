package server

import (
	"net/http"
	"strings"
	"testing"

	"pond/inference"
)

// How a prompt went on is told to this machine alone, and where a key is set to nobody without it: the words of one client are not another's.
func TestTheMissIsToldHereAlone(t *testing.T) {
	const secret = "zebrafish"
	r := inference.Reuse{Miss: &inference.Miss{PromptTokens: 9, CommonTokens: 3, Text: secret, WasBefore: secret}}
	if got := reuseOf(r, true).LastMiss; got.Text != secret {
		t.Errorf("here: got %+v", got)
	}
	if got := reuseOf(r, false).LastMiss; got.Text != "" || got.Prompt != 9 || got.Common != 3 {
		t.Errorf("elsewhere: got %+v, want the numbers alone", got)
	}
	for addr, here := range map[string]bool{"127.0.0.1:5000": true, "[::1]:5000": true, "[::ffff:127.0.0.1]:5000": true, "192.168.0.7:5000": false, "[fe80::1]:5000": false, "": false} {
		if got := fromHere(&http.Request{RemoteAddr: addr}); got != here {
			t.Errorf("%q: got %v, want %v", addr, got, here)
		}
	}
	l := serve(t, Options{APIKey: "k"})
	resp, err := http.Get(l.url + "/v1/pond/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || strings.Contains(resp.Header.Get("Content-Type"), "html") {
		t.Errorf("without the key: got status %d", resp.StatusCode)
	}
}
