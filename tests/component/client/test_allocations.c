/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that runs out of memory: each allocation of a scenario fails in turn. One call may end
 * in ENOMEM; what was acknowledged is there, what failed was not acknowledged, and once there is
 * memory again everything works. The servers always have enough: they are not what is tested.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define LONG_FILE  (3u * MIB)
#define SHORT_FILE 3000u
#define SWEEP_MAX  4000u /* no scenario makes so many allocations */

static struct bed bed;
static struct core *c;
static uint8_t *data, *back;

static void setup(void)
{
    bed_setup(&bed, 3);
    data = malloc(LONG_FILE);
    back = malloc(LONG_FILE);
    bed_pattern(data, LONG_FILE, 0, 1);
}

static void teardown(void)
{
    fault_disarm_all();
    free(data);
    free(back);
    bed_teardown(&bed);
}

/* Out of memory is the one thing that may be wrong. */
static bool worked(int err)
{
    ck_assert_msg(err == 0 || err == -ENOMEM, "%s", err_name(err));
    return err == 0;
}

static bool make(const char *name, struct core_file **ret_file)
{
    struct bed_op op;

    bed_op_init(&op);
    core_create_file(c, &op.q, 1, name, (uint32_t)strlen(name), 0644, O_RDWR | O_CREAT, NULL);
    if (!worked(bed_wait(&bed, &op)))
        return false;
    *ret_file = op.q.out.opened.file;
    return true;
}

/* Writes and fsyncs; an fsync that returned 0 after writes that returned 0 is believed. */
static bool store(struct core_file *f, uint32_t len)
{
    int err = bed_write(&bed, c, f, 0, data, len), synced;

    worked(err);
    synced = bed_fsync(&bed, c, f);
    worked(synced);
    return !err && !synced;
}

static void check_stored(const char *name, uint32_t len)
{
    bed_expect_durable(&bed, name, data, len);
}

static void write_files(void)
{
    static const struct {
        const char *name;
        uint32_t len;
    } files[] = {{"long", LONG_FILE}, {"short", SHORT_FILE}};
    struct core_file *f;

    for (unsigned k = 0; k < 2; k++) {
        bool stored;

        if (!make(files[k].name, &f))
            continue;
        stored = store(f, files[k].len);
        core_release(c, f);
        if (stored)
            check_stored(files[k].name, files[k].len);
    }
}

static void read_files(void)
{
    static const uint32_t at[] = {0, 2 * MIB + 5, 4096, MIB, 100, 2 * MIB};
    struct bed_op op;

    bed_op_init(&op);
    core_open(c, &op.q, fake_inode(&bed.cluster, "stored")->attr.ino, O_RDONLY);
    if (!worked(bed_wait(&bed, &op)))
        return;
    for (unsigned k = 0; k < sizeof at / sizeof at[0]; k++) {
        int got = bed_read(&bed, c, op.q.out.opened.file, at[k], back, 300000);

        if (worked(MIN(got, 0))) {
            ck_assert_int_eq(got, 300000);
            ck_assert_int_eq(memcmp(back, data + at[k], 300000), 0);
        }
    }
    core_release(c, op.q.out.opened.file);
}

static void change_names(void)
{
    struct bed_op op;

    bed_op_init(&op);
    core_mkdir(c, &op.q, 1, "dir", 3, 0755, NULL);
    worked(bed_wait(&bed, &op));
    bed_op_init(&op);
    core_lookup(c, &op.q, 1, "stored", 6);
    worked(bed_wait(&bed, &op));
    bed_op_init(&op);
    core_rename(c, &op.q, 1, "stored", 6, 1, "moved", 5, 0);
    if (worked(bed_wait(&bed, &op)))
        check_stored("moved", LONG_FILE);
    bed_op_init(&op);
    core_getattr(c, &op.q, 1);
    worked(bed_wait(&bed, &op));
    bed_op_init(&op);
    core_unlink(c, &op.q, 1, "moved", 5);
    if (bed_wait(&bed, &op) != -ENOENT)
        worked(op.status);
}

