// SPDX-License-Identifier: Apache-2.0
/* See target_bed.h. */
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "common/fault/fault.h"
#include "tests/component/oss/target_bed.h"

struct rig rig;
uint8_t *data, *got;

void target_setup(void)
{
    rig_make_dir(&rig);
    data = aligned_alloc(4096, 4 * CB);
    got = aligned_alloc(4096, CB);
    ck_assert(data && got);
    rig_fill(data, 4 * CB, 1);
}

void target_setup_on_disk(void)
{
    rig_on_disk = true;
    target_setup();
}

void target_teardown(void)
{
    fault_disarm_all();
    rig_destroy(&rig);
    free(data);
    free(got);
}

bool target_in_memory(void)
{
    struct statfs fs;

    return statfs(rig.dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

struct chunk_stat target_stat(void)
{
    struct chunk_stat st;

    chunk_store_stat(rig.store, &st);
    return st;
}

uint64_t target_used(void)
{
    return target_stat().used_bytes;
}

void target_expect(uint64_t ino, const uint8_t *want, uint32_t len)
{
    memset(got, 0xee, CB);
    ck_assert_int_eq(rig_read(&rig, ino, 0, 0, 0, got, len), 0);
    ck_assert_mem_eq(got, want, len);
}
