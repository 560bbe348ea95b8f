// SPDX-License-Identifier: Apache-2.0
/* Files that are made under numbers that their session has given them: creations answered ahead. */
#include <stdio.h>

#include "mds/store/key_fmt.h"
#include "proto/header_fmt.h"
#include "proto/number.h"
#include "tests/component/mds_server/rig_int.h"

#define ROOT KEY_ROOT_INO

static struct rig rig;
static struct rig_call held;

static void setup(void)
{
    rig_begin(&rig, 2, 2);
}

static void teardown(void)
{
    for (unsigned i = 0; i < 2; i++)
        rig_client_answer(&rig, i);
    rig_settle(&rig);
    rig_forget(&held);
    rig_end(&rig);
}

static uint64_t number(unsigned client, uint32_t count)
{
    return number_given(ROOT, rig.client[client].session, count);
}

static struct msg_create_req file_req(const char *name, uint64_t ino)
{
    return (struct msg_create_req){
        .parent = ROOT, .name = str(name), .mode = S_IFREG | 0640, .ino = ino, .when_ns = 1};
}

static int make(unsigned client, const char *name, uint64_t ino)
{
    struct msg_create_req req = file_req(name, ino);

    return rig_do(&rig, client, RPC_OP_MKNOD, &req, NULL);
}

static uint64_t find(unsigned client, const char *name)
{
    struct msg_name_req req = {.parent = ROOT, .name = str(name)};
    const void *rep;
    int rc = rig_do(&rig, client, RPC_OP_LOOKUP, &req, &rep);

    ck_assert(rc == 0 || rc == -ENOENT);
    return rc == 0 ? ((const struct msg_inode_rep *)rep)->inode.attr.ino : 0;
}

START_TEST(a_file_has_the_number_that_its_session_gives)
{
    uint64_t files;
    struct mds_inode in;

    ck_ok(make(0, "a", number(0, 0)));
    ck_ok(make(0, "b", number(0, NUMBER_COUNT_MAX)));
    ck_assert_uint_eq(find(1, "a"), number(0, 0));
    files = find(1, "b");
    ck_assert_uint_eq(files, number(0, NUMBER_COUNT_MAX));
    ck_ok(rig_inode(&rig, files, &in));
    ck_assert_uint_eq(in.mode, S_IFREG | 0640);
    ck_assert_uint_ne(in.layout.table_len, 0);
}
END_TEST

START_TEST(numbers_of_others_and_numbers_in_use_are_refused)
{
    struct msg_create_req fifo = file_req("p", 0);

    ck_assert_int_eq(make(0, "a", number(1, 0)), -AIFS_EPROTO);
    ck_assert_int_eq(make(0, "a", ROOT), -AIFS_EPROTO);
    ck_assert_int_eq(make(0, "a", UINT64_MAX), -AIFS_EPROTO);
    ck_assert_int_eq(make(0, "a", number(0, 0) | (uint64_t)1 << KEY_INODE_BITS), -AIFS_EPROTO);
    ck_ok(make(0, "a", number(0, 0)));
    ck_assert_int_eq(make(0, "a", number(0, 1)), -EEXIST);
    ck_assert_int_eq(make(0, "b", number(0, 0)), -AIFS_EPROTO);
    fifo.mode = S_IFIFO | 0600;
    fifo.ino = number(0, 2);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &fifo, NULL), -EINVAL);
    ck_assert_uint_eq(find(0, "b"), 0);
    ck_assert_uint_eq(find(0, "p"), 0);
}
END_TEST

