#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A block that changed on the disk is an error that names the place, never wrong bytes; the other blocks stay readable.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
yes "an unmistakable line of text for the test of damage" | head -c 1048576 >"$T/data"
cp "$T/data" "$M/data" && sync "$M/data"
ino=$(stat -c %i "$M/data")
cluster_down
python3 - "$C/oss1/t1" <<'P' || fail "the bytes are not on the target as expected"
import os, sys
want = b"an unmistakable line of text"
for root, _, names in os.walk(sys.argv[1]):
    for n in names:
        p = os.path.join(root, n)
        if os.path.getsize(p) < 1000000: continue
        data = open(p, "rb").read()
        at = data.find(want, data.find(want) + 600000)
        if at < 0: continue
        with open(p, "r+b") as f:
            f.seek(at); f.write(b"X")
        sys.exit(0)
sys.exit(1)
P
start_again
dd if="$M/data" of="$T/first" bs=64k count=4 status=none || fail "an intact part is not readable"
cmp -n 262144 "$T/first" "$T/data" || fail "an intact part is wrong"
cat "$M/data" >"$T/got" 2>"$T/err" && fail "a damaged block was read without an error"
grep -qi 'input/output error' "$T/err" || fail "not EIO: $(cat "$T/err")"
cmp -n "$(stat -c %s "$T/got")" "$T/got" "$T/data" || fail "wrong bytes were delivered"
grep -qE "$ino|chunk" "$C/oss1/log" || fail "the server's log does not name the place"
"$ADMIN" --json target list | jq -e '.items[0].errors > 0' >/dev/null || wait_for 5 bash -c "'$ADMIN' --json target list | jq -e '.items[0].errors > 0'" ||
    fail "the target does not show an error"
