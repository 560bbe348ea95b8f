#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full target answers ENOSPC early and clean: what was written before is whole, space comes back after deletion.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --capacity 64M
head -c 20000000 /dev/urandom >"$T/keep"
agree() { # df(1) of the mount and the administrator's view
    local used avail percent
    read -r used avail percent <<<"$(df -B1 --output=used,avail,pcent "$M" | tail -1)"
    [ "$("$ADMIN" --json target list | jq -r '[.items[] | [.used_bytes, .free_bytes]] | transpose | map(add) | @sh')" = "$used $avail" ] &&
        "$ADMIN" status | grep -q "^targets .*($percent)"
}
cp "$T/keep" "$M/keep" && sync -f "$M" && cmp "$T/keep" "$M/keep" || fail "the first file"
wait_for 60 agree || fail "df and status differ: $(df -B1 "$M"; "$ADMIN" status; "$ADMIN" --raw target list)"
dd if=/dev/zero of="$M/fill" bs=1M count=400 conv=fsync 2>"$T/err" && fail "400 MiB fit into 128 MiB"
grep -q 'No space left' "$T/err" || fail "not ENOSPC but: $(cat "$T/err")"
cmp "$T/keep" "$M/keep" || fail "the first file after ENOSPC"
told() { "$ADMIN" --json status >"$T/json" 2>/dev/null || [ $? = 3 ] && jq -e '.items[0] | .health == "FULL" and .targets_full > 0' "$T/json"; }
wait_for 60 told || fail "status does not tell of full targets: $("$ADMIN" status; "$ADMIN" target list)"
jq -e '.warnings | any(test("^target [0-9]+ .* is full"))' "$T/json" >/dev/null || fail "status does not name the target"
[ "$("$ADMIN" --json pool list | jq -r '.items[0].state')" = full ] || fail "pool list does not say so: $("$ADMIN" pool list)"
echo small >"$M/small" || fail "a small file (in the metadata server) does not fit either"
expect "deleting on a full file system" rm "$M/fill"
freed() { dd if=/dev/zero of="$M/again" bs=1M count=30 conv=fsync status=none; }
wait_for 30 freed || fail "the space does not come back"
cmp "$T/keep" "$M/keep" || fail "the first file at the end"
# nine tenths: a warning that the exit status tells, too
rm "$M/keep" "$M/again"
empty() { "$ADMIN" --json target list | jq -e 'all(.items[]; .used_bytes == 0)'; }
wait_for 60 empty || fail "the space does not come back: $("$ADMIN" target list)"
expect "status is content" "$ADMIN" status >/dev/null
expect "stripes over both" "$ADMIN" stripe set -c 0 -S 64Ki "$M"
room=$("$ADMIN" --json target list | jq '[.items[].free_bytes] | min')
dd if=/dev/zero of="$M/much" bs=64K count=$((room * 2 * 94 / 100 / 65536)) conv=fsync status=none || fail "94 of 100 do not fit"
nearly() { "$ADMIN" --json status | jq -e '.items[0].health == "NEARLY FULL" and (.warnings | any(test("is 9[0-9]% full")))'; }
wait_for 60 nearly || fail "status: $("$ADMIN" status; "$ADMIN" target list)"
refuse "status tells of it" 3 'health NEARLY FULL' "$ADMIN" status