START_TEST(only_files_and_directories_are_made_ahead)
{
    static const uint16_t ops[] = {RPC_OP_CREATE, RPC_OP_SYMLINK};
    struct msg_create_req req = file_req("a", number(0, 0));

    req.target = str("b");
    for (unsigned k = 0; k < ARRAY_LEN(ops); k++)
        ck_assert_int_eq(rig_do(&rig, 0, ops[k], &req, NULL), -AIFS_EPROTO);
    req.flags = MSG_CREATE_UNNAMED | MSG_CREATE_OPEN;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -AIFS_EPROTO);
    req.flags = 0;
    req.data = str("contents");
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKDIR, &req, NULL), -EINVAL);
    ck_ok(make(0, "a", number(0, 0)));
    req.data.len = 0; /* also where the name exists */
    for (unsigned k = 0; k < ARRAY_LEN(ops); k++)
        ck_assert_int_eq(rig_do(&rig, 0, ops[k], &req, NULL), -AIFS_EPROTO);
}
END_TEST

START_TEST(a_number_is_used_once_whatever_became_of_its_file)
{
    struct msg_reclaim_req nothing = {.last = true};

    ck_ok(make(0, "a", number(0, 7)));
    ck_assert_int_eq(make(0, "a", number(0, 8)), -EEXIST); /* not used */
    ck_ok(rig_unlink(&rig, 0, "a"));
    ck_assert_int_eq(make(0, "b", number(0, 7)), -AIFS_EPROTO);
    rig_restart(&rig);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
    ck_assert_int_eq(make(0, "b", number(0, 7)), -AIFS_EPROTO);
    ck_ok(make(0, "b", number(0, 8)));
    ck_ok(make(1, "c", number(1, 7))); /* another's */
}
END_TEST

START_TEST(numbers_come_in_any_order_within_the_window)
{
    static const uint32_t counts[] = {5, 3, NUMBER_WINDOW + 2, 4, NUMBER_WINDOW + 1};
    char name[16];

    for (unsigned k = 0; k < ARRAY_LEN(counts); k++) {
        snprintf(name, sizeof name, "f%u", k);
        ck_ok(make(0, name, number(0, counts[k])));
        ck_assert_int_eq(make(0, "again", number(0, counts[k])), -AIFS_EPROTO);
    }
    ck_assert_int_eq(make(0, "late", number(0, 2)), -AIFS_EPROTO);
    ck_ok(make(0, "last", number(0, NUMBER_COUNT_MAX)));
    ck_assert_int_eq(make(0, "late", number(0, NUMBER_WINDOW + 3)), -AIFS_EPROTO);
}
END_TEST

static bool numbers_gone(void *session)
{
    return !rig_has(&rig, KEY_GIVEN, *(uint64_t *)session);
}

START_TEST(what_a_session_has_used_is_forgotten_with_it)
{
    uint64_t session = rig.client[0].session;

    ck_ok(make(0, "a", number(0, 0)));
    ck_assert(rig_has(&rig, KEY_GIVEN, session));
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 60000, numbers_gone, &session));
    ck_assert(!rig_has(&rig, KEY_SESSION, session));
    ck_assert_int_eq(make(1, "b", number_given(ROOT, session, 1)), -AIFS_EPROTO);
}
END_TEST

START_TEST(times_that_have_not_come_yet_are_not_believed)
{
    struct msg_create_req req = file_req("a", number(0, 0));
    struct mds_inode dir, in;

    req.data = (struct msg_bytes){"hello", 5};
    req.when_ns = req.wrote_ns = (uint64_t)INT64_MAX;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    req.name = str("b");
    req.ino = number(0, 1);
    req.when_ns = req.wrote_ns = UINT64_MAX;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    ck_ok(rig_inode(&rig, ROOT, &dir));
    for (unsigned k = 0; k < 2; k++) {
        ck_ok(rig_inode(&rig, number(0, k), &in));
        ck_assert(in.mtime.sec <= dir.mtime.sec && in.ctime.sec <= dir.mtime.sec);
        ck_assert(in.mtime.nsec < NS_PER_S && in.btime.sec <= dir.mtime.sec);
    }
}
END_TEST

