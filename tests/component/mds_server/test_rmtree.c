// SPDX-License-Identifier: Apache-2.0
/* Whole trees removed: the name at once, the content behind it. */
#include <stdio.h>

#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_begin(&rig, 1, 2);
}

static void teardown(void)
{
    rig_end(&rig);
}

static uint64_t make(uint64_t parent, const char *name, unsigned op)
{
    struct msg_create_req req = {.parent = parent,
                                 .name = str(name),
                                 .mode = op == RPC_OP_MKDIR ? 040755 : 0100666,
                                 .flags = op == RPC_OP_CREATE ? MSG_CREATE_OPEN : 0,
                                 .open_flags = O_RDWR};
    const void *any;
    uint64_t ino;

    ck_ok(rig_do(&rig, 0, op, &req, &any));
    ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    if (op == RPC_OP_CREATE)
        rig_close_file(&rig, 0, ino, ((const struct msg_inode_rep *)any)->open_id);
    return ino;
}

static uint64_t make_dir(uint64_t parent, const char *name)
{
    return make(parent, name, RPC_OP_MKDIR);
}

static uint64_t make_file(uint64_t parent, const char *name)
{
    return make(parent, name, RPC_OP_CREATE);
}

static uint64_t make_large(uint64_t parent, const char *name)
{
    struct msg_create_req req = {.parent = parent,
                                 .name = str(name),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN,
                                 .open_flags = O_RDWR};
    const void *any;
    uint64_t ino, open_id;

    ck_ok(rig_do(&rig, 0, RPC_OP_CREATE, &req, &any));
    ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    open_id = ((const struct msg_inode_rep *)any)->open_id;
    rig_grow(&rig, 0, ino, open_id, 100000);
    rig_close_file(&rig, 0, ino, open_id);
    return ino;
}

static int rmtree(uint64_t parent, const char *name, uint64_t ino)
{
    struct msg_rmtree_req req = {.parent = parent, .ino = ino, .name = str(name)};
    const void *any;

    return rig_admin(&rig, RPC_OP_RMTREE, &req, &any);
}

static const struct msg_status_rep *status(void)
{
    const void *any;

    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    return any;
}

static bool gone(void *arg)
{
    (void)arg;
    return status()->n_trees == 0;
}

static bool absent(uint64_t ino)
{
    struct mds_inode in;

    return rig_inode(&rig, ino, &in) == -ENOENT;
}

START_TEST(a_tree_goes_with_all_its_content)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), dir = top, last = 0;
    char name[16];

    for (unsigned depth = 0; depth < 5; depth++) {
        for (unsigned i = 0; i < 300; i++) { /* more than a page of names */
            snprintf(name, sizeof name, "f%u", i);
            last = make_file(dir, name);
        }
        make_dir(dir, "empty");
        dir = make_dir(dir, "sub");
    }
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert(absent(top) && absent(dir) && absent(last));
    ck_assert_uint_eq(status()->inodes, 1);
    ck_assert_uint_eq(status()->trash_queue, 0);
}
END_TEST

START_TEST(the_name_is_free_as_soon_as_it_is_answered)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), again;

    make_file(top, "f");
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    again = make_dir(KEY_ROOT_INO, "top");
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert(absent(top) && !absent(again));
}
END_TEST

START_TEST(asked_twice_it_is_done_once)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), file = make_large(top, "f");

    rig.oss[0].mute = true;
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_ok(rmtree(KEY_ROOT_INO, "top", top)); /* the answer was lost */
    rig_settle(&rig);
    ck_assert(absent(file) && absent(top));
    ck_assert_uint_eq(status()->n_trees, 1); /* the target has not confirmed */
    ck_assert_uint_eq(status()->trees[0].objects, 1);
    ck_assert_uint_eq(status()->trees[0].directories, 0);
    ck_assert_uint_eq(status()->trees[0].removed, 1);
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert_int_eq(rmtree(KEY_ROOT_INO, "top", top), -ENOENT);
}
END_TEST

START_TEST(what_is_no_such_directory_is_refused)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), file = make_file(KEY_ROOT_INO, "file");

    ck_assert_int_eq(rmtree(KEY_ROOT_INO, "none", top), -ENOENT);
    ck_assert_int_eq(rmtree(KEY_ROOT_INO, "top", file), -ENOENT);
    ck_assert_int_eq(rmtree(KEY_ROOT_INO, "file", file), -ENOTDIR);
    ck_assert_int_eq(rmtree(file, "top", top), -ENOTDIR);
    ck_assert_int_eq(rmtree(12345, "top", top), -ENOENT);
    ck_assert(!absent(top) && !absent(file));
}
END_TEST

