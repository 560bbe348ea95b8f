#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The metadata server is killed with two mounts that hold leases, locks and unlinked files: no stale read, no lost file, no lock for two.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
second_mount
export PYTHONDONTWRITEBYTECODE=1
coproc python3 "$(dirname "$0")/two-mounts/killed.py" "$M" "$M2"
exec 4<&"${COPROC[0]}" 5>&"${COPROC[1]}"
rules=$COPROC_PID
while read -rt 800 said <&4 && [ "$said" = kill ]; do
    kill_daemon mds
    start_again
    echo go >&5
done
wait "$rules" || fail "a promise was broken"
[ "$said" = "done" ] || fail "the rules end with '$said'"
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
expect "fsck" "$ADMIN" -q fsck check
