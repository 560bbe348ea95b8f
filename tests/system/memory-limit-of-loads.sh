#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever aifs-bench does, small files, checkpoints, samples, blocks, names, a mount with memory_limit=128Mi never takes more; nor does a program with libaifs, beside its own buffers.
. "$(dirname "$0")/lib.sh"
BENCH=$AIFS_BUILD/tools/bench/aifs-bench
limit_kib=131072
"$ADMIN" -q demo up --oss 2 --dir "$C" || fail "the cluster does not come up"
expect "mount" "$ADMIN" -q demo mount --dir "$C" -o memory_limit=128Mi "$M"
pids=$(pgrep -f -- "aifs-mount.* $M ") || fail "no mount daemon"
# the most that it ever had, with the pages of files it maps
most() {
    # shellcheck disable=SC2016,SC2086 # awk's own; a list of numbers
    printf '/proc/%s/status\n' $pids | xargs awk '/^VmHWM:/{sum += $2} END {print sum}'
}
lib=aifs:127.0.0.1:$(cat "$C/mds/run/port"):/
load() { # SCENARIO OPTIONS...: through the mount, then through libaifs
    local kib
    "$BENCH" "$@" "$M" >"$T/out" 2>&1 || fail "$*: $(cat "$T/out")"
    kib=$(most) || fail "$*: the daemon is gone"
    note "$*: $((kib / 1024)) MiB"
    [ "$kib" -le "$limit_kib" ] || fail "$*: the mount took $((kib / 1024)) of 128 MiB"
    python3 - "$BENCH" "$@" --options "key_file=$C/key/client.key,memory_limit=128Mi" "$lib" >"$T/out" 2>&1 <<'P' || fail "$* with libaifs: $(cat "$T/out")"
import os, resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print("KIB", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
P
    kib=$(awk '$1 == "KIB" { print $2 }' "$T/out")
    note "  with libaifs: $((kib / 1024)) MiB"
    [ "$kib" -le $((limit_kib + 65536)) ] || fail "$*: aifs-bench with libaifs took $((kib / 1024)) MiB, its own 64 at most among them"
}
load io --rw write,read,randread,randwrite --size 96Mi --jobs 4 --fsync
load io --rw randwrite,randread --bs 4Ki --size 32Mi --jobs 8 --seconds 1 --fsync
load small --files 600
load ckpt --size 64Mi
load kv --blocks 6 --min 10Mi --max 40Mi
load train --workload unet3d --scale 16 --steps 3
load train --workload cosmoflow --scale 4 --steps 20
load train --workload resnet50 --scale 16 --steps 3
load md --files 1500 --seconds 3