START_TEST(what_has_been_written_since_goes_along)
{
    struct msg_batch_item items[2] = {
        {.op = RPC_OP_MKNOD, .parent = ROOT, .name = str("a"), .mode = 04711},
        {.op = RPC_OP_MKNOD, .parent = ROOT, .name = str("b"), .mode = 0600}};
    struct msg_batch_req req = {.n_items = 2, .items = items, .cred = {.uid = 7, .gid = 7}};
    struct msg_setattr_req open_to_all = {.ino = ROOT, .set = MSG_SET_MODE, .mode = 01777};
    const struct msg_batch_rep *rep;
    struct mds_inode dir, in;
    struct msg_ino_req read;
    const void *any;

    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &open_to_all, NULL));
    ck_ok(rig_inode(&rig, ROOT, &dir));
    rig_pass(&rig, 10000);
    for (unsigned k = 0; k < 2; k++) {
        items[k].ino = number(0, k);
        items[k].when_ns = (uint64_t)dir.ctime.sec * NS_PER_S + (k + 1) * NS_PER_S;
    }
    items[0].data = (struct msg_bytes){"hello", 5};
    items[0].wrote_ns = items[1].when_ns;
    ck_ok(rig_do(&rig, 0, RPC_OP_BATCH, &req, &any));
    rep = any;
    ck_ok(err_from_wire(rep->items[0].status));
    ck_ok(err_from_wire(rep->items[1].status));
    ck_ok(rig_inode(&rig, items[0].ino, &in));
    ck_assert_uint_eq(in.size, 5);
    ck_assert_uint_eq(in.mode, S_IFREG | 0711); /* as after a write by somebody else than root */
    ck_assert_int_eq(in.btime.sec, dir.ctime.sec + 1);
    ck_assert_int_eq(in.mtime.sec, dir.ctime.sec + 2);
    ck_ok(rig_inode(&rig, items[1].ino, &in));
    ck_assert_uint_eq(in.size, 0);
    ck_assert_int_eq(in.mtime.sec, dir.ctime.sec + 2);
    ck_ok(rig_inode(&rig, ROOT, &in));
    ck_assert_int_eq(in.mtime.sec, dir.ctime.sec + 2);
    read = (struct msg_ino_req){.ino = items[0].ino, .flags = MSG_INO_DATA};
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &read, &any));
    ck_assert_uint_eq(((const struct msg_inode_rep *)any)->inode.data.len, 5);
    ck_assert_mem_eq(((const struct msg_inode_rep *)any)->inode.data.data, "hello", 5);
}
END_TEST

/* As user 7, in the root, which everybody may write. */
static struct msg_create_req set_req(const char *name, uint32_t count, uint32_t set)
{
    struct msg_setattr_req open_to_all = {.ino = ROOT, .set = MSG_SET_MODE, .mode = 01777};
    struct msg_create_req req = file_req(name, number(0, count));

    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &open_to_all, NULL));
    req.cred = (struct msg_cred){.uid = 7, .gid = 7};
    req.has_since = true;
    req.since = (struct msg_set_since){
        .set = set, .mode = 02751, .uid = 7, .gid = 7, .atime = {1000, 1}, .mtime = {2000, 2}};
    return req;
}

START_TEST(what_has_been_set_since_goes_along)
{
    struct msg_create_req req = set_req("a", 0, MSG_SET_MODE | MSG_SET_ATIME | MSG_SET_MTIME);
    struct mds_inode dir, in;

    ck_ok(rig_inode(&rig, ROOT, &dir));
    rig_pass(&rig, 10000);
    req.data = str("hello");
    req.when_ns = (uint64_t)dir.ctime.sec * NS_PER_S + NS_PER_S;
    req.wrote_ns = req.when_ns + NS_PER_S;
    req.since.when_ns = req.wrote_ns + NS_PER_S;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    ck_ok(rig_inode(&rig, req.ino, &in));
    ck_assert_uint_eq(in.mode, S_IFREG | 02751);
    ck_assert(in.atime.sec == 1000 && in.atime.nsec == 1);
    ck_assert(in.mtime.sec == 2000 && in.mtime.nsec == 2);
    ck_assert_int_eq(in.btime.sec, dir.ctime.sec + 1);
    ck_assert_int_eq(in.ctime.sec, dir.ctime.sec + 3);
    ck_assert_uint_eq(in.size, 5);
    req = set_req("d", 1, MSG_SET_MODE | MSG_SET_UID | MSG_SET_GID);
    req.mode = 0700;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &req, NULL));
    ck_ok(rig_inode(&rig, req.ino, &in));
    ck_assert_uint_eq(in.mode, S_IFDIR | 02751);
}
END_TEST

