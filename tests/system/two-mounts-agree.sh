#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file open on two mounts: what one writes the other reads at once; a replaced file is found by its name although the old one is remembered.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
python3 - "$M" "$M2" <<'P' || fail "the mounts disagree"
import mmap, os, random, sys
one, two = sys.argv[1:]
m = mmap.mmap(-1, 4096)
for size in (1000, 3000000):
    a = os.open(f"{one}/f{size}", os.O_CREAT | os.O_RDWR)
    os.pwrite(a, b"a" * size, 0)
    b = os.open(f"{two}/f{size}", os.O_RDONLY)
    d = os.open(f"{two}/f{size}", os.O_RDONLY | os.O_DIRECT)
    assert os.pread(b, size, 0) == b"a" * size
    for i in range(200):
        byte, at = bytes([65 + i % 50]), random.randrange(size)
        os.pwrite(a, byte, at)
        assert os.pread(b, 1, at) == byte, (size, i, "read")
        os.preadv(d, [m], at - at % 4096)
        assert m[at % 4096 : at % 4096 + 1] == byte, (size, i, "direct read")
    for i in range(50):
        os.pwrite(a, b"z" * 10, size + i * 10)
        assert os.fstat(b).st_size == size + i * 10 + 10, (size, i, "size")
os.mkdir(f"{one}/dir")
held = [open(f"{one}/dir/{i}", "w") for i in range(300)]
for i, f in enumerate(held):
    f.write("x" * i)
    f.flush()
assert sorted(map(int, os.listdir(f"{two}/dir"))) == list(range(300)), "names of files being written"
assert all(e.stat().st_size == int(e.name) for e in os.scandir(f"{two}/dir")), "sizes of files being written"
for i in range(50):
    here, there = (one, two) if i % 2 else (two, one)
    with open(f"{here}/new", "w") as f:
        f.write(str(i))
    if i % 4 < 2:
        os.rename(f"{here}/new", f"{here}/name")
    else:
        os.rename(f"{here}/new", f"{here}/other")
        if os.path.exists(f"{here}/name"):
            os.unlink(f"{here}/name")
        os.link(f"{here}/other", f"{here}/name")
        os.unlink(f"{here}/other")
    assert open(f"{there}/name").read() == str(i), (i, "replaced")
P
