#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who reads many small files in random order asks the metadata server once for each, to open it: names come by the page, and data is asked for when the file is opened, once. For who
# opens files and reads nothing, nothing is fetched. The kernel gets most contents with the answer to the open, without a READ, also when several open the same file at once, but waits for no server that is silent. What another mount changes meanwhile is seen.
. "$(dirname "$0")/lib.sh"
FILES=160
cluster_up
mkdir "$M/whole" "$M/opened"
python3 - "$M" "$FILES" <<'P' || fail "the files cannot be written"
import sys
for d in ("whole", "opened"):
    for i in range(int(sys.argv[2])):
        with open(f"{sys.argv[1]}/{d}/f{i}", "wb") as f:
            f.write(bytes([i]) * 102400)
P
remount
count() { # NAME: as the mount said within the last second
    curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$C/mount2.log")/metrics" | awk -v n="aifs_client_$1" '$1 == n { print $2 }'
}
given() { curl -sf "http://127.0.0.1:$(sed -n 's/.*metrics at port //p' "$C/mount2.log" | tail -1)/metrics" | awk '$1 == "aifs_fuse_contents_with_open_total" { print $2 }'; }
reached() { [ "$(count "$1")" -ge "$2" ]; }
lookups() {
    local port
    port=$(<"$C/mds/run/metrics")
    curl -sf "http://127.0.0.1:${port##*:}/metrics" | awk '/request_seconds_count\{op="LOOKUP"/ { print $2 }'
}
walk() { # DIR BYTES: opens all in random order, reads that much of each
    python3 - "$M/$1" "$FILES" "$2" <<'P' || fail "$1 is not what was written"
import os, random, sys
order = list(range(int(sys.argv[2])))
random.seed(7)
random.shuffle(order)
for i in order:
    fd = os.open(f"{sys.argv[1]}/f{i}", os.O_RDONLY)
    n = int(sys.argv[3])
    assert n == 0 or os.read(fd, n) == bytes([i]) * n, i
    os.close(fd)
P
}

asked=$(lookups)
walk whole 102400
wait_for 60 reached read_bytes_total $((FILES * 102400)) || fail "reads were not counted"
asked=$(($(lookups) - ${asked:-0}))
[ "$asked" -gt 0 ] && [ "$asked" -lt 60 ] || fail "$asked lookups of $FILES names of one directory"
[ "$(count prereads_total)" -gt $((FILES / 2)) ] || fail "only $(count prereads_total) of $FILES files were asked for when they were opened"
[ "$(count oss_calls_total)" -le $((FILES + 20)) ] || fail "$(count oss_calls_total) calls for the data of $FILES files"
[ "$(given)" -gt 0 ] || fail "no contents came with an OPEN"
[ "$(given)" -lt "$FILES" ] || fail "no READ was seen by which to learn what is read"

before=$(count requests_total) data=$(count oss_calls_total)
walk opened 0
wait_for 60 reached requests_total $((before + FILES)) || fail "opens were not counted"
[ "$(count oss_calls_total)" -le $((data + 5)) ] || fail "data was fetched for files that nobody reads"

remount
walkers=()
for _ in 1 2 3 4; do
    walk whole 102400 &
    walkers+=($!)
done
for walker in "${walkers[@]}"; do wait "$walker" || fail "of four who read the same files at once one failed"; done

remount
for i in {10..30}; do cat "$M/whole/f$i" >/dev/null; done # so that it is known what they are read for
second_mount
servers() { # SIGNAL, to all storage servers
    for i in 1 2 3 4; do kill "-$1" "$(daemon_pid "oss$i")"; done
}
cleanup() { servers CONT; }
servers STOP
exec {silent}<"$M/whole/f100" {other}<"$M/whole/f101" || fail "silent storage servers keep files from being opened"
servers CONT
cmp <(tr '\0' '\144' </dev/zero | head -c 102400) - <&"$silent" || fail "what was opened while servers were silent is wrong"
exec {held}<"$M/whole/f102" {silent}<&- {other}<&-
head -c 102400 /dev/zero >"$M2/whole/f102"
cmp <(head -c 102400 /dev/zero) - <&"$held" || fail "an open file is read as it was given to the kernel, after it has changed"
exec {held}<&-
ls "$M2/whole" "$M2/opened" >/dev/null
printf changed >"$M2/whole/f1"
rm "$M2/whole/f2"
mv "$M2/whole/f3" "$M2/whole/moved"
echo new >"$M2/opened/g"
[ "$(<"$M/whole/f1")" = changed ] || fail "a changed file is read as it was"
[ ! -e "$M/whole/f2" ] || fail "a removed name is still there"
[ ! -e "$M/whole/f3" ] && [ "$(stat -c %s "$M/whole/moved")" = 102400 ] || fail "a renamed file is not where it is"
[ "$(<"$M/opened/g")" = new ] || fail "a new name is not seen"
