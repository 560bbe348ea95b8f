#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every command gives text and one JSON document; exit codes are as documented; nothing hangs when a server is down.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2 --targets 2
echo x >"$M/small" && head -c 9000000 /dev/urandom >"$M/f"
for cmd in status "node list" "node show oss1" "target list" "target show 1" "pool list" "pool show default" df "client list" "stripe get $M" \
    "stripe get $M/f" "file info $M/f $M/small" "file where $M/f" version; do
    # shellcheck disable=SC2086
    out=$("$ADMIN" $cmd) && [ -n "$out" ] || fail "$cmd: exit $?"
    # shellcheck disable=SC2086
    "$ADMIN" --json $cmd | jq -e '.schema and (.items | length > 0)' >/dev/null || fail "$cmd --json"
done
"$ADMIN" status | grep -q '4/4 online' || fail "status does not show 4 targets: $("$ADMIN" status)"
"$ADMIN" file where "$M/small" | grep -q inline || fail "a small file should be inline"
refuse "an unknown noun" 2 'did you mean "target"' "$ADMIN" taget list
refuse "an unknown verb" 2 'did you mean "list"' "$ADMIN" target lst
refuse "a missing target" 4 '' "$ADMIN" target show 99
refuse "a missing pool" 4 'no pool' "$ADMIN" target list --pool nope
refuse "an unknown option" 2 'bogus' "$ADMIN" df --bogus
refuse "a client's key is not an admin's" 6 '' "$ADMIN" --mds "127.0.0.1:$(cat "$C/mds/run/port")" --key-file "$C/key/client.key" status
refuse "nobody there" 7 '' "$ADMIN" --mds 127.0.0.1:1 --key-file "$C/key/admin.key" --timeout 1s status
kill_daemon oss2
down() { "$ADMIN" --timeout 2s target list 2>/dev/null | grep -q unreachable; }
wait_for 15 down || fail "the dead server is not shown"
start=$SECONDS
"$ADMIN" --timeout 2s --json target list >"$T/json" 2>/dev/null
[ $? = 3 ] || fail "exit code with a server down"
jq -e '[.items[] | select(.state == "unreachable")] | length == 2' "$T/json" >/dev/null || fail "two targets should be unreachable"
"$ADMIN" --timeout 2s status >/dev/null 2>&1
[ $? = 3 ] || fail "status: exit code with a server down"
[ $((SECONDS - start)) -lt 20 ] || fail "the commands hang"
# a frozen server: still no hang
kill -STOP "$(daemon_pid mds)"
start=$SECONDS
"$ADMIN" --timeout 2s status >/dev/null 2>&1
code=$?
kill -CONT "$(daemon_pid mds)"
[ "$code" = 7 ] || fail "a frozen mds: exit $code"
[ $((SECONDS - start)) -lt 15 ] || fail "a frozen mds makes status hang"
start_again
