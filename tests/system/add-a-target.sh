#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# target add: taken is said at once, whatever the directory is called and whoever has formatted it; refused leaves nothing in it. A target whose directory is renamed is missed.
# What is given up cannot be given up again.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --targets 2
added() { # DIR: it is a target now, and the command says which
    local said id
    said=$("$ADMIN" target add --node oss1 --path "$1" 2>&1) || fail "target add of ${1:0:60} (${#1} bytes) ends with $?: ${said:0:300}"
    id=$(sed -n 's/.* is target \([0-9]*\) now$/\1/p' <<<"$said")
    [ -n "$id" ] && "$ADMIN" --json target show "$id" | jq -e '.items[0].state == "online" and .items[0].node == "oss1"' >/dev/null || fail "target add says: $said"
}
long=$T/$(printf 'a%.0s' {1..200})/$(printf 'b%.0s' {1..100})
mkdir -p "$long" "$T/disk"
added "$long" # longer than what a map keeps
added "$T/disk"

# a directory that is renamed under a running server is missed at once, and is itself when it is back
mv "$T/disk" "$T/renamed"
missed() { "$ADMIN" --json status | jq -e --arg p "$T/disk" '.warnings | any(contains("lived at " + $p + " on oss1 and is not there: was its directory renamed"))'; }
wait_for 60 missed || fail "status does not tell of a renamed directory: $("$ADMIN" status 2>&1)"
is_missing() { "$ADMIN" --json target list | jq -e '[.items[].state | select(. != "online")] == ["missing"]'; }
wait_for 60 is_missing || fail "target list: $("$ADMIN" target list)"
refuse "target list ends with its status" 3 "lived at $T/disk" "$ADMIN" target list
grep -q "its directory $T/disk was renamed or removed" "$C/oss1/log" || fail "the server does not say so"
mv "$T/renamed" "$T/disk"
healthy() { "$ADMIN" --json status | jq -e '.items[0].health == "OK"'; }
wait_for 60 healthy || fail "the directory is back: $("$ADMIN" status 2>&1)"

