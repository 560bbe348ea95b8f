// SPDX-License-Identifier: Apache-2.0
/* Who asks: copies, comparison, and over what capabilities count. */
#include "proto/cred.h"
#include "tests/support/suite.h"

static uint32_t groups[] = {5, 6, 7}, uids[] = {10, 2, 4000000000u, 1000}, gids[] = {20, 1};

static struct msg_cred everything(void)
{
    return (struct msg_cred){.uid = 1,
                             .gid = 2,
                             .caps = MSG_CAP_ALL,
                             .mapped = true,
                             .n_groups = 3,
                             .groups = groups,
                             .n_uids = 4,
                             .uids = uids,
                             .n_gids = 2,
                             .gids = gids};
}

START_TEST(a_copy_has_arrays_of_its_own_and_is_the_same)
{
    struct msg_cred a = everything(), b;
    uint32_t space[9];

    ck_assert_uint_eq(cred_space(&a), sizeof space);
    cred_copy(&b, &a, space);
    ck_assert(cred_is_same(&a, &b));
    ck_assert_uint_eq(cred_hash(&a), cred_hash(&b));
    ck_assert(b.groups >= space && b.gids + b.n_gids == space + 9);
}
END_TEST

START_TEST(who_is_nothing_but_a_user_needs_no_space)
{
    struct msg_cred a = {.uid = 1, .gid = 2}, b;

    ck_assert_uint_eq(cred_space(&a), 0);
    cred_copy(&b, &a, NULL);
    ck_assert(cred_is_same(&a, &b));
    ck_assert_uint_eq(cred_hash(&a), 0);
}
END_TEST

/* Number i changed. */
static struct msg_cred other(unsigned i, uint32_t *array)
{
    struct msg_cred c = everything();

    array[0] = array[1] = array[2] = array[3] = 1;
    c.uid += i == 0;
    c.gid += i == 1;
    c.caps = i == 2 ? MSG_CAP_CHOWN : c.caps;
    c.mapped = i != 3;
    c.n_groups -= i == 4;
    c.groups = i == 5 ? array : c.groups;
    c.n_uids -= i == 6 ? 2 : 0;
    c.uids = i == 7 ? array : c.uids;
    c.n_gids -= i == 8 ? 2 : 0;
    c.gids = i == 9 ? array : c.gids;
    return c;
}

START_TEST(one_who_differs_in_anything_is_another)
{
    struct msg_cred a = everything();

    for (unsigned i = 0; i < 10; i++) {
        uint32_t array[4];
        struct msg_cred b = other(i, array);

        ck_assert_msg(!cred_is_same(&a, &b), "part %u", i);
        ck_assert_msg((cred_hash(&a) == cred_hash(&b)) == (i < 2), "part %u", i);
    }
}
END_TEST

START_TEST(a_range_has_both_ends_and_may_reach_beyond_all_numbers)
{
    struct msg_cred c = everything();

    ck_assert(!cred_can_user(&c, MSG_CAP_CHOWN, 9));
    ck_assert(cred_can_user(&c, MSG_CAP_CHOWN, 10));
    ck_assert(cred_can_user(&c, MSG_CAP_CHOWN, 11));
    ck_assert(!cred_can_user(&c, MSG_CAP_CHOWN, 12));
    uids[3] = UINT32_MAX;
    ck_assert(cred_can_user(&c, MSG_CAP_CHOWN, UINT32_MAX));
    ck_assert(!cred_can_user(&c, MSG_CAP_CHOWN, 9));
}
END_TEST

START_TEST(both_owner_and_group_must_be_known)
{
    struct msg_cred c = everything();

    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 10, 20));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 10, 21));
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 12, 20));
    ck_assert(!cred_can_all(&c, MSG_CAP_CHOWN));
    c.n_gids = 1; /* half a range, from a message */
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 10, 20));
    c.mapped = false;
    ck_assert(cred_can(&c, MSG_CAP_CHOWN, 12, 21));
    ck_assert(cred_can_all(&c, MSG_CAP_CHOWN));
    c.caps = MSG_CAP_FOWNER;
    ck_assert(!cred_can(&c, MSG_CAP_CHOWN, 10, 20));
}
END_TEST

SUITE_MAIN("proto-cred", NULL, NULL, a_copy_has_arrays_of_its_own_and_is_the_same,
           who_is_nothing_but_a_user_needs_no_space, one_who_differs_in_anything_is_another,
           a_range_has_both_ends_and_may_reach_beyond_all_numbers,
           both_owner_and_group_must_be_known)
