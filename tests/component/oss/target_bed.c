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

uint64_t target_warm(unsigned n)
{
    static uint64_t ino = 10000;
    uint64_t before = target_used();

    ino++;
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(rig_write(&rig, ino, i, 0, 0, data + 2 * CB, CB, false), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, ino), 0);
    ck_assert_uint_eq(target_used(), before);
    return ino;
}

void target_write_init(struct rig_op *o, uint64_t ino, const uint8_t *from, uint32_t len)
{
    *o = (struct rig_op){.op = {.kind = CHUNK_WRITE, .ino = ino, .len = len}};
    o->op.data = (void *)from;
    o->op.crcs = o->crcs;
    crc32c_blocks(0, from, len, o->crcs);
}

int target_write_placed(uint64_t ino, const uint8_t *from, uint32_t len)
{
    struct rig_op o;

    target_write_init(&o, ino, from, len);
    ck_assert(rig_place(&rig, &o));
    return rig_run(&rig, &o);
}

uint64_t target_mapped(void)
{
    return target_stat().mapped_bytes;
}

void target_wait_until_mapped(uint64_t bytes)
{
    while (target_mapped() < bytes)
        reactor_run_once(rig.reactor, NS_PER_S);
}

void target_open_ready(uint64_t capacity_bytes, uint64_t ready_bytes)
{
    rig.options.capacity_bytes = capacity_bytes;
    rig.options.ready_bytes = 4 * ready_bytes; /* it begins with a quarter */
    rig_open(&rig);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
    target_wait_until_mapped(ready_bytes);
}
