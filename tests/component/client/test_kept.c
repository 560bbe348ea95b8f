/* SPDX-License-Identifier: Apache-2.0 */
/* Writes whose memory the client keeps as the block: what becomes of that memory, and what of the
 * bytes when others write, cut, or a target restarts. */
#include <check.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/buf.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define TARGETS 3u
#define BLOCKS  8u
#define ROOM    (BLOCKS * MIB)

static struct core_file *f;

/* A striped file of data, of which nothing is cached, and targets that have promised room. */
static void setup(void)
{
    struct core_options o;

    core_options_default(&o);
    o.memory_limit = 512 * MIB;
    o.warm_bytes = 2 * ROOM;
    file_bed_setup(TARGETS, ROOM);
    core_release(c, stored_file("f", ROOM));
    file_bed_remount(&o);
    f = bed_open(&bed, c, "f", O_RDWR, NULL);
    for (unsigned k = 0; k < TARGETS; k++)
        ck_assert_int_eq(bed_write(&bed, c, f, k * MIB, data + k * MIB, 100), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
}

static void teardown(void)
{
    core_release(c, f);
    file_bed_teardown();
}

static uint64_t kept(void)
{
    struct core_stats stats;

    core_get_stats(c, &stats);
    return stats.kept_writes;
}

static struct buf *room(void)
{
    struct buf *b = core_write_room(c);

    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(b->size_bytes, MIB);
    return b;
}

/* len bytes of data, changed by seed, at offset, from a room that is given back when it is over. */
struct kept_write {
    struct bed_op op;
    struct iovec iov;
    struct buf *room;
};

static void write_later(struct kept_write *w, uint32_t offset, uint32_t len, unsigned seed)
{
    bed_pattern(data + offset, len, offset, seed);
    w->room = room();
    memcpy(w->room->data, data + offset, len);
    w->iov = (struct iovec){w->room->data, len};
    bed_op_init(&w->op);
    core_write_from(c, &w->op.q, f, offset, &w->iov, w->room);
}

static void write_end(struct kept_write *w)
{
    ck_assert_int_eq(bed_wait(&bed, &w->op), 0);
    core_write_room_put(c, w->room);
}

static void put(uint32_t offset, uint32_t len, unsigned seed)
{
    struct kept_write w;

    write_later(&w, offset, len, seed);
    write_end(&w);
}

START_TEST(a_whole_block_is_kept_and_its_memory_is_nobody_elses)
{
    struct buf *other;

    for (unsigned k = 0; k < BLOCKS; k++)
        put(k * MIB, MIB, 10 + k);
    ck_assert_uint_eq(kept(), BLOCKS);
    other = room();
    memset(other->data, 0xee, MIB);
    expect_read(f, 0, data, ROOM);
    core_write_room_put(c, other);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_part_of_a_block_is_copied)
{
    put(MIB + 4096, MIB, 3);      /* of two */
    put(4 * MIB, MIB - 4096, 4);  /* not all of one */
    put(6 * MIB + 100, 50000, 5); /* nor this */
    ck_assert_uint_eq(kept(), 0);
    expect_read(f, 0, data, ROOM);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_kept_block_is_written_to_like_any_other)
{
    put(2 * MIB, MIB, 6);
    bed_pattern(data + 2 * MIB + 5000, 70000, 1, 7);
    ck_assert_int_eq(bed_write(&bed, c, f, 2 * MIB + 5000, data + 2 * MIB + 5000, 70000), 0);
    expect_read(f, MIB, data + MIB, 3 * MIB);
    put(2 * MIB, MIB, 8); /* over what is not stored yet */
    expect_read(f, MIB, data + MIB, 3 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    put(2 * MIB, MIB, 9); /* over what is */
    expect_read(f, MIB, data + MIB, 3 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_block_under_way_is_neither_replaced_nor_changed)
{
    struct kept_write w;

    fake_targets_hold(&bed.cluster);
    put(3 * MIB, MIB, 11);
    bed_spin(&bed, NS_PER_MS);
    write_later(&w, 3 * MIB, MIB, 12);
    bed_spin(&bed, NS_PER_MS);
    ck_assert(!w.op.done);
    fake_targets_release(&bed.cluster);
    write_end(&w);
    ck_assert_uint_eq(kept(), 1);
    expect_read(f, 2 * MIB, data + 2 * MIB, 3 * MIB);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_restart_of_the_targets_loses_no_kept_block)
{
    for (unsigned k = 0; k < BLOCKS; k++)
        put(k * MIB, MIB, 20 + k);
    ck_assert_int_eq(bed_flush(&bed, c, f), 0);
    for (unsigned k = 0; k < TARGETS; k++)
        fake_oss_restart(&bed.cluster.oss[k]);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_cut_takes_the_rest_of_a_kept_block)
{
    uint32_t cut = 5 * MIB + 12345;

    put(5 * MIB, MIB, 30);
    ck_assert_int_eq(bed_truncate(&bed, c, f, cut), 0);
    ck_assert_int_eq(bed_truncate(&bed, c, f, ROOM), 0);
    memset(data + cut, 0, ROOM - cut);
    expect_read(f, 0, data, ROOM);
    put(6 * MIB, MIB, 31);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(a_new_file_grows_from_a_kept_block)
{
    struct core_file *old = f;

    f = bed_create(&bed, c, "new");
    for (unsigned k = 0; k < BLOCKS; k++)
        put(k * MIB, MIB, 40 + k);
    ck_assert_uint_gt(kept(), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    bed_expect_durable(&bed, "new", data, ROOM);
    core_release(c, f);
    f = old;
}
END_TEST

/* They may all be with requests that wait for memory. */
START_TEST(what_waits_with_rooms_leaves_memory_for_the_rest)
{
    struct buf *rooms[64], *b;
    struct core_options o;
    unsigned n = 0;

    core_release(c, f);
    core_options_default(&o);
    o.memory_limit = 32 * MIB;
    o.warm_bytes = ROOM;
    file_bed_remount(&o);
    f = bed_open(&bed, c, "f", O_RDWR, NULL);
    while (n < 64 && (b = core_write_room(c)))
        rooms[n++] = b;
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_le(n, 4);
    bed_pattern(data + 100, ROOM - MIB, 0, 60);
    for (unsigned k = 0; k < BLOCKS - 1; k++)
        ck_assert_int_eq(bed_write(&bed, c, f, 100 + k * MIB, data + 100 + k * MIB, MIB), 0);
    ck_assert_int_eq(bed_fsync(&bed, c, f), 0);
    while (n)
        core_write_room_put(c, rooms[--n]);
    bed_expect_durable(&bed, "f", data, ROOM);
}
END_TEST

START_TEST(without_a_lease_it_is_written_through)
{
    struct core_file *other;
    struct core *second = bed_mount(&bed, NULL);

    other = bed_open(&bed, second, "f", O_RDWR, NULL);
    put(MIB, MIB, 50);
    ck_assert_uint_eq(kept(), 0);
    bed_expect_durable(&bed, "f", data, ROOM);
    core_release(second, other);
    bed_unmount(&bed, second, false, 0);
}
END_TEST

SUITE_MAIN("client-kept", setup, teardown, a_whole_block_is_kept_and_its_memory_is_nobody_elses,
           a_part_of_a_block_is_copied, a_kept_block_is_written_to_like_any_other,
           a_block_under_way_is_neither_replaced_nor_changed,
           a_restart_of_the_targets_loses_no_kept_block, a_cut_takes_the_rest_of_a_kept_block,
           a_new_file_grows_from_a_kept_block, what_waits_with_rooms_leaves_memory_for_the_rest,
           without_a_lease_it_is_written_through)
