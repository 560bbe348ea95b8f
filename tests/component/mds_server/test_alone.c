// SPDX-License-Identifier: Apache-2.0
/* Being alone with a directory: who is told so, and who waits for whom because of it. */
#include "mds/shard/shard_int.h"
#include "mds/store/key_fmt.h"
#include "proto/dirent_fmt.h"
#include "proto/header_fmt.h"
#include "tests/component/mds_server/rig_int.h"

static struct rig rig;
static struct rig_call other; /* of a client that has to wait */
static uint64_t dir, file;

static uint64_t made(int status, const void *rep)
{
    ck_ok(status);
    return ((const struct msg_inode_rep *)rep)->inode.attr.ino;
}

static uint64_t make(unsigned client, unsigned op, uint64_t parent, const char *name)
{
    struct msg_create_req req = {
        .parent = parent, .name = str(name), .mode = op == RPC_OP_MKDIR ? 040777 : 0100666};
    const void *rep = NULL;
    int status = rig_do(&rig, client, op, &req, &rep);

    return made(status, rep);
}

/* The first wish has the session marked, the second one is heard. */
static void be_alone_with(unsigned client, uint64_t ino)
{
    ck_ok(rig_list(&rig, client, ino, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
    rig_settle(&rig);
    ck_ok(rig_list(&rig, client, ino, true));
    ck_assert(rig_page.dir);
    ck_assert_uint_eq(rig_page.n_alone, 1);
}

static void be_alone(unsigned client)
{
    be_alone_with(client, dir);
}

static void setup(void)
{
    rig_begin(&rig, 2, RIG_CLIENTS);
    dir = make(0, RPC_OP_MKDIR, KEY_ROOT_INO, "d");
    file = make(0, RPC_OP_MKNOD, dir, "f");
}

static void teardown(void)
{
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig_client_answer(&rig, i);
    rig_settle(&rig);
    rig_forget(&other);
    rig_end(&rig);
}

static unsigned told(unsigned client, uint64_t ino)
{
    return rig_client_count(&rig.client[client], RPC_OP_INVALIDATE, ino);
}

/* Client 1 sends, and waits for client 0, which is silent. */
static void has_to_wait(unsigned op, const void *req)
{
    be_alone(0);
    rig.client[0].mute = true;
    rig_send(&rig, 1, rpc_op_flags(op) & OP_SLOT ? 2 : 0, &other, op, req);
    rig_settle(&rig);
    ck_assert(!other.done);
    ck_assert_uint_eq(told(0, dir), 1);
}

static void is_served(int status)
{
    rig_client_answer(&rig, 0);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &other));
    ck_assert_int_eq(other.status, status);
}

START_TEST(a_session_is_alone_with_what_nobody_else_watches)
{
    be_alone(0);
    ck_assert_uint_eq(told(0, dir), 0);
    ck_ok(rig_list(&rig, 0, dir, false));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
}
END_TEST

START_TEST(nobody_is_alone_with_what_others_watch)
{
    struct msg_name_req name = {.parent = dir, .name = str("f")};

    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &name, NULL));
    ck_ok(rig_list(&rig, 0, dir, true));
    rig_settle(&rig);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
}
END_TEST

START_TEST(nobody_is_alone_with_a_file_that_others_have_open)
{
    const struct msg_inode_rep *rep = rig_open_file(&rig, 1, file, O_RDONLY);
    uint64_t id = rep->open_id;

    ck_ok(rig_list(&rig, 0, dir, true));
    rig_settle(&rig);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(rig_page.dir && rig_page.n_alone == 0);
    rig_close_file(&rig, 1, file, id);
}
END_TEST

START_TEST(a_lookup_waits_for_who_is_alone_with_the_directory)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};

    has_to_wait(RPC_OP_LOOKUP, &req);
    is_served(0);
}
END_TEST

START_TEST(a_lookup_that_finds_the_directory_waits)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};

    has_to_wait(RPC_OP_LOOKUP, &req);
    is_served(0);
}
END_TEST

START_TEST(attributes_of_a_file_wait_for_who_is_alone_with_it)
{
    struct msg_ino_req req = {.ino = file};

    has_to_wait(RPC_OP_GETATTR, &req);
    is_served(0);
}
END_TEST

