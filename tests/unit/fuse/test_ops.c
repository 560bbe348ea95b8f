// SPDX-License-Identifier: Apache-2.0
/* The FUSE operations between a core and a channel that only remember. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/mem.h"
#include "tests/support/suite.h"
#include "tests/unit/fuse/fake.h"

static struct fs fs;

static void setup(void)
{
    fake_reset(&fs);
}

START_TEST(the_kernels_root_is_the_mounts_root)
{
    op_lookup(fake_named(&fs, CHANNEL_LOOKUP, "a"));
    ck_assert_str_eq(fake.calls, "lookup 100 a;");
    fake.waiting->entry.ino = fake.waiting->entry.attr.ino = 9;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "entry 9");
    ck_assert_uint_eq(fake.replies, 1);
}
END_TEST

START_TEST(a_name_that_does_not_exist_may_be_remembered)
{
    op_lookup(fake_named(&fs, CHANNEL_LOOKUP, "a"));
    ck_assert(fake.waiting->want_negative);
    fake.waiting->entry.ino = 0;
    fake.waiting->entry.entry_valid_ns = 5;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "no entry 5");
}
END_TEST

START_TEST(a_call_that_completes_at_once_is_answered_once)
{
    fake.at_once = true;
    fake.at_once_status = -ENOENT;
    op_unlink(fake_named(&fs, CHANNEL_UNLINK, "a"));
    ck_assert_str_eq(fake.reply, "err -2");
    ck_assert_uint_eq(fake.replies, 1);
    ck_assert_ptr_null(fake.on_interrupt);
}
END_TEST

START_TEST(a_refusal_is_tried_again_with_the_callers_groups)
{
    fake.n_groups = 2;
    op_unlink(fake_named(&fs, CHANNEL_UNLINK, "a"));
    fake_complete(-EACCES);
    ck_assert_str_eq(fake.calls, "unlink 100 a;unlink 100 a with 2 groups;");
    ck_assert_uint_eq(fake.replies, 0);
    fake_complete(-EACCES);
    ck_assert_str_eq(fake.reply, "err -13");
}
END_TEST

START_TEST(more_groups_than_fit_are_all_sent)
{
    fake.n_groups = 500;
    op_rmdir(fake_named(&fs, CHANNEL_RMDIR, "a"));
    fake_complete(-EPERM);
    ck_assert_str_eq(fake.calls, "rmdir 100 a;rmdir 100 a with 500 groups;");
    ck_assert_uint_eq(fake.waiting->cred.groups[499], 7499);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "err 0");
}
END_TEST

START_TEST(a_refusal_is_tried_again_with_the_callers_capabilities)
{
    fake.caps = MSG_CAP_CHOWN;
    op_unlink(fake_named(&fs, CHANNEL_UNLINK, "a"));
    ck_assert_uint_eq(fake.waiting->cred.caps, 0);
    fake_complete(-EPERM);
    ck_assert_str_eq(fake.calls, "unlink 100 a;unlink 100 a;");
    ck_assert_uint_eq(fake.waiting->cred.caps, MSG_CAP_CHOWN);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "err 0");
}
END_TEST

START_TEST(root_is_not_asked_for_groups)
{
    struct channel_req *q = fake_named(&fs, CHANNEL_UNLINK, "a");

    q->uid = 0;
    fake.n_groups = 2;
    op_unlink(q);
    fake_complete(-EPERM);
    ck_assert_str_eq(fake.reply, "err -1");
}
END_TEST

START_TEST(a_signal_that_ends_the_caller_cancels_what_waits)
{
    struct channel_req *q = fake_named(&fs, CHANNEL_LOOKUP, "a");

    op_lookup(q);
    fake.caller_ends = true;
    ck_assert_ptr_nonnull(fake.on_interrupt);
    fake.on_interrupt(q);
    ck_assert_uint_eq(fake.cancelled, 1);
    fake_complete(-EINTR);
    ck_assert_str_eq(fake.reply, "err -4");
}
END_TEST

START_TEST(a_signal_that_the_caller_handles_cancels_nothing_and_one_that_ends_it_later_does)
{
    struct channel_req *q = fake_named(&fs, CHANNEL_UNLINK, "a");

    op_unlink(q);
    fake.on_interrupt(q);
    ck_assert_uint_eq(fake.cancelled, 0);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 0);
    fake.caller_ends = true; /* of which the kernel does not tell */
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 1);
    fake_complete(-EINTR);
    ck_assert_str_eq(fake.reply, "err -4");
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 1);
}
END_TEST

