#!/usr/bin/env bash
# Measures llama.cpp and Pond's host executor on the full shape with made-up weights, one after the other, and prints their ratios.
# Needs 45 GB of disk in DIR, 22 GiB of memory, npm and Python 3. What was made or downloaded stays in DIR for the next time.
set -eu
cd "$(dirname "$0")/../.."
dir=${DIR:-build/peer}
mkdir -p "$dir"
package=@node-llama-cpp/linux-x64@3.21.1
if [ ! -d "$dir/package" ]; then
  command -v npm >/dev/null 2>&1 || { echo "bench-peer: npm is missing: install Node.js" >&2; exit 1; }
  (cd "$dir" && npm pack --silent "$package" && tar xzf ./*.tgz && rm ./*.tgz)
fi
if [ ! -f "$dir/model/config.json" ]; then
  CGO_ENABLED=0 go run ./scripts/fullsize "$dir/model"
fi
CGO_ENABLED=0 go build -o "$dir/benchpeer" ./scripts/benchpeer
python3 scripts/benchpeer/llama.py "$dir/package/bins/linux-x64" "$dir/model.gguf" --kind q4_k >"$dir/peer.json"
"$dir/benchpeer" -model "$dir/model" -peer "$dir/peer.json" "$@"
