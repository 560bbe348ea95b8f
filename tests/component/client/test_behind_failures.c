/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of removals that were answered ahead when the server, the session, the connection or
 * memory goes, or when they are refused after all. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

START_TEST(a_restarted_server_hears_when_the_removals_are_over)
{
    rm_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(rm_at_once(k));
    rm_let_pass();
    fake_mds_restart(&rm.bed.cluster);
    bed_spin(&rm.bed, 5 * NS_PER_S);
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 1);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    ck_assert_uint_eq(rm_stats().removals_under_way, 10);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    rm_let_pass();
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 2);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], 12);
    ck_assert(!rm_at_once(20));        /* it does not know any more who is alone */
    fake_mds_restart(&rm.bed.cluster); /* nothing is under way now */
    bed_spin(&rm.bed, 5 * NS_PER_S);
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 3);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
}
END_TEST

START_TEST(removals_survive_a_broken_connection)
{
    rm_begin();
    rm.bed.cluster.drop_replies = true;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(rm_at_once(k));
    fake_mds_break_links(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], 12);
    ck_assert_uint_eq(rm_stats().removals_refused, 0);
}
END_TEST

START_TEST(what_the_server_leaves_out_of_a_batch_goes_by_itself)
{
    rm_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < 20; k++)
        ck_assert(rm_at_once(k));
    rm.bed.cluster.retry_members = 5;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], 20);
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES - 20);
}
END_TEST

START_TEST(a_removal_that_is_refused_fails_the_next_fsync_of_the_directory)
{
    rm_begin();
    rm.bed.cluster.fail_removals = -ENOSPC;
    ck_assert(rm_at_once(2));
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), 0); /* once */
    ck_assert_int_eq(rm_lookup(rm_name(2)), 0);
    ck_assert_uint_eq(rm_stats().removals_refused, 1);
    rm.bed.cluster.fail_removals = 0;
    ck_assert(!rm_at_once(2));
}
END_TEST

START_TEST(a_removal_for_which_the_server_has_no_memory_is_tried_again)
{
    rm_begin();
    rm.bed.cluster.fail_removals = -ENOMEM;
    rm.bed.cluster.fail_removals_n = 7;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(rm_at_once(k));
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        ck_assert_ptr_null(rm_file(k));
    ck_assert_uint_eq(rm_stats().removals_refused, 0);
    rm.bed.cluster.fail_removals = -ENOMEM; /* never */
    ck_assert(rm_at_once(12));
    ck_assert_int_eq(rm_fsync(), -ENOMEM);
    ck_assert_uint_eq(rm_stats().removals_refused, 1);
    rm.bed.cluster.fail_removals = 0;
}
END_TEST

START_TEST(a_refusal_that_nobody_asked_for_fails_the_unmount)
{
    rm_begin();
    rm.bed.cluster.fail_removals = -ENOSPC;
    ck_assert(rm_at_once(2));
    bed_unmount(&rm.bed, rm.c, false, -EIO);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

START_TEST(removals_of_a_lost_session_are_not_carried_into_the_next)
{
    rm_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(rm_at_once(k));
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), -EIO);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm_stats().removals_under_way, 0);
    ck_assert_uint_eq(rm_stats().sessions_lost, 1);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], 2);
    for (unsigned k = 2; k < 12; k++)
        ck_assert_int_eq(rm_lookup(rm_name(k)), 0);
}
END_TEST

START_TEST(a_forced_unmount_waits_for_no_removal)
{
    rm_begin();
    rm.bed.cluster.hold_removals = true;
    for (unsigned k = 2; k < 12; k++)
        ck_assert(rm_at_once(k));
    bed_unmount(&rm.bed, rm.c, true, -EIO);
    fake_release_removals(&rm.bed.cluster);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

START_TEST(an_unmount_waits_for_the_removals)
{
    rm_begin();
    ck_assert(!core_holds_changes(rm.c));
    for (unsigned k = 2; k < RM_FILES; k++)
        ck_assert(rm_at_once(k));
    ck_assert(core_holds_changes(rm.c)); /* says who gives up */
    bed_unmount(&rm.bed, rm.c, false, 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], RM_FILES);
    rm.c = bed_mount(&rm.bed, NULL);
}
END_TEST

