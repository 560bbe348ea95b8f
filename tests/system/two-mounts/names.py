# SPDX-License-Identifier: Apache-2.0
from rules import *
import stat, time


@rule("fsync of a directory that A has open and B removes succeeds")
def _(a, b):
    os.mkdir(f"{a}/d")
    fd = os.open(f"{a}/d", os.O_RDONLY)
    os.rmdir(f"{b}/d")
    os.fsync(fd)
    os.close(fd)


@rule("a file that A makes is there on B")
def _(a, b):
    write(f"{a}/f")
    same(os.listdir(b), ["f"])


@rule("a name that B has not found is there when A has made it")
def _(a, b):
    gone(f"{b}/f")
    write(f"{a}/f")
    os.stat(f"{b}/f")


@rule("a name that A has unlinked is gone on B, which has just used it")
def _(a, b):
    write(f"{b}/f")
    os.unlink(f"{a}/f")
    gone(f"{b}/f")
    same(os.listdir(b), [])


@rule("a directory that A makes can be used on B at once")
def _(a, b):
    gone(f"{b}/d")
    os.mkdir(f"{a}/d")
    write(f"{b}/d/f")
    same(os.listdir(f"{a}/d"), ["f"])


@rule("a directory that A removes is gone on B")
def _(a, b):
    os.mkdir(f"{b}/d")
    same(os.listdir(f"{b}/d"), [])
    os.rmdir(f"{a}/d")
    gone(f"{b}/d")


@rule("rename on A moves the name on B")
def _(a, b):
    write(f"{b}/f", b"1")
    gone(f"{b}/g")
    os.rename(f"{a}/f", f"{a}/g")
    gone(f"{b}/f")
    same(read(f"{b}/g"), b"1")


@rule("rename on A replaces the file that B holds open")
def _(a, b):
    write(f"{b}/f", b"old")
    fd = os.open(f"{b}/f", os.O_RDONLY)
    write(f"{a}/g", b"new")
    os.rename(f"{a}/g", f"{a}/f")
    same(os.pread(fd, 9, 0), b"old")
    same(read(f"{b}/f"), b"new")
    same(os.fstat(fd).st_nlink, 0)
    os.close(fd)


def while_replaced(replace, use, times):
    """use() so often while another thread calls replace(n) again and again."""
    end = threading.Event()

    def run():
        n = 0
        while not end.is_set():
            n += 1
            replace(n)

    t = threading.Thread(target=run)
    t.start()
    try:
        for _ in range(times):
            use()
    finally:
        end.set()
        t.join()


@rule("a name that A replaces all the time can be opened and read on B every time")
def _(a, b):
    def replace(n):
        write(f"{a}/g", b"%d" % (n % 10) * 100)
        os.rename(f"{a}/g", f"{a}/f")

    def use():
        got = read(f"{b}/f")
        same((len(got), len(set(got))), (100, 1))
        same(os.stat(f"{b}/f").st_size, 100)

    replace(0)
    while_replaced(replace, use, 400)


@rule("a symbolic link that A replaces all the time can be followed and read on B every time")
def _(a, b):
    def replace(n):
        os.symlink(f"f{n % 2}", f"{a}/g")
        os.rename(f"{a}/g", f"{a}/s")

    def use():
        assert read(f"{b}/s") in (b"0", b"1")
        assert os.readlink(f"{b}/s") in ("f0", "f1")

    write(f"{a}/f0", b"0")
    write(f"{a}/f1", b"1")
    replace(0)
    while_replaced(replace, use, 400)


@rule("rename on A moves a file between directories that B has listed")
def _(a, b):
    for d in "xy":
        os.mkdir(f"{a}/{d}")
    write(f"{a}/x/f")
    same((os.listdir(f"{b}/x"), os.listdir(f"{b}/y")), (["f"], []))
    os.rename(f"{a}/x/f", f"{a}/y/g")
    same((os.listdir(f"{b}/x"), os.listdir(f"{b}/y")), ([], ["g"]))


@rule("a directory that A renames takes everything below with it")
def _(a, b):
    os.makedirs(f"{b}/d/e/f")
    write(f"{b}/d/e/f/g", b"1")
    os.rename(f"{a}/d", f"{a}/n")
    gone(f"{b}/d/e/f/g")
    same(read(f"{b}/n/e/f/g"), b"1")


@rule("a directory that B has open stays usable when A renames it")
def _(a, b):
    os.mkdir(f"{b}/d")
    fd = os.open(f"{b}/d", os.O_RDONLY)
    os.rename(f"{a}/d", f"{a}/n")
    os.close(os.open("f", os.O_CREAT, dir_fd=fd))
    same(os.listdir(f"{a}/n"), ["f"])
    os.close(fd)


