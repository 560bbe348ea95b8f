// SPDX-License-Identifier: Apache-2.0
/* Listing a directory, between a core and a channel that only remember. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/unit/fuse/fake.h"

static struct fs fs;

static void setup(void)
{
    fake_reset(&fs);
}

static uint64_t open_dir(void)
{
    op_opendir(fake_request(&fs, CHANNEL_OPENDIR, 9));
    return fake.reply_fh;
}

static void close_dir(uint64_t fh)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_RELEASEDIR, 9);

    q->file.fh = fh;
    op_releasedir(q);
}

static void page(unsigned n, unsigned first, bool eof)
{
    static char names[FAKE_ENTRIES][8];

    for (unsigned i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "n%u", first + i);
        fake.page[i] = (struct core_dirent){.ino = 1000 + first + i,
                                            .cookie = (uint64_t)(first + i) << 16 | 1,
                                            .type = DT_REG,
                                            .name_len = (uint8_t)strlen(names[i]),
                                            .name = names[i],
                                            .has_entry = true};
    }
    fake.page_len = n;
    fake.eof = eof;
}

/* The first page, of so many names from the sixteenth, comes as soon as it is asked for. */
static uint64_t open_with(unsigned n, bool eof)
{
    uint64_t fh = open_dir();

    fake.at_once = true;
    page(n, 16, eof);
    return fh;
}

static void close_after(uint64_t fh, unsigned pages)
{
    close_dir(fh);
    ck_assert_uint_eq(fake.page_done, pages);
    ck_assert_uint_eq(fs.dir_pages, 0);
}

static void read_some(uint64_t fh, uint64_t offset, unsigned room, bool plus)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_READDIR, 9);

    q->io.fh = fh;
    q->io.offset = offset;
    q->io.len = 4096;
    q->io.plus = plus;
    fake.dir_room = room;
    op_readdir(q);
}

static void read_dir(uint64_t fh, uint64_t offset, unsigned room)
{
    read_some(fh, offset, room, true);
}

static void read_names(uint64_t fh, uint64_t offset, unsigned room)
{
    read_some(fh, offset, room, false);
}

START_TEST(a_page_is_given_out_piece_by_piece)
{
    uint64_t fh = open_with(4, true);

    read_dir(fh, 0, 4);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001+ n17@0x88001+ ");
    read_dir(fh, 0x88001, 1);
    ck_assert_str_eq(fake.names, "n18@0x90001+ ");
    read_dir(fh, 0x90001, 9);
    ck_assert_str_eq(fake.names, "n19@0x98001+ ");
    read_dir(fh, 0x98001, 9);
    ck_assert_str_eq(fake.names, "");
    ck_assert_str_eq(fake.calls, "readdir 9 0 plus;");
    close_after(fh, 1);
}
END_TEST

START_TEST(a_directory_that_was_listed_and_stays_open_holds_no_memory)
{
    uint64_t fh = open_with(2, true);

    read_dir(fh, 0, 9);
    ck_assert_uint_eq(fake.page_done, 1);
    ck_assert_uint_eq(fs.dir_pages, 0);
    read_dir(fh, 0x88001, 9);
    read_dir(fh, 0x88001, 9);
    ck_assert_str_eq(fake.names, "");
    ck_assert_str_eq(fake.calls, "readdir 9 0 plus;");
    read_dir(fh, 0, 3);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001+ ");
    close_after(fh, 2);
}
END_TEST

START_TEST(the_next_page_begins_where_the_last_ended)
{
    uint64_t fh = open_with(2, false);

    read_names(fh, 0, 64);
    ck_assert_uint_eq(fake.page_done, 1);
    page(1, 18, true);
    read_names(fh, 0x88001, 64);
    ck_assert_str_eq(fake.names, "n18@0x90001 ");
    ck_assert_str_eq(fake.calls, "readdir 9 0;readdir 9 0x110001;readdir 9 0x120001;");
    close_after(fh, 3);
}
END_TEST

