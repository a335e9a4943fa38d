#!/usr/bin/env bash
# Builds build/Pond, the app with its window for a Mac with Apple Silicon: on such a Mac with Apple's own compiler, anywhere else with clang, lld and
# the root of a macOS SDK, which this project neither ships nor downloads. A bare binary: the bundle around it is packaging's.
set -eu
cd "$(dirname "$0")/.."
sdk=${1:-}
tags="migrated_fynedo"
if [ "$(uname -s)" = Darwin ]; then
  scripts/install.sh gui
  CGO_ENABLED=1 GOOS=darwin GOARCH=arm64 go build -tags "$tags" -trimpath -o build/Pond .
  exit
fi
if [ -z "$sdk" ]; then
  echo "the app for a Mac needs Apple's headers, and this is $(uname -s): make app MACOS_SDK=DIR, the root of a macOS SDK (DIR/System/Library/Frameworks must be there)" >&2
  exit 2
fi
if [ ! -d "$sdk/System/Library/Frameworks/AppKit.framework" ] || [ ! -d "$sdk/usr/include" ]; then
  echo "MACOS_SDK: got $sdk, want the root of a macOS SDK: it has no System/Library/Frameworks/AppKit.framework, or no usr/include" >&2
  exit 2
fi
for tool in clang-19 clang++-19 ld64.lld-19; do
  command -v "$tool" >/dev/null 2>&1 || { echo "make app needs $tool: install clang-19 and lld-19" >&2; exit 2; }
done
sdk=$(cd "$sdk" && pwd)
# clang passes the platform to the linker only when it believes in a new one; Go's own strip does not know this format, so -s -w.
export GOOS=darwin GOARCH=arm64 CGO_ENABLED=1
export CC="clang-19 -mlinker-version=705 -target arm64-apple-macos15.0 -isysroot $sdk" CXX="clang++-19 -mlinker-version=705 -target arm64-apple-macos15.0 -isysroot $sdk"
export CGO_CFLAGS="-O2 -g -Wno-nullability-completeness -Wno-deprecated-declarations" CGO_LDFLAGS="--ld-path=$(command -v ld64.lld-19)"
go build -tags "$tags" -trimpath -ldflags '-s -w -extldflags "-Wl,-platform_version,macos,15.0,15.0"' -o build/Pond .
echo "wrote build/Pond"
