#!/usr/bin/env bash
# Runs the tests that need Spark beside those that need none, and fails if either half does.
#
#   scripts/test.sh PYTHON [MARKS]    MARKS chooses among the tests, such as "not slow"
#
# Those on a cluster with two workers are left out: `make test-cluster` runs them.
#
# Spark keeps little more than one core busy, so the other half runs at the same time. What that
# half says is shown when it has ended, in one piece.

set -u
# With job control, what runs in the background is interrupted as ever: some tests are about that.
set -m
python=$1
marks="not cluster and ${2:+($2) and}"
JAVA_HOME=$(scripts/java.sh) || exit 1
export JAVA_HOME

said=$(mktemp) || exit 1
without=
ends() {
    [ -z "$without" ] || kill -- "-$without" 2>/dev/null
    rm -f "$said"
}
trap ends EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$python" -m pytest -q -n 2 -m "$marks not spark" >"$said" 2>&1 &
without=$!
echo "== with Spark"
"$python" -m pytest -q -m "$marks spark" tests
with_spark=$?
[ "$with_spark" -ne 130 ] || exit 130
wait "$without"
without_spark=$?
without=
echo "== without Spark"
cat "$said"
[ "$with_spark" -eq 0 ] && [ "$without_spark" -eq 0 ]
