/* SPDX-License-Identifier: Apache-2.0 */
/* See file_bed.h. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/file_bed.h"

struct bed bed;
struct core *c;
uint8_t *data, *back;

void file_bed_setup(unsigned n_oss, size_t room)
{
    bed_setup(&bed, n_oss);
    c = bed_mount(&bed, NULL);
    data = malloc(room);
    back = malloc(room);
    ck_assert(data && back);
    bed_pattern(data, room, 0, 1);
}

void file_bed_teardown(void)
{
    if (c)
        bed_unmount(&bed, c, false, 0);
    free(data);
    free(back);
    bed_teardown(&bed);
}

void file_bed_remount(const struct core_options *o)
{
    bed_unmount(&bed, c, false, 0);
    c = bed_mount(&bed, o);
}

struct core_file *stored_file(const char *name, uint32_t len)
{
    struct core_file *f = bed_create(&bed, c, name);

    ck_assert_int_eq(bed_write(&bed, c, f, 0, data, len), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    return f;
}

void expect_read(struct core_file *f, uint64_t offset, const uint8_t *want, uint32_t len)
{
    memset(back, 0xee, len);
    ck_assert_int_eq(bed_read(&bed, c, f, offset, back, len), (int)len);
    ck_assert_int_eq(memcmp(back, want, len), 0);
}

void read_later(struct bed_op *op, struct core_file *f, uint64_t offset, uint32_t len)
{
    bed_op_init(op);
    core_read(c, &op->q, f, offset, len, NULL);
}

void fsync_later(struct bed_op *op, struct core_file *f)
{
    bed_op_init(op);
    core_fsync(c, &op->q, f, false);
}
