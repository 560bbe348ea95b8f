#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Records appended to targets that another file fills: none that was taken is lost, and one that was not taken is not in the size, whichever way they are written.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --capacity 64M
second_mount
source=$(awk '$1 == "mds" { print $3 }' "$AIFS_CONFIG"):/
# shellcheck disable=SC2086 # some ways of writing, or all of them
timeout -k 5 250 python3 "$AIFS_SOURCE/tests/support/full_writers.py" "$M" "$M2" "$AIFS_BUILD/client/lib/libaifs.so" "$source" "$C/key/client.key" ${WAYS:-} ||
    fail "a writer has lost something, or more"
