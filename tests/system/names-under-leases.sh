#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What one mount changes the other sees with its next call, although it has cached the old; and both change one directory at the same time.
. "$(dirname "$0")/lib.sh"
cluster_up
second_mount
python3 - "$M" "$M2" <<'P' || fail "the mounts disagree"
import os, stat, sys
one, two = sys.argv[1:]

def there(path):
    try:
        os.stat(path)
        return True
    except FileNotFoundError:
        return False

def rule(text, holds):
    assert holds, text

os.mkdir(f"{one}/d")
for i in range(300):
    a, b = (one, two) if i % 2 else (two, one)
    f, g, s = "d/f", "d/g", "d/s"
    rule("a name that is not there", not there(f"{b}/{f}") and not there(f"{b}/{f}"))
    with open(f"{a}/{f}", "w") as h:
        h.write("x" * (i + 1))
    rule("create is seen by who knew that it was not there", there(f"{b}/{f}"))
    rule("close is seen in the size", os.stat(f"{b}/{f}").st_size == i + 1)
    os.chmod(f"{a}/{f}", 0o600 + i % 64)
    rule("chmod is seen", stat.S_IMODE(os.stat(f"{b}/{f}").st_mode) == 0o600 + i % 64)
    os.truncate(f"{a}/{f}", 7)
    rule("truncate is seen", os.stat(f"{b}/{f}").st_size == 7)
    os.setxattr(f"{a}/{f}", "user.n", str(i).encode())
    rule("setxattr is seen", os.getxattr(f"{b}/{f}", "user.n") == str(i).encode())
    os.utime(f"{a}/{f}", (i, i))
    rule("utimes is seen", os.stat(f"{b}/{f}").st_mtime == i)
    os.link(f"{a}/{f}", f"{a}/{g}")
    rule("link is seen", there(f"{b}/{g}") and os.stat(f"{b}/{f}").st_nlink == 2)
    os.unlink(f"{a}/{g}")
    rule("unlink is seen", not there(f"{b}/{g}") and os.stat(f"{b}/{f}").st_nlink == 1)
    os.rename(f"{a}/{f}", f"{a}/{g}")
    rule("rename is seen at both names", there(f"{b}/{g}") and not there(f"{b}/{f}"))
    ino = os.stat(f"{b}/{g}").st_ino
    open(f"{a}/{f}", "w").close()
    os.rename(f"{a}/{f}", f"{a}/{g}")
    rule("rename over a file is seen", os.stat(f"{b}/{g}").st_ino != ino and not there(f"{b}/{f}"))
    os.mkdir(f"{a}/{s}")
    rule("mkdir is seen", stat.S_ISDIR(os.stat(f"{b}/{s}").st_mode))
    rule("names in it are seen", os.listdir(f"{b}/{s}") == [] and not there(f"{b}/{s}/x"))
    os.symlink("t", f"{a}/{s}/x")
    rule("symlink is seen", os.readlink(f"{b}/{s}/x") == "t" and os.listdir(f"{b}/{s}") == ["x"])
    os.rename(f"{a}/{s}", f"{a}/moved")
    rule("a moved directory is seen", not there(f"{b}/{s}/x") and os.readlink(f"{b}/moved/x") == "t")
    os.unlink(f"{a}/moved/x")
    rule("its names are seen", not os.path.lexists(f"{b}/moved/x"))
    os.rmdir(f"{a}/moved")
    rule("rmdir is seen", not there(f"{b}/moved"))
    os.unlink(f"{b}/{g}")
    rule("the other way round", not there(f"{a}/{g}"))
P
python3 - "$M" "$M2" <<'P' || fail "a name that was not there"
import os, sys
one, two = sys.argv[1:]
for k in range(20):
    here, there = (one, two) if k % 2 else (two, one)
    os.mkdir(f"{here}/made{k}")  # so here every name of it is known
    assert not os.path.lexists(f"{here}/made{k}/s")
    for i in range(12):  # again and again, until nobody keeps names of it
        open(f"{there}/made{k}/x", "w").close()
        os.unlink(f"{there}/made{k}/x")
    os.mkdir(f"{there}/made{k}/s")
    assert os.path.isdir(f"{here}/made{k}/s"), k
P
python3 - "$M" "$M2" <<'P' || fail "two mounts in one directory"
import os, sys, time
one, two = sys.argv[1:]
os.mkdir(f"{one}/both")
worst = 0
pids = []
for n, m in enumerate((one, two)):
    os.listdir(f"{m}/both")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        worst = 0
        def timed(fn, *args):
            global worst
            t = time.monotonic()
            fn(*args)
            worst = max(worst, time.monotonic() - t)
        for i in range(1250):
            p = f"{m}/both/{n}-{i}"
            timed(lambda: os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
            timed(os.mkdir, p + "d")
            timed(os.rename, p, p + "r")
            timed(os.unlink, p + "r")
        os.write(w, f"{worst}".encode())
        os._exit(0)
    os.close(w)
    pids.append((pid, r))
for pid, r in pids:
    got = os.read(r, 100)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    assert float(got) < 1 + 2 * os.getloadavg()[0] / os.cpu_count(), f"a call took {float(got):.1f} s"
names = {f"{n}-{i}d" for n in (0, 1) for i in range(1250)}
assert set(os.listdir(f"{one}/both")) == names == set(os.listdir(f"{two}/both"))
P
! grep -rhs "evicting it" "$C/mds" || fail "a mount was evicted"
