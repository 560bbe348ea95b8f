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
# as rm: neither where one stands, nor what is above it, nor what a link leads to
ln -s t "$M/link"
for name in . .. ./ ../ "$M/t/." "$M/t/a/.." "$M/t/a/..//"; do
    # shellcheck disable=SC2016 # expands where it runs
    refuse "rmtree $name" 2 'a directory is not removed as "." or ".."' bash -c 'cd "$1" && exec "$0" --yes rmtree "$2"' "$ADMIN" "$M/t/a" "$name"
done
refuse "a link" 2 "link is not a directory" "$ADMIN" --yes rmtree "$M/link"
refuse "a link with a slash" 2 "link is a symbolic link: say the name of the directory" "$ADMIN" --yes rmtree "$M/link/"
[ -s "$M/t/a/b/c/g" ] && [ -L "$M/link" ] || fail "a refused rmtree has removed something"
rm "$M/link"
refuse "elsewhere" 2 "not on an aifs mount$" "$ADMIN" --yes rmtree "$T"
exec 8<"$M2/t/a/b/large"
"$ADMIN" --json --yes rmtree "$M/t/" --wait >"$T/json" || fail "rmtree: $(cat "$T/json")"
jq -e '.items[0] | .state == "gone" and .directories_left == 0 and .objects_left == 0 and (.removed == null or .removed > 100) and .age_ns > 0' "$T/json" >/dev/null || fail "the end of rmtree --wait: $(cat "$T/json")"
for m in "$M" "$M2"; do [ ! -e "$m/t" ] || fail "the name is still there at $m"; done
[ "$(stat -c %h "$M2/outside")" = 1 ] || fail "a file with a name outside: $(stat -c %h "$M2/outside") links"
[ "$(stat -L -c %s /dev/fd/8)" = 100000 ] || fail "the open file: $(stat -L -c %s /dev/fd/8) bytes"
cmp -n 100000 - /dev/zero <&8 || fail "the open file reads otherwise"
exec 8<&-
rm "$M/outside" "$M/file"
wait_for 20 empty 1 || fail "$(inodes) inodes are left"

# who waits is told what goes on without him, fsck that a tree is on its way, and in the end there are counts
tree v
for k in 0 1 2 3; do # where the others begin is nobody's business: something of the tree has to be on oss1
    expect "a file on each server" "$ADMIN" -q stripe create -c 1 -i "$k" "$M/v/on$k"
    head -c 100000 /dev/zero >"$M/v/on$k" || fail "its data"
done
names=$(find "$M/v" -mindepth 1 | wc -l)
find "$M/v" \( -name large -o -name 'on?' \) -exec sync {} + || fail "sync"
closed() { "$ADMIN" --json client list | jq -e 'all(.items[]; .opens == 0)'; }
wait_for 60 closed || fail "files are open: $("$ADMIN" client list)" # what is open goes when it is closed, and not with the tree
kill -STOP "$(daemon_pid oss1)" # its chunks cannot go
"$ADMIN" --timeout 60s --yes rmtree "$M/v" --wait >"$T/out" 2>"$T/err" &
waiter=$!
data_left() { "$ADMIN" --json rmtree --list | jq -e '.items[0] | .directories_left == 0 and .objects_left > 0'; }
wait_for 60 data_left || fail "the tree does not go: $("$ADMIN" rmtree --list) $(cat "$T/out" "$T/err")"
kill -TERM "$waiter"
wait "$waiter"
[ $? = 143 ] || fail "rmtree --wait did not end by the signal"
grep -q "goes on removing what was in it; aifs-admin rmtree --list" "$T/err" || fail "an interrupted rmtree says: $(cat "$T/err")"
"$ADMIN" --timeout 1s --json fsck check 2>/dev/null | jq -e '.totals.trees_removing == 1 and (.warnings | any(test("1 removed tree is not wholly gone")))' >/dev/null || fail "fsck does not say that a tree is being removed"
[ "$("$ADMIN" --json rmtree --list | jq '.items[0].removed')" = "$names" ] || fail "$names names were removed, not: $("$ADMIN" rmtree --list)"
kill -CONT "$(daemon_pid oss1)"
wait_for 30 empty 1 || fail "$(inodes) inodes are left of v"

# a client that does not answer keeps a name that it has looked at: nothing is removed meanwhile, and that is said
tree w
ls -lR "$M2/w" >"$T/listing"
silent=$(pgrep -f "aifs-mount .* $M2 ") && kill -STOP "$silent" || fail "no daemon of $M2"
refuse "a tree whose name a silent client keeps" 7 "w is still there" "$ADMIN" --timeout 1s --yes rmtree "$M/w"
[ -s "$M/w/a/b/c/g" ] || fail "something was removed all the same"
kill -CONT "$silent"
expect "rmtree when the client answers" "$ADMIN" -q --yes rmtree "$M/w"
[ ! -e "$M2/w" ] || fail "the name is still there at $M2"

tree u
expect "rmtree of the next" "$ADMIN" -q --yes rmtree "$M/u"
kill_daemon mds
start_again
wait_for 40 empty 1 || fail "$(inodes) inodes are left after the restart: $("$ADMIN" status)"
none() { "$ADMIN" --json status | jq -e '.items[0].trash_queue + .items[0].destroy_queue == 0' && [ "$("$ADMIN" --json rmtree --list | jq '.items | length')" = 0 ]; }
wait_for 20 none || fail "queues: $("$ADMIN" status)"
expect "fsck" "$ADMIN" -q fsck check
