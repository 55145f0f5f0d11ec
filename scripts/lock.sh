#!/bin/sh
# Writes requirements.lock: every dependency, direct or not, at the newest version pyproject.toml allows.
# Everything is resolved anew in a scratch environment, so nothing stale stays pinned.

set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/python" - pyproject.toml >"$scratch/wanted.txt" <<'PY'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
print(*project["project"]["dependencies"], *project["dependency-groups"]["dev"], sep="\n")
PY
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$scratch/wanted.txt"
{
    echo "# Written by scripts/lock.sh from pyproject.toml; do not edit."
    "$scratch/venv/bin/python" -m pip list --format=freeze --disable-pip-version-check |
        grep -v -i -E '^(pip|setuptools|wheel)==' | sort -f
} >requirements.lock