START_TEST(the_first_pages_are_short_and_the_second_has_names_only)
{
    uint64_t fh = open_dir();

    page(2, 16, false);
    read_dir(fh, 0, 64);
    ck_assert_uint_le(fake.page_bytes, 32 * KIB);
    fake_complete(0);
    ck_assert_str_eq(fake.calls, "readdir 9 0 plus;readdir 9 0x110001;");
    ck_assert_uint_le(fake.page_bytes, 64 * KIB);
    fake_complete(0);
    ck_assert_ptr_null(fake.waiting); /* no third before it is known who reads */
    close_dir(fh);
}
END_TEST

START_TEST(who_goes_on_with_attributes_gets_them)
{
    uint64_t fh = open_with(2, false);

    read_dir(fh, 0, 64);
    page(1, 18, true);
    read_dir(fh, 0x88001, 64);
    ck_assert_str_eq(fake.names, "n18@0x90001+ ");
    ck_assert_str_eq(fake.calls, "readdir 9 0 plus;readdir 9 0x110001;readdir 9 0x110001 plus;");
    close_after(fh, 3);
}
END_TEST

START_TEST(several_pages_of_names_are_under_way)
{
    uint64_t fh = open_with(4, false);

    read_dir(fh, 0, 64); /* with "." and ".." all of the first page */
    fake.calls[0] = '\0';
    read_names(fh, 0x98001, 1); /* the second; behind it three */
    ck_assert_uint_eq(fake.page_bytes, 128 * KIB);
    ck_assert_str_eq(fake.calls, "readdir 9 0x130001;readdir 9 0x130001;readdir 9 0x130001;");
    close_after(fh, 5);
}
END_TEST

START_TEST(many_open_directories_have_a_page_in_advance_each)
{
    uint64_t fh = open_with(4, false);

    fs.dir_pages = FS_DIR_PAGES_DEEP;
    read_dir(fh, 0, 64);
    fake.calls[0] = '\0';
    read_names(fh, 0x98001, 1);
    ck_assert_str_eq(fake.calls, "readdir 9 0x130001;");
    close_dir(fh);
    ck_assert_uint_eq(fs.dir_pages, FS_DIR_PAGES_DEEP);
}
END_TEST

START_TEST(a_page_in_advance_that_fails_is_asked_for_when_it_is_wanted)
{
    uint64_t fh = open_dir();

    page(2, 16, false);
    read_names(fh, 0, 64);
    fake_complete(0);
    fake_complete(-EIO);
    ck_assert_ptr_null(fake.waiting);
    fake.at_once = true;
    page(1, 18, true);
    read_names(fh, 0x88001, 64);
    ck_assert_str_eq(fake.names, "n18@0x90001 ");
    ck_assert_str_eq(fake.calls, "readdir 9 0;readdir 9 0x110001;readdir 9 0x110001;");
    close_dir(fh);
    ck_assert_uint_eq(fs.dir_pages, 0);
}
END_TEST

START_TEST(rewinding_asks_again)
{
    uint64_t fh = open_with(3, true);

    read_dir(fh, 0, 3);
    read_dir(fh, 0, 64);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001+ n17@0x88001+ n18@0x90001+ ");
    ck_assert_str_eq(fake.calls, "readdir 9 0 plus;readdir 9 0 plus;");
    close_after(fh, 2);
}
END_TEST

START_TEST(the_page_behind_is_asked_for_in_advance)
{
    uint64_t fh = open_with(4, false);

    read_names(fh, 0, 4);
    ck_assert_str_eq(fake.calls, "readdir 9 0;readdir 9 0x130001;");
    page(4, 16, true);
    read_names(fh, 0x88001, 1);
    read_names(fh, 0x90001, 9);
    ck_assert_str_eq(fake.names, "n19@0x98001 ");
    page(1, 20, true);
    read_names(fh, 0x98001, 9);
    ck_assert_str_eq(fake.names, "n20@0xa0001 ");
    close_dir(fh);
    ck_assert_uint_eq(fs.dir_pages, 0);
}
END_TEST

