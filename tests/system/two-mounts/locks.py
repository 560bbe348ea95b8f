# SPDX-License-Identifier: Apache-2.0
from rules import *
import fcntl, struct, time

EXCL, SHARED, NOW, FREE = fcntl.LOCK_EX, fcntl.LOCK_SH, fcntl.LOCK_NB, fcntl.LOCK_UN
OFD_SETLK = 37


class Other:
    """A process that opens a file and locks it when told; record locks belong to processes."""
    def __init__(self, path):
        r, self.w = os.pipe()
        self.r, w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.w)
            f = open(path, "r+b", 0)
            while line := os.read(r, 1000):
                os.write(w, b"%d\n" % error(lambda: eval(line, globals(), {"f": f})))
            os._exit(0)
        os.close(r)
        os.close(w)

    def tell(self, text):
        os.write(self.w, text.encode())
        return self

    def answer(self):
        return int(os.read(self.r, 100))

    def ask(self, text):
        return self.tell(text).answer()

    def end(self):
        os.write(self.w, b"os._exit(0)")
        os.waitpid(self.pid, 0)
        os.close(self.w)
        os.close(self.r)


def pair(a, b):
    write(f"{a}/f", b"0" * 1000)
    return open(f"{a}/f", "r+b", 0), open(f"{b}/f", "r+b", 0)


@rule("flock of A keeps B out, until it is released")
def _(a, b):
    x, y = pair(a, b)
    fcntl.flock(x, EXCL)
    is_error(errno.EAGAIN, fcntl.flock, y, EXCL | NOW)
    is_error(errno.EAGAIN, fcntl.flock, y, SHARED | NOW)
    fcntl.flock(x, FREE)
    fcntl.flock(y, EXCL | NOW)


@rule("shared flocks of A and B stand beside each other")
def _(a, b):
    x, y = pair(a, b)
    fcntl.flock(x, SHARED)
    fcntl.flock(y, SHARED | NOW)
    is_error(errno.EAGAIN, fcntl.flock, y, EXCL | NOW)


@rule("who waits on B gets the flock when A releases it")
def _(a, b):
    x, y = pair(a, b)
    fcntl.flock(x, EXCL)
    t = thread(fcntl.flock, y, EXCL)
    fcntl.flock(x, FREE)
    join(t)
    is_error(errno.EAGAIN, fcntl.flock, x, EXCL | NOW)


@rule("record locks of A keep B out of their bytes and of no others")
def _(a, b):
    x, _ = pair(a, b)
    o = Other(f"{b}/f")
    fcntl.lockf(x, EXCL, 100, 100)
    same(o.ask("fcntl.lockf(f, EXCL | NOW, 100, 0)"), 0)
    same(o.ask("fcntl.lockf(f, EXCL | NOW, 100, 199)"), errno.EAGAIN)
    same(o.ask("fcntl.lockf(f, SHARED | NOW, 1, 100)"), errno.EAGAIN)
    same(o.ask("fcntl.lockf(f, EXCL | NOW, 0, 200)"), 0)
    fcntl.lockf(x, FREE, 50, 100)
    same(o.ask("fcntl.lockf(f, EXCL | NOW, 50, 100)"), 0)
    same(o.ask("fcntl.lockf(f, EXCL | NOW, 1, 150)"), errno.EAGAIN)
    o.end()


@rule("record locks of a process on B are gone when it has ended")
def _(a, b):
    x, _ = pair(a, b)
    o = Other(f"{b}/f")
    same(o.ask("fcntl.lockf(f, EXCL | NOW)"), 0)
    is_error(errno.EAGAIN, fcntl.lockf, x, EXCL | NOW)
    o.end()
    fcntl.lockf(x, EXCL | NOW)


@rule("a circle of waits between A and B is EDEADLK for one of them")
def _(a, b):
    pair(a, b)
    p, q = Other(f"{a}/f"), Other(f"{b}/f")
    same((p.ask("fcntl.lockf(f, EXCL, 1, 0)"), q.ask("fcntl.lockf(f, EXCL, 1, 1)")), (0, 0))
    p.tell("fcntl.lockf(f, EXCL, 1, 1)")
    q.tell("fcntl.lockf(f, EXCL, 1, 0)")
    import select
    ready = select.select([p.r, q.r], [], [], 120)[0]
    first, second = (p, q) if p.r in ready else (q, p)
    same(first.answer(), errno.EDEADLK)
    same(first.ask("fcntl.lockf(f, FREE)"), 0)
    same(second.answer(), 0)
    p.end()
    q.end()


@rule("F_GETLK on B tells of the lock of A")
def _(a, b):
    x, y = pair(a, b)
    fcntl.lockf(x, EXCL, 10, 5)
    o = Other(f"{b}/f")
    ask = "(_ for _ in ()).throw(OSError(struct.unpack('hhqqi4x', fcntl.fcntl(f, fcntl.F_GETLK, struct.pack('hhqqi4x', 1, 0, 0, 0, 0)))[2], ''))"
    same(o.ask(ask), 5)
    o.end()


@rule("locks of open file descriptions of A and B conflict")
def _(a, b):
    x, y = pair(a, b)
    lock = struct.pack("hhqqi4x", 1, 0, 0, 10, 0)
    fcntl.fcntl(x, OFD_SETLK, lock)
    is_error(errno.EAGAIN, fcntl.fcntl, y, OFD_SETLK, lock)
    x.close()
    end = time.monotonic() + 60
    while error(fcntl.fcntl, y, OFD_SETLK, lock) != 0: # the last close releases a moment after it has returned
        assert time.monotonic() < end, "still locked"
        time.sleep(0.01)


@rule("a counter under a lock is counted by both without a gap")
def _(a, b):
    pair(a, b)
    write(f"{a}/f", b"0")

    def count(path):
        fd = os.open(path, os.O_RDWR)
        for _ in range(25):
            fcntl.flock(fd, EXCL)
            n = int(os.pread(fd, 20, 0))
            os.pwrite(fd, b"%d" % (n + 1), 0)
            fcntl.flock(fd, FREE)
        os.close(fd)
    for t in [thread(count, f"{p}/f") for p in (a, b)]:
        join(t)
    same(read(f"{a}/f"), b"50")


if __name__ == "__main__":
    run(*sys.argv[1:])