START_TEST(an_open_for_reading_waits)
{
    struct msg_open_req req = {.ino = file, .flags = O_RDONLY};

    has_to_wait(RPC_OP_OPEN, &req);
    is_served(0);
}
END_TEST

START_TEST(a_name_that_is_in_the_way_is_not_believed_before)
{
    struct msg_create_req req = {.parent = dir, .name = str("f"), .mode = 0100666};
    struct msg_name_req gone = {.parent = dir, .name = str("f")};

    has_to_wait(RPC_OP_MKNOD, &req); /* would be EEXIST */
    ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &gone, NULL));
    is_served(0);
}
END_TEST

START_TEST(a_page_of_the_directory_above_tells_no_attributes)
{
    be_alone(0);
    ck_ok(rig_list(&rig, 1, KEY_ROOT_INO, false));
    ck_assert_uint_eq(rig_page.n, 1);
    ck_assert_uint_eq(rig_page.n_attributes, 0);
    ck_assert_uint_eq(told(0, dir), 0);
}
END_TEST

START_TEST(its_own_requests_do_not_wait)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};

    be_alone(0);
    rig.client[0].mute = true;
    ck_ok(rig_do(&rig, 0, RPC_OP_LOOKUP, &req, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &req, NULL));
    ck_assert_uint_eq(told(0, dir), 0);
}
END_TEST

static int64_t ns_of(struct msg_time t)
{
    return t.sec * (int64_t)NS_PER_S + t.nsec;
}

START_TEST(a_removal_answered_ahead_takes_its_time_along)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};
    struct mds_inode before, after;

    ck_ok(rig_inode(&rig, dir, &before));
    rig_pass(&rig, 10000);
    req.when_ns = (uint64_t)ns_of(before.mtime) + 5 * NS_PER_S;
    ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &req, NULL));
    ck_ok(rig_inode(&rig, dir, &after));
    ck_assert_int_eq(ns_of(after.mtime), (int64_t)req.when_ns);
}
END_TEST

START_TEST(a_removal_answered_ahead_turns_no_time_back)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};
    struct mds_inode before, after;

    rig_pass(&rig, 10000);
    make(0, RPC_OP_MKNOD, dir, "g");
    ck_ok(rig_inode(&rig, dir, &before));
    req.when_ns = (uint64_t)ns_of(before.mtime) - 5 * NS_PER_S;
    ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &req, NULL));
    ck_ok(rig_inode(&rig, dir, &after));
    ck_assert_int_eq(ns_of(after.mtime), ns_of(before.mtime));
}
END_TEST

START_TEST(a_removal_answered_ahead_may_find_any_time_set)
{
    static const int64_t seconds[] = {INT64_MIN, -1, 32503680000, INT64_MAX};
    struct msg_name_req req = {.parent = dir};
    struct mds_inode in;
    uint64_t now;

    ck_ok(rig_inode(&rig, dir, &in));
    now = (uint64_t)ns_of(in.mtime);
    for (unsigned i = 0; i < ARRAY_LEN(seconds); i++) {
        char name[] = {(char)('k' + i), 0};
        struct msg_setattr_req set = {
            .ino = dir, .set = MSG_SET_MTIME, .mtime = {.sec = seconds[i]}};

        make(0, RPC_OP_MKNOD, dir, name);
        ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL));
        req.name = str(name);
        req.when_ns = now;
        ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &req, NULL));
        ck_ok(rig_inode(&rig, dir, &in));
        ck_assert_int_eq(ns_of(in.mtime), (int64_t)now);
    }
}
END_TEST

