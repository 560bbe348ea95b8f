#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every daemon serves Prometheus text from its counters, on loopback.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
head -c 3000000 /dev/urandom >"$M/f" && sync "$M/f"
for d in mds oss1; do
    port=$(cat "$C/$d/run/metrics") || fail "$d does not say where its metrics are"
    curl -sf "http://127.0.0.1:${port##*:}/metrics" >"$T/metrics" || fail "$d: no /metrics"
    grep -q '^# TYPE aifs_' "$T/metrics" || fail "$d: no types"
    awk '/^aifs_/ { if ($NF !~ /^[0-9.e+-]+$/) exit 1 }' "$T/metrics" || fail "$d: a value that is no number"
    grep -q '^aifs_net_messages_received_total{transport="socket"} [1-9]' "$T/metrics" || fail "$d: no messages of the network"
    curl -sf "http://127.0.0.1:${port##*:}/healthz" >/dev/null || fail "$d: no /healthz"
done
grep -qE '^aifs_oss_.*write.* [1-9]' "$T/metrics" || fail "the writes were not counted"
