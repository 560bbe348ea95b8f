#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random reads, writes, truncates, appends and mappings of small and large files agree with a copy in memory; also when every open is on another mount.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
run=$AIFS_SOURCE/tests/support/random_operations.py
for seed in 1 2 3; do
    expect "a large file" python3 "$run" $seed 800 3000000 "$M/large$seed"
    expect "a small file" python3 "$run" $seed 800 40000 "$M/small$seed"
    expect "a large file on two mounts" python3 "$run" $seed 500 3000000 "$M/both$seed" "$M2/both$seed"
    expect "a small file on two mounts" python3 "$run" $seed 500 40000 "$M/two$seed" "$M2/two$seed"
done
