package update

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The feed is an appcast in Sparkle's vocabulary, so that tools which know those (Homebrew's livecheck, for one) can read it:
//
//   - an RSS channel with an item for each release: title, sparkle:shortVersionString, sparkle:minimumSystemVersion, pubDate and an enclosure with
//     url, length in bytes, and sparkle:edSignature, the Ed25519 signature (RFC 8032) of the archive's bytes in base64;
//   - after it, as the last line, <!-- pond-signature: BASE64 -->, the Ed25519 signature of every byte before that line. So nobody on the way can offer
//     an old release, leave one out or point elsewhere.

// Release is one item of the feed.
type Release struct {
	Version       Version
	Published     time.Time
	MinimumSystem Version // oldest macOS
	URL           string  // of the zip
	LengthBytes   int64
	Signature     []byte // of the zip
}

// maxFeedBytes bounds what is read of a feed.
const maxFeedBytes = 1 << 20

const (
	namespace = "http://www.andymatuschak.org/xml-namespaces/sparkle"
	trailer   = "<!-- pond-signature: "
	trailend  = " -->\n"
)

type feedXML struct {
	XMLName xml.Name `xml:"rss"`
	RSS     string   `xml:"version,attr"`
	Channel struct {
		Title string    `xml:"title"`
		Items []itemXML `xml:"item"`
	} `xml:"channel"`
}

type itemXML struct {
	Title     string `xml:"title"`
	Published string `xml:"pubDate"`
	Version   string `xml:"http://www.andymatuschak.org/xml-namespaces/sparkle shortVersionString"`
	System    string `xml:"http://www.andymatuschak.org/xml-namespaces/sparkle minimumSystemVersion"`
	Enclosure struct {
		URL       string `xml:"url,attr"`
		Length    string `xml:"length,attr"`
		Type      string `xml:"type,attr"`
		Signature string `xml:"http://www.andymatuschak.org/xml-namespaces/sparkle edSignature,attr"`
	} `xml:"enclosure"`
}

// ErrSignature says that something does not bear the signature of Pond's releases.
var ErrSignature = errors.New("it is not signed with the key of Pond's releases")

// ReadFeed checks the signature of a feed before it looks at anything else, and lists its releases.
func ReadFeed(text []byte, key ed25519.PublicKey) ([]Release, error) {
	at := bytes.LastIndex(text, []byte(trailer))
	if at < 0 || !bytes.HasSuffix(text, []byte(trailend)) {
		return nil, fmt.Errorf("feed: %w: it has no signature", ErrSignature)
	}
	signature, err := base64.StdEncoding.DecodeString(string(text[at+len(trailer) : len(text)-len(trailend)]))
	if err != nil || !ed25519.Verify(key, text[:at], signature) {
		return nil, fmt.Errorf("feed: %w", ErrSignature)
	}
	var f feedXML
	if err := xml.Unmarshal(text[:at], &f); err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	var out []Release
	for _, item := range f.Channel.Items {
		r, err := item.release()
		if err != nil {
			return nil, fmt.Errorf("feed: %s: %w", item.Title, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (i itemXML) release() (Release, error) {
	r := Release{URL: i.Enclosure.URL}
	var err error
	if r.Version, err = ParseVersion(i.Version); err != nil {
		return r, err
	}
	if r.MinimumSystem, err = ParseVersion(i.System); err != nil {
		return r, err
	}
	if r.Published, err = time.Parse(time.RFC1123Z, i.Published); err != nil {
		return r, err
	}
	if r.LengthBytes, err = strconv.ParseInt(i.Enclosure.Length, 10, 64); err != nil || r.LengthBytes <= 0 || r.LengthBytes > maxArchiveBytes {
		return r, fmt.Errorf("length: got %q, want bytes up to %d", i.Enclosure.Length, maxArchiveBytes)
	}
	if r.Signature, err = base64.StdEncoding.DecodeString(i.Enclosure.Signature); err != nil || len(r.Signature) != ed25519.SignatureSize {
		return r, fmt.Errorf("signature: got %q, want %d bytes in base64", i.Enclosure.Signature, ed25519.SignatureSize)
	}
	return r, nil
}

// WriteFeed makes a signed feed. The same releases give the same bytes.
func WriteFeed(title string, releases []Release, key ed25519.PrivateKey) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	fmt.Fprintf(&b, "<rss version=\"2.0\" xmlns:sparkle=%q>\n<channel>\n<title>%s</title>\n", namespace, escape(title))
	for _, r := range releases {
		fmt.Fprintf(&b, "<item>\n<title>%s</title>\n<pubDate>%s</pubDate>\n", r.Version, r.Published.UTC().Format(time.RFC1123Z))
		fmt.Fprintf(&b, "<sparkle:shortVersionString>%s</sparkle:shortVersionString>\n<sparkle:minimumSystemVersion>%s</sparkle:minimumSystemVersion>\n", r.Version, r.MinimumSystem)
		fmt.Fprintf(&b, "<enclosure url=\"%s\" length=\"%d\" type=\"application/zip\" sparkle:edSignature=\"%s\"/>\n</item>\n",
			escape(r.URL), r.LengthBytes, base64.StdEncoding.EncodeToString(r.Signature))
	}
	b.WriteString("</channel>\n</rss>\n")
	signature := ed25519.Sign(key, b.Bytes())
	b.WriteString(trailer + base64.StdEncoding.EncodeToString(signature) + trailend)
	return b.Bytes()
}

func escape(text string) string {
	var b strings.Builder
	if xml.EscapeText(&b, []byte(text)) != nil {
		panic("update: internal error: a builder does not fail")
	}
	return b.String()
}

// Version is three numbers.
type Version [3]int

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// Compare is negative when v is older than other, positive when it is newer.
func (v Version) Compare(other Version) int {
	for i := range v {
		if v[i] != other[i] {
			return v[i] - other[i]
		}
	}
	return 0
}

// ParseVersion reads one to three numbers with dots between; those that are left out are 0.
func ParseVersion(text string) (Version, error) {
	var v Version
	words := strings.Split(text, ".")
	wrong := fmt.Errorf("version: got %q, want up to three numbers", text)
	if len(words) > len(v) {
		return v, wrong
	}
	for i, w := range words {
		n, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return Version{}, wrong
		}
		v[i] = int(n)
	}
	return v, nil
}
