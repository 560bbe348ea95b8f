#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of every daemon in turn in mid-write: what was fsynced is there, whole; what was not is old, new or absent, never garbage.
. "$(dirname "$0")/lib.sh"
cluster_up
gen() { # N: 1 MiB + a bit that only file N has
    head -c 1100000 < <(yes "this is file $1 and nothing else")
}
mkdir "$M/d"
for victim in mds oss1 oss2 oss3 oss4; do
    note "kill $victim"
    (
        for i in $(seq 1 400); do
            gen "$victim-$i" >"$T/one" || exit 1
            dd if="$T/one" of="$M/d/$victim-$i" bs=256k conv=fsync status=none || exit 1
            echo "$i" >>"$T/done.$victim"
        done
    ) 2>"$T/err.$victim" &
    writer=$!
    wait_for 60 bash -c "[ -s '$T/done.$victim' ] && [ \$(wc -l <'$T/done.$victim') -ge 5 ]" || fail "no progress before the kill"
    kill_daemon "$victim"
    start_again
    have=$(wc -l <"$T/done.$victim")
    wait_for 60 bash -c "[ \$(wc -l <'$T/done.$victim') -ge $((have + 5)) ]" || fail "no progress after $victim came back: $(cat "$T/err.$victim")"
    kill "$writer" && wait "$writer" 2>/dev/null
    [ ! -s "$T/err.$victim" ] || fail "the writer saw an error: $(cat "$T/err.$victim")"
    while read -r i; do
        cmp "$M/d/$victim-$i" <(gen "$victim-$i") || fail "file $victim-$i was fsynced and is not whole"
    done <"$T/done.$victim"
done
remount
for victim in mds oss1 oss2 oss3 oss4; do
    while read -r i; do
        cmp "$M/d/$victim-$i" <(gen "$victim-$i") || fail "file $victim-$i is not whole after a remount"
    done <"$T/done.$victim"
done
for f in "$M"/d/*; do # whatever is there was written there
    n=$(basename "$f")
    cmp <(gen "$n" | head -c "$(stat -c %s "$f")") "$f" || fail "$n has bytes that nobody wrote"
done
