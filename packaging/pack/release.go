package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"pond/app/update"
	"pond/packaging/bundle"
	"pond/packaging/homebrew"
	"pond/packaging/licences"
)

// Names of a release's files, in one folder.
const (
	feedName    = "appcast.xml"
	sumsName    = "SHA256SUMS"
	caskName    = "cask-pond.rb"
	formulaName = "formula-pond.rb"
	agentPlist  = "packaging/launchd/app.pond.serve.plist"
)

func zipName(version string) string          { return "Pond-" + version + ".zip" }
func imageName(version string) string        { return "Pond-" + version + ".dmg" }
func tarName(version, target string) string  { return "pond-" + version + "-" + target + ".tar.gz" }
func encodeKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }
func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
func digestFile(path string) (string, error)   { b, err := os.ReadFile(path); return digestOf(b), err }
func errWants(f *flag.FlagSet, w string) error { return fmt.Errorf("%s: want %s", f.Name(), w) }

// keygen makes the key that releases are signed with. It is made once and kept by people: whoever loses it cannot update anybody any more, and
// whoever has it can update everybody.
func keygen(f *flag.FlagSet, args []string) error {
	out := f.String("out", "", "file that takes the private key; it must not exist")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errWants(f, "-out")
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(*out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(base64.StdEncoding.EncodeToString(private.Seed()) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	fmt.Println(encodeKey(public))
	return nil
}

func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: want %d bytes in base64, as pack keygen writes them", file, ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// public prints the public half of a key.
func public(f *flag.FlagSet, args []string) error {
	key := f.String("key", "", "file of the private key")
	if err := f.Parse(args); err != nil {
		return err
	}
	private, err := readKey(*key)
	if err != nil {
		return err
	}
	fmt.Println(encodeKey(private.Public().(ed25519.PublicKey)))
	return nil
}

// packTar makes the archive of a program without its window.
func packTar(f *flag.FlagSet, args []string) error {
	root := f.String("root", ".", "folder of Pond's sources")
	binary := f.String("binary", "", "the program")
	out := f.String("out", "", "the archive")
	at := f.Int64("time", 0, "seconds since 1970 that every file bears: the commit's")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *binary == "" || *out == "" || *at <= 0 {
		return errWants(f, "-binary, -out and -time")
	}
	program, err := os.ReadFile(*binary)
	if err != nil {
		return err
	}
	terms, err := licences.Gather(*root, *binary)
	if err != nil {
		return err
	}
	agent, err := os.ReadFile(filepath.Join(*root, filepath.FromSlash(agentPlist)))
	if err != nil {
		return err
	}
	return bundle.Tar(*out, []bundle.Part{
		{Name: "pond", Content: program, Mode: 0o755}, {Name: "LICENSES.txt", Content: terms, Mode: 0o644}, {Name: filepath.Base(agentPlist), Content: agent, Mode: 0o644},
	}, time.Unix(*at, 0))
}

// release is what publish and check are about.
type release struct {
	root, dir, url, homepage string
	product                  bundle.Product
	time                     time.Time
}

// publish writes what tells of a release beside its archives: the feed, Homebrew's recipes, the digests.
func publish(f *flag.FlagSet, args []string) error {
	var r release
	f.StringVar(&r.root, "root", ".", "folder of Pond's sources")
	f.StringVar(&r.dir, "dir", "", "folder with the zip and the tarballs")
	f.StringVar(&r.url, "url", "", "address that the folder will have")
	f.StringVar(&r.homepage, "homepage", "", "address of the project")
	key := f.String("key", "", "file of the private key")
	at := f.Int64("time", 0, "seconds since 1970: the commit's")
	if err := f.Parse(args); err != nil {
		return err
	}
	if r.dir == "" || r.url == "" || r.homepage == "" || *at <= 0 {
		return errWants(f, "-dir, -url, -homepage and -time")
	}
	r.time = time.Unix(*at, 0)
	private, err := readKey(*key)
	if err != nil {
		return err
	}
	if r.product, err = bundle.ReadProduct(filepath.Join(r.root, "FyneApp.toml")); err != nil {
		return err
	}
	return r.publish(private)
}

func (r release) publish(key ed25519.PrivateKey) error {
	archive, err := os.ReadFile(filepath.Join(r.dir, zipName(r.product.Version)))
	if err != nil {
		return err
	}
	version, err := update.ParseVersion(r.product.Version)
	if err != nil {
		return err
	}
	system, err := update.ParseVersion(bundle.MinimumSystem)
	if err != nil {
		return err
	}
	feed := update.WriteFeed(r.product.Name, []update.Release{{
		Version: version, Published: r.time, MinimumSystem: system, URL: r.url + "/" + zipName(r.product.Version), LengthBytes: int64(len(archive)), Signature: ed25519.Sign(key, archive),
	}}, key)

	recipe := homebrew.Recipe{Version: r.product.Version, ID: r.product.ID, URL: r.url, Homepage: r.homepage, AppSHA256: digestOf(archive), TarSHA256: map[string]string{}}
	for _, target := range homebrew.Targets() {
		if recipe.TarSHA256[target], err = digestFile(filepath.Join(r.dir, tarName(r.product.Version, target))); err != nil {
			return err
		}
	}
	cask, err := recipe.Cask()
	if err != nil {
		return err
	}
	formula, err := recipe.Formula()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{feedName: feed, caskName: cask, formulaName: formula} {
		if err := os.WriteFile(filepath.Join(r.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	sums, err := r.sums()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, sumsName), sums, 0o644)
}

// sums lists the digests of all files of a release, in the form of sha256sum.
func (r release) sums() ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var b bytes.Buffer
	for _, file := range files {
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() || filepath.Base(file) == sumsName {
			continue
		}
		sum, err := digestFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, filepath.Base(file))
	}
	return b.Bytes(), nil
}