START_TEST(a_call_that_was_signalled_and_has_ended_is_looked_at_no_more)
{
    struct channel_req *q = fake_named(&fs, CHANNEL_UNLINK, "a");

    op_unlink(q);
    fake.on_interrupt(q);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "err 0");
    ck_assert(list_empty(&fs.heeded));
    fake.caller_ends = true;
    fake.on_interrupt(q); /* late */
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 0);
}
END_TEST

START_TEST(any_signal_ends_the_wait_for_a_lock_and_no_other_question_about_it)
{
    struct fs_file file = {0};

    for (int wait = 0; wait < 2; wait++) {
        struct channel_req *q = fake_request(&fs, CHANNEL_SETLK, 9);

        q->lock.fh = (uintptr_t)&file;
        q->lock.wait = wait;
        op_setlk(q);
        fake.on_interrupt(q);
        ck_assert_uint_eq(fake.cancelled, (unsigned)wait);
        fake_complete(wait ? -EINTR : 0);
        ck_assert_str_eq(fake.reply, wait ? "err -4" : "err 0");
    }
}
END_TEST

/* ---- files ---- */

static struct fs_file *open_with(uint32_t flags, enum msg_lease lease, bool keep)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_OPEN, 9);

    q->open.flags = flags;
    op_open(q);
    fake.waiting->out.opened.lease = lease;
    fake.waiting->out.opened.keep_cache = keep;
    fake_complete(0);
    return fs_file_of(fake.reply_fh);
}

static void close_again(struct fs_file *f)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_RELEASE, 9);

    q->file.fh = (uintptr_t)f;
    op_release(q);
    ck_assert_str_eq(fake.reply, "err 0");
    ck_assert_uint_eq(fake.released, 1);
    fake.released = 0;
}

START_TEST(readers_under_a_lease_use_the_page_cache)
{
    struct fs_file *f = open_with(O_RDONLY, MSG_LEASE_READ, true);

    ck_assert_str_eq(fake.reply, "open 0x6"); /* keep the cache, no flush */
    close_again(f);
    f = open_with(O_RDWR, MSG_LEASE_WRITE, false);
    ck_assert_str_eq(fake.reply, "open 0");
    close_again(f);
}
END_TEST

START_TEST(writers_and_shared_files_go_past_the_page_cache)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);

    ck_assert_str_eq(fake.reply, "open 0x1");
    close_again(f);
    f = open_with(O_RDONLY, MSG_LEASE_NONE, false);
    ck_assert_str_eq(fake.reply, "open 0x5");
    close_again(f);
    f = open_with(O_RDWR | O_DIRECT, MSG_LEASE_WRITE, false);
    ck_assert_str_eq(fake.reply, "open 0x1");
    close_again(f);
}
END_TEST

START_TEST(attributes_that_have_changed_are_asked_for_again)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_OPEN, 9);

    op_open(q);
    fake.waiting->out.opened.attr_changed = true;
    fake_complete(0);
    ck_assert_uint_eq(fake.attrs_expired, 1);
    close_again(fs_file_of(fake.reply_fh));
    close_again(open_with(O_RDONLY, MSG_LEASE_READ, true));
    ck_assert_uint_eq(fake.attrs_expired, 1);
}
END_TEST

START_TEST(an_inode_that_is_no_more_makes_the_kernel_look_again)
{
    op_open(fake_request(&fs, CHANNEL_OPEN, 9));
    fake_complete(-ENOENT);
    ck_assert_str_eq(fake.reply, "err -116");
    op_getattr(fake_request(&fs, CHANNEL_GETATTR, 9));
    fake_complete(-ENOENT);
    ck_assert_str_eq(fake.reply, "err -116");
    op_lookup(fake_named(&fs, CHANNEL_LOOKUP, "a"));
    fake_complete(-ENOENT);
    ck_assert_str_eq(fake.reply, "err -2");
}
END_TEST