START_TEST(a_seek_forgets_what_was_asked_for_in_advance)
{
    uint64_t fh = open_with(4, false);

    read_names(fh, 0, 4);
    read_names(fh, 0, 3);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001 ");
    ck_assert_str_eq(fake.calls, "readdir 9 0;readdir 9 0x130001;readdir 9 0;readdir 9 0x130001;");
    close_after(fh, 4);
}
END_TEST

START_TEST(a_directory_closed_early_outlives_what_is_under_way)
{
    uint64_t fh = open_with(4, false);

    read_names(fh, 0, 4);
    fake.at_once = false;
    read_names(fh, 0x88001, 1);
    close_dir(fh);
    ck_assert_uint_eq(fake.page_done, 2);
    ck_assert_uint_eq(fake.cancelled, 1);
    fake_complete(0);
    ck_assert_uint_eq(fake.page_done, 3);
    ck_assert_uint_eq(fs.dir_pages, 0);
}
END_TEST

START_TEST(directories_read_in_part_give_pages_back_beyond_a_bound)
{
    uint64_t a = open_dir(), b = open_dir(), c = open_dir();

    fake.at_once = true;
    fake.dir_memory = (uint64_t)2 * FAKE_PAGE_BYTES;
    page(4, 16, true);
    read_dir(a, 0, 3);
    read_dir(b, 0, 3);
    read_dir(a, 0x80001, 1); /* of these two b has not been read for longer */
    ck_assert_uint_eq(fake.page_done, 0);
    read_dir(c, 0, 3);
    ck_assert_uint_eq(fake.page_done, 1);
    ck_assert_uint_eq(fs.dir_bytes, fake.dir_memory);
    fake.calls[0] = '\0';
    read_dir(a, 0x88001, 9);
    ck_assert_str_eq(fake.names, "n18@0x90001+ n19@0x98001+ ");
    ck_assert_str_eq(fake.calls, "");
    page(3, 17, true);
    read_dir(b, 0x80001, 9);
    ck_assert_str_eq(fake.names, "n17@0x88001+ n18@0x90001+ n19@0x98001+ ");
    ck_assert_str_eq(fake.calls, "readdir 9 0x100001 plus;");
    close_dir(a);
    close_dir(b);
    close_dir(c);
    ck_assert_uint_eq(fs.dir_pages, 0);
    ck_assert_uint_eq(fs.dir_bytes, 0);
    ck_assert(list_empty(&fs.dirs));
}
END_TEST

START_TEST(an_entry_that_did_not_fit_does_not_outlive_its_page)
{
    uint64_t a = open_dir(), b = open_dir();

    fake.at_once = true;
    fake.dir_memory = FAKE_PAGE_BYTES;
    page(4, 16, true);
    read_dir(a, 0, 3); /* n17 was read from the page and did not fit */
    read_dir(b, 0, 3);
    page(3, 17, true);
    read_dir(a, 0x80001, 1);
    ck_assert_str_eq(fake.names, "n17@0x88001+ ");
    close_dir(a);
    close_dir(b);
    ck_assert_uint_eq(fs.dir_bytes, 0);
}
END_TEST

START_TEST(an_entry_that_did_not_fit_is_told_as_it_is_when_it_goes)
{
    uint64_t fh = open_with(4, true);

    read_dir(fh, 0, 3); /* n17 was read from the page and did not fit */
    fake.changed = true;
    read_dir(fh, 0x80001, 2);
    ck_assert_str_eq(fake.names, "n17@0x88001 n18@0x90001+ ");
    close_dir(fh);
}
END_TEST

