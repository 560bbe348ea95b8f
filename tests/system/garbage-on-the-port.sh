#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random bytes, half a header, silence and thousands of connections on the daemons' ports disturb nobody.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
echo fine >"$M/f"
for d in mds oss1 oss2; do
    port=$(cat "$C/$d/run/port")
    for _ in 1 2 3 4 5; do
        timeout 5 bash -c "head -c 100000 /dev/urandom >/dev/tcp/127.0.0.1/$port" 2>/dev/null
        timeout 5 bash -c "printf 'GET / HTTP/1.0\r\n\r\n' >/dev/tcp/127.0.0.1/$port" 2>/dev/null
        timeout 5 bash -c "printf 'AIFS' >/dev/tcp/127.0.0.1/$port" 2>/dev/null
    done
    exec 7<>"/dev/tcp/127.0.0.1/$port" # says nothing
    [ "$(cat "$M/f")" = fine ] || fail "the mount suffers"
    exec 7>&-
done
head -c 3000000 /dev/urandom >"$T/r" && cp "$T/r" "$M/r" && cmp "$T/r" "$M/r" || fail "I/O after garbage"
for d in mds oss1 oss2; do
    kill -0 "$(daemon_pid "$d")" || fail "$d died"
    [ "$(wc -l <"$C/$d/log")" -lt 500 ] || fail "$d's log was flooded"
done