START_TEST(an_open_file_in_it_lives_until_its_last_close)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), file = make_file(top, "f");
    uint64_t open_id = rig_open_file(&rig, 1, file, O_RDONLY)->open_id;

    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert(absent(top) && !absent(file));
    rig_close_file(&rig, 1, file, open_id);
    rig_settle(&rig);
    ck_assert(absent(file));
}
END_TEST

START_TEST(a_file_with_a_name_outside_keeps_it_and_who_knows_it_is_told)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), file = make_file(top, "f");
    struct msg_link_req link = {.ino = file, .new_parent = KEY_ROOT_INO, .new_name = str("out")};
    struct mds_inode in;

    ck_ok(rig_do(&rig, 0, RPC_OP_LINK, &link, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &(struct msg_ino_req){.ino = file}, NULL));
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_ok(rig_inode(&rig, file, &in));
    ck_assert_uint_eq(in.nlink, 1);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_INVALIDATE, file), 1);
}
END_TEST

START_TEST(two_names_of_one_file_in_it_both_go)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), file = make_file(top, "a");
    struct msg_link_req link = {.ino = file, .new_parent = top, .new_name = str("b")};

    ck_ok(rig_do(&rig, 0, RPC_OP_LINK, &link, NULL));
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert(absent(file) && absent(top));
}
END_TEST

START_TEST(nothing_is_made_or_moved_in_a_tree_without_a_name)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), side = make_dir(KEY_ROOT_INO, "side");
    struct msg_create_req create = {.parent = top, .name = str("g"), .mode = 0100666};
    struct msg_rename_req in = {
        .parent = KEY_ROOT_INO, .name = str("side"), .new_parent = top, .new_name = str("side")};
    struct msg_link_req link = {
        .ino = make_file(top, "f"), .new_parent = KEY_ROOT_INO, .new_name = str("out")};

    ck_ok(rig_do(&rig, 0, RPC_OP_LINK, &link, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &(struct msg_ino_req){.ino = link.ino}, NULL));
    rig.client[1].mute = true; /* keeps the removal of f waiting, and so the tree */
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    rig_settle(&rig);
    ck_assert(!absent(top));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &create, NULL), -ENOENT);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKDIR, &create, NULL), -ENOENT);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_RENAME, &in, NULL), -ENOENT);
    ck_assert_uint_eq(status()->trash_queue, 1);
    rig_client_answer(&rig, 1);
    ck_assert(rig_until(&rig, 10000, gone, NULL));
    ck_assert(absent(top));
    ck_assert(!absent(side));
}
END_TEST

START_TEST(a_restarted_server_goes_on_where_it_was)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top"), dir = top, file = 0;

    for (unsigned i = 0; i < 10; i++) {
        file = make_large(dir, "f");
        dir = make_dir(dir, "d");
    }
    rig.oss[0].mute = true;
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig.oss[0].mute = false;
    rig_oss_restart(&rig, 0);
    rig_client_open(&rig, 0);
    rig_client_open(&rig, 1);
    ck_assert(rig_until(&rig, 60000, gone, NULL));
    ck_assert(absent(top) && absent(dir) && absent(file));
    ck_assert_uint_eq(status()->inodes, 1);
}
END_TEST

START_TEST(who_keeps_the_name_is_told_before_it_goes)
{
    uint64_t top = make_dir(KEY_ROOT_INO, "top");
    struct msg_name_req look = {.parent = KEY_ROOT_INO, .name = str("top")};

    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &look, NULL));
    ck_ok(rmtree(KEY_ROOT_INO, "top", top));
    ck_assert_uint_ge(rig_client_count(&rig.client[1], RPC_OP_INVALIDATE, KEY_ROOT_INO), 1);
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LOOKUP, &look, NULL), -ENOENT);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_tree_goes_with_all_its_content);
    tcase_add_test(t, the_name_is_free_as_soon_as_it_is_answered);
    tcase_add_test(t, asked_twice_it_is_done_once);
    tcase_add_test(t, what_is_no_such_directory_is_refused);
    tcase_add_test(t, an_open_file_in_it_lives_until_its_last_close);
    tcase_add_test(t, a_file_with_a_name_outside_keeps_it_and_who_knows_it_is_told);
    tcase_add_test(t, two_names_of_one_file_in_it_both_go);
    tcase_add_test(t, nothing_is_made_or_moved_in_a_tree_without_a_name);
    tcase_add_test(t, a_restarted_server_goes_on_where_it_was);
    tcase_add_test(t, who_keeps_the_name_is_told_before_it_goes);
}

int main(void)
{
    return rig_main("mds-rmtree", add);
}
