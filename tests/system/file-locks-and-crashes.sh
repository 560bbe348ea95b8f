#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Locks outlive the metadata server, not their holder: mounts and servers are killed and stopped while locks are held and waited for. The rules are the sentences of tests/support/lock_crashes.py.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
second_mount
export ADMIN MDS=$AIFS_BUILD/mds/aifs-mds
expect "the rules" python3 "$AIFS_SOURCE/tests/support/lock_crashes.py" "$C" "$M" "$M2"
