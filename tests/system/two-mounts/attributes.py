# SPDX-License-Identifier: Apache-2.0
from rules import *
import struct, time

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(uid, perm, mask=7, other=0):
    none = 0xffffffff
    entries = ((1, 7, none), (2, perm, uid), (4, 0, none), (16, mask, none), (32, other, none))
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


def mode(path):
    return os.stat(path).st_mode & 0o7777


@rule("fallocate on A is a change of the file, also when it is neither longer nor has other bytes")
def _(a, b):
    for size in (0, 100, 100000):
        write(f"{a}/{size}", b"1" * size)
        fd = os.open(f"{a}/{size}", os.O_RDWR)
        for mode in (0, 1) if size else (1,):
            os.utime(f"{b}/{size}", (10**9, 10**9))
            assert libc.fallocate(fd, mode, ctypes.c_int64(0), ctypes.c_int64(size or 4096)) == 0
            os.fsync(fd)
            assert os.stat(f"{a}/{size}").st_mtime > 10**9
            assert os.stat(f"{b}/{size}").st_mtime > 10**9
            same(read(f"{b}/{size}"), b"1" * size)
        os.close(fd)


@rule("a time that B sets of a file that A has written and still has open stays when both read it")
def _(a, b):
    fd = os.open(f"{a}/f", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"1" * 100, 0)
    os.fsync(fd)
    os.utime(f"{b}/f", (10**9, 10**9))
    for path in (a, b, a):
        read(f"{path}/f")
        same(os.stat(f"{b}/f").st_mtime, 10**9)
        same(os.stat(f"{a}/f").st_mtime, 10**9)
    os.close(fd)
    same(os.stat(f"{b}/f").st_mtime, 10**9)


@rule("chmod on A is seen on B")
def _(a, b):
    write(f"{b}/f")
    mode(f"{b}/f")
    os.chmod(f"{a}/f", 0o4751)
    same(mode(f"{b}/f"), 0o4751)


@rule("fchmod on A is seen by the descriptor of B")
def _(a, b):
    write(f"{b}/f")
    with open(f"{b}/f") as f, open(f"{a}/f") as g:
        os.fchmod(g.fileno(), 0o711)
        same(os.fstat(f.fileno()).st_mode & 0o777, 0o711)


@rule("chown on A is seen on B, and clears set-user-id there")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o6755)
    os.chown(f"{a}/f", 11, 12)
    s = os.stat(f"{b}/f")
    same((s.st_uid, s.st_gid, s.st_mode & 0o7777), (11, 12, 0o755))


@rule("who may no longer open a file on B cannot, from the chmod of A on")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o644)
    same(as_user(1234, lambda: open(f"{b}/f").close()), 0)
    os.chmod(f"{a}/f", 0o600)
    same(as_user(1234, lambda: open(f"{b}/f").close()), errno.EACCES)
    os.chmod(f"{a}/f", 0o644)
    same(as_user(1234, lambda: open(f"{b}/f").close()), 0)


@rule("a path that B has walked is closed when A takes the search permission")
def _(a, b):
    os.makedirs(f"{b}/d/e")
    write(f"{b}/d/e/f")
    same(as_user(1234, lambda: os.stat(f"{b}/d/e/f")), 0)
    os.chmod(f"{a}/d", 0o700)
    same(as_user(1234, lambda: os.stat(f"{b}/d/e/f")), errno.EACCES)


@rule("a process that has the file open on B goes on when A takes the permission")
def _(a, b):
    write(f"{b}/f", b"1")
    with open(f"{b}/f", "rb") as f:
        os.chmod(f"{a}/f", 0)
        same(f.read(), b"1")


@rule("an access list that A sets holds on B, which has checked the old")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o640)
    may = lambda: as_user(1234, lambda: open(f"{b}/f").close())
    same(may(), errno.EACCES)
    os.setxattr(f"{a}/f", ACCESS, acl(1234, 4))
    same(may(), 0)
    os.setxattr(f"{a}/f", ACCESS, acl(1234, 0))
    same(may(), errno.EACCES)
    os.setxattr(f"{a}/f", ACCESS, acl(1234, 7))
    same(may(), 0)
    os.chmod(f"{a}/f", 0o600 | 0o010)
    same(may(), errno.EACCES)
    os.removexattr(f"{a}/f", ACCESS)
    same(may(), errno.EACCES)


@rule("an access list of a directory closes the path on B")
def _(a, b):
    os.mkdir(f"{b}/d")
    write(f"{b}/d/f")
    may = lambda: as_user(1234, lambda: os.stat(f"{b}/d/f"))
    same(may(), 0)
    os.setxattr(f"{a}/d", ACCESS, acl(1234, 6, other=5))
    same(may(), errno.EACCES)
    same(as_user(1235, lambda: os.stat(f"{b}/d/f")), 0)
    os.setxattr(f"{a}/d", ACCESS, acl(1234, 1))
    same(may(), 0)


