#!/bin/sh
# Finds PostgreSQL, which the fuzzer asks where a view and Spark differ; installs it where it may.
# Nothing depends on it: without it the fuzzer does without a third opinion.

set -u

main() {
    found && exit 0
    if may_install; then
        install_postgres >&2 && found && exit 0
    fi
    echo "PostgreSQL is not there: where a view and Spark differ, nobody else is asked." >&2
}

found() {
    command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1 && return 0
    for program in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$program" ] && return 0
    done
    return 1
}

may_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

install_postgres() {
    echo "Installing PostgreSQL with apt-get, without a cluster of its own."
    settings=/etc/postgresql-common/createcluster.conf
    if [ ! -e "$settings" ]; then
        as_root mkdir -p "$(dirname "$settings")" || return 1
        echo "create_main_cluster = false" | as_root tee "$settings" >/dev/null || return 1
    fi
    as_root apt-get update -qq || return 1
    as_root apt-get install -y -qq --no-install-recommends postgresql
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

main "$@"
