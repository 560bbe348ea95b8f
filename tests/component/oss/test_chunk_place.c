// SPDX-License-Identifier: Apache-2.0
/*
 * Payloads that land in an unused slot: what the store makes of them when they are whole, torn or
 * damaged, when the chunk is another than was thought, and when space is short. Transfers are
 * played by the test.
 */
#include <check.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/rig.h"

#define CB (1024u * KIB)

static struct rig rig;
static uint8_t *data, *got;

/* False: nothing to test here. */
static bool in_memory(void)
{
    struct statfs fs;

    return statfs(rig.dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static void setup(void)
{
    rig_make_dir(&rig);
    data = aligned_alloc(4096, 4 * CB);
    got = aligned_alloc(4096, CB);
    rig_fill(data, 4 * CB, 1);
}

static void setup_on_disk(void)
{
    rig_on_disk = true;
    setup();
}

static void teardown(void)
{
    fault_disarm_all();
    rig_destroy(&rig);
    free(data);
    free(got);
}

static uint64_t used(void)
{
    struct chunk_stat st;

    chunk_store_stat(rig.store, &st);
    return st.used_bytes;
}

/* n slots of 1 MiB that were written and are free; of a file that is destroyed, whose number it
 * returns. */
static uint64_t warm(unsigned n)
{
    static uint64_t ino = 10000;
    uint64_t before = used();

    ino++;
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(rig_write(&rig, ino, i, 0, 0, data + 2 * CB, CB, false), 0);
    ck_assert_int_eq(rig_destroy_ino(&rig, ino), 0);
    ck_assert_uint_eq(used(), before);
    return ino;
}

static void write_init(struct rig_op *o, uint64_t ino, const uint8_t *from, uint32_t len)
{
    *o = (struct rig_op){.op = {.kind = CHUNK_WRITE, .ino = ino, .len = len}};
    o->op.data = (void *)from;
    o->op.crcs = o->crcs;
    crc32c_blocks(0, from, len, o->crcs);
}

static int write_placed(uint64_t ino, const uint8_t *from, uint32_t len)
{
    struct rig_op o;

    write_init(&o, ino, from, len);
    ck_assert(rig_place(&rig, &o));
    return rig_run(&rig, &o);
}

static void expect(uint64_t ino, const uint8_t *want, uint32_t len)
{
    memset(got, 0xee, CB);
    ck_assert_int_eq(rig_read(&rig, ino, 0, 0, 0, got, len), 0);
    ck_assert_mem_eq(got, want, len);
}

START_TEST(what_landed_in_a_slot_is_read_committed_and_there_after_a_restart)
{
    rig_open(&rig);
    if (!in_memory())
        return;
    warm(3);
    ck_assert_int_eq(write_placed(5, data, CB), 0);
    expect(5, data, CB);
    ck_assert_int_eq(write_placed(5, data + CB, CB), 0); /* replaces what was never committed */
    expect(5, data + CB, CB);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    ck_assert_int_eq(write_placed(5, data, CB), 0); /* and what was */
    expect(5, data, CB);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
    rig_reopen(&rig);
    expect(5, data, CB);
    ck_assert_uint_eq(used(), CB);
}
END_TEST

START_TEST(only_slots_that_were_written_are_places)
{
    struct chunk_place p;

    rig_open(&rig);
    if (!in_memory())
        return;
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    warm(1);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    ck_assert_uint_eq(used(), CB);
    chunk_store_unplace(&p);
    chunk_store_unplace(&p); /* nothing more */
    ck_assert_uint_eq(used(), 0);
}
END_TEST

START_TEST(parts_of_blocks_and_of_chunks_get_no_place)
{
    struct chunk_place p;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(4);
    ck_assert(!chunk_store_place(rig.store, 5, 0, CHUNK_BLOCK, CB - CHUNK_BLOCK, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB - 1, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CHUNK_BLOCK, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, 2 * CB, &p));
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, 0, &p));
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, false), 0);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB - CHUNK_BLOCK, &p)); /* it is longer */
    ck_assert_uint_eq(used(), CB);
}
END_TEST