START_TEST(a_lock_waits_if_asked_to_and_a_test_says_who_is_in_the_way)
{
    struct fs_file *f = open_with(O_RDWR, MSG_LEASE_WRITE, false);
    struct msg_lock l = {.type = MSG_LOCK_WRITE, .start = 5, .end = 9, .owner = 77};
    struct channel_req *q = fake_request(&fs, CHANNEL_SETLK, 9);

    fake.calls[0] = '\0';
    q->lock.fh = (uintptr_t)f;
    q->lock.lock = l;
    q->lock.wait = true;
    op_setlk(q);
    ck_assert_str_eq(fake.calls, "lock 0 1 5-9 of 77 wait;");
    fake_complete(-EDEADLK);
    ck_assert_str_eq(fake.reply, "err -35");
    q = fake_request(&fs, CHANNEL_GETLK, 9);
    q->lock.fh = (uintptr_t)f;
    q->lock.lock = l;
    op_getlk(q);
    fake.waiting->out.lock =
        (struct msg_lock){.type = MSG_LOCK_READ, .start = 7, .end = 7, .pid = 3};
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "lock 0 7-7 by 3");
    close_again(f);
}
END_TEST

START_TEST(a_close_by_a_process_that_is_ending_waits_for_no_server)
{
    struct fs_file *f = open_with(O_RDWR, MSG_LEASE_WRITE, false);
    struct channel_req *q = fake_request(&fs, CHANNEL_FLUSH, 9);

    q->file.fh = (uintptr_t)f;
    op_flush(q);
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 0);
    fake.caller_ends = true; /* says nothing without a signal */
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 0);
    fake.caller_exits = true;
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 1);
    fake_complete(-EINTR);
    ck_assert_str_eq(fake.reply, "err -4");
    ck_assert(list_empty(&fs.heeded));
    close_again(f);
}
END_TEST

START_TEST(nothing_but_a_close_is_ended_because_its_caller_is_ending)
{
    struct channel_req *q = fake_named(&fs, CHANNEL_UNLINK, "a");

    fake.caller_exits = true;
    op_unlink(q);
    ck_assert(list_empty(&fs.heeded));
    fake.on_interrupt(q); /* it handles that */
    fake.timer->fn(fake.timer);
    ck_assert_uint_eq(fake.cancelled, 0);
    fake_complete(0);
}
END_TEST

START_TEST(a_close_releases_the_record_locks_of_its_process_and_of_no_other)
{
    struct fs_file *f = open_with(O_RDWR, MSG_LEASE_WRITE, false);
    struct channel_req *q = fake_request(&fs, CHANNEL_FLUSH, 9);

    fake.lock_owner = 77;
    fake.calls[0] = '\0';
    q->file.fh = (uintptr_t)f;
    q->file.lock_owner = 78;
    op_flush(q);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "err 0");
    q = fake_request(&fs, CHANNEL_FLUSH, 9);
    q->file.fh = (uintptr_t)f;
    q->file.lock_owner = 77;
    op_flush(q);
    fake_complete(-EIO);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "err -5"); /* of the write-back: still told, though it unlocks */
    ck_assert_ptr_nonnull(strstr(fake.calls, "unlock 77;"));
    ck_assert_ptr_null(strstr(fake.calls, "unlock 78;"));
    close_again(f);
}
END_TEST

START_TEST(files_with_record_locks_are_flushed_by_readers_too)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_OPEN, 9);

    q->open.flags = O_RDONLY;
    op_open(q);
    fake.waiting->out.opened.lease = MSG_LEASE_READ;
    fake.waiting->out.opened.locks_seen = true;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "open 0");
    close_again(fs_file_of(fake.reply_fh));
}
END_TEST

START_TEST(a_read_is_sent_from_where_the_core_has_it)
{
    struct fs_file *f = open_with(O_RDONLY, MSG_LEASE_READ, false);
    struct channel_req *q = fake_request(&fs, CHANNEL_READ, 9);
    char data[] = "hello";

    q->io.fh = (uintptr_t)f;
    q->io.offset = 4096;
    q->io.len = 5;
    op_read(q);
    fake.waiting->out.read.iov[0] = (struct iovec){data, 5};
    fake.waiting->out.read.n_iov = 1;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "data 1 hello");
    ck_assert_uint_eq(fake.read_done, 1);
    close_again(f);
}
END_TEST

