// SPDX-License-Identifier: Apache-2.0
/* What the disk or the memory of a target refuses once: who asked is told, and nothing is believed
 * to be durable that is not. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite.h"

static void setup(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    target_setup();
}

START_TEST(a_segment_file_is_used_when_its_directory_was_synced)
{
    rig_open(&rig);
    ck_assert_int_eq(fault_arm("chunk.seg.sync=error@1"), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, true), -EIO);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, true), 0);
    ck_assert_uint_eq(fault_count("chunk.seg.sync"), 2); /* and not only fails once */
    target_expect(5, data, 10000);
    rig_reopen(&rig);
    target_expect(5, data, 10000);
}
END_TEST

/* They may have been made by a server that was killed before it came to that. */
START_TEST(segment_files_that_are_found_are_synced_before_they_are_used)
{
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, true), 0);
    rig_close(&rig);
    ck_assert_int_eq(fault_arm("chunk.seg.sync=error@1"), 0);
    ck_assert_int_eq(rig_try_open(&rig), -EIO);
    rig_open(&rig);
    target_expect(5, data, 10000);
}
END_TEST

START_TEST(a_store_that_has_failed_calls_nothing_committed)
{
    uint64_t high;

    rig.options.cache_bytes = 0;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, false), 0);
    ck_assert_int_eq(fault_arm("chunk.commit.index=error@1"), 0);
    ck_assert_int_eq(rig_commit(&rig, 6), 0);
    ck_assert_int_eq(rig_commit(&rig, 5), -EIO);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, 100), 0); /* others go out of memory */
    ck_assert_int_eq(rig_commit(&rig, 5), -EIO);
    ck_assert_int_eq(rig_commit(&rig, 0), -EIO);
    ck_assert_int_eq(rig_seal(&rig, 5, 0, CB, &high), -EIO);
}
END_TEST

/* All chunks move; the records that say so are in the index, but the commit fails. */
START_TEST(after_a_failed_commit_there_is_the_old_data_or_the_new)
{
    enum { CHUNKS = 20 };

    rig_destroy(&rig); /* in memory more is kept of what is free */
    rig_on_disk = true;
    rig_make_dir(&rig);
    rig.options.cache_bytes = 0;
    rig_open(&rig);
    for (uint64_t c = 0; c < CHUNKS; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, CB, false), 0);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    for (uint64_t c = 0; c < CHUNKS; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data + CB, CB / 2, false), 0);
    ck_assert_int_eq(fault_arm("chunk.commit.unknown=error@1"), 0);
    ck_assert_int_eq(rig_commit(&rig, 5), -EIO);
    rig_reopen(&rig); /* their slots are let go of by now, if not before */
    for (uint64_t c = 0; c < CHUNKS; c++) {
        ck_assert_int_eq(rig_read(&rig, 5, c, 0, 0, got, CB), 0);
        ck_assert_int_eq(memcmp(got, data + CB, CB / 2), 0);
        ck_assert_int_eq(memcmp(got + CB / 2, data + CB / 2, CB / 2), 0);
    }
}
END_TEST

START_TEST(what_was_acknowledged_is_read_from_a_store_that_has_failed)
{
    rig.options.cache_bytes = 0;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + CB, CB, false), 0);
    ck_assert_int_eq(fault_arm("chunk.commit.index=error@1"), 0);
    ck_assert_int_eq(rig_commit(&rig, 5), -EIO);
    ck_assert_int_eq(rig_read(&rig, 6, 0, 0, 0, got, 100), 0);
    target_expect(5, data + CB, CB);
}
END_TEST

START_TEST(a_commit_without_memory_is_made_later)
{
    rig.options.commit_interval_ns = 2 * NS_PER_MS;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 10000, false), 0);
    ck_assert_int_eq(fault_arm("mem.alloc=error@1"), 0);
    ck_assert_int_eq(rig_commit(&rig, 5), 0);
    ck_assert_uint_ge(fault_count("mem.alloc"), 2); /* it did need some */
    ck_assert(!target_stat().failed);
    rig_reopen(&rig);
    target_expect(5, data, 10000);
}
END_TEST

SUITE_MAIN("chunk-failures", setup, target_teardown,
           what_was_acknowledged_is_read_from_a_store_that_has_failed,
           a_commit_without_memory_is_made_later,
           after_a_failed_commit_there_is_the_old_data_or_the_new,
           a_store_that_has_failed_calls_nothing_committed,
           a_segment_file_is_used_when_its_directory_was_synced,
           segment_files_that_are_found_are_synced_before_they_are_used)
