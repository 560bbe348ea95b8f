#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program was to tell and could not is a failure that is told; and what is started with its standard files closed writes into no other file what it says.
. "$(dirname "$0")/lib.sh"
expect "a demo" "$ADMIN" -q demo up --dir "$T/demo" --oss 1
cleanup() { "$ADMIN" -q demo down --dir "$T/demo" --purge; }
export AIFS_CONFIG=$T/demo/admin.conf
for program in "$ADMIN" "$AIFS_BUILD/tools/bench/aifs-bench" "$AIFS_BUILD/mds/aifs-mds" "$AIFS_BUILD/oss/aifs-oss" "$MOUNT"; do
    for option in --help --version; do
        [ "$program" = "$MOUNT" ] && status=2 || status=1
        name=${program##*/}
        refuse "$name $option on a full disk" "$status" 'cannot write .*No space left on device' bash -c '"$@" >/dev/full' "" "$program" "$option"
        refuse "$name $option with its output closed" "$status" 'cannot write .*Bad file descriptor' bash -c '"$@" >&-' "" "$program" "$option"
    done
done
for command in status "--json status" "target list" "top --once" "--json top --once" "demo status --dir $T/demo" "mds dump -"; do
    # shellcheck disable=SC2086
    refuse "$command on a full disk" 1 'cannot write' bash -c '"$@" >/dev/full' "" "$ADMIN" $command
    # shellcheck disable=SC2086
    refuse "$command with its output closed" 1 'cannot write' bash -c '"$@" >&-' "" "$ADMIN" $command
done
[ ! -s "$T/demo/lock" ] || fail "what was to be told is in the lock of the demo: $(cat "$T/demo/lock")"
