#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rmtree: the name is gone at once, on every mount; the rest follows in the background, also after the metadata server was killed; what is open stays until it is closed.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
tree() { # NAME: a tree of small and large files
    local d
    for d in . a a/b a/b/c d; do
        mkdir -p "$M/$1/$d"
        (cd "$M/$1/$d" && touch f{1..40} && echo text >g && head -c 100000 /dev/zero >large)
    done
}
inodes() { "$ADMIN" --json status | jq '.items[0].inodes'; }
empty() { [ "$(inodes)" = "$1" ]; }
tree t
ln "$M/t/a/g" "$M/outside"
ls -lR "$M2/t" >"$T/listing" # the second mount knows all of it
touch "$M/file"
before=$(inodes)
refuse "without --yes" 8 "nothing was removed" "$ADMIN" rmtree "$M/t"
[ "$(inodes)" = "$before" ] || fail "it was removed without --yes"
refuse "a file" 2 "not a directory" "$ADMIN" --yes rmtree "$M/file"
refuse "a mount" 2 "is mounted" "$ADMIN" --yes rmtree "$M"
refuse "elsewhere" 1 "not on an aifs mount" "$ADMIN" --yes rmtree "$T"
exec 8<"$M2/t/a/b/large"
expect "rmtree" "$ADMIN" -q --yes rmtree "$M/t/." --wait
for m in "$M" "$M2"; do [ ! -e "$m/t" ] || fail "the name is still there at $m"; done
[ "$(stat -c %h "$M2/outside")" = 1 ] || fail "a file with a name outside: $(stat -c %h "$M2/outside") links"
[ "$(stat -L -c %s /dev/fd/8)" = 100000 ] || fail "the open file: $(stat -L -c %s /dev/fd/8) bytes"
cmp -n 100000 - /dev/zero <&8 || fail "the open file reads otherwise"
exec 8<&-
rm "$M/outside" "$M/file"
wait_for 20 empty 1 || fail "$(inodes) inodes are left"

tree u
expect "rmtree of the next" "$ADMIN" -q --yes rmtree "$M/u"
kill_daemon mds
start_again
wait_for 40 empty 1 || fail "$(inodes) inodes are left after the restart: $("$ADMIN" status)"
none() { "$ADMIN" --json status | jq -e '.items[0].trash_queue + .items[0].destroy_queue == 0' && [ "$("$ADMIN" --json rmtree --list | jq '.items | length')" = 0 ]; }
wait_for 20 none || fail "queues: $("$ADMIN" status)"
expect "fsck" "$ADMIN" -q fsck check