# the server comes up without one of its targets: nothing is put where that lived
id=$("$ADMIN" --json target list | jq -r '[.items[] | select(.node == "oss1")][1].id')
place=$(grep -l "^id $id$" "$C"/oss1/*/target) && place=${place%/target}
other=$C/oss1/t1
[ "$place" != "$other" ] || other=$C/oss1/t2
kill_daemon oss1 TERM
mv "$place" "$T/away" && mkdir "$place"
rm -f "$C/oss1/run/port" "$other/added" "$T/away/added"
"$AIFS_BUILD/oss/aifs-oss" --config "$C/oss1/oss.conf" --oss.targets="$other" </dev/null >>"$C/oss1/log" 2>&1 &
disown
away() { [ -s "$C/oss1/run/port" ] && "$ADMIN" --json target list | jq -e --argjson id "$id" '[.items[] | select(.node == "oss1" and .state == "online")] | length == 1 and .[0].id != $id'; }
wait_for 60 away || fail "the server has not come up with one target: $("$ADMIN" target list)"
refuse "an empty directory where a target lived" 5 "target $id lived there and is not there: nothing was changed.*target replace $id" "$ADMIN" target add --node oss1 --path "$place/"
[ -z "$(ls -A "$place")" ] || fail "a refused target add has left something: $(ls -A "$place")"
rmdir "$place" && mv "$T/away" "$place"
added "$place" # its disk is mounted again: it is itself
[ "$("$ADMIN" --json target list | jq --argjson id "$id" '[.items[] | select(.node == "oss1" and .state == "online")] | length == 2 and any(.id == $id)')" = true ] || fail "it is another: $("$ADMIN" target list)"

# a pool that is none, in a configuration: the other targets of the server serve, and it as soon as there is one
mkdir "$T/misspelt"
kill_daemon oss2 TERM
rm -f "$C/oss2/run/port"
"$AIFS_BUILD/oss/aifs-oss" --config "$C/oss2/oss.conf" --oss.targets="$C/oss2/t1,$C/oss2/t2,$T/misspelt:fats" </dev/null >>"$C/oss2/log" 2>&1 &
disown
serve() { [ -s "$C/oss2/run/port" ] && grep -q "$T/misspelt: the metadata server does not take it: is there a pool fats" "$C/oss2/log" && [ "$("$ADMIN" --json target list | jq '[.items[] | select(.node == "oss2" and .state == "online")] | length')" = "$1" ]; }
wait_for 60 serve 2 || fail "a pool that is none keeps other targets away: $("$ADMIN" target list)"
expect "a pool" "$ADMIN" -q pool create fats
wait_for 60 serve 3 || fail "its pool is there, and it is not taken: $("$ADMIN" target list)"

# what was given up
gone=$("$ADMIN" --json target list | jq -r '[.items[] | select(.node == "oss1" and .state != "online")][0].id')
expect "given up" "$ADMIN" target replace "$gone" --yes
refuse "given up again" 5 "target $gone was given up already" "$ADMIN" target replace "$gone" --yes
refuse "asked whether it would be" 5 "target $gone was given up already" "$ADMIN" target replace "$gone"

# a key of another cluster: nothing is written, and what is a target already says whose
mkdir "$T/foreign" "$T/blank"
expect "a key" "$ADMIN" -q key create "$T/foreign/key"
foreign() { "$AIFS_BUILD/oss/aifs-oss" --config "$C/oss1/oss.conf" --oss.listen=127.0.0.1:0 --oss.run_dir="$T/foreign/run" --key_file="$T/foreign/key" --oss.targets="$1"; }
its=$(sed -n 's/^cluster //p' "$C/oss2/t1/target")
refuse "a target of another cluster" 1 "oss2/t1 is a target of cluster $its, and the key of this server of cluster [0-9a-f-]{36}" foreign "$C/oss2/t1"
foreign "$T/blank" </dev/null >"$T/foreign/log" 2>&1 &
disown
refused() { grep -q 'the server belongs to another cluster than our key' "$T/foreign/log"; }
wait_for 60 refused || fail "it does not say that it is refused: $(cat "$T/foreign/log")"
[ -z "$(ls -A "$T/blank")" ] || fail "a refused server has written something: $(ls -A "$T/blank")"
kill "$(cat "$T/foreign/run/pid")"

# servers that share a name: a number says which
mkdir "$T/e1" "$T/e2" "$T/e3"
named() { # NAME: of oss2
    kill_daemon oss2 TERM
    rm -f "$C/oss2/run/port"
    "$AIFS_BUILD/oss/aifs-oss" --config "$C/oss2/oss.conf" --oss.name="$1" </dev/null >>"$C/oss2/log" 2>&1 &
    disown
    wait_for 60 [ -s "$C/oss2/run/port" ] || fail "it does not start as $1"
    wait_for 60 is_named "$1" || fail "it is not $1: $("$ADMIN" node list)"
}
is_named() { "$ADMIN" --json node list | jq -e --arg n "$1" --argjson id "$two" '.items[] | select(.id == $id) | .alias == $n and .state == "online"'; }
two=$("$ADMIN" --json node list | jq '.items[] | select(.alias == "oss2") | .id')
refuse "the metadata server" 5 'mds1 is the metadata server' "$ADMIN" target add --node mds1 --path "$T/e1"
named mds1
expect "a name that the metadata server has, too" "$ADMIN" target add --node mds1 --path "$T/e1"
one=$("$ADMIN" --json node list | jq '.items[] | select(.alias == "oss1") | .id')
named "$one"
"$ADMIN" target add --node "$one" --path "$T/e2" | grep -q "on oss1 is target" || fail "a number does not win over a name"
named oss1
refuse "a name of two" 5 "2 servers are called oss1: say the number" "$ADMIN" target add --node oss1 --path "$T/e3"
for cmd in "net show" version "top --once --by server"; do
    # shellcheck disable=SC2086
    said=$("$ADMIN" $cmd)
    for n in "$one" "$two"; do
        grep -q "oss1 (node $n) " <<<"$said" || fail "$cmd does not tell servers of one name apart: $said"
    done
done
refuse "a name of two" 5 "^  $two .127" "$ADMIN" node remove oss1
expect "one of them" "$ADMIN" target add --node "$two" --path "$T/e3"
