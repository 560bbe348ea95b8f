// SPDX-License-Identifier: Apache-2.0
/* What the kernel is told of changes by others, between a core and a channel that only remember. */
#include <errno.h>

#include "tests/support/suite.h"
#include "tests/unit/fuse/fake.h"

static struct fs fs;

static void setup(void)
{
    fake_reset(&fs);
}

/* Of whatever: also of notifications that nobody waits for. */
START_TEST(what_finds_the_queue_of_notifications_full_is_asked_again)
{
    struct core_events events;
    struct core_inval one = {.ino = 9}, two = {.ino = 10};

    fs_events(&fs, &events);
    fs.channel = (struct channel *)(void *)&fake;
    fake.notify_status = -EAGAIN;
    events.inval_inode(events.arg, &one);
    ck_assert_str_eq(fake.calls, "");
    ck_assert_ptr_nonnull(fake.timer);
    fake.notify_status = 0;
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.notified, 2);
    fake.notify_done(&fs, fake.notify_arg, 0);
    ck_assert_str_eq(fake.calls, "inval_done 9;");
    fake.notify_status = -EAGAIN;
    events.inval_inode(events.arg, &two);
    fs_channel_ops.gone(&fs); /* nothing is cached any more */
    ck_assert_str_eq(fake.calls, "inval_done 10;");
}
END_TEST

/* The answer may be there, and not taken up: it would make the name good again. */
START_TEST(a_name_that_was_just_answered_is_outdated_once_more)
{
    struct core_events events;

    fs_events(&fs, &events);
    fs.channel = (struct channel *)(void *)&fake;
    op_lookup(fake_named(&fs, CHANNEL_LOOKUP, "a"));
    fake.waiting->entry.ino = fake.waiting->entry.attr.ino = 9;
    fake.waiting->entry.entry_valid_ns = 5;
    fake_complete(0);
    ck_assert(events.inval_entry(events.arg, 100, "b", 1, NULL));
    ck_assert_ptr_null(fake.timer);
    ck_assert(events.inval_entry(events.arg, 100, "a", 1, NULL));
    ck_assert_ptr_nonnull(fake.timer);
    ck_assert_uint_eq(fake.notified, 2);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.notified, 2); /* not yet */
    fake_pass(NS_PER_S);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.notified, 3);
    ck_assert(list_empty(&fs.late));
    ck_assert(events.inval_entry(events.arg, 100, "a", 1, NULL));
    ck_assert(list_empty(&fs.late)); /* it was taken up long ago */
    fs_late_told(&fs, 100, "a");
    ck_assert(events.inval_entry(events.arg, 100, "a", 1, NULL));
    fake.notify_status = -EAGAIN;
    fake_pass(NS_PER_S);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.names_expired, 1);
    ck_assert(list_empty(&fs.late));
    fake.notify_status = 0;
    fs_late_told(&fs, 100, "a");
    ck_assert(events.inval_entry(events.arg, 100, "a", 1, NULL));
    fs_channel_ops.gone(&fs);
    ck_assert(list_empty(&fs.late));
}
END_TEST

SUITE_MAIN("fuse-told", setup, NULL, what_finds_the_queue_of_notifications_full_is_asked_again,
           a_name_that_was_just_answered_is_outdated_once_more)
