#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One file under random calls (tests/support/fsx.c) holds what it must, on one mount and on two that take turns. SEED=N: that one alone.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
seeds=${SEED:-"1 2 3"}
[ -z "${AIFS_TEST_LONG:-}" ] || seeds=$(seq 1 300)
for seed in $seeds; do
    expect "one mount" "$AIFS_BUILD/tests/fsx" -s "$seed" -n 600 "$M/one"
    expect "one mount, striped" "$AIFS_BUILD/tests/fsx" -s "$seed" -n 400 -l 6000000 "$M/striped"
    expect "two mounts" "$AIFS_BUILD/tests/fsx" -s "$seed" -n 300 "$M/two" "$M2/two"
    expect "two mounts, striped" "$AIFS_BUILD/tests/fsx" -s "$seed" -n 200 -l 4000000 "$M/both" "$M2/both"
    rm -f "$M/one" "$M/striped" "$M/two" "$M/both"
done