START_TEST(what_was_set_ahead_takes_its_time_along_and_turns_none_back)
{
    struct msg_setattr_req set = {.ino = dir, .set = MSG_SET_MODE, .mode = 0750};
    struct mds_inode before, after;

    ck_ok(rig_inode(&rig, dir, &before));
    rig_pass(&rig, 10000);
    set.when_ns = (uint64_t)ns_of(before.ctime) + 5 * NS_PER_S;
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL));
    ck_ok(rig_inode(&rig, dir, &after));
    ck_assert_int_eq(ns_of(after.ctime), (int64_t)set.when_ns);
    ck_assert_int_eq(ns_of(after.mtime), ns_of(before.mtime));
    ck_assert_uint_eq(after.mode, S_IFDIR | 0750);
    set.when_ns -= NS_PER_S;
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL));
    ck_ok(rig_inode(&rig, dir, &before));
    ck_assert_int_eq(ns_of(before.ctime), ns_of(after.ctime));
    set.when_ns = UINT64_MAX; /* not to be believed */
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL));
    ck_ok(rig_inode(&rig, dir, &after));
    ck_assert_int_gt(ns_of(after.ctime), ns_of(before.ctime));
}
END_TEST

START_TEST(being_alone_ends_with_the_answer_and_does_not_come_back_at_once)
{
    struct msg_ino_req req = {.ino = dir};

    be_alone(0);
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &req, NULL));
    ck_assert_uint_eq(told(0, dir), 1);
    req.ino = file;
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &req, NULL));
    ck_assert_uint_eq(told(0, dir), 1); /* the file's went with it */
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
}
END_TEST

START_TEST(a_change_of_another_ends_it_too)
{
    be_alone(0);
    make(1, RPC_OP_MKNOD, dir, "g");
    ck_assert_uint_ge(told(0, dir), 1);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir);
}
END_TEST

START_TEST(who_is_alone_and_silent_is_evicted)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};

    has_to_wait(RPC_OP_LOOKUP, &req);
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 60000, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(who_waits_for_this_server_is_not_evicted_for_being_late)
{
    struct msg_name_req looked = {.parent = KEY_ROOT_INO, .name = str("none")};
    struct msg_create_req blocked = {.parent = KEY_ROOT_INO, .name = str("none"), .mode = 0100666};
    struct msg_name_req req = {.parent = dir, .name = str("f")};
    struct msg_ino_req mine = {.ino = dir};
    struct rig_call change = {0};

    be_alone(0);
    ck_assert_int_eq(rig_do(&rig, 2, RPC_OP_LOOKUP, &looked, NULL), -ENOENT);
    rig.client[2].mute = rig.client[0].mute = true;
    rig_send(&rig, 0, 3, &change, RPC_OP_MKNOD, &blocked); /* until client 2 is evicted */
    rig_settle(&rig);
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    rig_pass(&rig, RIG_LEASE / NS_PER_MS + 500);
    ck_assert(!change.done && !other.done);
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &mine, NULL));
    ck_assert(rig_until(&rig, 60000, rig_is_done, &change));
    ck_ok(change.status);
    is_served(0);
    rig_forget(&change);
}
END_TEST

/* It asks the next server: to programs a restart is no signal. */
START_TEST(a_read_that_waits_when_the_server_stops_is_to_be_sent_again)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};

    has_to_wait(RPC_OP_LOOKUP, &req);
    rig_restart(&rig);
    ck_assert(other.done);
    ck_assert_int_eq(other.status, -AIFS_EBUSY_SERVER);
}
END_TEST

START_TEST(after_a_restart_reads_wait_until_who_was_alone_is_settled)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};
    struct msg_reclaim_req mine = {.last = true, .unsettled = true}, nothing = {.last = true};

    be_alone(0);
    rig_restart(&rig);
    for (unsigned i = 1; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &mine, NULL));
    rig_settle(&rig);
    ck_assert(!other.done);
    ck_ok(rig_do(&rig, 0, RPC_OP_LOOKUP, &req, NULL)); /* its own */
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &nothing, NULL));
    ck_assert(rig_until(&rig, 100, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(after_a_restart_two_who_are_not_settled_do_not_wait_for_each_other)
{
    struct msg_name_req mine = {.parent = dir, .name = str("n"), .when_ns = 1};
    struct msg_name_req theirs = {.name = str("g"), .when_ns = 1};
    struct msg_setattr_req set = {.ino = dir, .set = MSG_SET_MODE, .mode = 0700, .when_ns = 1};
    struct msg_rename_req move = {
        .parent = dir, .new_parent = dir, .name = str("f"), .new_name = str("n"), .when_ns = 1};
    struct msg_reclaim_req unsettled = {.last = true, .unsettled = true}, nothing = {.last = true};

    theirs.parent = make(1, RPC_OP_MKDIR, KEY_ROOT_INO, "e");
    make(1, RPC_OP_MKNOD, theirs.parent, "g");
    be_alone(0);
    be_alone_with(1, theirs.parent);
    rig_restart(&rig);
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, i < 2 ? &unsettled : &nothing, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &move, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_UNLINK, &mine, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_UNLINK, &theirs, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL));
    set.ino = theirs.parent;
    ck_ok(rig_do(&rig, 1, RPC_OP_SETATTR, &set, NULL));
}
END_TEST

