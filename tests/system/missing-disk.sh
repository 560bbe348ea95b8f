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

start_without() { # SERVER [OPTION]: demo up would wait for what it does not know yet
    rm -f "$C/$1/run/port"
    "$AIFS_BUILD/oss/aifs-oss" --config "$C/$1/oss.conf" ${2:+"$2"} </dev/null >>"$C/$1/log" 2>&1 &
    disown
    wait_for 60 [ -s "$C/$1/run/port" ] || fail "$1 does not start"
}
unmount_disk() { mv "$place" "$T/disk" && mkdir "$place"; }
kill_daemon oss1 TERM
expect "the disk goes" unmount_disk
start_without oss1
asked() { "$ADMIN" --json status | jq -e --arg p "$place" '.warnings | any(contains("lived at " + $p + " on oss1 and is not there") and contains("target replace"))'; }
wait_for 60 asked || fail "status does not tell of the missing disk: $("$ADMIN" --json status | jq -c .warnings)"
refuse "target list" 3 "target $id lived at $place on oss1" "$ADMIN" target list
grep -q "$place: target $id lived here and is not there" "$C/oss1/log" || fail "the server does not say so"
grep -q "target $id lived, which is not there" "$C/mds/log" || fail "the metadata server does not say so"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 4 ] || fail "there is a new target"
[ "$("$ADMIN" --json target list | jq '[.items[] | select(.state == "online")] | length')" = 3 ] || fail "the other targets do not serve"
expect "a new file where there is room" timeout 60 bash -c "'$ADMIN' stripe create -c 1 -i 0 '$M/new' && head -c 200000 /dev/urandom >'$M/new' && sync '$M/new'"
[ -z "$(ls "$place/seg")" ] || fail "something landed below the mount point"
head -c 4000000 /dev/urandom >"$T/wide"
dd if="$T/wide" of="$M/wide" bs=1M conv=fsync 2>"$T/dd.log" & # needs all targets: it waits, as for a server that is down
writer=$!
refuse "a target that serves" 5 'nothing to replace' "$ADMIN" target replace --yes oss2-1

# its server ends: that has had another target, and is let in as soon as it is there
kill_daemon oss1 TERM
ended() { "$ADMIN" --json status | jq -e '.warnings | any(startswith("server oss1"))'; }
wait_for 60 ended || fail "status does not tell of a server that has ended"
"$ADMIN" --json status | jq -e '.warnings | all(startswith("server oss1") and contains("refused") | not)' >/dev/null || fail "status says that nothing of a server that has ended was let in: $("$ADMIN" --json status | jq -c .warnings)"

# the disk is there again
rm -r "$place" && mv "$T/disk" "$place"
start_again
expect "what waited for the disk goes on: $(cat "$T/dd.log")" wait "$writer"
cmp "$T/wide" "$M/wide" || fail "what waited for the disk is not what was written"
healthy() { "$ADMIN" --json status | jq -e '.items[0].health == "OK"'; }
wait_for 60 healthy || fail "the disk is back: $("$ADMIN" status)"
sums "$M/d" | cmp "$T/before" || fail "files have changed"

# it is lost
rm -r "$M/d" "$M/new"
expect "a mount with nothing in its cache" remount
kill_daemon oss1 TERM
expect "the disk is lost" unmount_disk
start_without oss1
wait_for 60 asked || fail "status does not tell of the lost disk"
refuse "without --yes" 8 "would be done: target $id is given up.*at $place of oss1" "$ADMIN" target replace "$lost"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 4 ] || fail "it was only asked what would be done"
"$ADMIN" target replace "$lost" --yes | grep -q "^target $id has been given up: .* its place is free for the new target at $place of oss1" || fail "it does not say what was done"
begun() { "$ADMIN" --json target list | jq -e '[.items[] | select(.state == "online" and .node == "oss1")] | length == 2'; }
wait_for 60 begun || fail "there is no new target: $("$ADMIN" target list)"
asked && fail "it still asks for the disk"
[ "$("$ADMIN" --json target list | jq '.items | length')" = 5 ] || fail "not one new target: $("$ADMIN" target list)"
expect "target list is content" "$ADMIN" target list
[ "$("$ADMIN" --json target list | jq -r ".items[] | select(.id == $id) | .state")" = given-up ] || fail "target list does not show it"
wait_for 60 healthy || fail "what is given up does not count: $("$ADMIN" status)"
expect "status is content" "$ADMIN" status

