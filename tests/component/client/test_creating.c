/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are made before the server has them, and what becomes of them when the server, the
 * session, the connection or memory goes, or when they are refused after all. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/net.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

START_TEST(a_small_file_goes_to_the_server_in_one_piece)
{
    unsigned opens;

    cr_begin();
    opens = rm.bed.cluster.calls[RPC_OP_OPEN];
    rm.bed.cluster.hold_removals = true;
    cr_whole(2, 12);
    rm_let_pass();
    ck_assert_ptr_null(cr_stored(cr_name(2)));
    ck_assert_uint_eq(rm_stats().creations_under_way, 10);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        cr_expect_whole(cr_name(k));
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], opens);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_WRITE_INLINE], 0);
}
END_TEST

START_TEST(a_file_that_stays_open_is_opened_behind_its_creation)
{
    uint8_t back[CR_LEN];
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    f = cr_make_ahead("open");
    rm_let_pass(); /* it leaves empty */
    cr_put(f);
    ck_assert_int_eq(bed_read(&rm.bed, rm.c, f, 0, back, CR_LEN), CR_LEN);
    ck_assert_mem_eq(back, cr_bytes, CR_LEN);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], 1);
    cr_expect_whole("open");
    core_release(rm.c, f);
}
END_TEST

/* It would have to be committed in chunks before the server may forget it. */
START_TEST(of_a_file_that_grows_at_once_nothing_goes_along)
{
    static uint8_t bytes[48 * 1024], back[sizeof bytes];
    uint64_t stored = 0;

    cr_begin();
    bed_pattern(bytes, sizeof bytes, 0, 3);
    for (unsigned k = 2; k < 8; k++) { /* the first on a target asks for room */
        struct core_file *f = cr_make_ahead(cr_name(k));

        cr_put(f);
        ck_assert_int_eq(bed_write(&rm.bed, rm.c, f, 0, bytes, sizeof bytes), 0);
        stored = cr_stored(cr_name(k))->attr.size;
        ck_assert_int_eq(bed_flush(&rm.bed, rm.c, f), 0);
        ck_assert_uint_eq(cr_stored(cr_name(k))->attr.size, sizeof bytes);
        ck_assert_int_eq(bed_read(&rm.bed, rm.c, f, 0, back, sizeof back), (int)sizeof back);
        ck_assert_mem_eq(back, bytes, sizeof bytes);
        core_release(rm.c, f);
    }
    ck_assert_uint_eq(stored, 0);
}
END_TEST

/* Whoever believes in a lease that nobody has given is never asked to give it back. */
START_TEST(an_open_that_brings_no_lease_ends_what_was_believed)
{
    uint8_t back[CR_LEN];
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_removals = rm.bed.cluster.no_leases = true;
    f = cr_make_ahead("open");
    rm_let_pass(); /* it leaves empty */
    cr_put(f);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    rm_let_pass();
    cr_expect_whole("open");
    cr_stored("open")->data[0] ^= 1; /* by somebody else */
    cr_stored("open")->attr.change += 100;
    ck_assert_int_eq(bed_read(&rm.bed, rm.c, f, 0, back, CR_LEN), CR_LEN);
    ck_assert_uint_eq(back[0], cr_bytes[0] ^ 1);
    core_release(rm.c, f);
}
END_TEST

START_TEST(a_creation_that_is_refused_fails_file_and_directory)
{
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.fail_creations = -ENOSPC;
    f = cr_make_ahead("refused");
    core_release(rm.c, cr_make_ahead("too"));
    cr_put(f);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), -ENOSPC);
    ck_assert_int_eq(rm_fsync(), 0); /* once */
    core_release(rm.c, f);
    ck_assert_int_eq(rm_lookup("refused"), -ENOENT);
    ck_assert_uint_eq(rm_stats().creations_refused, 2);
    rm.bed.cluster.fail_creations = 0;
}
END_TEST

START_TEST(creations_of_a_lost_session_are_not_carried_into_the_next)
{
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    f = cr_make_ahead("open");
    cr_put(f);
    cr_whole(2, 7);
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -EIO);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), -EIO);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm_stats().sessions_lost, 1);
    ck_assert_ptr_null(cr_stored("open"));
    ck_assert_int_eq(rm_lookup("open"), -ENOENT);
    for (unsigned k = 2; k < 7; k++)
        ck_assert_int_eq(rm_lookup(cr_name(k)), -ENOENT);
}
END_TEST

/* The answer to it comes when the next session is there. */
START_TEST(an_open_behind_a_creation_is_made_again_in_the_next_session)
{
    struct bed_late late;
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_opens = true;
    f = cr_make_ahead("open");
    rm_let_pass();
    cr_put(f);
    bed_answer_late(&late, 10 * NS_PER_S);
    late.n = 1;
    fake_release_removals(&rm.bed.cluster);
    fake_mds_forget_sessions(&rm.bed.cluster);
    bed_spin(&rm.bed, 12 * NS_PER_S);
    net_loop_set_policy(NULL, NULL);
    ck_assert_uint_eq(rm_stats().sessions_lost, 1);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -EIO);
    cr_put(f);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    cr_expect_whole("open");
    core_release(rm.c, f);
}
END_TEST

