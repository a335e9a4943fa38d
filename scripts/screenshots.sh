#!/usr/bin/env bash
# Draws every window in light and dark, at one and two pixels a unit, with Fyne's software painter, and puts the pictures of 256 colours into
# assets/screenshots. The same sources give the same bytes. Needs no screen.
set -eu
cd "$(dirname "$0")/.."
out="$PWD/assets/screenshots"
rm -f "$out"/*.png
POND_SCREENSHOTS="$out" CGO_ENABLED=0 go test ./app/ui -run '^TestScreenshots$' -count 1 -timeout 20m
bytes=$(cat "$out"/*.png | wc -c)
echo "wrote $(find "$out" -name '*.png' | wc -l) pictures, $((bytes / 1024)) KB, to assets/screenshots"
[ "$bytes" -lt 3000000 ] || { echo "they are larger than 3 MB together" >&2; exit 1; }
