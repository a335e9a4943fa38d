#!/usr/bin/env bash
# The long form of the downloader's fault tests: SCHEDULES random schedules (default 1000) and KILLS kills of a real process (default 100)
# over a made-up model of 64 MB. Parts lie under TMPDIR, which may be a disk in memory.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
export POND_SCHEDULES=${SCHEDULES:-1000} POND_SCHEDULE_BYTES=64000000 POND_KILLS=${KILLS:-100} POND_KILL_BYTES=64000000
go test ./inference/checkpoint/fetch -run 'TestSchedules|TestKill' -count 1 -timeout 3h -v | { grep -v -E '^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS)' || true; }
