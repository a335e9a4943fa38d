#!/usr/bin/env bash
# The first hour of somebody new, in a fresh Debian or Ubuntu of its own: Go and git are there, as the README asks, and nothing else. Pond is cloned by a user
# who may call sudo, and the README's two commands and its curl line are typed; how long each takes is printed.
#
#   scripts/newcomer.sh [DIR]   DIR takes the root, some GB (default: a new folder in TMPDIR, removed in the end)
#
# It wants root, debootstrap and unshare, and skips with the reason elsewhere. From the environment, by their usual names: http_proxy, https_proxy, no_proxy,
# GOPROXY, GOSUMDB; SUITE and MIRROR are debootstrap's (default: this machine's release). Certificates that this machine trusts are trusted in there.
set -eu
cd "$(dirname "$0")/.."

skip() {
  echo "skipped: $1"
  exit 0
}
[ "$(uname -s)" = Linux ] || skip "a root of its own is made on Linux alone"
[ "$(id -u)" = 0 ] || skip "making a root of its own wants root: sudo make test-newcomer"
for tool in debootstrap unshare; do
  command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
unshare --mount --pid --fork --kill-child true 2>/dev/null || skip "this machine lets nobody make name spaces"
suite=${SUITE:-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)}
[ -n "$suite" ] || skip "this machine has no Debian release's name; set SUITE"

dir=${1:-}
if [ -z "$dir" ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"
root=$(cd "$dir" && pwd)/root
rm -rf "$root"

# timed WORDS COMMAND...: its output goes to a file of its own, which is shown when it fails. Beside the clock's time stands that of the processors, which does
# not depend on what else the machine does.
timed() {
  local what=$1 code=0 spent TIMEFORMAT='%0R %0U %0S'
  shift
  spent=$({ time "$@" >"$dir/last.log" 2>&1 </dev/null; } 2>&1) || code=$?
  read -r clock user system <<<"$spent"
  if [ "$code" != 0 ]; then
    tail -n 60 "$dir/last.log"
    echo "newcomer: $what failed after $clock s" >&2
    exit 1
  fi
  printf 'newcomer: %4d s, %4d s of the processors  %s\n' "$clock" "$((user + system))" "$what"
}

# inside COMMAND: in the root, with file systems and processes of its own that end with it.
inside() {
  # shellcheck disable=SC2016  # the inner shell's
  unshare --mount --pid --fork --kill-child bash -c '
    set -eu
    root=$1 line=$2
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for node in null zero full random urandom tty; do
      : >"$root/dev/$node"
      mount --bind "/dev/$node" "$root/dev/$node"
    done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "$line"
  ' - "$root" "$1"
}
newcomer() { inside "exec su --login newcomer --command $(printf '%q' "cd pond && $1")"; }

timed "Debian $suite from its registry" debootstrap --variant=minbase --include=ca-certificates,git,make,sudo,curl "$suite" "$root" ${MIRROR:+"$MIRROR"}
rm -f "$root/etc/resolv.conf"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"; fi
cp -a "$(go env GOROOT)" "$root/usr/local/go"
ln -s ../go/bin/go ../go/bin/gofmt "$root/usr/local/bin/"
inside "useradd --create-home --shell /bin/bash newcomer && echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/newcomer"
for name in http_proxy https_proxy no_proxy GOPROXY GOSUMDB; do
  [ -z "${!name:-}" ] || printf 'export %s=%q\n' "$name" "${!name}" >>"$root/home/newcomer/.profile"
done
printf 'Defaults env_keep += "http_proxy https_proxy no_proxy"\n' >>"$root/etc/sudoers.d/newcomer"
git clone --quiet --no-hardlinks . "$root/home/newcomer/pond"
inside "chown -R newcomer: /home/newcomer"

# The README's curl line, as it stands there: the first block that begins with it.
awk '/^```/ { if (block ~ /^curl /) { printf "%s", block; exit } block = ""; next } { block = block $0 "\n" }' README.md >"$root/home/newcomer/ask.sh"
[ -s "$root/home/newcomer/ask.sh" ] || {
  echo "README.md has no block that begins with curl" >&2
  exit 1
}
cat >"$root/home/newcomer/first.sh" <<'INNER'
# make run, until the README's line is answered, and Ctrl-C: it goes to the whole group, as a terminal sends it.
set -eum
make run >../run.log 2>&1 &
until grep -q "listening on" ../run.log; do
  kill -0 $! 2>/dev/null || { cat ../run.log; echo "make run ended before it was ready"; exit 1; }
  sleep 0.2
done
cat ../run.log
sh ../ask.sh | tee ../answer.json
grep -q '"role":"assistant"' ../answer.json
kill -INT -- -$!
wait $! || true
INNER
timed "make run: built, started, and the README's curl line answered" newcomer "bash ../first.sh"
timed "make run ARGS=version, the second time" newcomer "HEADLESS=1 make run ARGS=version"
timed "make test" newcomer "make test"
sed -n '/^== go test/,$p' "$dir/last.log" | tail -n 25