/* The kernel takes up names with what it has been told of all names by then. */
START_TEST(names_that_the_kernel_had_yet_to_take_up_when_all_were_outdated_are_outdated_again)
{
    uint64_t fh = open_with(4, true);

    read_dir(fh, 0, 3);
    fs_dirs_overtaken(&fs);
    ck_assert_uint_eq(fake.names_expired, 0);
    fake.timer->fn(fake.timer); /* nobody has read on */
    ck_assert_uint_eq(fake.names_expired, 1);
    read_dir(fh, 0x80001, 1);
    ck_assert_uint_eq(fake.names_expired, 2);
    read_dir(fh, 0x88001, 9);
    ck_assert_uint_eq(fake.names_expired, 2);
    fs_dirs_overtaken(&fs);
    close_dir(fh);
    ck_assert_uint_eq(fake.names_expired, 3);
}
END_TEST

START_TEST(who_lists_names_only_outdates_none)
{
    uint64_t fh = open_with(4, true);

    read_names(fh, 0, 3);
    fs_dirs_overtaken(&fs);
    ck_assert_ptr_null(fake.timer);
    close_dir(fh);
    ck_assert_uint_eq(fake.names_expired, 0);
}
END_TEST

START_TEST(a_directory_is_listed_with_the_rights_of_who_opened_it)
{
    struct channel_req *q = fake_request(&fs, CHANNEL_OPENDIR, 9);

    q->uid = q->gid = 0;
    op_opendir(q);
    page(2, 16, false);
    read_dir(fake.reply_fh, 0, 9); /* by 1000 */
    ck_assert_uint_eq(fake.waiting->cred.uid, 0);
    ck_assert_uint_eq(fake.waiting->cred.gid, 0);
    fake_complete(0);
    ck_assert_uint_eq(fake.waiting->cred.uid, 0); /* the page behind it */
    fake_complete(0);
    close_dir(fake.reply_fh);
}
END_TEST

START_TEST(what_was_asked_in_advance_for_who_lost_its_pages_is_thrown_away)
{
    uint64_t a = open_dir(), b = open_dir();
    struct core_req *ahead;

    fake.dir_memory = FAKE_PAGE_BYTES;
    page(4, 16, false);
    read_names(a, 0, 3);
    fake_complete(0); /* the first page; the second is under way */
    ahead = fake.waiting;
    fake.at_once = true;
    page(4, 16, true);
    read_names(b, 0, 3);
    ck_assert_uint_eq(fake.page_done, 1);
    ahead->done(ahead, 0);
    ck_assert_uint_eq(fake.page_done, 2);
    page(3, 17, true);
    read_names(a, 0x80001, 9);
    ck_assert_str_eq(fake.names, "n17@0x88001 n18@0x90001 n19@0x98001 ");
    close_dir(a);
    close_dir(b);
    ck_assert_uint_eq(fs.dir_bytes, 0);
    ck_assert_uint_eq(fs.dir_pages, 0);
}
END_TEST

START_TEST(a_page_that_somebody_waits_for_is_given_out_before_it_goes)
{
    uint64_t a = open_dir();

    fake.dir_memory = 0;
    page(2, 16, true);
    read_dir(a, 0, 3);
    fake_complete(0);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001+ ");
    close_dir(a);
    ck_assert_uint_eq(fake.page_done, 1);
    ck_assert_uint_eq(fs.dir_bytes, 0);
}
END_TEST

START_TEST(a_reply_is_filled_when_the_question_for_more_has_left)
{
    uint64_t fh = open_dir();

    fake.at_once = fake.hold_work = true;
    page(4, 16, false);
    read_names(fh, 0, 4);
    ck_assert_str_eq(fake.calls, "readdir 9 0;readdir 9 0x130001;");
    ck_assert_uint_eq(fake.replies, 1); /* of OPENDIR */
    fake.work->fn(fake.work);
    ck_assert_uint_eq(fake.replies, 2);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001 n17@0x88001 ");
    read_names(fh, 0x88001, 1);
    fake.work->fn(fake.work);
    ck_assert_str_eq(fake.names, "n18@0x90001 ");
    close_dir(fh);
    ck_assert_uint_eq(fs.dir_pages, 0);
    ck_assert_uint_eq(fs.dir_bytes, 0);
}
END_TEST

