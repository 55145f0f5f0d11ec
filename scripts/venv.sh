#!/bin/sh
# Makes a virtual environment with the locked dependencies and this package in it, editable.
#
#   scripts/venv.sh PYTHON VENV [UV]

set -eu
python=$1 venv=$2 uv=${3:-}

say() {
    echo "$*" >&2
    exit 1
}

new_enough() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# uv can bring a Python along, so an old one or none is no obstacle to it.
if [ -n "$uv" ]; then
    new_enough && wanted=$python || wanted='>=3.11'
    [ -x "$venv/bin/python" ] || "$uv" venv --quiet --python "$wanted" "$venv"
    "$uv" pip install --quiet --python "$venv/bin/python" -r requirements.lock
    "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
    exit 0
fi

command -v "$python" >/dev/null 2>&1 ||
    say "Everview needs Python 3.11 or newer, and $python is not on the PATH: install it, or name yours with make setup PYTHON=/path/to/python."
new_enough ||
    say "Everview needs Python 3.11 or newer and $python is $("$python" -c 'import platform; print(platform.python_version())'): name a newer one with make setup PYTHON=/path/to/python."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    say "$python cannot make virtual environments: install its venv module (on Debian and Ubuntu, the package python3-venv)."

# An environment made by uv has no pip; it is made anew.
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
