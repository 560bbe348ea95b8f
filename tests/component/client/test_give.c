/* SPDX-License-Identifier: Apache-2.0 */
/* Contents that the kernel is to be given before somebody asks: when it may not be, and that nobody
 * waits for them longer than he wants to. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>

#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define LEN 100000u

static struct core *other;
static struct core_file *f;
static struct core_inval *asked;

static void inval(void *arg, struct core_inval *v)
{
    (void)arg;
    asked = v;
}

/* A file that nobody here has anything of. */
static void setup(void)
{
    struct core_options o;

    core_options_default(&o);
    o.events.inval_inode = inval;
    asked = NULL;
    file_bed_setup(3, LEN);
    core_release(c, stored_file("f", LEN));
    file_bed_remount(&o);
    other = bed_mount(&bed, NULL);
    f = bed_open(&bed, c, "f", O_RDONLY, NULL);
}

static void teardown(void)
{
    core_release(c, f);
    bed_unmount(&bed, other, false, 0);
    file_bed_teardown();
}

START_TEST(what_was_read_whole_may_be_given_until_another_file_is_opened)
{
    struct core_file *second;

    ck_assert(!core_give_whole(f));
    expect_read(f, 0, data, LEN - 1);
    ck_assert(!core_give_whole(f));
    expect_read(f, LEN - 1, data + LEN - 1, 1);
    ck_assert(core_give_whole(f));
    second = bed_open(&bed, c, "f", O_RDONLY, NULL);
    ck_assert(!core_give_whole(f));
    core_release(c, second);
    bed_spin(&bed, 100 * NS_PER_MS);
    ck_assert(core_give_whole(f));
}
END_TEST

/* It would come behind the kernel's dropping what it has, and stay. */
START_TEST(nothing_is_given_under_a_lease_that_is_on_its_way_back)
{
    struct bed_op op;

    expect_read(f, 0, data, LEN);
    ck_assert(core_give_whole(f));
    bed_op_init(&op);
    core_open(other, &op.q, core_file_ino(f), O_RDWR);
    bed_spin(&bed, 50 * NS_PER_MS);
    ck_assert_ptr_nonnull(asked);
    ck_assert(!op.done);
    ck_assert(!core_give_whole(f));
    core_inval_done(c, asked);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert(!core_give_whole(f));
    core_release(other, op.q.out.opened.file);
}
END_TEST

START_TEST(who_gives_up_waits_for_no_server_that_is_up_and_silent)
{
    struct bed_op op;

    fake_targets_hold(&bed.cluster);
    read_later(&op, f, 0, LEN);
    bed_spin(&bed, 20 * NS_PER_MS);
    core_cancel(&op.q);
    ck_assert(!op.done);
    core_give_up(&op.q);
    ck_assert(op.done);
    ck_assert_int_eq(op.status, -EINTR);
    fake_targets_release(&bed.cluster);
    expect_read(f, 0, data, LEN);
}
END_TEST

SUITE_MAIN("client-give", setup, teardown,
           what_was_read_whole_may_be_given_until_another_file_is_opened,
           nothing_is_given_under_a_lease_that_is_on_its_way_back,
           who_gives_up_waits_for_no_server_that_is_up_and_silent)
