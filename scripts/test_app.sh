#!/usr/bin/env bash
# Drives the real app under Xvfb with a private D-Bus, and State under load with the race detector. STATE_SECONDS is for how
# long; a minute unless it is given.
set -eu
cd "$(dirname "$0")/.."
scripts/install.sh gui
scripts/install.sh screen
make --no-print-directory gui
POND_TEST_APP="$PWD/build/pond" CGO_ENABLED=0 go test -count 1 -v -run '^TestApp' .
if command -v clang-19 >/dev/null 2>&1; then export CC=clang-19; fi
POND_TEST_STATE_SECONDS=${STATE_SECONDS:-60} CGO_ENABLED=1 go test -race -count 1 -v -run '^TestManyPublish' ./app
