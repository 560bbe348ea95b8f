/* SPDX-License-Identifier: Apache-2.0 */
/* Contents that go to the kernel with an OPEN, and OPENs that do not get theirs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/mem.h"
#include "tests/support/suite.h"
#include "tests/unit/fuse/fake.h"

static struct fs fs;

/* An OPEN of a file of so many bytes, opened by the core; its contents are asked for. */
static struct op *begin(uint32_t bytes)
{
    struct channel_req *q;

    fake_reset(&fs);
    q = fake_request(&fs, CHANNEL_OPEN, 7);
    q->open.flags = O_RDONLY;
    fs_channel_ops.op[CHANNEL_OPEN](q);
    fake.waiting->out.opened.lease = MSG_LEASE_READ;
    fake.waiting->out.opened.whole = bytes;
    fake_complete(0);
    return (struct op *)(void *)q->priv;
}

static void read_is_over(uint32_t bytes)
{
    fake.waiting->out.read.bytes = bytes;
    fake_complete(0);
}

START_TEST(an_open_is_answered_when_the_kernel_has_been_given_the_contents)
{
    begin(5000);
    ck_assert_str_eq(fake.calls, "open 7 0;read 0 5000;");
    ck_assert_uint_eq(fake.replies, 0);
    fake.may_give = true;
    read_is_over(5000);
    ck_assert_uint_eq(fake.stored, 1);
    ck_assert_uint_eq(fake.read_done, 1);
    ck_assert_uint_eq(fake.replies, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_KEEP_CACHE | CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(nothing_is_given_of_a_file_that_others_have_open_or_that_has_changed)
{
    begin(5000);
    read_is_over(5000);
    ck_assert_uint_eq(fake.stored, 0);
    ck_assert_uint_eq(fake.read_done, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));

    begin(5000);
    fake.may_give = true;
    read_is_over(4999);
    ck_assert_uint_eq(fake.stored, 0);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(an_open_succeeds_when_the_kernel_or_the_servers_refuse)
{
    begin(5000);
    fake.may_give = true;
    fake.store_status = -ENOENT;
    read_is_over(5000);
    ck_assert_uint_eq(fake.read_done, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));

    begin(5000);
    fake.may_give = true;
    fake_complete(-EIO);
    ck_assert_uint_eq(fake.stored, 0);
    ck_assert_uint_eq(fake.read_done, 0);
    ck_assert_uint_eq(fake.replies, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(a_kernel_that_cannot_be_given_contents_gets_its_answer_at_once)
{
    struct channel_req *q;

    fake_reset(&fs);
    fake.cannot_store = true;
    q = fake_request(&fs, CHANNEL_OPEN, 7);
    q->open.flags = O_RDONLY;
    fs_channel_ops.op[CHANNEL_OPEN](q);
    fake.waiting->out.opened.lease = MSG_LEASE_READ;
    fake.waiting->out.opened.whole = 5000;
    fake_complete(0);
    ck_assert_str_eq(fake.calls, "open 7 0;");
    ck_assert_uint_eq(fake.replies, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(contents_that_do_not_come_keep_no_open)
{
    struct op *o = begin(5000);

    ck_assert_ptr_nonnull(fake.timer);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.given_up, 0); /* not yet */
    o->give_until_ns = 0;
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.given_up, 1);
    fake_complete(-EINTR);
    ck_assert_uint_eq(fake.replies, 1);
    ck_assert_uint_eq(fake.reply_flags, CHANNEL_OPEN_NOFLUSH);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

SUITE_MAIN("fuse-give", NULL, NULL, an_open_is_answered_when_the_kernel_has_been_given_the_contents,
           nothing_is_given_of_a_file_that_others_have_open_or_that_has_changed,
           an_open_succeeds_when_the_kernel_or_the_servers_refuse,
           a_kernel_that_cannot_be_given_contents_gets_its_answer_at_once,
           contents_that_do_not_come_keep_no_open)
