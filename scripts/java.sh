#!/bin/sh
# Prints the JAVA_HOME of a Java that Spark 4 can use (17 or newer); installs one where it may.
#
#   scripts/java.sh           find, else install
#   scripts/java.sh --find    find only
#
# JAVA_ROOTS, normally empty, goes before the usual places, so that a test can look in a folder of its own.

set -u
wanted=17

main() {
    find_java && exit 0
    if [ "${1:-}" != --find ] && may_install; then
        install_java >&2 && find_java && exit 0
    fi
    echo "Everview needs Java $wanted or newer to run Spark: install a JDK or JRE (for example openjdk-$wanted-jre-headless) or set JAVA_HOME to one." >&2
    exit 1
}

# Print the first home that holds a Java new enough; fail when there is none.
find_java() {
    on_path=$(command -v java 2>/dev/null) && on_path=$(home_of "$on_path") || on_path=
    for home in \
        "${JAVA_HOME:-}" \
        "$on_path" \
        "${JAVA_ROOTS:-}"/usr/lib/jvm/* \
        "${JAVA_ROOTS:-}"/opt/java* \
        "${JAVA_ROOTS:-}"/opt/java/* \
        "${HOME:-/nonexistent}"/.sdkman/candidates/java/current \
        "${JAVA_ROOTS:-}"/Library/Java/JavaVirtualMachines/*/Contents/Home
    do
        if [ -n "$home" ] && [ -x "$home/bin/java" ] && [ "$(major "$home/bin/java")" -ge "$wanted" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

# The home of a java command, through its links: /usr/bin/java is two of them on Debian.
# On a Mac /usr/bin/java is a stub, so Java itself is asked.
home_of() {
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'
}

# The major version of a java command, 0 when it does not run: "17.0.1" is 17, "1.8.0" is 1.
major() {
    found=$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p;' | head -n 1)
    echo "${found:-0}"
}

may_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

install_java() {
    echo "No Java $wanted or newer found; installing one with apt-get."
    as_root apt-get update -qq || return 1
    package=openjdk-$wanted-jre-headless
    if ! available "$package"; then
        package=default-jre-headless
        default_is_new_enough || return 1
    fi
    as_root apt-get install -y -qq --no-install-recommends "$package"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

available() {
    apt-cache show "$1" >/dev/null 2>&1
}

# Debian's default-jre-headless depends on openjdk-NN-jre-headless; NN is its version.
default_is_new_enough() {
    version=$(apt-cache depends default-jre-headless 2>/dev/null |
        sed -n 's/.*openjdk-\([0-9][0-9]*\)-jre-headless.*/\1/p' | head -n 1)
    [ "${version:-0}" -ge "$wanted" ]
}

main "$@"
