#!/usr/bin/env bash
# What a release must show: lists each point of the files in a folder with yes, NO or "not run", and fails where one is missing.
set -eu
cd "$(dirname "$0")/.."
: "${POND_RELEASE_URL:?the address that the files of the release will have}"
CGO_ENABLED=0 exec go run ./packaging/pack check -dir "${1:-build/release}" -url "$POND_RELEASE_URL"