START_TEST(a_torn_transfer_leaves_the_old_data_and_frees_its_slot)
{
    struct chunk_place p;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    memcpy(p.data, data + CB, CB / 2); /* then the sender died */
    ck_assert_uint_eq(used(), 2 * CB);
    expect(5, data, CB);
    chunk_store_unplace(&p);
    ck_assert_uint_eq(used(), CB);
    expect(5, data, CB);
    rig_reopen(&rig);
    expect(5, data, CB);
}
END_TEST

/* The slot of a transfer that is not over is nobody else's, however much is written meanwhile. */
START_TEST(a_slot_under_transfer_is_not_given_away)
{
    struct chunk_place p;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(2);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_write(&rig, 6, i, 0, 0, data, CB, i % 2), 0);
    memset(p.data, 0xdd, CB);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(rig_verify(&rig, 6, i), 0);
    chunk_store_unplace(&p);
    ck_assert_uint_eq(used(), 4 * CB);
}
END_TEST

START_TEST(damaged_data_never_becomes_visible)
{
    struct rig_op o;

    log_set_level(LOG_LEVEL_ERROR);
    rig_open(&rig);
    if (!in_memory())
        return;
    warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    write_init(&o, 5, data + CB, CB);
    ck_assert(rig_place(&rig, &o));
    o.place.data[CB - 1] ^= 1;
    ck_assert_int_eq(rig_run(&rig, &o), -AIFS_ECHECKSUM);
    ck_assert_uint_eq(used(), CB);
    expect(5, data, CB);
    ck_assert_int_eq(rig_verify(&rig, 5, 0), 0);
    rig_reopen(&rig);
    expect(5, data, CB);
}
END_TEST

START_TEST(a_write_that_fails_behind_its_place_leaves_the_old_data)
{
    rig_open(&rig);
    if (!in_memory())
        return;
    warm(2);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(fault_arm("chunk.write=error"), 0);
    ck_assert_int_eq(write_placed(5, data + CB, CB), -EIO);
    fault_disarm_all();
    ck_assert_uint_eq(used(), CB);
    expect(5, data, CB);
}
END_TEST

/* Somebody made the chunk longer between the head of the request and the write: the payload is
 * merged with what is behind it, from where it landed. */
START_TEST(a_chunk_that_has_grown_is_merged_from_the_place)
{
    struct rig_op o;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(3);
    write_init(&o, 5, data + CB, CB / 2 + CHUNK_BLOCK);
    ck_assert(rig_place(&rig, &o));
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_run(&rig, &o), 0);
    memcpy(data, data + CB, CB / 2 + CHUNK_BLOCK);
    expect(5, data, CB);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    ck_assert_uint_eq(used(), CB);
}
END_TEST

/* A record that is on disk only may be longer too. */
START_TEST(a_chunk_that_is_not_in_memory_is_merged_from_the_place)
{
    struct rig_op o;

    rig_open(&rig);
    if (!in_memory())
        return;
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    rig_reopen(&rig);
    warm(2);
    write_init(&o, 5, data + CB, CB / 2 + CHUNK_BLOCK);
    ck_assert(rig_place(&rig, &o));
    ck_assert_int_eq(rig_run(&rig, &o), 0);
    memcpy(data, data + CB, CB / 2 + CHUNK_BLOCK);
    expect(5, data, CB);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    ck_assert_uint_eq(used(), CB);
}
END_TEST

START_TEST(a_destroyed_inode_takes_no_place)
{
    struct rig_op o;

    rig_open(&rig);
    if (!in_memory())
        return;
    write_init(&o, warm(2), data, CB);
    ck_assert(rig_place(&rig, &o));
    ck_assert_int_eq(rig_run(&rig, &o), -ENOENT);
    ck_assert_uint_eq(used(), 0);
}
END_TEST

