# SPDX-License-Identifier: Apache-2.0
from rules import *
import mmap, random, subprocess

SIZES = (100, 300000) # in the metadata server; in chunks
aligned = mmap.mmap(-1, 1 << 20)


def direct(path, offset=0):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    n = os.preadv(fd, [aligned], offset)
    os.close(fd)
    return aligned[:n]


@rule("what A has written and closed is read on B")
def _(a, b):
    for size in SIZES:
        for byte in (b"1", b"2"):
            write(f"{a}/{size}", byte * size)
            same(read(f"{b}/{size}"), byte * size)


@rule("what A writes is read by the descriptor that B has opened before, once A has called fsync")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"0" * size)
        with open(f"{b}/{size}", "rb", 0) as f, open(f"{a}/{size}", "r+b", 0) as g:
            same(f.read(size), b"0" * size)
            for i in range(20):
                at = random.randrange(size)
                os.pwrite(g.fileno(), b"%d" % (i % 10), at)
                os.fsync(g.fileno())
                same(os.pread(f.fileno(), 1, at), b"%d" % (i % 10))


@rule("what A appends is read by the descriptor of B")
def _(a, b):
    write(f"{a}/f")
    with open(f"{b}/f", "rb", 0) as f, open(f"{a}/f", "ab", 0) as g:
        same(f.read(), b"x")
        for i in range(20):
            g.write(b"%d" % (i % 10) * 1000)
            same(f.read(), b"%d" % (i % 10) * 1000)


