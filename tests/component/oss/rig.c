// SPDX-License-Identifier: Apache-2.0
/* See rig.h. */
#include "tests/component/oss/rig.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/crc.h"
#include "common/base/err.h"

/* Not Check's: also used by processes that run no test. */
#define MUST(expr) ((expr) ? (void)0 : must_failed(#expr, __LINE__))

bool rig_on_disk;

static void must_failed(const char *what, int line)
{
    fprintf(stderr, "rig.c:%d: %s\n", line, what);
    abort();
}

void rig_make_dir(struct rig *r)
{
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

    if (!rig_on_disk && !access("/dev/shm", W_OK))
        base = "/dev/shm";
    memset(r, 0, sizeof *r);
    snprintf(r->dir, sizeof r->dir, "%s/aifs-chunk-XXXXXX", base);
    MUST(mkdtemp(r->dir));
    chunk_store_options_default(&r->options);
    r->options.path = r->dir;
    r->options.capacity_bytes = 64 * MIB;
}

static void rig_reactor(struct rig *r)
{
    struct reactor_options o = {.name = "rig"};

    if (r->reactor)
        return;
    MUST((reactor_create(&o, &r->reactor)) == 0);
    MUST((fio_create(r->reactor, 64, &r->fio)) == 0);
    r->options.reactor = r->reactor;
    r->options.fio = r->fio;
}

int rig_try_open(struct rig *r)
{
    struct super s;
    struct uuid none = {{0}};
    char err[256];

    rig_reactor(r);
    if (super_load(r->dir, &s, err, sizeof err) == -ENOENT)
        MUST((super_format(r->dir, &none, &none, "default", err, sizeof err)) == 0);
    return chunk_store_open(&r->options, &r->store);
}

void rig_open(struct rig *r)
{
    MUST((rig_try_open(r)) == 0);
}

void rig_wait(struct rig *r, const bool *done)
{
    while (!*done)
        reactor_run_once(r->reactor, NS_PER_S);
}

static void closed(void *arg, int status)
{
    (void)status;
    *(bool *)arg = true;
}

void rig_close(struct rig *r)
{
    bool done = false;

    if (!r->store)
        return;
    chunk_store_close(r->store, closed, &done);
    rig_wait(r, &done);
    r->store = NULL;
}

