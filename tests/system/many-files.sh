#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One name space of many files: made in batches by libaifs, a tenth of them in one directory, the others in a hundred each time. All of them are there afterwards, the metadata
# server keeps within its memory, and starts again. AIFS_MANY_FILES is how many: 100,000, in the long form 10,000,000 (on a disk: 4 GB). What it took is printed, not judged:
# by the clock, and by the server's processor time, which other work on the machine changes less. With AIFS_MDS_SYNC=no a busy disk counts less.
# shellcheck source=tests/system/lib.sh
N=${AIFS_MANY_FILES:-$([ -n "${AIFS_TEST_LONG:-}" ] && echo 10000000 || echo 100000)}
[ "$N" -le 1000000 ] || TEST_PLACE=${TEST_PLACE:-/tmp}
. "$(dirname "$0")/lib.sh"

cluster_up --oss 1
part=$((N / 10))
ticks=$(getconf CLK_TCK)
cpu_ms() { awk -v t="$ticks" '{ sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / t }' "/proc/$(daemon_pid mds)/stat"; }
resident_mib() { awk '/^VmHWM:/ { printf "%d", $2 / 1024 }' "/proc/$(daemon_pid mds)/status"; }
now_ms() { date +%s%3N; }
source_of() { awk -v m="$M" '$5 == m { print $(NF - 1) }' /proc/self/mountinfo; }
create() { # ROUND OPTIONS: the milliseconds that it took as $ms, the server's of them as $used
    local began before
    began=$(now_ms) before=$(cpu_ms)
    "$AIFS_BUILD/tools/bench/aifs-bench" md --jobs 1 --seconds 3600 --keep --phases create --options "key_file=$C/key/client.key" --files "$part" "${@:2}" "aifs:$(source_of)" \
        >"$T/round" 2>&1 || fail "round $1: $(cat "$T/round")"
    ms=$(($(now_ms) - began)) used=$(($(cpu_ms) - before))
}

note "$N files, $part at a time"
large=
for round in $(seq 10); do
    if [ "$round" = 1 ]; then
        create 1 --shared --dirs 1
        large=$(echo "$M"/bench-md.*/d000)
    else
        create "$round" --dirs 100
    fi
    note "round $round: $((part * 1000 / (ms + 1))) files/s, $((used * 1000000 / part)) ns of the metadata server each; it has had $(resident_mib) MiB"
done
expect "the metadata server keeps within 1 GiB: $(resident_mib) MiB" [ "$(resident_mib)" -le 1024 ]

kill_daemon mds TERM
began=$(now_ms)
start_again
note "the server started in $(($(now_ms) - began)) ms"

remount
began=$(now_ms) used=$(cpu_ms)
# shellcheck disable=SC2012 # only counted, and find would look at each
expect "the large directory has all its names" [ "$(ls -f "$large" | wc -l)" = $((part + 2)) ]
ms=$(($(now_ms) - began)) used=$(($(cpu_ms) - used))
note "listed $part names in $ms ms, $((used * 1000000 / part)) ns of the metadata server each"
expect "all inodes are counted" [ "$("$ADMIN" status --json | grep -o '"inodes": *[0-9]*' | grep -o '[0-9]*$')" -ge "$N" ]
expect "the metadata server keeps within 1 GiB afterwards: $(resident_mib) MiB" [ "$(resident_mib)" -le 1024 ]
