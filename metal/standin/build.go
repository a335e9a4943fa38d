package standin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ErrNoCompiler says that no C++ compiler was found. Tests skip on it.
var ErrNoCompiler = errors.New("no C++ compiler: want clang++-19 or g++ 12 or newer")

// ErrUnsupported says that the stand-in does not run here. Tests skip on it.
var ErrUnsupported = errors.New("the stand-in runs on Linux, on amd64 and arm64")

// The Objective-C half: one library from these files. What begins with msl_ is the other half, but for the interface between them.
//
//go:embed src/objc_*.cpp src/objc_*.h src/objc_*.S src/foundation.* src/metal_*.cpp src/metal_*.h src/standin.cpp src/msl_run.h
var objcSources embed.FS

// objcFlags build a library that exports only what is marked. The warnings are errors in a test, not on a user's compiler.
func objcFlags() []string {
	return []string{"-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"}
}

// Environment variables that move the folder of what is compiled, and choose the C++ compiler.
const (
	CacheVariable    = "POND_STANDIN_CACHE"
	CompilerVariable = "POND_STANDIN_CXX"
)

// cacheDir makes the folder for what is compiled. Where the user's cache folder is not to be had (no HOME, or a disk that takes no writes) it is one of
// this user's in the folder for temporary files; a folder that was asked for is used or an error.
func cacheDir(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv(CacheVariable)
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", fmt.Errorf("stand-in: cache folder: %w", err)
		}
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err == nil {
		dir = filepath.Join(base, "pond", "standin")
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = writable(dir)
		}
	}
	if err == nil {
		return dir, nil
	}
	dir = filepath.Join(os.TempDir(), fmt.Sprintf("pond-standin-%d", os.Getuid()))
	if other := own(dir); other != nil {
		return "", fmt.Errorf("stand-in: cache folder: %w; %w; want a folder that can be written in %s", err, other, CacheVariable)
	}
	return dir, nil
}

// writable says why no file can be made in dir.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// own makes dir for this user alone. What lies there is loaded as code: a folder that somebody else made or may write to is refused.
func own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s: got %v, want a folder of this user that nobody else can write to", dir, info.Mode())
	}
	return writable(dir)
}

// findCompiler returns the C++ compiler: clang 19, which kernels build fastest with, or g++.
func findCompiler() (string, error) {
	if runtime.GOOS != "linux" || (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64") {
		return "", ErrUnsupported
	}
	names := []string{"clang++-19", "g++"}
	if chosen := os.Getenv(CompilerVariable); chosen != "" {
		names = []string{chosen}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoCompiler
}

// build returns the path of the stand-in's library, compiling it where the cache has none of these sources, flags and compiler.
func build(dir string) (string, error) {
	cxx, err := findCompiler()
	if err != nil {
		return "", err
	}
	names, err := objcNames()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, cxx, objcFlags(), runtime.GOARCH)
	for _, name := range names {
		data, err := objcSources.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, name, len(data))
		h.Write(data)
	}
	path := filepath.Join(dir, "objc-"+hex.EncodeToString(h.Sum(nil))[:16]+".so")
	return path, once(path, func(tmp string) error { return compileObjC(cxx, names, tmp) })
}

// objcNames lists the sources, sorted.
func objcNames() ([]string, error) { return fs.Glob(objcSources, "src/*") }

// keepUnused is how long the cache keeps what nobody asks for.
const keepUnused = 30 * 24 * time.Hour

// once makes the file or folder at path by way of a folder beside it, if it is not there; produce leaves it there as out.so. Processes that come at the
// same time wait for the first. What nobody has asked for in keepUnused goes when something is made.
func once(path string, produce func(tmp string) error) error {
	if found(path) {
		return nil
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("stand-in: lock %s: %w", lock.Name(), err)
	}
	// Whoever waits for this lock finds the file afterwards, or makes it once more after a failure: the lock's name may go.
	defer os.Remove(lock.Name())
	if found(path) {
		return nil
	}
	dir := filepath.Dir(path)
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := produce(tmp); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(tmp, "out.so"), path); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	return prune(dir, time.Now().Add(-keepUnused))
}

// found says whether the cache has path, and marks it as used today.
func found(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if now := time.Now(); now.Sub(info.ModTime()) > 24*time.Hour {
		_ = os.Chtimes(path, now, now) // a cache that cannot be written still serves
	}
	return true
}

// prune removes what was last used before the time.
func prune(dir string, before time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("stand-in: cache folder: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue // another process was faster, or it is in use
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("stand-in: cache folder: %w", err)
		}
	}
	return nil
}

// writeUnit writes the sources into dir, and unit.cc, which includes all of them: compiling one unit takes half the time of many.
func writeUnit(names []string, dir string) error {
	var unit strings.Builder
	for _, name := range names {
		data, err := objcSources.ReadFile(name)
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		if err := os.WriteFile(filepath.Join(dir, base), data, 0o644); err != nil {
			return fmt.Errorf("stand-in: %w", err)
		}
		if strings.HasSuffix(base, ".cpp") {
			fmt.Fprintf(&unit, "#include %q\n", base)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "unit.cc"), []byte(unit.String()), 0o644); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	return nil
}

// compileObjC makes out.so in dir.
func compileObjC(cxx string, names []string, dir string) error {
	if err := writeUnit(names, dir); err != nil {
		return err
	}
	cmd := exec.Command(cxx, append(objcFlags(), "-shared", "-Wl,-z,defs", "-o", "out.so", "unit.cc", "objc_msgsend.S", "-ldl", "-lpthread")...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stand-in: %s: %w\n%s", cxx, err, said)
	}
	return nil
}
