#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# With --json every command prints one document when it succeeds, and one object on standard error, and no more, when it does not.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
head -c 3000000 /dev/urandom >"$M/f" && echo x >"$M/small" && mkdir "$M/d" "$M/tree"

# good DOCUMENT-SCHEMA COMMAND...: and nothing on standard error
good() {
    local schema=$1
    shift
    timeout 60 "$ADMIN" --json "$@" >"$T/out" 2>"$T/err" </dev/null || fail "$*: exit status $?: $(cat "$T/err")"
    jq -es --arg s "aifs.$schema/1" 'length == 1 and (.[0] | .schema == $s and (.items | type == "array") and (.warnings | type == "array"))' "$T/out" >/dev/null || fail "$*: $(cat "$T/out")"
    [ ! -s "$T/err" ] || fail "$*: with success it says $(cat "$T/err")"
    echo "${*:1:2}" >>"$T/done"
}
# bad STATUS COMMAND...
bad() {
    local want=$1 code
    shift
    timeout 60 "$ADMIN" --timeout 2s --json "$@" >"$T/out" 2>"$T/err" </dev/null
    code=$?
    [ "$want" = any ] && [ "$code" != 0 ] && want=$code
    [ "$code" = "$want" ] || fail "$*: exit status $code instead of $want"
    jq -es --argjson c "$code" 'length == 1 and (.[0] | .schema == "aifs.error/1" and .exit == $c and (.message | length > 0) and (.more | type == "array"))' "$T/err" >/dev/null || fail "$*: $(cat "$T/err")"
    [ ! -s "$T/out" ] || jq -es 'length == 1 and .[0].schema' "$T/out" >/dev/null || fail "$*: $(cat "$T/out")"
    echo "${*:1:2}" >>"$T/done"
}

bad 2 bogus
jq -e '.command == "bogus"' "$T/err" >/dev/null || fail "which command was it: $(cat "$T/err")"
bad 2 target bogus
jq -e '.command == "target bogus"' "$T/err" >/dev/null || fail "which command was it: $(cat "$T/err")"
good status status
good top.client top --interval 100ms
good df df
good node.list node list
good node.show node show oss1
good client.list client list
good net.show net show
good target.list target list
good target.show target show 1
mkdir "$T/disk"
mkdir "$T/disk"
good target.add target add --node oss1 --path "$T/disk"
good pool.list pool list
good pool.show pool show default
good pool.create pool create fast
bad 5 pool add fast 3 # it serves a pool
bad 5 pool remove default 3
bad 4 pool remove nope 3
good stripe.get stripe get "$M/f"
good stripe.get stripe get --count "$M/f"
good stripe.set stripe set -c 1 "$M/d"
good stripe.create stripe create -c 1 "$M/new"
good stripe.get getstripe "$M/d"
good stripe.set setstripe -c 2 "$M/d"
good file.info file info "$M/f" "$M/small"
good file.where file where "$M/f"
good file.where.offset file where "$M/f" 1Mi
good file.locks file locks "$M/f"
good rmtree rmtree --yes "$M/tree"
good rmtree rmtree --list
good mds.dump mds dump "$T/dump"
good mds.load mds load "$T/dump" --dir "$T/loaded"
good fsck.check fsck check
jq -e '.totals | .damage == 0 and .targets == 3 and .targets_unchecked == 0' "$T/out" >/dev/null || fail "the totals of fsck: $(cat "$T/out")"
good key.create key create "$T/k"
good key.derive key derive "$T/k" admin "$T/k.admin"
good demo.up demo up --dir "$C"
good demo.status demo status --dir "$C"
good demo.mount demo mount --dir "$C" "$T/m2"
good demo.umount demo umount --dir "$C" "$T/m2"
good version version
jq -e '[.items[] | [.component, .name]] == [["aifs-admin", null], ["mds", "mds1"], ["oss", "oss1"], ["oss", "oss2"]] and all(.items[]; .version and .wire)' "$T/out" >/dev/null || fail "version: $(cat "$T/out")"

# no command was forgotten: the lines of the help begin with two spaces and the command
"$ADMIN" --help | sed -n 's/^  \([a-z]*\) \([a-z]*\).*/\1 \2/p' | while read -r noun verb; do
    [ "$noun $verb" = "demo down" ] || grep -q "^$noun\( $verb\)\?\b" "$T/done" || fail "$noun $verb was not tried"
    # shellcheck disable=SC2086 # a verb may be missing
    bad any $noun $verb --bogus
done || exit 1

# what is wrong is told alike, wherever it is found
bad 2 bogus
bad 2 target lst
bad 2 --timeout 0 status
bad 2 mds dump -
bad 4 target show 99
bad 4 file where "$M/f" 3000000
bad 4 file where "$M/small" 2
bad 5 demo up --dir "$C" --oss 9
bad 2 file info /etc/passwd
bad 2 file info "$M/f" /etc/passwd
jq -e '[.items[].path] == ["'"$M/f"'"]' "$T/out" >/dev/null || fail "what could be told is missing: $(cat "$T/out")"
touch "$M/$(printf 'n\377me')" && good file.info file info "$M/$(printf 'n\377me')"
# nobody there
nobody=(--mds 127.0.0.1:1 --key-file "$C/key/admin.key")
for cmd in status top df "node list" "node show oss1" "client list" "net show" "target list" "target show 1" "target add --node oss1 --path /x" "target replace x" "node remove x" "pool list" "pool show x" "pool create x" \
    "pool add x 1" "pool remove x 1" "file where $M/f" "file locks $M/f" "rmtree --yes $M/d" "rmtree --list" "mds dump $T/d" "fsck check"; do
    # shellcheck disable=SC2086
    bad 7 "${nobody[@]}" $cmd
done
timeout 60 "$ADMIN" --json "${nobody[@]}" version 2>"$T/err" | jq -e '[.items[].component] == ["aifs-admin"]' >/dev/null || fail "version does not tell its own"
jq -e '.exit == 7' "$T/err" >/dev/null || fail "version: $(cat "$T/err")"

# a server that is down is told by fsck, and version, and the rest is done
kill_daemon oss2
timeout 60 "$ADMIN" --timeout 2s --json fsck check >"$T/out" 2>"$T/err"
[ $? = 3 ] || fail "fsck with a server down: exit status"
jq -e '.totals.targets_unchecked == 1 and (.warnings | length == 1) and (.warnings[0] | test("oss2-1.*oss2.*not checked"))' "$T/out" >/dev/null || fail "fsck: $(cat "$T/out")"
[ ! -s "$T/err" ] || fail "fsck says twice: $(cat "$T/err")"
refuse "fsck as text" 3 'INCOMPLETE: the chunks of 1 of 3 targets were not checked' "$ADMIN" --timeout 2s fsck check
refuse "version as text" 3 'server oss2 does not answer' "$ADMIN" --timeout 2s version
# a missed heartbeat is told before it counts
late() { "$ADMIN" --json status | jq -e '.warnings | any(test("server oss2: not heard of for [0-9.]+ s"))'; }
wait_for 30 late || fail "status does not tell of the missed heartbeat"
good demo.down demo down --dir "$C" --purge
