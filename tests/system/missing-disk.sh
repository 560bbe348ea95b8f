#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A server that finds an empty directory where one of its targets lived does not use it: nothing lands below the mount point of a disk that is not mounted.
# The other targets serve; when the disk is back all is as it was; when it is lost for good, that has to be said.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --targets 2
lost=$("$ADMIN" --json target list | jq -r --arg p oss1 '[.items[] | select(.node == $p)][1].alias')
id=$("$ADMIN" --json target list | jq -r --arg a "$lost" '.items[] | select(.alias == $a) | .id')
place=$(grep -l "^id $id$" "$C"/oss1/*/target) && place=${place%/target}
[ -n "$place" ] || fail "no directory of oss1 is target $id"
mkdir "$M/d"
expect "a directory on the other server" "$ADMIN" stripe set -c 1 "$M/d"
for i in 1 2 3 4 5 6 7 8; do head -c 100000 /dev/urandom >"$M/d/$i"; done
sums "$M/d" >"$T/before"

start_without() { # the demo would stop it again, for it wants all of its targets
    rm -f "$C/oss1/run/port"
    "$AIFS_BUILD/oss/aifs-oss" --config "$C/oss1/oss.conf" </dev/null >>"$C/oss1/log" 2>&1 &
    disown
    wait_for 60 [ -s "$C/oss1/run/port" ] || fail "oss1 does not start"
}
unmount_disk() { mv "$place" "$T/disk" && mkdir "$place"; }
kill_daemon oss1 TERM
expect "the disk goes" unmount_disk
start_without
asked() { "$ADMIN" --json status | jq -e --arg p "$place" '.warnings | any(contains("lived at " + $p + " on oss1 and is not there") and contains("target replace"))'; }
wait_for 60 asked || fail "status does not tell of the missing disk: $("$ADMIN" --json status | jq -c .warnings)"
refuse "target list" 3 "target $id lived at $place on oss1" "$ADMIN" target list
grep -q "$place: target $id lived here and is not there" "$C/oss1/log" || fail "the server does not say so"
grep -q "target $id lived, which is not there" "$C/mds/log" || fail "the metadata server does not say so"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 4 ] || fail "there is a new target"
[ "$("$ADMIN" --json target list | jq '[.items[] | select(.state == "online")] | length')" = 3 ] || fail "the other targets do not serve"
expect "a new file where there is room" timeout 60 bash -c "'$ADMIN' stripe create -c 1 -i 0 '$M/new' && head -c 200000 /dev/urandom >'$M/new' && sync '$M/new'"
[ -z "$(ls "$place/seg")" ] || fail "something landed below the mount point"
refuse "a target that serves" 5 'nothing to replace' "$ADMIN" target replace --yes oss2-1

# the disk is there again
kill_daemon oss1 TERM
rm -r "$place" && mv "$T/disk" "$place"
start_again
healthy() { "$ADMIN" --json status | jq -e '.items[0].health == "OK"'; }
wait_for 60 healthy || fail "the disk is back: $("$ADMIN" status)"
sums "$M/d" | cmp "$T/before" || fail "files have changed"

# it is lost
rm -r "$M/d" "$M/new"
kill_daemon oss1 TERM
expect "the disk is lost" unmount_disk
start_without
wait_for 60 asked || fail "status does not tell of the lost disk"
refuse "without --yes" 8 "would be done: target $id is given up.*at $place of oss1" "$ADMIN" target replace "$lost"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 4 ] || fail "it was only asked what would be done"
expect "replace" "$ADMIN" target replace "$lost" --yes
begun() { "$ADMIN" --json target list | jq -e '[.items[] | select(.state == "online" and .node == "oss1")] | length == 2'; }
wait_for 60 begun || fail "there is no new target: $("$ADMIN" target list)"
asked && fail "it still asks for the disk"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 5 ] || fail "not one new target: $("$ADMIN" target list)"
