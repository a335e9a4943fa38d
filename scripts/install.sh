#!/usr/bin/env bash
# Installs what a target of the Makefile needs and does not find. Nothing is done when nothing is missing.
#
#   scripts/install.sh test      what the tests need: Go, and a C++ compiler for those that run Metal's kernels on Linux
#   scripts/install.sh gui       what a build with the window needs: a C compiler, OpenGL and X11 headers
#   scripts/install.sh parity    what making the reference records needs: Python with venv
#   scripts/install.sh app       what the test of the real app needs: the two around this line; exit code 3: it cannot be had
#   scripts/install.sh screen    what showing the window without a screen needs: Xvfb, a session bus, a screenshot tool
set -eu

if ! command -v go >/dev/null 2>&1; then
  echo "pond needs Go 1.26 or newer and cannot find it: https://go.dev/dl" >&2
  exit 1
fi

case "$(uname -s)" in
Darwin)
  # The window needs Apple's compiler and headers; the rest is plain Go.
  if [ "$1" = gui ] && ! xcode-select -p >/dev/null 2>&1; then
    echo "pond's window needs the Xcode command line tools; install them with: xcode-select --install" >&2
    exit 1
  fi
  exit 0
  ;;
Linux) ;;
*)
  echo "pond builds on macOS and Linux; this is $(uname -s)" >&2
  exit 1
  ;;
esac

gui="clang-19 pkg-config libgl1-mesa-dev libx11-dev libxrandr-dev libxcursor-dev libxinerama-dev libxi-dev libxxf86vm-dev"
case "$1" in
test) packages="clang-19" ;;
gui) packages=$gui ;;
app) packages="$gui xvfb dbus openbox xdotool" ;;
parity) packages="python3 python3-venv" ;;
screen) packages="xvfb xauth openbox dbus xdotool x11-utils imagemagick" ;;
*)
  echo "scripts/install.sh: got $1, want test, gui, app, parity or screen" >&2
  exit 2
  ;;
esac

[ -n "$packages" ] || exit 0
if ! command -v dpkg-query >/dev/null 2>&1; then
  if [ "$1" = app ]; then
    for tool in cc Xvfb dbus-daemon pkg-config; do
      command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed" >&2; exit 3; }
    done
    pkg-config --exists gl x11 xrandr xcursor xinerama xi xxf86vm || { echo "headers of OpenGL or X11 are missing" >&2; exit 3; }
    exit 0
  fi
  echo "this is no Debian; if the build fails, install the counterparts of: $packages" >&2
  exit 0
fi

# clang builds Fyne's OpenGL binding three times as fast as gcc; where Debian has no clang-19, g++ does.
missing=""
for p in $packages; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

# The tests do without a compiler, and skip with the reason: what cannot be installed does not stop them.
give_up() {
  echo "$1" >&2
  [ "$wanted" != app ] || exit 3
  [ "$wanted" = test ] || exit 1
  echo "the tests of Metal's kernels on Linux will skip" >&2
  exit 0
}
wanted=$1

sudo=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || give_up "install as root:$missing"
  sudo="sudo"
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q >/dev/null || give_up "apt-get update failed; missing:$missing"
case "$missing" in
*clang-19*) apt-cache show clang-19 >/dev/null 2>&1 || missing=${missing/clang-19/g++} ;;
esac
# shellcheck disable=SC2086  # a list of words
$sudo apt-get install -q -y --no-install-recommends $missing >/dev/null || give_up "apt-get install failed; missing:$missing"
