#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aifs is configured, built and unit-tested inside a mount of itself: with --long all of it, else the metadata server and the tests of what all programs share.
. "$(dirname "$0")/lib.sh"
cluster_up
mkdir "$M/src"
(cd "$AIFS_SOURCE" && tar -c --exclude='./build*' --exclude=./.git .) | tar -C "$M/src" -x || fail "copying the sources"
cd "$M/src" || exit 1
meson setup build --buildtype=debug >"$T/setup.log" 2>&1 || {
    tail -20 "$T/setup.log"
    fail "meson setup"
}
built=() tests=()
[ -n "${AIFS_TEST_LONG:-}" ] || {
    mapfile -t tests < <(meson test -C build --list --suite unit 2>/dev/null | sed -n 's/.* \/ \(\(base\|conf\|crypto\|fault\|net\|proto\|rt\|stat\)-[^ ]*\)$/\1/p')
    [ ${#tests[@]} -ge 20 ] || fail "only ${#tests[@]} tests of common/ and proto/ in: $(meson test -C build --list --suite unit)"
    built=(mds/aifs-mds "${tests[@]/#/tests/unit/test-unit-}")
}
ninja -C build "${built[@]}" >"$T/build.log" 2>&1 || {
    tail -30 "$T/build.log"
    fail "ninja"
}
meson test -C build --no-rebuild --suite unit "${tests[@]}" >"$T/test.log" 2>&1 || {
    tail -30 "$T/test.log"
    fail "unit tests"
}
expect "a second ninja has nothing to do" grep -q 'no work to do' <(ninja -C build "${built[@]}")
cd /
