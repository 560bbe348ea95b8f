#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the unit of a mount runs can be run again after the daemon was killed, and systemd waits for as long as the daemon writes back.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
echo hello >"$M/hello" && sync "$M/hello"
unit=$AIFS_BUILD/deploy/aifs-client@.service
[ -s "$unit" ] || fail "there is no $unit"
SOURCE=127.0.0.1:$(cat "$C/mds/run/port"):/ MOUNTPOINT=$T/by-unit
mkdir "$MOUNTPOINT"
start() { # OPTIONS: ExecStart= as systemd takes it: each ${NAME} is a part of one word
    local line words=() word
    line=$(sed -n 's/^ExecStart=//p' "$unit")
    # shellcheck disable=SC2016 # that is what the unit has
    for word in $line; do
        word=${word//'${SOURCE}'/$SOURCE} word=${word//'${MOUNTPOINT}'/$MOUNTPOINT}
        words+=("${word//'${OPTIONS}'/$1}")
    done
    [ "$(basename "${words[0]}")" = aifs-mount ] || fail "ExecStart begins with ${words[0]}"
    AIFS_KEY_FILE=$C/key/client.key "$MOUNT" "${words[@]:1}" >"$T/log" 2>&1 &
    daemon=$!
}
serves() { [ "$(cat "$MOUNTPOINT/hello" 2>/dev/null)" = hello ]; }
for options in "keyfile=$C/key/client.key" "" "keyfile=$C/key/client.key,net=tcp"; do
    start "$options"
    wait_for 60 serves || fail "with OPTIONS=$options it does not serve: $(cat "$T/log")"
    kill -KILL "$daemon" && wait "$daemon" 2>/dev/null
done
[ "$(grep -c " $MOUNTPOINT " /proc/self/mountinfo)" = 1 ] || fail "mounts upon each other: $(grep " $MOUNTPOINT " /proc/self/mountinfo)"
start ""
wait_for 60 serves || fail "it does not serve in the end: $(cat "$T/log")"
kill "$daemon" && wait "$daemon" || fail "stopped, it ends with $?: $(cat "$T/log")"
grep -q " $MOUNTPOINT " /proc/self/mountinfo && fail "it is still mounted"
writes_back=$("$MOUNT" --help | grep -A3 -- '--umount_timeout=' | sed -n 's/.*default "\([0-9]*\)s*".*/\1/p')
[ "$(sed -n 's/^TimeoutStopSec=//p' "$unit")" -gt "${writes_back:-0}" ] && [ -n "$writes_back" ] || fail "systemd kills the daemon before umount_timeout, ${writes_back:-which is not told,} s"
true
