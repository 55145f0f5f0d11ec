#!/usr/bin/env sh
# An environment for each peer, from the package index as it is configured.
# setup.sh [PEER ...]; what does not install is said, and the others go on.
cd "$(dirname "$0")" || exit 1
python=${PYTHON:-python3}

install() {
    venv=.venv-$1
    [ -f "$venv/.stamp" ] && return
    rm -rf "$venv"
    if "$python" -m venv "$venv" && "$venv/bin/pip" install -q "$2"; then
        touch "$venv/.stamp"
    else
        rm -rf "$venv"
        echo "$1: $2 did not install" >&2
    fi
}

[ $# -gt 0 ] || set -- pathway flink
for peer in "$@"; do
    case $peer in
    pathway) install pathway 'pathway==0.33.0' ;;
    flink) install flink 'apache-flink==2.3.0' ;;
    *) echo "there is no peer $peer" >&2 && exit 2 ;;
    esac
done
