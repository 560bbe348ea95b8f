/* SPDX-License-Identifier: Apache-2.0 */
/* Access lists: what is one, whom it lets do what, what new files get of it. */
#include <check.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/compiler.h"
#include "mds/ns/acl.h"
#include "mds/ns/ns.h"
#include "tests/support/suite.h"

/* "u::rw-,u:7:rwx,m::r--,...", as setfacl(1) writes it. */
static struct msg_bytes acl(const char *text)
{
    static uint8_t out[8][256];
    static unsigned turn;
    uint8_t *p = out[turn++ % 8];
    uint32_t n = 0;

    le32_store(p, 2);
    for (const char *s = text; *s; s += strcspn(s, ","), s += *s == ',') {
        uint32_t id = s[2] == ':' ? (uint32_t)ACL_UNDEFINED_ID : (uint32_t)atoi(s + 2);
        const char *perm = strchr(s + 2, ':') + 1;
        unsigned tag = s[0] == 'u'   ? (s[2] == ':' ? ACL_USER_OBJ : ACL_USER)
                       : s[0] == 'g' ? (s[2] == ':' ? ACL_GROUP_OBJ : ACL_GROUP)
                       : s[0] == 'm' ? ACL_MASK
                                     : ACL_OTHER;

        le16_store(p + 4 + n * 8, (uint16_t)tag);
        le16_store(p + 6 + n * 8,
                   (uint16_t)((perm[0] == 'r') * 4 + (perm[1] == 'w') * 2 + (perm[2] == 'x')));
        le32_store(p + 8 + n * 8, id);
        n++;
    }
    return (struct msg_bytes){p, 4 + n * 8};
}

static const struct {
    const char *text;
    int rc;
} check_cases[] = {
    {"u::rw-,g::r--,o::r--", 0},
    {"u::rw-,u:5:rw-,g::r--,g:6:r--,m::rw-,o::r--", 0},
    {"u::rw-,u:5:rw-,u:5:r--,g::r--,m::rw-,o::r--", 0}, /* the first one counts */
    {"u::rw-,u:5:rw-,g::r--,o::r--", -EINVAL},          /* no mask */
    {"u::rw-,g::r--,g:5:r--,o::r--", -EINVAL},
    {"u::rw-,g::r--", -EINVAL},
    {"g::r--,o::r--", -EINVAL},
    {"u::rw-,o::r--", -EINVAL},
    {"g::r--,u::rw-,o::r--", -EINVAL}, /* out of order */
    {"u::rw-,u::rw-,g::r--,o::r--", -EINVAL},
    {"u::rw-,g::r--,m::r--,m::r--,o::r--", -EINVAL},
    {"", 0},
};

START_TEST(a_list_is_checked_before_it_is_believed)
{
    struct msg_bytes a = acl(check_cases[_i].text);

    ck_assert_int_eq(ns_acl_check(&a), check_cases[_i].rc);
}
END_TEST

START_TEST(bytes_that_are_no_list_are_refused)
{
    struct msg_bytes a = acl("u::rw-,g::r--,o::r--");
    uint8_t copy[8 + NS_ACL_BYTES_MAX] = {2};
    struct msg_bytes b = {copy, 0};

    ck_assert_int_eq(ns_acl_check(&b), 0);
    ck_assert(ns_acl_is_empty(&b));
    memcpy(copy, a.data, a.len);
    for (b.len = 1; b.len < a.len; b.len++)
        ck_assert_int_eq(ns_acl_check(&b), b.len == 4 ? 0 : -EINVAL);
    b.len = a.len;
    ck_assert_int_eq(ns_acl_check(&b), 0);
    copy[6] = 8; /* a permission that is none */
    ck_assert_int_eq(ns_acl_check(&b), -EINVAL);
    copy[6] = 6;
    copy[4] = 0x40; /* a tag that is none */
    ck_assert_int_eq(ns_acl_check(&b), -EINVAL);
    copy[4] = ACL_USER_OBJ;
    copy[0] = 3;
    ck_assert_int_eq(ns_acl_check(&b), -EOPNOTSUPP);
    copy[0] = 2;
    b.len = NS_ACL_BYTES_MAX + 8;
    ck_assert_int_eq(ns_acl_check(&b), -E2BIG);
}
END_TEST

#define LIST "u::---,u:5:rw-,u:6:---,g::r--,g:300:-w-,g:400:rwx,m::rw-,o::--x"
static const uint32_t both[] = {300, 20}, named[] = {400};
static const struct {
    uint32_t mode;
    struct msg_cred cred;
    unsigned want;
    int rc;
} access_cases[] = {
    {0761, {.uid = 10}, NS_READ | NS_WRITE | NS_EXEC, 0}, /* the owner: the mode */
    {0061, {.uid = 10, .gid = 400}, NS_READ, -EACCES},
    {0761, {.uid = 5}, NS_READ | NS_WRITE, 0},
    {0761, {.uid = 5}, NS_EXEC, -EACCES},
    {0741, {.uid = 5}, NS_READ, 0}, /* under the mask, which is the mode's group */
    {0741, {.uid = 5}, NS_WRITE, -EACCES},
    {0761, {.uid = 6, .gid = 20}, NS_READ, -EACCES}, /* a user's entry decides, not his groups */
    {0761, {.uid = 7, .gid = 20}, NS_READ, 0},
    {0761, {.uid = 7, .gid = 20}, NS_WRITE, -EACCES},
    {0761, {.uid = 7, .gid = 20, .n_groups = 2, .groups = both}, NS_WRITE, 0},
    {0761, {.uid = 7, .gid = 20, .n_groups = 2, .groups = both}, NS_READ | NS_WRITE, -EACCES},
    {0771, {.uid = 7, .gid = 1, .n_groups = 1, .groups = named}, NS_READ | NS_EXEC, 0},
    {0761, {.uid = 7, .gid = 1, .n_groups = 1, .groups = named}, NS_EXEC, -EACCES},
    {0761, {.uid = 7, .gid = 300}, NS_EXEC, -EACCES}, /* in a group: the others' x is not for him */
    {0761, {.uid = 7, .gid = 1}, NS_EXEC, 0},
    {0761, {.uid = 7, .gid = 1}, NS_READ, -EACCES},
    {0704, {.uid = 5}, NS_READ, 0}, /* an empty mask: Linux looks at the mode alone */
    {0761, {.uid = 0}, NS_READ | NS_WRITE, 0},
};