static void cut_a_file(void)
{
    struct core_file *f;

    if (!make("stored", &f))
        return;
    if (worked(bed_truncate(&bed, c, f, MIB + 7)))
        ck_assert_uint_eq(fake_inode(&bed.cluster, "stored")->attr.size, MIB + 7);
    core_release(c, f);
}

/* Servers forget what was not committed, and their connections, at the worst time. */
static void write_again_after_a_restart(void)
{
    struct core_file *f;
    int err;

    if (!make("again", &f))
        return;
    err = bed_write(&bed, c, f, 0, data, LONG_FILE);
    worked(err);
    fake_targets_restart(&bed.cluster);
    fake_mds_break_links(&bed.cluster);
    if (worked(bed_fsync(&bed, c, f)) && !err)
        check_stored("again", LONG_FILE);
    core_release(c, f);
}

static void is_well_again(void)
{
    struct core_file *f;

    ck_assert(make("after", &f));
    ck_assert(store(f, LONG_FILE));
    check_stored("after", LONG_FILE);
    ck_assert_int_eq(bed_read(&bed, c, f, 0, back, LONG_FILE), LONG_FILE);
    ck_assert_int_eq(memcmp(back, data, LONG_FILE), 0);
    core_release(c, f);
}

static void sweep(void (*scenario)(void))
{
    char spec[64];
    unsigned n, seen = 0;

    for (n = 1; n <= SWEEP_MAX; n++) {
        struct core_file *f;

        c = bed_mount(&bed, NULL);
        ck_assert(make("stored", &f));
        ck_assert(store(f, LONG_FILE));
        core_release(c, f);
        snprintf(spec, sizeof spec, "mem.alloc=error@%u", n);
        ck_assert_int_eq(fault_arm(spec), 0);
        scenario();
        seen = fault_count("mem.alloc");
        fault_disarm_all();
        is_well_again();
        bed_unmount(&bed, c, false, 0);
        for (unsigned k = 2; k < FAKE_INODES; k++)
            memset(&bed.cluster.inodes[k], 0, sizeof bed.cluster.inodes[k]);
        if (seen < n)
            break;
    }
    ck_assert_uint_le(n, SWEEP_MAX);
    ck_assert_uint_gt(n, 1); /* the scenario allocates at all */
}

START_TEST(a_client_that_cannot_mount_for_want_of_memory_leaves_nothing_behind)
{
    struct core_options o;
    char spec[64], address[80];
    unsigned n, seen = 0;

    core_options_default(&o);
    o.memory_limit = 96 * MIB;
    o.mds[0] = fake_mds_address(&bed.cluster, address);
    o.n_mds = 1;
    o.key = bed.cluster.key;
    for (n = 1; n <= SWEEP_MAX; n++) {
        struct bed_op op;
        bool mounted = false;

        snprintf(spec, sizeof spec, "mem.alloc=error@%u", n);
        ck_assert_int_eq(fault_arm(spec), 0);
        if (worked(core_create(bed.reactor, &o, &c))) {
            bed_op_init(&op);
            core_mount(c, &op.q);
            mounted = worked(bed_wait(&bed, &op));
            seen = fault_count("mem.alloc");
            fault_disarm_all();
            if (mounted)
                is_well_again();
            bed_unmount(&bed, c, false, 0);
        }
        fault_disarm_all();
        if (mounted && seen < n)
            break;
    }
    ck_assert_uint_le(n, SWEEP_MAX);
}
END_TEST

#define SWEEP(name, scenario)                                                                      \
    START_TEST(name)                                                                               \
    {                                                                                              \
        sweep(scenario);                                                                           \
    }                                                                                              \
    END_TEST
SWEEP(files_are_written_without_memory, write_files)
SWEEP(files_are_read_without_memory, read_files)
SWEEP(names_change_without_memory, change_names)
SWEEP(a_file_is_cut_without_memory, cut_a_file)
SWEEP(data_is_written_again_without_memory, write_again_after_a_restart)

SUITE_MAIN("client-allocations", setup, teardown,
           a_client_that_cannot_mount_for_want_of_memory_leaves_nothing_behind,
           files_are_written_without_memory, files_are_read_without_memory,
           names_change_without_memory, a_file_is_cut_without_memory,
           data_is_written_again_without_memory)
