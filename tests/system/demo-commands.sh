#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo up twice, two demos side by side, down and up with the data, purge that leaves nothing.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
echo data >"$M/f" && head -c 5000000 /dev/urandom >"$M/big"
sum=$(sha256sum <"$M/big")
pid=$(daemon_pid mds)
expect "up a second time" "$ADMIN" -q demo up --dir "$C"
[ "$(daemon_pid mds)" = "$pid" ] || fail "the second up restarted the mds"
refuse "another shape" 5 'oss' "$ADMIN" demo up --dir "$C" --oss 3
mkdir "$T/mnt-b"
expect "a second demo beside it" "$ADMIN" -q demo up --dir "$T/b" --oss 1 --mount "$T/mnt-b"
echo other >"$T/mnt-b/f"
[ "$(cat "$M/f")" = data ] || fail "the demos share data"
expect "the second goes" "$ADMIN" -q demo down --dir "$T/b" --purge
[ ! -e "$T/b" ] || fail "purge leaves $T/b"
expect "down" "$ADMIN" -q demo down --dir "$C"
pgrep -f "$C/" >/dev/null && fail "processes are left: $(pgrep -af "$C/")"
grep -q " $M " /proc/self/mountinfo && fail "$M is still mounted"
refuse "status while it is down" 7 'refused|unreachable|time' "$ADMIN" --timeout 2s status
start_again
[ "$(cat "$M/f")" = data ] && [ "$(sha256sum <"$M/big")" = "$sum" ] || fail "the data did not come back"
for d in mds oss1 oss2; do
    tr '\0' ' ' <"/proc/$(daemon_pid "$d")/cmdline" | grep -qF "$C" || fail "the command line of $d does not name its folder"
done
