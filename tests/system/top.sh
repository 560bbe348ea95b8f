#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `top` shows who keeps the servers busy, under the client and job it comes from, who waits for whom, and a server that does not answer as such.
. "$(dirname "$0")/lib.sh"
export SLURM_JOB_ID=4711
cluster_up --oss 2
unset SLURM_JOB_ID
second_mount
session=$("$ADMIN" --json client list | jq ".items[] | select(.mount == \"$M\").session")
[ -n "$session" ] || fail "client list does not know the mount"

# load comes from the first mount only, until it is told to stop
(until [ -e "$T/stop" ]; do dd if=/dev/zero of="$M/f" bs=1M count=4 conv=fsync,notrunc status=none && : >"$M/small" || exit; done) &
load=$!
cleanup() { : >"$T/stop" && wait "$load"; }

# seen FILTER ARGS...: the next answer of top is like that; an interval without any load, on a busy machine, is no failure
seen() {
    local filter=$1
    shift
    "$ADMIN" --json top --once "$@" >"$T/json" && jq -e "$filter" "$T/json" >/dev/null
}
shown() {
    wait_for 60 seen "$@" || fail "top ${*:2}: not $1: $(cat "$T/json")"
}
shown ".schema == \"aifs.top.client/1\" and (.items[0] | .session == $session and .mount == \"$M\" and .job == \"4711\" and .client == \"$(uname -n)\" and
    .ops_per_s > 0 and .written_bytes_per_s > 0 and .latency_ns > 0 and .waiting >= 0)"
shown '.items[] | select(.job == "4711") | .clients == 1 and .ops_per_s > 0 and .written_bytes_per_s > 0' --by job --interval 500ms
shown '([.items[] | [.server, .type, .state]] | sort) == [["mds1", "mds", "up"], ["oss1", "oss", "up"], ["oss2", "oss", "up"]] and
    ([.items[] | select(.type == "mds")][0].ops_per_s > 0) and ([.items[] | select(.type == "oss").written_bytes_per_s] | add > 0)' --by server
shown '.items | length == 1' --count 1 --by server
# a table, once, when it is not for a terminal
[ "$("$ADMIN" top --by server | wc -l)" = 4 ] || fail "top: a line for each server, and one above them"
refuse "a wrong way to add up" 2 'client, job or server, not "disk"' "$ADMIN" top --by disk
refuse "no interval" 2 'from 100ms to 1h' "$ADMIN" top --interval 0
refuse "no rows" 2 'a number of rows' "$ADMIN" top --count 0
refuse "too much" 2 'unexpected argument' "$ADMIN" top oss1

# an idle cluster is called that, on standard error; the table stays a table
cleanup
idle() { "$ADMIN" top --once --interval 100ms >"$T/out" 2>"$T/err" && [ "$(wc -l <"$T/out")" = 1 ] && grep -q '^idle: no client has asked' "$T/err"; }
wait_for 60 idle || fail "top of an idle cluster: $(cat "$T/out" "$T/err")"
"$ADMIN" -q top --once --interval 100ms 2>&1 | grep -q idle && fail "top -q makes remarks"

# who waits for a lock, and for whom
touch "$M/locked"
exec 8<>"$M/locked" && flock 8
(exec 8>&- 9<>"$M2/locked" && exec flock 9) &
waiter=$!
shown ".waits[0] | .kind == \"flock\" and .type == \"write\" and .inode == $(stat -c %i "$M/locked") and (.path == \"$M/locked\" or .path == \"$M2/locked\") and
    .mount == \"$M2\" and .pid == $waiter and .age_ns > 0 and .other_mount == \"$M\" and .other_pid > 0 and .other_state == \"holds\" and
    .other_age_ns >= .age_ns and .other_job == \"4711\" and .session != .other_session"
"$ADMIN" top --once >"$T/out" 2>/dev/null
grep -Eq "^$(uname -n) +$M2 .* flock +$(stat -c %i "$M/locked") +$T/mnt2?/locked +$(uname -n) +$M +[0-9]+ +holds " "$T/out" || fail "top shows no waiter: $(cat "$T/out")"
exec 8>&-
wait "$waiter"
shown '.waits == []'

# a server that is dead, and one that is frozen: told, and not waited for; who waits for it is told, too
kill_daemon oss2
head -c 4000000 /dev/urandom >"$T/data"
: >"$M/waits"
inode=$(stat -c %i "$M/waits")
dd if="$T/data" of="$M/waits" bs=1M conv=fsync status=none &
writer=$!
stuck() { "$ADMIN" --json top --once --interval 100ms >"$T/json" 2>/dev/null || [ $? = 3 ] && jq -e "$1" "$T/json" >/dev/null; }
wait_for 60 stuck ".waits | any(.kind == \"server\" and .type == \"write\" and .mount == \"$M\" and .other_client == \"oss2\" and .other_state == \"down\" and
    .target > 0 and .requests > 0 and .age_ns >= 2000000000 and .pid == $writer and .inode == $inode)" || fail "top does not show who waits for a server: $(cat "$T/json")"
waiting() { "$ADMIN" --json client list | jq -e ".items[] | select(.session == $session) | .requests > 0 and (.waits_for | test(\"^oss2 \\\\(target [0-9]+\\\\)$\"))"; }
wait_for 60 waiting || fail "client list does not show what it waits for: $("$ADMIN" client list)"
"$ADMIN" --json status | jq -e '.warnings | any(test("^1 client waits for target [0-9]+ .* on oss2"))' >/dev/null || fail "status: $("$ADMIN" --json status | jq -c .warnings)"
timeout 30 "$ADMIN" --timeout 2s --json top --by server >"$T/json" 2>"$T/err"
[ $? = 3 ] || fail "exit code with a server down"
jq -e '[.items[] | select(.state == "unreachable")] | length == 1 and all(.server == "oss2" and .ops_per_s == null)' "$T/json" >/dev/null || fail "oss2 should be unreachable: $(cat "$T/json")"
jq -e '.warnings | any(test("server oss2 does not answer"))' "$T/json" >/dev/null || fail "no warning"
[ ! -s "$T/err" ] || fail "the warning is told twice: $(cat "$T/err")"
kill -STOP "$(daemon_pid oss1)"
timeout 30 "$ADMIN" --timeout 2s --json top --by server >"$T/json" 2>/dev/null
code=$?
kill -CONT "$(daemon_pid oss1)"
[ "$code" = 3 ] || fail "exit code with a frozen server: $code"
jq -e '[.items[] | select(.state == "unreachable").server] | sort == ["oss1", "oss2"]' "$T/json" >/dev/null || fail "both should be unreachable: $(cat "$T/json")"
start_again
expect "what waited goes on" wait "$writer"
cmp "$T/data" "$M/waits" || fail "what waited is not what was written"
shown '.waits == []'