START_TEST(what_a_setattr_may_not_do_is_refused_with_its_creation)
{
    static const uint32_t others[] = {MSG_SET_SIZE, MSG_SET_ATIME_NOW, MSG_SET_MTIME_NOW,
                                      MSG_SET_KILL_PRIV, 0x200};
    struct msg_create_req req = set_req("a", 0, MSG_SET_UID);
    struct mds_inode in;

    req.since.uid = 8;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL), -EPERM);
    req = set_req("a", 0, MSG_SET_GID);
    req.since.gid = 8;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL), -EPERM);
    for (unsigned k = 0; k < ARRAY_LEN(others); k++) {
        req = set_req("a", 0, others[k]);
        ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL), -EINVAL);
    }
    req.mode = S_IFIFO | 0600;
    req.ino = 0;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL), -EINVAL);
    ck_assert_uint_eq(find(0, "a"), 0);
    req = set_req("a", 0, MSG_SET_MODE | MSG_SET_GID);
    req.since.when_ns = UINT64_MAX;
    req.cred.uid = 0; /* may give it away, also with the bits that its owner has asked for */
    req.since.gid = 8;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    ck_ok(rig_inode(&rig, req.ino, &in));
    ck_assert(in.uid == 0 && in.gid == 8 && in.mode == (S_IFREG | 02751));
}
END_TEST

START_TEST(a_creation_that_is_sent_again_after_a_restart_is_executed_once)
{
    struct msg_create_req req = file_req("a", number(0, 5));
    struct msg_reclaim_req mine = {.last = true, .unsettled = true}, nothing = {.last = true};
    const struct msg_inode_rep *rep;

    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    rig_restart(&rig);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &mine, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
    rig_send_again(&rig, 0, 1, &held, RPC_OP_MKNOD, &req);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
    rep = held.c.rep;
    ck_assert_uint_eq(rep->inode.attr.ino, req.ino);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &nothing, NULL));
    ck_assert_uint_eq(find(1, "a"), req.ino);
}
END_TEST

static void list_alone(unsigned client, uint64_t dir, bool *ret_alone)
{
    struct msg_readdir_req req = {.ino = dir, .max_bytes = 65536, .plus = true, .alone = true};
    const void *rep;

    ck_ok(rig_do(&rig, client, RPC_OP_READDIR, &req, &rep));
    *ret_alone = ((const struct msg_readdir_rep *)rep)->alone;
}

static uint64_t alone_dir(unsigned client, const char *name)
{
    struct msg_create_req req = {.parent = ROOT, .name = str(name), .mode = 0777};
    const void *rep;
    uint64_t dir;
    bool alone;

    ck_ok(rig_do(&rig, client, RPC_OP_MKDIR, &req, &rep));
    dir = ((const struct msg_inode_rep *)rep)->inode.attr.ino;
    list_alone(client, dir, &alone);
    rig_settle(&rig); /* the session is marked */
    list_alone(client, dir, &alone);
    ck_assert(alone);
    return dir;
}

/* What client 0 has made where it is alone; it is silent now. */
static void has_to_wait_for(uint64_t ino, uint64_t dir)
{
    struct msg_ino_req req = {.ino = ino};

    rig.client[0].mute = true;
    rig_send(&rig, 1, 0, &held, RPC_OP_GETATTR, &req);
    rig_settle(&rig);
    ck_assert(!held.done);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_INVALIDATE, dir), 1);
    rig_client_answer(&rig, 0);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
}