@rule("'..' leads to where A has moved the directory")
def _(a, b):
    os.makedirs(f"{b}/x/d")
    os.mkdir(f"{b}/y")
    os.rename(f"{a}/x/d", f"{a}/y/d")
    same(os.stat(f"{b}/y/d/..").st_ino, os.stat(f"{b}/y").st_ino)


@rule("two names that A exchanges are exchanged on B")
def _(a, b):
    write(f"{b}/f", b"1")
    os.mkdir(f"{b}/d")
    renameat2(f"{a}/f", f"{a}/d", EXCHANGE)
    same(read(f"{b}/d"), b"1")
    same(os.listdir(f"{b}/f"), [])


@rule("RENAME_NOREPLACE on A spares the name that B has just made")
def _(a, b):
    write(f"{a}/f", b"1")
    gone(f"{a}/g")
    write(f"{b}/g", b"2")
    is_error(errno.EEXIST, renameat2, f"{a}/f", f"{a}/g", NOREPLACE)
    same(read(f"{a}/g"), b"2")


@rule("a link that A makes is counted on B")
def _(a, b):
    write(f"{b}/f")
    same(os.stat(f"{b}/f").st_nlink, 1)
    os.link(f"{a}/f", f"{a}/g")
    same((os.stat(f"{b}/f").st_nlink, os.stat(f"{b}/g").st_ino), (2, os.stat(f"{a}/f").st_ino))
    os.unlink(f"{a}/f")
    same(os.stat(f"{b}/g").st_nlink, 1)


@rule("a symbolic link that A replaces leads elsewhere on B")
def _(a, b):
    os.symlink("x", f"{b}/s")
    same(os.readlink(f"{b}/s"), "x")
    os.symlink("y", f"{a}/t")
    os.rename(f"{a}/t", f"{a}/s")
    same(os.readlink(f"{b}/s"), "y")


@rule("a dangling link works when A has made its target")
def _(a, b):
    os.symlink("x", f"{b}/s")
    is_error(errno.ENOENT, os.stat, f"{b}/s")
    write(f"{a}/x", b"1")
    same(read(f"{b}/s"), b"1")


@rule("mkdir, link, symlink and mknod on A fail at a name that B has just made")
def _(a, b):
    gone(f"{a}/n")
    write(f"{b}/n")
    write(f"{a}/f")
    is_error(errno.EEXIST, os.mkdir, f"{a}/n")
    is_error(errno.EEXIST, os.link, f"{a}/f", f"{a}/n")
    is_error(errno.EEXIST, os.symlink, "x", f"{a}/n")
    is_error(errno.EEXIST, os.mknod, f"{a}/n")


@rule("of O_EXCL on both mounts exactly one succeeds")
def _(a, b):
    won = []

    def take(path):
        for i in range(30):
            if error(lambda: os.close(os.open(f"{path}/{i}", os.O_CREAT | os.O_EXCL))) == 0:
                won.append(i)
    for t in [thread(take, p) for p in (a, b)]:
        join(t)
    same(sorted(won), list(range(30)))


@rule("of mkdir on both mounts exactly one succeeds")
def _(a, b):
    won = []

    def take(path):
        for i in range(30):
            if error(os.mkdir, f"{path}/{i}") == 0:
                won.append(i)
    for t in [thread(take, p) for p in (a, b)]:
        join(t)
    same(sorted(won), list(range(30)))


@rule("of two renames of one file exactly one succeeds")
def _(a, b):
    for i in range(20):
        write(f"{a}/f")
        os.stat(f"{b}/f")
        got = []
        for t in [thread(lambda p: got.append(error(os.rename, f"{p[0]}/f", f"{p[0]}/{p[1]}")), p) for p in ((a, "a"), (b, "b"))]:
            join(t)
        same(sorted(got), [0, errno.ENOENT])
        for n in "ab":
            error(os.unlink, f"{a}/{n}")


@rule("rmdir on A spares the directory in which B has just made a file")
def _(a, b):
    os.mkdir(f"{a}/d")
    same(os.listdir(f"{a}/d"), [])
    write(f"{b}/d/f")
    is_error(errno.ENOTEMPTY, os.rmdir, f"{a}/d")
    os.unlink(f"{b}/d/f")
    os.rmdir(f"{a}/d")


@rule("nothing is made on B in a directory that A has removed")
def _(a, b):
    os.mkdir(f"{b}/d")
    fd = os.open(f"{b}/d", os.O_RDONLY)
    os.rmdir(f"{a}/d")
    for fn in (lambda: os.open("f", os.O_CREAT, dir_fd=fd), lambda: os.mkdir("f", dir_fd=fd), lambda: os.symlink("x", "f", dir_fd=fd)):
        is_error(errno.ENOENT, fn)
    is_error(errno.ENOENT, os.open, f"{b}/d/f", os.O_CREAT)
    os.close(fd)


