#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A copy of a target (a cloned disk, cp -a) is not served, whatever becomes of the original: it would show and take another state of the same files.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
dd if=/dev/urandom of="$M/before" bs=1M count=8 status=none && sync "$M/before"
cp -a "$C/oss1/t1" "$T/copy" && cp -a "$C/oss1/t1" "$T/beside"
dd if=/dev/urandom of="$M/after" bs=1M count=8 status=none && sync "$M/after"
was=$(sums "$M")
id=$("$ADMIN" --json target list | jq -r '.items[] | select(.node == "oss1").id')
refuse "a copy, on another server" 5 "copy on oss2 is target $id, which oss1 serves" "$ADMIN" target add --node oss2 --path "$T/copy"
refuse "a copy, on the same server" 5 'beside is a copy of a target of oss1' "$ADMIN" target add --node oss1 --path "$T/beside"
[ "$(sums "$M")" = "$was" ] || fail "files have changed beside a copy of a target"
# the original is down, and something has the other server tell its targets anew
kill_daemon oss1
state_is() { "$ADMIN" --json target show "$id" | jq -e --arg s "$1" '.items[0] | .node == "oss1" and .state == $s'; }
is_offline() { grep -q '(oss1) is silent: offline' "$C/mds/log"; }
wait_for 60 is_offline || fail "the metadata server does not say that oss1 is offline"
mkdir "$T/disk" && expect "one more target" "$ADMIN" target add --node oss2 --path "$T/disk"
state_is unreachable || fail "the copy is served as soon as the original is down: $("$ADMIN" target list 2>&1)"
start_again
wait_for 60 state_is online || fail "the original is not served any more: $("$ADMIN" target list 2>&1)"
echo 3 >/proc/sys/vm/drop_caches
remount
[ "$(sums "$M")" = "$was" ] || fail "files are not what they were"
