#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# aifs-bench null: a mount for other programs' load, with its data there or by raw calls; it ends by a signal or with the mount, also while it is used, and takes no other mount along.
. "$(dirname "$0")/lib.sh"
BENCH=$AIFS_BUILD/tools/bench/aifs-bench
pid=
mounted() { grep -q " $M " /proc/self/mountinfo; }
up() { # [options]: until it is mounted
    mkfifo "$T/says"
    env --default-signal=HUP "$BENCH" null "$@" "$M" >"$T/says" 2>"$T/err" &
    pid=$!
    read -rt 60 line <"$T/says" || fail "null $*: $(cat "$T/err")"
    rm "$T/says"
    [[ $line == "null FUSE on $M,"* ]] || fail "null $*: it says $line"
    mounted || fail "null $*: nothing is mounted"
}
down() { # SIGNAL
    kill -"$1" "$pid"
    wait "$pid" || fail "SIG$1: exit status $?"
    ! mounted || fail "SIG$1: still mounted"
}
load() { # what a workload needs of it
    expect "names" mkdir -p "$M/a/b"
    expect "a file past the page cache" dd if=/dev/zero of="$M/a/f" bs=1M count=3 conv=fsync status=none
    [ "$(stat -c %s "$M/a/f")" = 3145728 ] || fail "its size is $(stat -c %s "$M/a/f")"
    expect "a file by the page cache" dd if=/dev/zero of="$M/a/g" bs=4k count=5 oflag=append conv=notrunc,fsync status=none 1<>"$M/a/g"
    [ "$(cat "$M/a/f" "$M/a/g" | wc -c)" = $((3145728 + 20480)) ] || fail "it reads $(cat "$M/a/f" "$M/a/g" | wc -c) bytes"
    expect "cutting" truncate -s 100 "$M/a/f"
    expect "renaming" mv "$M/a/f" "$M/a/b/h"
    expect "a link" ln -s h "$M/a/b/l"
    [ "$(ls "$M/a/b")" = $'h\nl' ] && [ "$(stat -Lc %s "$M/a/b/l")" = 100 ] || fail "it lists $(ls -l "$M/a/b")"
    expect "removing" rm -r "$M/a"
}

up
load
down INT
up --keep 1Mi
load
head -c 300000 /dev/urandom >"$T/data"
expect "a file that is kept" cp "$T/data" "$M/kept"
expect "another" dd if="$T/data" of="$M/cached" bs=4k status=none 1<>"$M/cached"
cmp "$T/data" "$M/kept" && cmp "$T/data" "$M/cached" || fail "what is kept is not what was written"
down INT
up --net tcp
load
down TERM
up
down HUP
up --net auto --direct
load
exec 5>"$M/open"
down TERM
exec 5>&-
up
expect "unmounting" umount "$M"
wait "$pid" || fail "unmounted: exit status $?"
expect "another mount" mount -t tmpfs under "$M"
up
expect "unmounting" umount "$M"
wait "$pid" || fail "unmounted: exit status $?"
expect "what was mounted before stays" umount "$M"
refuse "a directory that is not there" 1 'No such file' "$BENCH" null "$T/none"
echo precious >"$T/file"
refuse "a file" 1 'Not a directory' "$BENCH" null "$T/file"
[ "$(cat "$T/file")" = precious ] || fail "the file is hidden"
refuse "no directory" 2 'directory' "$BENCH" null
refuse "a network that is not there" 2 'net ib' "$BENCH" null --net ib "$M"
for args in null "null --bogus" "null $T/none" bogus ""; do
    # shellcheck disable=SC2086
    "$BENCH" --json $args </dev/null 2>&1 | jq -es 'length == 1 and .[0].schema == "aifs.bench.error/1" and (.[0].message | length > 0)' >/dev/null || fail "--json $args: $("$BENCH" --json $args 2>&1)"
done
[ -z "$(ls "$M")" ] || fail "left behind: $(ls "$M")"
true
