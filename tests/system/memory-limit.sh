#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A mount with memory_limit=128Mi never takes more, whatever is done with it: long writes and reads, many open files, mappings, scattered writes, many names.
. "$(dirname "$0")/lib.sh"
limit_kib=131072
"$ADMIN" -q demo up --dir "$C" || fail "the cluster does not come up"
expect "mount" "$ADMIN" -q demo mount --dir "$C" -o memory_limit=128Mi "$M"
pids=$(pgrep -f -- "aifs-mount.* $M ") || fail "no mount daemon"
# the most it ever had, of its own and of the pages of files it maps
check() {
    local most
    # shellcheck disable=SC2016,SC2086 # awk's own; a list of numbers
    most=$(printf '/proc/%s/status\n' $pids | xargs awk '/^VmHWM:/{sum += $2} END {print sum}') || fail "$1: the daemon is gone"
    note "$1: $((most / 1024)) MiB"
    [ "$most" -le "$limit_kib" ] || fail "$1: took $((most / 1024)) of 128 MiB"
}
check "mounted"
head -c 300M /dev/zero >"$M/long" || fail "writing"
check "a long write"
echo 1 >/proc/sys/vm/drop_caches
readers=()
for i in 0 1 2 3; do
    dd if="$M/long" of=/dev/null bs=1M skip=$((i * 60)) status=none &
    readers+=($!)
done
wait "${readers[@]}" || fail "reading"
check "four readers"
writers=()
for i in $(seq 16); do
    head -c 12M /dev/zero >"$M/w$i" &
    writers+=($!)
done
wait "${writers[@]}" || fail "writing side by side"
check "sixteen writers"
python3 - "$M" <<'EOF' || fail "the rest of the load"
import mmap, os, random, sys
top, rnd = sys.argv[1], random.Random(1)
os.mkdir(top + "/many")
opened = [os.open(f"{top}/many/{n}", os.O_RDWR | os.O_CREAT) for n in range(600)]
for fd in opened:  # one block each, all dirty at once
    os.pwrite(fd, b"x" * 70000, 0)
for fd in opened:
    assert os.pread(fd, 10, 69990) == b"x" * 10
    os.close(fd)
fd = os.open(top + "/long", os.O_RDWR)
for _ in range(4000):
    os.pwrite(fd, b"y" * 4096, rnd.randrange(70000) * 4096)
os.fsync(fd)
with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
    for _ in range(2000):
        assert m[rnd.randrange(300 << 20)] in b"\0y"
os.close(fd)
for n in range(4000):
    os.close(os.open(f"{top}/name{n}", os.O_RDWR | os.O_CREAT))
assert len([e.stat() for e in os.scandir(top)]) == 4018
os.mkdir(top + "/small")
opened = [os.open(f"{top}/small/{n}", os.O_RDWR | os.O_CREAT) for n in range(600)]
for n, fd in enumerate(opened):  # more than there are buffers for small files
    os.write(fd, b"%d" % (n % 10) * 3000)
for n, fd in enumerate(opened):
    assert os.pread(fd, 3000, 0) == b"%d" % (n % 10) * 3000
    os.close(fd)
EOF
check "open files, scattered writes, a mapping, names"
python3 - "$M" <<'EOF' || fail "directories read in part"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SYS_getdents64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]
buf = ctypes.create_string_buffer(32768)
def names(fd):
    n, at, out = libc.syscall(SYS_getdents64, fd, buf, len(buf)), 0, []
    assert n >= 0, os.strerror(ctypes.get_errno())
    while at < n:
        size = int.from_bytes(buf.raw[at + 16:at + 18], "little")
        out.append(buf.raw[at + 19:at + size].split(b"\0")[0])
        at += size
    return out
opened = [os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY) for _ in range(500)]
seen = [names(fd) + names(fd) for fd in opened]
assert len(open(sys.argv[1] + "/long", "rb").read(10)) == 10
for fd, first in zip(opened, seen):
    while more := names(fd):
        first += more
    assert len(set(first)) == len(first) == 4021, len(first)
    os.close(fd)
EOF
check "directories read in part"