@rule("a default list that A sets is inherited by what B makes")
def _(a, b):
    os.setxattr(a, DEFAULT, acl(1234, 6, other=0))
    write(f"{b}/f")
    same(mode(f"{a}/f"), 0o660)
    same(as_user(1234, lambda: open(f"{a}/f", "r+").close()), 0)
    os.mkdir(f"{b}/d")
    same(os.getxattr(f"{a}/d", DEFAULT), os.getxattr(b, DEFAULT))
    os.removexattr(a, DEFAULT)
    write(f"{b}/g")
    is_error(errno.ENODATA, os.getxattr, f"{a}/g", ACCESS)


@rule("set-group-id of a directory, set on A, is inherited on B")
def _(a, b):
    os.chown(a, 0, 77)
    os.chmod(a, 0o2775)
    write(f"{b}/f")
    os.mkdir(f"{b}/d")
    same((os.stat(f"{a}/f").st_gid, os.stat(f"{a}/d").st_gid, bool(mode(f"{a}/d") & 0o2000)), (77, 77, True))


@rule("the sticky bit that A sets protects on B")
def _(a, b):
    os.chmod(a, 0o777)
    write(f"{b}/f")
    write(f"{b}/g")
    same(as_user(1234, lambda: os.unlink(f"{b}/g")), 0)
    os.chmod(a, 0o1777)
    same(as_user(1234, lambda: os.unlink(f"{b}/f")), errno.EPERM)
    same(as_user(1234, lambda: os.rename(f"{b}/f", f"{b}/g")), errno.EPERM)


@rule("a write by a user on B takes the set-id bits that A has set meanwhile")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o666)

    def change():
        fd = os.open(f"{b}/f", os.O_WRONLY)
        os.write(fd, b"1")
        os.close(fd)
    os.chmod(f"{a}/f", 0o6777)
    same(as_user(1234, change), 0)
    same(mode(f"{a}/f"), 0o777)


@rule("truncate by a user takes set-id bits, seen on the other mount")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o6777)
    same(mode(f"{a}/f"), 0o6777)
    same(as_user(1234, lambda: os.truncate(f"{b}/f", 0)), 0)
    same(mode(f"{a}/f"), 0o777)


@rule("capabilities that A gives a program end with a write on B, which has it open")
def _(a, b):
    cap = struct.pack("<5I", 0x02000001, 0x400, 0, 0, 0)
    fd = os.open(f"{b}/f", os.O_CREAT | os.O_RDWR)
    os.write(fd, b"1")
    os.setxattr(f"{a}/f", "security.capability", cap)
    same(os.getxattr(f"{b}/f", "security.capability"), cap)
    os.write(fd, b"2")
    os.close(fd)
    is_error(errno.ENODATA, os.getxattr, f"{a}/f", "security.capability")
    is_error(errno.ENODATA, os.getxattr, f"{b}/f", "security.capability")


@rule("capabilities stay when nobody writes: they are set before a close on A, and B opens the file for writing")
def _(a, b):
    cap = struct.pack("<5I", 0x02000001, 0x400, 0, 0, 0)
    with open(f"{a}/f", "wb") as f:
        f.write(b"12345")
        f.flush()
        os.setxattr(f.fileno(), "security.capability", cap)
    fd = os.open(f"{b}/f", os.O_RDWR)
    same(read(f"{a}/f"), b"12345")  # which takes B's lease back
    os.close(fd)
    for path in (a, b):
        same(os.getxattr(f"{path}/f", "security.capability"), cap)


@rule("capabilities end with truncate and chown on the other mount")
def _(a, b):
    cap = struct.pack("<5I", 0x02000001, 0x400, 0, 0, 0)
    for change in (lambda p: os.truncate(p, 1), lambda p: os.chown(p, 5, 5)):
        write(f"{b}/f", b"12345")
        os.setxattr(f"{a}/f", "security.capability", cap)
        change(f"{b}/f")
        is_error(errno.ENODATA, os.getxattr, f"{a}/f", "security.capability")


@rule("one of a hundred groups is enough on B when A gives the file to it")
def _(a, b):
    write(f"{b}/f")
    os.chmod(f"{b}/f", 0o660)
    groups = list(range(5000, 5100))
    same(as_user(1234, lambda: open(f"{b}/f").close(), groups), errno.EACCES)
    os.chown(f"{a}/f", 0, 5099)
    same(as_user(1234, lambda: open(f"{b}/f", "r+").close(), groups), 0)


@rule("times that A sets are seen on B to the nanosecond")
def _(a, b):
    write(f"{b}/f")
    os.utime(f"{a}/f", ns=(1234567890123456789, -987654321))
    s = os.stat(f"{b}/f")
    same((s.st_atime_ns, s.st_mtime_ns), (1234567890123456789, -987654321))


@rule("every change of A moves ctime forward on B")
def _(a, b):
    write(f"{b}/f")
    last = os.stat(f"{b}/f").st_ctime_ns
    for change in (lambda p: os.chmod(p, 0o600), lambda p: os.chown(p, 1, 1), lambda p: os.link(p, p + "l"), lambda p: os.unlink(p + "l"),
                   lambda p: os.utime(p, ns=(1, 1)), lambda p: os.setxattr(p, "user.x", b"1"), lambda p: os.truncate(p, 9),
                   lambda p: os.rename(p, p + "2"), lambda p: os.rename(p + "2", p)):
        where = change(f"{a}/f")
        path = f"{b}/f" if os.path.exists(f"{b}/f") else f"{b}/f2"
        now = os.stat(path).st_ctime_ns
        assert now > last, (now, last)
        last = now


