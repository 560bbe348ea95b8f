#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# POSIX ACLs: two mounts say the same as a local file system, for every user, with the lists cached by the kernel; tools, dump, load and fsck know them.
. "$(dirname "$0")/lib.sh"
[ -n "$(command -v setfacl)" ] || skip "no setfacl"
cluster_up
second_mount
chmod 755 "$T" "$M" "$M2"
mkdir -m 755 "$T/local"
setfacl -m u:7:r "$T/local" 2>/dev/null && setfacl -b "$T/local" || skip "the local file system has no ACLs"
python3 - "$M" "$M2" "$T/local" <<'P' || fail "a list does not hold"
import os, random, struct, sys
one, two, local = sys.argv[1:]
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
TAGS = {"u": 2, "g": 8}
def acl(*named, u=6, g=4, m=None, o=4):
    e = [(1, u, 0xffffffff)] + sorted((TAGS[k], p, i) for k, i, p in named if k == "u")
    e += [(4, g, 0xffffffff)] + sorted((TAGS[k], p, i) for k, i, p in named if k == "g")
    e += [] if m is None else [(16, m, 0xffffffff)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *x) for x in e + [(32, o, 0xffffffff)])
def outcome(fn, *args):
    try:
        return fn(*args)
    except OSError as e:
        return e.errno
class Helper: # a process with another identity that does what it is told
    def __init__(self, uid, gid, groups):
        self.r, out = os.pipe()
        inp, self.w = os.pipe()
        if os.fork() == 0:
            os.setgroups(groups); os.setgid(gid); os.setuid(uid)
            os.close(self.w)
            while line := os.read(inp, 100000):
                os.write(out, b"%d\n" % eval(line))
            os._exit(0)
        os.close(inp); os.close(out)
        self.r = os.fdopen(self.r)
    def ask(self, text):
        os.write(self.w, text.encode() + b"\n")
        return int(self.r.readline())
def try_open(path, flags):
    try:
        os.close(os.open(path, flags))
        return 0
    except OSError as e:
        return e.errno
many = list(range(1000, 1100)) + [300] # more groups than any fixed table has
who = [Helper(10, 20, []), Helper(5, 99, []), Helper(6, 20, []), Helper(7, 98, many), Helper(8, 97, [])]
def tell(p): # names and lists as everybody sees them
    s = os.lstat(p)
    return (oct(s.st_mode), s.st_uid, s.st_gid, outcome(os.getxattr, p, ACCESS), outcome(os.getxattr, p, DEFAULT),
            sorted(x for x in os.listxattr(p) if x.startswith("system")))
def rights(p):
    return [h.ask(f"try_open({p!r}, {f})") for h in who for f in (os.O_RDONLY, os.O_WRONLY)] + \
           [h.ask(f"0 if os.access({p!r}, {m}, effective_ids=True) else 13") for h in who for m in (1, 2, 4)]
def everywhere(change, look=tell):
    a, b = random.sample((one, two), 2)
    want, got = outcome(change, local), outcome(change, a)
    assert want == got, (want, got)
    for f in look if isinstance(look, tuple) else (look,):
        l, x, y = (f(m) for m in (local, a, b))
        assert l == x == y, (f.__name__, l, x, y)
random.seed(7)
everywhere(lambda m: os.mkdir(f"{m}/d"), lambda m: tell(f"{m}/d"))
os.close(os.open(f"{one}/d/f", os.O_CREAT)); os.close(os.open(f"{local}/d/f", os.O_CREAT))
for m in (one, local):
    os.chown(f"{m}/d/f", 10, 20); os.chown(f"{m}/d", 10, 20)
f = lambda m: tell(f"{m}/d/f"); may = lambda m: rights(f"{m}/d/f")
d = lambda m: tell(f"{m}/d"); walk = lambda m: rights(f"{m}/d") + rights(f"{m}/d/f")
def some(): return [(k, i, random.randrange(8)) for k, i in random.sample([("u", 5), ("u", 6), ("u", 7), ("g", 300), ("g", 97)], random.randrange(5))]
def any_acl():
    n = some()
    return acl(*n, u=random.randrange(8), g=random.randrange(8), m=random.randrange(8) if n or random.random() < .3 else None, o=random.randrange(8))
for i in range(40):
    a, mode = any_acl(), random.randrange(0o1000)
    on, see = (("d/f", (f, may)), ("d", (d, walk)))[i % 4 == 3]
    everywhere(lambda m: os.setxattr(f"{m}/{on}", ACCESS, a), see)
    if i % 3 == 0: everywhere(lambda m: os.chmod(f"{m}/{on}", mode), see)
    if i % 5 == 0: everywhere(lambda m: os.removexattr(f"{m}/{on}", ACCESS), see)
