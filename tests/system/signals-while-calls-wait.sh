#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The metadata server is down: calls that wait for it go on through signals that their process handles, and end with a process that a signal ends; execve(2), which closes files, too. And signals to a mount that is in use.
. "$(dirname "$0")/lib.sh"
export AIFS_REMOVE_AHEAD=no # what is answered ahead does not wait
cluster_up --oss 1
cat >"$T/calls.py" <<'P'
import ctypes, errno, fcntl, os, select, signal, sys, time
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True) # the bare calls: Python's own are made again after EINTR

def started(call, first=lambda: None):
    """A process that makes call() once the gate is open, with a signal coming in all the time, which it handles."""
    pid = os.fork()
    if pid == 0:
        try:
            libc.prctl(1, signal.SIGKILL) # PR_SET_PDEATHSIG
            os.close(gate[1])
            first()
            os.read(gate[0], 1)
            signal.signal(signal.SIGALRM, lambda *a: None)
            signal.siginterrupt(signal.SIGALRM, True)
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            code = 0 if call() >= 0 else ctypes.get_errno()
        finally:
            os._exit(code)
    return pid

def executing(name):
    """A process that becomes another program once the gate is open, and for that closes a file with data that no server takes.
    Only /proc/PID/status may be read of it: who asks for anything that depends on its memory waits as it does."""
    pid = os.fork()
    if pid == 0:
        try:
            libc.prctl(1, signal.SIGKILL)
            os.close(gate[1])
            signal.signal(signal.SIGURG, lambda *a: None)
            fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC)
            os.write(fd, b"x" * 100000)
            os.fsync(fd)
            os.write(written[1], b"x")
            os.read(gate[0], 1)
            os.write(fd, b"y" * 100000)
            os.execv("/bin/true", ["true"])
        finally:
            os._exit(100)
    return pid

def waiting(pid, sig):
    """Its status in a call that goes on although a signal has come (only one that ends it would wake it), else None."""
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.split(":\t", 1) for line in f)
    assert status["State"][0] != "Z", "not any more"
    return status if status["State"][0] == "D" and int(status["ShdPnd"], 16) >> sig - 1 & 1 else None

def waits(pid):
    return waiting(pid, signal.SIGALRM) is not None

def waits_in_execve(pid):
    """With the memory of another program, which is not loaded yet. The signal comes from here: timers do not outlive an execve(2)."""
    os.kill(pid, signal.SIGURG)
    status = waiting(pid, signal.SIGURG)
    return status and int(status["VmSize"].split()[0]) < 1000

def poll_of(fd):
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return poll

def comes_to_wait(pid, what, waits=waits):
    """Nothing tells of it; if it ends instead, that is looked at at once."""
    fd, end = os.pidfd_open(pid), time.monotonic() + 100
    while not waits(pid):
        assert time.monotonic() < end, f"{what} does not wait"
        poll_of(fd).poll(20)
    os.close(fd)

def outcome(pid, what):
    fd = os.pidfd_open(pid)
    assert poll_of(fd).poll(100000), f"{what} hangs"
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def say(word):
    print(word, flush=True)
    sys.stdin.readline()

for name in "opened", "renamed", "removed", "made", "changed", "ended", "killed": # one each: of one directory the kernel does one change at a time
    os.mkdir(name)
    open(f"{name}/f", "w").close()
gate, written = os.pipe(), os.pipe()
held = open("lock", "w")
fcntl.flock(held, fcntl.LOCK_EX)
locker = started(lambda: libc.flock(os.open("lock", os.O_RDWR), fcntl.LOCK_EX))
os.write(gate[1], b"x")
got = outcome(locker, "the wait for a lock")
assert got == errno.EINTR, f"a signal does not end the wait for a lock: {got}"
held.close()
def write():
    global dirty
    dirty = os.open("dirty", os.O_CREAT | os.O_RDWR)
    os.write(dirty, b"x" * 100000)
    os.fsync(dirty)
    os.write(written[1], b"x")
