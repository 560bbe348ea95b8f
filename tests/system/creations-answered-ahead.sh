#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that a mount makes before the server has them: everybody sees them whole, also when the server or a mount is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_CREATE_AHEAD:-}" != no ] || skip "nothing is made ahead (AIFS_CREATE_AHEAD=no)"
cluster_up --oss 2
second_mount
promises_hold made 250 created_ahead_total 100 "$C"/mount*.log

# What fsync of a file, or of its directory, has promised outlives the mount.
python3 - "$M" <<'PY' || fail "fsync"
import os, sys
d = sys.argv[1] + "/synced"
for part in range(3):
    os.makedirs(f"{d}/{part}")
    for i in range(200):
        fd = os.open(f"{d}/{part}/{i}", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"kept")
        if part == 0:
            os.fsync(fd)
        os.close(fd)
    fd = os.open(f"{d}/{part}", os.O_RDONLY)
    if part:
        os.fsync(fd)
    os.close(fd)
PY
pid=$(pgrep -f -- "aifs-mount .* $M ") && kill -KILL "$pid"
tail -s 0.02 --pid="$pid" -f /dev/null
for part in 0 1 2; do
    [ "$(find "$M2/synced/$part" -type f | wc -l)" = 200 ] || fail "a killed mount has lost what fsync had promised"
done
[ "$(cat "$M2"/synced/0/* | wc -c)" = 800 ] || fail "a killed mount has lost contents"
umount -l "$M"
expect "fsck" "$ADMIN" -q fsck check