START_TEST(ranges_go_to_the_core_as_they_came)
{
    struct fs_file *f = open_with(O_RDWR, MSG_LEASE_WRITE, false);
    struct channel_req *q = fake_request(&fs, CHANNEL_FALLOCATE, 9);

    fake.calls[0] = 0;
    q->range.fh = (uintptr_t)f;
    q->range.mode = 3;
    q->range.offset = 4096;
    q->range.len = 100;
    op_fallocate(q); /* changes contents: set-id bits go first, once */
    fake.waiting->entry.attr.mode = S_IFREG | 04755;
    fake_complete(0);
    fake_complete(0);
    fake_complete(-EOPNOTSUPP);
    ck_assert_str_eq(fake.reply, "err -95");
    q = fake_request(&fs, CHANNEL_LSEEK, 9);
    q->range.fh = (uintptr_t)f;
    q->range.offset = 50;
    q->range.hole = true;
    op_lseek(q);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "offset 57");
    q = fake_request(&fs, CHANNEL_COPY_FILE_RANGE, 9);
    q->transfer.fh = q->transfer.to_fh = (uintptr_t)f;
    q->transfer.to_node = 9;
    q->transfer.offset = 1;
    q->transfer.to_offset = 200;
    q->transfer.len = 80;
    op_copy_file_range(q);
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "write 40");
    ck_assert_str_eq(fake.calls, "getattr 9;setattr 9 0x100 open;fallocate 0x3 4096 100;"
                                 "seek hole 50;copy 1 200 80;");
    close_again(f);
}
END_TEST

static struct channel_req *write_request(struct fs_file *f, bool kill)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_WRITE, 9);

    q->io.fh = (uintptr_t)f;
    q->io.offset = 7;
    q->io.len = 3;
    q->io.data = "abc";
    q->io.kill_priv = kill;
    fake.calls[0] = '\0';
    return q;
}

static void finish_write(void)
{
    fake.waiting->out.write.bytes = 3;
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "write 3");
}

START_TEST(a_write_by_the_privileged_is_one_call)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);

    op_write(write_request(f, false));
    ck_assert_str_eq(fake.calls, "write 7 3 abc;");
    finish_write();
    close_again(f);
}
END_TEST

START_TEST(set_id_bits_are_looked_for_once_per_open_file)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);

    op_write(write_request(f, true));
    fake.waiting->entry.attr.mode = S_IFREG | 0755;
    fake_complete(0);
    ck_assert_str_eq(fake.calls, "getattr 9;write 7 3 abc;");
    finish_write();
    op_write(write_request(f, true));
    ck_assert_str_eq(fake.calls, "write 7 3 abc;");
    finish_write();
    close_again(f);
}
END_TEST

START_TEST(set_id_bits_are_cleared_before_the_write)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);

    op_write(write_request(f, true));
    fake.waiting->entry.attr.mode = S_IFREG | 04755;
    fake_complete(0);
    fake_complete(0);
    ck_assert_str_eq(fake.calls, "getattr 9;setattr 9 0x100 open;write 7 3 abc;");
    ck_assert_uint_eq(fake.attrs_expired, 1);
    finish_write();
    close_again(f);
}
END_TEST

START_TEST(a_write_that_waits_after_attributes_that_were_known_can_be_interrupted)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);
    struct channel_req *q = write_request(f, true);

    fake.complete_next = true; /* the attributes; mode 0 */
    op_write(q);
    ck_assert_str_eq(fake.calls, "getattr 9;write 7 3 abc;");
    ck_assert_ptr_nonnull(fake.on_interrupt);
    fake.caller_ends = true;
    fake.on_interrupt(q);
    ck_assert_uint_eq(fake.cancelled, 1);
    fake_complete(-EINTR);
    ck_assert_str_eq(fake.reply, "err -4");
    close_again(f);
}
END_TEST

START_TEST(a_set_id_bit_set_later_is_seen)
{
    struct fs_file *f = open_with(O_WRONLY, MSG_LEASE_WRITE, false);
    struct channel_req *q;

    op_write(write_request(f, true));
    fake.waiting->entry.attr.mode = S_IFREG | 0755;
    fake_complete(0);
    finish_write();
    q = fake_request(&fs, CHANNEL_SETATTR, 9);
    q->attr.set = MSG_SET_MODE;
    q->attr.mode = 04755;
    op_setattr(q);
    fake_complete(0);
    op_write(write_request(f, true));
    ck_assert_str_eq(fake.calls, "getattr 9;");
    fake_complete(-EIO);
    ck_assert_str_eq(fake.reply, "err -5");
    close_again(f);
}
END_TEST

