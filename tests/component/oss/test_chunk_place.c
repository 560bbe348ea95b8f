// SPDX-License-Identifier: Apache-2.0
/*
 * Payloads that land in an unused slot: what the store makes of them when they are whole, torn or
 * damaged, when the chunk is another than was thought, and when space is short. Transfers are
 * played by the test.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite_cases.h"

START_TEST(what_landed_in_a_slot_is_read_committed_and_there_after_a_restart)
{
    rig_open(&rig);
    target_warm(3);
    ck_assert_int_eq(target_write_placed(5, data, CB), 0);
    target_expect(5, data, CB);
    ck_assert_int_eq(target_write_placed(5, data + CB, CB),
                     0); /* replaces what was never committed */
    target_expect(5, data + CB, CB);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    ck_assert_int_eq(target_write_placed(5, data, CB), 0); /* and what was */
    target_expect(5, data, CB);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
    rig_reopen(&rig);
    target_expect(5, data, CB);
    ck_assert_uint_eq(target_used(), CB);
}
END_TEST

START_TEST(only_slots_that_were_written_are_places)
{
    struct chunk_place p;

    rig_open(&rig);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    target_warm(1);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    ck_assert_uint_eq(target_used(), CB);
    chunk_store_unplace(&p);
    chunk_store_unplace(&p); /* nothing more */
    ck_assert_uint_eq(target_used(), 0);
}
END_TEST

START_TEST(parts_of_blocks_and_of_chunks_get_no_place)
{
    struct chunk_place p;

    rig_open(&rig);
    target_warm(4);
    ck_assert(!chunk_store_place(rig.store, 5, 0, CHUNK_BLOCK, CB - CHUNK_BLOCK, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB - 1, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CHUNK_BLOCK, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, 2 * CB, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, 0, &p));
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, false), 0);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB - CHUNK_BLOCK, &p)); /* it is longer */
    ck_assert_uint_eq(target_used(), CB);
}
END_TEST

START_TEST(a_torn_transfer_leaves_the_old_data_and_frees_its_slot)
{
    struct chunk_place p;

    rig_open(&rig);
    target_warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    memcpy(p.data, data + CB, CB / 2); /* then the sender died */
    ck_assert_uint_eq(target_used(), 2 * CB);
    target_expect(5, data, CB);
    chunk_store_unplace(&p);
    ck_assert_uint_eq(target_used(), CB);
    target_expect(5, data, CB);
    rig_reopen(&rig);
    target_expect(5, data, CB);
}
END_TEST

/* The slot of a transfer that is not over is nobody else's, however much is written meanwhile. */
START_TEST(a_slot_under_transfer_is_not_given_away)
{
    struct chunk_place p;

    rig_open(&rig);
    target_warm(2);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_write(&rig, 6, i, 0, 0, data, CB, i % 2), 0);
    memset(p.data, 0xdd, CB);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_verify(&rig, 6, i), 0);
    chunk_store_unplace(&p);
    ck_assert_uint_eq(target_used(), 4 * CB);
}
END_TEST

START_TEST(damaged_data_never_becomes_visible)
{
    struct rig_op o;

    log_set_level(LOG_LEVEL_ERROR);
    rig_open(&rig);
    target_warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    target_write_init(&o, 5, data + CB, CB);
    ck_assert(rig_place(&rig, &o));
    o.place.data[CB - 1] ^= 1;
    ck_assert_int_eq(rig_run(&rig, &o), -AIFS_ECHECKSUM);
    ck_assert_uint_eq(target_used(), CB);
    target_expect(5, data, CB);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
    rig_reopen(&rig);
    target_expect(5, data, CB);
}
END_TEST

/* In three parts, the second of which ends inside a block, with a byte wrong that is not the first.
 * Whole blocks are summed as they come, as long as they come whole. */
static void land_in_parts(struct rig_op *o, uint32_t wrong)
{
    const uint32_t parts[] = {CB / 4, CB / 4 + 100, CB / 2 - 100};
    static uint8_t sent[CB];
    uint32_t at = 0;

    memcpy(sent, data + CB, CB);
    sent[wrong] ^= wrong ? 1 : 0;
    target_write_init(o, 5, data + CB, CB);
    ck_assert(rig_place(&rig, o));
    memset(o->place.data, 0, CB);
    o->place.crcs = o->op.crcs;
    for (unsigned i = 0; i < ARRAY_LEN(parts); at += parts[i++])
        chunk_store_land(&o->place, sent + at, parts[i]);
    ck_assert_mem_eq(o->place.data, sent, CB);
}

START_TEST(damage_is_found_whenever_it_landed)
{
    static const uint32_t wrong[] = {1, CB / 4, CB / 2 - 1, CB / 2, CB - 1};
    struct rig_op o;

    log_set_level(LOG_LEVEL_ERROR);
    rig_open(&rig);
    target_warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
        land_in_parts(&o, wrong[i]);
        ck_assert_uint_eq(o.place.checked, MIN(wrong[i] / CHUNK_BLOCK * CHUNK_BLOCK, CB / 2));
        ck_assert_int_eq(rig_run(&rig, &o), -AIFS_ECHECKSUM);
        target_expect(5, data, CB);
    }
    land_in_parts(&o, 0);
    ck_assert_uint_eq(o.place.checked, CB / 2);
    ck_assert_int_eq(rig_run(&rig, &o), 0);
    target_expect(5, data + CB, CB);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
}
END_TEST