void rig_reopen(struct rig *r)
{
    rig_close(r);
    rig_open(r);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void rig_destroy(struct rig *r)
{
    rig_close(r);
    if (r->fio)
        fio_destroy(r->fio);
    if (r->reactor)
        reactor_destroy(r->reactor);
    nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void op_done(struct chunk_op *op, int status)
{
    struct rig_op *o = op->arg;

    MUST(!o->done);
    if (o->place.store)
        chunk_store_unplace(&o->place);
    o->done = true;
    o->status = status;
}

void rig_submit(struct rig *r, struct rig_op *o)
{
    o->op.done = op_done;
    o->op.arg = o;
    o->done = false;
    chunk_store_submit(r->store, &o->op);
}

bool rig_place(struct rig *r, struct rig_op *o)
{
    struct chunk_op *op = &o->op;

    if (!chunk_store_place(r->store, op->ino, op->chunk, op->offset, op->len, &o->place))
        return false;
    memcpy(o->place.data, op->data, op->len);
    op->data = o->place.data;
    op->place = &o->place;
    return true;
}

int rig_run(struct rig *r, struct rig_op *o)
{
    rig_submit(r, o);
    rig_wait(r, &o->done);
    return o->status;
}

int rig_write(struct rig *r, uint64_t ino, uint64_t chunk, uint64_t gen, uint32_t offset,
              const void *data, uint32_t len, bool stable)
{
    struct rig_op o = {.op = {.kind = CHUNK_WRITE,
                              .ino = ino,
                              .chunk = chunk,
                              .truncate_gen = gen,
                              .offset = offset,
                              .len = len,
                              .data = (void *)data,
                              .stable = stable}};

    o.op.crcs = o.crcs;
    crc32c_blocks(offset, data, len, o.crcs);
    return rig_run(r, &o);
}

int rig_read(struct rig *r, uint64_t ino, uint64_t chunk, uint64_t gen, uint32_t offset, void *data,
             uint32_t len)
{
    uint32_t from = offset / CHUNK_BLOCK * CHUNK_BLOCK;
    uint32_t want = (offset + len + CHUNK_BLOCK - 1) / CHUNK_BLOCK * CHUNK_BLOCK - from;
    uint8_t *buf = aligned_alloc(4096, want);
    uint32_t sums[260];
    struct rig_op o = {.op = {.kind = CHUNK_READ,
                              .ino = ino,
                              .chunk = chunk,
                              .truncate_gen = gen,
                              .offset = from,
                              .len = want,
                              .data = buf}};
    int rc;

    MUST(buf);
    memset(buf, 0xee, want);
    o.op.crcs = o.crcs;
    rc = rig_run(r, &o);
    if (!rc) {
        MUST(o.op.ret_crcs == crc32c_blocks(0, buf, o.op.ret_len, sums));
        MUST((memcmp(sums, o.crcs, o.op.ret_crcs * 4)) == 0);
        memset(buf + o.op.ret_len, 0, want - o.op.ret_len);
        memcpy(data, buf + (offset - from), len);
    }
    free(buf);
    return rc;
}

int rig_commit(struct rig *r, uint64_t ino)
{
    struct rig_op o = {.op = {.kind = CHUNK_COMMIT, .ino = ino}};

    return rig_run(r, &o);
}

int rig_truncate(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t start)
{
    struct rig_op o = {.op = {.kind = CHUNK_TRUNCATE,
                              .ino = ino,
                              .truncate_gen = gen,
                              .chunk_bytes = chunk_bytes,
                              .start = start}};

    return rig_run(r, &o);
}

int rig_punch(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t start,
              uint64_t end)
{
    struct rig_op o = {.op = {.kind = CHUNK_PUNCH,
                              .ino = ino,
                              .truncate_gen = gen,
                              .chunk_bytes = chunk_bytes,
                              .start = start,
                              .end = end}};

    return rig_run(r, &o);
}

int rig_destroy_ino(struct rig *r, uint64_t ino)
{
    struct rig_op o = {.op = {.kind = CHUNK_DESTROY, .ino = ino}};

    return rig_run(r, &o);
}

int rig_seal(struct rig *r, uint64_t ino, uint64_t gen, uint32_t chunk_bytes, uint64_t *ret_high)
{
    struct rig_op o = {
        .op = {.kind = CHUNK_SEAL, .ino = ino, .truncate_gen = gen, .chunk_bytes = chunk_bytes}};
    int rc = rig_run(r, &o);

    *ret_high = o.op.ret_high_water;
    return rc;
}

int rig_seek(struct rig *r, uint64_t ino, uint32_t chunk_bytes, uint32_t stride, uint64_t start,
             uint64_t end, bool hole, uint64_t *ret_offset)
{
    struct rig_op o = {.op = {.kind = CHUNK_SEEK,
                              .ino = ino,
                              .chunk_bytes = chunk_bytes,
                              .stride = stride,
                              .start = start,
                              .end = end,
                              .hole = hole}};
    int rc = rig_run(r, &o);

    *ret_offset = o.op.ret_offset;
    return rc ? rc : o.op.ret_found;
}

int rig_verify(struct rig *r, uint64_t ino, uint64_t chunk)
{
    struct rig_op o = {.op = {.kind = CHUNK_VERIFY, .ino = ino, .chunk = chunk}};

    return rig_run(r, &o);
}

uint64_t rig_rand(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

void rig_fill(void *data, size_t len, uint64_t seed)
{
    uint8_t *p = data;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t v = rig_rand(&seed);

        memcpy(p + i, &v, MIN(len - i, sizeof v));
    }
}
