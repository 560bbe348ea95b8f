# SPDX-License-Identifier: Apache-2.0
"""Around crashes of the metadata server: killed.py MOUNT MOUNT. Says "kill" and reads a line when the server is up again; "done" at the end."""
from rules import *
import fcntl

mounts = sys.argv[1:]
ROUNDS, FILES, SIZES = 2, 30, (100, 200000)


def refused(f):
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        return e.errno == errno.EAGAIN
    return False


def body(i, r):
    return b"%02d" % (r * 10 + i % 10) * SIZES[i % 2]


for r in range(ROUNDS):
    a, b = (mounts, mounts[::-1])[r % 2]
    d = f"round{r}"
    os.mkdir(f"{a}/{d}")
    for i in range(FILES):
        write(f"{a}/{d}/{i}", body(i, 0))
        write(f"{a}/{d}/gone{i}", body(i, 1))
    # leases: B has read and listed everything; A writes files that it has not closed
    assert all(read(f"{b}/{d}/{i}") == body(i, 0) for i in range(FILES)), "before"
    kept = os.listdir(f"{b}/{d}")
    held = [open(f"{b}/{d}/{i}", "rb", 0) for i in range(FILES)]
    dirty = [open(f"{a}/{d}/dirty{i}", "w+b", 0) for i in range(FILES)]
    for i, f in enumerate(dirty):
        f.write(body(i, 2))
    # locks, of both
    locks = [open(f"{m}/{d}/lock{n}", "w+b", 0) for n, m in enumerate((a, b))]
    for f in locks:
        fcntl.flock(f, fcntl.LOCK_EX)
    # files without a name, open on the mount that has not removed them
    orphans = [open(f"{b}/{d}/gone{i}", "r+b", 0) for i in range(FILES)]
    for i in range(FILES):
        os.unlink(f"{a}/{d}/gone{i}")
    print("kill", flush=True)
    sys.stdin.readline()
    # what A changes now, first thing after the crash, B sees in spite of all it had
    for i in range(FILES):
        write(f"{a}/{d}/new", body(i, 3))
        os.rename(f"{a}/{d}/new", f"{a}/{d}/{i}")
        assert read(f"{b}/{d}/{i}") == body(i, 3), "a stale read"
        assert held[i].read() == body(i, 0), "what was open is another file now"
    for n, m in enumerate((b, a)):
        with open(f"{m}/{d}/lock{n}", "r+b", 0) as f:
            assert refused(f), "a lock was lost"
    for i, f in enumerate(orphans):
        assert f.read() == body(i, 1), "a file without a name has lost its content"
        f.seek(0)
        f.write(b"!")
        os.fsync(f.fileno())
        f.seek(0)
        assert f.read(1) == b"!" and os.fstat(f.fileno()).st_nlink == 0
    for i, f in enumerate(dirty):
        os.fsync(f.fileno())
        assert read(f"{b}/{d}/dirty{i}") == body(i, 2), "what was written before the crash is not there"
    want = sorted([str(i) for i in range(FILES)] + [f"dirty{i}" for i in range(FILES)] + ["lock0", "lock1"])
    assert sorted(os.listdir(f"{a}/{d}")) == want == sorted(os.listdir(f"{b}/{d}")), "names"
    for f in held + dirty + locks + orphans:
        f.close()
print("done", flush=True)