/* An empty reply would be the end of the directory. */
START_TEST(without_memory_for_a_reply_a_directory_is_not_empty)
{
    uint64_t fh = open_with(4, true);

    fake.dir_status = -ENOMEM;
    read_dir(fh, 0, 3);
    ck_assert_str_eq(fake.reply, "err -12");
    fake.dir_status = 0;
    read_dir(fh, 0, 3);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001+ ");
    close_dir(fh);
}
END_TEST

START_TEST(what_was_put_off_answers_nothing_when_the_mount_has_ended)
{
    uint64_t fh = open_dir();
    unsigned replies;

    fake.hold_work = true;
    page(2, 16, false);
    read_dir(fh, 0, 64);
    fake_complete(0);
    ck_assert_ptr_nonnull(fake.work);
    replies = fake.replies;
    fs.ended = true;
    fake.work->fn(fake.work);
    ck_assert_uint_eq(fake.replies, replies);
    fake_complete(-EIO); /* the page behind it */
    close_dir(fh);
}
END_TEST

START_TEST(a_directory_closed_before_its_reply_is_filled_answers)
{
    uint64_t fh = open_dir();

    fake.at_once = fake.hold_work = true;
    page(4, 16, false);
    read_names(fh, 0, 4);
    close_dir(fh);
    fake.work->fn(fake.work);
    ck_assert_str_eq(fake.reply, "err -9");
    ck_assert_uint_eq(fs.dir_pages, 0);
    ck_assert_uint_eq(fs.dir_bytes, 0);
}
END_TEST

START_TEST(pages_of_a_reply_that_is_to_be_filled_stay)
{
    uint64_t a = open_dir(), b = open_dir();
    struct reactor_work *first;

    fake.at_once = fake.hold_work = true;
    fake.dir_memory = FAKE_PAGE_BYTES;
    page(4, 16, false);
    read_names(a, 0, 4);
    first = fake.work;
    read_names(b, 0, 4);
    ck_assert_ptr_ne(fake.work, first);
    first->fn(first);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001 n17@0x88001 ");
    fake.dir_room = 4;
    fake.work->fn(fake.work);
    ck_assert_str_eq(fake.names, ".@0x1 ..@0x2 n16@0x80001 n17@0x88001 ");
    close_dir(a);
    close_dir(b);
    ck_assert_uint_eq(fs.dir_pages, 0);
    ck_assert_uint_eq(fs.dir_bytes, 0);
}
END_TEST

SUITE_MAIN("fuse-readdir", setup, NULL, a_page_is_given_out_piece_by_piece,
           a_directory_that_was_listed_and_stays_open_holds_no_memory,
           the_next_page_begins_where_the_last_ended,
           the_first_pages_are_short_and_the_second_has_names_only,
           who_goes_on_with_attributes_gets_them, several_pages_of_names_are_under_way,
           many_open_directories_have_a_page_in_advance_each,
           a_page_in_advance_that_fails_is_asked_for_when_it_is_wanted, rewinding_asks_again,
           the_page_behind_is_asked_for_in_advance, a_seek_forgets_what_was_asked_for_in_advance,
           a_directory_closed_early_outlives_what_is_under_way,
           directories_read_in_part_give_pages_back_beyond_a_bound,
           an_entry_that_did_not_fit_does_not_outlive_its_page,
           an_entry_that_did_not_fit_is_told_as_it_is_when_it_goes,
           names_that_the_kernel_had_yet_to_take_up_when_all_were_outdated_are_outdated_again,
           who_lists_names_only_outdates_none,
           a_directory_is_listed_with_the_rights_of_who_opened_it,
           what_was_asked_in_advance_for_who_lost_its_pages_is_thrown_away,
           a_page_that_somebody_waits_for_is_given_out_before_it_goes,
           a_reply_is_filled_when_the_question_for_more_has_left,
           without_memory_for_a_reply_a_directory_is_not_empty,
           what_was_put_off_answers_nothing_when_the_mount_has_ended,
           a_directory_closed_before_its_reply_is_filled_answers,
           pages_of_a_reply_that_is_to_be_filled_stay)
