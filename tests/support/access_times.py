#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What relatime promises, between a mount that has it, a second one, and one that has not.

usage: access_times.py WITH WITH2 WITHOUT
"""
import mmap
import os
import sys
import time

A, B, OFF = sys.argv[1:4]
LIMIT = 60


def until(what, holds):
    """Told in a moment, by a CLOSE that nobody waits for: whoever may know is asked until he does."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end, what
        os.sched_yield()


def make(name, data=b"x" * 100):
    with open(f"{A}/{name}", "wb") as f:
        f.write(data)
    return os.stat(f"{A}/{name}")


def read(path, flags=0):
    fd = os.open(path, os.O_RDONLY | flags)
    try:
        return os.read(fd, 1 << 20)
    finally:
        os.close(fd)


def times(path):
    s = os.lstat(path)
    return s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns


def asked(path):
    """The server's word: opening asks it."""
    fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
    try:
        s = os.fstat(fd)
        return s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns
    finally:
        os.close(fd)


def was_read(path):
    atime, mtime, _ = times(path)
    return atime > mtime


def known_read(path):
    atime, mtime, _ = asked(path)
    return atime > mtime


def all_told():
    """What was read through A so far is known to the server."""
    all_told.number += 1
    name = f"told{all_told.number}"
    make(name), read(f"{A}/{name}")
    until("a later read is known", lambda: known_read(f"{B}/{name}"))


all_told.number = 0


def the_mounts_say_what_they_do():
    words = {line.split()[1]: line.split()[3].split(",") for line in open("/proc/self/mounts")}
    assert "relatime" in words[A] and "relatime" in words[B], words[A]
    assert "noatime" in words[OFF], words[OFF]


def a_read_sets_atime_and_nothing_else():
    for size in (100, 100_000):
        before = make("a", b"y" * size)
        assert not was_read(f"{A}/a")
        assert len(read(f"{A}/a")) == size
        atime, mtime, ctime = times(f"{A}/a")
        assert atime > mtime and (mtime, ctime) == (before.st_mtime_ns, before.st_ctime_ns)
        assert atime <= time.time_ns() + 10**9
        until("the other mount sees it", lambda: known_read(f"{B}/a"))
        assert times(f"{B}/a") == (atime, mtime, ctime)


def a_second_read_does_not_move_it():
    first = times(f"{A}/a")
    read(f"{A}/a"), read(f"{B}/a")
    assert times(f"{A}/a") == first
    all_told()
    assert asked(f"{B}/a") == asked(f"{A}/a") == first


def a_change_makes_the_next_read_count():
    with open(f"{A}/a", "ab") as f:
        f.write(b"more")
    assert not was_read(f"{A}/a")
    read(f"{A}/a")
    assert was_read(f"{A}/a")
    os.chmod(f"{A}/a", 0o600)
    atime, _, ctime = times(f"{A}/a")
    assert atime < ctime
    read(f"{A}/a")
    assert times(f"{A}/a")[0] > ctime


def a_day_makes_it_count_too():
    now = time.time_ns()
    make("old")
    for age, counts in ((23 * 3600, False), (25 * 3600, True)):
        os.utime(f"{A}/old", ns=(now + 10**9, now - age * 10**9))
        # ctime is now: only atime in the future is after it
        set_to = times(f"{A}/old")[0]
        read(f"{A}/old")
        assert times(f"{A}/old")[0] == set_to
    make("older")
    os.utime(f"{A}/older", ns=(now - 25 * 3600 * 10**9, now))
    read(f"{A}/older")
    assert times(f"{A}/older")[0] >= now


def a_writer_elsewhere_makes_it_count():
    read(f"{A}/a")
    all_told()  # two clients' clocks may differ by a little
    with open(f"{B}/a", "ab") as f:
        f.write(b"from there")
    until("the write is seen", lambda: not was_read(f"{A}/a"))
    read(f"{A}/a")
    assert was_read(f"{A}/a")
    until("there too", lambda: known_read(f"{B}/a"))


def what_is_written_and_read_here_counts():
    make("w")
    read(f"{A}/w")
    for again in range(3):  # the kernel has its pages from the last read
        with open(f"{A}/w", "r+b") as f:
            f.write(b"%d" % again)
        assert not was_read(f"{A}/w")
        read(f"{A}/w")
        assert was_read(f"{A}/w")


def a_mapping_counts():
    make("m", b"z" * 5000)
    fd = os.open(f"{A}/m", os.O_RDONLY)
    with mmap.mmap(fd, 5000, mmap.MAP_PRIVATE, mmap.PROT_READ) as m:
        assert m[4999] == ord("z")
    os.close(fd)
    assert was_read(f"{A}/m")


def noatime_is_asked_for_by_open():
    make("n")
    read(f"{A}/n", os.O_NOATIME)
    assert not was_read(f"{A}/n")
    with open(f"{A}/n", "rb"):
        pass  # opened, and not read
    assert not was_read(f"{A}/n")


def a_time_that_is_set_wins():
    make("s")
    before = times(f"{A}/s")[0]
    fd = os.open(f"{A}/s", os.O_RDONLY)  # as tar --atime-preserve
    os.read(fd, 100)
    os.utime(fd, ns=(before, 10**18))
    os.close(fd)
    assert times(f"{A}/s")[0] == before
    all_told()
    assert asked(f"{B}/s")[0] == times(f"{A}/s")[0] == before


def directories_and_links_count():
    os.mkdir(f"{A}/d")
    os.symlink("nowhere", f"{A}/link")
    assert not was_read(f"{A}/d") and not was_read(f"{A}/link")
    os.listdir(f"{A}/d"), os.readlink(f"{A}/link")
    assert was_read(f"{A}/d") and was_read(f"{A}/link")
    all_told()
    until("there too, at the latest in half a minute", lambda: was_read(f"{B}/d") and was_read(f"{B}/link"))


def a_file_that_stays_open_is_told_of():
    make("open")
    with open(f"{A}/open", "rb") as f:
        f.read()
        until("while it is open", lambda: known_read(f"{B}/open"))


def nothing_is_set_without_it():
    make("off")
    read(f"{OFF}/off"), os.listdir(OFF)
    all_told()
    assert not known_read(f"{OFF}/off") and not known_read(f"{A}/off")


RULES = [
    the_mounts_say_what_they_do,
    a_read_sets_atime_and_nothing_else,
    a_second_read_does_not_move_it,
    a_change_makes_the_next_read_count,
    a_day_makes_it_count_too,
    a_writer_elsewhere_makes_it_count,
    what_is_written_and_read_here_counts,
    a_mapping_counts,
    noatime_is_asked_for_by_open,
    a_time_that_is_set_wins,
    directories_and_links_count,
    a_file_that_stays_open_is_told_of,
    nothing_is_set_without_it,
]
for rule in RULES:
    try:
        rule()
    except BaseException:
        print(f"FAILED: {rule.__name__.replace('_', ' ')}", flush=True)
        raise
print(f"{len(RULES)} rules hold")
