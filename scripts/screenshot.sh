#!/usr/bin/env bash
# Shows Pond's window on a private screen with a private session bus, asks it a question, and writes build/pond.png. It uses a
# settings folder of its own; MODEL picks another model than the built-in one.
set -eu
cd "$(dirname "$0")/.."
scripts/install.sh gui
scripts/install.sh screen
make --no-print-directory gui
if [ -z "${POND_SCREEN:-}" ]; then
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  mkdir -p "$home/config/pond" "$home/run"
  chmod 700 "$home/run"
  printf '{"address": "127.0.0.1:%s", "model": "%s"}\n' "${PORT:-11899}" "${MODEL:-pond-demo}" >"$home/config/pond/settings.json"
  export POND_SCREEN=1 LIBGL_ALWAYS_SOFTWARE=1 XDG_CONFIG_HOME="$home/config" XDG_RUNTIME_DIR="$home/run"
  xvfb-run -a -s "-screen 0 900x760x24 +extension GLX" dbus-run-session -- "$0"
  exit
fi

openbox >/dev/null 2>&1 &
build/pond >build/pond.log 2>&1 &
pond=$!
trap 'kill "$pond" 2>/dev/null || true' EXIT
window=""
for _ in $(seq 100); do
  window=$(xdotool search --name '^Pond$' 2>/dev/null | tail -n 1 || true)
  [ -z "$window" ] || break
  sleep 0.2
done
[ -n "$window" ] || { echo "no window appeared; build/pond.log:" >&2; cat build/pond.log >&2; exit 1; }
sleep "${SETTLE:-4}"
xdotool windowactivate --sync "$window" mousemove --window "$window" 200 310 click 1
sleep 1
xdotool type --delay 40 "Hello! Who are you?"
xdotool key Return
sleep "${ANSWER:-8}"
import -window root build/pond.png
kill "$pond"
wait "$pond" || { echo "pond ended with $?; build/pond.log:" >&2; cat build/pond.log >&2; exit 1; }
echo "wrote build/pond.png"
