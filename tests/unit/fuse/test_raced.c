// SPDX-License-Identifier: Apache-2.0
/* Calls by name that lose a race (client/fuse/raced.c), between a core and a channel that only
 * remember. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/mem.h"
#include "tests/support/suite.h"
#include "tests/unit/fuse/fake.h"

#define LOSER 7u

static struct fs fs;

static void setup(void)
{
    fake_reset(&fs);
}

static struct channel_req *by(struct channel_req *q, uint32_t pid)
{
    q->pid = pid;
    return q;
}

static void lose(uint32_t pid)
{
    struct channel_req *q = by(fake_request(&fs, CHANNEL_OPEN, 9), pid);

    q->open.flags = O_RDWR | O_TRUNC;
    op_open(q);
    fake_complete(-ENOENT);
    ck_assert_str_eq(fake.reply, "err -116");
    fake.calls[0] = '\0';
}

/* The look-up by who has lost has opened inode 12. */
static void find(bool keep_cache)
{
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "a"), LOSER));
    ck_assert_str_eq(fake.calls, "open_name 100 a 02;");
    fake.waiting->entry.ino = fake.waiting->entry.attr.ino = 12;
    fake.waiting->entry.entry_valid_ns = 5;
    fake.waiting->entry.attr_valid_ns = 7;
    fake.waiting->out.opened.keep_cache = keep_cache;
    fake_complete(0);
}

START_TEST(who_lost_an_open_has_its_next_look_up_hold_what_it_finds)
{
    lose(LOSER);
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "b"), LOSER + 1));
    ck_assert_str_eq(fake.calls, "lookup 100 b;");
    fake_complete(-ENOENT);
    fake.calls[0] = '\0';
    find(true);
    ck_assert_str_eq(fake.reply, "entry 12");
    ck_assert_uint_eq(fake.released, 0);
    op_open(by(fake_request(&fs, CHANNEL_OPEN, 12), LOSER));
    fake_complete(0);
    ck_assert_uint_eq(fake.released, 1);
    fake.calls[0] = '\0';
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "a"), LOSER));
    ck_assert_str_eq(fake.calls, "lookup 100 a;");
    fake_complete(-ENOENT);
    mem_free(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(pages_from_before_go_before_a_look_up_that_opens_is_answered)
{
    lose(LOSER);
    find(false);
    ck_assert_uint_eq(fake.replies, 1); /* of the open that lost */
    fake.notify_done(&fs, fake.notify_arg, 0);
    ck_assert_str_eq(fake.reply, "entry 12");
    ck_assert_uint_eq(fake.reply_valid_ns, 0); /* it may have been outdated while that went on */
    fs_raced_end(&fs);
    ck_assert_uint_eq(fake.released, 1);
}
END_TEST

START_TEST(pages_that_go_when_the_mount_has_ended_answer_nothing)
{
    unsigned replies;

    lose(LOSER);
    find(false);
    replies = fake.replies;
    fs_channel_ops.gone(&fs);
    fake.notify_done(&fs, fake.notify_arg, -ENODEV);
    ck_assert_uint_eq(fake.replies, replies);
}
END_TEST

START_TEST(pages_that_cannot_go_leave_a_look_up_as_always)
{
    lose(LOSER);
    fake.notify_status = -EAGAIN;
    find(false);
    ck_assert_uint_eq(fake.released, 1);
    ck_assert_str_eq(fake.calls, "open_name 100 a 02;lookup 100 a;");
    fake_complete(-EIO);
    ck_assert_str_eq(fake.reply, "err -5");
}
END_TEST

START_TEST(what_cannot_be_opened_is_looked_up)
{
    lose(LOSER);
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "d"), LOSER));
    fake_complete(-EISDIR);
    ck_assert_str_eq(fake.calls, "open_name 100 d 02;lookup 100 d;");
    fake.waiting->entry.ino = fake.waiting->entry.attr.ino = 5;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "entry 5");
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "none"), LOSER));
    fake_complete(-ENOENT);
    ck_assert_str_eq(fake.reply, "err -2");
    fs_raced_end(&fs);
    ck_assert_uint_eq(fake.released, 0);
}
END_TEST

START_TEST(who_lost_a_link_reads_what_its_look_up_found)
{
    lose(LOSER);
    fake.target = (struct msg_bytes){"there", 5};
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "s"), LOSER));
    fake_complete(-EEXIST);
    fake.waiting->entry.ino = fake.waiting->entry.attr.ino = 6;
    fake.waiting->entry.attr.mode = S_IFLNK | 0777;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "entry 6");
    fake.calls[0] = '\0';
    op_readlink(by(fake_request(&fs, CHANNEL_READLINK, 6), LOSER));
    ck_assert_str_eq(fake.reply, "link there");
    op_readlink(by(fake_request(&fs, CHANNEL_READLINK, 6), LOSER + 1));
    ck_assert_str_eq(fake.calls, "readlink 6;");
    fake_complete(-EIO);
    fs_raced_end(&fs);
}
END_TEST

START_TEST(what_is_held_for_nobody_is_let_go)
{
    lose(LOSER);
    find(true);
    fake.calls[0] = '\0';
    find(true); /* looked up once more: the former is not needed */
    ck_assert_uint_eq(fake.released, 1);
    for (unsigned i = 0; i < FS_RACED_MAX; i++) {
        if (fs.raced[i].until_ns)
            fs.raced[i].until_ns = 1;
    }
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.released, 2);
    ck_assert_uint_eq(fs.n_raced, 0);
}
END_TEST

START_TEST(losers_are_remembered_up_to_a_bound)
{
    lose(LOSER);
    find(true);
    for (uint32_t i = 0; i < FS_RACED_MAX; i++)
        lose(LOSER + 1 + i);
    ck_assert_uint_eq(fake.released, 1);
    ck_assert_uint_eq(fs.n_raced, FS_RACED_MAX);
    op_lookup(by(fake_named(&fs, CHANNEL_LOOKUP, "a"), LOSER));
    ck_assert_str_eq(fake.calls, "lookup 100 a;");
    fake_complete(-ENOENT);
    fs_raced_end(&fs);
    lose(LOSER);
    ck_assert_uint_eq(fs.n_raced, 0); /* nobody opens any more */
}
END_TEST

SUITE_MAIN("fuse-raced", setup, NULL, who_lost_an_open_has_its_next_look_up_hold_what_it_finds,
           pages_from_before_go_before_a_look_up_that_opens_is_answered,
           pages_that_go_when_the_mount_has_ended_answer_nothing,
           pages_that_cannot_go_leave_a_look_up_as_always, what_cannot_be_opened_is_looked_up,
           who_lost_a_link_reads_what_its_look_up_found, what_is_held_for_nobody_is_let_go,
           losers_are_remembered_up_to_a_bound)
