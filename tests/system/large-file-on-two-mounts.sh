#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A 4 GiB file striped over 4 servers is read by two mounts at once, and `file where` shows it evenly on all four.
NEED_MB=9000
. "$(dirname "$0")/lib.sh"
[ "$place" = /dev/shm ] || [ "$(df --output=avail -B1M "$T" | tail -1)" -gt 12000 ] || skip "no room for 4 GiB"
cluster_up
gen() { openssl enc -aes-128-ctr -K 00 -iv 00 -nosalt </dev/zero 2>/dev/null | head -c 4294967296; }
gen >"$M/big" || fail "writing 4 GiB"
second_mount
echo 1 >/proc/sys/vm/drop_caches
cmp "$M/big" <(gen) &
first=$!
cmp "$M2/big" <(gen) || fail "the second mount reads something else"
wait "$first" || fail "the first mount reads something else"
"$ADMIN" --json file where "$M/big" >"$T/where" || fail "file where"
[ "$(jq '.items | length' "$T/where")" = 4 ] || fail "not on four targets: $(cat "$T/where")"
[ "$(jq -c '[.items[].bytes] | unique' "$T/where")" = '[1073741824]' ] || fail "not even: $(cat "$T/where")"