START_TEST(a_full_target_says_so_and_gives_no_places)
{
    struct rig_op o;
    unsigned n = 0, placed = 0;
    int rc = 0;

    rig.options.capacity_bytes = 64 * MIB;
    rig_open(&rig);
    if (!in_memory())
        return;
    warm(50);
    while (!rc && n < 100) {
        write_init(&o, 1000 + n, data + (n % 4) * CB / 4, CB);
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

START_TEST(what_is_mapped_is_bounded)
{
    rig.options.mapped_bytes = 3 * CB;
    rig.options.commit_interval_ns = 3600 * NS_PER_S; /* a commit would keep the old slots */
    rig_open(&rig);
    if (!in_memory())
        return;
    warm(10);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 0; i < 7; i++) {
            ck_assert_int_eq(write_placed(1 + i, data + i * CHUNK_BLOCK, CB), 0);
            expect(1 + i, data + i * CHUNK_BLOCK, CB);
        }
    for (unsigned i = 0; i < 7; i++)
        expect(1 + i, data + i * CHUNK_BLOCK, CB);
}
END_TEST

START_TEST(without_a_mapping_writes_go_through_buffers)
{
    struct chunk_place p;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(2);
    ck_assert_int_eq(fault_arm("chunk.map=error"), 0);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    ck_assert_uint_eq(used(), 0);
    fault_disarm_all();
    rig_close(&rig);
    rig.options.mapped_bytes = 0;
    rig_open(&rig);
    warm(2);
    ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
}
END_TEST

START_TEST(large_writes_to_memory_are_made_durable_at_once)
{
    rig_open(&rig);
    ck_assert(!chunk_store_commits_at_once(rig.store, 64 * KIB));
    ck_assert_int_eq(chunk_store_commits_at_once(rig.store, CB), in_memory());
}
END_TEST

static uint64_t mapped(void)
{
    struct chunk_stat st;

    chunk_store_stat(rig.store, &st);
    return st.mapped_bytes;
}

/* False: nothing to test here. */
static bool open_and_be_ready(uint64_t capacity_bytes, uint64_t ready_bytes)
{
    rig.options.capacity_bytes = capacity_bytes;
    rig.options.ready_bytes = ready_bytes;
    rig_open(&rig);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
    while (in_memory() && mapped() < ready_bytes)
        reactor_run_once(rig.reactor, NS_PER_S);
    return in_memory();
}

START_TEST(a_new_target_that_nobody_asks_has_places_and_all_of_its_space)
{
    struct chunk_place p[5];
    struct chunk_stat st;

    if (!open_and_be_ready(64 * MIB, 4 * CB))
        return;
    chunk_store_stat(rig.store, &st);
    ck_assert_uint_eq(st.used_bytes, 0);
    ck_assert_uint_eq(st.total_bytes, 64 * MIB);
    ck_assert_uint_eq(st.free_bytes, 62 * MIB);
    for (unsigned i = 0; i < 4; i++)
        ck_assert(chunk_store_place(rig.store, 5, i, 0, CB, &p[i]));
    ck_assert(!chunk_store_place(rig.store, 5, 4, 0, CB, &p[4]));
    for (unsigned i = 0; i < 4; i++)
        chunk_store_unplace(&p[i]);
    ck_assert_int_eq(write_placed(6, data, CB), 0);
    expect(6, data, CB);
}
END_TEST

START_TEST(a_target_closes_while_it_is_being_made_ready)
{
    rig.options.capacity_bytes = 64 * MIB;
    rig.options.ready_bytes = 8 * CB;
    for (unsigned turns = 0; turns < 12; turns++) {
        rig_open(&rig);
        ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
        for (unsigned k = 0; k < turns && in_memory(); k++)
            reactor_run_once(rig.reactor, NS_PER_MS);
        rig_close(&rig);
    }
}
END_TEST

START_TEST(data_read_from_mapped_memory_is_checked)
{
    char path[4096];
    uint8_t byte;
    int fd;

    rig_open(&rig);
    if (!in_memory())
        return;
    warm(1);
    ck_assert_int_eq(write_placed(6, data, CB), 0);
    ck_assert_uint_ge(mapped(), CB);
    expect(6, data, CB);
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

START_TEST(what_was_made_ready_goes_to_whatever_needs_the_space)
{
    unsigned n = 0;

    if (!open_and_be_ready(64 * MIB, 8 * CB))
        return;
    while (n < 2000 && rig_write(&rig, 100 + n, 0, 0, 0, data, 64 * KIB, false) == 0)
        n++;
    ck_assert_uint_eq(n, 62 * MIB / (64 * KIB));
}
END_TEST

START_TEST(no_more_is_made_ready_than_may_be_mapped)
{
    struct chunk_place p;

    rig.options.mapped_bytes = 2 * CB;
    rig.options.ready_bytes = 8 * CB;
    rig_open(&rig);
    ck_assert_int_eq(chunk_store_set_id(rig.store, 1), 0);
    if (!in_memory())
        return;
    while (mapped() < 2 * CB)
        reactor_run_once(rig.reactor, NS_PER_S);
    ck_assert(chunk_store_place(rig.store, 5, 0, 0, CB, &p));
    chunk_store_unplace(&p);
    ck_assert_int_eq(write_placed(6, data, CB), 0);
    expect(6, data, CB);
    ck_assert_uint_le(mapped(), 2 * CB);
}
END_TEST

START_TEST(a_target_on_a_disk_has_no_places)
{
    struct chunk_place p;

    rig_open(&rig);
    warm(2);
    if (!in_memory())
        ck_assert(!chunk_store_place(rig.store, 5, 0, 0, CB, &p));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chunk place");
    TCase *t = tcase_create("memory"), *d = tcase_create("disk");
    SRunner *r = srunner_create(s);
    int failed;

    log_set_level(LOG_LEVEL_WARN);
    tcase_set_timeout(t, 60);
    tcase_set_timeout(d, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_checked_fixture(d, setup_on_disk, teardown);
    tcase_add_test(t, what_landed_in_a_slot_is_read_committed_and_there_after_a_restart);
    tcase_add_test(t, only_slots_that_were_written_are_places);
    tcase_add_test(t, parts_of_blocks_and_of_chunks_get_no_place);
    tcase_add_test(t, a_torn_transfer_leaves_the_old_data_and_frees_its_slot);
    tcase_add_test(t, a_slot_under_transfer_is_not_given_away);
    tcase_add_test(t, damaged_data_never_becomes_visible);
    tcase_add_test(t, a_write_that_fails_behind_its_place_leaves_the_old_data);
    tcase_add_test(t, a_chunk_that_has_grown_is_merged_from_the_place);
    tcase_add_test(t, a_chunk_that_is_not_in_memory_is_merged_from_the_place);
    tcase_add_test(t, a_destroyed_inode_takes_no_place);
    tcase_add_test(t, a_full_target_says_so_and_gives_no_places);
    tcase_add_test(t, what_is_mapped_is_bounded);
    tcase_add_test(t, without_a_mapping_writes_go_through_buffers);
    tcase_add_test(t, large_writes_to_memory_are_made_durable_at_once);
    tcase_add_test(d, large_writes_to_memory_are_made_durable_at_once);
    tcase_add_test(t, a_new_target_that_nobody_asks_has_places_and_all_of_its_space);
    tcase_add_test(t, a_target_closes_while_it_is_being_made_ready);
    tcase_add_test(t, data_read_from_mapped_memory_is_checked);
    tcase_add_test(t, what_was_made_ready_goes_to_whatever_needs_the_space);
    tcase_add_test(t, no_more_is_made_ready_than_may_be_mapped);
    tcase_add_test(d, a_target_on_a_disk_has_no_places);
    suite_add_tcase(s, t);
    suite_add_tcase(s, d);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
