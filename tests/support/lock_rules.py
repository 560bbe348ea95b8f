# SPDX-License-Identifier: Apache-2.0
"""Rules of file locks between two mounts, each a function named by its sentence: lock_rules.py MOUNT MOUNT"""
import errno
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lock_actors import Actor, finish, soon  # noqa: E402

A, B = sys.argv[1:3]
count = 0


def pair(flags=os.O_RDWR):
    global count
    count += 1
    with open(f"{A}/f{count}", "w") as f:
        f.write("0" * 100)
    return Actor(f"{A}/f{count}", flags), Actor(f"{B}/f{count}", flags)


def an_exclusive_flock_excludes_the_other_mount_and_shared_ones_share():
    a, b = pair()
    a.do("flock", "f", "w")
    assert not b.may("flock", "f", "r")
    a.do("flock", "f", "u")
    assert b.may("flock", "f", "r")
    assert a.may("flock", "f", "r")
    assert not a.may("flock", "f", "w")


def record_locks_exclude_the_other_mount_where_they_overlap():
    a, b = pair()
    a.do("lock", "f", "w", 10, 10)
    assert not b.may("lock", "f", "w", 19, 5)
    assert not b.may("lock", "f", "r", 0, 0)
    assert b.may("lock", "f", "w", 0, 10)
    assert b.may("lock", "f", "w", 20, 0)
    assert not a.may("lock", "f", "r", 1 << 40, 1)


def open_file_descriptions_exclude_each_other_even_in_one_process():
    a, b = pair()
    a.do("open", "g", f"{A}/f{count}")
    a.do("ofd", "f", "w", 0, 10)
    assert not a.may("ofd", "g", "w", 5, 10)
    assert not b.may("ofd", "f", "r", 0, 1)
    assert not b.may("lock", "f", "r", 0, 1)
    assert a.may("ofd", "g", "w", 10, 10)


def flock_and_fcntl_do_not_see_each_other():
    a, b = pair()
    a.do("flock", "f", "w")
    assert b.may("lock", "f", "w")
    assert not a.may("lock", "f", "r")
    assert not b.may("flock", "f", "r")


def a_lock_needs_a_file_open_for_what_it_is():
    a, _ = pair(os.O_RDONLY)
    assert a.call("lock", "f", "w")[0] == errno.EBADF
    assert a.may("lock", "f", "r")
    assert a.may("flock", "f", "w")


def a_waiting_flock_is_granted_when_the_other_unlocks():
    a, b = pair()
    a.do("flock", "f", "w")
    b.waits("flock", "f", "w", True)
    a.do("flock", "f", "u")
    b.got()
    assert not a.may("flock", "f", "r")


def a_waiting_record_lock_is_granted_when_the_other_closes():
    a, b = pair()
    a.do("lock", "f", "w", 5, 1)
    b.waits("lock", "f", "r", 0, 0, True)
    a.do("close", "f")
    b.got()


def a_waiting_lock_is_granted_when_the_other_exits():
    for name in ("lock", "flock", "ofd"):
        a, b = pair()
        a.do(name, "f", "w")
        b.waits(*((name, "f", "w", True) if name == "flock" else (name, "f", "w", 0, 0, True)))
        a.exit()
        b.got()


def a_waiting_lock_is_granted_when_the_other_is_killed():
    for name in ("lock", "flock", "ofd"):
        a, b = pair()
        a.do(name, "f", "w")
        b.waits(*((name, "f", "w", True) if name == "flock" else (name, "f", "w", 0, 0, True)))
        a.kill()
        b.got()


def an_ofd_lock_goes_with_the_last_close_of_its_file_and_not_before():
    a, b = pair()
    a.do("ofd", "f", "w")
    child = a.do("fork")
    a.exit()
    assert not b.may("ofd", "f", "r")
    os.kill(child, signal.SIGKILL)
    soon(b.may, "ofd", "f", "r")


def a_record_lock_goes_with_its_process_although_a_child_has_the_file():
    a, b = pair()
    a.do("lock", "f", "w")
    child = a.do("fork")
    assert not b.may("lock", "f", "r")
    a.exit()
    soon(b.may, "lock", "f", "r")
    os.kill(child, signal.SIGKILL)


