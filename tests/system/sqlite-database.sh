#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An SQLite database (rollback journal and WAL without shared memory) keeps its integrity, also over a kill -9 of a server.
. "$(dirname "$0")/lib.sh"
command -v sqlite3 >/dev/null || skip "no sqlite3"
cluster_up
db=$M/test.db
expect "filling" sqlite3 "$db" "PRAGMA synchronous=FULL; CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB, s TEXT);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) INSERT INTO t SELECT i, randomblob(200), hex(i) FROM n;
    CREATE INDEX ts ON t(s);"
expect "updating" sqlite3 "$db" "UPDATE t SET v = randomblob(300) WHERE k % 7 = 0; DELETE FROM t WHERE k % 11 = 0;"
[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ] || fail "integrity"
expect "WAL mode" sqlite3 "$db" "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; UPDATE t SET s = s || 'x'; PRAGMA journal_mode=DELETE;" >/dev/null
kill_daemon oss2
start_again
[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ] || fail "integrity after a killed server"
sum=$(sqlite3 "$db" "SELECT count(*), sum(length(v)), max(s) FROM t")
remount
[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ] || fail "integrity after a remount"
[ "$(sqlite3 "$db" "SELECT count(*), sum(length(v)), max(s) FROM t")" = "$sum" ] || fail "other content after a remount"
expect "VACUUM" sqlite3 "$db" VACUUM
[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ] || fail "integrity after VACUUM"
