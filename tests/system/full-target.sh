#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full target answers ENOSPC early and clean: what was written before is whole, space comes back after deletion.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --capacity 64M
head -c 20000000 /dev/urandom >"$T/keep"
cp "$T/keep" "$M/keep" && sync -f "$M" && cmp "$T/keep" "$M/keep" || fail "the first file"
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
