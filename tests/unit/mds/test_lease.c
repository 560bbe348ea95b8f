// SPDX-License-Identifier: Apache-2.0
/* Decisions about data leases. */
#include <check.h>
#include <fcntl.h>

#include "mds/session/lease.h"
#include "tests/support/suite.h"

static enum msg_lease opened(bool others, bool others_write, bool mine_write, enum msg_lease held)
{
    struct lease_users u = {others, others_write, mine_write, held};

    return lease_of_open(&u);
}

START_TEST(the_only_opener_gets_what_it_opened_for)
{
    ck_assert_int_eq(opened(false, false, false, MSG_LEASE_NONE), MSG_LEASE_READ);
    ck_assert_int_eq(opened(false, false, true, MSG_LEASE_NONE), MSG_LEASE_WRITE);
    ck_assert_int_eq(opened(false, false, true, MSG_LEASE_READ), MSG_LEASE_WRITE);
    ck_assert_int_eq(opened(false, false, false, MSG_LEASE_WRITE), MSG_LEASE_WRITE);
}
END_TEST

START_TEST(readers_share_and_a_writer_among_others_gets_nothing)
{
    ck_assert_int_eq(opened(true, false, false, MSG_LEASE_NONE), MSG_LEASE_READ);
    ck_assert_int_eq(opened(true, true, false, MSG_LEASE_NONE), MSG_LEASE_NONE);
    ck_assert_int_eq(opened(true, false, true, MSG_LEASE_NONE), MSG_LEASE_NONE);
    ck_assert_int_eq(opened(true, false, true, MSG_LEASE_READ), MSG_LEASE_NONE);
}
END_TEST

START_TEST(a_lease_asked_for_to_grow_is_marked_when_others_have_the_file_open)
{
    struct lease_users u = {.others = true, .others_write = true, .mine_write = true};
    bool growth;

    ck_assert_int_eq(lease_of_get(&u, MSG_LEASE_WRITE, &growth), MSG_LEASE_WRITE);
    ck_assert(growth);
    u.others = u.others_write = false;
    ck_assert_int_eq(lease_of_get(&u, MSG_LEASE_WRITE, &growth), MSG_LEASE_WRITE);
    ck_assert(!growth);
    u.mine_write = false;
    ck_assert_int_eq(lease_of_get(&u, MSG_LEASE_WRITE, &growth), MSG_LEASE_READ);
    u.others_write = true;
    ck_assert_int_eq(lease_of_get(&u, MSG_LEASE_READ, &growth), MSG_LEASE_NONE);
    u.held = MSG_LEASE_WRITE;
    ck_assert_int_eq(lease_of_get(&u, MSG_LEASE_READ, &growth), MSG_LEASE_WRITE);
}
END_TEST

START_TEST(conflicts_follow_the_table)
{
    static const struct {
        unsigned access;
        uint32_t flags;
        bool with_read, with_write;
    } table[] = {
        {MDS_ACCESS_NAME, 0, false, false},
        {MDS_ACCESS_UNLINK, 0, false, false},
        {MDS_ACCESS_REPORT, 0, false, false},
        {MDS_ACCESS_TIMES, 0, false, true},
        {MDS_ACCESS_CUT, 0, true, true},
        {MDS_ACCESS_WRITE, 0, true, true},
        {MDS_ACCESS_OPEN, O_RDONLY, false, true},
        {MDS_ACCESS_OPEN, O_WRONLY, true, true},
        {MDS_ACCESS_OPEN, O_RDWR, true, true},
        {MDS_ACCESS_OPEN, O_RDONLY | O_TRUNC, true, true},
        {LEASE_ACCESS_GET, MSG_LEASE_READ, false, true},
        {LEASE_ACCESS_GET, MSG_LEASE_WRITE, true, true},
    };

    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        ck_assert(!lease_conflicts(table[i].access, table[i].flags, MSG_LEASE_NONE));
        ck_assert_msg(lease_conflicts(table[i].access, table[i].flags, MSG_LEASE_READ) ==
                          table[i].with_read,
                      "row %u with a read lease", i);
        ck_assert_msg(lease_conflicts(table[i].access, table[i].flags, MSG_LEASE_WRITE) ==
                          table[i].with_write,
                      "row %u with a write lease", i);
    }
}
END_TEST

START_TEST(members_of_one_group_are_inside_together_and_no_others)
{
    struct lease_inside in = {0};

    ck_assert(lease_may_enter(&in, LEASE_SOLE));
    in.take = 2;
    ck_assert(lease_may_enter(&in, LEASE_TAKE));
    ck_assert(!lease_may_enter(&in, LEASE_BREAK));
    ck_assert(!lease_may_enter(&in, LEASE_SOLE));
    ck_assert(lease_may_enter(&in, LEASE_FREE));
    in = (struct lease_inside){.breaks = 1};
    ck_assert(!lease_may_enter(&in, LEASE_TAKE));
    ck_assert(lease_may_enter(&in, LEASE_BREAK));
    in = (struct lease_inside){.sole = 1};
    ck_assert(!lease_may_enter(&in, LEASE_TAKE));
    ck_assert(!lease_may_enter(&in, LEASE_BREAK));
    ck_assert(!lease_may_enter(&in, LEASE_SOLE));
}
END_TEST

START_TEST(every_access_has_its_group)
{
    ck_assert_int_eq(lease_group(MDS_ACCESS_NAME, 0), LEASE_FREE);
    ck_assert_int_eq(lease_group(MDS_ACCESS_REPORT, 0), LEASE_FREE);
    ck_assert_int_eq(lease_group(MDS_ACCESS_OPEN, O_RDWR), LEASE_TAKE);
    ck_assert_int_eq(lease_group(MDS_ACCESS_OPEN, O_RDWR | O_TRUNC), LEASE_SOLE);
    ck_assert_int_eq(lease_group(LEASE_ACCESS_GET, MSG_LEASE_WRITE), LEASE_TAKE);
    ck_assert_int_eq(lease_group(MDS_ACCESS_UNLINK, 0), LEASE_BREAK);
    ck_assert_int_eq(lease_group(MDS_ACCESS_CUT, 0), LEASE_BREAK);
    ck_assert_int_eq(lease_group(MDS_ACCESS_WRITE, 0), LEASE_BREAK);
    ck_assert_int_eq(lease_group(MDS_ACCESS_TIMES, 0), LEASE_BREAK);
}
END_TEST

SUITE_MAIN("mds-lease", NULL, NULL, the_only_opener_gets_what_it_opened_for,
           readers_share_and_a_writer_among_others_gets_nothing,
           a_lease_asked_for_to_grow_is_marked_when_others_have_the_file_open,
           conflicts_follow_the_table, members_of_one_group_are_inside_together_and_no_others,
           every_access_has_its_group)
