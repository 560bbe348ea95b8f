#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# O_TMPFILE: a file without a name lives as long as it is open or until linkat names it, on every mount, and across the death of the metadata server. The rules are the sentences of tests/support/unnamed_files.py.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_CHANNEL:-}" != libfuse ] || skip "libfuse has no O_TMPFILE"
cluster_up --oss 1
second_mount
export ADMIN
expect "the rules" python3 "$AIFS_SOURCE/tests/support/unnamed_files.py" "$C" "$M" "$M2"
