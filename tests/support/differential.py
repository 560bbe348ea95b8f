#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same random calls on a mount and on a local file system: same results, same errno, same tree.

usage: differential.py [--calls N] [--seeds FROM-TO] [--replay FILE] REFERENCE MOUNT [MOUNT2]

Four processes with three users make the calls, one after the other, each in its own half of every
pair: one on the mount (with MOUNT2, the odd ones on that), its twin in a folder of REFERENCE. After
each call both results are compared, and in the end the trees. What fails is made as short as it
gets and printed, one call a line; --replay reads that. SEED=N in the environment: that one alone.

Where the local file system is no model (docs/limits.md), the comparison knows:
  st_size and st_blocks of directories, st_blocks of files, atime: not compared
  SEEK_DATA, SEEK_HOLE: what is told as hole must be zeros
  two mounts with one file open: who has changed contents syncs them, who maps or appends asks for the size
  a flock is released before its file is closed
  set-id bits are not set on one mount while the file is open on another
  two mounts: a rename looks its names up before (the kernel does not take up a moved directory during one), and
    who changes attributes (it asks for no owner or mode before it checks, docs/posix.md)
  the end of a directory, chown of neither user nor group: not asked for
"""
import argparse
import ast
import ctypes
import errno
import fcntl
import hashlib
import mmap
import os
import pickle
import random
import shutil
import signal
import stat
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
USERS = [(0, 0), (0, 0), (1000, 1000), (1001, 1000)]
SLOTS = 5
KEEP, PUNCH, COLLAPSE, ZERO = 1, 2, 8, 16
NOREPLACE, EXCHANGE = 1, 2
SET_TIMES = range(10**9, 10**9 + 1000)  # seconds that only utimens sets
NAMES = ["a", "b", "c", "d0", "d1", "d0/a", "d0/b", "d0/d2", "d1/a", "d1/c", "d0/d2/a", "s", "d1/s"]


def payload(key, length):
    return random.Random(key).randbytes(length)


def c_call(function, *args):
    if function(*args):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def digest(data):
    return len(data), hashlib.sha1(data).hexdigest()[:12]


# ---- one process ----


class Actor:
    """Runs calls below root. Each do_*() is a call; what it returns is compared."""

    def __init__(self, syncs):
        self.root, self.fds, self.syncs, self.flocked = None, {}, syncs, set()

    def path(self, name):
        return f"{self.root}/{name}"

    def fd(self, slot):
        if slot not in self.fds:
            raise OSError(errno.EBADF, "no such slot")
        return self.fds[slot]

    def changed(self, fd):
        if self.syncs and stat.S_ISREG(os.fstat(fd).st_mode):
            os.fsync(fd)

    def begin(self, root):
        for slot in list(self.fds):
            self.do_close(slot)
        self.root = root
        os.umask(0o022)

    def do_open(self, slot, name, flags, mode):
        if slot in self.fds:
            self.do_close(slot)
        self.fds[slot] = os.open(self.path(name), flags | os.O_NONBLOCK, mode)  # a fifo waits for nobody

    def do_close(self, slot):
        fd = self.fd(slot)
        if slot in self.flocked:
            fcntl.flock(fd, fcntl.LOCK_UN)
            self.flocked.discard(slot)
        del self.fds[slot]
        os.close(fd)

    def do_read(self, slot, length):
        return digest(os.read(self.fd(slot), length))

    def do_pread(self, slot, offset, length):
        return digest(os.pread(self.fd(slot), length, offset))

    def do_write(self, slot, key, length):
        if self.syncs:
            os.fstat(self.fd(slot))  # where an append ends is what the kernel believes
        got = os.write(self.fd(slot), payload(key, length))
        self.changed(self.fd(slot))
        return got, os.lseek(self.fd(slot), 0, os.SEEK_CUR)

    def do_pwrite(self, slot, offset, key, length):
        got = os.pwrite(self.fd(slot), payload(key, length), offset)
        self.changed(self.fd(slot))
        return got

    def do_lseek(self, slot, offset, whence):
        fd = self.fd(slot)
        if whence == os.SEEK_END and stat.S_ISDIR(os.fstat(fd).st_mode):
            return None
        return os.lseek(fd, offset, whence)

    def do_holes(self, slot, offset):
        fd, told = self.fd(slot), {}
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        size = os.fstat(fd).st_size
        at = os.lseek(fd, 0, os.SEEK_CUR)
        try:
            for whence in (os.SEEK_DATA, os.SEEK_HOLE):
                try:
                    told[whence] = os.lseek(fd, offset, whence)
                except OSError as e:
                    if e.errno != errno.ENXIO:
                        raise
        finally:
            os.lseek(fd, at, os.SEEK_SET)
        if offset >= size:
            return not told
        data = told.get(os.SEEK_DATA, size)
        hole = told.get(os.SEEK_HOLE, -1)
        return offset <= data <= size and offset <= hole <= size and self.zeros(fd, offset, data)

    def zeros(self, fd, start, end):
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            return True
        return not any(os.pread(fd, min(end - start, 1 << 20), start)) if end > start else True

    def do_truncate(self, name, size):
        os.truncate(self.path(name), size)

    def do_ftruncate(self, slot, size):
        os.ftruncate(self.fd(slot), size)

    def do_fallocate(self, slot, mode, offset, length):
        fd = self.fd(slot)
        try:
            c_call(libc.fallocate, fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length))
        except OSError as e:
            if e.errno != errno.EOPNOTSUPP or not mode & ZERO:
                raise
            size = os.fstat(fd).st_size  # tmpfs has no ZERO_RANGE
            c_call(libc.fallocate, fd, PUNCH | KEEP, ctypes.c_int64(offset), ctypes.c_int64(length))
            if not mode & KEEP and offset + length > size:
                os.ftruncate(fd, offset + length)
        self.changed(fd)

    def do_copy(self, slot, to, length, offset, to_offset):
        src, dst = self.fd(slot), self.fd(to)
        if self.syncs:
            os.fstat(src), os.fstat(dst)
        done = 0
        while done < length:
            got = os.copy_file_range(src, dst, length - done, offset + done, to_offset + done)
            if not got:
                break
            done += got
        self.changed(dst)
        return done

    def do_map(self, slot, offset, key, length):
        fd = self.fd(slot)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        size = os.fstat(fd).st_size
        if offset + length > size:
            return "short"
        with mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | (mmap.PROT_WRITE if key else 0)) as m:
            if key:
                m[offset : offset + length] = payload(key, length)
                m.flush()
            return digest(m[offset : offset + length])

    def do_fsync(self, slot):
        os.fsync(self.fd(slot))

    def do_rename(self, name, new, flags):
        old, new = self.path(name).encode(), self.path(new).encode()
        if self.syncs:
            os.path.lexists(old), os.path.lexists(new)
        c_call(libc.renameat2, -100, old, -100, new, flags)

    def do_link(self, name, new):
        os.link(self.path(name), self.path(new), follow_symlinks=False)

    def do_symlink(self, target, new):
        os.symlink(target, self.path(new))

    def do_readlink(self, name):
        return os.readlink(self.path(name))

    def do_unlink(self, name):
        os.unlink(self.path(name))

    def do_mkdir(self, name, mode):
        os.mkdir(self.path(name), mode)

    def do_rmdir(self, name):
        os.rmdir(self.path(name))

    def do_mkfifo(self, name, mode):
        os.mkfifo(self.path(name), mode)

    def do_chmod(self, name, mode):
        if self.syncs:
            os.path.exists(self.path(name))
        os.chmod(self.path(name), mode)

    def do_chown(self, name, uid, gid):
        if (uid, gid) != (-1, -1):
            if self.syncs:
                os.path.lexists(self.path(name))
            os.chown(self.path(name), uid, gid, follow_symlinks=False)

    def do_utimens(self, name, seconds):
        if self.syncs:
            os.path.exists(self.path(name))
        os.utime(self.path(name), ns=(seconds * 10**9 + 5, seconds * 10**9 + 123456789))

    def do_setxattr(self, name, key, value, flags):
        if self.syncs:
            os.path.exists(self.path(name))
        os.setxattr(self.path(name), key, value, flags)

    def do_getxattr(self, name, key):
        return os.getxattr(self.path(name), key)

    def do_listxattr(self, name):
        return sorted(k for k in os.listxattr(self.path(name)) if not k.startswith("security."))

    def do_removexattr(self, name, key):
        if self.syncs:
            os.path.exists(self.path(name))
        os.removexattr(self.path(name), key)

    def do_listdir(self, name):
        with os.scandir(self.path(name)) as entries:
            return sorted((e.name, e.is_dir(follow_symlinks=False), e.is_symlink()) for e in entries)

    def do_access(self, name, mode):
        return os.access(self.path(name), mode, effective_ids=True)

    def do_stat(self, name):
        return look(os.stat(self.path(name)))

    def do_lstat(self, name):
        return look(os.lstat(self.path(name)))

    def do_fstat(self, slot):
        return look(os.fstat(self.fd(slot)))

    def do_flock(self, slot, operation):
        fcntl.flock(self.fd(slot), operation | fcntl.LOCK_NB)
        if operation == fcntl.LOCK_UN:
            self.flocked.discard(slot)
        else:
            self.flocked.add(slot)

    def do_lock(self, slot, operation, start, length):
        fcntl.lockf(self.fd(slot), operation | fcntl.LOCK_NB, length, start)


def look(st):
    is_dir = stat.S_ISDIR(st.st_mode)
    seconds = st.st_mtime_ns // 10**9
    return (
        oct(st.st_mode),
        st.st_nlink,
        st.st_uid,
        st.st_gid,
        None if is_dir else st.st_size,
        st.st_mtime_ns if seconds in SET_TIMES else "now",
    )


def actor_main(user, syncs, requests, answers):
    os.setgroups([])
    os.setresgid(user[1], user[1], user[1])
    os.setresuid(user[0], user[0], user[0])
    actor = Actor(syncs)
    with os.fdopen(requests, "rb") as source, os.fdopen(answers, "wb") as sink:
        while True:
            try:
                what, args = pickle.load(source)
            except EOFError:
                return
            try:
                result = ("ok", getattr(actor, what)(*args))
            except OSError as e:
                result = ("error", errno.errorcode.get(e.errno, e.errno))
            except ValueError as e:  # mmap of nothing
                result = ("error", str(e))
            pickle.dump(result, sink)
            sink.flush()


class Process:
    def __init__(self, user, syncs, others):
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours_out), os.close(ours_in)
            for other in others:
                other.sink.close(), other.source.close()
            try:
                actor_main(user, syncs, theirs_in, theirs_out)
            finally:
                os._exit(0)
        os.close(theirs_in), os.close(theirs_out)
        self.sink, self.source = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")

    def send(self, what, args):
        pickle.dump((what, args), self.sink)
        self.sink.flush()

    def answer(self):
        return pickle.load(self.source)


# ---- what to call ----


def acl(rng):
    """A valid access list: owner, one user, group, mask, others."""
    entries = [(1, rng.randrange(8), 0xFFFFFFFF), (2, rng.randrange(8), rng.choice([1000, 1001]))]
    entries += [(4, rng.randrange(8), 0xFFFFFFFF), (16, rng.randrange(8), 0xFFFFFFFF), (32, rng.randrange(8), 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


def place(rng):
    return rng.choice([0, 1, 100, 4095, 4096, 8192, 16384, 20000, 65536, 131072, rng.randrange(300000)])


def span(rng):
    return rng.choice([1, 10, 100, 4096, 5000, 16384, 17000, rng.randrange(1, 100000)])


def pick_open(rng, slot):
    flags = rng.choice([os.O_RDONLY, os.O_RDWR, os.O_RDWR, os.O_RDWR, os.O_WRONLY])
    for more, odds in ((os.O_CREAT, 0.8), (os.O_EXCL, 0.05), (os.O_APPEND, 0.15), (os.O_DSYNC, 0.05), (os.O_NOFOLLOW, 0.1), (os.O_DIRECTORY, 0.03)):
        flags |= more if rng.random() < odds else 0
    if flags & os.O_ACCMODE != os.O_RDONLY and rng.random() < 0.15:
        flags |= os.O_TRUNC
    if flags & os.O_DIRECTORY:
        flags &= ~os.O_CREAT
    return "do_open", (slot, rng.choice(NAMES), flags, rng.choice([0o644, 0o600, 0o666, 0o666, 0o666]))


def pick(rng, acls, set_ids):
    """One call: its name and arguments."""
    slot, name, other, key = rng.randrange(SLOTS), rng.choice(NAMES), rng.choice(NAMES), rng.randrange(1, 1 << 30)
    xattr = rng.choice(["user.k", "user.other", "trusted.t"])
    choices = [
        (14, lambda: pick_open(rng, slot)),
        (5, lambda: ("do_close", (slot,))),
        (4, lambda: ("do_read", (slot, span(rng)))),
        (6, lambda: ("do_pread", (slot, place(rng), span(rng)))),
        (7, lambda: ("do_write", (slot, key, span(rng)))),
        (9, lambda: ("do_pwrite", (slot, place(rng), key, span(rng)))),
        (2, lambda: ("do_lseek", (slot, rng.choice([-1, 0, 5, 70000]), rng.choice([0, 1, 2])))),
        (3, lambda: ("do_holes", (slot, place(rng)))),
        (3, lambda: ("do_truncate", (name, place(rng)))),
        (4, lambda: ("do_ftruncate", (slot, place(rng)))),
        (6, lambda: ("do_fallocate", (slot, rng.choice([0, KEEP, PUNCH | KEEP, PUNCH | KEEP, ZERO, ZERO | KEEP, PUNCH]), place(rng), span(rng)))),
        (3, lambda: ("do_copy", (slot, rng.randrange(SLOTS), span(rng), place(rng), place(rng)))),
        (4, lambda: ("do_map", (slot, place(rng), rng.choice([0, key]), span(rng)))),
        (2, lambda: ("do_fsync", (slot,))),
        (8, lambda: ("do_rename", (name, other, rng.choice([0, 0, 0, NOREPLACE, EXCHANGE, 3])))),
        (5, lambda: ("do_link", (name, other))),
        (3, lambda: ("do_symlink", (rng.choice(["a", "d0", "d0/../a", "nowhere", "s", "d1/c"]), name))),
        (2, lambda: ("do_readlink", (name,))),
        (7, lambda: ("do_unlink", (name,))),
        (6, lambda: ("do_mkdir", (name, rng.choice([0o755, 0o777, 0o700, 0o1777, 0o2775])))),
        (4, lambda: ("do_rmdir", (name,))),
        (1, lambda: ("do_mkfifo", (name, 0o644))),
        (4, lambda: ("do_chmod", (name, rng.choice([0o644, 0o755, 0o600, 0o777, 0o1777, 0o000] + set_ids)))),
        (3, lambda: ("do_chown", (name, rng.choice([-1, 0, 1000, 1001]), rng.choice([-1, 0, 1000])))),
        (3, lambda: ("do_utimens", (name, rng.choice(SET_TIMES)))),
        (4, lambda: ("do_setxattr", (name, xattr, payload(key, rng.choice([0, 3, 200])), rng.choice([0, 0, 1, 2])))),
        (2, lambda: ("do_getxattr", (name, xattr))),
        (2, lambda: ("do_listxattr", (name,))),
        (2, lambda: ("do_removexattr", (name, xattr))),
        (4, lambda: ("do_listdir", (rng.choice([".", "d0", "d1", "d0/d2"]),))),
        (2, lambda: ("do_access", (name, rng.randrange(8)))),
        (4, lambda: ("do_stat", (name,))),
        (4, lambda: ("do_lstat", (name,))),
        (3, lambda: ("do_fstat", (slot,))),
        (3, lambda: ("do_flock", (slot, rng.choice([fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN])))),
        (4, lambda: ("do_lock", (slot, rng.choice([fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN]), rng.randrange(10), rng.randrange(1, 10)))),
    ]
    if acls:
        choices.append((2, lambda: ("do_setxattr", (name, rng.choice(["system.posix_acl_access", "system.posix_acl_default"]), acl(rng), 0))))
    return rng.choices([c[1] for c in choices], [c[0] for c in choices])[0]()


BY_SLOT = {"close", "read", "pread", "write", "pwrite", "lseek", "holes", "ftruncate", "fallocate", "copy", "map", "fsync", "fstat", "flock", "lock"}


def aimed(rng, call, opened):
    """A call on a slot goes to one that has been opened, if any, nine times of ten."""
    k, what, args = call
    if what == "do_open":
        opened.append((k, args[0]))
    elif what[3:] in BY_SLOT and opened and rng.random() < 0.9:
        k, slot = rng.choice(opened[-8:])
        args = (slot,) + args[1:]
    return k, what, args


def sequence(seed, length, acls, set_ids):
    rng = random.Random(seed)
    focus = rng.sample(NAMES, rng.randrange(1, 7))  # few names: much happens to each
    names = NAMES[:]
    NAMES[:] = focus + [n for n in ("d0", "d1", "a") if n not in focus]
    opened, calls = [], [(0, "do_mkdir", ("d0", 0o777)), (0, "do_mkdir", ("d1", 0o777)), (0, "do_chmod", ("d0", 0o777))]
    try:
        for k in range(len(USERS)):
            file = rng.choice(["a", "d0/a", "d0/b"])
            calls.append((k, "do_open", (0, file, os.O_RDWR | os.O_CREAT, 0o666)))
            calls.append((k, "do_chmod", (file, 0o666)))
            opened.append((k, 0))
        while len(calls) < length:
            calls.append(aimed(rng, (rng.randrange(len(USERS)),) + pick(rng, acls, set_ids), opened))
    finally:
        NAMES[:] = names
    return calls


# ---- both, compared ----


def tree(root):
    found = {}
    for folder, dirs, files in os.walk(root):
        for name in sorted(dirs) + sorted(files):
            path = os.path.join(folder, name)
            try:
                st = os.lstat(path)
            except FileNotFoundError:
                found[os.path.relpath(path, root)] = "listed, and not there"
                continue
            what = [look(st)]
            if stat.S_ISLNK(st.st_mode):
                what.append(os.readlink(path))
            else:
                what.append(sorted((k, os.getxattr(path, k)) for k in os.listxattr(path) if not k.startswith("security.")))
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what.append(digest(f.read()))
            found[os.path.relpath(path, root)] = what
    return found


class Bench:
    def __init__(self, reference, mounts):
        self.reference, self.mounts, self.runs = reference, mounts, 0
        self.pairs, started = [], []
        for k, user in enumerate(USERS):
            pair = []
            for syncs in (len(mounts) > 1, False):
                pair.append(Process(user, syncs, started))
                started.append(pair[-1])
            self.pairs.append(pair)
        self.processes = started

    def both(self, k, what, args_of):
        """args_of[0] for the mount, [1] for the reference: both results."""
        pair = self.pairs[k]
        for process, args in zip(pair, args_of):
            process.send(what, args)
        return [process.answer() for process in pair]

    def run(self, calls):
        """None, or what is different and after which call."""
        self.runs += 1
        name = f"run{self.runs}"
        roots = [f"{m}/{name}" for m in self.mounts]
        reference = f"{self.reference}/{name}"
        for root in (roots[0], reference):
            os.mkdir(root)
            os.chmod(root, 0o777)
        try:
            for k in range(len(USERS)):
                self.both(k, "begin", ((roots[k % len(roots)],), (reference,)))
            for n, (k, what, args) in enumerate(calls):
                got, want = self.both(k, what, (args, args))
                if got != want:
                    return n, f"here {got}, there {want}"
            wanted = tree(reference)
            for root in roots:
                found = tree(root)
                for path in sorted(set(found) | set(wanted)):
                    if found.get(path) != wanted.get(path):
                        return len(calls) - 1, f"in the end {path} is {found.get(path)}, there {wanted.get(path)}"
            return None
        finally:
            for k in range(len(USERS)):
                self.both(k, "begin", ((self.mounts[0],), (self.reference,)))
            shutil.rmtree(roots[0], ignore_errors=True)
            shutil.rmtree(reference, ignore_errors=True)

    def shrink(self, calls, n):
        """The shortest list that still fails: pieces are left out, from halves down to single calls."""
        calls = calls[: n + 1]
        size = max(1, len(calls) // 2)
        while True:
            at, shorter = 0, False
            while at < len(calls):
                fewer = calls[:at] + calls[at + size :]
                found = self.run(fewer) if fewer else None
                if found:
                    calls, shorter = fewer[: found[0] + 1], True
                else:
                    at += size
            if size == 1 and not shorter:
                return calls
            size = max(1, size // 2)

    def end(self):
        for process in self.processes:
            process.sink.close()
        for process in self.processes:
            os.waitpid(process.pid, 0)


def report(bench, calls, found, title):
    print(f"{title}: call {found[0]}: {found[1]}")
    calls = bench.shrink(calls, found[0])
    print("# the shortest that fails; save it and give it to --replay")
    for call in calls:
        print(repr(call))
    print(f"# {(bench.run(calls) or found)[1]}", flush=True)


def knows_acls(folder):
    try:
        os.setxattr(folder, "system.posix_acl_access", acl(random.Random(1)))
        os.removexattr(folder, "system.posix_acl_access")
        return True
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=120)
    parser.add_argument("--seeds", default="1-30")
    parser.add_argument("--replay")
    parser.add_argument("--go-on", action="store_true", help="look for more after a difference")
    parser.add_argument("reference")
    parser.add_argument("mounts", nargs="+")
    a = parser.parse_args()
    first, last = (int(x) for x in a.seeds.split("-"))
    if "SEED" in os.environ:
        first = last = int(os.environ["SEED"])
    acls = knows_acls(a.reference) and knows_acls(a.mounts[0])
    bench = Bench(a.reference, a.mounts)
    failed = 0
    if a.replay:
        calls = [ast.literal_eval(line) for line in open(a.replay) if not line.startswith("#")]
        found = bench.run(calls)
        print(found or "no difference")
        failed += found is not None
    else:
        for seed in range(first, last + 1):
            calls = sequence(seed, a.calls, acls, [0o4755, 0o2755] if len(a.mounts) == 1 else [0o755, 0o755])
            found = bench.run(calls)
            if found:
                failed += 1
                report(bench, calls, found, f"seed {seed}, {len(a.mounts)} mounts")
                if not a.go_on:
                    break
        print(f"{last - first + 1} seeds of {a.calls} calls, {failed} with a difference", flush=True)
    bench.end()
    sys.exit(failed != 0)


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
