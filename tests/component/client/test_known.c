/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that is listed with attributes again: what the kernel need not be told once more. */
#include <check.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/removing_bed.h"
#include "tests/support/suite.h"

#define LISTED (RM_FILES - 2u) /* by rm_begin(), which removes two */

/* A listing; how many of its entries the kernel knows. */
static unsigned known(void)
{
    struct core_dirent e;
    struct bed_op op;
    unsigned n = 0;

    bed_op_init(&op);
    core_readdir(rm.c, &op.q, RM_DIR, 0, 65536, true);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    while (core_dirent_next(&op.q, &e) > 0) {
        ck_assert(e.has_entry);
        n += e.known;
    }
    core_readdir_done(&op.q);
    return n;
}

static void invalidate(uint64_t ino, const char *name)
{
    bool answered;

    fake_invalidate(&rm.bed.cluster, ino, name, &answered);
    fake_run_until(&rm.bed.cluster, &answered);
}

START_TEST(a_second_listing_tells_nothing_that_the_first_has_told)
{
    rm_begin();
    ck_assert_uint_eq(known(), LISTED);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(what_the_kernel_forgets_is_told_again)
{
    rm_begin();
    core_forget(rm.c, rm_file(3)->attr.ino);
    ck_assert_uint_eq(known(), LISTED - 1);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(what_somebody_else_changes_is_told_again)
{
    rm_begin();
    invalidate(rm_file(3)->attr.ino, "");
    ck_assert_uint_eq(known(), LISTED - 1);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(what_was_changed_here_is_told_again)
{
    struct msg_setattr_req set = {.ino = rm_file(3)->attr.ino, .set = MSG_SET_MODE, .mode = 0711};
    struct bed_op op;

    rm_begin();
    invalidate(rm_file(4)->attr.ino, "");
    bed_op_init(&op);
    core_setattr(rm.c, &op.q, &set, NULL); /* its answer tells the kernel */
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    rm_file(5)->attr.change++;
    rm_file(5)->attr.mode ^= 1;
    ck_assert_uint_eq(known(), LISTED - 2);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(a_file_of_two_names_is_always_told)
{
    rm_file(3)->attr.nlink = 2;
    rm_begin();
    ck_assert_uint_eq(known(), LISTED - 1);
    ck_assert_uint_eq(known(), LISTED - 1);
}
END_TEST

START_TEST(a_name_that_changes_is_told_again)
{
    rm_begin();
    invalidate(RM_DIR, rm_name(3));
    ck_assert_uint_eq(known(), LISTED - 1);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(after_a_lost_session_all_is_told_again)
{
    rm_begin();
    fake_mds_forget_sessions(&rm.bed.cluster);
    ck_assert_int_ne(rm_fsync(), 0); /* says so; the next is in a new one */
    ck_assert_uint_eq(known(), 0);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

START_TEST(what_the_kernel_soon_does_not_believe_any_more_is_told_again)
{
    rm_begin();
    bed_spin(&rm.bed, 60 * NS_PER_S);
    ck_assert_uint_eq(known(), 0);
    ck_assert_uint_eq(known(), LISTED);
}
END_TEST

/* A listing up to its second entry, which goes to the kernel when done() has been. */
static void second_after(void (*done)(const struct core_dirent *e), bool told)
{
    struct core_dirent e;
    struct bed_op op;

    bed_op_init(&op);
    core_readdir(rm.c, &op.q, RM_DIR, 0, 65536, true);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    for (unsigned k = 0; k < 2; k++)
        ck_assert_int_eq(core_dirent_next(&op.q, &e), 1);
    ck_assert(e.has_entry && e.entry.entry_valid_ns > 0);
    done(&e);
    core_dirent_again(&op.q, &e);
    ck_assert_int_eq(e.has_entry, told);
    if (told)
        ck_assert(e.entry.entry_valid_ns > 0 && e.entry.attr_valid_ns > 0);
    core_readdir_done(&op.q);
}

static void nothing(const struct core_dirent *e)
{
    (void)e;
}

static void change_name(const struct core_dirent *e)
{
    char name[16];

    memcpy(name, e->name, e->name_len);
    name[e->name_len] = 0;
    invalidate(RM_DIR, name);
}

static void change_file(const struct core_dirent *e)
{
    invalidate(e->ino, "");
}

static void pause_long(const struct core_dirent *e)
{
    (void)e;
    fake_mds_forget_sessions(&rm.bed.cluster);
    ck_assert_int_ne(rm_fsync(), 0);
}

START_TEST(what_goes_to_the_kernel_later_than_it_was_looked_at_is_told_as_it_is_then)
{
    rm_begin();
    invalidate(RM_DIR, rm_name(3)); /* the kernel knows nothing more */
    fake_mds_forget_sessions(&rm.bed.cluster);
    ck_assert_int_ne(rm_fsync(), 0);
    second_after(nothing, true);
    fake_mds_forget_sessions(&rm.bed.cluster);
    ck_assert_int_ne(rm_fsync(), 0);
    second_after(change_name, false);
    second_after(change_file, false);
    second_after(pause_long, false);
}
END_TEST

SUITE_MAIN("client-known", rm_setup, rm_teardown,
           a_second_listing_tells_nothing_that_the_first_has_told,
           what_the_kernel_forgets_is_told_again, what_somebody_else_changes_is_told_again,
           what_was_changed_here_is_told_again, a_file_of_two_names_is_always_told,
           a_name_that_changes_is_told_again, after_a_lost_session_all_is_told_again,
           what_the_kernel_soon_does_not_believe_any_more_is_told_again,
           what_goes_to_the_kernel_later_than_it_was_looked_at_is_told_as_it_is_then)
