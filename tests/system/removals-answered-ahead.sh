#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Removals that a mount answers before the server has them: nobody ever sees a name that was removed, also when the server or a mount is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_REMOVE_AHEAD:-}" != no ] || skip "nothing is removed ahead (AIFS_REMOVE_AHEAD=no)"
cluster_up --oss 2
second_mount
promises_hold removed 800 removed_ahead_total 500 "$C/mount1.log"

# What fsync of the directory has promised outlives its mount.
python3 - "$M" <<'PY' || fail "fsync of a directory"
import os, sys
d = sys.argv[1] + "/synced"
for part in range(3):
    os.makedirs(f"{d}/{part}")
    for i in range(300):
        os.close(os.open(f"{d}/{part}/{i}", os.O_CREAT | os.O_WRONLY))
for part in range(3):
    for name in os.listdir(f"{d}/{part}"):
        os.stat(f"{d}/{part}/{name}")
        os.unlink(f"{d}/{part}/{name}")
    fd = os.open(f"{d}/{part}", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
PY
pid=$(pgrep -f -- "aifs-mount .* $M ") && kill -KILL "$pid"
tail -s 0.02 --pid="$pid" -f /dev/null
for part in 0 1 2; do
    [ -z "$(ls -A "$M2/synced/$part")" ] || fail "a killed mount has brought back what fsync had promised"
done
umount -l "$M"
expect "fsck" "$ADMIN" -q fsck check