START_TEST(a_write_that_fails_behind_its_place_leaves_the_old_data)
{
    rig_open(&rig);
    target_warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(fault_arm("chunk.write=error"), 0);
    ck_assert_int_eq(target_write_placed(5, data + CB, CB), -EIO);
    fault_disarm_all();
    ck_assert_uint_eq(target_used(), CB);
    target_expect(5, data, CB);
}
END_TEST

/* What has landed for the first half of a chunk, and the second half that was there. */
static void expect_merged(struct rig_op *o)
{
    ck_assert_int_eq(rig_run(&rig, o), 0);
    memcpy(data, data + CB, o->op.len);
    target_expect(5, data, CB);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    ck_assert_uint_eq(target_used(), CB);
}

/* Somebody made the chunk longer between the head of the request and the write: the payload is
 * merged with what is behind it, from where it landed. */
START_TEST(a_chunk_that_has_grown_is_merged_from_the_place)
{
    struct rig_op o;

    rig_open(&rig);
    target_warm(3);
    target_write_init(&o, 5, data + CB, CB / 2 + CHUNK_BLOCK);
    ck_assert(rig_place(&rig, &o));
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    expect_merged(&o);
}
END_TEST

/* A record that is on disk only may be longer too. */
START_TEST(a_chunk_that_is_not_in_memory_is_merged_from_the_place)
{
    struct rig_op o;

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    rig_reopen(&rig);
    target_warm(2);
    target_write_init(&o, 5, data + CB, CB / 2 + CHUNK_BLOCK);
    ck_assert(rig_place(&rig, &o));
    expect_merged(&o);
}
END_TEST

START_TEST(a_destroyed_inode_takes_no_place)
{
    struct rig_op o;

    rig_open(&rig);
    target_write_init(&o, target_warm(2), data, CB);
    ck_assert(rig_place(&rig, &o));
    ck_assert_int_eq(rig_run(&rig, &o), -ENOENT);
    ck_assert_uint_eq(target_used(), 0);
}
END_TEST

START_TEST(a_full_target_says_so_and_gives_no_places)
{
    struct rig_op o;
    unsigned n = 0, placed = 0;
    int rc = 0;

    rig.options.capacity_bytes = 64 * MIB;
    rig_open(&rig);
    target_warm(50);
    while (!rc && n < 100) {
        target_write_init(&o, 1000 + n, data + (n % 4) * CB / 4, CB);
        n++;
        placed += rig_place(&rig, &o);
        rc = rig_run(&rig, &o);
    }
    ck_assert_int_eq(rc, -ENOSPC);
    ck_assert_uint_gt(n, 55);
    ck_assert_uint_ge(placed, 20);
    ck_assert_uint_lt(placed, 40);
    for (unsigned i = 0; i + 1 < n; i++)
        ck_assert_int_eq(rig_verify(&rig, 1000 + i, 0), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, 1000), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
}
END_TEST

START_TEST(without_a_mapping_writes_go_through_buffers)
{
    struct chunk_place p;

    rig_open(&rig);
    target_warm(2);
    ck_assert_int_eq(fault_arm("chunk.map=error"), 0);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    ck_assert_uint_eq(target_used(), 0);
    fault_disarm_all();
    rig_close(&rig);
    rig.options.mapped_bytes = 0;
    rig_open(&rig);
    target_warm(2);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
}
END_TEST

START_TEST(large_writes_to_memory_are_made_durable_at_once)
{
    rig_open(&rig);
    ck_assert(!chunk_store_commits_at_once(rig.store, 64 * KIB));
    ck_assert_int_eq(chunk_store_commits_at_once(rig.store, CB), target_in_memory());
}
END_TEST

START_TEST(data_read_from_mapped_memory_is_checked)
{
    char path[4096];
    uint8_t byte;
    int fd;

    rig_open(&rig);
    target_warm(1);
    ck_assert_int_eq(target_write_placed(6, data, CB), 0);
    ck_assert_uint_ge(target_mapped(), CB);
    target_expect(6, data, CB);
    ck_assert_int_eq(fault_arm("chunk.read=error"), 0);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, CB), -EIO);
    fault_disarm_all();
    snprintf(path, sizeof path, "%s/seg/20.000000", rig.dir);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (off_t at = 5000; pread(fd, &byte, 1, at) == 1; at += CB) { /* in whichever slot it is */
        byte ^= 1;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    log_set_level(LOG_LEVEL_ERROR);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, CB), -AIFS_ECORRUPT);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, CHUNK_BLOCK), 0);
}
END_TEST

