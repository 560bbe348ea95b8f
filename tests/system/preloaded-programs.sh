#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs that know nothing of aifs read the same bytes with libaifs_preload.so as without, and the bytes come through it.
. "$(dirname "$0")/lib.sh"
preload=$AIFS_BUILD/client/preload/libaifs_preload.so
[ -e "$preload" ] || skip "libaifs_preload.so is not built"
export AIFS_PRELOAD_STATS=$T/stats AIFS_PRELOAD_TIMEOUT=60
with() { env LD_PRELOAD="$preload" LD_LIBRARY_PATH="$AIFS_BUILD/client/lib" "$@"; }
served() { awk '{ n += $2 } END { print n + 0 }' "$T/stats" 2>/dev/null; }
cluster_up --oss 2
head -c 9000001 /dev/urandom >"$T/data"
cp "$T/data" "$M/data" && sync "$M/data"

# dd and its offsets; less than a block at the end
with dd if="$M/data" of="$T/out" bs=1M status=none
expect "dd reads the same" cmp "$T/data" "$T/out"
[ "$(served)" -ge 8388608 ] || fail "dd was served $(served) bytes"
with dd if="$M/data" of="$T/out" bs=1M skip=3 count=2 status=none
expect "dd with skip" cmp <(tail -c +3145729 "$T/data" | head -c 2097152) "$T/out"

# Without root's key there is nothing but the mount, and nobody notices.
chmod 644 "$M/data" && chmod 711 "$T"
with setpriv --reuid=65534 --clear-groups dd if="$M/data" bs=1M status=none >"$T/out" 2>/dev/null
expect "a user without a key" cmp "$T/data" "$T/out"

# A descriptor whose offset is shared: one child reads with us, the next one without, and so on.
{
    with dd bs=1M count=1 status=none
    dd bs=100000 count=1 status=none
    with dd bs=2M count=1 status=none iflag=fullblock
    cat
} <"$M/data" >"$T/out"
expect "one offset for all who share it" cmp "$T/data" "$T/out"

expect "cp" with cp "$M/data" "$T/copy"
expect "the copy" cmp "$T/data" "$T/copy"
expect "cp into the mount" with cp "$T/data" "$M/copy"
expect "what was written" cmp "$T/data" "$M/copy"

# python3: whole files, forks that go on reading, mmap, files that change under one number
: >"$T/stats"
with python3 - "$M" "$T/data" <<'PY' || fail "python3"
import mmap, os, sys
m, b = sys.argv[1], open(sys.argv[2], 'rb').read()
assert open(m + '/data', 'rb').read() == b
f = open(m + '/data', 'rb', buffering=0)
x = f.read(2 << 20)
pids = []
for k in range(4):
    pid = os.fork()
    if not pid:
        fd = os.open(m + '/data', os.O_RDONLY)
        os._exit(os.pread(fd, 3 << 20, k << 20) != b[k << 20:(k << 20) + (3 << 20)])
    pids.append(pid)
assert [os.waitpid(p, 0)[1] for p in pids] == [0] * 4
assert x + f.read(2 << 20) == b[:4 << 20]
assert mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[5000000:] == b[5000000:]
fd = f.fileno()
for k in range(20):  # the same number, another file each time
    with open(m + '/other', 'wb') as o:
        o.write(bytes([k]) * (2 << 20))
    g = os.open(m + '/other', os.O_RDONLY)
    os.dup2(g, fd)
    os.close(g)
    assert os.read(fd, 4 << 20) == bytes([k]) * (2 << 20), k
w = os.open(m + '/data', os.O_RDWR)
os.pwrite(w, b'X' * (1 << 20), 1 << 20)  # seen by who reads at the same time
r = os.open(m + '/data', os.O_RDONLY)
assert os.pread(r, 1 << 20, 1 << 20) == b'X' * (1 << 20)
os.pwrite(w, b[1 << 20:2 << 20], 1 << 20)
assert os.pread(r, 1 << 20, 1 << 20) == b[1 << 20:2 << 20]
buf = [bytearray(1 << 20), bytearray(1 << 20)]
assert os.preadv(r, buf, 77) == 2 << 20 and bytes(buf[0] + buf[1]) == b[77:77 + (2 << 20)]
assert os.pread(r, 2 << 20, len(b) - 5) == b[-5:] and os.pread(r, 2 << 20, len(b)) == b''
PY
[ "$(served)" -ge 40000000 ] || fail "python3 was served $(served) bytes"
# Threads that read while the process ends, and descriptors that are closed behind our back: their number is a socket of
# libaifs next, which it closes itself when the connection breaks.
with timeout 300 python3 - "$M" "$T/data" <<'PY' || fail "python3: ends"
import ctypes, os, stat, sys, threading
m, b = sys.argv[1], open(sys.argv[2], 'rb').read()
def readers(fd):
    begun = threading.Semaphore(0)
    def go():
        while os.pread(fd, 1 << 20, 0):
            begun.release()
    for k in range(4):
        threading.Thread(target=go, daemon=True).start()
    for k in range(8):
        begun.acquire()
