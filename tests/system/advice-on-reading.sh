#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program says of its reading is followed: pages come before they are read where they are said to be needed (posix_fadvise, readahead, madvise), go where they are not, and come
# alone where reading is at random; a page fault brings its neighbours.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
head -c 9M /dev/urandom >"$M/f" && cp "$M/f" "$T/f" && sync "$M/f"
remount # or its pages are here
expect "advice is followed" python3 - "$M/f" "$T/f" <<'P'
import ctypes, mmap, os, select, sys, time
PAGE, MIB, FOLIO = 4096, 1 << 20, 16 # pages that a kernel may keep as one
libc = ctypes.CDLL(None, use_errno=True)
for f in (libc.mmap, libc.mincore, libc.madvise, libc.readahead):
    f.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
size = os.stat(sys.argv[1]).st_size
true = open(sys.argv[2], "rb").read()
fd = os.open(sys.argv[1], os.O_RDONLY)

def mapped():
    at = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
    assert at not in (None, 2**64 - 1), os.strerror(ctypes.get_errno())
    return at
look = mapped()  # nothing is ever touched through it: what is mapped would not go
def here(start, length):  # pages that the kernel has
    vec = (ctypes.c_ubyte * (length // PAGE))()
    assert libc.mincore(ctypes.c_void_p(look + start), ctypes.c_size_t(length), vec) == 0, os.strerror(ctypes.get_errno())
    return sum(v & 1 for v in vec)
def comes(what, start, length):
    end = time.monotonic() + 60
    while here(start, length) < length // PAGE:
        assert time.monotonic() < end, f"{what}: {here(start, length)} of {length // PAGE} pages have come"
        select.select([], [], [], 0.01)
    print("--", what)
def said(rc):
    assert rc == 0, os.strerror(ctypes.get_errno())

assert here(0, size) == 0
os.posix_fadvise(fd, 1 * MIB, MIB, os.POSIX_FADV_WILLNEED)
comes("POSIX_FADV_WILLNEED", 1 * MIB, MIB)
said(libc.readahead(fd, ctypes.c_long(3 * MIB), ctypes.c_size_t(MIB)))
comes("readahead", 3 * MIB, MIB)
said(libc.madvise(ctypes.c_void_p(look + 5 * MIB), ctypes.c_size_t(MIB), mmap.MADV_WILLNEED))
comes("MADV_WILLNEED", 5 * MIB, MIB)
assert os.pread(fd, MIB, MIB) == true[MIB:2 * MIB] and os.pread(fd, MIB, 5 * MIB) == true[5 * MIB:6 * MIB]
assert here(7 * MIB, 2 * MIB) == 0, "nobody has asked for these"

os.posix_fadvise(fd, 1 * MIB, MIB, os.POSIX_FADV_DONTNEED)
assert here(1 * MIB, MIB) == 0, f"POSIX_FADV_DONTNEED: {here(1 * MIB, MIB)} pages are still there"

at = 7 * MIB + 64 * PAGE
said(libc.madvise(ctypes.c_void_p(mine := mapped()), ctypes.c_size_t(size), mmap.MADV_RANDOM))
assert ctypes.string_at(mine + at, 8) == true[at:at + 8]
assert here(7 * MIB, 2 * MIB) <= FOLIO, f"MADV_RANDOM: {here(7 * MIB, 2 * MIB)} pages for a fault"
other = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(other, 0, 0, os.POSIX_FADV_RANDOM)
assert os.pread(other, PAGE, at + 128 * PAGE) == true[at + 128 * PAGE:at + 129 * PAGE]
assert here(7 * MIB, 2 * MIB) <= 2 * FOLIO, f"POSIX_FADV_RANDOM: {here(7 * MIB, 2 * MIB)} pages for a fault and a read of one"

os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
first = mapped()
assert ctypes.string_at(first + 2 * MIB, 8) == true[2 * MIB:2 * MIB + 8]
comes("a page fault brings half a megabyte on either side", 3 * MIB // 2, MIB)
P
