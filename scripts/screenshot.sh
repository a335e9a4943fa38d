#!/usr/bin/env bash
# Shows the real Pond on a private screen with a private session bus and folders of its own, opens the chat from the main window, asks a
# question, and writes build/pond.png and build/pond-chat.png. What the software painter of make screenshots cannot show, OpenGL and the keyboard, is
# seen here.
set -eu
cd "$(dirname "$0")/.."
scripts/install.sh gui
scripts/install.sh screen
make --no-print-directory gui
if [ -z "${POND_SCREEN:-}" ]; then
  home=$(mktemp -d)
  trap 'rm -rf "$home"' EXIT
  mkdir -p "$home/config/pond" "$home/data" "$home/state" "$home/run"
  chmod 700 "$home/run"
  printf '{"port": %s, "model": "%s", "start_serving": true}\n' "${PORT:-11899}" "${MODEL:-pond-demo}" >"$home/config/pond/settings.json"
  export POND_SCREEN=1 LIBGL_ALWAYS_SOFTWARE=1 XDG_CONFIG_HOME="$home/config" XDG_DATA_HOME="$home/data" XDG_STATE_HOME="$home/state" XDG_CACHE_HOME="$home/cache" XDG_RUNTIME_DIR="$home/run"
  xvfb-run -a -s "-screen 0 1100x820x24 +extension GLX" dbus-run-session -- "$0"
  exit
fi

# window NAME waits for a window and prints its id.
window() {
  for _ in $(seq 150); do
    id=$(xdotool search --name "$1" 2>/dev/null | tail -n 1 || true)
    [ -z "$id" ] || { echo "$id"; return; }
    sleep 0.2
  done
  echo "no window $1 appeared; build/pond.log:" >&2
  cat build/pond.log >&2
  return 1
}

openbox >/dev/null 2>&1 &
build/pond >build/pond.log 2>&1 &
pond=$!
trap 'kill "$pond" 2>/dev/null || true' EXIT
sleep "${SETTLE:-4}"
build/pond # a second one shows the window of the first
main=$(window '^Pond$')
sleep 2
import -window root build/pond.png
xdotool windowactivate --sync "$main" mousemove --window "$main" 88 287 click 1
chat=$(window 'Pond · Chat')
sleep 2
xdotool windowactivate --sync "$chat"
xdotool type --delay 40 "Hello! Who are you?"
xdotool key Return
sleep "${ANSWER:-8}"
import -window root build/pond-chat.png
kill "$pond"
wait "$pond" || { echo "pond ended with $?; build/pond.log:" >&2; cat build/pond.log >&2; exit 1; }
echo "wrote build/pond.png and build/pond-chat.png"
