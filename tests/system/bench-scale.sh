#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aifs-bench scale: clusters of growing size in name spaces; rows for every load; nothing of it is left, not even when it is killed. And train on such a cluster.
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

expect "train behind links" "$BENCH" --json train --servers 2 --workload unet3d --accelerators 2 --steps 3 --scale 200 --link 40Mi >"$T/out.json"
jq -e '.items[] | select(.name == "train.unet3d.h100.x2.s2") | .value > 0 and .bytes > 0 and .limit_name == "the servers'"'"' links" and (.limit * 1e6 | round) == 2 * 40 * 1048576' "$T/out.json" >/dev/null ||
    fail "no row beside its links: $(cat "$T/out.json")"
for row in train.unet3d.prepare train.unet3d.h100.x2.s2.{au,samples}; do
    jq -e --arg row "$row" '.items[] | select(.name == $row) | .value > 0' "$T/out.json" >/dev/null || fail "no row $row: $(cat "$T/out.json")"
done
# links that nobody names are a tenth faster than what is asked for, all together
expect "links for what is asked for" "$BENCH" --json train --servers 2 --workload resnet50 --steps 2 --files 1 --scale 16 >"$T/out.json"
python3 - "$T/out.json" <<'P' || fail "links of another speed: $(cat "$T/out.json")"
import json, re, sys
d = json.load(open(sys.argv[1]))
link, asked = map(float, re.search(r"behind links of ([\d.]+) MB/s .* ask for ([\d.]+) MB/s", " ".join(d["notes"])).groups())
row, = [i for i in d["items"] if i["name"] == "train.resnet50.h100.x1.s2"]
assert abs(2 * link / asked - 1.1) < 0.03 and abs(row["limit"] - 2 * link) < 0.2, (link, asked, row["limit"])
P
for wrong in "--servers 2 $T" "--link 40Mi $T" "--servers 2 --link 10" "--servers 100" "--servers 1 --cold" "--servers 1 --prepare" ""; do
    # shellcheck disable=SC2086
    refuse "train $wrong" 2 'train: ' "$BENCH" train $wrong
done

refuse "no servers" 2 'servers' "$BENCH" scale --servers 0
refuse "somebody else's rights" 1 'root' setpriv --reuid 65534 --clear-groups "$BENCH" scale --servers 1
true