def a_flock_is_shared_with_a_child_and_goes_with_the_last_of_them():
    a, b = pair()
    a.do("flock", "f", "w")
    child = a.do("fork")
    a.exit()
    assert not b.may("flock", "f", "r")
    os.kill(child, signal.SIGKILL)
    soon(b.may, "flock", "f", "r")


def closing_any_descriptor_of_a_file_drops_its_process_record_locks():
    a, b = pair()
    a.do("lock", "f", "w")
    a.do("open", "g", f"{A}/f{count}", os.O_RDONLY)
    a.do("close", "g")
    soon(b.may, "lock", "f", "w")


def an_unlock_in_the_middle_splits_a_range_and_a_lock_joins_it_again():
    a, b = pair()
    a.do("lock", "f", "w", 0, 100)
    a.do("lock", "f", "u", 40, 20)
    assert b.do("getlk", "f", "r", 0, 0)[:3] == ["w", 0, 40]
    assert b.do("getlk", "f", "r", 40, 20)[0] == "u"
    assert b.do("getlk", "f", "r", 40, 0)[:3] == ["w", 60, 40]
    a.do("lock", "f", "w", 40, 20)
    assert b.do("getlk", "f", "r", 50, 1)[:3] == ["w", 0, 100]
    a.do("lock", "f", "r", 90, 0)
    assert b.do("getlk", "f", "w", 95, 1)[:3] == ["r", 90, 0]
    assert b.do("getlk", "f", "r", 95, 1)[0] == "u"


def getlk_names_the_process_of_this_mount_and_none_of_another():
    a, b = pair()
    c = Actor(f"{A}/f{count}")
    a.do("lock", "f", "w")
    assert c.do("getlk", "f", "w")[3] == a.pid
    assert b.do("getlk", "f", "w")[3] == 0
    assert a.do("getlk", "f", "w")[0] == "u"


def a_read_lock_becomes_a_write_lock_and_back():
    a, b = pair()
    a.do("lock", "f", "r")
    b.do("lock", "f", "r")
    assert not a.may("lock", "f", "w")
    assert not b.may("lock", "f", "w")  # a refusal has taken nothing away
    a.waits("lock", "f", "w", 0, 0, True)
    b.do("lock", "f", "u")
    a.got()
    b.waits("lock", "f", "r", 0, 0, True)
    a.do("lock", "f", "r")
    b.got()


def a_shared_flock_becomes_exclusive_and_back():
    a, b = pair()
    a.do("flock", "f", "r")
    b.do("flock", "f", "r")
    a.waits("flock", "f", "w", True)
    b.do("flock", "f", "w", True)  # a has given up its own while it waits
    b.do("flock", "f", "u")
    a.got()
    b.waits("flock", "f", "r", True)
    a.do("flock", "f", "r")
    b.got()


def a_circle_across_mounts_is_edeadlk():
    a, b = pair()
    a.do("lock", "f", "w", 0, 1)
    b.do("lock", "f", "w", 1, 1)
    a.waits("lock", "f", "w", 1, 1, True)
    assert b.call("lock", "f", "w", 0, 1, True)[0] == errno.EDEADLK
    b.do("lock", "f", "u")
    a.got()


def a_circle_over_two_files_and_three_processes_is_edeadlk():
    a, b = pair()
    c = Actor(f"{A}/f{count}")
    with open(f"{B}/other{count}", "w"):
        pass
    b.do("open", "g", f"{B}/other{count}")
    c.do("open", "g", f"{A}/other{count}")
    a.do("lock", "f", "w", 0, 1)
    b.do("lock", "f", "w", 1, 1)
    c.do("lock", "g", "w")
    a.waits("lock", "f", "w", 1, 1, True)
    b.waits("lock", "g", "w", 0, 0, True)
    assert c.call("lock", "f", "w", 0, 1, True)[0] == errno.EDEADLK
    c.exit()
    b.got()
    b.exit()
    a.got()


def two_readers_that_both_want_to_write_are_a_deadlock():
    a, b = pair()
    a.do("lock", "f", "r")
    b.do("lock", "f", "r")
    a.waits("lock", "f", "w", 0, 0, True)
    assert b.call("lock", "f", "w", 0, 0, True)[0] == errno.EDEADLK


