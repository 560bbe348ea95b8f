# SPDX-License-Identifier: Apache-2.0
"""Processes that lock files when told to, for tests with several mounts.

An Actor is a process of its own: what it locks it holds as that process. It answers each command with the errno (0: done) and a value; wait() of a command that was only
started tells whether it has been answered. Record locks go through fcntl(2) itself, so that open file descriptions (OFD) and the owners that F_GETLK names can be seen.
"""
import errno
import fcntl
import json
import os
import select
import signal
import struct
import time

OFD_GETLK, OFD_SETLK, OFD_SETLKW = 36, 37, 38
TYPES = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}
FLOCKS = {"r": fcntl.LOCK_SH, "w": fcntl.LOCK_EX, "u": fcntl.LOCK_UN}
FLOCK_FORMAT = "hhxxxxqqixxxx"  # struct flock: type, whence, padding, start, length, pid, padding
TEST_ENDS = os.pipe()  # only the test itself keeps the writing end


def record(fd, cmd, kind, start=0, length=0):
    answer = fcntl.fcntl(fd, cmd, struct.pack(FLOCK_FORMAT, TYPES[kind], os.SEEK_SET, start, length, 0))
    kind, _, start, length, pid = struct.unpack(FLOCK_FORMAT, answer)
    return [{v: k for k, v in TYPES.items()}[kind], start, length, pid]


class Commands:
    def __init__(self):
        self.fds = {}

    def open(self, name, path, flags=os.O_RDWR):
        self.fds[name] = os.open(path, flags)

    def close(self, name):
        os.close(self.fds.pop(name))

    def flock(self, name, kind, wait=False):
        fcntl.flock(self.fds[name], FLOCKS[kind] | (0 if wait else fcntl.LOCK_NB))

    def lock(self, name, kind, start=0, length=0, wait=False):
        record(self.fds[name], fcntl.F_SETLKW if wait else fcntl.F_SETLK, kind, start, length)

    def ofd(self, name, kind, start=0, length=0, wait=False):
        record(self.fds[name], OFD_SETLKW if wait else OFD_SETLK, kind, start, length)

    def getlk(self, name, kind, start=0, length=0):
        return record(self.fds[name], fcntl.F_GETLK, kind, start, length)

    def read(self, name, n, offset=0):
        return os.pread(self.fds[name], n, offset).decode()

    def write(self, name, text, offset=0):
        return os.pwrite(self.fds[name], text.encode(), offset)

    def fsync(self, name):
        os.fsync(self.fds[name])

    def fork(self):
        """A child that holds copies of all files, until it is killed or the test is over."""
        pid = os.fork()
        if pid == 0:
            os.read(TEST_ENDS[0], 1)
            os._exit(0)
        return pid


def serve(down, up):
    class Interrupted(Exception):
        pass

    def interrupted(*_):
        raise Interrupted  # else Python would call again

    signal.signal(signal.SIGINT, interrupted)
    commands = Commands()
    with os.fdopen(down) as lines:
        while True:
            line = lines.readline()
            if not line:
                os._exit(0)
            name, args = json.loads(line)
            try:
                answer = [0, getattr(commands, name)(*args)]
            except OSError as e:
                answer = [e.errno, None]
            except Interrupted:
                answer = [errno.EINTR, None]
            os.write(up, (json.dumps(answer) + "\n").encode())


class Actor:
    def __init__(self, path=None, flags=os.O_RDWR):
        down, up = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(down[1])
            os.close(up[0])
            os.close(TEST_ENDS[1])
            for other in Actor.fds:
                os.close(other)
            serve(down[0], up[1])
        os.close(down[0])
        os.close(up[1])
        self.down, self.up = down[1], os.fdopen(up[0])
        Actor.fds += [self.down, self.up.fileno()]
        Actor.all.append(self)
        self.alive = True
        if path:
            self.do("open", "f", path, flags)

    all, fds = [], []

    def start(self, name, *args):
        os.write(self.down, (json.dumps([name, args]) + "\n").encode())

    def wait(self, seconds=20):
        """The answer, or None if there is none in time."""
        if not select.select([self.up], [], [], seconds)[0]:
            return None
        line = self.up.readline()
        return json.loads(line) if line else None

    def call(self, name, *args):
        self.start(name, *args)
        answer = self.wait()
        assert answer is not None, f"{name}{args} is not answered"
        return answer

    def do(self, name, *args):
        status, value = self.call(name, *args)
        assert status == 0, f"{name}{args}: {errno.errorcode.get(status, status)}"
        return value

    def may(self, name, *args):
        """Done, or in the way of somebody."""
        status, _ = self.call(name, *args)
        assert status in (0, errno.EAGAIN, errno.EACCES), f"{name}{args}: {errno.errorcode[status]}"
        return status == 0

    def waits(self, name, *args):
        """Starts something that has to wait."""
        self.start(name, *args)
        answer = self.wait(0.3)
        assert answer is None, f"{name}{args} did not wait: {answer}"

    def got(self, seconds=20):
        answer = self.wait(seconds)
        assert answer is not None, "what was waited for did not come"
        assert answer[0] == 0, errno.errorcode[answer[0]]

    def kill(self, sig=signal.SIGKILL):
        os.kill(self.pid, sig)
        if sig == signal.SIGKILL:
            self.gone()

    def exit(self):
        os.close(self.down)
        Actor.fds.remove(self.down)
        self.gone()

    def gone(self):
        os.waitpid(self.pid, 0)
        self.alive = False


def soon(fn, *args, seconds=5):
    """A close is answered before the last reference is released: what follows from it comes soon."""
    end = time.monotonic() + seconds
    while not fn(*args):
        assert time.monotonic() < end, "not soon"


def finish():
    for a in Actor.all:
        if a.alive:
            a.kill()
    Actor.all.clear()
    Actor.fds.clear()
