#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random calls of several processes and users give the same results, errors and trees as on a local file system (tests/support/differential.py), on one
# mount and on two of one cluster. SEED=N: that one alone.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
chmod 755 "$T"
mkdir -m 777 "$T/reference" "$M/one" "$M/two"
seeds=1-25
[ -z "${AIFS_CREATE_AHEAD:-}" ] || seeds=26-50
[ -z "${AIFS_TEST_LONG:-}" ] || seeds=1-3000
expect "one mount" python3 "$AIFS_SOURCE/tests/support/differential.py" --seeds "$seeds" "$T/reference" "$M/one"
expect "two mounts" python3 "$AIFS_SOURCE/tests/support/differential.py" --seeds "$seeds" "$T/reference" "$M/two" "$M2/two"
