#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A metadata server says nothing for longer than the lease time: no page, name or attribute that is cached is served, until it speaks again.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 1
head -c 3000000 /dev/urandom >"$M/f" && sync "$M/f"
sum=$(sha256sum <"$M/f")
exec 3<"$M/f"
cat <&3 >/dev/null
mkfifo "$T/go"
python3 - "$M/f" "$T/go" >"$T/mapped" <<'PY' &
import mmap, sys
with open(sys.argv[1], "rb") as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    first = m[:8192]
    print("ready", flush=True)
    open(sys.argv[2]).read()
    print("same" if m[:8192] == first else "other", flush=True)
PY
mapper=$!
wait_for 10 grep -q ready "$T/mapped" || fail "no mapping"
pid=$(daemon_pid mds)
cleanup() { kill -CONT "$pid" 2>/dev/null; }
kill -STOP "$pid"
said() { grep -q 'for the lease time' "$C"/mount*.log; }
wait_for 25 said || fail "the client has not noticed"
timeout 2 head -c 8192 "$M/f" >/dev/null && fail "a cached file was served"
timeout 2 stat "$M/f" >/dev/null && fail "cached attributes were served"
timeout 2 head -c 8192 <&3 >/dev/null && fail "an open file was served from its pages"
echo >"$T/go"
same() { grep -q same "$T/mapped"; }
wait_for 2 same && fail "a mapping was served from its pages"
sha256sum <"$M/f" >"$T/sum" &
reader=$!
kill -CONT "$pid"
wait "$reader"
[ "$(cat "$T/sum")" = "$sum" ] || fail "the read that waited got something else"
wait "$mapper"
same || fail "the mapping is now: $(cat "$T/mapped")"
exec 3<&-
