# SPDX-License-Identifier: Apache-2.0
"""What A has removed B does not see: removed.py MOUNT MOUNT. Says "ahead" when removals must have been answered ahead, "kill" when the metadata
server is to be killed and started again, and reads a line then; "done" at the end."""
from rules import *

a, b = sys.argv[1:]
FILES = 20


def say(what):
    print(what, flush=True)
    return sys.stdin.readline()


def make(d, n=FILES):
    os.makedirs(f"{a}/{d}")
    for i in range(n):
        write(f"{a}/{d}/f{i}")
    return d


def names(path):
    """As rm does it: lists, and knows what is a file."""
    with os.scandir(path) as entries:
        return sorted(e.name for e in entries if e.is_file(follow_symlinks=False))


def remove_half(d):
    for n in names(f"{a}/{d}")[: FILES // 2]:
        os.unlink(f"{a}/{d}/{n}")
        gone(f"{a}/{d}/{n}")
    return names(f"{a}/{d}")


def others(n, look):
    for i in range(n):
        d = make(f"{look.__name__}{i}")
        left = remove_half(d)
        look(d, left)
        for name in left:
            os.unlink(f"{a}/{d}/{name}")
        os.rmdir(f"{a}/{d}")
        gone(f"{b}/{d}")


def lists(d, left):
    same(sorted(os.listdir(f"{b}/{d}")), left)


def looks_for_one(d, left):
    for i in range(FILES):
        name = f"f{i}"
        same(error(os.lstat, f"{b}/{d}/{name}"), 0 if name in left else errno.ENOENT)


def makes_again(d, left):
    name = next(f"f{i}" for i in range(FILES) if f"f{i}" not in left)
    os.close(os.open(f"{b}/{d}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    same(sorted(os.listdir(f"{a}/{d}")), sorted(left + [name]))
    os.unlink(f"{b}/{d}/{name}")


def removes_the_rest(d, left):
    for name in left:
        os.unlink(f"{b}/{d}/{name}")
    os.rmdir(f"{b}/{d}")
    gone(f"{a}/{d}")
    os.makedirs(f"{a}/{d}")
    left.clear()


def times(d, left):
    t = os.stat(f"{a}/{d}").st_mtime_ns
    same(os.stat(f"{b}/{d}").st_mtime_ns, t)


for look in (lists, looks_for_one, makes_again, removes_the_rest, times):
    others(20, look)

# one directory after the other, nobody looks
for i in range(80):
    make(f"tree/{i}")
for i in range(80):
    for n in names(f"{a}/tree/{i}"):
        os.unlink(f"{a}/tree/{i}/{n}")
    os.rmdir(f"{a}/tree/{i}")
os.rmdir(f"{a}/tree")
gone(f"{b}/tree")
say("ahead")

# a directory that goes, and B, who has it open, or comes to it
def goes(d):
    for n in names(f"{a}/{d}"):
        os.unlink(f"{a}/{d}/{n}")
    os.rmdir(f"{a}/{d}")


def create(path, **at):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, **at))


def comes(part, d):
    if part == 0:
        same(error(create, f"{b}/{d}/new"), errno.ENOENT)
    elif part == 1:
        same(error(os.rename, f"{b}/moved", f"{b}/{d}/new"), errno.ENOENT)
    elif part == 2:
        os.mkdir(f"{b}/{d}")
        same(names(f"{a}/{d}"), [])
        os.rmdir(f"{a}/{d}")
    else:
        gone(f"{b}/{d}")


write(f"{b}/moved")
for i in range(40):
    d = make(f"dirs{i % 10}/d{i}", 4)
    goes(d)
    comes(i // 10, d)
for i in range(20):
    d = make(f"open{i}/d", 4)
    f = os.open(f"{b}/{d}", os.O_RDONLY | os.O_DIRECTORY)
    goes(d)
    same(error(create, "new", dir_fd=f), errno.ENOENT)
    same((os.listdir(f), os.fstat(f).st_nlink), ([], 0))
    os.close(f)
for i in range(40):  # both at once: one of them
    d = make(f"both{i % 4}/d{i}", 4)
    for n in names(f"{a}/{d}"):
        os.unlink(f"{a}/{d}/{n}")
    t, made = None, []
    if i % 2:
        t = thread(lambda: made.append(error(create, f"{b}/{d}/new")))
    else:
        made.append(error(create, f"{b}/{d}/new"))
    removed = error(os.rmdir, f"{a}/{d}")
    if t:
        t.join(60)
    assert (made, removed) in (([0], errno.ENOTEMPTY), ([errno.ENOENT], 0)), f"made {made}, removed {removed}"
    same(os.path.exists(f"{b}/{d}"), removed != 0)

# a file with two names, and one that B has open
for i in range(20):
    d = make(f"linked{i}")
    os.link(f"{a}/{d}/f0", f"{a}/other{i}")
    f = os.open(f"{b}/{d}/f1", os.O_RDONLY)
    for n in names(f"{a}/{d}"):
        os.unlink(f"{a}/{d}/{n}")
    same((os.stat(f"{b}/other{i}").st_nlink, os.fstat(f).st_nlink, os.read(f, 9)), (1, 0, b"x"))
    os.close(f)
    os.rmdir(f"{b}/{d}")

# the server is killed while A removes and B looks at what is gone
for r in range(3):
    for i in range(60):
        make(f"killed{r}/{i}")
    removed, wrong, stop = [], [], threading.Event()

    def looker():
        while not stop.is_set():
            if removed and os.path.lexists(path := removed[-1]):
                wrong.append(path)

    t = thread(looker)

    def remover():
        for i in range(60):
            for n in names(f"{a}/killed{r}/{i}"):
                os.unlink(f"{a}/killed{r}/{i}/{n}")
                removed.append(f"{b}/killed{r}/{i}/{n}")
            os.rmdir(f"{a}/killed{r}/{i}")
            removed.append(f"{b}/killed{r}/{i}")

    u = thread(remover)
    while len(removed) < 100:
        pass
    say("kill")
    u.join(200)
    assert not u.is_alive(), "removing hangs"
    stop.set()
    t.join(60)
    assert not t.is_alive(), "looking hangs"
    same(wrong, [])
    same([p for p in removed if os.path.lexists(p)], [])
    same(len(removed), 60 * (FILES + 1))
print("done", flush=True)
