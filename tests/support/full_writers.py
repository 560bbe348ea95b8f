# SPDX-License-Identifier: Apache-2.0
"""Writers on full targets: full_writers.py MOUNT OTHER LIBRARY SOURCE KEY

Each way of writing appends records until there is no room, once what is left was taken by another
file, and again when that is gone. What a write did not take is not in the size, on any mount, and
after an fsync that succeeded every byte of every record that was taken is there.
"""
import ctypes
import errno
import mmap
import os
import sys
import time

HERE, OTHER, LIBRARY, SOURCE, KEY = sys.argv[1:6]
RECORD = 4096
TAKEN = 0


def record(k):
    return (b"%07d " % k) * (RECORD // 8)


class Posix:
    """write(2) at the end of what was written."""

    flags = 0

    def __init__(self, name):
        self.name = name
        self.fd = os.open(f"{HERE}/{name}", os.O_RDWR | os.O_CREAT | self.flags, 0o644)
        self.buf = mmap.mmap(-1, RECORD)  # aligned, as O_DIRECT wants it
        self.end = 0

    def append(self, data):
        self.buf[:] = data
        return os.pwrite(self.fd, self.buf, self.end)

    def fsync(self):
        os.fsync(self.fd)

    def size(self):
        return os.fstat(self.fd).st_size

    def close(self):
        os.close(self.fd)


class WriteOnly(Posix):
    def __init__(self, name):
        super().__init__(name)
        fd = os.open(f"{HERE}/{name}", os.O_WRONLY)
        os.close(self.fd)
        self.fd = fd


class Append(Posix):
    flags = os.O_APPEND

    def append(self, data):
        return os.write(self.fd, data)


class Direct(Posix):
    flags = os.O_DIRECT


class DirectAppend(Append):
    flags = os.O_DIRECT | os.O_APPEND

    def append(self, data):
        self.buf[:] = data
        return os.write(self.fd, self.buf)


class Synchronous(Append):
    flags = os.O_APPEND | os.O_SYNC


class Shared(Append):
    """Another mount has it open for writing: nobody has a lease."""

    def __init__(self, name):
        super().__init__(name)
        self.other = os.open(f"{OTHER}/{name}", os.O_RDWR)

    def close(self):
        os.close(self.other)
        super().close()


class Library:
    """libaifs."""

    lib = fs = None

    def __init__(self, name):
        if not Library.fs:
            Library.lib = ctypes.CDLL(LIBRARY, use_errno=True)
            Library.fs = ctypes.c_void_p()
            for f in ("aifs_open", "aifs_mount_error"):
                getattr(self.lib, f).restype = ctypes.c_void_p
            self.lib.aifs_pwrite.restype = ctypes.c_ssize_t
            self.call("aifs_mount", SOURCE.encode(), b"key_file=" + KEY.encode(), ctypes.byref(Library.fs))
        self.name = name
        self.f = ctypes.c_void_p(self.lib.aifs_open(self.fs, b"/" + name.encode(), os.O_RDWR | os.O_CREAT, 0o644))
        assert self.f.value, os.strerror(ctypes.get_errno())
        self.end = 0

    def call(self, name, *args):
        n = getattr(self.lib, name)(*args)
        if n < 0:
            raise OSError(ctypes.get_errno(), name)
        return n

    def append(self, data):
        return self.call("aifs_pwrite", self.f, data, ctypes.c_size_t(len(data)), ctypes.c_int64(self.end))

    def fsync(self):
        self.call("aifs_fsync", self.f)

    def size(self):
        return os.stat(f"{HERE}/{self.name}").st_size

    def close(self):
        self.call("aifs_close", self.f)


def appended(w, k):
    """One record, or what of it was taken; False: none."""
    try:
        n = w.append(record(k))
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
        n = 0
    w.want += record(k)[:n]
    w.end = len(w.want)
    return n > 0


def sizes_agree(w):
    want = len(w.want)
    seen = w.size(), os.stat(f"{HERE}/{w.name}").st_size, os.stat(f"{OTHER}/{w.name}").st_size
    assert seen == (want, want, want), f"{w.name}: {want} bytes were taken, and it is {seen} long"


def read_all(top, name):
    fd = os.open(f"{top}/{name}", os.O_RDONLY)
    out = b""
    while piece := os.pread(fd, 1 << 20, len(out)):
        out += piece
    os.close(fd)
    return out


def contents_agree(w, top):
    have = read_all(top, w.name)
    if have != w.want:
        at = next((k for k in range(min(len(have), len(w.want))) if have[k] != w.want[k]), min(len(have), len(w.want)))
        sys.exit(f"{w.name} on {top}: {len(have)} bytes instead of {len(w.want)}, the first wrong one at {at}")


def fill(name):
    """Another file takes what is left; its descriptor."""
    fd = os.open(f"{HERE}/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
    at, step = 0, 1 << 20
    while step >= RECORD:
        try:
            at += os.pwrite(fd, bytes([at >> 20 & 255]) * step, at)
        except OSError as e:
            assert e.errno == errno.ENOSPC, e
            assert os.fstat(fd).st_size == at == os.stat(f"{OTHER}/{name}").st_size, (name, at, os.fstat(fd).st_size)
            step //= 4
    return fd


def scene(way):
    name = way.__name__.lower()
    w = way(name)
    w.want = b""
    for k in range(40):
        assert appended(w, k), "no room on empty targets"
    other = fill(f"{name}-other")
    k = 40
    refused = 0
    while refused < 3:  # small files still fit beside it
        refused += not appended(w, k)
        sizes_agree(w)
        k += 1
        assert k < 100000
    os.ftruncate(other, 0)
    os.close(other)
    os.unlink(f"{HERE}/{name}-other")
    until, more = time.monotonic() + 60, 0
    while more < 3:
        more += appended(w, k)
        assert time.monotonic() < until, "the space does not come back"
        k += 1
    w.fsync()
    sizes_agree(w)
    contents_agree(w, HERE)
    contents_agree(w, OTHER)
    w.close()
    return w


ways = [globals()[a] for a in sys.argv[6:]] or [Posix, WriteOnly, Append, Direct, DirectAppend, Synchronous, Shared, Library]
done = [scene(way) for way in ways]
for w in done:
    contents_agree(w, OTHER)