calls = { # those that a signal ends hold nothing open, which they would have to close
    "fsync": started(lambda: min(libc.write(dirty, b"y" * 100000, 100000), libc.fsync(dirty)), write),
    "open": started(lambda: libc.open(b"opened/new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)),
    "rename": started(lambda: libc.rename(b"renamed/f", b"renamed/g")),
    "unlink": started(lambda: libc.unlink(b"removed/f")),
    "mkdir": started(lambda: libc.mkdir(b"made/d", 0o755)),
    "chmod": started(lambda: libc.chmod(b"changed/f", 0o600)),
}
ending = {signal.SIGTERM: started(lambda: libc.unlink(b"ended/f")), signal.SIGKILL: started(lambda: libc.unlink(b"killed/f"))}
program = executing("goes-on")
ending_programs = {signal.SIGTERM: executing("ended-program"), signal.SIGKILL: executing("killed-program")}
for _ in range(4):
    assert poll_of(written[0]).poll(100000), "nothing is written"
    os.read(written[0], 1)
say("kill")
os.close(gate[0])
os.close(gate[1])
for what, pid in [*calls.items(), *ending.items()]:
    comes_to_wait(pid, what)
for pid in [program, *ending_programs.values()]:
    comes_to_wait(pid, "execve", waits_in_execve)
for sig, pid in [*ending.items(), *ending_programs.items()]: # the kernel tells the mount of the first signal only, and that was another
    os.kill(pid, sig)
    got = outcome(pid, f"a process that got {sig.name}")
    assert got == -sig, f"who got {sig.name} ends with {got}"
for what, pid in calls.items():
    assert waits(pid), f"{what} has ended without the server"
assert waits_in_execve(program), "execve has ended without the server"
say("start")
for what, pid in calls.items():
    got = outcome(pid, what)
    assert got == 0, f"{what} is {errno.errorcode.get(got, got)} because of a signal"
got = outcome(program, "execve")
assert got == 0, f"a program whose files were closed late ends with {got}"
assert [os.stat(name).st_size for name in ("goes-on", "ended-program", "killed-program")] == [200000] * 3, "what was written is not there"
there = [os.listdir(name) for name in ("opened", "renamed", "removed", "made")]
assert list(map(sorted, there)) == [["f", "new"], ["g"], [], ["d", "f"]], there
print("done", flush=True)
P
coproc python3 "$T/calls.py" "$M"
exec 4<&"${COPROC[0]}" 5>&"${COPROC[1]}"
calls=$COPROC_PID
while read -rt 250 said <&4; do
    case $said in
    kill) kill_daemon mds ;;
    start) start_again ;;
    *) break ;;
    esac
    echo go >&5
done
wait "$calls" || fail "a promise was broken"
[ "$said" = "done" ] || fail "it ends with '$said'"
# A mount in use: the first signal detaches it, the second ends it, and what was written through a mapping is kept.
src=127.0.0.1:$(cat "$C/mds/run/port"):/
mkdir "$T/ended"
mounts() { # LOG [WORD]: on $T/ended, and the pid of its daemon in $daemon
    expect "a mount of its own" "$MOUNT" "$src" "$T/ended" -o "keyfile=$C/key/client.key,log=$1${2:+,$2}"
    daemon=$(sed -n 's/.*aifs-mount\[\([0-9]*\)\].* is mounted on .*/\1/p' "$1")
}
mounts "$T/first.log"
python3 - "$T/ended/mapped" "$daemon" <<'P' || fail "signals to a mount in use"
import mmap, os, select, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 8192)
mapped = mmap.mmap(fd, 8192)
mapped[:5] = b"hello"
daemon = os.pidfd_open(int(sys.argv[2]))
for which in (signal.SIGTERM, signal.SIGINT):
    signal.pidfd_send_signal(daemon, which)
assert select.select([daemon], [], [], 200)[0], "it does not end"
try:
    os.write(fd, b"late")
except OSError:
    sys.exit()
sys.exit("a mount that has ended takes a write")
P
[ "$(head -c 6 "$M/mapped")" = hellox ] || fail "what was written through a mapping is lost: $(head -c 6 "$M/mapped")"
# With another mount on top: that is not the one to unmount.
mounts "$T/below.log"
below=$daemon
exec {held}<"$T/ended/mapped"
mounts "$T/top.log" multi
kill -TERM "$below"
wait_for 60 grep -q 'another mount lies on top' "$T/below.log" || fail "it does not say that another mount lies on top: $(cat "$T/below.log")"
[ "$(head -c 6 "$T/ended/mapped")" = hellox ] || fail "the mount on top is gone"
kill -INT "$below"
tail -s 0.02 --pid="$below" -f /dev/null
[ "$(head -c 6 "$T/ended/mapped")" = hellox ] || fail "the mount on top has gone with the one below"
exec {held}<&-
expect "the mount on top is unmounted" umount "$T/ended"
umount "$T/ended" || :
