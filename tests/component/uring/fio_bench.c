/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "tests/component/uring/fio_bench.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct fio_place fio_places[FIO_PLACES] = {
    {"/dev/shm", "auto"}, {"/dev/shm", "uring"}, {"/var/tmp", "auto"}, {"/var/tmp", "plain"}};

void fio_bench_open(struct fio_bench *b, int place)
{
    const struct fio_place *p = &fio_places[place];
    struct reactor_options options = {.name = "fio"};

    memset(b, 0, sizeof(*b));
    snprintf(b->dir, sizeof(b->dir), "%s/fio-XXXXXX", p->parent);
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    snprintf(b->path, sizeof(b->path), "%s/file", b->dir);
    ck_assert_int_eq(fio_open(b->path, O_RDWR | O_CREAT | O_EXCL, 0600, p->want, &b->file), 0);
    ck_assert_int_eq(reactor_create(&options, &b->reactor), 0);
    ck_assert_int_eq(fio_create(b->reactor, BENCH_DEPTH, &b->fio), 0);
}

void fio_bench_close(struct fio_bench *b)
{
    fio_destroy(b->fio);
    reactor_destroy(b->reactor);
    fio_close(&b->file);
    unlink(b->path);
    rmdir(b->dir);
}

static void bench_op_done(struct fio_op *op, int status)
{
    struct bench_op *o = container_of(op, struct bench_op, op);

    o->status = status;
    o->done++;
}

void bench_op_init(struct bench_op *o, struct fio_bench *b, enum fio_op_kind kind, void *buf,
                   size_t len, uint64_t offset)
{
    *o = (struct bench_op){.iov = {{buf, len}}};
    o->op = (struct fio_op){.kind = kind,
                            .file = &b->file,
                            .iov = o->iov,
                            .n_iov = 1,
                            .offset = offset,
                            .done = bench_op_done};
}

static bool bench_all_done(const struct bench_op *ops, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!ops[i].done)
            return false;
    return true;
}

void bench_wait(struct fio_bench *b, const struct bench_op *ops, unsigned n)
{
    while (!bench_all_done(ops, n))
        reactor_run_once(b->reactor, NS_PER_S);
    while (reactor_run_once(b->reactor, 0)) /* so that a second done() would be seen */
        ;
    for (unsigned i = 0; i < n; i++)
        ck_assert_uint_eq(ops[i].done, 1);
}

int bench_do(struct fio_bench *b, enum fio_op_kind kind, void *buf, size_t len, uint64_t offset)
{
    struct bench_op o;

    bench_op_init(&o, b, kind, buf, len, offset);
    fio_submit(b->fio, &o.op);
    bench_wait(b, &o, 1);
    return o.status;
}

void *bench_alloc(size_t len)
{
    void *p = NULL;

    ck_assert_int_eq(posix_memalign(&p, BENCH_ALIGN, len), 0);
    memset(p, 0, len);
    return p;
}

static uint32_t bench_next(uint32_t *x)
{
    *x = *x * 1664525u + 1013904223u;
    return *x >> 24;
}

void bench_fill(void *buf, size_t len, uint32_t seed)
{
    unsigned char *p = buf;

    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)bench_next(&seed);
}

bool bench_is_filled(const void *buf, size_t len, uint32_t seed)
{
    const unsigned char *p = buf;

    for (size_t i = 0; i < len; i++)
        if (p[i] != (unsigned char)bench_next(&seed))
            return false;
    return true;
}