@rule("truncate on A shortens what the descriptor of B reads")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"1" * size)
        with open(f"{b}/{size}", "rb", 0) as f:
            f.read()
            os.truncate(f"{a}/{size}", size // 2)
            same(os.pread(f.fileno(), size, 0), b"1" * (size // 2))
            same(os.fstat(f.fileno()).st_size, size // 2)


@rule("what A cuts off and adds again is zeros on B")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"1" * size)
        same(read(f"{b}/{size}"), b"1" * size)
        os.truncate(f"{a}/{size}", size // 3)
        os.truncate(f"{a}/{size}", size)
        same(read(f"{b}/{size}"), b"1" * (size // 3) + b"\0" * (size - size // 3))


@rule("O_TRUNC on A empties what B has cached")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"1" * size)
        with open(f"{b}/{size}", "rb", 0) as f:
            f.read()
            os.close(os.open(f"{a}/{size}", os.O_WRONLY | os.O_TRUNC))
            same(os.pread(f.fileno(), size, 0), b"")


@rule("appends from both mounts are all there, whole")
def _(a, b):
    os.close(os.open(f"{a}/f", os.O_CREAT))

    def append(path, byte):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        for _ in range(100):
            os.write(fd, byte * 99 + b"\n")
        os.close(fd)
    for t in [thread(append, f"{p}/f", n) for p, n in ((a, b"a"), (b, b"b"))]:
        join(t)
    lines = read(f"{a}/f").split(b"\n")
    same(sorted(lines), [b""] + [b"a" * 99] * 100 + [b"b" * 99] * 100)
    same(read(f"{b}/f").split(b"\n"), lines)


@rule("writes of both mounts at different places of one block are all kept")
def _(a, b):
    for size in SIZES:
        write(f"{a}/{size}", b"." * size)

        def put(path, start):
            fd = os.open(path, os.O_WRONLY)
            for at in range(start, 100, 2):
                os.pwrite(fd, b"%d" % start, at)
            os.close(fd)
        for t in [thread(put, f"{p}/{size}", n) for p, n in ((a, 0), (b, 1))]:
            join(t)
        same(read(f"{a}/{size}"), b"01" * 50 + b"." * (size - 100))
        same(read(f"{b}/{size}"), read(f"{a}/{size}"))


@rule("O_DIRECT on B reads what A has written and not yet flushed")
def _(a, b):
    for size in SIZES:
        fd = os.open(f"{a}/{size}", os.O_CREAT | os.O_RDWR)
        for byte in (b"1", b"2"):
            os.pwrite(fd, byte * size, 0)
            same(direct(f"{b}/{size}"), byte * size)
        os.close(fd)


@rule("O_DIRECT of A, of any length at any place, is read on B")
def _(a, b):
    write(f"{b}/f", b"0" * 200000)
    want = bytearray(b"0" * 200000)
    fd = os.open(f"{a}/f", os.O_RDWR | os.O_DIRECT)
    for i in range(20):
        at, n = random.randrange(190000), random.randrange(1, 9000)
        os.pwrite(fd, bytes([65 + i]) * n, at)
        want[at:at + n] = bytes([65 + i]) * n
    os.close(fd)
    same(read(f"{b}/f"), bytes(want))


@rule("what B has listed after a small file grew on A may be written and made longer there")
def _(a, b):
    for change in (lambda fd: os.pwrite(fd, b"2" * 90000, 100), lambda fd: os.posix_fallocate(fd, 0, 90100)):
        fd = os.open(f"{a}/f", os.O_RDWR | os.O_CREAT)
        gd = os.open(f"{b}/f", os.O_RDWR)
        os.pwrite(fd, b"1" * 17000, 60000)
        os.fsync(fd)
        os.listdir(b)  # with attributes, but not where the chunks are
        change(gd)
        os.close(gd)
        os.close(fd)
        same(os.stat(f"{a}/f").st_size, 90100)
        os.unlink(f"{a}/f")


@rule("what A writes with O_SYNC is read by the descriptor of B once A has closed")
def _(a, b):
    write(f"{b}/f", b"0" * 50000)
    with open(f"{b}/f", "rb", 0) as f:
        f.read()
        fd = os.open(f"{a}/f", os.O_WRONLY | os.O_SYNC)
        os.pwrite(fd, b"1", 40000)
        os.close(fd)
        same(os.pread(f.fileno(), 1, 40000), b"1")


@rule("a mapping that B makes shows what A has written and closed")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"0" * size)
        for byte in (b"1", b"2"):
            write(f"{a}/{size}", byte * size)
            with open(f"{b}/{size}", "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                same(m[:], byte * size)


@rule("what A stores through a mapping is read on B after msync")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"0" * size)
        same(read(f"{b}/{size}"), b"0" * size)
        with open(f"{a}/{size}", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            m[10:20] = b"1" * 10
            m.flush()
            same(read(f"{b}/{size}")[10:20], b"1" * 10)


@rule("what A stores through a mapping is read on B after close")
def _(a, b):
    write(f"{b}/f", b"0" * 9000)
    read(f"{b}/f")
    with open(f"{a}/f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[5000:5010] = b"1" * 10
    same(read(f"{b}/f")[5000:5010], b"1" * 10)


@rule("a private mapping of B changes nothing on A")
def _(a, b):
    write(f"{a}/f", b"0" * 9000)
    with open(f"{b}/f", "rb") as f, mmap.mmap(f.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as m:
        m[:10] = b"1" * 10
    same(read(f"{a}/f"), b"0" * 9000)


@rule("a file that A replaces by rename is read whole on B, old or new")
def _(a, b):
    write(f"{a}/f", b"00" * 5000)
    stop = []

    def replace():
        for i in range(60):
            write(f"{a}/new", b"%02d" % i * 5000)
            os.rename(f"{a}/new", f"{a}/f")
        stop.append(1)
    t = thread(replace)
    last = -1
    while not stop:
        try:
            d = read(f"{b}/f")
        except OSError as e: # replaced twice between its look-ups and its opens
            same(e.errno, errno.ESTALE)
            continue
        assert d == d[:2] * 5000, "a mixture"
        assert int(d[:2]) >= last or last == -1, "backwards"
        last = int(d[:2])
    join(t)
    same(read(f"{b}/f"), b"59" * 5000)


@rule("a file that A lets grow from small to large is read right on B all the way")
def _(a, b):
    want = b""
    fd = os.open(f"{a}/f", os.O_CREAT | os.O_WRONLY)
    for i in range(30):
        piece = bytes([65 + i]) * (1 + 173 * i * i)
        os.write(fd, piece)
        want += piece
        same(read(f"{b}/f"), want)
    os.close(fd)


@rule("holes that A leaves are zeros on B")
def _(a, b):
    fd = os.open(f"{a}/f", os.O_CREAT | os.O_WRONLY)
    os.pwrite(fd, b"1", 3 << 20)
    os.close(fd)
    same(read(f"{b}/f"), b"\0" * (3 << 20) + b"1")


@rule("a script that A has replaced runs as the new on B")
def _(a, b):
    for i in range(5):
        write(f"{a}/new", b"#!/bin/sh\necho %d\n" % i)
        os.chmod(f"{a}/new", 0o755)
        os.rename(f"{a}/new", f"{a}/run")
        same(subprocess.check_output([f"{b}/run"]), b"%d\n" % i)


@rule("copy_file_range on A makes a file that is equal on B")
def _(a, b):
    data = random.randbytes(700000)
    write(f"{b}/f", data)
    i, o = os.open(f"{a}/f", os.O_RDONLY), os.open(f"{a}/g", os.O_CREAT | os.O_WRONLY)
    n = 0
    while n < len(data):
        n += os.copy_file_range(i, o, len(data) - n)
    os.close(i)
    os.close(o)
    same(read(f"{b}/g"), data)


@rule("fsync on A of a file that B is writing too loses nothing of either")
def _(a, b):
    x, y = (os.open(f"{p}/f", os.O_CREAT | os.O_RDWR) for p in (a, b))
    for i in range(20):
        os.pwrite(x, b"1" * 100, i * 200)
        os.pwrite(y, b"2" * 100, i * 200 + 100)
        os.fsync(x)
    os.fsync(y)
    same(os.pread(x, 9999, 0), (b"1" * 100 + b"2" * 100) * 20)
    os.close(x)
    os.close(y)


@rule("a file that A has unlinked is read and written on by B, which has it open")
def _(a, b):
    for size in SIZES:
        write(f"{b}/{size}", b"1" * size)
        fd = os.open(f"{b}/{size}", os.O_RDWR)
        os.unlink(f"{a}/{size}")
        same(os.pread(fd, size, 0), b"1" * size)
        os.pwrite(fd, b"2" * size, size)
        os.fsync(fd)
        same((os.fstat(fd).st_size, os.fstat(fd).st_nlink), (2 * size, 0))
        same(os.pread(fd, size, size), b"2" * size)
        os.ftruncate(fd, 5)
        same(os.pread(fd, size, 0), b"1" * 5)
        os.close(fd)


@rule("a name that A makes again is another file than the one B holds")
def _(a, b):
    write(f"{b}/f", b"1")
    fd = os.open(f"{b}/f", os.O_RDWR)
    os.unlink(f"{a}/f")
    write(f"{a}/f", b"2")
    os.pwrite(fd, b"3", 0)
    os.fsync(fd)
    same((read(f"{b}/f"), os.pread(fd, 1, 0)), (b"2", b"3"))
    assert os.fstat(fd).st_ino != os.stat(f"{b}/f").st_ino
    os.close(fd)


@rule("an unlinked file lives until the last of both mounts has closed it")
def _(a, b):
    write(f"{a}/f", b"1" * 300000)
    x, y = (os.open(f"{p}/f", os.O_RDWR) for p in (a, b))
    os.unlink(f"{a}/f")
    os.close(x)
    same(os.pread(y, 10, 290000), b"1" * 10)
    os.pwrite(y, b"2", 299999)
    os.fsync(y)
    same(os.pread(y, 9, 299999), b"2")
    os.close(y)


@rule("an unlinked file is given a name by nobody")
def _(a, b):
    write(f"{b}/f")
    fd = os.open(f"{b}/f", os.O_RDWR)
    os.unlink(f"{a}/f")
    same(libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, os.fsencode(f"{b}/g"), 0x400), -1)
    same(ctypes.get_errno(), errno.ENOENT)
    os.close(fd)


if __name__ == "__main__":
    run(*sys.argv[1:])
