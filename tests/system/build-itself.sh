#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aifs is configured, built and unit-tested inside a mount of itself.
. "$(dirname "$0")/lib.sh"
cluster_up
mkdir "$M/src"
(cd "$AIFS_SOURCE" && tar -c --exclude='./build*' --exclude=./.git .) | tar -C "$M/src" -x || fail "copying the sources"
cd "$M/src" || exit 1
meson setup build --buildtype=debug >"$T/setup.log" 2>&1 || {
    tail -20 "$T/setup.log"
    fail "meson setup"
}
ninja -C build >"$T/build.log" 2>&1 || {
    tail -30 "$T/build.log"
    fail "ninja"
}
meson test -C build --suite unit >"$T/test.log" 2>&1 || {
    tail -30 "$T/test.log"
    fail "unit tests"
}
expect "a second ninja has nothing to do" grep -q 'no work to do' <(ninja -C build)
cd /