START_TEST(creations_survive_a_broken_connection)
{
    cr_begin();
    cr_whole(2, 12);
    fake_mds_break_links(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        cr_expect_whole(cr_name(k));
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(a_restarted_server_hears_when_the_creations_are_over)
{
    struct core_file *f;

    cr_begin();
    rm.bed.cluster.hold_removals = true;
    f = cr_make_ahead("open"); /* no part of RECLAIM */
    cr_whole(2, 7);
    rm_let_pass();
    fake_mds_restart(&rm.bed.cluster);
    bed_spin(&rm.bed, 5 * NS_PER_S);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    ck_assert_uint_eq(rm_stats().creations_under_way, 6);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    ck_assert_int_eq(rm_fsync(), 0);
    rm_let_pass();
    ck_assert_uint_eq(rm.bed.cluster.reclaims, 2);
    ck_assert_uint_eq(rm.bed.cluster.unsettled, 1);
    for (unsigned k = 2; k < 7; k++)
        cr_expect_whole(cr_name(k));
    core_release(rm.c, f);
}
END_TEST

START_TEST(what_the_server_leaves_out_of_a_batch_is_made_by_itself)
{
    cr_begin();
    rm.bed.cluster.hold_removals = true;
    cr_whole(2, 12);
    rm.bed.cluster.retry_members = 5;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        cr_expect_whole(cr_name(k));
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(an_invalidate_waits_for_the_open_that_follows)
{
    struct core_file *f;
    bool answered;

    cr_begin();
    rm.bed.cluster.hold_removals = rm.bed.cluster.hold_opens = true;
    f = cr_make_ahead("open");
    cr_whole(2, 3);
    rm_let_pass();
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    rm_let_pass();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    rm.bed.cluster.hold_opens = true;
    rm_let_pass();
    ck_assert_ptr_nonnull(cr_stored("open"));
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    core_release(rm.c, f);
    core_release(rm.c, cr_make("later", &answered));
    ck_assert(!answered); /* it is not known any more that nobody else is there */
}
END_TEST

START_TEST(without_memory_the_open_follows_later)
{
    cr_begin();
    for (unsigned n = 1; n < 12; n++) {
        struct core_file *f;
        char spec[64], name[16];

        snprintf(name, sizeof name, "open%u", n);
        snprintf(spec, sizeof spec, "client.memory=error@%u", n);
        rm.bed.cluster.hold_removals = true;
        f = cr_make_ahead(name);
        rm_let_pass();
        cr_put(f);
        ck_assert_int_eq(fault_arm(spec), 0);
        fake_release_removals(&rm.bed.cluster);
        bed_spin(&rm.bed, 3 * NS_PER_S);
        fault_disarm_all();
        ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
        cr_expect_whole(name);
        core_release(rm.c, f);
        ck_assert_int_eq(rm_fsync(), 0);
    }
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(an_older_server_is_waited_for)
{
    static const uint64_t missing[] = {RPC_FEATURE_NUMBERS, RPC_FEATURE_AHEAD};
    bool at_once;

    for (unsigned m = 0; m < ARRAY_LEN(missing); m++) {
        rm_teardown();
        cr_setup_with(missing[m], NULL);
        cr_begin();
        for (unsigned k = 2; k < 6; k++) {
            core_release(rm.c, cr_make(cr_name(k), &at_once));
            ck_assert(!at_once);
        }
        ck_assert_uint_eq(rm_stats().created_ahead, 0);
    }
}
END_TEST

/* It may say that who has made the file does not read or write it, and how is not known here. */
START_TEST(where_files_inherit_an_access_list_they_are_waited_for)
{
    bool at_once;

    fake_inode(&rm.bed.cluster, "dir")->attr.flags |= MSG_ATTR_DEFAULT_ACL;
    cr_begin();
    core_release(rm.c, cr_make(cr_name(2), &at_once));
    ck_assert(!at_once);
    ck_assert_uint_eq(rm_stats().created_ahead, 0);
}
END_TEST

SUITE_MAIN("client-creating", cr_setup, rm_teardown, a_small_file_goes_to_the_server_in_one_piece,
           a_file_that_stays_open_is_opened_behind_its_creation,
           of_a_file_that_grows_at_once_nothing_goes_along,
           an_open_that_brings_no_lease_ends_what_was_believed,
           a_creation_that_is_refused_fails_file_and_directory,
           creations_of_a_lost_session_are_not_carried_into_the_next,
           an_open_behind_a_creation_is_made_again_in_the_next_session,
           creations_survive_a_broken_connection,
           a_restarted_server_hears_when_the_creations_are_over,
           what_the_server_leaves_out_of_a_batch_is_made_by_itself,
           an_invalidate_waits_for_the_open_that_follows, without_memory_the_open_follows_later,
           an_older_server_is_waited_for, where_files_inherit_an_access_list_they_are_waited_for)