/* A slot that is mapped is written there, whatever kind of write it is. */
START_TEST(what_is_mapped_is_written_where_it_is)
{
    target_open_ready(64 * MIB, 4 * CB);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, false), 0);
    ck_assert_uint_eq(target_stat().mapped_writes, 1);
    target_expect(5, data, CB);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 3 * CHUNK_BLOCK, data, CHUNK_BLOCK, false), 0);
    memcpy(data + CB, data, CB);
    memcpy(data + CB + 3 * (size_t)CHUNK_BLOCK, data, CHUNK_BLOCK);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 5000, data + 17, 9000, false), 0);
    memcpy(data + CB + 5000, data + 17, 9000);
    ck_assert_uint_eq(target_stat().mapped_writes, 3);
    target_expect(5, data + CB, CB);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + 2 * CB, CB / 2, true), 0); /* moves it */
    memcpy(data + CB, data + 2 * CB, CB / 2);
    ck_assert_uint_ge(target_stat().mapped_writes, 5); /* with what was copied along */
    target_expect(5, data + CB, CB);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
    target_expect(5, data + CB, CB);
}
END_TEST

/* Sums are checked on the way into a new slot, before anything that is seen is written over. */
START_TEST(damaged_data_does_not_show_in_mapped_memory)
{
    const uint32_t lens[] = {CB, CHUNK_BLOCK, CB / 2, 8 * CHUNK_BLOCK};
    struct rig_op o;
    uint64_t used;

    log_set_level(LOG_LEVEL_ERROR);
    target_open_ready(64 * MIB, 6 * CB);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, false), 0);
    used = target_used();
    for (unsigned i = 0; i < 2 * ARRAY_LEN(lens); i++) { /* unstable, then committed */
        uint32_t len = lens[i % ARRAY_LEN(lens)];

        if (i == ARRAY_LEN(lens))
            ck_assert_int_eq(rig_commit(&rig, 5), 0);
        for (uint64_t ino = 5; ino < 7; ino++) { /* a chunk that is there, and a new one */
            target_write_init(&o, ino, data + CB, len);
            o.crcs[len / CHUNK_BLOCK - 1] ^= 1;
            ck_assert_int_eq(rig_run(&rig, &o), -AIFS_ECHECKSUM);
        }
        target_expect(5, data, CB);
        ck_assert_uint_eq(target_used(), used);
    }
    ck_assert_uint_eq(target_stat().errors, 0);
    ck_assert_int_eq(rig_verify(&rig, 6, 0), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + CB, CB, true), 0);
    target_expect(5, data + CB, CB);
    rig_reopen(&rig);
    target_expect(5, data + CB, CB);
}
END_TEST

START_TEST(a_write_that_fails_in_mapped_memory_leaves_the_old_data)
{
    target_open_ready(64 * MIB, 4 * CB);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(fault_arm("chunk.write=error"), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + CB, CB, true), -EIO);
    fault_disarm_all();
    ck_assert_uint_eq(target_used(), CB);
    target_expect(5, data, CB);
}
END_TEST

START_TEST(a_target_on_a_disk_has_no_places)
{
    struct chunk_place p;

    rig_open(&rig);
    target_warm(2);
    if (!target_in_memory())
        ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
}
END_TEST

int main(void)
{
    TCase *const cases[] = {
        SUITE_CASE("memory", target_setup, target_teardown,
                   what_landed_in_a_slot_is_read_committed_and_there_after_a_restart,
                   only_slots_that_were_written_are_places,
                   parts_of_blocks_and_of_chunks_get_no_place,
                   a_torn_transfer_leaves_the_old_data_and_frees_its_slot,
                   a_slot_under_transfer_is_not_given_away, damaged_data_never_becomes_visible,
                   damage_is_found_whenever_it_landed,
                   a_write_that_fails_behind_its_place_leaves_the_old_data,
                   a_chunk_that_has_grown_is_merged_from_the_place,
                   a_chunk_that_is_not_in_memory_is_merged_from_the_place,
                   a_destroyed_inode_takes_no_place, a_full_target_says_so_and_gives_no_places,
                   without_a_mapping_writes_go_through_buffers,
                   large_writes_to_memory_are_made_durable_at_once,
                   data_read_from_mapped_memory_is_checked, what_is_mapped_is_written_where_it_is,
                   damaged_data_does_not_show_in_mapped_memory,
                   a_write_that_fails_in_mapped_memory_leaves_the_old_data),
        SUITE_CASE("disk", target_setup_on_disk, target_teardown,
                   large_writes_to_memory_are_made_durable_at_once,
                   a_target_on_a_disk_has_no_places)};
    size_t from = 0;

    log_set_level(LOG_LEVEL_WARN);
    rig_make_dir(&rig);
    if (!target_in_memory()) {
        printf("no tmpfs in /dev/shm: without the tests of a target in memory\n");
        from = 1;
    }
    rig_destroy(&rig);
    return suite_run_cases("chunk place", cases + from, ARRAY_LEN(cases) - from);
}
