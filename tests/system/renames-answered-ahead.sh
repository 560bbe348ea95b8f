#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Renames in one directory that a mount answers before the server has them: everybody finds what was renamed under its new name, also when the server is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_REMOVE_AHEAD:-}" != no ] || skip "nothing is renamed ahead (AIFS_REMOVE_AHEAD=no)"
cluster_up --oss 2
second_mount
promises_hold moved 800 renamed_ahead_total 500 "$C/mount1.log"

umount -l "$M"
expect "fsck" "$ADMIN" -q fsck check
