# SPDX-License-Identifier: Apache-2.0
"""What a file without a name does: unnamed_files.py CLUSTER MOUNT MOUNT, with ADMIN, the program, in the environment."""
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time

C, A, B = sys.argv[1:4]
ADMIN = os.environ["ADMIN"]


def unnamed(where=A, flags=0):
    return os.open(where, os.O_TMPFILE | os.O_RDWR | flags, 0o640)


def link(fd, to):
    os.link(f"/proc/self/fd/{fd}", to, src_dir_fd=fd)  # with a directory Python follows the link


def refused(code, what, *args):
    try:
        what(*args)
    except OSError as e:
        assert e.errno == code, e
        return
    raise AssertionError("it worked")


def orphans():
    text = subprocess.run([ADMIN, "--json", "status"], check=True, capture_output=True).stdout
    return json.loads(text)["items"][0]["orphans"]


def restart_mds():
    with open(f"{C}/mds/run/pid") as f:
        pid = int(f.read())
    gone = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    poll = select.poll()
    poll.register(gone, select.POLLIN)
    assert poll.poll(60000), "the metadata server does not die"
    os.close(gone)
    subprocess.run([ADMIN, "-q", "demo", "up", "--dir", C], check=True)


class Restart:
    """A process that restarts the server when told: it must not have our files, since it would flush them when it closes them."""

    def __init__(self):
        told, self.tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.tell)
            try:
                if os.read(told, 1):
                    restart_mds()
            finally:
                os._exit(1 if sys.exc_info()[0] else 0)
        os.close(told)

    def now(self):
        os.write(self.tell, b"x")
        assert os.waitpid(self.pid, 0)[1] == 0


def no_mount_lists_it_and_closing_it_is_its_end():
    fd = unnamed()
    os.write(fd, b"x" * 100000)
    assert os.fstat(fd).st_nlink == 0
    assert os.listdir(A) == os.listdir(B) == []
    assert os.pread(fd, 10, 99990) == b"x" * 10
    before = orphans()
    os.close(fd)
    assert before == 1, before
    end = time.monotonic() + 60
    while orphans() > 0:  # each question takes its time
        assert time.monotonic() < end, "it outlives its last close"


def linkat_names_it_on_every_mount():
    fd = unnamed()
    os.write(fd, b"small")
    link(fd, f"{A}/small")
    assert os.fstat(fd).st_nlink == 1
    os.write(fd, b", and more")
    os.fsync(fd)
    with open(f"{B}/small") as f:
        assert f.read() == "small, and more"
    assert os.stat(f"{B}/small").st_mode & 0o777 == 0o640
    os.close(fd)
    os.unlink(f"{B}/small")
    refused(errno.ENOENT, os.stat, f"{A}/small")


def linkat_replaces_nothing():
    with open(f"{B}/there", "w") as f:
        f.write("old")
    fd = unnamed()
    refused(errno.EEXIST, link, fd, f"{A}/there")
    os.close(fd)
    with open(f"{A}/there") as f:
        assert f.read() == "old"


def with_o_excl_it_never_gets_a_name():
    fd = unnamed(flags=os.O_EXCL)
    refused(errno.ENOENT, link, fd, f"{A}/never")
    os.close(fd)


def a_file_that_has_lost_its_name_does_not_get_another():
    fd = os.open(f"{A}/lost", os.O_CREAT | os.O_RDWR)
    os.unlink(f"{A}/lost")
    refused(errno.ENOENT, link, fd, f"{A}/found")
    os.close(fd)


def it_needs_a_directory_that_may_be_written():
    os.mkdir(f"{A}/d", 0o755)
    refused(errno.ENOTDIR, unnamed, f"{A}/there")
    pid = os.fork()
    if pid == 0:
        os.setgid(1234)
        os.setuid(1234)
        try:
            unnamed(f"{A}/d")
        except PermissionError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def it_survives_the_metadata_server():
    restart = Restart()
    small, large = unnamed(), unnamed()
    os.write(small, b"s" * 10)
    os.write(large, b"l" * 3000000)
    os.fsync(large)
    restart.now()
    os.write(small, b"t")
    link(small, f"{A}/s")
    link(large, f"{A}/l")
    os.fsync(small)
    with open(f"{B}/s") as s, open(f"{B}/l") as f:
        assert s.read() == "s" * 10 + "t"
        assert f.read() == "l" * 3000000
    os.close(small)
    os.close(large)


for rule in (
    no_mount_lists_it_and_closing_it_is_its_end,
    linkat_names_it_on_every_mount,
    linkat_replaces_nothing,
    with_o_excl_it_never_gets_a_name,
    a_file_that_has_lost_its_name_does_not_get_another,
    it_needs_a_directory_that_may_be_written,
    it_survives_the_metadata_server,
):
    print(rule.__name__.replace("_", " "), flush=True)
    rule()
