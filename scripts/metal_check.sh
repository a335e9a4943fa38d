#!/usr/bin/env bash
# All that can be proven of the Metal half without a Mac: the kernels' text under strict address spaces, every kernel against its reference in
# three orders and once with every access checked, the binding and the device with their planted faults, whole models against the goldens,
# 64 tokens of the demo model against the host executor at every tap, and its perplexity on 192 positions. It needs clang++-19; with g++ alone the lint is left out and says so.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 POND_METAL_CHECK=1

if [ "$(uname -s)" != Linux ]; then
  echo "metal-check is for Linux, where the stand-in plays Metal; on a Mac: make test-gpu" >&2
  exit 2
fi

scripts/install.sh test

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# tests [ARGUMENT]... runs them once and shows results, and the reasons of those that are skipped
tests() {
  local status=0
  go test -count 1 -timeout 30m -v "$@" >"$tmp/log" 2>&1 || status=$?
  if grep 'no tests to run' "$tmp/log"; then status=1; fi # a test that was renamed must not vanish from here
  grep -E '^(---|    ---|ok|FAIL|panic)|_test.go:' "$tmp/log" | grep -v -- '--- PASS' || true
  return "$status"
}

step "vet of the binding for a Mac"
GOOS=darwin GOARCH=arm64 go vet ./metal/... ./inference/...

step "the stand-in and its kernel compiler"
tests ./metal/standin/...

step "every kernel against its reference"
tests ./metal/kernels

step "the binding, the device, the suite of all devices"
tests ./metal/mtl ./metal/gpu ./metal/crosscheck ./metal

step "whole models"
tests ./inference/qwen36 -run TestGPU

step "192 positions of text, by the chunk and token by token, beside transformers and the exact host"
tests ./inference/eval -run TestDemoAgainstTransformers

step "the engine"
tests ./inference -run 'Standin|OneOwner|FailedGPU'

step "pond serve answers"
go build -o "$tmp/pond" .
port=$((20000 + RANDOM % 20000))
"$tmp/pond" serve --executor standin --model pond-demo --addr "127.0.0.1:$port" >"$tmp/serve.log" 2>&1 &
server=$!
for _ in $(seq 120); do curl -sf "http://127.0.0.1:$port/health" >/dev/null && break; sleep 0.5; done
answer=$(curl -sf -H 'Content-Type: application/json' "http://127.0.0.1:$port/v1/chat/completions" \
  -d '{"model":"pond-demo","messages":[{"role":"user","content":"Hello, who are you?"}],"temperature":0,"max_tokens":60}')
echo "$answer" | grep -q "demo model" || { echo "got: $answer"; cat "$tmp/serve.log"; exit 1; }
echo "$answer" | grep -o '"timings":{[^}]*}'
kill -INT "$server"
wait "$server" # an end with leaks or misuse is an error
server=

missing=
for tool in qemu-aarch64 clang++-19 aarch64-linux-gnu-ld; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
[ -d /usr/aarch64-linux-gnu/lib ] || missing="$missing libc6-dev-arm64-cross"
if [ -z "$missing" ]; then
  step "the binding and the device on arm64, under qemu"
  GOARCH=arm64 POND_STANDIN_CXX="$PWD/scripts/arm64_cxx.sh" tests -exec 'qemu-aarch64 -L /usr/aarch64-linux-gnu' ./metal/mtl ./metal/gpu
else
  step "the binding on arm64: skipped, it needs$missing"
fi
step "done"
