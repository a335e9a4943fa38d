#!/usr/bin/env bash
# Runs every fuzz target of the tree for FUZZTIME (default 10m), one after the other. Inputs that fail are kept by Go in the
# package's testdata/fuzz and fail `make test` from then on.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
time=${FUZZTIME:-10m}
found=0
while IFS=: read -r file _ line; do
  target=${line#func }
  target=${target%%(*}
  printf '\n== %s in %s for %s\n' "$target" "$(dirname "$file")" "$time"
  go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  found=$((found + 1))
done < <(git grep -n --untracked -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' | grep -E "${FUZZ:-.}")
printf '\n%d fuzz targets ran for %s each\n' "$found" "$time"
