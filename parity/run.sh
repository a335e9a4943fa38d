#!/bin/sh
# Makes the reference records again: parity/run.sh transformers|mlx [demo directory]
#
# Creates a Python environment of its own (PARITY_VENV, by default under the user's cache), installs the pinned packages
# by name from PyPI, checks the golden weights, and writes parity/transformers.json or parity/mlx.json.
# Needs Python 3.10 to 3.13 with venv, a network for the first run, and about 6 GB of disk for torch (its Linux wheel
# brings CUDA libraries, which are not used) or 1 GB for mlx. Exit codes: 0 done, 1 failed, 2 called wrongly.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
what=${1:-}
demo=${2:-$here/../assets/demo}
case $what in
transformers | mlx) ;;
*)
	echo "usage: parity/run.sh transformers|mlx [demo directory]" >&2
	exit 2
	;;
esac

venv=${PARITY_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/pond-parity}/$what
python=${PYTHON:-python3}
if [ ! -x "$venv/bin/python" ]; then
	echo "parity: creating $venv"
	"$python" -m venv "$venv"
fi
if [ ! -f "$venv/installed" ] || ! cmp -s "$here/$what.txt" "$venv/installed"; then
	echo "parity: installing the packages of parity/$what.txt"
	"$venv/bin/python" -m pip install --quiet --requirement "$here/$what.txt"
	cp "$here/$what.txt" "$venv/installed"
fi

# Nothing is fetched at run time: the models are made here or lie in the repository.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" "$here/goldenmodel.py" check
"$venv/bin/python" "$here/${what}_reference.py" record "$here/$what.json.new" "$demo"
mv "$here/$what.json.new" "$here/$what.json"
echo "parity: wrote $here/$what.json"
