# SPDX-License-Identifier: Apache-2.0
"""What locks survive and what frees them: lock_crashes.py CLUSTER MOUNT MOUNT, with ADMIN and MDS, the programs, in the environment."""
import errno
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lock_actors import Actor, finish, soon  # noqa: E402

C, A, B = sys.argv[1:4]
ADMIN, MDS = os.environ["ADMIN"], os.environ["MDS"]
LEASE = 4
server = []  # the one we have started
count = 0


def pair():
    global count
    count += 1
    with open(f"{A}/c{count}", "w") as f:
        f.write("0" * 100)
    return Actor(f"{A}/c{count}"), Actor(f"{B}/c{count}")


def demo(*args):
    subprocess.run([ADMIN, "-q", "demo", args[0], "--dir", C, *args[1:]], check=True)


def kill_mds():
    with open(f"{C}/mds/run/pid") as f:
        pid = int(f.read())
    os.kill(pid, signal.SIGKILL)
    if server:
        server.pop().wait()
    else:
        soon(lambda: not os.path.exists(f"/proc/{pid}"))


def start_mds():
    """By hand: the demo has no say in its lease time."""
    with open(f"{C}/admin.conf") as f:
        address = next(line.split("=")[1].strip() for line in f if line.startswith("mds"))
    with open(f"{C}/mds/log", "a") as log:
        args = [MDS, "--config", f"{C}/mds/mds.conf", f"--mds.listen={address}", f"--mds.lease={LEASE}s"]
        server.append(subprocess.Popen(args, stdout=log, stderr=log, start_new_session=True))


def daemon_of(mount):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                args = f.read().split("\0")
        except OSError:
            continue
        if mount in args and "aifs" in args[0]:
            return int(pid)
    raise AssertionError(f"no daemon of {mount}")


def mount_again():
    subprocess.run(["umount", "-l", B], check=False)
    subprocess.run([ADMIN, "-q", "demo", "umount", "--dir", C, B], check=False, stderr=subprocess.DEVNULL)
    demo("mount", B)


def the_locks_of_a_killed_mount_are_free_within_the_lease_time():
    a, b = pair()
    b.do("flock", "f", "w")
    b.do("lock", "f", "w", 0, 10)
    a.waits("lock", "f", "w", 5, 1, True)
    pid = daemon_of(B)
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    a.got(LEASE + 10)
    assert time.monotonic() - began < LEASE + 3, time.monotonic() - began
    assert a.may("flock", "f", "w")
    b.kill()
    mount_again()


def locks_and_waits_survive_a_killed_metadata_server():
    a, b = pair()
    c = Actor(f"{A}/c{count}")
    a.do("flock", "f", "w")
    a.do("lock", "f", "w", 0, 10)
    b.waits("flock", "f", "w", True)
    c.waits("lock", "f", "w", 0, 1, True)
    kill_mds()
    assert b.wait(0.5) is None and c.wait(0.1) is None
    start_mds()
    d = Actor(f"{B}/c{count}")
    assert not d.may("lock", "f", "r", 9, 1)
    assert not d.may("flock", "f", "r")
    assert b.wait(0.5) is None
    a.do("lock", "f", "u")
    a.do("flock", "f", "u")
    b.got()
    c.got()


def an_unlock_that_meets_a_dead_server_is_done_when_it_is_back():
    a, b = pair()
    a.do("lock", "f", "w")
    b.waits("lock", "f", "w", 0, 0, True)
    kill_mds()
    a.start("lock", "f", "u")
    start_mds()
    a.got()
    b.got()


def who_waits_can_be_interrupted_and_killed_without_a_server():
    a, b = pair()
    c = Actor(f"{B}/c{count}")
    a.do("flock", "f", "w")
    b.waits("flock", "f", "w", True)
    c.waits("flock", "f", "w", True)
    kill_mds()
    b.kill(signal.SIGINT)
    assert b.wait(10)[0] == errno.EINTR
    c.kill()
    start_mds()
    a.do("flock", "f", "u")
    assert b.may("flock", "f", "w")


def a_mount_that_was_stopped_too_long_has_lost_its_locks_and_its_files_say_so():
    a, b = pair()
    b.do("lock", "f", "w")
    b.do("open", "free", f"{B}/c{count - 1}")
    pid = daemon_of(B)
    os.kill(pid, signal.SIGSTOP)
    a.start("lock", "f", "w", 0, 0, True)
    a.got(LEASE + 10)
    a.do("write", "f", "mine")
    os.kill(pid, signal.SIGCONT)
    soon(lambda: b.call("write", "f", "stolen")[0] == errno.EIO, seconds=20)
    assert b.call("lock", "f", "w")[0] == errno.EIO
    b.do("read", "free", 1)  # no lock was held through it
    assert a.do("read", "f", 4) == "mine"
    b.do("close", "f")
    b.do("open", "f", f"{B}/c{count}")
    assert b.do("read", "f", 4) == "mine"
    assert not b.may("lock", "f", "w")


def a_waiter_whose_mount_is_killed_keeps_nobody_waiting():
    a, b = pair()
    a.do("flock", "f", "r")
    b.waits("flock", "f", "w", True)
    os.kill(daemon_of(B), signal.SIGKILL)
    c = Actor(f"{A}/c{count}")
    c.start("flock", "f", "r", True)  # behind the writer, as long as that one is in line
    c.got(LEASE + 10)
    b.kill()
    mount_again()


for mount in (A, B):
    demo("umount", mount)
kill_mds()
start_mds()
for mount in (A, B):
    demo("mount", mount)
for name, rule in list(globals().items()):
    if not callable(rule) or getattr(rule, "__module__", None) != "__main__" or name in (
            "pair", "demo", "kill_mds", "start_mds", "daemon_of", "mount_again"):
        continue
    began = time.monotonic()
    try:
        rule()
    except AssertionError as e:
        print(f"FAILED: {name.replace('_', ' ')}: {e}")
        raise
    finally:
        finish()
    print(f"-- {name.replace('_', ' ')} ({time.monotonic() - began:.1f} s)", flush=True)
