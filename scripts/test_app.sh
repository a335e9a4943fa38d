#!/usr/bin/env bash
# Drives the real app under Xvfb with a private D-Bus, and State under load with the race detector. LONG=1 is the whole minute of it.
set -eu
cd "$(dirname "$0")/.."
scripts/install.sh gui
scripts/install.sh screen
make --no-print-directory gui
POND_TEST_APP="$PWD/build/pond" CGO_ENABLED=0 go test -count 1 -v -run '^TestApp' .
POND_TEST_STATE_SECONDS=${SECONDS_OF_STATE:-60} CGO_ENABLED=1 go test -race -count 1 -v -run '^TestManyPublish' ./app
