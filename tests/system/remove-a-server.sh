#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A server that is gone for good is removed from the cluster once all its targets are given up; what files had there is an error as before, the rest goes on, and it does not come back by itself.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --targets 2
head -c 4000000 /dev/urandom >"$T/data" && dd if="$T/data" of="$M/wide" bs=1M conv=fsync 2>/dev/null
refuse "without a name" 2 'which server' "$ADMIN" node remove
refuse "nobody" 4 'no server nope' "$ADMIN" node remove nope
refuse "the metadata server" 5 'is the metadata server' "$ADMIN" node remove mds1 --yes
refuse "a server that is there" 5 'server oss2 is there: stop it first' "$ADMIN" node remove oss2 --yes
expect "a mount with nothing in its cache" remount
kill_daemon oss2
targets=$("$ADMIN" --json target list | jq -r '.items[] | select(.node == "oss2") | .id')
has_targets() { "$ADMIN" node remove oss2 --yes 2>&1 | grep -q 'server oss2 has target [0-9]* .*target replace'; } # not before it counts as gone
wait_for 60 has_targets || fail "a server with targets: $("$ADMIN" node remove oss2 2>&1)"
for t in $targets; do
    given() { "$ADMIN" target replace "$t" --yes; }
    wait_for 60 given || fail "target $t cannot be given up"
done
refuse "without --yes" 8 'would be done: server oss2 .node [0-9]*. is removed' "$ADMIN" node remove oss2
"$ADMIN" node list | grep -q oss2 || fail "it was only asked what would be done"
"$ADMIN" node remove oss2 --yes | grep -Eq '^server oss2 .node [0-9]+. has been removed; its targets stay' || fail "it does not say what was done"
"$ADMIN" node list | grep -q oss2 && fail "it is listed still"
refuse "remove again" 4 'no server oss2' "$ADMIN" node remove oss2 --yes
content() { [ "$("$ADMIN" --json status | jq -c '[.items[0].health, .warnings]')" = '["OK",[]]' ]; }
wait_for 60 content || fail "status: $("$ADMIN" status 2>&1)" # the other server's heartbeats may be late
[ "$("$ADMIN" --json target list | jq -c '[.items[] | select(.state == "given-up") | .node]')" = '[null,null]' ] || fail "what it had: $("$ADMIN" target list)"
refuse "file where" 3 'was given up' "$ADMIN" file where "$M/wide"
for cmd in "client list" "pool list" df "top --once" "net show" version; do
    # shellcheck disable=SC2086
    expect "$cmd" "$ADMIN" -q $cmd >/dev/null
done

# what lay there is an error, the rest as it was, new files go on; over a restart of the metadata server, too
look() {
    for k in 0 1 2 3; do
        if grep -qx "$("$ADMIN" --json file where "$M/wide" $((k * 1048576)) | jq -r '.items[0].target')" <<<"$targets"; then
            timeout 60 dd if="$M/wide" bs=1M skip=$k count=1 of="$T/part" 2>/dev/null && fail "chunk $k can be read"
        else
            dd if="$M/wide" bs=1M skip=$k count=1 2>/dev/null | cmp - <(dd if="$T/data" bs=1M skip=$k count=1 2>/dev/null) || fail "chunk $k is not what was written"
        fi
    done
    expect "a new file" dd if="$T/data" of="$M/new" bs=1M conv=fsync 2>/dev/null
    cmp "$T/data" "$M/new" || fail "a new file is not what was written"
    rm "$M/new"
}
look
start() { # SERVER: the demo would wait for all of its targets
    rm -f "$C/$1/run/port"
    "$AIFS_BUILD/${1:0:3}/aifs-${1:0:3}" --config "$C/$1/${1:0:3}.conf" </dev/null >>"$C/$1/log" 2>&1 &
    disown
    wait_for 60 [ -s "$C/$1/run/port" ] || fail "$1 does not start"
}
kill_daemon mds
start mds
start oss2 # it is not let in
serving() { "$ADMIN" --json target list | jq -e '[.items[] | select(.state == "online")] | length == 2'; }
wait_for 60 serving || fail "the other targets do not serve: $("$ADMIN" target list)"
remount
look
"$ADMIN" node list | grep -q oss2 && fail "it is back: $("$ADMIN" node list)"
back() { "$ADMIN" --json status | jq -e '.warnings | any(contains("which was given up, is there again"))'; }
wait_for 60 back || fail "status does not tell of its disks: $("$ADMIN" status 2>&1)"
rm "$M/wide"
drained() { "$ADMIN" --json status | jq -e '.items[0].destroy_queue == 0'; }
wait_for 60 drained || fail "what was removed waits for a server that is removed"
expect "no damage is left" "$ADMIN" fsck check