# what lay there is an error, never zeros; the rest is as it was; new files do not use it
known() { "$ADMIN" --json file where "$M/wide" "$1" | jq -r ".items[0].target"; }
gone=0
for k in 0 1 2 3; do
    if [ "$(known $((k * 1048576)))" = "$id" ]; then
        gone=$((gone + 1))
        timeout 60 dd if="$M/wide" bs=1M skip=$k count=1 of="$T/part" 2>/dev/null && fail "chunk $k can be read"
    else
        dd if="$M/wide" bs=1M skip=$k count=1 2>/dev/null | cmp - <(dd if="$T/wide" bs=1M skip=$k count=1 2>/dev/null) || fail "chunk $k is not what was written"
    fi
done
[ "$gone" = 1 ] || fail "$gone chunks of four on the target that was given up"
refuse "fsck names it" 1 "lost-data.*target $id" "$ADMIN" fsck check
"$ADMIN" --json fsck check | jq -e '[.items[] | select(.code == "lost-data")] | length > 0 and all(.path == "/wide")' >/dev/null || fail "fsck does not tell the path: $("$ADMIN" fsck check)"
refuse "file where names it" 3 "target $id .*was given up" "$ADMIN" file where "$M/wide"
for k in 1 2 3 4; do
    expect "a new file" dd if="$T/wide" of="$M/new$k" bs=1M conv=fsync 2>/dev/null
    cmp "$T/wide" "$M/new$k" || fail "new$k is not what was written"
    "$ADMIN" --json file where "$M/new$k" | jq -e --argjson id "$id" 'all(.items[]; .target != $id)' >/dev/null || fail "new$k is on the target that was given up"
done
rm "$M/wide"
drained() { "$ADMIN" --json status | jq -e '.items[0].destroy_queue == 0'; }
wait_for 60 drained || fail "what was removed waits for a target that is given up"
expect "no damage is left" "$ADMIN" fsck check

# its disk turns up after all: too late
kill_daemon oss1 TERM
mv "$place" "$T/new-disk" && mv "$T/disk" "$place"
start_without oss1
late() { "$ADMIN" --json status | jq -e --arg id "$id" '.warnings | any(contains("target " + $id + ", which was given up, is there again"))'; }
wait_for 60 late || fail "status does not tell of the disk that is back: $("$ADMIN" --json status | jq -c .warnings)"
grep -q "$place: this is target $id, which was given up" "$C/oss1/log" || fail "the server does not say so"
for cmd in status "target list"; do
    # shellcheck disable=SC2086
    refuse "$cmd tells of it" 3 "target $id, which was given up, .*becomes a new target when the server is started again" "$ADMIN" $cmd
done
refuse "demo up tells of it, and that all the rest is there" 3 "target $id, which was given up, .*becomes a new target" "$ADMIN" demo up --dir "$C"
[ "$("$ADMIN" --json demo up --dir "$C" | jq -r '.warnings | any(contains("which was given up"))')" = true ] || fail "demo up --json does not tell of it"
mv "$place" "$T/late" && mkdir "$place"
seen() { grep -q "target $id, which was given up: its directory $place is elsewhere" "$C/oss1/log"; }
wait_for 60 seen || fail "the server does not see that it is empty: $(tail -3 "$C/oss1/log")"
grep -E '\btarget 0\b' "$C/oss1/log" && fail "there is no target 0"
kill_daemon oss1 TERM
rmdir "$place" && mv "$T/new-disk" "$place"
start_without oss1
wait_for 60 begun || fail "with its new disk: $("$ADMIN" target list)"
expect "target list is content with it" "$ADMIN" target list

# both disks of the other server are missing: it has nothing, and is there all the same
kill_daemon oss2 TERM
mkdir "$T/disks" && mv "$C"/oss2/t1 "$C"/oss2/t2 "$T/disks"
refuse "none of its directories is there" 1 'oss2/t2: there is no such directory; is its disk mounted' "$AIFS_BUILD/oss/aifs-oss" --config "$C/oss2/oss.conf"
[ ! -e "$C/oss2/t1" ] || fail "a directory that was not there was made"
mkdir "$C/oss2/t1" "$C/oss2/t2"
start_without oss2
nothing() { "$ADMIN" --json status | jq -e '.warnings | any(startswith("server oss2 is there, but without any of its targets"))'; }
wait_for 60 nothing || fail "status does not tell of a server without targets: $("$ADMIN" --json status | jq -c .warnings)"

