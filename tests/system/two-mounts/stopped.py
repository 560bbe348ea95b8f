# SPDX-License-Identifier: Apache-2.0
"""A stopped client: stopped.py ADMIN CLUSTER MOUNT MOUNT, with the server's program in AIFS_MDS_PROGRAM. The lease time is made short."""
from rules import *
import signal, subprocess, time

ADMIN, C, A, B = sys.argv[1:]
LEASE = 10
SIZES = (100, 500000) # in the metadata server; in chunks


def demo(*args):
    subprocess.run([ADMIN, "-q", "demo", args[0], "--dir", C, *args[1:]], check=True)


def until(what, fn):
    end = time.monotonic() + 60
    while not fn():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def daemon_of(mount):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            args = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
        except OSError:
            continue
        if mount in args and "aifs" in args[0]:
            return int(pid)
    raise AssertionError(f"no daemon of {mount}")


for m in (A, B):
    demo("umount", m)
old = int(read(f"{C}/mds/run/pid"))
os.kill(old, signal.SIGTERM)
until("the server does not end", lambda: not os.path.exists(f"/proc/{old}"))
address = next(line.split("=")[1].strip() for line in open(f"{C}/admin.conf") if line.startswith("mds"))
with open(f"{C}/mds/log", "a") as log:
    server = subprocess.Popen([os.environ["AIFS_MDS_PROGRAM"], "--config", f"{C}/mds/mds.conf", f"--mds.listen={address}", f"--mds.lease={LEASE}s"],
                              stdout=log, stderr=log, start_new_session=True)
for m in (A, B):
    demo("mount", m)

for name in ("known", "from", "gone"):
    write(f"{B}/{name}", b"x")
# Calls that have nothing to lose, made while the client is stopped, by a process that has nothing open there.
HARMLESS = ("touch made", "mkdir dir", "ls .", "stat .", "cat known", "mv from to", "ln known linked", "rm gone", "chmod 600 known", "truncate -s 5 known")
harmless = subprocess.Popen(["bash", "-c", "read -r; pids=() status=0; for c; do $c >/dev/null & pids+=($!); done; for p in ${pids[@]}; do wait $p || status=1; done; exit $status", "harmless",
                             *(" ".join(f"{B}/{w}" if w in (".", "made", "dir", "known", "from", "to", "linked", "gone") else w for w in c.split()) for c in HARMLESS)],
                            stdin=subprocess.PIPE)
held = []
for size in SIZES:
    write(f"{B}/{size}", b"0" * size)
    fd = os.open(f"{B}/{size}", os.O_RDWR)
    os.fsync(fd)
    assert os.pread(fd, size, 0) == b"0" * size
    held.append(fd)
pid = daemon_of(B)
while True: # in the client's memory, under its lease, and not yet half a second old, at which age it would be written back
    for fd in held:
        os.fsync(fd)
    stopped = time.monotonic()
    for size, fd in zip(SIZES, held):
        os.pwrite(fd, b"late" * 20, 10)
    os.kill(pid, signal.SIGSTOP)
    if time.monotonic() < stopped + 0.25:
        break
    os.kill(pid, signal.SIGCONT)
harmless.stdin.write(b"now\n")
harmless.stdin.close()
for size in SIZES: # waits for the lease of the stopped one to end, and for the fence
    fd = os.open(f"{A}/{size}", os.O_RDWR)
    os.pwrite(fd, b"1" * size, 0)
    os.fsync(fd)
    os.close(fd)
while time.monotonic() < stopped + 2 * LEASE + 0.25:
    time.sleep(0.05) # the very thing that is tested
os.kill(pid, signal.SIGCONT)
assert harmless.wait(60) == 0, "calls that had nothing to lose fail"
assert sorted(os.listdir(A)) == sorted([str(s) for s in SIZES] + ["dir", "known", "linked", "made", "to"]), os.listdir(A)
for size, fd in zip(SIZES, held):
    is_error(errno.EIO, os.fsync, fd)
    os.close(fd)
for size in SIZES:
    for m in (A, B):
        assert read(f"{m}/{size}") == b"1" * size, f"a stopped client has changed a byte, as {m} sees it"
write(f"{B}/again", b"2")
assert read(f"{A}/again") == b"2", "it does not recover"
