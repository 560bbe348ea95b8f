// SPDX-License-Identifier: Apache-2.0
/* Holes in chunks: made by a punch, and found by a seek. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite.h"

START_TEST(a_punched_chunk_gives_its_slot_back_and_reads_as_zeros)
{
    rig_open(&rig);
    for (uint64_t c = 0; c < 3; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, CB, false), 0);
    ck_assert_int_eq(rig_punch(&rig, 5, 0, CB, CB - 10, 2 * CB + 10), 0);
    ck_assert_uint_eq(target_stat().used_bytes, 2 * CB);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data, CB - 10), 0);
    ck_assert_uint_eq(got[CB - 10] | got[CB - 1], 0);
    ck_assert_int_eq(rig_read(&rig, 5, 1, 0, 0, got, CB), 0);
    ck_assert_uint_eq(got[0] | got[CB - 1], 0);
    ck_assert_int_eq(rig_read(&rig, 5, 2, 0, 0, got, CB), 0);
    ck_assert_uint_eq(got[0] | got[9], 0);
    ck_assert_int_eq(memcmp(got + 10, data + 10, CB - 10), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 1, 0, 70000, data, 100, true),
                     0); /* and it can be written again */
    ck_assert_int_eq(rig_read(&rig, 5, 1, 0, 70000, got, 100), 0);
    ck_assert_int_eq(memcmp(got, data, 100), 0);
}
END_TEST

#define SEEK(stride, start, end, hole)                                                             \
    (rig_seek(&rig, 5, CB, stride, start, end, hole, &at) == 1 ? (long long)at                     \
     : at == (end)                                             ? -1ll                              \
                                                               : -2ll)

START_TEST(data_and_holes_are_found_in_the_chunks_of_one_stripe)
{
    uint64_t at;

    rig_open(&rig);
    ck_assert_int_eq(SEEK(1, 0, 9 * CB, false), -1); /* nothing at all */
    ck_assert_int_eq(SEEK(1, 70, 9 * CB, true), 70);
    for (uint64_t c = 0; c < 8; c += 2)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, CB, false), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 10, 0, 20000, data, 100, false), 0);
    ck_assert_int_eq(SEEK(1, 0, 20 * CB, false), 0); /* not committed, and told all the same */
    ck_assert_int_eq(SEEK(1, 5, 20 * CB, false), 5);
    ck_assert_int_eq(SEEK(1, 5, 20 * CB, true), CB);
    ck_assert_int_eq(SEEK(1, CB + 7, 20 * CB, false), 2 * CB);
    ck_assert_int_eq(SEEK(1, CB + 7, 20 * CB, true), CB + 7);
    ck_assert_int_eq(SEEK(2, 0, 20 * CB, true), 8 * CB);
    ck_assert_int_eq(SEEK(2, 0, 8 * CB, true), -1);
    ck_assert_int_eq(SEEK(2, 7 * CB, 20 * CB, false), -1); /* odd chunks have none */
    ck_assert_int_eq(SEEK(4, 2 * CB + 9, 20 * CB, true), 10 * CB);
    ck_assert_int_eq(SEEK(1, 8 * CB, 20 * CB, false), 10 * CB + 16384);
    ck_assert_int_eq(SEEK(1, 10 * CB + 16384, 20 * CB, true), 10 * CB + 20480);
    ck_assert_int_eq(SEEK(1, 11 * CB, 20 * CB, false), -1);
    ck_assert_int_eq(rig_punch(&rig, 5, 0, CB, 4096, 4 * CB + 8192), 0);
    ck_assert_int_eq(SEEK(2, 0, 20 * CB, true), 4096);
    ck_assert_int_eq(SEEK(2, 4096, 20 * CB, false), 4 * CB + 8192);
    ck_assert_int_eq(SEEK(1, 3 * CB, 4 * CB + 8192, false), -1);
    rig_reopen(&rig);
    ck_assert_int_eq(SEEK(2, 4096, 20 * CB, false), 4 * CB + 8192);
    ck_assert_int_eq(rig_seek(&rig, 5, CB, 0, 0, CB, true, &at), -EINVAL);
    ck_assert_int_eq(rig_seek(&rig, 5, CB, 1, CB, CB, true, &at), 0);
}
END_TEST

/* More chunks than one answer or one commit of a punch looks at. */
START_TEST(a_seek_and_a_punch_over_thousands_of_chunks_go_on_where_they_stopped)
{
    uint64_t at = 0, next, asked = 0;
    int rc;

    rig_open(&rig);
    for (uint64_t c = 0; c < 5000; c++) {
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, 10, false), 0);
        if (c % 500 == 0) /* a chunk takes a slot: not all of them fit at once */
            ck_assert_int_eq(rig_punch(&rig, 5, 0, CB, 0, c * CB), 0);
    }
    ck_assert_int_eq(rig_punch(&rig, 5, 0, CB, 0, 4999ull * CB), 0);
    do {
        rc = rig_seek(&rig, 5, CB, 1, at, 1ull << 40, false, &next);
        ck_assert_uint_gt(next, at);
        at = next;
        asked++;
    } while (!rc);
    ck_assert_int_eq(rc, 1);
    ck_assert_uint_eq(at, 4999ull * CB);
    ck_assert_uint_gt(asked, 5);
    ck_assert_uint_eq(target_stat().used_bytes, 64 * KIB);
}
END_TEST

SUITE_MAIN("chunk-holes", target_setup, target_teardown,
           a_punched_chunk_gives_its_slot_back_and_reads_as_zeros,
           data_and_holes_are_found_in_the_chunks_of_one_stripe,
           a_seek_and_a_punch_over_thousands_of_chunks_go_on_where_they_stopped)
