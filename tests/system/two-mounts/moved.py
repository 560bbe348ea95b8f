# SPDX-License-Identifier: Apache-2.0
"""What A has renamed B finds so: moved.py MOUNT MOUNT. Says "ahead" when renames must have been answered ahead, "kill" when the metadata server is
to be killed and started again, and reads a line then; "done" at the end."""
from rules import *

a, b = sys.argv[1:]
FILES = 12


def say(what):
    print(what, flush=True)
    return sys.stdin.readline()


def make(d):
    os.makedirs(f"{a}/{d}")
    for i in range(FILES):
        write(f"{a}/{d}/f{i}", b"%d" % i)
    same(len(os.listdir(f"{a}/{d}")), FILES)
    return d


def save(path, data, passing=None):
    """As an editor does it."""
    write(passing or f"{path}.new", data)
    os.rename(passing or f"{path}.new", path)


def what(d):
    with os.scandir(d) as entries:
        return sorted((e.name, e.inode(), e.stat().st_ctime_ns, e.stat().st_size) for e in entries)


def agree(d):
    """B looks first: its attributes are what A was told at once, and is told later."""
    mine = what(f"{a}/{d}")
    same(what(f"{b}/{d}"), mine)
    same(what(f"{a}/{d}"), mine)
    same(os.stat(f"{b}/{d}").st_mtime_ns, os.stat(f"{a}/{d}").st_mtime_ns)


def moves(d):
    for i in range(FILES):
        os.rename(f"{a}/{d}/f{i}", f"{a}/{d}/g{i}")
        gone(f"{a}/{d}/f{i}")
    same(sorted(os.listdir(f"{b}/{d}")), sorted(f"g{i}" for i in range(FILES)))
    same(read(f"{b}/{d}/g3"), b"3")


def moves_and_back(d):
    for i in range(FILES):
        os.rename(f"{a}/{d}/f{i}", f"{a}/{d}/g{i}")
        os.rename(f"{a}/{d}/g{i}", f"{a}/{d}/f{i}")
    gone(f"{b}/{d}/g{FILES - 1}")
    same(read(f"{b}/{d}/f{FILES - 1}"), b"%d" % (FILES - 1))


def saves(d):
    for i in range(FILES):
        save(f"{a}/{d}/f{i}", b"saved %d" % i, f"{a}/{d}/passing" if i % 2 else None)
        same(read(f"{a}/{d}/f{i}"), b"saved %d" % i)
    same(read(f"{b}/{d}/f{FILES - 1}"), b"saved %d" % (FILES - 1))
    same(sorted(os.listdir(f"{b}/{d}")), sorted(f"f{i}" for i in range(FILES)))


def rotates(d):
    for i in range(3):
        for k in range(FILES - 1, 0, -1):
            os.rename(f"{a}/{d}/f{k - 1}", f"{a}/{d}/f{k}")
        write(f"{a}/{d}/f0", b"new %d" % i)
    same(read(f"{b}/{d}/f0"), b"new 2")
    same([read(f"{b}/{d}/f{k}") for k in range(1, FILES)], [b"new 1", b"new 0"] + [b"%d" % k for k in range(FILES - 3)])


def takes_the_old_name(d):
    os.rename(f"{a}/{d}/f1", f"{a}/{d}/g1")
    os.close(os.open(f"{b}/{d}/f1", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    same(error(os.open, f"{b}/{d}/g1", os.O_CREAT | os.O_EXCL | os.O_WRONLY), errno.EEXIST)
    same(read(f"{a}/{d}/f1"), b"")


for i in range(20):
    for use in (moves, moves_and_back, saves, rotates, takes_the_old_name):
        d = make(f"{use.__name__}{i}")
        use(d)
        agree(d)
for i in range(40):  # nobody looks
    d = make(f"alone/{i}")
    for k in range(FILES):
        os.rename(f"{a}/{d}/f{k}", f"{a}/{d}/g{k}")
        save(f"{a}/{d}/g{k}", b"again")
say("ahead")
for i in range(40):
    agree(f"alone/{i}")

# what fsync of the directory, or of the file, has promised is there when B looks
d = make("synced")
f = os.open(f"{a}/{d}/f1", os.O_RDONLY)
os.rename(f"{a}/{d}/f1", f"{a}/{d}/g1")
os.fsync(f)
os.close(f)
agree(d)

# the server is killed while A saves and B reads: never nothing, nor what is older than what was saved before it looked
for r in range(3):
    d = make(f"killed{r}")
    saved, wrong, stop = [0] * FILES, [], threading.Event()
    for k in range(FILES):
        save(f"{a}/{d}/f{k}", b"0")

    def looker():
        k = 0
        while not stop.is_set():
            k = (k + 1) % FILES
            before = saved[k]
            try:
                got = int(read(f"{b}/{d}/f{k}") or b"-1")
            except OSError as e:
                got = -e.errno
            if got < before:
                wrong.append((k, before, got))

    def saver():
        for n in range(1, 400):
            save(f"{a}/{d}/f{n % FILES}", b"%d" % n)
            saved[n % FILES] = n

    t, u = thread(looker), thread(saver)
    while saved[1] < 4 * FILES:
        pass
    say("kill")
    u.join(200)
    assert not u.is_alive(), "saving hangs"
    stop.set()
    t.join(60)
    assert not t.is_alive(), "looking hangs"
    same(wrong, [])
    same([int(read(f"{b}/{d}/f{k}")) for k in range(FILES)], saved)
    agree(d)
print("done", flush=True)
