package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const ok = `{"Action":"run","Package":"pond/a","Test":"TestOne"}
{"Action":"pass","Package":"pond/a","Test":"TestOne","Elapsed":0}
{"Action":"output","Package":"pond/a","Test":"TestTwo","Output":"=== RUN   TestTwo\n"}
{"Action":"output","Package":"pond/a","Test":"TestTwo","Output":"    a_test.go:9: no Mac here: skipped\n"}
{"Action":"skip","Package":"pond/a","Test":"TestTwo","Elapsed":0}
{"Action":"output","Package":"pond/a","Output":"ok  \tpond/a\t(cached)\n"}
{"Action":"pass","Package":"pond/a","Elapsed":0.25}
`
	cases := []struct {
		name, in string
		ok       bool
		want     []string
	}{
		{"pass", ok, true, []string{"ok   pond/a 0.2s (cached)", "skipped pond/a TestTwo: no Mac here: skipped", "\n1 passed, 0 failed, 1 skipped\n"}},
		{"nothing ran", "", false, []string{"0 passed, 0 failed, 0 skipped"}},
		{"a test fails", ok + `{"Action":"output","Package":"pond/b","Test":"TestBad","Output":"    b_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"pond/b","Test":"TestBad"}
{"Action":"fail","Package":"pond/b"}
`, false, []string{"got 1, want 2", "FAIL pond/b", "1 passed, 1 failed, 1 skipped"}},
		{"a build fails", ok + `{"ImportPath":"pond/c [pond/c.test]","Action":"build-output","Output":"c.go:1:1: expected 'package'\n"}
{"Action":"fail","Package":"pond/c","FailedBuild":"pond/c [pond/c.test]"}
`, false, []string{"c.go:1:1: expected 'package'", "FAIL pond/c", "1 passed, 1 failed, 1 skipped"}},
		{"a crash", ok + `{"Action":"output","Package":"pond/d","Test":"TestLong","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"pond/d"}
`, false, []string{"panic: test timed out", "1 passed, 1 failed, 1 skipped"}},
		{"plain text", "go: downloading something\n" + ok, true, []string{"go: downloading something\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := &report{out: &out, output: map[string][]string{}, builds: map[string][]string{}}
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			if got := r.finish(); got != c.ok {
				t.Errorf("got %v, want %v", got, c.ok)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant %q in it", out.String(), want)
				}
			}
		})
	}
}
