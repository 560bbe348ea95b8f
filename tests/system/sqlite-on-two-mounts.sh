#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writers on two mounts share one SQLite database: no transaction is lost, none is half there, and its integrity holds.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || skip "no sqlite3"
cluster_up
second_mount
sqlite3 "$M/t.db" "CREATE TABLE sum(k INTEGER PRIMARY KEY, n INTEGER); INSERT INTO sum VALUES (1, 0); CREATE TABLE log(who TEXT, i INTEGER);" || fail "making the database"
writer() { # MOUNT NAME
    local i
    for i in $(seq 40); do
        sqlite3 -cmd ".timeout 60000" "$1/t.db" "BEGIN IMMEDIATE; UPDATE sum SET n = n + 1; INSERT INTO log VALUES ('$2', $i); COMMIT;" || return 1
    done
}
writers=()
for m in "$M" "$M2"; do
    for w in 1 2; do
        writer "$m" "$m $w" >>"$T/errors" 2>&1 &
        writers+=($!)
    done
done
for w in "${writers[@]}"; do wait "$w" || fail "a writer failed: $(head -3 "$T/errors")"; done
for m in "$M" "$M2"; do
    [ "$(sqlite3 "$m/t.db" 'PRAGMA integrity_check')" = ok ] || fail "integrity, seen from $m"
    [ "$(sqlite3 "$m/t.db" 'SELECT n, (SELECT count(*) FROM log) FROM sum')" = "160|160" ] || fail "lost updates: $(sqlite3 "$m/t.db" 'SELECT n, (SELECT count(*) FROM log) FROM sum')"
done
