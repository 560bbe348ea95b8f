/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are made before the server has them, and what becomes of them when the server, the
 * session, the connection or memory goes, or when they are refused after all. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

#define LEN 3000u

static uint8_t bytes[LEN];

static void begin_with(bool numbers)
{
    struct core_options o;

    core_options_default(&o);
    o.create_ahead = true;
    fake_mds_offers_numbers = numbers;
    rm_setup();
    bed_unmount(&rm.bed, rm.c, false, 0);
    rm.c = bed_mount(&rm.bed, &o);
    bed_pattern(bytes, LEN, 0, 1);
}

static void setup(void)
{
    begin_with(true);
}

/* Makes it; was that over before anything could have been sent? */
static struct core_file *make(const char *name, bool *ret_at_once)
{
    struct bed_op op;

    bed_op_init(&op);
    op.q.ahead = true;
    core_create_file(rm.c, &op.q, RM_DIR, name, (uint32_t)strlen(name), 0644,
                     O_RDWR | O_CREAT | O_EXCL, NULL);
    *ret_at_once = op.done;
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    return op.q.out.opened.file;
}

static struct core_file *make_ahead(const char *name)
{
    bool at_once;
    struct core_file *f = make(name, &at_once);

    ck_assert(at_once);
    return f;
}

static void put(struct core_file *f)
{
    ck_assert_int_eq(bed_write(&rm.bed, rm.c, f, 0, bytes, LEN), 0);
}

static const char *made_name(unsigned k)
{
    static char name[16];

    snprintf(name, sizeof name, "made%u", k);
    return name;
}

static struct fake_inode *stored(const char *name)
{
    return fake_find(&rm.bed.cluster, RM_DIR, &(struct msg_bytes){name, (uint32_t)strlen(name)});
}

static void expect_whole(const char *name)
{
    const struct fake_inode *i = stored(name);

    ck_assert_ptr_nonnull(i);
    ck_assert_uint_eq(i->attr.size, LEN);
    ck_assert_mem_eq(i->data, bytes, LEN);
}

/* Two files are made as ever, the directory is listed: from now on the client knows. */
static void begin(void)
{
    bool at_once;

    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    for (unsigned k = 0; k < 2; k++) {
        core_release(rm.c, make(made_name(k), &at_once));
        ck_assert(!at_once);
    }
    rm_let_pass();
    ck_assert_uint_eq(rm_list(RM_DIR), RM_FILES + 2);
    ck_assert_uint_gt(rm.bed.cluster.wishes, 0);
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
}

/* Written and closed. */
static void make_whole(unsigned from, unsigned to)
{
    for (unsigned k = from; k < to; k++) {
        struct core_file *f = make_ahead(made_name(k));

        put(f);
        ck_assert_int_eq(bed_flush(&rm.bed, rm.c, f), 0);
        core_release(rm.c, f);
    }
}

START_TEST(a_small_file_goes_to_the_server_in_one_piece)
{
    unsigned opens;

    begin();
    opens = rm.bed.cluster.calls[RPC_OP_OPEN];
    rm.bed.cluster.hold_removals = true;
    make_whole(2, 12);
    rm_let_pass();
    ck_assert_ptr_null(stored(made_name(2)));
    ck_assert_uint_eq(rm_stats().creations_under_way, 10);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        expect_whole(made_name(k));
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], opens);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_WRITE_INLINE], 0);
}
END_TEST

START_TEST(a_file_that_stays_open_is_opened_behind_its_creation)
{
    uint8_t back[LEN];
    struct core_file *f;

    begin();
    rm.bed.cluster.hold_removals = true;
    f = make_ahead("open");
    rm_let_pass(); /* it leaves empty */
    put(f);
    ck_assert_int_eq(bed_read(&rm.bed, rm.c, f, 0, back, LEN), LEN);
    ck_assert_mem_eq(back, bytes, LEN);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    ck_assert_uint_eq(rm.bed.cluster.calls[RPC_OP_OPEN], 1);
    expect_whole("open");
    core_release(rm.c, f);
}
END_TEST

START_TEST(a_creation_that_is_refused_fails_file_and_directory)
{
    struct core_file *f;

    begin();
    rm.bed.cluster.fail_creations = -ENOSPC;
    f = make_ahead("refused");
    core_release(rm.c, make_ahead("too"));
    put(f);
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

    begin();
    rm.bed.cluster.hold_removals = true;
    f = make_ahead("open");
    put(f);
    make_whole(2, 7);
    rm_let_pass();
    fake_mds_forget_sessions(&rm.bed.cluster);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), -EIO);
    core_release(rm.c, f);
    ck_assert_int_eq(rm_fsync(), -EIO);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm_stats().creations_under_way, 0);
    ck_assert_uint_eq(rm_stats().sessions_lost, 1);
    ck_assert_ptr_null(stored("open"));
    ck_assert_int_eq(rm_lookup("open"), -ENOENT);
    for (unsigned k = 2; k < 7; k++)
        ck_assert_int_eq(rm_lookup(made_name(k)), -ENOENT);
}
END_TEST