@rule("rename on A replaces an empty directory, not one that B has filled")
def _(a, b):
    for d in "xyz":
        os.mkdir(f"{a}/{d}")
    same(os.listdir(f"{a}/z"), [])
    write(f"{b}/z/f")
    os.rename(f"{a}/x", f"{a}/y")
    is_error(errno.ENOTEMPTY, os.rename, f"{a}/y", f"{a}/z")
    same(sorted(os.listdir(b)), ["y", "z"])


@rule("no directory comes below itself by what A and B move")
def _(a, b):
    os.makedirs(f"{a}/x")
    os.makedirs(f"{a}/y/z")
    os.rename(f"{b}/x", f"{b}/y/z/x")
    is_error(errno.EINVAL, os.rename, f"{a}/y", f"{a}/y/z/x/y")


@rule("of two renames that would make a loop one fails")
def _(a, b):
    for i in range(10):
        os.makedirs(f"{a}/x")
        os.makedirs(f"{a}/y")
        got = []
        for t in [thread(lambda p: got.append(error(os.rename, *p)), p) for p in ((f"{a}/x", f"{a}/y/x"), (f"{b}/y", f"{b}/x/y"))]:
            join(t)
        assert sorted(got)[0] == 0 and sorted(got)[1] in (errno.ENOENT, errno.EINVAL), got
        for p in ("x/y", "y/x", "x", "y"):
            error(os.rmdir, f"{a}/{p}")
        same(os.listdir(b), [])


@rule("a listing on B tells every name that A leaves alone exactly once")
def _(a, b):
    stay = {f"stay{i}" for i in range(300)}
    for n in stay | {f"go{i}" for i in range(200)}:
        os.close(os.open(f"{a}/{n}", os.O_CREAT))
    with os.scandir(b) as it:
        seen = [next(it).name for _ in range(20)]
        for i in range(200):
            os.unlink(f"{a}/go{i}")
            os.close(os.open(f"{a}/new{i}", os.O_CREAT))
        seen += [e.name for e in it]
    same(sorted(n for n in seen if n in stay), sorted(stay))


@rule("a position that B has told of a directory stays one, whatever A makes and removes before and behind it")
def _(a, b):
    for f, kind, args in (("opendir", ctypes.c_void_p, [ctypes.c_char_p]), ("readdir", ctypes.c_void_p, [ctypes.c_void_p]),
                          ("telldir", ctypes.c_long, [ctypes.c_void_p]), ("seekdir", None, [ctypes.c_void_p, ctypes.c_long]),
                          ("closedir", ctypes.c_int, [ctypes.c_void_p])):
        getattr(libc, f).restype, getattr(libc, f).argtypes = kind, args

    def following(d):
        while entry := libc.readdir(d):
            yield ctypes.string_at(entry + 19).decode()  # struct dirent of 64 bits: d_name

    stay = [f"stay{i}" for i in range(1500)]
    for n in stay + [f"go{i}" for i in range(500)]:
        os.close(os.open(f"{a}/{n}", os.O_CREAT))
    d = libc.opendir(os.fsencode(b))
    told, seen = [(libc.telldir(d), 0)], []
    for n in following(d):
        seen += [n] if n in stay else []
        told.append((libc.telldir(d), len(seen)))
    same(sorted(seen), sorted(stay))
    for i in range(500):
        os.unlink(f"{a}/go{i}")
        os.close(os.open(f"{a}/new{i}", os.O_CREAT))
    for at, n in told[::97] + told[-1:]:
        libc.seekdir(d, at)
        same([m for m in following(d) if m in stay], seen[n:])
    libc.closedir(d)


@rule("names of any bytes, 255 of them, are the same on both")
def _(a, b):
    names = {bytes(c for c in range(1, 256) if c != 47) + b"!", b"\xff\xfe", b" ", b"...", "ä".encode() * 127}
    for n in names:
        os.close(os.open(os.fsencode(a) + b"/" + n, os.O_CREAT))
    same(set(os.listdir(os.fsencode(b))), names)
    is_error(errno.ENAMETOOLONG, os.stat, f"{b}/{'x' * 256}")


@rule("links of a directory are counted on B as A makes and removes directories in it")
def _(a, b):
    same(os.stat(b).st_nlink, 2)
    os.mkdir(f"{a}/d")
    same(os.stat(b).st_nlink, 3)
    os.rmdir(f"{a}/d")
    same(os.stat(b).st_nlink, 2)


