#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The everyday calls behave as on a local disk: links, renames, sparse files, long and odd names, times, xattrs, mmap, append, truncate.
. "$(dirname "$0")/lib.sh"
cluster_up
cat >"$T/calls.py" <<'P'
import errno, fcntl, mmap, os, sys, stat
os.chdir(sys.argv[1])
def err(e, f, *a, **k):
    try: f(*a, **k)
    except OSError as x:
        assert x.errno == e, (f, a, errno.errorcode[x.errno])
    else: raise AssertionError((f, a, "no error"))
n255 = "n" * 255
open(n255, "w").close(); assert n255 in os.listdir("."); err(errno.ENAMETOOLONG, open, "n" * 256, "w")
odd = b"odd \xff\x01\n*name"; open(odd, "w").close(); assert odd in os.listdir(b".")
os.mkdir("d"); os.mkdir("d/e"); err(errno.ENOTEMPTY, os.rmdir, "d"); err(errno.EINVAL, os.rename, "d", "d/e/f")
err(errno.EEXIST, os.mkdir, "d"); err(errno.ENOENT, os.stat, "nope"); err(errno.ENOTDIR, os.stat, n255 + "/x")
open("a", "w").write("A"); open("b", "w").write("B"); os.rename("a", "b"); assert open("b").read() == "A"; err(errno.ENOENT, os.stat, "a")
err(errno.EISDIR, os.rename, "b", "d"); err(errno.ENOTDIR, os.rename, "d", "b")
os.link("b", "c"); assert os.stat("c").st_nlink == 2; os.unlink("b"); assert os.stat("c").st_nlink == 1
os.symlink("c", "s"); assert os.readlink("s") == "c" and open("s").read() == "A"; assert os.lstat("s").st_size == 1
f = open("c", "r+b"); os.unlink("c"); f.write(b"still here"); f.flush(); f.seek(0); assert f.read() == b"still here"; assert os.fstat(f.fileno()).st_nlink == 0; f.close()
fd = os.open("sparse", os.O_RDWR | os.O_CREAT); os.pwrite(fd, b"end", 5 << 30); assert os.fstat(fd).st_size == (5 << 30) + 3
assert os.pread(fd, 10, 1 << 30) == b"\0" * 10 and os.pread(fd, 10, 5 << 30) == b"end"; os.ftruncate(fd, 10); assert os.pread(fd, 20, 0) == b"\0" * 10
os.ftruncate(fd, 100); assert os.pread(fd, 200, 0) == b"\0" * 100; os.close(fd)
fd = os.open("big", os.O_RDWR | os.O_CREAT); os.write(fd, b"x" * 3000000); os.ftruncate(fd, 1500000); os.ftruncate(fd, 2500000)
d = os.pread(fd, 3000000, 0); assert len(d) == 2500000 and d[:1500000] == b"x" * 1500000 and d[1500000:] == b"\0" * 1000000; os.close(fd)
fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND); [os.write(fd, b"%06d\n" % i) for i in range(5000)]; os.close(fd)
assert open("log").read() == "".join("%06d\n" % i for i in range(5000))
os.utime("log", ns=(1234567890123456789, 987654321987654321)); st = os.stat("log"); assert st.st_mtime_ns == 987654321987654321 and st.st_atime_ns == 1234567890123456789
os.chmod("log", 0o640); assert stat.S_IMODE(os.stat("log").st_mode) == 0o640
os.setxattr("log", "user.k", b"v" * 1000); assert os.getxattr("log", "user.k") == b"v" * 1000 and "user.k" in os.listxattr("log")
err(errno.EEXIST, os.setxattr, "log", "user.k", b"", os.XATTR_CREATE); os.removexattr("log", "user.k"); err(errno.ENODATA, os.getxattr, "log", "user.k")
for space in "user.", "trusted.", "security.": err(errno.EINVAL, os.setxattr, "log", space, b"v"); err(errno.EINVAL, os.getxattr, "log", space); err(errno.EINVAL, os.removexattr, "log", space)
with open("map", "w+b") as f:
    f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 1 << 20); m[4090:4100] = b"0123456789"; m[1 << 19] = 7; m.flush(); m.close(); f.seek(4090); assert f.read(10) == b"0123456789"