START_TEST(a_removal_without_memory_is_an_error_or_takes_place)
{
    unsigned failed = 0;

    rm_begin();
    for (unsigned k = 2; k < RM_FILES; k++) {
        char spec[64];
        struct bed_op op;

        snprintf(spec, sizeof spec, "mem.alloc=error@%u", 1 + k % 5);
        ck_assert_int_eq(fault_arm(spec), 0);
        rm_start(&op, rm_name(k));
        fault_disarm_all();
        (void)bed_wait(&rm.bed, &op);
        ck_assert(op.status == 0 || op.status == -ENOMEM);
        failed += op.status != 0;
        if (op.status)
            ck_assert_ptr_nonnull(rm_file(k));
    }
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm.bed.cluster.executed[RPC_OP_UNLINK], RM_FILES - failed);
}
END_TEST

/* Lists and removes while the n-th allocation fails; how many there were. */
static unsigned remove_without(const char *point, unsigned n, unsigned *n_failed)
{
    bool failed[RM_FILES] = {false};
    struct bed_op op;
    char spec[64];
    unsigned seen;

    rm_begin();
    snprintf(spec, sizeof spec, "%s=error@%u", point, n);
    ck_assert_int_eq(fault_arm(spec), 0);
    bed_op_init(&op);
    core_readdir(rm.c, &op.q, RM_DIR, 0, 65536, true);
    if (!bed_wait(&rm.bed, &op))
        core_readdir_done(&op.q);
    for (unsigned k = 2; k < 8; k++) {
        rm_start(&op, rm_name(k));
        failed[k] = bed_wait(&rm.bed, &op) != 0;
        ck_assert_int_eq(op.status, failed[k] ? -ENOMEM : 0);
        *n_failed += failed[k];
    }
    (void)rm_getattr(RM_DIR);
    seen = fault_count(point);
    fault_disarm_all();
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 8; k++)
        ck_assert_int_eq(rm_file(k) != NULL, failed[k]);
    return seen;
}

/* How many of the removals failed in all of them. */
static unsigned sweep(const char *point)
{
    unsigned n, seen = 1, failed = 0;

    for (n = 1; seen >= n && n < 1000; n++) {
        seen = remove_without(point, n, &failed);
        bed_unmount(&rm.bed, rm.c, false, 0);
        memset(&rm.bed.cluster.inodes[RM_DIR + 1], 0,
               (FAKE_INODES - RM_DIR - 1) * sizeof rm.bed.cluster.inodes[0]);
        for (unsigned k = 0; k < RM_FILES; k++)
            rm_make(RM_DIR, rm_name(k), S_IFREG | 0644);
        rm.c = bed_mount(&rm.bed, NULL);
    }
    ck_assert_uint_gt(n, 2);
    ck_assert_uint_lt(n, 1000);
    return failed;
}

START_TEST(each_allocation_may_fail_while_names_are_removed)
{
    (void)sweep("mem.alloc");
    ck_assert_uint_gt(sweep("client.memory"), 0);
}
END_TEST

SUITE_MAIN("client-behind-failures", rm_setup, rm_teardown,
           a_restarted_server_hears_when_the_removals_are_over,
           removals_survive_a_broken_connection,
           what_the_server_leaves_out_of_a_batch_goes_by_itself,
           a_removal_that_is_refused_fails_the_next_fsync_of_the_directory,
           a_removal_for_which_the_server_has_no_memory_is_tried_again,
           a_refusal_that_nobody_asked_for_fails_the_unmount,
           removals_of_a_lost_session_are_not_carried_into_the_next,
           a_forced_unmount_waits_for_no_removal, an_unmount_waits_for_the_removals,
           a_removal_without_memory_is_an_error_or_takes_place,
           each_allocation_may_fail_while_names_are_removed)
