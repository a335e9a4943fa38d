// Command pack puts Pond together for others: the app, its archives, what tells of a release, and the look at all of it before it goes out.
//
//	pack kernels  the Metal kernels compiled, where Apple's compiler is
//	pack app      Pond.app around a binary, signed ad hoc
//	pack zip      the archive that updates and Homebrew take
//	pack image    the disk image that people take
//	pack inspect  look at an app and say what is wrong with it
//	pack keygen   the key that updates are signed with; pack public prints its public half
//	pack tar      the program without its window, for the terminal
//	pack publish  the feed, Homebrew's recipes and the digests beside a release's archives
//	pack check    what a release must show, with yes or no
//
// scripts/app.sh and scripts/release.sh say in which order.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pond/assets"
	"pond/packaging/bundle"
	"pond/packaging/inspect"
	"pond/packaging/licences"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// commands are what pack does, by name.
var commands = map[string]func(*flag.FlagSet, []string) error{
	"kernels": packKernels, "app": packApp, "zip": packZip, "image": packImage, "inspect": look,
	"keygen": keygen, "public": public, "tar": packTar, "publish": publish, "check": check,
}

func run(args []string) error {
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("got %q, want a command: go doc pond/packaging/pack", strings.Join(args, " "))
	}
	return commands[args[0]](flag.NewFlagSet(args[0], flag.ContinueOnError), args[1:])
}

func packApp(f *flag.FlagSet, args []string) error {
	root := f.String("root", ".", "folder of Pond's sources")
	binary := f.String("binary", "", "Mach-O executable for arm64")
	out := f.String("out", "build", "folder that takes Pond.app")
	at := f.Int64("time", 0, "seconds since 1970 that every file bears: the commit's")
	feed := f.String("feed", "", "where the app looks for updates; empty: nowhere")
	compiled := f.String("kernels", "", "folder of pack kernels; where it has none, the app has their text alone")
	key := f.String("key", "", "what updates are signed with: base64 of an Ed25519 public key")
	if err := f.Parse(args); err != nil {
		return err
	}
	product, err := bundle.ReadProduct(filepath.Join(*root, "FyneApp.toml"))
	if err != nil {
		return err
	}
	terms, err := licences.Gather(*root, *binary)
	if err != nil {
		return err
	}
	s := bundle.Spec{Product: product, Binary: *binary, Icon: assets.Icon(), Licences: terms, Feed: *feed, Key: *key}
	if *at > 0 {
		s.Time = time.Unix(*at, 0).UTC()
	}
	if *compiled != "" {
		if s.Resources, err = compiledKernels(*compiled); err != nil {
			return err
		}
	}
	app, err := bundle.Write(*out, s)
	if err != nil {
		return err
	}
	return report(app)
}

func packZip(f *flag.FlagSet, args []string) error {
	return archive(f, args, func(out, app string, _ bundle.Product, t time.Time) error { return bundle.Zip(out, app, t) })
}

func packImage(f *flag.FlagSet, args []string) error {
	return archive(f, args, func(out, app string, p bundle.Product, t time.Time) error { return bundle.Image(out, app, p.Name, t) })
}

// archive packs an app with one of the ways.
func archive(f *flag.FlagSet, args []string, way func(out, app string, p bundle.Product, t time.Time) error) error {
	root := f.String("root", ".", "folder of Pond's sources")
	app := f.String("app", "build/Pond.app", "what to pack")
	out := f.String("out", "", "the archive")
	at := f.Int64("time", 0, "seconds since 1970 that every file bears: the commit's")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *out == "" || *at <= 0 {
		return errors.New("want -out and -time")
	}
	product, err := bundle.ReadProduct(filepath.Join(*root, "FyneApp.toml"))
	if err != nil {
		return err
	}
	if err := way(*out, *app, product, time.Unix(*at, 0)); err != nil {
		return err
	}
	st, err := os.Stat(*out)
	if err != nil {
		return err
	}
	fmt.Printf("wrote %s, %.1f MB\n", *out, float64(st.Size())/1e6)
	return nil
}

func look(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return errors.New("want one app")
	}
	return report(f.Arg(0))
}

// report prints what an app is, and fails where something is wrong with it.
func report(app string) error {
	facts, err := inspect.App(app)
	if err != nil {
		return err
	}
	window := "without its window"
	if facts.Windowed() {
		window = "with its window"
	}
	if facts.Kernels {
		window += ", kernels compiled"
	}
	fmt.Printf("%s: %s %s (%s), %s, arm64, macOS %s or later (linked for %s), %.1f MB, signature %s\n", app, facts.ID, facts.Version, facts.Build, window,
		facts.MinimumSystem, facts.LinkedFor, float64(facts.TotalBytes)/1e6, facts.CodeHash[:16])
	return nil
}
