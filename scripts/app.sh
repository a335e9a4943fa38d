#!/usr/bin/env bash
# Builds build/Pond.app for Macs with Apple Silicon: on such a Mac with Apple's own compiler; anywhere else with clang, lld and the root of a macOS
# SDK, which this project neither ships nor downloads. Without an SDK the app is built around the binary without its window, and says so: that
# proves the bundle on any machine and is of no use in a menu bar.
#
#   scripts/app.sh [SDK]      the app
#   scripts/app.sh dmg [SDK]  the app, and the disk image and the zip of it
#
# From the environment: POND_UPDATE_FEED and POND_UPDATE_KEY, where the app looks for updates and what they are signed with (a release sets both).
set -eu
cd "$(dirname "$0")/.."
image=no
if [ "${1:-}" = dmg ]; then
  image=yes
  shift
fi
sdk=${1:-}
stamp=$(scripts/stamp.sh)
at=$(scripts/stamp.sh time)
tags="migrated_fynedo"
binary=build/darwin-arm64/pond
mkdir -p build/darwin-arm64
# The same commit gives the same bytes: no paths, no times, no record of the repository but the stamp.
flags=(-trimpath -buildvcs=false -o "$binary")

if [ "$(uname -s)" = Darwin ]; then
  scripts/install.sh gui
  MACOSX_DEPLOYMENT_TARGET=15.0 CGO_ENABLED=1 GOOS=darwin GOARCH=arm64 CGO_CFLAGS="-O2 -mmacosx-version-min=15.0" CGO_LDFLAGS="-mmacosx-version-min=15.0" \
    go build -tags "$tags" -ldflags "-s -w $stamp" "${flags[@]}" .
elif [ -z "$sdk" ]; then
  echo "no MACOS_SDK: Pond.app is built without its window (make app MACOS_SDK=DIR, the root of a macOS SDK, builds it whole)" >&2
  CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -ldflags "-s -w $stamp" "${flags[@]}" .
else
  if [ ! -d "$sdk/System/Library/Frameworks/AppKit.framework" ] || [ ! -d "$sdk/usr/include" ]; then
    echo "MACOS_SDK: got $sdk, want the root of a macOS SDK: it has no System/Library/Frameworks/AppKit.framework, or no usr/include" >&2
    exit 2
  fi
  for tool in clang-19 clang++-19 ld64.lld-19; do
    command -v "$tool" >/dev/null 2>&1 || {
      echo "make app needs $tool: install clang-19 and lld-19" >&2
      exit 2
    }
  done
  sdk=$(cd "$sdk" && pwd)
  # clang passes the platform to the linker only when it believes in a new one; Go's own strip does not know this format, so -s -w.
  target="-mlinker-version=705 -target arm64-apple-macos15.0 -isysroot $sdk"
  GOOS=darwin GOARCH=arm64 CGO_ENABLED=1 CC="clang-19 $target" CXX="clang++-19 $target" \
    CGO_CFLAGS="-O2 -g -Wno-nullability-completeness -Wno-deprecated-declarations" CGO_LDFLAGS="--ld-path=$(command -v ld64.lld-19)" \
    go build -tags "$tags" -ldflags "-s -w $stamp -extldflags \"-Wl,-platform_version,macos,15.0,15.0\"" "${flags[@]}" .
fi

CGO_ENABLED=0 go run ./packaging/pack kernels -out build/darwin-arm64
CGO_ENABLED=0 go run ./packaging/pack app -kernels build/darwin-arm64 -binary "$binary" -out build -time "$at" -feed "${POND_UPDATE_FEED:-}" -key "${POND_UPDATE_KEY:-}"
[ "$image" = yes ] || exit 0
version=$(sed -n 's/^Version = "\(.*\)"$/\1/p' FyneApp.toml)
CGO_ENABLED=0 go run ./packaging/pack zip -app build/Pond.app -out "build/Pond-$version.zip" -time "$at"
if [ "$(uname -s)" = Darwin ] || command -v xorriso >/dev/null 2>&1; then
  CGO_ENABLED=0 go run ./packaging/pack image -app build/Pond.app -out "build/Pond-$version.dmg" -time "$at"
else
  echo "no disk image: it needs xorriso, which is not installed" >&2
  exit 2
fi
