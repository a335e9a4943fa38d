package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"pond/inference"

	"pond/server/openai"
)

// guarded is the guard before two routes that need no engine.
func guarded(t *testing.T, o Options) http.Handler {
	t.Helper()
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	g, err := newGuard(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{options: o, guard: g, log: slog.New(slog.DiscardHandler), echo: echo.New(),
		metrics: newMetrics(&inference.Engine{}, "", func() int { return 0 })}
	s.echo.Logger.SetOutput(io.Discard)
	s.echo.Pre(s.access, g.check)
	ok := func(c echo.Context) error { return c.String(http.StatusOK, "ok") }
	s.echo.Use(g.needKey(func(c echo.Context) bool { return c.Path() == "/open" }))
	s.echo.GET("/open", ok)
	s.echo.GET("/v1/thing", ok)
	s.echo.POST("/v1/thing", ok)
	return s.echo
}

func request(method, host, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// errorCode reads the code of an error body, which every refusal must have.
func errorCode(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body openai.ErrorBody
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("status %d: got body %q, want an error in the API's form", w.Code, w.Body)
		return ""
	}
	if body.Error.Code == nil {
		return ""
	}
	return *body.Error.Code
}

// A page on the web that points its own name at 127.0.0.1 could drive the server from the user's browser.
func TestHost(t *testing.T) {
	local := guarded(t, Options{})
	lan := guarded(t, Options{Addr: "0.0.0.0:11535", APIKey: "k", AllowedHosts: []string{"MyMac.local", "192.168.1.7:11535"}})
	for host, want := range map[string][2]int{ // status in local mode, in LAN mode
		"127.0.0.1":              {200, 200},
		"127.0.0.1:11535":        {200, 200},
		"127.8.9.1:80":           {200, 200},
		"localhost":              {200, 200},
		"LOCALHOST":              {200, 200},
		"localhost.":             {200, 200},
		"localhost:1":            {200, 200},
		"[::1]":                  {200, 200},
		"[::1]:11535":            {200, 200},
		"[::ffff:127.0.0.1]:1":   {200, 200},
		"mymac.local":            {403, 200},
		"MYMAC.local:11535":      {403, 200},
		"192.168.1.7":            {403, 200},
		"192.168.1.8":            {403, 403},
		"evil.example:8080":      {403, 403},
		"evil.example":           {403, 403},
		"localhost.evil.example": {403, 403},
		"127.0.0.1.evil.example": {403, 403},
		"evil.example@localhost": {403, 403},
		"localhost:80:90":        {403, 403},
		"localhost:evil":         {403, 403},
		"::1":                    {403, 403},
		"[::1":                   {403, 403},
		"[::1]evil":              {403, 403},
		"[evil.example]":         {403, 403},
		"127.1":                  {403, 403},
		"2130706433":             {403, 403},
		"0.0.0.0":                {403, 403},
		"":                       {403, 403},
		" localhost":             {403, 403},
	} {
		for i, h := range []http.Handler{local, lan} {
			w := answer(h, request("GET", host, "/open"))
			if w.Code != want[i] {
				t.Errorf("host %q, handler %d: got status %d, want %d", host, i, w.Code, want[i])
			}
			if w.Code == 403 {
				if code := errorCode(t, w); code != "host_not_allowed" {
					t.Errorf("host %q: got code %q, want host_not_allowed", host, code)
				}
			}
		}
	}
	// Before routing: an unknown path does not tell a foreign page that it is unknown.
	if w := answer(local, request("GET", "evil.example", "/nowhere")); w.Code != 403 {
		t.Errorf("foreign host, unknown path: got status %d, want 403", w.Code)
	}
}

func TestOrigin(t *testing.T) {
	h := guarded(t, Options{AllowedHosts: []string{"mymac.local"}, AllowedOrigins: []string{"https://App.example/", "tauri://localhost"}})
	for origin, allowed := range map[string]bool{
		"http://localhost:3000":          true,
		"http://127.0.0.1:5173":          true,
		"https://localhost":              true,
		"http://[::1]:8000":              true,
		"http://mymac.local:11535":       true, // this server's own page
		"http://mymac.local:1":           false,
		"https://app.example":            true,
		"tauri://localhost":              true,
		"file://localhost":               false,
		"app://localhost":                false,
		"https://app.example:444":        false,
		"http://app.example":             false,
		"https://evil.example":           false,
		"https://localhost.evil.example": false,
		"null":                           false,
		"":                               false,
	} {
		for _, r := range []*http.Request{
			request("GET", "mymac.local:11535", "/open", "Origin", origin),
			request("POST", "mymac.local:11535", "/v1/thing", "Origin", origin, "Content-Type", "application/json"),
			request("OPTIONS", "mymac.local:11535", "/v1/thing", "Origin", origin, "Access-Control-Request-Method", "POST",
				"Access-Control-Request-Headers", "authorization,content-type,x-stainless-os", "Access-Control-Request-Private-Network", "true"),
		} {
			w := answer(h, r)
			allow := w.Header().Get("Access-Control-Allow-Origin")
			if !allowed {
				if w.Code != 403 || allow != "" || errorCode(t, w) != "origin_not_allowed" {
					t.Errorf("%s from %q: got status %d and allow header %q, want 403 and none", r.Method, origin, w.Code, allow)
				}
				continue
			}
			if w.Code/100 != 2 || allow != origin {
				t.Errorf("%s from %q: got status %d and allow header %q, want success and the origin", r.Method, origin, w.Code, allow)
			}
			if !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin") {
				t.Errorf("%s from %q: got Vary %q, want Origin in it", r.Method, origin, w.Header().Values("Vary"))
			}
			if r.Method == "OPTIONS" {
				if got := w.Header().Get("Access-Control-Allow-Headers"); got != "authorization,content-type,x-stainless-os" {
					t.Errorf("preflight from %q: got allowed headers %q", origin, got)
				}
				if w.Header().Get("Access-Control-Allow-Private-Network") != "true" {
					t.Errorf("preflight from %q: private network not allowed", origin)
				}
			}
		}
	}
	r := request("GET", "localhost", "/open", "Origin", "http://localhost", "Origin", "https://evil.example")
	if w := answer(h, r); w.Code != 403 {
		t.Errorf("two origins: got status %d, want 403", w.Code)
	}
}

