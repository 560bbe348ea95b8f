#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on one file, compared with a copy in memory.

usage: random_operations.py SEED STEPS MAX_BYTES PATH...
With several PATHs (the same file on several mounts) each reopening picks one of them: what was
written and closed on one mount must be seen by the next open on any.
"""
import mmap
import os
import random
import sys

seed, steps, largest, paths = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
rng = random.Random(seed)
model = bytearray()
history = []
path = paths[0]
fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o644)


def fail(what):
    print(f"seed {seed}: {what}; last steps (step, operation, offset, length, size before):")
    print("\n".join(map(str, history[-20:])))
    sys.exit(1)


def check(what, got, offset):
    want = bytes(model[offset : offset + len(got)])
    if got != want:
        at = next(i for i in range(len(got)) if got[i] != want[i])
        fail(f"{what}: wrong byte at {offset + at}")


def store(offset, data):
    if offset > len(model):
        model.extend(bytes(offset - len(model)))
    model[offset : offset + len(data)] = data


def op_write(offset, length):
    data = rng.randbytes(length)
    if os.pwrite(fd, data, offset) != length:
        fail("short write")
    store(offset, data)


def op_write_only(offset, length):
    data = rng.randbytes(length)
    f = os.open(path, os.O_WRONLY)
    os.pwrite(f, data, offset)
    os.close(f)
    store(offset, data)


def op_append(_, length):
    data = rng.randbytes(length % 20000 + 1)
    f = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(f, data)
    os.close(f)
    store(len(model), data)


def op_read(offset, length):
    got = os.pread(fd, length, offset)
    if len(got) != max(0, min(length, len(model) - offset)):
        fail(f"read of {len(got)} bytes")
    check("read", got, offset)


def op_read_direct(offset, _):
    offset -= offset % 4096
    f = os.open(path, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 1 << 20) as m:
        n = os.preadv(f, [m], offset)
        if n != max(0, min(1 << 20, len(model) - offset)):
            fail(f"direct read of {n} bytes")
        check("direct read", m[:n], offset)
    os.close(f)


def op_truncate(offset, _):
    size = rng.choice([offset, 0, len(model) // 2, len(model)])
    os.ftruncate(fd, size)
    if size < len(model):
        del model[size:]
    else:
        model.extend(bytes(size - len(model)))


def op_reopen(*_):
    global fd, path
    os.close(fd)
    path = rng.choice(paths)
    fd = os.open(path, os.O_RDWR)


def op_fsync(*_):
    os.fsync(fd)


def op_size(*_):
    if os.fstat(fd).st_size != len(model):
        fail(f"size {os.fstat(fd).st_size}")


def op_map(offset, length):
    if not model:
        return
    offset %= len(model)
    length = min(length, len(model) - offset)
    with mmap.mmap(fd, len(model), mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as m:
        check("mapped", m[offset : offset + length], offset)
        if rng.random() < 0.5:
            data = rng.randbytes(length)
            m[offset : offset + length] = data
            store(offset, data)
            m.flush()


operations = [op_write] * 3 + [op_read] * 2 + [op_map] * 2 + [
    op_write_only, op_append, op_read_direct, op_truncate, op_reopen, op_fsync, op_size]
for step in range(steps):
    operation = rng.choice(operations)
    where = rng.randrange(largest)
    many = rng.randrange(1, rng.choice([100, 5000, 70000, 300000, 1500000]))
    history.append((step, operation.__name__, where, many, len(model)))
    operation(where, many)
os.close(fd)
with open(rng.choice(paths), "rb") as last:
    content = last.read()
if len(content) != len(model):
    fail(f"{len(content)} bytes at the end")
check("the end", content, 0)