START_TEST(others_wait_for_who_has_made_a_file_where_it_is_alone)
{
    uint64_t dir = alone_dir(0, "d");
    struct msg_batch_item items[2] = {
        {.op = RPC_OP_MKNOD, .parent = dir, .name = str("a"), .mode = 0600, .when_ns = 1},
        {.op = RPC_OP_MKNOD, .parent = dir, .name = str("b"), .mode = 0600, .when_ns = 1}};
    struct msg_batch_req req = {.n_items = 2, .items = items};

    items[0].ino = number(0, 0);
    items[1].ino = number(0, 1);
    ck_ok(rig_do(&rig, 0, RPC_OP_BATCH, &req, NULL));
    has_to_wait_for(items[0].ino, dir);
}
END_TEST

START_TEST(others_wait_for_who_has_made_a_single_file_there)
{
    struct msg_create_req req = file_req("a", number(0, 0));

    req.parent = alone_dir(0, "d");
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL));
    has_to_wait_for(req.ino, req.parent);
}
END_TEST

/* A directory, d, and n files in it. */
static void tree_items(struct msg_batch_item *items, unsigned n, uint64_t parent)
{
    static const char names[][2] = {"0", "1", "2", "3"};

    items[0] = (struct msg_batch_item){.op = RPC_OP_MKDIR,
                                       .parent = parent,
                                       .name = str("d"),
                                       .mode = 0700,
                                       .ino = number(0, 0),
                                       .when_ns = 1,
                                       .alone = true};
    for (unsigned k = 1; k <= n; k++)
        items[k] = (struct msg_batch_item){.op = RPC_OP_MKNOD,
                                           .parent = items[0].ino,
                                           .name = str(names[k]),
                                           .mode = 0600,
                                           .ino = number(0, k),
                                           .when_ns = 1};
}

START_TEST(a_directory_made_ahead_belongs_to_its_maker_alone_with_all_that_is_in_it)
{
    struct msg_batch_item items[3];
    struct msg_batch_req req = {.n_items = 3, .items = items};
    struct msg_name_req lookup = {.name = str("2")};
    const struct msg_batch_rep *rep;
    const uint8_t *kept;
    struct mds_inode in;
    const void *any;

    tree_items(items, 2, alone_dir(0, "p"));
    ck_ok(rig_do(&rig, 0, RPC_OP_BATCH, &req, &any));
    rep = any;
    for (unsigned k = 0; k < 3; k++)
        ck_ok(err_from_wire(rep->items[k].status));
    ck_assert_uint_eq(rep->kept.len, 3);
    kept = rep->kept.data;
    ck_assert_uint_eq(kept[0], RPC_FLAG_KEPT_DIR | RPC_FLAG_KEPT_INODE | RPC_FLAG_ALONE);
    ck_assert_uint_eq(kept[2], RPC_FLAG_KEPT_DIR | RPC_FLAG_KEPT_INODE | RPC_FLAG_ALONE);
    ck_ok(rig_inode(&rig, items[2].ino, &in));
    ck_assert_uint_ne(in.layout.table_len, 0);
    rig.client[0].mute = true;
    lookup.parent = items[0].ino;
    rig_send(&rig, 1, 0, &held, RPC_OP_LOOKUP, &lookup);
    rig_settle(&rig);
    ck_assert(!held.done);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_INVALIDATE, items[0].ino), 1);
    rig_client_answer(&rig, 0);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
}
END_TEST

START_TEST(files_of_a_directory_that_is_still_being_made_are_made_or_sent_again)
{
    struct msg_batch_item items[3];
    struct msg_batch_req dir = {.n_items = 1, .items = items},
                         files = {.n_items = 2, .items = items + 1};
    uint32_t status[2];

    tree_items(items, 2, ROOT);
    rig_send(&rig, 0, 1, &held, RPC_OP_BATCH, &dir);
    rig_send(&rig, 0, 2, &rig.call, RPC_OP_BATCH, &files);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &rig.call));
    ck_assert(rig_until(&rig, 20000, rig_is_done, &held));
    ck_ok(held.status);
    ck_ok(rig.call.status);
    for (unsigned k = 0; k < 2; k++)
        status[k] = ((const struct msg_batch_rep *)rig.call.c.rep)->items[k].status;
    for (unsigned k = 0; k < 2; k++) {
        struct msg_create_req req = file_req("", items[k + 1].ino);
        int rc = err_from_wire(status[k]);

        req.parent = items[0].ino;
        req.name = items[k + 1].name;
        ck_assert(rc == 0 || rc == -AIFS_ERETRY);
        ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_MKNOD, &req, NULL), rc == 0 ? -EEXIST : 0);
    }
}
END_TEST

