#!/bin/sh
# Installs pond without its window, for the terminal and for servers, from a release; no root is needed.
#
#   install.sh [--version V] [--dir DIR]   the program, verified, into DIR (default ~/.local/bin)
#   install.sh --agent [--dir DIR]         on a Mac, besides: start `pond serve` at login (launchd)
#   install.sh --uninstall [--dir DIR]     takes back what the above did; models, chats and settings stay, and are named
#
# POND_RELEASE_URL is the folder of the release's files.
set -eu

url=${POND_RELEASE_URL:-}
version=""
dir="$HOME/.local/bin"
what="install"
agent=no
label=app.pond.serve
plist="$HOME/Library/LaunchAgents/$label.plist"

fail() {
  echo "pond: $1" >&2
  exit 1
}

while [ $# -gt 0 ]; do
  case "$1" in
  --version) version=${2:?--version wants a version} && shift ;;
  --dir) dir=${2:?--dir wants a folder} && shift ;;
  --agent) agent=yes ;;
  --uninstall) what="uninstall" ;;
  *) fail "got $1, want --version, --dir, --agent or --uninstall" ;;
  esac
  shift
done

case "$(uname -s)" in
Darwin) system=darwin ;;
Linux) system=linux ;;
*) fail "it runs on macOS and Linux; this is $(uname -s)" ;;
esac
case "$(uname -m)" in
arm64 | aarch64) target="$system-arm64" ;;
x86_64) target="$system-amd64" ;;
*) fail "it runs on arm64 and x86-64; this is $(uname -m)" ;;
esac
[ "$target" != darwin-amd64 ] || fail "on a Mac it needs Apple Silicon"

# domain is launchd's name of this login.
domain() { echo "gui/$(id -u)"; }

if [ "$what" = uninstall ]; then
  if [ -f "$plist" ]; then
    launchctl bootout "$(domain)/$label" 2>/dev/null || true
    rm -f "$plist"
    echo "removed $plist"
  fi
  if [ -e "$dir/pond" ] || [ -L "$dir/pond" ]; then
    rm -f "$dir/pond"
    echo "removed $dir/pond"
  fi
  if [ "$system" = darwin ]; then
    echo "what is yours stays, models of 20 GB included: ~/Library/Application Support/pond and ~/Library/Logs/pond.log"
  else
    echo "what is yours stays, models of 20 GB included: ~/.local/share/pond, ~/.config/pond and ~/.local/state/pond"
  fi
  exit 0
fi

mkdir -p "$dir"
[ -n "$url" ] || fail "set POND_RELEASE_URL to the folder of a release's files"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get() { curl --fail --silent --show-error --location --output "$work/$1" "$url/$1"; }
get SHA256SUMS || fail "no list of digests at $url"
[ -n "$version" ] || version=$(sed -n "s/^[0-9a-f]\{64\}  pond-\([0-9.]*\)-$target\.tar\.gz\$/\1/p" "$work/SHA256SUMS" | head -n 1)
name="pond-$version-$target.tar.gz"
want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$work/SHA256SUMS")
[ -n "$want" ] || fail "the release at $url has no $name"
get "$name" || fail "$name cannot be fetched"
if command -v sha256sum >/dev/null 2>&1; then
  got=$(sha256sum "$work/$name" | cut -d ' ' -f 1)
else
  got=$(shasum -a 256 "$work/$name" | cut -d ' ' -f 1)
fi
[ "$got" = "$want" ] || fail "$name: got digest $got, want $want; nothing was installed"
tar -xzf "$work/$name" -C "$work"
# In one step, beside its place first: a pond that runs keeps its own file.
cp "$work/pond" "$dir/.pond.new"
chmod 755 "$dir/.pond.new"
mv -f "$dir/.pond.new" "$dir/pond"
echo "installed $("$dir/pond" version | cut -d , -f 1) as $dir/pond"
case ":$PATH:" in
*":$dir:"*) ;;
*) echo "$dir is not in your PATH: add it, or call $dir/pond" ;;
esac

[ "$agent" = yes ] || exit 0
[ "$system" = darwin ] || fail "--agent is for macOS; on Linux let systemd run: $dir/pond serve"
mkdir -p "$HOME/Library/LaunchAgents" "$HOME/Library/Logs"
sed -e "s|@POND@|$dir/pond|" -e "s|@HOME@|$HOME|" "$work/$label.plist" >"$plist"
launchctl bootout "$(domain)/$label" 2>/dev/null || true
launchctl bootstrap "$(domain)" "$plist"
echo "pond serve starts at login; its log: $HOME/Library/Logs/pond.log"
