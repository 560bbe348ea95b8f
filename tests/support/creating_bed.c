/* SPDX-License-Identifier: Apache-2.0 */
/* See creating_bed.h. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/creating_bed.h"

uint8_t cr_bytes[CR_LEN];

void cr_setup_with(uint64_t without, const struct core_options *given)
{
    struct core_options o;

    core_options_default(&o);
    if (given)
        o = *given;
    o.create_ahead = true;
    fake_mds_features = RPC_FEATURES & ~without;
    rm_setup();
    bed_unmount(&rm.bed, rm.c, false, 0);
    rm.c = bed_mount(&rm.bed, &o);
    bed_pattern(cr_bytes, CR_LEN, 0, 1);
}

void cr_setup(void)
{
    cr_setup_with(0, NULL);
}

static struct core_file *make_in(uint64_t dir, const char *name, bool *ret_at_once)
{
    struct bed_op op;

    bed_op_init(&op);
    op.q.ahead = true;
    core_create_file(rm.c, &op.q, dir, name, (uint32_t)strlen(name), 0644,
                     O_RDWR | O_CREAT | O_EXCL, NULL);
    *ret_at_once = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return op.q.out.opened.file;
}

struct core_file *cr_make(const char *name, bool *ret_at_once)
{
    return make_in(RM_DIR, name, ret_at_once);
}

bool cr_file_in(uint64_t dir, const char *name, const void *data, uint32_t len)
{
    bool at_once;
    struct core_file *f = make_in(dir, name, &at_once);

    ck_assert_int_eq(bed_write(&rm.bed, rm.c, f, 0, data, len), 0);
    ck_assert_int_eq(bed_flush(&rm.bed, rm.c, f), 0);
    core_release(rm.c, f);
    return at_once;
}

uint64_t cr_dir_in(uint64_t dir, const char *name, bool *ret_at_once)
{
    struct bed_op op;

    bed_op_init(&op);
    op.q.ahead = true;
    core_mkdir(rm.c, &op.q, dir, name, (uint32_t)strlen(name), 0755, NULL);
    *ret_at_once = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert(S_ISDIR(op.q.entry.attr.mode));
    return op.q.entry.ino;
}

struct core_file *cr_make_ahead(const char *name)
{
    bool at_once;
    struct core_file *f = cr_make(name, &at_once);

    ck_assert(at_once);
    return f;
}

void cr_put(struct core_file *f)
{
    ck_assert_int_eq(bed_write(&rm.bed, rm.c, f, 0, cr_bytes, CR_LEN), 0);
}

const char *cr_name(unsigned k)
{
    static char name[16];

    snprintf(name, sizeof name, "made%u", k);
    return name;
}

struct fake_inode *cr_stored(const char *name)
{
    return fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){name, (uint32_t)strlen(name)});
}

void cr_expect_whole(const char *name)
{
    const struct fake_inode *i = cr_stored(name);

    ck_assert_ptr_nonnull(i);
    ck_assert_uint_eq(i->attr.size, CR_LEN);
    ck_assert_mem_eq(i->data, cr_bytes, CR_LEN);
}

/* Two files are made as ever, the directory is listed: from now on the client knows. */
void cr_begin(void)
{
    bool at_once;

    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    for (unsigned k = 0; k < 2; k++) {
        core_release(rm.c, cr_make(cr_name(k), &at_once));
        ck_assert(!at_once);
    }
    rm_let_pass();
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES + 2);
    ck_assert_uint_gt(rm.bed.cluster.wishes, 0);
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
}

/* Written and closed. */
void cr_whole(unsigned from, unsigned to)
{
    for (unsigned k = from; k < to; k++)
        ck_assert(cr_file_in(RM_DIR, cr_name(k), cr_bytes, CR_LEN));
}