# they come back while it runs: it does not become another server, says that it has to be started again, and is itself then
mkdir "$T/empty" && for t in t1 t2; do mv "$C/oss2/$t" "$T/empty" && mv "$T/disks/$t" "$C/oss2/$t"; done
again() { for t in t1 t2; do grep -q "$C/oss2/$t: something else is there now than the new target that was refused.*start this server again" "$C/oss2/log" || return 1; done; }
wait_for 60 again || fail "the server does not say that it has to be started again: $(tail -3 "$C/oss2/log")"
refuse "target list" 3 "lived at $C/oss2/t[12] on oss2 .*start the server again" "$ADMIN" target list
silent() { "$ADMIN" --json status | jq -e '.warnings | any(startswith("server oss2: not heard of") and contains("with its disks mounted it has to be started again"))'; }
wait_for 60 silent || fail "a server that is nobody: $("$ADMIN" --json status | jq -c .warnings)"
kill_daemon oss2 TERM
start_without oss2
wait_for 60 healthy || fail "the disks are back: $("$ADMIN" status)"
[ "$("$ADMIN" --json node list | jq -c '[.items[].alias] | sort')" = '["mds1","oss1","oss2"]' ] || fail "there is a server too many: $("$ADMIN" node list)"
kill_daemon oss2 TERM
for t in t1 t2; do mv "$C/oss2/$t" "$T/disks" && mv "$T/empty/$t" "$C/oss2/$t"; done
start_without oss2
wait_for 60 nothing || fail "status does not tell of it the second time: $("$ADMIN" --json status | jq -c .warnings)"

# they are lost: it begins anew, and is the same server
for lost in $("$ADMIN" --json target list | jq -r '.items[] | select(.node == "oss2" and .state != "given-up") | .id'); do
    given() { "$ADMIN" target replace "$lost" --yes; } # not before it counts as offline
    wait_for 60 given || fail "target $lost cannot be given up"
done
itself() { "$ADMIN" --json node list | jq -e '[.items[] | select(.alias == "oss2")] | length == 1 and .[0].state == "online"'; }
wait_for 60 itself || fail "not one server oss2: $("$ADMIN" node list)"
expect "node list is content" "$ADMIN" node list
both() { "$ADMIN" --json target list | jq -e '[.items[] | select(.state == "online" and .node == "oss2")] | length == 2'; }
wait_for 60 both || fail "not both new targets are there: $("$ADMIN" target list)"

# its disks are missing, and it is given a new one at once: no second server, then either
kill_daemon oss2 TERM
for t in t1 t2; do mv "$C/oss2/$t" "$T/disks/$t.again"; done
mkdir "$T/fresh"
start_without oss2 --oss.targets="$T/fresh"
serves() { "$ADMIN" --json target list | jq -e '[.items[] | select(.node == "oss2" and .state != "given-up") | .state] | sort == ["missing", "missing", "online"]'; }
wait_for 60 serves || fail "the new one does not serve, or the others are not missed: $("$ADMIN" target list)"
itself || fail "not one server oss2 with a new disk: $("$ADMIN" node list)"
kill_daemon oss2 TERM
for t in t1 t2; do mv "$T/disks/$t.again" "$C/oss2/$t"; done
start_without oss2
back() { "$ADMIN" --json target list | jq -e '[.items[] | select(.node == "oss2" and .state != "given-up") | .state] | sort == ["missing", "online", "online"]'; }
wait_for 60 back || fail "the disks are back without the new one: $("$ADMIN" target list)"
itself || fail "not one server oss2 with its disks: $("$ADMIN" node list)"
kill_daemon oss2 TERM
start_without oss2 --oss.targets="$T/fresh,$C/oss2/t1,$C/oss2/t2"
wait_for 60 healthy || fail "with all of them: $("$ADMIN" status)"
itself || fail "not one server oss2 with all of them: $("$ADMIN" node list)"
