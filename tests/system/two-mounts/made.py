# SPDX-License-Identifier: Apache-2.0
"""What A has made B sees, with all that was written before it was closed: made.py MOUNT MOUNT. Says "ahead" when files must have been made ahead,
"kill" when the metadata server is to be killed and started again, and reads a line then; "done" at the end."""
from rules import *

a, b = sys.argv[1:]
FILES = 40


def say(what):
    print(what, flush=True)
    return sys.stdin.readline()


def text(name, n=700):
    return (name * n)[:n].encode()


def put(path, data, flags=os.O_EXCL, mode=0o644):
    fd = os.open(path, os.O_CREAT | os.O_RDWR | flags, mode)
    for at in range(0, len(data), 300):
        os.write(fd, data[at : at + 300])
    return fd


def get(path):
    with open(path, "rb") as f:
        return f.read()


def make(d, n=FILES):
    os.makedirs(f"{a}/{d}")
    for i in range(n):
        os.close(put(f"{a}/{d}/f{i}", text(f"{d}{i}")))
    return d


def whole(d, n=FILES):
    same(sorted(os.listdir(f"{b}/{d}")), sorted(f"f{i}" for i in range(n)))
    for i in range(n):
        same(get(f"{b}/{d}/f{i}"), text(f"{d}{i}"))
        mine, theirs = os.stat(f"{a}/{d}/f{i}"), os.stat(f"{b}/{d}/f{i}")
        same(mine.st_ino, theirs.st_ino)
        same((mine.st_size, mine.st_mode, mine.st_nlink), (theirs.st_size, theirs.st_mode, theirs.st_nlink))
        same(mine.st_mtime_ns, theirs.st_mtime_ns)


def each_is_there_when_asked_for():
    for k in range(20):
        d = make(f"asked{k}", 12)
        same(get(f"{b}/{d}/f11"), text(f"{d}11"))
        same(error(os.open, f"{b}/{d}/f3", os.O_CREAT | os.O_EXCL | os.O_WRONLY), errno.EEXIST)
        os.unlink(f"{b}/{d}/f5")
        gone(f"{a}/{d}/f5")
        os.close(put(f"{a}/{d}/f5", b"again"))
        same(get(f"{b}/{d}/f5"), b"again")


def whatever_follows_finds_it():
    os.makedirs(f"{a}/follows")
    for i in range(200):
        p = f"{a}/follows/f{i}"
        q = f"{b}/follows/f{i}"
        fd = put(p, text(p))
        k = i % 10
        if k == 0:
            os.fchmod(fd, 0o400)
            same(os.stat(q).st_mode & 0o777, 0o400)
        elif k == 1:
            os.rename(p, p + ".new")
            gone(q)
            same(get(q + ".new"), text(p))
        elif k == 2:
            os.link(p, p + ".link")
            same(os.stat(q).st_nlink, 2)
        elif k == 3:
            os.setxattr(p, "user.x", b"y")
            same(os.getxattr(q, "user.x"), b"y")
        elif k == 4:
            os.pwrite(fd, b"z" * 100000, 5)  # outgrows the small file
            os.fsync(fd)
            same(get(q), text(p)[:5] + b"z" * 100000)
        elif k == 5:
            os.ftruncate(fd, 7)
            same(os.stat(q).st_size, 7)
        elif k == 6:
            os.utime(p, ns=(5, 6))
            same(os.stat(q).st_mtime_ns, 6)
        elif k == 7:
            other = os.open(p, os.O_RDONLY)
            same(os.read(other, 5), text(p)[:5])
            os.close(other)
        elif k == 8:
            os.unlink(p)
            gone(q)
            same(os.pread(fd, 9, 0), text(p)[:9])
        else:
            same(os.pread(fd, 9, 0), text(p)[:9])
            os.pwrite(fd, b"later", 0)
            os.fsync(fd)
            same(get(q)[:5], b"later")
        os.close(fd)


def one_of_two_makes_it():
    os.makedirs(f"{a}/race")
    for i in range(100):
        first, second = (a, b) if i % 3 else (b, a)
        os.close(os.open(f"{first}/race/f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        same(error(os.open, f"{second}/race/f{i}", os.O_CREAT | os.O_EXCL | os.O_WRONLY), errno.EEXIST)


for k in range(5):
    whole(make(f"whole{k}", 60), 60)
say("ahead")
each_is_there_when_asked_for()
whatever_follows_finds_it()
one_of_two_makes_it()
for k in range(3):
    d = make(f"killed{k}", 200)
    say("kill")
    whole(d, 200)
    d = make(f"behind{k}", 30)
    whole(d, 30)
print("done", flush=True)
