package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// Rules of the guard. A server on loopback is reachable by every page in the user's browser, so loopback alone protects nothing:
//
//   - Host must be a loopback name or on the list: a page that points its own domain at 127.0.0.1 (DNS rebinding) still sends
//     that domain. Checked first, before routing, for every path.
//   - Origin, when there is one, must be a page served from loopback, from this server itself, or on the list. A foreign page is
//     refused and gets no allow header; "null" (files, sandboxed frames) is foreign.
//   - POST needs a JSON content type, unless it has neither type nor body: with another type a browser sends cross-site posts without asking
//     first. (It names their origin all the same: the rule before this one is the stronger.)
//   - With a key, everything but the routes marked open needs it, as "Authorization: Bearer KEY" or, as Anthropic's clients send it, "X-Api-Key: KEY". Beyond loopback the server does not start without a key and
//     without a list of the names it is called by.
//
// TLS is not offered: put a reverse proxy in front where the network is not trusted.

type guard struct {
	hosts   map[string]bool // lower case, without port
	origins map[string]bool // lower case, scheme://host[:port]
	key     []byte          // SHA-256 of the API key; nil when there is none
}

func newGuard(o Options) (*guard, error) {
	g := &guard{hosts: map[string]bool{}, origins: map[string]bool{}}
	for _, h := range o.AllowedHosts {
		name, ok := hostName(h)
		if !ok || name == "*" {
			return nil, fmt.Errorf("allowed host: got %q, want a name or an address, with or without a port", h)
		}
		g.hosts[name] = true
	}
	for _, origin := range o.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("allowed origin: got %q, want scheme://host or scheme://host:port", origin)
		}
		g.origins[strings.ToLower(u.Scheme+"://"+u.Host)] = true
	}
	if o.APIKey != "" {
		sum := sha256.Sum256([]byte(o.APIKey))
		g.key = sum[:]
	}
	return g, checkBind(o)
}

// checkBind refuses an address that others can reach unless the request can be told from theirs.
func checkBind(o Options) error {
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("address: got %q, want host:port: %s", o.Addr, addressFault(err))
	}
	if isLoopback(strings.ToLower(host)) {
		return nil
	}
	if o.APIKey == "" || len(o.AllowedHosts) == 0 {
		return &BeyondLoopbackError{Addr: o.Addr, NoKey: o.APIKey == "", NoHosts: len(o.AllowedHosts) == 0}
	}
	return nil
}

// addressFault is what net says is wrong, without the address and the word that it puts before it.
func addressFault(err error) string {
	var fault *net.AddrError
	if errors.As(err, &fault) {
		return fault.Err
	}
	return err.Error()
}

// BeyondLoopbackError says that others can reach the address, and which of the two things it needs are missing.
type BeyondLoopbackError struct {
	Addr    string
	NoKey   bool // no API key
	NoHosts bool // no list of the host names that clients use
}

func (e *BeyondLoopbackError) Error() string {
	const key, hosts = "an API key", "the list of host names that clients use"
	want := key + " and " + hosts
	switch {
	case !e.NoHosts:
		want = key
	case !e.NoKey:
		want = hosts
	}
	return fmt.Sprintf("address %s is beyond loopback: want %s", e.Addr, want)
}

// check runs before routing.
func (g *guard) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, h := c.Request(), c.Response().Header()
		name, ok := hostName(r.Host)
		if !ok || !isLoopback(name) && !g.hosts[name] {
			return refuse(http.StatusForbidden, "host_not_allowed", "host: got %q, want a loopback name or one on the list of allowed hosts", r.Host)
		}
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
		if origins := r.Header.Values(echo.HeaderOrigin); len(origins) > 0 {
			if len(origins) > 1 || !g.allowsOrigin(origins[0], r.Host) {
				return refuse(http.StatusForbidden, "origin_not_allowed", "origin: got %q, want a page on loopback or one on the list of allowed origins", origins[0])
			}
			h.Set(echo.HeaderAccessControlAllowOrigin, origins[0])
			h.Set(echo.HeaderAccessControlExposeHeaders, headerRequestID+", Request-Id, "+headerIgnored+", Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get(echo.HeaderAccessControlRequestMethod) != "" {
				return preflight(c)
			}
		}
		if r.Method == http.MethodPost && !isEmpty(r) && !isJSON(r.Header.Get(echo.HeaderContentType)) {
			return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "content type: got %q, want application/json", r.Header.Get(echo.HeaderContentType))
		}
		if coding := r.Header.Get(echo.HeaderContentEncoding); coding != "" && !strings.EqualFold(coding, "identity") {
			return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "content encoding: got %q, want none", coding)
		}
		return next(c)
	}
}

// needKey asks for the key on every route that is not open.
func (g *guard) needKey(open func(echo.Context) bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if g.key != nil && !open(c) && !g.hasKey(c.Request()) {
				c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="pond"`)
				return refuse(http.StatusUnauthorized, "invalid_api_key", "API key: missing or wrong, want it as \"Authorization: Bearer KEY\" or \"X-Api-Key: KEY\"")
			}
			return next(c)
		}
	}
}

func (g *guard) hasKey(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	bearer := strings.EqualFold(scheme, "Bearer") && g.isKey(strings.TrimSpace(token))
	// Some clients send a key of another service in one header and ours in the other: either is enough.
	return bearer || g.isKey(r.Header.Get("X-Api-Key"))
}

// isKey compares digests, which have equal lengths, in constant time: neither the length nor a matching start can be measured.
func (g *guard) isKey(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.key) == 1
}

// isEmpty says that a request has no body and does not claim to have one.
func isEmpty(r *http.Request) bool {
	return r.ContentLength == 0 && r.Header.Get(echo.HeaderContentType) == ""
}

func (g *guard) allowsOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if g.origins[strings.ToLower(u.Scheme+"://"+u.Host)] {
		return true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if strings.EqualFold(u.Host, host) { // a page of this server, whose Host passed already
		return true
	}
	name, ok := hostName(u.Host)
	return ok && isLoopback(name)
}

// preflight answers the browser's question about an allowed origin.
func preflight(c echo.Context) error {
	r, h := c.Request(), c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAccessControlRequestHeaders)
	h.Set(echo.HeaderAccessControlAllowMethods, "GET, POST, DELETE, OPTIONS")
	// Client libraries add headers of their own (x-stainless-...); the origin is trusted, so its list is taken as it is.
	if names := r.Header.Get(echo.HeaderAccessControlRequestHeaders); names != "" {
		h.Set(echo.HeaderAccessControlAllowHeaders, names)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set(echo.HeaderAccessControlMaxAge, "600")
	return c.NoContent(http.StatusNoContent)
}

// hostName gives the lower-case name of a Host header or of an origin's host, without port, brackets and root dot.
func hostName(host string) (string, bool) {
	name, port := host, ""
	if rest, ok := strings.CutPrefix(host, "["); ok {
		var found bool
		if name, port, found = strings.Cut(rest, "]"); !found {
			return "", false
		}
		if _, err := netip.ParseAddr(name); err != nil {
			return "", false
		}
		if port != "" && !strings.HasPrefix(port, ":") {
			return "", false
		}
		port = strings.TrimPrefix(port, ":")
	} else if name, port, _ = strings.Cut(host, ":"); strings.ContainsAny(name, "[]/@") {
		return "", false
	}
	if strings.Trim(port, "0123456789") != "" {
		return "", false
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name, name != ""
}

func isLoopback(name string) bool {
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != echo.MIMEApplicationJSON && !(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "us-ascii")
}
