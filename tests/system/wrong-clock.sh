#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clients whose clocks are an hour off, in both directions, change no time stamp by more than a moment; ctime never runs backwards.
. "$(dirname "$0")/lib.sh"
cluster_up --oss 2
W=$AIFS_BUILD/tests/wrong-clock.so
[ -e "$W" ] || fail "wrong-clock.so is not built"
mkdir "$T/fast" "$T/slow"
export AIFS_WRONG_CLOCK
for m in fast slow; do
    AIFS_WRONG_CLOCK=3600
    [ "$m" = fast ] || AIFS_WRONG_CLOCK=-3600
    LD_PRELOAD=$W expect "a $m mount" "$ADMIN" -q demo mount --dir "$C" "$T/$m"
done
python3 - "$T/fast" "$T/slow" "$M" <<'P' || fail "a clock that is wrong shows"
import os, sys, time
mounts = sys.argv[1:]
SLACK = 60 # a wrong clock shows by an hour; a busy machine by a few seconds
began = time.time()

def right(what, stamp):
    assert began - SLACK < stamp < time.time() + 1, f"{what}: off by {stamp - time.time():.0f} s"

last = {}
def look(path, times="amc"):
    name = os.path.basename(path)
    for m in mounts: # all mounts say the same
        s = os.stat(f"{m}/{path}")
        for t in times:
            right(f"{t}time of {path} on {m}", getattr(s, f"st_{t}time"))
        assert s.st_ctime_ns >= last.get(path, 0), f"ctime of {path} goes backwards by {last[path] - s.st_ctime_ns} ns on {m}"
        last[path] = s.st_ctime_ns
    return s

for m in mounts[:2]:
    d = os.path.basename(m)
    os.mkdir(f"{m}/{d}")
    look(d)
    for size in (100, 300000): # in the metadata server; in chunks
        f = f"{d}/{size}"
        with open(f"{m}/{f}", "wb", 0) as h:
            for _ in range(3):
                h.write(b"x" * size)
                look(f)
            os.fsync(h.fileno())
            look(f)
        look(f)
        os.utime(f"{m}/{f}")
        look(f)
        os.utime(f"{m}/{f}", ns=(1000, 2000)) # what is asked for is taken as it is
        assert look(f, "c").st_mtime_ns == 2000
        with open(f"{m}/{f}", "ab", 0) as h:
            h.write(b"x")
        look(f, "mc")
        os.truncate(f"{m}/{f}", 10)
        look(f, "mc")
    look(d)

# all of them change one file in turn
for i in range(30):
    m = mounts[i % 3]
    with open(f"{m}/turns", "ab", 0) as h:
        h.write(b"x")
    os.chmod(f"{m}/turns", 0o600 + i % 8)
    look("turns")
# all of them have it open and write
files = [open(f"{m}/together", "ab", 0) for m in mounts]
for i in range(30):
    files[i % 3].write(b"x")
    look("together")
for h in files:
    h.close()
look("together")
P
