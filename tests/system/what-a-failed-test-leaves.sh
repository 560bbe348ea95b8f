#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A test that fails ends, and leaves nothing: not the processes in its mounts, which would keep its output open, not the mounts, not its folder.
. "$(dirname "$0")/lib.sh"
cat >"$T/failing.sh" <<'SH'
. "$LIB"
cluster_up --oss 1
second_mount
echo x >"$M/f"
(cd "$M" && exec tail -f /dev/null) &
tail -f "$M2/f" >/dev/null &
exec 7<"$M/f"
kill -STOP "$(daemon_pid oss1)"
(while :; do dd if=/dev/zero of="$M2/g" bs=1M count=64 status=none; done) 2>/dev/null &
cd "$M2" || exit
echo "$T" >"$SAYS"
cleanup() { wait; }
fail "on purpose"
SH
chmod +x "$T/failing.sh"
# its output is a pipe, as under meson: who is left would keep it open
LIB=$AIFS_SOURCE/tests/system/lib.sh SAYS=$T/says AIFS_TEST_RUN='' timeout -k 5 120 bash "$T/failing.sh" 2>&1 | cat >"$T/out"
code=${PIPESTATUS[0]}
[ "$code" = 1 ] || fail "the failing test ends with status $code: $(tail "$T/out")"
grep -q '^FAILED: on purpose' "$T/out" || fail "the failing test does not say why: $(tail "$T/out")"
left=$(cat "$T/says")
[ -n "$left" ] || fail "the failing test does not say where it was"
[ ! -e "$left" ] || fail "its folder is left"
grep -F "$left" /proc/self/mountinfo && fail "mounts are left"
pgrep -af -- "$left" && fail "processes are left"
true
