#!/usr/bin/env bash
# Prints the linker's flag that tells a binary which sources it was built from: commit, the commit's time, and whether something was changed since.
# Prints nothing outside a clone, such as in an unpacked archive. With `time`: the commit's time alone, in seconds; the clock's outside a clone.
set -eu
cd "$(dirname "$0")/.."
if ! commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  [ "${1:-}" != time ] || echo "${SOURCE_DATE_EPOCH:-$(date +%s)}"
  exit 0
fi
if [ "${1:-}" = time ]; then
  git show -s --format=%ct HEAD
  exit 0
fi
at=$(TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ HEAD)
changed=""
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || changed=",changed"
echo "-X pond/app.stamp=${commit:0:12},$at$changed"