START_TEST(an_open_that_nobody_waits_for_is_closed)
{
    struct fs_file *f = open_with(O_RDONLY, MSG_LEASE_READ, false);

    fs_channel_ops.open_lost(&fs, CHANNEL_OPEN, 9, (uintptr_t)f);
    ck_assert_uint_eq(fake.released, 1);
}
END_TEST

START_TEST(extended_attributes_and_access_lists_go_to_the_server)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_GETXATTR, 9);

    q->xattr.name = "system.posix_acl_access";
    op_getxattr(q);
    ck_assert_str_eq(fake.calls, "getxattr 9 system.posix_acl_access;");
    fake_complete(-ENODATA);
    ck_assert_str_eq(fake.reply, "err -61");
    q = fake_request(&fs, CHANNEL_GETXATTR, 9);
    q->xattr.name = "user.x";
    op_getxattr(q);
    fake.waiting->out.bytes = (struct msg_bytes){"val", 3};
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "xattr val");
}
END_TEST

/* So that ls(1) does not ask each file for one; what else is missing is "no such attribute". */
START_TEST(a_file_without_a_label_says_that_labels_are_not_supported)
{
    static const struct {
        const char *name, *reply;
    } missing[] = {{"security.selinux", "err -95"}, {"security.capability", "err -61"}};

    for (size_t n = 0; n < ARRAY_LEN(missing); n++) {
        struct channel_req *q = fake_request(&fs, CHANNEL_GETXATTR, 9);

        q->xattr.name = missing[n].name;
        op_getxattr(q);
        fake_complete(-ENODATA);
        ck_assert_str_eq(fake.reply, missing[n].reply);
    }
    struct channel_req *q = fake_request(&fs, CHANNEL_GETXATTR, 9);

    q->xattr.name = "security.selinux";
    op_getxattr(q);
    fake.waiting->out.bytes = (struct msg_bytes){"a:b:c", 5};
    fake_complete(0);
    ck_assert_str_eq(fake.reply, "xattr a:b:c");
}
END_TEST

SUITE_MAIN("fuse-ops", setup, NULL, the_kernels_root_is_the_mounts_root,
           a_name_that_does_not_exist_may_be_remembered,
           a_call_that_completes_at_once_is_answered_once,
           a_refusal_is_tried_again_with_the_callers_groups,
           a_refusal_is_tried_again_with_the_callers_capabilities,
           more_groups_than_fit_are_all_sent, root_is_not_asked_for_groups,
           a_signal_that_ends_the_caller_cancels_what_waits,
           a_signal_that_the_caller_handles_cancels_nothing_and_one_that_ends_it_later_does,
           a_call_that_was_signalled_and_has_ended_is_looked_at_no_more,
           any_signal_ends_the_wait_for_a_lock_and_no_other_question_about_it,
           readers_under_a_lease_use_the_page_cache,
           writers_and_shared_files_go_past_the_page_cache,
           attributes_that_have_changed_are_asked_for_again,
           an_inode_that_is_no_more_makes_the_kernel_look_again,
           a_lock_waits_if_asked_to_and_a_test_says_who_is_in_the_way,
           a_close_by_a_process_that_is_ending_waits_for_no_server,
           nothing_but_a_close_is_ended_because_its_caller_is_ending,
           a_close_releases_the_record_locks_of_its_process_and_of_no_other,
           files_with_record_locks_are_flushed_by_readers_too, ranges_go_to_the_core_as_they_came,
           a_read_is_sent_from_where_the_core_has_it, a_write_by_the_privileged_is_one_call,
           set_id_bits_are_looked_for_once_per_open_file, set_id_bits_are_cleared_before_the_write,
           a_write_that_waits_after_attributes_that_were_known_can_be_interrupted,
           a_set_id_bit_set_later_is_seen, an_open_that_nobody_waits_for_is_closed,
           extended_attributes_and_access_lists_go_to_the_server,
           a_file_without_a_label_says_that_labels_are_not_supported)