def a_signal_ends_a_wait_at_once_and_lets_others_pass():
    a, b = pair()
    c = Actor(f"{B}/f{count}")
    a.do("lock", "f", "r")
    b.waits("lock", "f", "w", 0, 0, True)
    c.waits("lock", "f", "r", 0, 0, True)  # behind the writer that came first
    began = time.monotonic()
    b.kill(signal.SIGINT)
    assert b.wait()[0] == errno.EINTR
    assert time.monotonic() - began < 0.9
    c.got(3)
    assert b.may("lock", "f", "r")


def a_process_that_waits_can_be_killed_and_is_out_of_the_line():
    a, b = pair()
    c = Actor(f"{B}/f{count}")
    a.do("flock", "f", "w")
    b.waits("flock", "f", "w", True)
    c.waits("flock", "f", "w", True)
    b.kill()
    a.do("flock", "f", "u")
    c.got(3)


def waits_are_served_in_the_order_they_came():
    a, b = pair()
    line = [b, Actor(f"{A}/f{count}"), Actor(f"{B}/f{count}"), Actor(f"{A}/f{count}")]
    a.do("lock", "f", "w")
    for w in line:
        w.waits("lock", "f", "w", 0, 0, True)
    holder = a
    for i, w in enumerate(line):
        holder.do("lock", "f", "u")
        w.got()
        assert all(x.wait(0.05) is None for x in line[i + 1 :])
        holder = w


def who_reads_and_keeps_a_writer_out_may_read_more():
    a, b = pair()
    a.do("lock", "f", "r", 0, 10)
    b.waits("lock", "f", "w", 0, 100, True)
    a.do("lock", "f", "r", 5, 20, True)
    a.do("lock", "f", "u")
    b.got()


def who_gets_the_lock_reads_what_its_predecessor_wrote():
    for name in ("lock", "flock", "ofd"):
        a, b = pair()
        turn, number = [a, b], 0
        for i in range(60):
            who = turn[i % 2]
            who.do(*((name, "f", "w", True) if name == "flock" else (name, "f", "w", 0, 0, True)))
            assert int(who.do("read", "f", 10)) == number, (name, i)
            number += 1
            who.do("write", "f", f"{number:010}")
            who.do(name, "f", "u")


def a_counter_under_a_lock_loses_no_increment():
    a, b = pair()
    a.do("write", "f", f"{0:010}")
    for name in ("lock", "flock"):
        people = [Actor(f"{(A, B)[i % 2]}/f{count}") for i in range(6)]
        before = int(a.do("read", "f", 10))
        for _ in range(15):
            for p in people:
                p.start(*((name, "f", "w", True) if name == "flock" else (name, "f", "w", 0, 0, True)))
            left = list(people)
            while left:
                for p in list(left):
                    answer = p.wait(0.01)
                    if answer:
                        assert answer[0] == 0, errno.errorcode[answer[0]]
                        p.do("write", "f", f"{int(p.do('read', 'f', 10)) + 1:010}")
                        p.do(name, "f", "u")
                        left.remove(p)
        assert int(b.do("read", "f", 10)) == before + 90


def locks_belong_to_the_file_whatever_becomes_of_its_name():
    a, b = pair()
    a.do("flock", "f", "w")
    os.rename(f"{B}/f{count}", f"{B}/renamed")
    assert not b.may("flock", "f", "r")
    os.unlink(f"{A}/renamed")
    assert not b.may("flock", "f", "r")
    a.do("flock", "f", "u")
    assert b.may("flock", "f", "r")


def unlocking_what_is_not_locked_is_no_error():
    a, b = pair()
    b.do("lock", "f", "w")
    a.do("lock", "f", "u")
    a.do("flock", "f", "u")
    assert not a.may("lock", "f", "w")


for name, rule in list(globals().items()):
    if not callable(rule) or getattr(rule, "__module__", None) != "__main__" or name == "pair":
        continue
    began = time.monotonic()
    try:
        rule()
    except AssertionError as e:
        print(f"FAILED: {name.replace('_', ' ')}: {e}")
        raise
    finally:
        finish()
    print(f"-- {name.replace('_', ' ')} ({time.monotonic() - began:.1f} s)")
