#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Removals that a mount answers before the server has them: nobody ever sees a name that was removed, also when the server or a mount is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_REMOVE_AHEAD:-}" != no ] || skip "nothing is removed ahead (AIFS_REMOVE_AHEAD=no)"
cluster_up --oss 2
second_mount
ahead() { # LOG: how many the mount with this log has answered ahead
    curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$C/$1")/metrics" | awk '$1 ~ /removed_ahead_total/ { n += $2 } END { print n + 0 }'
}
many_ahead() { [ "$(ahead mount1.log)" -gt 500 ]; } # figures are taken now and then
coproc python3 "$(dirname "$0")/two-mounts/removed.py" "$M" "$M2"
exec 4<&"${COPROC[0]}" 5>&"${COPROC[1]}"
rules=$COPROC_PID
while read -rt 800 said <&4 && [ "$said" != "done" ]; do
    case $said in
    ahead) wait_for 20 many_ahead || fail "only $(ahead mount1.log) removals were answered ahead" ;;
    kill) kill_daemon mds && start_again ;;
    *) fail "a promise was broken: $said" ;;
    esac
    echo go >&5
done
wait "$rules" || fail "a promise was broken"
[ "$said" = "done" ] || fail "the rules end with '$said'"
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
! grep -hs "not removed after all" "$C"/mount*.log || fail "a removal was refused"

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
