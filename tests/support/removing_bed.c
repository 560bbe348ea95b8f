/* SPDX-License-Identifier: Apache-2.0 */
/* See removing_bed.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/removing_bed.h"

struct removing_bed rm;

uint64_t rm_make(uint64_t parent, const char *name, uint32_t mode)
{
    struct msg_bytes b = {name, (uint32_t)strlen(name)};

    return fake_make(&rm.bed.cluster, parent, &b, mode)->attr.ino;
}

const char *rm_name(unsigned k)
{
    static char name[8][16];
    char *at = name[k % 8];

    snprintf(at, sizeof name[0], "f%u", k);
    return at;
}

struct fake_inode *rm_file(unsigned k)
{
    return fake_find(&rm.bed.cluster, RM_DIR,
                     &(struct msg_bytes){rm_name(k), (uint32_t)strlen(rm_name(k))});
}

void rm_start(struct bed_op *op, const char *name)
{
    bed_op_init(op);
    op->q.ahead = true;
    core_unlink(rm.c, &op->q, RM_DIR, name, (uint32_t)strlen(name));
}

int rm_wait(unsigned k)
{
    struct bed_op op;

    rm_start(&op, rm_name(k));
    return bed_wait(&rm.bed, &op);
}

int rm_getattr(uint64_t ino)
{
    struct bed_op op;

    bed_op_init(&op);
    core_getattr(rm.c, &op.q, ino);
    return bed_wait(&rm.bed, &op);
}

unsigned rm_list(uint64_t ino)
{
    struct core_dirent e;
    struct bed_op op;
    unsigned n = 0;

    bed_op_init(&op);
    core_readdir(rm.c, &op.q, ino, 0, 65536, true);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    while (core_dirent_next(&op.q, &e) > 0)
        n++;
    ck_assert(op.q.out.dir.eof);
    core_readdir_done(&op.q);
    return n;
}

int rm_lookup(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_lookup(rm.c, &op.q, RM_DIR, name, (uint32_t)strlen(name));
    return bed_wait(&rm.bed, &op);
}

int rm_fsync(void)
{
    struct bed_op op;

    bed_op_init(&op);
    core_fsync_ino(rm.c, &op.q, RM_DIR);
    return bed_wait(&rm.bed, &op);
}

struct core_stats rm_stats(void)
{
    struct core_stats s;

    core_get_stats(rm.c, &s);
    return s;
}

/* Time for whatever may go on. */
void rm_let_pass(void)
{
    bed_spin(&rm.bed, 50 * NS_PER_MS);
}

/* Two files are removed as ever, the others are listed: from now on the client knows. */
void rm_begin(void)
{
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    ck_assert_int_eq(rm_wait(0), 0);
    ck_assert_int_eq(rm_wait(1), 0);
    ck_assert_uint_eq(rm_stats().removed_ahead, 0);
    rm_let_pass(); /* a page in advance */
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES - 2);
    ck_assert_uint_gt(rm.bed.cluster.wishes, 0);
}

void rm_setup(void)
{
    fake_mds_features |= RPC_FEATURE_BATCH;
    bed_setup(&rm.bed, 3);
    rm.bed.cluster.alone = rm.bed.cluster.batches = true;
    ck_assert_uint_eq(rm_make(1, "dir", S_IFDIR | 0755), RM_DIR);
    for (unsigned k = 0; k < RM_FILES; k++)
        rm_make(RM_DIR, rm_name(k), S_IFREG | 0644);
    rm.c = bed_mount(&rm.bed, NULL);
}

void rm_teardown(void)
{
    bed_unmount(&rm.bed, rm.c, false, 0);
    bed_spin(&rm.bed, 10 * NS_PER_MS); /* what is under way arrives */
    bed_teardown(&rm.bed);
}

bool rm_at_once(unsigned k)
{
    uint64_t before = rm_stats().removed_ahead;
    struct bed_op op;
    bool done;

    rm_start(&op, rm_name(k));
    done = op.done;
    ck_assert_uint_eq(rm_stats().removed_ahead - before, done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return done;
}