func TestContentType(t *testing.T) {
	h := guarded(t, Options{})
	for kind, want := range map[string]int{
		"application/json":                   200,
		"application/json; charset=utf-8":    200,
		"Application/JSON;charset=\"UTF-8\"": 200,
		"application/merge-patch+json":       200,
		"application/json; charset=latin1":   415,
		"text/plain":                         415,
		"text/plain+json":                    415,
		"application/x-www-form-urlencoded":  415,
		"multipart/form-data; boundary=x":    415,
		"application/jsonx":                  415,
		"":                                   415,
	} {
		r := request("POST", "localhost", "/v1/thing", "Content-Type", kind)
		r.ContentLength = 2
		w := answer(h, r)
		if w.Code != want {
			t.Errorf("content type %q: got status %d, want %d", kind, w.Code, want)
		}
	}
	// Clients that have nothing to say, as when they cancel a response, name no type.
	if w := answer(h, request("POST", "localhost", "/v1/thing")); w.Code != 200 {
		t.Errorf("no type and no body: got status %d, want 200", w.Code)
	}
	w := answer(h, request("POST", "localhost", "/v1/thing", "Content-Type", "application/json", "Content-Encoding", "gzip"))
	if w.Code != 415 {
		t.Errorf("gzip body: got status %d, want 415", w.Code)
	}
}

func TestKey(t *testing.T) {
	h := guarded(t, Options{APIKey: "secret"})
	for authorization, want := range map[string]int{
		"Bearer secret": 200, "bearer secret": 200, "Bearer secret ": 200,
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer secre": 401, "Bearer secret2": 401, "Basic secret": 401, "secret": 401,
	} {
		w := answer(h, request("GET", "localhost", "/v1/thing", "Authorization", authorization))
		if w.Code != want {
			t.Errorf("authorization %q: got status %d, want %d", authorization, w.Code, want)
		}
		if w.Code == 401 && (errorCode(t, w) != "invalid_api_key" || w.Header().Get("WWW-Authenticate") == "") {
			t.Errorf("authorization %q: got headers %v, want a challenge and code invalid_api_key", authorization, w.Header())
		}
	}
	if w := answer(h, request("GET", "localhost", "/open")); w.Code != 200 {
		t.Errorf("open route without key: got status %d, want 200", w.Code)
	}
	if w := answer(h, request("GET", "localhost", "/nowhere")); w.Code != 401 {
		t.Errorf("unknown path without key: got status %d, want 401", w.Code)
	}
	if w := answer(h, request("PUT", "localhost", "/v1/thing")); w.Code != 401 {
		t.Errorf("wrong method without key: got status %d, want 401", w.Code)
	}
	if w := answer(guarded(t, Options{}), request("GET", "localhost", "/v1/thing", "Authorization", "Bearer anything")); w.Code != 200 {
		t.Errorf("no key set: got status %d, want 200", w.Code)
	}
}

func TestBindRules(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string // "" when allowed
	}{
		{Options{Addr: "127.0.0.1:1"}, ""},
		{Options{Addr: "localhost:0"}, ""},
		{Options{Addr: "[::1]:1"}, ""},
		{Options{Addr: "0.0.0.0:1"}, "API key"},
		{Options{Addr: ":1"}, "API key"},
		{Options{Addr: "192.168.1.7:1"}, "API key"},
		{Options{Addr: "mymac.local:1"}, "API key"},
		{Options{Addr: "0.0.0.0:1", APIKey: "k"}, "host names"},
		{Options{Addr: "0.0.0.0:1", APIKey: "k", AllowedHosts: []string{"mymac.local"}}, ""},
		{Options{Addr: "127.0.0.1"}, "host:port"},
		{Options{Addr: "127.0.0.1:1", AllowedHosts: []string{"*"}}, "allowed host"},
		{Options{Addr: "127.0.0.1:1", AllowedHosts: []string{"http://x"}}, "allowed host"},
		{Options{Addr: "127.0.0.1:1", AllowedOrigins: []string{"*"}}, "allowed origin"},
		{Options{Addr: "127.0.0.1:1", AllowedOrigins: []string{"https://x/path"}}, "allowed origin"},
	} {
		_, err := newGuard(c.o)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: got error %v, want one with %q", c.o, err, c.says)
		}
	}
}

// FuzzGuard: whatever the headers are, only names on loopback get through a guard without lists.
func FuzzGuard(f *testing.F) {
	f.Add("localhost:1", "http://localhost")
	f.Add("[::1]", "null")
	f.Fuzz(func(t *testing.T, host, origin string) {
		name, ok := hostName(host)
		if ok && isLoopback(name) && name != "localhost" && !strings.HasPrefix(name, "127.") && !strings.Contains(name, ":") {
			t.Errorf("host %q passes as %q", host, name)
		}
		g := &guard{hosts: map[string]bool{}, origins: map[string]bool{}}
		if g.allowsOrigin(origin, "127.0.0.1:11535") && !strings.HasPrefix(strings.ToLower(origin), "http") {
			t.Errorf("origin %q passes", origin)
		}
	})
}
