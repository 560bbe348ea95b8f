#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flock, record locks and locks of open file descriptions hold between two mounts; `file locks` shows who holds and who waits. The rules are the sentences of tests/support/lock_rules.py.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
expect "the rules" python3 "$AIFS_SOURCE/tests/support/lock_rules.py" "$M" "$M2"
touch "$M/f"
exec 8<>"$M/f" && flock 8
(exec 8>&- 9<>"$M2/f" && flock 9 && echo got >"$T/got") &
two() { [ "$("$ADMIN" --json file locks "$M/f" | jq '.items | length')" = 2 ]; }
wait_for 10 two || fail "file locks does not show holder and waiter: $("$ADMIN" file locks "$M/f")"
"$ADMIN" --json file locks "$M2/f" >"$T/locks"
[ "$(jq -c '[.items[] | [.kind, .type, .start, .end, .state]]' "$T/locks")" = '[["flock","write",0,null,"held"],["flock","write",0,null,"waits"]]' ] || fail "file locks: $(cat "$T/locks")"
[ "$(jq -r '[.items[].mount] | join(" ")' "$T/locks")" = "$M $M2" ] || fail "file locks names other mounts: $(cat "$T/locks")"
"$ADMIN" file locks "$M/f" | grep -Eq '^flock +write +0 +- +held' || fail "file locks as text"
refuse "file locks elsewhere" 2 "not on an aifs mount" "$ADMIN" file locks /etc/passwd
exec 8>&-
wait
[ "$(cat "$T/got")" = got ] || fail "the one that waited did not get the lock"
none() { [ "$("$ADMIN" --json file locks "$M/f" | jq '.items | length')" = 0 ]; }
wait_for 10 none || fail "locks are left behind"
