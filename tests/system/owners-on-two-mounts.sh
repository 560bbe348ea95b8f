#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who owns a file, and whether a directory is sticky, the kernel looks at before it asks: what another mount has just changed of that counts in the next call by name.
. "$(dirname "$0")/lib.sh"
[ "$(uname -r | awk -F'[.-]' '{ print $1 * 1000 + $2 }')" -ge 6016 ] || skip "the kernel cannot be told that all names are old (before 6.16)"
chmod 711 "$T"
cluster_up
second_mount
python3 - "$M" "$M2" <<'P' || fail "the mounts disagree about an owner"
import errno, os, sys
one, two = sys.argv[1:]
who = 1235

def as_user(fn, *args):
    os.seteuid(who)
    try:
        fn(*args)
        return 0
    except OSError as e:
        return e.errno
    finally:
        os.seteuid(0)

for i in range(40):
    a, b = (one, two) if i % 2 else (two, one)
    d, f = f"d{i}", f"d{i}/f"
    os.mkdir(f"{b}/{d}")
    os.chmod(f"{b}/{d}", 0o777)
    open(f"{b}/{f}", "w").close() # by b itself: what it knows of a file that another one has just written it does not keep
    os.stat(f"{b}/{f}")
    os.chown(f"{a}/{f}", who, who)
    got = as_user(*((os.chmod, f"{b}/{f}", 0o600 + i) if i % 3 else (os.utime, f"{b}/{f}", (i, i))))
    assert got == 0, f"round {i}: the new owner gets {errno.errorcode[got]}"
    os.chown(f"{a}/{f}", 0, 0)
    got = as_user(os.chmod, f"{b}/{f}", 0o644)
    assert got == errno.EPERM, f"round {i}: who owns it no more gets {got}"
    os.chmod(f"{a}/{d}", 0o1755)
    got = as_user(os.setxattr, f"{b}/{d}", "user.n", b"1")
    assert got == errno.EPERM, f"round {i}: an attribute of a sticky directory gives {got}"
P