@rule("files of every kind that A makes are such on B")
def _(a, b):
    kinds = {"f": stat.S_IFREG, "p": stat.S_IFIFO, "s": stat.S_IFSOCK, "c": stat.S_IFCHR, "b": stat.S_IFBLK}
    for n, k in kinds.items():
        os.mknod(f"{a}/{n}", k | 0o600, os.makedev(7, 300))
    for n, k in kinds.items():
        s = os.stat(f"{b}/{n}")
        same((stat.S_IFMT(s.st_mode), s.st_rdev), (k, os.makedev(7, 300) if n in "cb" else 0))


@rule("an inode has one number, birth and type on both")
def _(a, b):
    write(f"{a}/f")
    os.mkdir(f"{a}/d")
    look = lambda p: sorted((e.name, e.inode(), e.is_dir()) for e in os.scandir(p))
    same(look(a), look(b))


@rule("a process whose directory A has removed finds nothing there")
def _(a, b):
    os.mkdir(f"{b}/d")
    here = os.open(".", os.O_RDONLY)
    os.chdir(f"{b}/d")
    try:
        os.rmdir(f"{a}/d")
        is_error(errno.ENOENT, os.stat, "x")
        same(os.listdir("."), [])
    finally:
        os.fchdir(here)
        os.close(here)


@rule("ten thousand calls that a hundred threads make on both at once all do what they say")
def _(a, b):
    wrong = []

    def work(n):
        here, there = (a, b) if n % 2 else (b, a)
        try:
            for i in range(10): # ten calls each time
                f, g = f"{n}.{i}", f"{n}.{i}.new"
                write(f"{here}/{f}", b"%d" % n)
                same(os.stat(f"{there}/{f}").st_size, len(str(n)))
                os.rename(f"{there}/{f}", f"{there}/{g}")
                while not error(os.lstat, f"{here}/{f}"): # other threads change the directory here: a moment later (ADR 0011)
                    os.sched_yield()
                os.link(f"{here}/{g}", f"{here}/{f}")
                same(os.stat(f"{there}/{g}").st_nlink, 2)
                os.unlink(f"{there}/{f}")
                os.chmod(f"{here}/{g}", 0o600 + n % 64)
                same(stat.S_IMODE(os.stat(f"{there}/{g}").st_mode), 0o600 + n % 64)
                if i:
                    os.unlink(f"{here}/{g}")
        except Exception as e:
            wrong.append(f"thread {n}: {e}")

    threads = [thread(work, n) for n in range(100)]
    for t in threads:
        join(t)
    same(wrong, [])
    same(sorted(os.listdir(a)), sorted(f"{n}.0.new" for n in range(100)))
    same(sorted(os.listdir(b)), sorted(os.listdir(a)))


@rule("ten thousand names made, renamed and removed by both in a directory that both have listed keep nobody waiting for long")
def _(a, b):
    for i in range(100):
        write(f"{a}/old.{i}")
    same(sorted(os.listdir(a)), sorted(os.listdir(b)))
    longest, wrong = [0.0] * 8, []

    def timed(n, call, *args):
        begin = time.monotonic()
        call(*args)
        longest[n] = max(longest[n], time.monotonic() - begin)

    def work(n):
        here = (a, b)[n % 2]
        try:
            for i in range(210): # six calls each time
                timed(n, os.mknod, f"{here}/{n}.{i}")
                timed(n, os.rename, f"{here}/{n}.{i}", f"{here}/{n}.{i}.new")
                timed(n, os.unlink, f"{here}/{n}.{i}.new")
                timed(n, os.mkdir, f"{here}/{n}.{i}.d")
                timed(n, os.rename, f"{here}/{n}.{i}.d", f"{here}/{n}.{i}.e")
                timed(n, os.rmdir, f"{here}/{n}.{i}.e")
        except Exception as e:
            wrong.append(f"thread {n}: {e}")

    threads = [thread(work, n) for n in range(8)]
    for t in threads:
        join(t)
    same(wrong, [])
    same(sorted(os.listdir(a)), sorted(f"old.{i}" for i in range(100)))
    same(sorted(os.listdir(b)), sorted(os.listdir(a)))
    print(f"the longest of 10,080 calls: {max(longest) * 1000:.0f} ms", flush=True)
    same(max(longest) < 10, True) # less than a lease: nobody waited for an eviction


@rule("a name that changes between file and directory is followed")
def _(a, b):
    for i in range(10):
        write(f"{a}/n", b"1")
        same(read(f"{b}/n"), b"1")
        os.unlink(f"{a}/n")
        os.mkdir(f"{a}/n")
        same(os.listdir(f"{b}/n"), [])
        os.rmdir(f"{b}/n")


if __name__ == "__main__":
    run(*sys.argv[1:])
