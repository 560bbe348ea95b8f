#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Capabilities of who is not root, in the first user name space and in one of its own (rootless containers), count as on a local file system.
. "$(dirname "$0")/lib.sh"
unshare --user --map-root-user true 2>/dev/null || skip "no user name spaces"
chmod 755 "$T"
cluster_up --oss 1
cat >"$T/calls.py" <<'P'
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
root, CAP = sys.argv[1], struct.pack("<5I", 0x02000001, 0x400, 0, 0, 0)
USER, SUBORDINATE, STRANGER = 1000, 300000, 4000  # who runs containers, the first of the ids he may give away, somebody else
CHOWN, OVERRIDE, READ, FOWNER, FSETID, SETFCAP, MKNOD, ADMIN = 0, 1, 2, 3, 4, 31, 27, 21
os.umask(0)
said = []

def call(what, fn, *args):
    try:
        said.append((what, fn(*args)))
    except OSError as e:
        said.append((what, errno.errorcode[e.errno]))

def make(path, uid, gid, mode, is_dir=False):
    os.mkdir(path) if is_dir else open(path, "w").close()
    os.chown(path, uid, gid)
    os.chmod(path, mode)

def stands(path):
    s = os.lstat(path)
    return oct(s.st_mode), s.st_uid, s.st_gid

def user(uid, caps=()):
    """Becomes uid, and keeps these capabilities."""
    libc.prctl(8, 1, 0, 0, 0)
    os.setgroups([]), os.setresgid(uid, uid, uid), os.setresuid(uid, uid, uid)
    bits = sum(1 << c for c in caps)
    data = (ctypes.c_uint32 * 6)(bits & 0xFFFFFFFF, bits & 0xFFFFFFFF, 0, bits >> 32, bits >> 32, 0)
    assert libc.capset(struct.pack("<Ii", 0x20080522, 0), data) == 0

def calls(d):
    """What the roots of containers do to files that are theirs, to those of others, and of neither."""
    os.chdir(d)
    for name in sorted(os.listdir(".")):
        call(f"list {name}", lambda: sorted(os.listdir(name))) if os.path.isdir(name) else call(f"read {name}", lambda: open(name).read())
        call(f"cut {name}", os.truncate, name, 0)
        call(f"mode of {name}", os.chmod, name, 0o2750)
        call(f"times of {name}", os.utime, name, (1, 1))
        call(f"write {name}", lambda: open(name, "a").close())
        call(f"attribute of {name}", os.setxattr, name, "user.a", b"1")
        call(f"capabilities of {name}", os.setxattr, name, "security.capability", CAP)
        call(f"no capabilities of {name}", os.removexattr, name, "security.capability")
        call(f"trusted attribute of {name}", os.setxattr, name, "trusted.a", b"1")
        call(f"give {name} away", os.chown, name, 1, 2)
        call(f"make in {name}", lambda: open(f"{name}/new", "x").close())
        call(f"move in {name}", os.rename, f"{name}/in", f"{name}/moved")
        call(f"remove in {name}", os.unlink, f"{name}/moved")
        call(f"run {name}", os.access, name, os.X_OK)
    call("a whiteout", os.mknod, "whiteout", 0o20600, 0)
    call("a device", os.mknod, "device", 0o20600, os.makedev(1, 3))
    call("a link to what is not his", os.link, "file.stranger", "link")

def container(caps, maps):
    """calls() in d by USER, in a user name space with these maps."""
    ready, go = os.pipe(), os.pipe()
    d = f"{root}/{len(said)}"
    os.mkdir(d), os.chmod(d, 0o777)
    for name, uid in (("user", USER), ("subordinate", SUBORDINATE + 5), ("stranger", STRANGER)):
        for mode in (0o600, 0o070) if name != "user" else (0, 0o500):
            make(f"{d}/file.{name}{'.' + oct(mode) if mode != 0o600 else ''}", uid, uid, mode)
            inner = f"{d}/dir.{name}.{mode:o}"
            make(inner, uid, uid, mode | 0o1000, True)
            make(f"{inner}/in", uid, uid, 0o600)
    make(f"{d}/file.mixed", SUBORDINATE, STRANGER, 0o600)
    out = os.pipe()
    pid = os.fork()
    if pid == 0:
        said.clear()
        user(USER, caps)
        libc.prctl(4, 1, 0, 0, 0)
        if maps is not None:
            assert libc.unshare(0x10000000) == 0
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            if maps:
                os.setresgid(0, 0, 0), os.setresuid(0, 0, 0)
        calls(d)
        os.write(out[1], repr(said).encode())
        os._exit(0)
    if maps is not None:
        os.read(ready[0], 1)
        for kind in ("uid_map", "gid_map") if maps else ():
            open(f"/proc/{pid}/{kind}", "w").write(maps)
        os.write(go[1], b"x")
    os.close(out[1])
    text = b""
    while piece := os.read(out[0], 65536):
        text += piece
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    said.extend(eval(text))
    said.append(("in the end", sorted((p, stands(os.path.join(w, p))) for w, ds, fs in os.walk(d) for p in ds + fs)))

for cap in ((), (CHOWN,), (OVERRIDE,), (READ,), (FOWNER,), (FOWNER, FSETID), (SETFCAP,), (MKNOD,), (ADMIN, OVERRIDE)):
    said.append(("with", cap))
    container(cap, None)
for maps in (f"0 {USER} 1\n", f"0 {USER} 1\n1 {SUBORDINATE} 65536\n", f"0 {SUBORDINATE} 65536\n", ""):
    said.append(("in", maps))
    container((), maps)
for line in said:
    print(*line)
P
mkdir "$T/local" "$M/here"
expect "the calls on a local file system" python3 "$T/calls.py" "$T/local" >"$T/there.said"
expect "the calls on the mount" python3 "$T/calls.py" "$M/here" >"$T/here.said"
[ "$(wc -l <"$T/there.said")" -gt 2000 ] || fail "hardly anything was called: $(wc -l <"$T/there.said") lines"
diff "$T/there.said" "$T/here.said" >"$T/diff" || fail "otherwise than on a local file system: $(head -20 "$T/diff")"
