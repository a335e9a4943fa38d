#!/usr/bin/env bash
# Compiles the kernels to DIR/pond.metallib with Apple's Metal compiler and prints its path; prints nothing, and says why, where there is no such compiler: the
# app then compiles the same text when it loads a model. The options are those of inference's own compilation (metal/gpu).
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: scripts/metallib.sh DIR}
if ! command -v xcrun >/dev/null 2>&1 || ! xcrun --sdk macosx --find metal >/dev/null 2>&1; then
  echo "no Metal compiler here (xcrun metal): the app compiles its kernels itself" >&2
  exit 0
fi
mkdir -p "$out"
CGO_ENABLED=0 go run ./packaging/pack kernels >"$out/pond.metal"
xcrun --sdk macosx metal -std=metal3.1 -fno-fast-math -mmacosx-version-min=15.0 -o "$out/pond.metallib" "$out/pond.metal" >&2
echo "$out/pond.metallib"
