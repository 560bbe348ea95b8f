# SPDX-License-Identifier: Apache-2.0
"""Rules between two mounts: a sentence and a function of two paths, which are one directory as mount A and mount B see it. Every rule runs in both
directions, in a directory of its own that both mounts have listed. What it touches before A changes it, B has cached."""
import ctypes, errno, os, sys, threading

RULES = []


def rule(sentence):
    def add(fn):
        RULES.append((sentence, fn))
        return fn
    return add


def write(path, data=b"x", flags=0):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | flags, 0o666)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def error(fn, *args, **kw):
    """The errno of a call, 0 if it succeeds."""
    try:
        fn(*args, **kw)
    except OSError as e:
        return e.errno
    return 0


def is_error(want, fn, *args, **kw):
    got = error(fn, *args, **kw)
    assert got == want, f"{errno.errorcode.get(got, got)} instead of {errno.errorcode[want]}"


def same(got, want):
    assert got == want, f"{got!r} instead of {want!r}"


def gone(path):
    is_error(errno.ENOENT, os.lstat, path)


libc = ctypes.CDLL(None, use_errno=True)


def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags) != 0:
        raise OSError(ctypes.get_errno(), old)


NOREPLACE, EXCHANGE = 1, 2


def as_user(uid, fn, groups=()):
    """fn() in a process of another user: True, or the errno it fails with."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            os.setgroups(groups)
            os.setgid(uid)
            os.setuid(uid)
            code = error(fn)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def thread(fn, *args):
    t = threading.Thread(target=fn, args=args, daemon=True)
    t.start()
    return t


def join(t):
    t.join(120)
    assert not t.is_alive(), "it hangs"


def run(one, two):
    group = os.path.basename(sys.argv[0])[:-3]
    for n, (sentence, fn) in enumerate(RULES):
        for way, (a, b) in enumerate(((one, two), (two, one))):
            name = f"{group}.{n}.{way}"
            os.mkdir(f"{a}/{name}")
            os.chmod(f"{a}/{name}", 0o755)
            os.listdir(f"{b}/{name}")
            try:
                fn(f"{a}/{name}", f"{b}/{name}")
            except Exception as e:
                raise SystemExit(f"FAILED: {sentence} ({'BA'[way == 0]} changes): {type(e).__name__}: {e}, line {e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0}")
    print(len(RULES), "rules of", group)
