package bundle

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// Product is what FyneApp.toml says: the names and numbers of a release.
type Product struct {
	Name    string
	ID      string
	Version string // three numbers
	Build   int    // grows with every release
}

// line is a key of FyneApp.toml with its value.
var line = regexp.MustCompile(`(?m)^(Name|ID|Version|Build)\s*=\s*"?([^"\n]*?)"?\s*$`)

// ReadProduct reads FyneApp.toml. It knows the four keys that a bundle needs and passes over the rest.
func ReadProduct(file string) (Product, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Product{}, fmt.Errorf("bundle: %w", err)
	}
	found := map[string]string{}
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		found[m[1]] = m[2]
	}
	p := Product{Name: found["Name"], ID: found["ID"], Version: found["Version"]}
	if p.Build, err = strconv.Atoi(found["Build"]); err != nil || p.Build < 1 {
		return p, fmt.Errorf("bundle: %s: Build: got %q, want a number from 1", file, found["Build"])
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(p.Version) {
		return p, fmt.Errorf("bundle: %s: Version: got %q, want three numbers", file, p.Version)
	}
	if p.Name == "" || p.ID == "" {
		return p, fmt.Errorf("bundle: %s: got Name %q and ID %q, want both", file, p.Name, p.ID)
	}
	return p, nil
}
