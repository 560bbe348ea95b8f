#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Over shared memory, on targets in memory, data is received straight into slots that were used before. It is right, and what was fsynced stays right, when transfers break off, clients and
# servers are killed in mid-write, and everything starts anew. No slot is lost.
. "$(dirname "$0")/lib.sh"
[ "$(stat -f -c %T "$T")" = tmpfs ] || skip "$T is not on tmpfs"
cluster_up --net shm
port=$(sed -n 's/^mds.listen = 127.0.0.1://p' "$C"/mds/*.conf)
bench=("$AIFS_BUILD/tools/bench/aifs-bench" io --depth 8 --size 64Mi --options "key_file=$C/key/client.key,net=shm")
lib() { "${bench[@]}" "$@" "aifs:127.0.0.1:$port:/" >"$T/bench" 2>&1; } # its files are gone afterwards
figure() { # NAME: of all storage servers together
    for n in 1 2 3 4; do curl -sf "http://$(cat "$C/oss$n/run/metrics")/metrics"; done | awk -v name="$1" 'index($1, name "{") == 1 { sum += $NF } END { printf "%d\n", sum }'
}
is() { [ "$(figure "$1")" -eq "$2" ]; }
one() { yes "file $1, and nothing else" | head -c 8388608; }
expect "write, read and remove" lib --rw write,read --verify
again() { # until the slots of the first time are free
    lib --rw write,read --verify || fail "writing and reading: $(cat "$T/bench")"
    [ "$(figure aifs_oss_placed_total)" -gt 20 ]
}
wait_for 120 again || fail "nothing was received in place"

note "overwritten and truncated, through the mount"
for i in 1 2 3; do
    one "$i" >"$M/f" && sync "$M/f"
    remount
    cmp "$M/f" <(one "$i") || fail "file $i is not what was written"
done

note "a transfer that breaks off"
for d in oss1 oss2; do kill_daemon "$d" TERM; done
AIFS_FAULT=net.cma_read=error@40 start_again
for i in 1 2 3; do expect "write and read" lib --rw write,read --verify; done
cmp "$M/f" <(one 3) || fail "the file is not what was written"

note "a client and a server killed in mid-write"
before=$(figure aifs_oss_placed_total)
"${bench[@]}" --rw write --seconds 300 "aifs:127.0.0.1:$port:/" >"$T/bench" 2>&1 &
writer=$!
some() { [ "$(figure aifs_oss_placed_total)" -gt $((before + 20)) ]; }
wait_for 120 some || fail "nothing is received in place: $(cat "$T/bench")"
for i in 4 5; do one "$i" >"$M/g$i" && sync "$M/g$i"; done
kill -9 "$writer" || fail "the client has given up: $(cat "$T/bench")"
kill_daemon oss1
wait "$writer" 2>/dev/null
start_again
restart_all
remount
cmp "$M/f" <(one 3) || fail "the file is not what was written"
for i in 4 5; do cmp "$M/g$i" <(one "$i") || fail "file $i was fsynced and is not whole"; done
rm -r "${M:?}"/*
expect "fsck" "$ADMIN" fsck check --verify
expect "all slots come back" wait_for 120 is aifs_oss_used_bytes 0