START_TEST(creations_survive_a_broken_connection)
{
    begin();
    make_whole(2, 12);
    fake_mds_break_links(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        expect_whole(made_name(k));
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(a_restarted_server_hears_when_the_creations_are_over)
{
    struct core_file *f;

    begin();
    rm.bed.cluster.hold_removals = true;
    f = make_ahead("open"); /* no part of RECLAIM */
    make_whole(2, 7);
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
        expect_whole(made_name(k));
    core_release(rm.c, f);
}
END_TEST

START_TEST(what_the_server_leaves_out_of_a_batch_is_made_by_itself)
{
    begin();
    rm.bed.cluster.hold_removals = true;
    make_whole(2, 12);
    rm.bed.cluster.retry_members = 5;
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(rm_fsync(), 0);
    for (unsigned k = 2; k < 12; k++)
        expect_whole(made_name(k));
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(an_invalidate_waits_for_the_open_that_follows)
{
    struct core_file *f;
    bool answered;

    begin();
    rm.bed.cluster.hold_removals = rm.bed.cluster.hold_opens = true;
    f = make_ahead("open");
    make_whole(2, 3);
    rm_let_pass();
    fake_invalidate(&rm.bed.cluster, RM_DIR, "", &answered);
    rm_let_pass();
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    rm.bed.cluster.hold_opens = true;
    rm_let_pass();
    ck_assert_ptr_nonnull(stored("open"));
    ck_assert(!answered);
    fake_release_removals(&rm.bed.cluster);
    fake_run_until(&rm.bed.cluster, &answered);
    ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
    core_release(rm.c, f);
    core_release(rm.c, make("later", &answered));
    ck_assert(!answered); /* it is not known any more that nobody else is there */
}
END_TEST

START_TEST(without_memory_the_open_follows_later)
{
    begin();
    for (unsigned n = 1; n < 12; n++) {
        struct core_file *f;
        char spec[64], name[16];

        snprintf(name, sizeof name, "open%u", n);
        snprintf(spec, sizeof spec, "client.memory=error@%u", n);
        rm.bed.cluster.hold_removals = true;
        f = make_ahead(name);
        rm_let_pass();
        put(f);
        ck_assert_int_eq(fault_arm(spec), 0);
        fake_release_removals(&rm.bed.cluster);
        bed_spin(&rm.bed, 3 * NS_PER_S);
        fault_disarm_all();
        ck_assert_int_eq(bed_fsync(&rm.bed, rm.c, f), 0);
        expect_whole(name);
        core_release(rm.c, f);
        ck_assert_int_eq(rm_fsync(), 0);
    }
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

START_TEST(an_older_server_is_waited_for)
{
    bool at_once;

    rm_teardown();
    begin_with(false);
    begin();
    for (unsigned k = 2; k < 6; k++) {
        core_release(rm.c, make(made_name(k), &at_once));
        ck_assert(!at_once);
    }
    ck_assert_uint_eq(rm_stats().created_ahead, 0);
}
END_TEST

/* It may say that who has made the file does not read or write it, and how is not known here. */
START_TEST(where_files_inherit_an_access_list_they_are_waited_for)
{
    bool at_once;

    fake_inode(&rm.bed.cluster, "dir")->attr.flags |= MSG_ATTR_DEFAULT_ACL;
    begin();
    core_release(rm.c, make(made_name(2), &at_once));
    ck_assert(!at_once);
    ck_assert_uint_eq(rm_stats().created_ahead, 0);
}
END_TEST

SUITE_MAIN("client-creating", setup, rm_teardown, a_small_file_goes_to_the_server_in_one_piece,
           a_file_that_stays_open_is_opened_behind_its_creation,
           a_creation_that_is_refused_fails_file_and_directory,
           creations_of_a_lost_session_are_not_carried_into_the_next,
           creations_survive_a_broken_connection,
           a_restarted_server_hears_when_the_creations_are_over,
           what_the_server_leaves_out_of_a_batch_is_made_by_itself,
           an_invalidate_waits_for_the_open_that_follows, without_memory_the_open_follows_later,
           an_older_server_is_waited_for, where_files_inherit_an_access_list_they_are_waited_for)
