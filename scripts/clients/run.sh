#!/usr/bin/env bash
# Clients that nobody here wrote, against the real server with the demo model: the official OpenAI SDKs for Python and JavaScript, Anthropic's
# for both, the Vercel AI SDK, LangChain, and a real browser on the page at /. What they need comes from PyPI and npm into build/clients.
set -eu
cd "$(dirname "$0")/../.."
here=$PWD/scripts/clients
out=$PWD/build/clients
mkdir -p "$out"
need() { command -v "$1" >/dev/null 2>&1 || { echo "make clients: $1 is not installed: $2"; exit 1; }; }
need python3 "install Python 3.9 or later"
need npm "install Node.js 20 or later"

if [ ! -x "$out/py/bin/python" ]; then
  python3 -m venv "$out/py"
fi
"$out/py/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
cp "$here/package.json" "$here"/*.mjs "$out/"
(cd "$out" && npm install --silent --no-audit --no-fund)

CGO_ENABLED=0 go build -trimpath -o "$out/pond" .
log=$out/server.log
"$out/pond" serve --model pond-demo --context 4096 --addr 127.0.0.1:0 >"$log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
for _ in $(seq 600); do
  url=$(sed -n 's|^listening on \(http://[^ ]*\)/v1$|\1|p' "$log")
  [ -n "$url" ] && break
  kill -0 $server 2>/dev/null || { cat "$log"; exit 1; }
  sleep 0.2
done
export POND_URL=$url POND_MODEL=pond-demo

failed=0
try() {
  echo "== $*"
  if ! timeout 900 "$@"; then
    echo "FAILED: $*"
    failed=1
  fi
}
for client in ${CLIENTS:-openai anthropic langchain openai_js anthropic_js ai_sdk page}; do
  case $client in
    *_js | ai_sdk | page) try node "$out/$client.mjs" ;;
    *) try env PYTHONPATH="$here" "$out/py/bin/python" "$here/client_$client.py" ;;
  esac
done
exit $failed