START_TEST(who_makes_a_directory_is_told_at_once_that_it_is_alone_there)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("e"), .mode = 0700, .alone = true};

    (void)alone_dir(0, "d"); /* the session is marked */
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &req, NULL));
    ck_assert_uint_ne(rig.call.c.header.flags & RPC_FLAG_ALONE, 0);
    req.name = str("f");
    req.alone = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &req, NULL));
    ck_assert_uint_eq(rig.call.c.header.flags & RPC_FLAG_ALONE, 0);
    req.alone = true; /* the other session is not marked yet */
    req.name = str("g");
    ck_ok(rig_do(&rig, 1, RPC_OP_MKDIR, &req, NULL));
    ck_assert_uint_eq(rig.call.c.header.flags & RPC_FLAG_ALONE, 0);
    rig_settle(&rig);
    req.name = str("h");
    ck_ok(rig_do(&rig, 1, RPC_OP_MKDIR, &req, NULL));
    ck_assert_uint_ne(rig.call.c.header.flags & RPC_FLAG_ALONE, 0);
}
END_TEST

START_TEST(after_a_restart_two_who_make_files_ahead_do_not_wait_for_each_other)
{
    struct msg_reclaim_req unsettled = {.last = true, .unsettled = true}, nothing = {.last = true};
    struct msg_create_req mine = file_req("a", number(0, 0)), theirs = file_req("a", number(1, 0));

    mine.parent = alone_dir(0, "d");
    theirs.parent = alone_dir(1, "e");
    rig_restart(&rig);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &unsettled, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &unsettled, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &mine, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_MKNOD, &theirs, NULL));
    mine.ino = number(0, 1);
    mine.name = str("d");
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &mine, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &nothing, NULL));
    ck_ok(rig_do(&rig, 1, RPC_OP_RECLAIM, &nothing, NULL));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_file_has_the_number_that_its_session_gives);
    tcase_add_test(t, numbers_of_others_and_numbers_in_use_are_refused);
    tcase_add_test(t, only_files_and_directories_are_made_ahead);
    tcase_add_test(t, a_number_is_used_once_whatever_became_of_its_file);
    tcase_add_test(t, numbers_come_in_any_order_within_the_window);
    tcase_add_test(t, what_a_session_has_used_is_forgotten_with_it);
    tcase_add_test(t, times_that_have_not_come_yet_are_not_believed);
    tcase_add_test(t, what_has_been_written_since_goes_along);
    tcase_add_test(t, what_has_been_set_since_goes_along);
    tcase_add_test(t, what_a_setattr_may_not_do_is_refused_with_its_creation);
    tcase_add_test(t, a_directory_made_ahead_belongs_to_its_maker_alone_with_all_that_is_in_it);
    tcase_add_test(t, files_of_a_directory_that_is_still_being_made_are_made_or_sent_again);
    tcase_add_test(t, who_makes_a_directory_is_told_at_once_that_it_is_alone_there);
    tcase_add_test(t, a_creation_that_is_sent_again_after_a_restart_is_executed_once);
    tcase_add_test(t, others_wait_for_who_has_made_a_file_where_it_is_alone);
    tcase_add_test(t, others_wait_for_who_has_made_a_single_file_there);
    tcase_add_test(t, after_a_restart_two_who_make_files_ahead_do_not_wait_for_each_other);
}

int main(void)
{
    return rig_main("mds-given", add);
}
