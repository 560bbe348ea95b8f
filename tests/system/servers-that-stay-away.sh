#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A process that waits for a dead server dies on SIGKILL; with soft,timeo= it gets an error; the log names server, operation and file after hung_log; when the server is back, work goes on.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
head -c 8000000 /dev/urandom >"$M/f" && sync "$M/f"
sum=$(sha256sum <"$M/f")
remount # or the client's own cache answers
mkdir "$T/soft"
expect "a soft mount" "$ADMIN" -q demo mount --dir "$C" -o soft,timeo=3,hung_log=1 "$T/soft"
kill_daemon oss1
echo 3 >/proc/sys/vm/drop_caches
dd if="$M/f" of=/dev/null bs=1M iflag=direct status=none 2>/dev/null &
reader=$!
start=$SECONDS
dd if="$T/soft/f" of=/dev/null bs=1M iflag=direct status=none 2>"$T/err" && fail "a soft read succeeded without a server"
[ $((SECONDS - start)) -lt 30 ] || fail "a soft read took $((SECONDS - start)) s"
grep -qiE 'input/output|timed out' "$T/err" || fail "the soft error is: $(cat "$T/err")"
grep -q 'oss1, target [0-9]*: OSS_READ of inode [0-9]* (.*f) has not been answered for [0-9]* s' "$C"/mount*.log || fail "who is slow is not named: $(tail -3 "$C"/mount*.log)"
kill -0 "$reader" 2>/dev/null || fail "the hard read did not wait"
kill -9 "$reader"
gone() { ! kill -0 "$reader" 2>/dev/null; }
wait_for 10 gone || fail "a process that waits for a server cannot be killed"
ls "$M" >/dev/null || fail "the name space suffers from a missing data server"
dd if="$M/f" bs=1M iflag=direct status=none 2>/dev/null | sha256sum >"$T/sum" &
reader=$!
start_again
wait "$reader"
[ "$(cat "$T/sum")" = "$sum" ] || fail "the read that waited got something else"