fd = os.open("excl", os.O_CREAT | os.O_EXCL | os.O_WRONLY); err(errno.EEXIST, os.open, "excl", os.O_CREAT | os.O_EXCL); os.close(fd)
os.mkfifo("fifo"); assert stat.S_ISFIFO(os.stat("fifo").st_mode)
fd = os.open("fifo", os.O_RDWR); os.unlink("fifo"); st = os.fstat(fd); assert stat.S_ISFIFO(st.st_mode) and st.st_nlink == 0; os.close(fd); err(errno.ENOENT, os.stat, "fifo")
with open("empty", "w") as f: os.utime("empty", (1, 1)); open("empty", "w").close(); assert os.stat("empty").st_mtime != 1
def mode_after(change): # of a set-id program whose owner changes its contents
    open("prog", "wb").write(b"p" * 100000); os.chown("prog", 1001, 1001); os.chmod("prog", 0o6755); pid = os.fork()
    if pid == 0:
        try: os.setgroups([]); os.setresgid(1001, 1001, 1001); os.setresuid(1001, 1001, 1001); change(os.open("prog", os.O_RDWR)); os._exit(0)
        finally: os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0; return stat.S_IMODE(os.stat("prog").st_mode)
assert mode_after(lambda fd: os.posix_fallocate(fd, 0, 10)) == 0o755
assert mode_after(lambda fd: os.copy_file_range(fd, fd, 10, 0, 50)) == 0o755
fd = os.open("direct", os.O_RDWR | os.O_CREAT | os.O_DIRECT); b = mmap.mmap(-1, 1 << 20); b[:] = b"d" * (1 << 20); assert os.write(fd, b) == 1 << 20; os.close(fd)
assert open("direct", "rb").read() == b"d" * (1 << 20)
for size in 100, 100000: # O_APPEND is as it is set now; who has opened to read may cut, also what is still being written
    open("end", "wb").write(b"x" * size); fd = os.open("end", os.O_RDWR | os.O_APPEND); fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    assert os.pwrite(fd, b"a" * 10, 5) == 10 and os.lseek(fd, 20, 0) == 20 and os.write(fd, b"b" * 10) == 10 and os.fstat(fd).st_size == size
    assert os.pread(fd, 35, 0) == b"x" * 5 + b"a" * 10 + b"x" * 5 + b"b" * 10 + b"x" * 5
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND); assert os.write(fd, b"c" * 10) == 10 and os.pread(fd, 20, size) == b"c" * 10; os.close(fd)
    fd = os.open("end", os.O_RDWR); fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND); assert os.write(fd, b"d" * 10) == 10 and os.pread(fd, 30, size) == b"c" * 10 + b"d" * 10
    cut = os.open("end", os.O_RDONLY | os.O_TRUNC); assert os.fstat(cut).st_size == 0 and os.read(cut, 10) == b""; err(errno.EBADF, os.write, cut, b"x")
    assert os.write(fd, b"e") == 1 and os.pread(cut, 10, 0) == b"e"; os.close(cut); os.close(fd)
os.mkdir("many"); [open("many/%05d" % i, "w").close() for i in range(3000)]; assert sorted(os.listdir("many")) == ["%05d" % i for i in range(3000)]
v = os.statvfs("."); assert v.f_blocks > 0 and v.f_bavail > 0 and v.f_namemax == 255
print("all calls behaved")
P
mkdir "$M/w" && expect "the calls" python3 "$T/calls.py" "$M/w"
remount
[ "$(find "$M/w/many" -type f | wc -l)" = 3000 ] || fail "the directory after a remount"
[ "$(stat -c %s "$M/w/big")" = 2500000 ] || fail "a size after a remount"
