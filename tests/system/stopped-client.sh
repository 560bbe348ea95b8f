#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A mount that is stopped for twice the lease time and goes on then never changes a byte: its fsync says EIO, and it works again by itself.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
second_mount
export PYTHONDONTWRITEBYTECODE=1
export AIFS_MDS_PROGRAM=$AIFS_BUILD/mds/aifs-mds
expect "the rules" python3 "$(dirname "$0")/two-mounts/stopped.py" "$ADMIN" "$C" "$M" "$M2"