everywhere(lambda m: os.setxattr(f"{m}/d", ACCESS, acl(u=7, g=7, o=7)), (d, walk))
# what is made in a directory with a default list
for i in range(24):
    a, mode, mask, n = any_acl(), random.choice((0o666, 0o777, 0o640, 0o2755)), random.choice((0, 0o22, 0o77)), f"d/n{i}"
    everywhere(lambda m: os.setxattr(f"{m}/d", DEFAULT, a), d)
    os.umask(mask)
    how = (lambda m: os.close(os.open(f"{m}/{n}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)), lambda m: os.mkdir(f"{m}/{n}", mode),
           lambda m: os.mknod(f"{m}/{n}", mode | 0o010000), lambda m: os.symlink("x", f"{m}/{n}"))[i % 4]
    strip = (lambda t: t[:1] + t[3:]) # who owns it is root in all
    everywhere(how, lambda m: strip(tell(f"{m}/{n}")) if i % 4 != 3 else os.readlink(f"{m}/{n}"))
    def unnamed(m):
        fd = os.open(f"{m}/d", os.O_TMPFILE | os.O_RDWR, mode)
        try:
            return oct(os.fstat(fd).st_mode), outcome(os.getxattr, fd, ACCESS)
        finally:
            os.close(fd)
    if outcome(unnamed, one) != 95: # libfuse does not pass it on
        assert outcome(unnamed, local) == outcome(unnamed, one), (outcome(unnamed, local), outcome(unnamed, one))
os.umask(0o22)
everywhere(lambda m: os.removexattr(f"{m}/d", DEFAULT), d)
everywhere(lambda m: os.removexattr(f"{m}/d", DEFAULT), d)
os.close(os.open(f"{one}/d/plain", os.O_CREAT, 0o666)); assert os.stat(f"{two}/d/plain").st_mode & 0o777 == 0o644
# what is none, and who may not
for bad in (b"x", struct.pack("<I", 3) + b"\0" * 24, struct.pack("<I", 2) + b"\1\0\6\0\xff\xff\xff\xff", acl(("u", 5, 7))):
    everywhere(lambda m: os.setxattr(f"{m}/d/f", ACCESS, bad), f)
everywhere(lambda m: os.setxattr(f"{m}/d/f", DEFAULT, acl(m=7)), f)
everywhere(lambda m: os.setxattr(f"{m}/d/f", ACCESS, struct.pack("<I", 2)), f)
everywhere(lambda m: os.setxattr(f"{m}/d/f", ACCESS, b""), f)
text = "outcome(os.setxattr, '%s/d/f', ACCESS, %r) or 0"
assert [h.ask(text % (one, acl(m=6))) for h in who] == [h.ask(text % (local, acl(m=6))) for h in who]
# set-group-id goes when who sets the list is not in the group
everywhere(lambda m: (os.chown(f"{m}/d/f", 10, 55), os.chmod(f"{m}/d/f", 0o2775)), f)
everywhere(lambda m: who[0].ask(text % (m, acl(("u", 5, 7), u=7, g=7, m=7))), f)
P
expect "setfacl" setfacl -m u:5:rwx,g:300:r-x,d:u:6:rw "$M/d"
facl() { (cd "$1" && getfacl -R -n d | sort); }
expect "both mounts show the lists" diff <(facl "$M") <(facl "$M2")
expect "cp -a" cp -a "$M/d" "$M2/copy"
expect "cp -a takes the lists along" diff <(cd "$M" && getfacl -R -n d | sed 's/^# file: d/# file: x/') <(cd "$M2" && getfacl -R -n copy | sed 's/^# file: copy/# file: x/')
expect "tar" tar --acls -C "$M" -cf "$T/d.tar" d
expect "untar" sh -c "mkdir '$M2/tar' && tar --acls -C '$M2/tar' -xpf '$T/d.tar'"
expect "tar takes the lists along" diff <(facl "$M") <(facl "$M2/tar")
# Whether a file has a list comes with its attributes: ls -l, which asks of every file, costs no call to the server for each.
calls() {
    counted mds_calls_total "$C/mount1.log"
}
mkdir "$M2/many" && (cd "$M2/many" && touch {1..500})
listing_is_cheap() { # once the files are not being written any more, and the directory has been quiet for a second
    local before asked
    before=$(calls)
    ls -l "$M/many" >"$T/listed"
    asked=$(($(calls) - before))
    [ "$before" -gt 0 ] && [ "$asked" -lt 100 ]
}
wait_for 60 listing_is_cheap || fail "ls -l of 500 files costs $(calls) calls, again and again"

expect "dump" "$ADMIN" -q mds dump "$T/dump"
expect "fsck" "$ADMIN" -q fsck check
before=$(facl "$M")
kill_daemon mds TERM
start_again
[ "$before" = "$(facl "$M2")" ] || fail "the lists are others after a restart"