for k in range(6):
    pid = os.fork()
    if not pid:
        readers(os.open(m + '/data', os.O_RDONLY))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, k
def sockets():
    return {k for k in range(256) if os.path.exists('/proc/self/fd/%d' % k) and stat.S_ISSOCK(os.fstat(k).st_mode)}
had = sockets()
libc = ctypes.CDLL(None, use_errno=True)
keep = os.open(m + '/data', os.O_RDONLY)
low = [os.open(m + '/copy', os.O_RDONLY) for k in range(8)]
for fd in low:
    assert os.pread(fd, 1 << 20, 0) == b[:1 << 20]
for fd in low:
    assert libc.syscall(436, fd, fd, 0) == 0  # close_range, past the C library
for k in range(2):
    for fd in sockets() - had:
        libc.shutdown(fd, 2)
    assert os.pread(keep, len(b), 0) == b
for fd in sockets() - had: # not ours to close
    try:
        os.close(fd)
        sys.exit('a socket of libaifs was closed')
    except OSError:
        pass
wanted = min(sockets() - had)
os.dup2(keep, wanted) # it goes, and comes back elsewhere
assert os.pread(wanted, 2 << 20, 0) == b[:2 << 20]
assert os.pread(keep, len(b), 0) == b and not stat.S_ISSOCK(os.fstat(wanted).st_mode)
fd = os.open(m + '/data', os.O_RDONLY)
assert os.pread(fd, 2 << 20, 0) == b[:2 << 20]
os.closerange(fd, fd + 1)
again = os.open(m + '/other', os.O_RDONLY)
assert os.pread(again, 2 << 20, 0) == open(m + '/other', 'rb').read()
PY
if command -v fio >/dev/null; then
    with fio --name=v --filename="$M/fio" --rw=write --bs=1M --size=8M --verify=crc32c --do_verify=1 --thread --minimal --verify_state_save=0 >"$T/fio" ||
        fail "fio: $(cat "$T/fio")"
    : >"$T/stats"
    with fio --name=v --filename="$M/fio" --rw=read --bs=1M --size=8M --verify=crc32c --numjobs=2 --ioengine=psync --minimal --verify_state_save=0 >"$T/fio" ||
        fail "fio reads: $(cat "$T/fio")"
    [ "$(served)" -ge 16777216 ] || fail "two processes of fio were served $(served) bytes"
fi

# Who has ended, or is another program now, holds nothing back: a writer does not wait for the session's lease (15 s) to run out.
for end in "sys.exit(0)" "os._exit(0)" "os.execv('/bin/true', ['true'])" "libc.execlp(b'true', b'true', b'x', None)" \
    "libc.execle(b'/usr/bin/env', b'env', b'[', b'a', b'=', b'a', b']', None, None)" "libc.quick_exit(0)"; do
    with python3 - "$M/data" <<PY || fail "$end"
import ctypes, os, sys
libc = ctypes.CDLL(None)
fd = os.open(sys.argv[1], os.O_RDONLY)
def read():
    assert len(os.pread(fd, 1 << 20, 0)) == 1 << 20
read()
try: # one that fails changes nothing
    os.execv('/none', ['none'])
except FileNotFoundError:
    read()
$end
PY
    before=$SECONDS
    dd if=/dev/zero of="$M/data" bs=1M count=1 conv=notrunc,fsync status=none
    [ $((SECONDS - before)) -lt 14 ] || fail "a write waited for a reader that has ended: $end"
done

# Start-up: CPU time of 20 programs that do nothing, with and without
cpu() {
    local TIMEFORMAT='%3U %3S'
    { time for _ in {1..20}; do "$@"; done; } 2>&1 | awk '{ ms += ($1 + $2) * 1000 } END { print int(ms) }'
}
alone=$(cpu env /bin/true) preloaded=$(cpu with /bin/true)
note "20 starts: $preloaded ms of CPU time with, $alone ms without"
