package bundle

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
)

// codeResources is the property list that seals a bundle's resources: the digests of its files, once for old systems (files: SHA-1) and once
// for present ones (files2: SHA-256), and the rules by which codesign chose them. Source: TN2206 of Apple, "Resource Envelope"; the rules are
// the ones that codesign writes when it is given none. Names are relative to Contents.
func codeResources(files map[string][]byte) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	b.WriteString(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	b.WriteString("<plist version=\"1.0\">\n<dict>\n")
	names := slices.Sorted(maps.Keys(files))
	b.WriteString("\t<key>files</key>\n\t<dict>\n")
	for _, name := range names {
		sum := sha1.Sum(files[name])
		fmt.Fprintf(&b, "\t\t<key>%s</key>\n\t\t<data>%s</data>\n", name, base64.StdEncoding.EncodeToString(sum[:]))
	}
	b.WriteString("\t</dict>\n\t<key>files2</key>\n\t<dict>\n")
	for _, name := range names {
		sum := sha256.Sum256(files[name])
		fmt.Fprintf(&b, "\t\t<key>%s</key>\n\t\t<dict>\n\t\t\t<key>hash2</key>\n\t\t\t<data>%s</data>\n\t\t</dict>\n", name, base64.StdEncoding.EncodeToString(sum[:]))
	}
	b.WriteString("\t</dict>\n")
	writeRules(&b, "rules", []sealRule{
		{pattern: "^Resources/"},
		{pattern: `^Resources/.*\.lproj/`, mark: "optional", weight: 1000},
		{pattern: `^Resources/.*\.lproj/locversion.plist$`, mark: "omit", weight: 1100},
		{pattern: `^Resources/Base\.lproj/`, weight: 1010},
		{pattern: "^version.plist$"},
	})
	writeRules(&b, "rules2", []sealRule{
		{pattern: `.*\.dSYM($|/)`, weight: 11},
		{pattern: `^(.*/)?\.DS_Store$`, mark: "omit", weight: 2000},
		{pattern: "^.*"},
		{pattern: `^(Frameworks|SharedFrameworks|PlugIns|Plug-ins|XPCServices|Helpers|MacOS|Library/(Automator|Spotlight|LoginItems))/`, mark: "nested", weight: 10},
		{pattern: `^Info\.plist$`, mark: "omit", weight: 20},
		{pattern: `^PkgInfo$`, mark: "omit", weight: 20},
		{pattern: "^Resources/", weight: 20},
		{pattern: `^Resources/.*\.lproj/`, mark: "optional", weight: 1000},
		{pattern: `^Resources/.*\.lproj/locversion.plist$`, mark: "omit", weight: 1100},
		{pattern: `^Resources/Base\.lproj/`, weight: 1010},
		{pattern: `^[^/]+$`, mark: "nested", weight: 10},
		{pattern: `^embedded\.provisionprofile$`, weight: 20},
		{pattern: `^version\.plist$`, weight: 20},
	})
	b.WriteString("</dict>\n</plist>\n")
	return b.Bytes()
}

// sealRule says which files are sealed: those whose path matches pattern, unless a heavier rule says otherwise.
type sealRule struct {
	pattern string
	mark    string // "omit", "optional", "nested", or nothing
	weight  int    // 0: 1, which is not written
}

func writeRules(b *bytes.Buffer, key string, rules []sealRule) {
	fmt.Fprintf(b, "\t<key>%s</key>\n\t<dict>\n", key)
	for _, r := range rules {
		fmt.Fprintf(b, "\t\t<key>%s</key>\n", r.pattern)
		if r.weight == 0 {
			b.WriteString("\t\t<true/>\n")
			continue
		}
		b.WriteString("\t\t<dict>\n")
		if r.mark != "" {
			fmt.Fprintf(b, "\t\t\t<key>%s</key>\n\t\t\t<true/>\n", r.mark)
		}
		fmt.Fprintf(b, "\t\t\t<key>weight</key>\n\t\t\t<real>%d</real>\n\t\t</dict>\n", r.weight)
	}
	b.WriteString("\t</dict>\n")
}
