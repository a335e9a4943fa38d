#!/usr/bin/env bash
# Builds Pond and starts it: with its window where there is a screen, else the endpoint alone. Arguments go to pond.
set -eu
cd "$(dirname "$0")/.."

screen=no
case "$(uname -s)" in
Darwin) screen=yes ;;
*) [ -z "${DISPLAY:-}" ] || screen=yes ;;
esac
[ "${HEADLESS:-}" = "" ] || screen=no

if [ "$screen" = yes ]; then
  scripts/install.sh gui
  make --no-print-directory gui
else
  echo "there is no screen here: building Pond without its window"
  make --no-print-directory build
fi
exec build/pond "$@"