START_TEST(after_a_restart_what_was_not_answered_ahead_waits_for_others_to_settle)
{
    struct msg_name_req mine = {.parent = dir, .name = str("f")};
    struct msg_reclaim_req unsettled = {.last = true, .unsettled = true}, nothing = {.last = true};
    uint64_t dir1 = make(1, RPC_OP_MKDIR, KEY_ROOT_INO, "e");

    make(1, RPC_OP_MKNOD, dir1, "g");
    be_alone(0);
    be_alone_with(1, dir1);
    rig_restart(&rig);
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, i < 2 ? &unsettled : &nothing, NULL));
    rig_send(&rig, 0, 1, &other, RPC_OP_UNLINK, &mine);
    rig_settle(&rig);
    ck_assert(!other.done);
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
    ck_assert(rig_until(&rig, 100, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(after_a_restart_nobody_is_alone_before_it_is_settled)
{
    struct msg_reclaim_req mine = {.last = true, .unsettled = true}, nothing = {.last = true};

    be_alone(0);
    rig_restart(&rig);
    for (unsigned i = 1; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &mine, NULL));
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(rig_page.dir);
}
END_TEST

START_TEST(nobody_is_alone_while_changes_wait_for_others_to_reclaim)
{
    struct msg_reclaim_req nothing = {.last = true};

    be_alone(0);
    rig_restart(&rig);
    for (unsigned i = 0; i < 2; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
    ck_ok(rig_do(&rig, 2, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(rig_page.dir);
}
END_TEST

START_TEST(after_a_restart_who_never_settles_is_evicted)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};
    struct msg_reclaim_req mine = {.last = true, .unsettled = true}, nothing = {.last = true};

    be_alone(0);
    rig_restart(&rig);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &mine, NULL));
    for (unsigned i = 1; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    rig_pass(&rig, 3 * RIG_LEASE / NS_PER_MS);
    ck_assert(!other.done);
    ck_assert(rig_until(&rig, 60000, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(after_a_restart_nobody_waits_for_who_was_never_alone)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};
    struct msg_reclaim_req nothing = {.last = true};

    rig_restart(&rig);
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    ck_assert(rig_until(&rig, 0, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(after_a_restart_who_was_alone_and_does_not_come_back_is_evicted)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};
    struct msg_reclaim_req nothing = {.last = true};

    be_alone(0);
    rig_restart(&rig);
    rig_client_forget(&rig, 0);
    for (unsigned i = 1; i < RIG_CLIENTS; i++)
        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    ck_assert(rig_until(&rig, 60000, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(what_is_not_used_is_given_back_and_the_mark_goes)
{
    struct msg_name_req req = {.parent = KEY_ROOT_INO, .name = str("d")};
    struct msg_reclaim_req nothing = {.last = true};

    be_alone(0);
    rig_pass(&rig, 62000);
    ck_assert_uint_eq(told(0, dir), 1);
    rig_pass(&rig, 62000);
    rig_restart(&rig);
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send(&rig, 1, 0, &other, RPC_OP_LOOKUP, &req);
    ck_assert(rig_until(&rig, 0, rig_is_done, &other));
    ck_ok(other.status);
}
END_TEST

START_TEST(what_is_asked_for_again_is_not_given_back)
{
    be_alone(0);
    rig_pass(&rig, 40000);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(rig_page.dir);
    rig_pass(&rig, 40000);
    ck_assert_uint_eq(told(0, dir), 0);
    rig_pass(&rig, 22000);
    ck_assert_uint_eq(told(0, dir), 1);
}
END_TEST

/* So many parts of what is free are the reserve. */
static void reserve_one_of(uint64_t parts)
{
    struct shard *s = rig.mds->shards[0];

    s->o.reserve_bytes = store_free_bytes(s->store) / parts;
    shard_check_space(s);
}

START_TEST(nobody_is_alone_while_the_disk_is_nearly_full)
{
    be_alone(0);
    reserve_one_of(2);
    rig_pass(&rig, 3000);
    ck_assert_uint_eq(told(0, dir), 1);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(!rig_page.dir && rig_page.n_alone == 0);
    reserve_one_of(100);
    rig_pass(&rig, 3000);
    ck_ok(rig_list(&rig, 0, dir, true));
    ck_assert(rig_page.dir);
}
END_TEST

START_TEST(a_request_that_waits_ends_with_its_session)
{
    struct msg_name_req req = {.parent = dir, .name = str("f")};

    has_to_wait(RPC_OP_LOOKUP, &req);
    ck_ok(rig_do(&rig, 1, RPC_OP_SESSION_CLOSE, &(struct msg_empty){0}, NULL));
    rig_settle(&rig);
    ck_assert(other.done);
    ck_assert_int_eq(other.status, -AIFS_ESESSION);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_session_is_alone_with_what_nobody_else_watches);
    tcase_add_test(t, nobody_is_alone_with_what_others_watch);
    tcase_add_test(t, nobody_is_alone_with_a_file_that_others_have_open);
    tcase_add_test(t, a_lookup_waits_for_who_is_alone_with_the_directory);
    tcase_add_test(t, a_lookup_that_finds_the_directory_waits);
    tcase_add_test(t, attributes_of_a_file_wait_for_who_is_alone_with_it);
    tcase_add_test(t, an_open_for_reading_waits);
    tcase_add_test(t, a_name_that_is_in_the_way_is_not_believed_before);
    tcase_add_test(t, a_page_of_the_directory_above_tells_no_attributes);
    tcase_add_test(t, its_own_requests_do_not_wait);
    tcase_add_test(t, a_removal_answered_ahead_takes_its_time_along);
    tcase_add_test(t, a_removal_answered_ahead_turns_no_time_back);
    tcase_add_test(t, a_removal_answered_ahead_may_find_any_time_set);
    tcase_add_test(t, what_was_set_ahead_takes_its_time_along_and_turns_none_back);
    tcase_add_test(t, being_alone_ends_with_the_answer_and_does_not_come_back_at_once);
    tcase_add_test(t, a_change_of_another_ends_it_too);
    tcase_add_test(t, who_is_alone_and_silent_is_evicted);
    tcase_add_test(t, who_waits_for_this_server_is_not_evicted_for_being_late);
    tcase_add_test(t, a_read_that_waits_when_the_server_stops_is_to_be_sent_again);
    tcase_add_test(t, after_a_restart_reads_wait_until_who_was_alone_is_settled);
    tcase_add_test(t, after_a_restart_two_who_are_not_settled_do_not_wait_for_each_other);
    tcase_add_test(t, after_a_restart_what_was_not_answered_ahead_waits_for_others_to_settle);
    tcase_add_test(t, after_a_restart_nobody_is_alone_before_it_is_settled);
    tcase_add_test(t, nobody_is_alone_while_changes_wait_for_others_to_reclaim);
    tcase_add_test(t, after_a_restart_who_never_settles_is_evicted);
    tcase_add_test(t, after_a_restart_nobody_waits_for_who_was_never_alone);
    tcase_add_test(t, after_a_restart_who_was_alone_and_does_not_come_back_is_evicted);
    tcase_add_test(t, what_is_not_used_is_given_back_and_the_mark_goes);
    tcase_add_test(t, what_is_asked_for_again_is_not_given_back);
    tcase_add_test(t, nobody_is_alone_while_the_disk_is_nearly_full);
    tcase_add_test(t, a_request_that_waits_ends_with_its_session);
}

int main(void)
{
    return rig_main("mds-alone", add);
}
