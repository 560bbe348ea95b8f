/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that is listed twice by who removes what is in it: when the second listing is the
 * page of the first. */
#include <check.h>
#include <string.h>
#include <sys/stat.h>

#include "common/net/net.h"
#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

#define LISTED (RM_FILES - 2u) /* by rm_begin(), which removes two */

static bool asks(unsigned expected)
{
    struct core_stats before = rm_stats(), after;

    ck_assert_uint_eq(rm_list(RM_DIR), expected);
    after = rm_stats();
    ck_assert_uint_eq(after.mds_calls - before.mds_calls + after.relists - before.relists, 1);
    return after.mds_calls != before.mds_calls;
}

START_TEST(the_second_listing_is_the_page_of_the_first)
{
    rm_begin();
    ck_assert(!asks(LISTED));
    ck_assert(!asks(LISTED));
    ck_assert(rm_at_once(2)); /* it tells all that is needed for that */
}
END_TEST

START_TEST(what_was_removed_since_is_not_listed)
{
    rm_begin();
    ck_assert(rm_at_once(2));
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(asks(LISTED - 1));
    ck_assert(!asks(LISTED - 1));
}
END_TEST

START_TEST(a_listing_after_an_invalidate_asks)
{
    bool answered;

    rm_begin();
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    rm_make(RM_DIR, "new", S_IFREG | 0644); /* by somebody else */
    ck_assert(asks(LISTED + 1));
    fake_invalidate(&rm.bed.cluster, rm_file(3)->attr.ino, "", &answered);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert(asks(LISTED + 1));
}
END_TEST

START_TEST(a_listing_after_a_change_of_our_own_asks)
{
    struct msg_setattr_req set = {.ino = RM_DIR, .set = MSG_SET_MODE, .mode = 0711};
    struct bed_op op;

    rm_begin();
    bed_op_init(&op);
    core_setattr(rm.c, &op.q, &set, NULL);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert(asks(LISTED));
    bed_op_init(&op);
    core_mkdir(rm.c, &op.q, RM_DIR, "sub", 3, 0755, NULL);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert(asks(LISTED + 1));
}
END_TEST

START_TEST(a_page_that_a_change_has_overtaken_is_not_given_again)
{
    struct bed_op op;
    struct bed_late late;

    rm_begin();
    bed_spin(&rm.bed, 300 * NS_PER_MS);
    bed_op_init(&op);
    bed_answer_late(&late, 100 * NS_PER_MS);
    core_readdir(rm.c, &op.q, RM_DIR, 0, 65536, true);
    bed_spin(&rm.bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert(rm_at_once(2));
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert(!op.done);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    core_readdir_done(&op.q);
    ck_assert(asks(LISTED - 1));
}
END_TEST

START_TEST(an_old_page_is_not_given_again)
{
    rm_begin();
    bed_spin(&rm.bed, 300 * NS_PER_MS);
    ck_assert(asks(LISTED));
}
END_TEST

START_TEST(another_caller_asks)
{
    struct core_dirent e;
    struct bed_op op;
    uint64_t calls;

    rm_begin();
    calls = rm_stats().mds_calls;
    bed_op_init(&op);
    op.q.cred.uid = 77;
    core_readdir(rm.c, &op.q, RM_DIR, 0, 65536, true);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    ck_assert_int_eq(core_dirent_next(&op.q, &e), 1);
    core_readdir_done(&op.q);
    ck_assert_uint_eq(rm_stats().mds_calls, calls + 1);
}
END_TEST

START_TEST(what_does_not_fit_is_asked_for_again)
{
    struct core_dirent e;
    struct bed_op op;
    unsigned n = 0;

    rm_begin();
    bed_op_init(&op);
    core_readdir(rm.c, &op.q, RM_DIR, 0, 1024, true);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    while (core_dirent_next(&op.q, &e) > 0)
        n++;
    ck_assert_uint_lt(n, LISTED);
    core_readdir_done(&op.q);
    ck_assert_uint_eq(rm_stats().relists, 0);
}
END_TEST

SUITE_MAIN("client-relist", rm_setup, rm_teardown, the_second_listing_is_the_page_of_the_first,
           what_was_removed_since_is_not_listed, a_listing_after_an_invalidate_asks,
           a_listing_after_a_change_of_our_own_asks,
           a_page_that_a_change_has_overtaken_is_not_given_again, an_old_page_is_not_given_again,
           another_caller_asks, what_does_not_fit_is_asked_for_again)
