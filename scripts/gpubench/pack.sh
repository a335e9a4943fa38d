#!/usr/bin/env bash
# Builds what run.sh needs into the folder OUT (23 MB), to be run here or carried to a machine with a GPU and without Go: programs, and with PEER=1 the peer's
# libraries from npm, cut to what a Hopper GPU with a driver of CUDA 13.0 takes. That machine needs g++ 12 or newer and CUDA 13.
set -eu
out=$(mkdir -p "${1:?pack.sh OUT}" && cd "$1" && pwd)
cd "$(dirname "$0")/../.."
export CGO_ENABLED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/programs"
go build -ldflags="-s -w" -o "$work/programs/gpubench" ./scripts/gpubench
go test -c -ldflags="-s -w" -o "$work/programs/kernels.test" ./metal/kernels
go test -c -ldflags="-s -w" -o "$work/programs/qwen36.test" ./inference/qwen36
go test -c -ldflags="-s -w" -o "$work/programs/eval.test" ./inference/eval
tar -C "$work" -cf - programs | xz -6 -T0 >"$out/programs.tar.xz"
cp scripts/gpubench/run.sh scripts/gpubench/fatbin.py scripts/gpubench/counts.py scripts/benchpeer/llama.py scripts/benchpeer/gguf.py "$out/"
git rev-parse --short HEAD >"$out/commit"
if [ "${PEER:-1}" = 1 ] && [ ! -f "$out/peer.tar.xz" ]; then
  package=@node-llama-cpp/linux-x64-cuda@3.21.1
  (cd "$work" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz)
  from=$work/package/bins/linux-x64-cuda
  mkdir "$work/libs"
  cp "$from"/libggml-base.so "$from"/libggml.*v*.so "$from"/libllama.*v*.so "$from"/libggml-cpu-{x64,haswell,icelake,zen4,sapphirerapids}.so "$work/libs/"
  python3 scripts/gpubench/fatbin.py cut "$from/libggml-cuda.so" "$work/libs/libggml-cuda.so"
  tar -C "$work" -cf - libs | xz -6 -T0 >"$out/peer.tar.xz"
fi
du -sh "$out"