START_TEST(the_entry_that_matches_first_decides)
{
    struct mds_inode in = {.mode = S_IFREG | access_cases[_i].mode,
                           .uid = 10,
                           .gid = 20,
                           .flags = INODE_ACL,
                           .acl = acl(LIST)};

    ck_assert_int_eq(ns_access(&in, &access_cases[_i].cred, access_cases[_i].want),
                     access_cases[_i].rc);
}
END_TEST

START_TEST(a_list_that_was_not_loaded_grants_nothing)
{
    struct mds_inode in = {.mode = S_IFREG | 0777, .uid = 10, .gid = 20, .flags = INODE_ACL};

    ck_assert_int_eq(ns_access(&in, &(struct msg_cred){.uid = 5}, NS_READ), -EACCES);
    ck_assert_int_eq(ns_access(&in, &(struct msg_cred){.uid = 10}, NS_READ), 0);
}
END_TEST

START_TEST(a_list_shows_what_the_mode_says)
{
    struct msg_bytes a = acl(LIST), want = acl("u::rwx,u:5:rw-,u:6:---,g::r--,g:300:-w-,"
                                               "g:400:rwx,m::r-x,o::---");
    uint8_t out[256];
    uint32_t mode;

    ns_acl_show(&a, S_IFREG | 0750, out);
    ck_assert_mem_eq(out, want.data, want.len);
    ck_assert(!ns_acl_mode(&a, &mode));
    ck_assert_uint_eq(mode, 0061);
    a = acl("u::rwx,g::r-x,o::--x");
    ck_assert(ns_acl_mode(&a, &mode));
    ck_assert_uint_eq(mode, 0751);
    a = acl("u::rwx,g::r-x,m::rw-,o::--x"); /* a mask alone is more than a mode */
    ck_assert(!ns_acl_mode(&a, &mode));
    ck_assert_uint_eq(mode, 0761);
}
END_TEST

START_TEST(ids_of_entries_without_one_have_one_form)
{
    struct msg_bytes a = acl("u::rwx,u:7:r-x,g::r-x,m::rwx,o::--x");
    uint8_t odd[64], out[64];

    memcpy(odd, a.data, a.len);
    le32_store(odd + 8, 12345);
    ns_acl_copy(&(struct msg_bytes){odd, a.len}, out);
    ck_assert_mem_eq(out, a.data, a.len);
}
END_TEST

static const struct {
    const char *text;
    uint32_t mode, got;
    bool list;
} inherit_cases[] = {
    {"u::rwx,g::r-x,o::---", S_IFREG | 0666, S_IFREG | 0640, false},
    {"u::rwx,g::r-x,o::r-x", S_IFDIR | 0777, S_IFDIR | 0755, false},
    {"u::rwx,u:5:rwx,g::r-x,m::rwx,o::---", S_IFREG | 0666, S_IFREG | 0660, true},
    {"u::rwx,u:5:rwx,g::rwx,m::r-x,o::r--", S_IFREG | 04600, S_IFREG | 04600, true},
    {"u::r--,g::rwx,m::rwx,o::rwx", S_IFREG | 0777, S_IFREG | 0477, true},
};

START_TEST(a_default_list_counts_instead_of_the_umask)
{
    struct msg_bytes a = acl(inherit_cases[_i].text);
    uint32_t mode = inherit_cases[_i].mode;

    ck_assert_int_eq(ns_acl_inherit(&a, &mode), inherit_cases[_i].list);
    ck_assert_uint_eq(mode, inherit_cases[_i].got);
}
END_TEST

#define LOOP(t, fn, cases) tcase_add_loop_test(t, fn, 0, (int)ARRAY_LEN(cases))

int main(void)
{
    TCase *t = tcase_create("acl");

    tcase_set_timeout(t, 60);
    LOOP(t, a_list_is_checked_before_it_is_believed, check_cases);
    tcase_add_test(t, bytes_that_are_no_list_are_refused);
    LOOP(t, the_entry_that_matches_first_decides, access_cases);
    tcase_add_test(t, a_list_that_was_not_loaded_grants_nothing);
    tcase_add_test(t, a_list_shows_what_the_mode_says);
    tcase_add_test(t, ids_of_entries_without_one_have_one_form);
    LOOP(t, a_default_list_counts_instead_of_the_umask, inherit_cases);
    return suite_run_case("acl", t);
}
