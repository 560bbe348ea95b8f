/* SPDX-License-Identifier: Apache-2.0 */
/* See client_bed.h. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/client_bed.h"

static void op_done(struct core_req *q, int status)
{
    struct bed_op *o = q->arg;

    ck_assert(!o->done);
    o->done = true;
    o->status = status;
}

void bed_op_init(struct bed_op *o)
{
    memset(o, 0, sizeof *o);
    o->q.done = op_done;
    o->q.arg = o;
}

int bed_wait(struct bed *b, struct bed_op *o)
{
    fake_run_until(&b->cluster, &o->done);
    return o->status;
}

void bed_spin(struct bed *b, uint64_t ns)
{
    fake_run_for(&b->cluster, ns);
}

static void answer_late(void *arg, const struct reactor *from, const struct reactor *to,
                        enum net_loop_parcel kind, struct net_loop_fate *f)
{
    struct bed_late *l = arg;

    (void)from;
    (void)to;
    if (kind != NET_LOOP_MESSAGE || ++l->n != 2)
        return;
    f->reorder = true;
    f->delay_ns = l->delay_ns;
}

void bed_answer_late(struct bed_late *l, uint64_t delay_ns)
{
    *l = (struct bed_late){.delay_ns = delay_ns};
    net_loop_set_policy(answer_late, l);
}

void bed_setup(struct bed *b, unsigned n_oss)
{
    struct reactor_options o = {.name = "bed", .clock = &b->clock.clock};

    clock_virtual_init(&b->clock, 1000 * NS_PER_S, 1700000000ll * (int64_t)NS_PER_S);
    ck_assert_int_eq(reactor_create(&o, &b->reactor), 0);
    fake_cluster_start(&b->cluster, b->reactor, &b->clock, n_oss);
}

void bed_teardown(struct bed *b)
{
    fake_cluster_stop(&b->cluster);
    while (reactor_run_once(b->reactor, 0)) /* what connections still had to say */
        ;
    reactor_destroy(b->reactor);
}

struct core *bed_mount(struct bed *b, const struct core_options *more)
{
    struct core_options o;
    struct bed_op op;
    struct core *c;
    char address[80];

    if (more)
        o = *more;
    else
        core_options_default(&o);
    if (!o.memory_limit || o.memory_limit == GIB)
        o.memory_limit = 96 * MIB;
    o.mds[0] = fake_mds_address(&b->cluster, address);
    o.n_mds = 1;
    o.key = b->cluster.key;
    o.mount = "test";
    ck_assert_int_eq(core_create(b->reactor, &o, &c), 0);
    bed_op_init(&op);
    core_mount(c, &op.q);
    ck_assert_int_eq(bed_wait(b, &op), 0);
    ck_assert_uint_eq(core_root(c), 1);
    return c;
}

void bed_unmount(struct bed *b, struct core *c, bool force, int expect)
{
    struct bed_op op;

    bed_op_init(&op);
    core_unmount(c, &op.q, force);
    ck_assert_int_eq(bed_wait(b, &op), expect);
    core_destroy(c);
}

struct core_file *bed_create(struct bed *b, struct core *c, const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_create_file(c, &op.q, 1, name, (uint32_t)strlen(name), 0644, O_RDWR | O_CREAT | O_EXCL,
                     NULL);
    ck_assert_int_eq(bed_wait(b, &op), 0);
    return op.q.out.opened.file;
}

struct core_file *bed_open(struct bed *b, struct core *c, const char *name, int flags,
                           struct core_opened *ret_opened)
{
    struct bed_op op;
    uint64_t ino;

    bed_op_init(&op);
    core_lookup(c, &op.q, 1, name, (uint32_t)strlen(name));
    ck_assert_int_eq(bed_wait(b, &op), 0);
    ino = op.q.entry.ino;
    bed_op_init(&op);
    core_open(c, &op.q, ino, flags);
    ck_assert_int_eq(bed_wait(b, &op), 0);
    if (ret_opened)
        *ret_opened = op.q.out.opened;
    return op.q.out.opened.file;
}

int bed_write(struct bed *b, struct core *c, struct core_file *f, uint64_t offset, const void *data,
              uint32_t len)
{
    uint32_t at = 0;

    do {
        uint32_t step = MIN(len - at, CORE_IO_MAX);
        struct iovec iov = {(uint8_t *)data + at, step};
        struct bed_op op;
        int err;

        bed_op_init(&op);
        core_write(c, &op.q, f, offset + at, &iov, 1, step);
        err = bed_wait(b, &op);
        if (err)
            return err;
        ck_assert_uint_eq(op.q.out.write.bytes, step);
        at += step;
    } while (at < len);
    return 0;
}

int bed_read(struct bed *b, struct core *c, struct core_file *f, uint64_t offset, void *data,
             uint32_t len)
{
    uint32_t at = 0, step, got, k;
    struct bed_op op;
    int err;

    do {
        step = MIN(len - at, CORE_IO_MAX);
        bed_op_init(&op);
        core_read(c, &op.q, f, offset + at, step, NULL);
        err = bed_wait(b, &op);
        if (err)
            return err;
        for (got = k = 0; k < op.q.out.read.n_iov; k++) {
            memcpy((uint8_t *)data + at + got, op.q.out.read.iov[k].iov_base,
                   op.q.out.read.iov[k].iov_len);
            got += (uint32_t)op.q.out.read.iov[k].iov_len;
        }
        ck_assert_uint_eq(got, op.q.out.read.bytes);
        core_read_done(&op.q);
        at += got;
    } while (got == step && at < len);
    return (int)at;
}

int bed_flush(struct bed *b, struct core *c, struct core_file *f)
{
    struct bed_op op;

    bed_op_init(&op);
    core_flush(c, &op.q, f);
    return bed_wait(b, &op);
}

int bed_fsync(struct bed *b, struct core *c, struct core_file *f)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync(c, &op.q, f, false);
    return bed_wait(b, &op);
}

int bed_truncate(struct bed *b, struct core *c, struct core_file *f, uint64_t size)
{
    struct msg_setattr_req set = {.ino = core_file_ino(f), .set = MSG_SET_SIZE, .size = size};
    struct bed_op op;

    bed_op_init(&op);
    core_setattr(c, &op.q, &set, f);
    return bed_wait(b, &op);
}

int bed_size(struct bed *b, struct core *c, uint64_t ino, uint64_t *ret_size)
{
    struct bed_op op;
    int err;

    bed_op_init(&op);
    core_getattr(c, &op.q, ino);
    err = bed_wait(b, &op);
    *ret_size = op.q.entry.attr.size;
    return err;
}

void bed_expect_durable(struct bed *b, const char *name, const uint8_t *data, uint32_t len)
{
    struct fake_inode *i = fake_inode(&b->cluster, name);
    uint8_t *durable = malloc(len);

    ck_assert_uint_eq(i->attr.size, len);
    fake_contents(&b->cluster, i, 0, durable, len, true);
    ck_assert_int_eq(memcmp(durable, data, len), 0);
    free(durable);
}

void bed_pattern(uint8_t *data, size_t len, uint64_t offset, unsigned seed)
{
    size_t k;

    for (k = 0; k < len; k++)
        data[k] = (uint8_t)((offset + k) * 2654435761u >> 7 ^ (offset + k) ^ seed);
}
