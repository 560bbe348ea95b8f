#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aifs-bench scale: clusters of growing size in name spaces; rows for every load; nothing of it is left, not even when it is killed.
. "$(dirname "$0")/lib.sh"
command -v tc >/dev/null && command -v ip >/dev/null || skip "no iproute2"
unshare -n -p -f --mount-proc sh -c 'ip link add br0 type bridge && ip link add port0 type veth peer name port1 && tc qdisc add dev port0 root tbf rate 1mbit burst 64k limit 1m' \
    >"$T/try" 2>&1 || skip "no name spaces with bridge, veth and tbf here: $(tail -1 "$T/try")"
BENCH=$AIFS_BUILD/tools/bench/aifs-bench

expect "scale" "$BENCH" --json scale --servers 1,2 --clients 2 --link 40Mi --seconds 0.1 >"$T/out.json"
for row in scale.{lib,mount}.{write,read}.s{1,2}.c2 scale.{lib,mount}.{write,read}.factor.s2.c2; do
    jq -e --arg row "$row" '.items[] | select(.name == $row) | .value > 0 and .limit > 0' "$T/out.json" >/dev/null || fail "no row $row: $(cat "$T/out.json")"
done
expect "the table" "$BENCH" scale --servers 1 --clients 1 --access lib --link 40Mi --seconds 0.1 >"$T/out"
grep -Eq '^lib +read +1 +1 +[0-9]+ +1\.00x +[0-9]+% \|#' "$T/out" || fail "no table in: $(cat "$T/out")"

"$BENCH" scale --servers 1 --clients 1 --access lib --seconds 30 >/dev/null 2>&1 &
pid=$!
serves() { first=$(pgrep -P "$pid") && pgrep -P "$first" aifs-oss >/dev/null; }
expect "a server comes up" wait_for 60 serves
mapfile -t all < <(echo "$first" && pgrep -P "$first")
kill -KILL "$pid"
for p in "${all[@]}"; do tail -s 0.02 --pid="$p" -f /dev/null; done
wait "$pid" 2>/dev/null
grep -q ' - tmpfs scale ' /proc/self/mountinfo && fail "a mount is left"
refuse "no servers" 2 'servers' "$BENCH" scale --servers 0
refuse "somebody else's rights" 1 'root' setpriv --reuid 65534 --clear-groups "$BENCH" scale --servers 1
true
