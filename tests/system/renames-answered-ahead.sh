#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Renames in one directory that a mount answers before the server has them: everybody finds what was renamed under its new name, also when the server is killed meanwhile.
. "$(dirname "$0")/lib.sh"
[ "${AIFS_REMOVE_AHEAD:-}" != no ] || skip "nothing is renamed ahead (AIFS_REMOVE_AHEAD=no)"
cluster_up --oss 2
second_mount
ahead() { # LOG: how many the mount with this log has answered ahead
    curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$C/$1")/metrics" | awk '$1 ~ /renamed_ahead_total/ { n += $2 } END { print n + 0 }'
}
many_ahead() { [ "$(ahead mount1.log)" -gt 500 ]; } # figures are taken now and then
coproc python3 "$(dirname "$0")/two-mounts/moved.py" "$M" "$M2"
exec 4<&"${COPROC[0]}" 5>&"${COPROC[1]}"
rules=$COPROC_PID
while read -rt 800 said <&4 && [ "$said" != "done" ]; do
    case $said in
    ahead) wait_for 20 many_ahead || fail "only $(ahead mount1.log) renames were answered ahead" ;;
    kill) kill_daemon mds && start_again ;;
    *) fail "a promise was broken: $said" ;;
    esac
    echo go >&5
done
wait "$rules" || fail "a promise was broken"
[ "$said" = "done" ] || fail "the rules end with '$said'"
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
! grep -hs "not renamed after all" "$C"/mount*.log || fail "a rename was refused"

umount -l "$M"
expect "fsck" "$ADMIN" -q fsck check
