#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What holds between two mounts: the rules of two-mounts/*.py, each a sentence, each in both directions, on one cluster.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
chmod 755 "$T" "$M" "$M2"
export PYTHONDONTWRITEBYTECODE=1
for group in names attributes data locks; do
    timeout 800 python3 "$(dirname "$0")/two-mounts/$group.py" "$M" "$M2" 2>&1 | tee "$T/said"
    [ "${PIPESTATUS[0]}" = 0 ] || fail "a rule of $group does not hold: $(tail -1 "$T/said")"
done
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