@rule("names that A makes and removes move the directory's times on B")
def _(a, b):
    last = os.stat(b)
    for change in (lambda: write(f"{a}/f"), lambda: os.rename(f"{a}/f", f"{a}/g"), lambda: os.unlink(f"{a}/g"), lambda: os.mkdir(f"{a}/d"),
                   lambda: os.rmdir(f"{a}/d")):
        change()
        now = os.stat(b)
        assert now.st_mtime_ns > last.st_mtime_ns and now.st_ctime_ns > last.st_ctime_ns
        last = now


@rule("stat on B tells size and mtime of what A is still writing")
def _(a, b):
    fd = os.open(f"{a}/f", os.O_CREAT | os.O_WRONLY)
    last = os.stat(f"{b}/f").st_mtime_ns
    for size in (1, 5000, 100000):
        os.pwrite(fd, b"x", size - 1)
        s = os.stat(f"{b}/f")
        assert s.st_size == size and s.st_mtime_ns >= last, (s, last)
        last = s.st_mtime_ns
    os.close(fd)


@rule("a listing with attributes on B tells the sizes of what A is still writing")
def _(a, b):
    fds = [os.open(f"{a}/{i}", os.O_CREAT | os.O_WRONLY) for i in range(20)]
    for i, fd in enumerate(fds):
        os.write(fd, b"x" * i)
    same({e.name: e.stat().st_size for e in os.scandir(b)}, {str(i): i for i in range(20)})
    for fd in fds:
        os.close(fd)


@rule("listing with attributes in a loop on B, beside a writer on A, never tells sizes or times that go back")
def _(a, b):
    stop = []

    def work():
        fds = [os.open(f"{a}/{i}", os.O_CREAT | os.O_WRONLY | os.O_APPEND) for i in range(5)]
        for n in range(400):
            os.write(fds[n % 5], b"x" * 500)
        for fd in fds:
            os.close(fd)
        stop.append(1)
    t = thread(work)
    last = {}
    while True:
        end = bool(stop)
        for e in os.scandir(b):
            s = e.stat()
            now = (s.st_size, s.st_mtime_ns, s.st_ctime_ns)
            assert all(x <= y for x, y in zip(last.get(e.name, now), now)), (e.name, last[e.name], now)
            last[e.name] = now
        if end:
            break
    join(t)
    same({n: v[0] for n, v in last.items()}, {str(i): 40000 for i in range(5)})


@rule("extended attributes that A sets, changes and removes are so on B")
def _(a, b):
    write(f"{b}/f")
    is_error(errno.ENODATA, os.getxattr, f"{b}/f", "user.x")
    os.setxattr(f"{a}/f", "user.x", b"1")
    same(os.getxattr(f"{b}/f", "user.x"), b"1")
    os.setxattr(f"{a}/f", "user.x", b"2" * 60000)
    same(os.getxattr(f"{b}/f", "user.x"), b"2" * 60000)
    os.removexattr(f"{a}/f", "user.x")
    is_error(errno.ENODATA, os.getxattr, f"{b}/f", "user.x")
    same(os.listxattr(f"{b}/f"), [])


@rule("XATTR_CREATE and XATTR_REPLACE on A know what B has done")
def _(a, b):
    write(f"{a}/f")
    os.setxattr(f"{b}/f", "user.x", b"1")
    is_error(errno.EEXIST, os.setxattr, f"{a}/f", "user.x", b"2", os.XATTR_CREATE)
    os.removexattr(f"{b}/f", "user.x")
    is_error(errno.ENODATA, os.setxattr, f"{a}/f", "user.x", b"2", os.XATTR_REPLACE)


@rule("trusted attributes that A sets are root's on B")
def _(a, b):
    write(f"{b}/f")
    os.setxattr(f"{a}/f", "trusted.x", b"1")
    os.setxattr(f"{a}/f", "user.x", b"1")
    same(sorted(os.listxattr(f"{b}/f")), ["trusted.x", "user.x"])
    same(as_user(1234, lambda: os.listxattr(f"{b}/f").index("user.x")), 0)
    same(as_user(1234, lambda: os.getxattr(f"{b}/f", "trusted.x")), errno.ENODATA)


@rule("free space and files are the same on both")
def _(a, b):
    s, t = os.statvfs(a), os.statvfs(b)
    same((s.f_bsize, s.f_frsize, s.f_namemax), (t.f_bsize, t.f_frsize, t.f_namemax))
    assert s.f_blocks / 2 < t.f_blocks < s.f_blocks * 2, f"{s.f_blocks} and {t.f_blocks} blocks" # what others keep on the disk moves it
    assert 0 < s.f_bavail <= s.f_bfree <= s.f_blocks and 0 < s.f_ffree <= s.f_files


if __name__ == "__main__":
    run(*sys.argv[1:])
