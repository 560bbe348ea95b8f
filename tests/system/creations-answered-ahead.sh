#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that a mount makes before the server has them: everybody sees them whole, also when the server or a mount is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_CREATE_AHEAD:-}" != no ] || skip "nothing is made ahead (AIFS_CREATE_AHEAD=no)"
cluster_up --oss 2
M2=$T/mnt2
mkdir -p "$M2"
expect "second mount" "$ADMIN" -q demo mount --dir "$C" "$M2"
ahead() { # how many both have made ahead
    sed -n 's/.*metrics at port //p' "$C"/mount*.log | while read -r port; do curl -sf "http://127.0.0.1:$port/metrics"; done |
        awk '$1 ~ /created_ahead_total/ { n += $2 } END { print n + 0 }'
}
many_ahead() { [ "$(ahead)" -gt 100 ]; } # figures are taken now and then
coproc python3 "$(dirname "$0")/two-mounts/made.py" "$M" "$M2"
exec 4<&"${COPROC[0]}" 5>&"${COPROC[1]}"
rules=$COPROC_PID
while read -rt 250 said <&4 && [ "$said" != "done" ]; do
    case $said in
    ahead) wait_for 20 many_ahead || fail "only $(ahead) files were made ahead" ;;
    kill) kill_daemon mds && start_again ;;
    *) fail "a promise was broken: $said" ;;
    esac
    echo go >&5
done
wait "$rules" || fail "a promise was broken"
[ "$said" = "done" ] || fail "the rules end with '$said'"
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
! grep -hs "not made after all" "$C"/mount*.log || fail "a creation was refused"

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
