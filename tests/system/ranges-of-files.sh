#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fallocate, SEEK_DATA and SEEK_HOLE, copy_file_range: what they do to a file is seen on another mount, and is still so after every server was killed.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
cat >"$T/ranges.py" <<'P'
import ctypes, errno, os, sys
A, B = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
KEEP, PUNCH, COLLAPSE, ZERO, INSERT = 1, 2, 8, 16, 32
M = 1 << 20
def falloc(fd, mode, off, n):
    if libc.fallocate(fd, mode, ctypes.c_int64(off), ctypes.c_int64(n)): raise OSError(ctypes.get_errno(), "fallocate")
def err(e, f, *a):
    try: f(*a)
    except OSError as x: assert x.errno == e, (f, a, errno.errorcode[x.errno])
    else: raise AssertionError((f, a, "no error"))
def data(n, k): return (b"%08d" % k) * (n // 8)
for name, n in ("small", 8000), ("large", 12 * M):
    want = bytearray(data(n, n))
    f = os.open(A + "/" + name, os.O_RDWR | os.O_CREAT); os.write(f, want)
    q = n // 8
    falloc(f, PUNCH | KEEP, q + 1, 2 * q); want[q + 1:3 * q + 1] = bytes(2 * q)
    falloc(f, ZERO | KEEP, n - 10, q); want[n - 10:] = bytes(10)
    g = os.open(B + "/" + name, os.O_RDWR)                  # open on both from here on
    assert os.pread(g, n + 100, 0) == want, name
    falloc(g, ZERO, n - 50, 50 + q); want[n - 50:] = bytes(50 + q)
    assert os.fstat(f).st_size == n + q and os.fstat(g).st_size == n + q and os.pread(f, 2 * n, 0) == want, name
    falloc(f, 0, n, 3 * q); want += bytes(2 * q)
    falloc(f, KEEP, n, 9 * n); falloc(f, PUNCH | KEEP, 20 * n, n)
    assert os.fstat(g).st_size == len(want) and os.pread(g, 2 * n, 0) == want, name
    for mode in COLLAPSE, INSERT, PUNCH: err(errno.EOPNOTSUPP, falloc, f, mode, 0, 4096)
    err(errno.EINVAL, falloc, f, 0, 0, 0); err(errno.ENOSPC, falloc, f, 0, 0, 1 << 60)
    os.close(g); os.close(f)
    open(A + "/" + name + ".want", "wb").write(want)
f = os.open(A + "/holes", os.O_RDWR | os.O_CREAT)
os.pwrite(f, b"x" * 5 * M, 4 * M); os.pwrite(f, b"end", 3 << 40); falloc(f, PUNCH | KEEP, 6 * M, M)
seen, at, size = [], 0, os.fstat(f).st_size
while at < size:
    try: at = os.lseek(f, at, os.SEEK_DATA)
    except OSError as x: assert x.errno == errno.ENXIO; break
    end = os.lseek(f, at, os.SEEK_HOLE); seen.append((at, end)); at = end
assert seen == [(4 * M, 6 * M), (7 * M, 9 * M), (3 << 40, (3 << 40) + 3)], seen
err(errno.ENXIO, os.lseek, f, size, os.SEEK_HOLE); os.close(f)
s = os.open(A + "/large", os.O_RDONLY); d = os.open(A + "/copy", os.O_RDWR | os.O_CREAT)
os.copy_file_range(s, d, 9 * M, 1, 77); assert os.pread(d, 9 * M, 77) == os.pread(s, 9 * M, 1)
err(errno.EINVAL, os.copy_file_range, d, d, 100, 0, 50); os.close(d); os.close(s)
f = os.open(A + "/far", os.O_RDWR | os.O_CREAT)              # to the last byte that off_t can name
top = (1 << 63) - 1
os.pwrite(f, b"last", top - 4); os.fsync(f); assert os.fstat(f).st_size == top and os.pread(f, 4, top - 4) == b"last"
err(errno.EFBIG, falloc, f, 0, top - 1, 2)
falloc(f, PUNCH | KEEP, 0, top); assert os.pread(f, 4, top - 4) == bytes(4); err(errno.ENXIO, os.lseek, f, 0, os.SEEK_DATA); os.close(f)
P
expect "the calls" python3 "$T/ranges.py" "$M" "$M2"
used_more_than() { [ "$("$ADMIN" --json target list | python3 -c 'import json, sys; print(sum(t["used_bytes"] for t in json.load(sys.stdin)["items"]) >> 20)')" -gt "$1" ]; }
used_less_than() { ! used_more_than "$1"; }
dd if=/dev/urandom of="$M/space" bs=1M count=128 status=none conv=fsync
expect "the space is taken" wait_for 30 used_more_than 127
expect "punch all" fallocate -p -o 0 -l 128M "$M/space"
expect "the space is free again" wait_for 30 used_less_than 60
for d in oss1 oss2 oss3 oss4 mds; do kill_daemon "$d"; done
start_again
for f in small large; do expect "$f after the servers were killed" cmp "$M2/$f" "$M/$f.want"; done
expect "the hole after that" cmp -n 134217728 "$M2/space" /dev/zero
