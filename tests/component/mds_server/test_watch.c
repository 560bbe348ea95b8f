// SPDX-License-Identifier: Apache-2.0
/* Leases on attributes and names: who is told before what. */
#include <stdio.h>

#include "mds/store/key_fmt.h"
#include "proto/header_fmt.h"
#include "tests/component/mds_server/rig_int.h"

static struct rig rig;
static struct rig_call change;

static void setup(void)
{
    rig_begin(&rig, 2, RIG_CLIENTS);
}

static void teardown(void)
{
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig_client_answer(&rig, i);
    rig_settle(&rig);
    rig_forget(&change);
    rig_end(&rig);
}

/* The leases that came with the answer. */
static unsigned kept(void)
{
    return rig.call.c.header.flags & (RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR);
}

static int lookup(unsigned client, uint64_t dir, const char *name)
{
    struct msg_name_req req = {.parent = dir, .name = str(name)};

    return rig_do(&rig, client, RPC_OP_LOOKUP, &req, NULL);
}

static int getattr(unsigned client, uint64_t ino)
{
    struct msg_ino_req req = {.ino = ino};

    return rig_do(&rig, client, RPC_OP_GETATTR, &req, NULL);
}

static uint64_t make_dir(unsigned client, const char *name)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO, .name = str(name), .mode = 040777};
    const struct msg_inode_rep *rep;
    const void *any;

    ck_ok(rig_do(&rig, client, RPC_OP_MKDIR, &req, &any));
    rep = any;
    return rep->inode.attr.ino;
}

/* MKDIR of name, begun and not waited for. */
static void begin_mkdir(unsigned client, uint64_t dir, const char *name)
{
    static struct msg_create_req req;

    req = (struct msg_create_req){.parent = dir, .name = str(name), .mode = 040777};
    rig_send(&rig, client, 2, &change, RPC_OP_MKDIR, &req);
    rig_settle(&rig);
}

static void end_change(void)
{
    ck_assert(rig_until(&rig, 20000, rig_is_done, &change));
    ck_ok(change.status);
}

static unsigned told(unsigned client, uint64_t ino)
{
    return rig_client_count(&rig.client[client], RPC_OP_INVALIDATE, ino);
}

START_TEST(an_answer_comes_with_a_lease_on_directory_and_inode)
{
    rig_make(&rig, 0, "f");
    ck_ok(lookup(1, KEY_ROOT_INO, "f"));
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR);
    ck_assert_int_eq(lookup(1, KEY_ROOT_INO, "none"), -ENOENT);
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_DIR);
}
END_TEST

START_TEST(nobody_is_told_of_what_only_its_changer_watches)
{
    uint64_t dir = make_dir(0, "d");

    ck_ok(getattr(0, dir));
    begin_mkdir(0, dir, "x");
    end_change();
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        ck_assert_uint_eq(told(i, dir), 0);
}
END_TEST

START_TEST(a_change_waits_until_who_watches_the_directory_has_answered)
{
    uint64_t dir = make_dir(0, "d");

    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    rig.client[1].mute = true;
    begin_mkdir(0, dir, "x");
    ck_assert_uint_eq(told(1, dir), 1);
    ck_assert(!change.done);
    ck_assert_int_eq(lookup(2, dir, "x"), -ENOENT);
    rig_client_answer(&rig, 1);
    end_change();
    ck_ok(lookup(1, dir, "x"));
}
END_TEST

START_TEST(who_asks_during_a_change_gets_no_lease)
{
    uint64_t dir = make_dir(0, "d");

    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    rig.client[1].mute = true;
    begin_mkdir(0, dir, "x");
    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    ck_assert_uint_eq(kept(), 0);
    ck_assert_int_eq(lookup(2, dir, "x"), -ENOENT);
    ck_assert_uint_eq(kept(), 0);
    rig_client_answer(&rig, 1);
    end_change();
    ck_assert_int_eq(lookup(2, dir, "y"), -ENOENT);
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_DIR);
}
END_TEST

static bool told_of_owner(uint64_t ino, const struct msg_setattr_req *req)
{
    const struct rig_client *c = &rig.client[1];

    ck_ok(getattr(1, ino));
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, req, NULL));
    for (unsigned k = 0; k < RIG_NOTES; k++)
        if (c->notes[k].op == RPC_OP_INVALIDATE && c->notes[k].ino == ino && c->notes[k].owner)
            return true;
    return false;
}

START_TEST(who_is_told_hears_whether_the_owner_changes)
{
    uint64_t file = rig_make(&rig, 0, "f"), dir = make_dir(0, "d");
    struct msg_setattr_req mode = {.ino = file, .set = MSG_SET_MODE, .mode = 0640};
    struct msg_setattr_req same = {.ino = file, .set = MSG_SET_UID};
    struct msg_setattr_req owner = {.ino = file, .set = MSG_SET_UID, .uid = 5};
    struct msg_setattr_req open = {.ino = dir, .set = MSG_SET_MODE, .mode = 0755};
    struct msg_setattr_req sticky = {.ino = dir, .set = MSG_SET_MODE, .mode = 01777};

    ck_assert(!told_of_owner(file, &mode));
    ck_assert(!told_of_owner(file, &same));
    ck_assert(told_of_owner(file, &owner));
    ck_assert(!told_of_owner(dir, &open));
    ck_assert(told_of_owner(dir, &sticky));
}
END_TEST

/* The second, as slot of client, begins while client 1 has not answered what it is told of the
 * first; both are made. */
static void change_twice(const struct msg_setattr_req *first, unsigned client, unsigned slot,
                         const struct msg_setattr_req *then)
{
    struct rig_call second = {0};

    rig.client[1].mute = true;
    rig_send(&rig, 0, 2, &change, RPC_OP_SETATTR, first);
    rig_settle(&rig);
    rig_send(&rig, client, slot, &second, RPC_OP_SETATTR, then);
    rig_settle(&rig);
    ck_assert(!change.done && !second.done);
    rig_client_answer(&rig, 1);
    end_change();
    ck_assert(rig_until(&rig, 20000, rig_is_done, &second));
    ck_ok(second.status);
    rig_forget(&second);
}

/* Both are begun before the first is made: the second gives the file back to whom it still belongs.
 */
START_TEST(who_is_told_hears_of_an_owner_that_another_change_makes_and_this_one_takes_back)
{
    uint64_t file = rig_make(&rig, 0, "f");
    struct msg_setattr_req give = {.ino = file, .set = MSG_SET_UID, .uid = 5};
    struct msg_setattr_req back = {.ino = file, .set = MSG_SET_UID};
    unsigned owners = 0;

    ck_ok(getattr(1, file));
    change_twice(&give, 2, 2, &back);
    for (unsigned k = 0; k < RIG_NOTES; k++)
        owners += rig.client[1].notes[k].op == RPC_OP_INVALIDATE && rig.client[1].notes[k].owner;
    ck_assert_uint_eq(owners, 2);
}
END_TEST

START_TEST(who_may_change_a_file_only_when_his_turn_comes_waits_for_its_leases_then)
{
    uint64_t file = rig_make(&rig, 0, "f");
    struct msg_setattr_req mode = {.ino = file, .set = MSG_SET_MODE, .mode = 0600};
    struct msg_setattr_req give = {.ino = file, .set = MSG_SET_UID, .uid = 5};
    struct msg_setattr_req cut = {
        .ino = file, .set = MSG_SET_SIZE, .size = 10, .cred = {.uid = 5, .gid = 5}};

    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &mode, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SETATTR, &cut, NULL), -EACCES);
    ck_assert_int_eq(rig_open_file(&rig, 2, file, O_RDONLY)->inode.lease, MSG_LEASE_READ);
    ck_ok(getattr(1, file));
    change_twice(&give, 0, 3, &cut);
    ck_assert_uint_eq(rig_client_count(&rig.client[2], RPC_OP_RECALL, file), 1);
}
END_TEST

START_TEST(a_rename_tells_of_both_directories_and_both_inodes)
{
    uint64_t from = make_dir(0, "from"), to = make_dir(0, "to"), moved, victim;
    struct msg_rename_req req = {
        .parent = from, .new_parent = to, .name = str("a"), .new_name = str("b")};

    begin_mkdir(0, from, "a");
    end_change();
    moved = ((const struct msg_inode_rep *)change.c.rep)->inode.attr.ino;
    begin_mkdir(0, to, "b");
    end_change();
    victim = ((const struct msg_inode_rep *)change.c.rep)->inode.attr.ino;
    ck_ok(lookup(1, from, "a"));
    ck_ok(lookup(1, to, "b"));
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &req, NULL));
    ck_assert_uint_eq(told(1, from), 1);
    ck_assert_uint_eq(told(1, to), 1);
    ck_assert_uint_eq(told(1, moved), 1);
    ck_assert_uint_eq(told(1, victim), 1);
}
END_TEST

START_TEST(attributes_of_a_file_that_another_writes_are_not_kept)
{
    uint64_t ino = rig_make(&rig, 0, "f"), open_id;

    ck_ok(getattr(1, ino));
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_INODE);
    open_id = rig_open_file(&rig, 0, ino, O_RDWR)->open_id;
    ck_assert_uint_eq(told(1, ino), 1);
    ck_ok(getattr(1, ino));
    ck_assert_uint_eq(kept(), 0);
    ck_ok(getattr(0, ino));
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_INODE);
    rig_close_file(&rig, 0, ino, open_id);
    ck_ok(getattr(1, ino));
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_INODE);
}
END_TEST

/* Without a lease he writes up to the end that he knows, to targets that may not hear of the cut.
 */
START_TEST(who_has_a_file_open_is_told_before_it_is_cut)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct msg_setattr_req cut = {.ino = ino, .set = MSG_SET_SIZE, .size = 1000};
    unsigned before;

    rig_grow(&rig, 0, ino, rep->open_id, 100000);
    rig_open_file(&rig, 1, ino, O_RDWR);
    ck_assert(rig.call.c.header.flags & RPC_FLAG_CUTS_TOLD);
    ck_ok(getattr(2, ino));
    ck_assert(!(rig.call.c.header.flags & RPC_FLAG_CUTS_TOLD)); /* has not opened it */
    before = told(0, ino);
    rig.client[0].mute = true;
    rig_send(&rig, 1, 2, &change, RPC_OP_SETATTR, &cut);
    rig_settle(&rig);
    ck_assert_uint_eq(told(0, ino), before + 1);
    ck_assert_uint_eq(told(1, ino), 0);
    ck_assert(!change.done);
    ck_ok(getattr(0, ino));
    ck_assert(!(rig.call.c.header.flags & RPC_FLAG_CUTS_TOLD)); /* it may be cut any moment */
    rig_client_answer(&rig, 0);
    end_change();
    ck_ok(getattr(0, ino));
    ck_assert(rig.call.c.header.flags & RPC_FLAG_CUTS_TOLD);
}
END_TEST

START_TEST(who_does_not_answer_is_evicted_and_delays_no_longer_than_that)
{
    uint64_t dir = make_dir(0, "d"), silent = rig.client[1].session;

    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    rig.client[1].mute = true;
    begin_mkdir(0, dir, "x");
    ck_assert(rig_until(&rig, 4 * RIG_LEASE / NS_PER_MS, rig_is_done, &change));
    ck_ok(change.status);
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, silent), 0);
}
END_TEST

START_TEST(a_client_that_has_died_delays_a_change_by_its_lease_time_only)
{
    uint64_t dir = make_dir(0, "d");

    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    rig_client_forget(&rig, 1);
    rig_client_fini(&rig.client[1]);
    begin_mkdir(0, dir, "x");
    ck_assert(!change.done);
    ck_assert(rig_until(&rig, 3 * RIG_LEASE / NS_PER_MS, rig_is_done, &change));
    ck_ok(change.status);
}
END_TEST

START_TEST(what_changes_again_and_again_is_shared_until_it_is_quiet)
{
    uint64_t dir = make_dir(0, "d");
    unsigned before, n;
    char name[16];

    for (n = 0; n < 40; n++) {
        (void)lookup(1, dir, "x");
        snprintf(name, sizeof name, "n%u", n);
        begin_mkdir(0, dir, name);
        end_change();
    }
    before = told(1, dir);
    ck_assert_uint_lt(before, 20);
    (void)lookup(1, dir, "x");
    ck_assert_uint_eq(kept() & RPC_FLAG_KEPT_DIR, 0);
    rig_pass(&rig, 3000);
    (void)lookup(1, dir, "x");
    ck_assert_uint_eq(kept() & RPC_FLAG_KEPT_DIR, RPC_FLAG_KEPT_DIR);
    begin_mkdir(0, dir, "last");
    end_change();
    ck_assert_uint_eq(told(1, dir), before + 1);
}
END_TEST

START_TEST(a_retried_change_comes_without_leases)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO, .name = str("d"), .mode = 040777};

    rig_send(&rig, 0, 3, &change, RPC_OP_MKDIR, &req);
    end_change();
    ck_assert_uint_eq(change.c.header.flags, RPC_FLAG_KEPT_INODE | RPC_FLAG_KEPT_DIR);
    rig_send_again(&rig, 0, 3, &change, RPC_OP_MKDIR, &req);
    end_change();
    ck_assert_uint_eq(change.c.header.flags, 0);
}
END_TEST

static void reclaim_nothing(unsigned client)
{
    struct msg_reclaim_req req = {.last = true};

    ck_ok(rig_do(&rig, client, RPC_OP_RECLAIM, &req, NULL));
}

START_TEST(a_change_that_waited_for_reclaims_tells_who_watches_since)
{
    uint64_t dir = make_dir(0, "d");

    rig_restart(&rig);
    begin_mkdir(0, dir, "x");
    reclaim_nothing(1);
    ck_assert_int_eq(lookup(1, dir, "x"), -ENOENT);
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_DIR);
    reclaim_nothing(0);
    reclaim_nothing(2);
    end_change();
    ck_assert_uint_eq(told(1, dir), 1);
    ck_ok(lookup(1, dir, "x"));
}
END_TEST

START_TEST(what_may_have_been_written_before_a_restart_is_not_kept)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    struct msg_reclaim_item item = {rep->inode.attr.ino, rep->open_id, O_RDWR, MSG_LEASE_WRITE,
                                    rep->inode.lease_seq};
    struct msg_reclaim_req req = {.n_items = 1, .items = &item, .last = true};

    rig_restart(&rig);
    reclaim_nothing(1);
    ck_ok(lookup(1, KEY_ROOT_INO, "f")); /* its attributes are waited for until then */
    ck_assert_uint_eq(kept() & RPC_FLAG_KEPT_INODE, 0);
    ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &req, NULL));
    reclaim_nothing(2);
    ck_ok(getattr(1, item.ino));
    ck_assert_uint_eq(kept(), 0);
    rig_close_file(&rig, 0, item.ino, item.open_id);
    ck_ok(getattr(1, item.ino));
    ck_assert_uint_eq(kept(), RPC_FLAG_KEPT_INODE);
}
END_TEST

static int ready_status;

static void ready(struct mds_prepare *p, int status)
{
    (void)p;
    ready_status = status;
}

/* Committed, and its creator, who is writing it, not yet known here. */
START_TEST(a_file_that_is_being_created_is_not_kept_by_who_sees_it_first)
{
    const struct mds_session_ops *ops = rig.mds->session_ops;
    struct mds_prepare p = {.mds = rig.mds,
                            .session = rig.client[0].session,
                            .n_touch = 1,
                            .touch = {{.access = MDS_ACCESS_OPEN, .open_flags = O_RDWR}},
                            .ready = ready};
    struct mds_outcome failed = {.status = -EACCES};
    int64_t now = clock_wall_ns(reactor_clock(rig.reactor));
    struct msg_time born = {now / (int64_t)NS_PER_S, (uint32_t)(now % (int64_t)NS_PER_S)};
    struct msg_time older = {born.sec - 1, 0};

    ready_status = 1;
    ops->prepare(rig.mds, &p);
    ck_ok(ready_status);
    ck_assert(!ops->watch(rig.mds, rig.client[1].session, 1000, &born, false));
    ck_assert(ops->watch(rig.mds, rig.client[1].session, 1001, &older, false));
    ops->finish(rig.mds, &p, &failed);
    ck_assert(ops->watch(rig.mds, rig.client[1].session, 1000, &born, false));
}
END_TEST

#define MANY 8u

/* MKDIR of that many names, all sent before any is answered. */
static void make_many(unsigned client, uint64_t dir, struct rig_call calls[MANY])
{
    static const char *const names[MANY] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static struct msg_create_req reqs[MANY];

    memset(calls, 0, MANY * sizeof calls[0]);
    for (unsigned i = 0; i < MANY; i++) {
        reqs[i] = (struct msg_create_req){.parent = dir, .name = str(names[i]), .mode = 040777};
        rig_send(&rig, client, 2 + i, &calls[i], RPC_OP_MKDIR, &reqs[i]);
    }
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert(rig_until(&rig, 20000, rig_is_done, &calls[i]));
        ck_ok(calls[i].status);
    }
}

START_TEST(many_changes_at_once_of_one_client_all_come_with_the_lease)
{
    uint64_t dir = make_dir(0, "d");
    struct rig_call calls[MANY];

    ck_ok(getattr(0, dir));
    make_many(0, dir, calls);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert(calls[i].c.header.flags & RPC_FLAG_KEPT_DIR);
        rig_forget(&calls[i]);
    }
}
END_TEST

/* Two sessions change one directory, the first many times. */
START_TEST(who_changes_a_directory_believes_its_answers_while_nobody_else_does)
{
    const struct mds_session_ops *ops = rig.mds->session_ops;
    uint64_t dir = make_dir(0, "d"), s0 = rig.client[0].session, s1 = rig.client[1].session;
    struct mds_outcome done = {.status = 0};
    struct mds_prepare p[3];

    for (unsigned i = 0; i < 3; i++)
        p[i] = (struct mds_prepare){.mds = rig.mds,
                                    .session = i < 2 ? s0 : s1,
                                    .n_changes = 1,
                                    .changes = {{.ino = dir, .name = str("x")}},
                                    .ready = ready};
    ck_ok(getattr(0, dir));
    for (unsigned i = 0; i < 2; i++)
        ops->prepare(rig.mds, &p[i]);
    ck_assert(!ops->watch(rig.mds, s0, dir, NULL, false)); /* what it only reads */
    ck_assert(ops->watch(rig.mds, s0, dir, NULL, true));
    ck_assert(!ops->watch(rig.mds, s1, dir, NULL, true));
    ready_status = 1;
    ops->prepare(rig.mds, &p[2]);
    rig_settle(&rig);
    ck_ok(ready_status);
    ck_assert_uint_eq(told(0, dir), 1);
    ck_assert(!ops->watch(rig.mds, s0, dir, NULL, true));
    ops->finish(rig.mds, &p[2], &done);
    ck_assert(!ops->watch(rig.mds, s0, dir, NULL, true)); /* not before all are over */
    for (unsigned i = 0; i < 2; i++)
        ops->finish(rig.mds, &p[i], &done);
    ck_assert(ops->watch(rig.mds, s0, dir, NULL, false));
}
END_TEST

START_TEST(who_does_not_watch_begins_to_only_when_its_changes_are_over)
{
    const struct mds_session_ops *ops = rig.mds->session_ops;
    uint64_t dir = make_dir(0, "d"), s1 = rig.client[1].session;
    struct mds_outcome done = {.status = 0};
    struct mds_prepare p = {.mds = rig.mds,
                            .session = s1,
                            .n_changes = 1,
                            .changes = {{.ino = dir, .name = str("x")}},
                            .ready = ready};

    ops->prepare(rig.mds, &p);
    rig_settle(&rig);
    ck_assert(!ops->watch(rig.mds, s1, dir, NULL, true));
    ops->finish(rig.mds, &p, &done);
    ck_assert(ops->watch(rig.mds, s1, dir, NULL, true));
}
END_TEST

START_TEST(a_rename_answers_with_both_inodes)
{
    struct msg_rename_req req = {
        .parent = KEY_ROOT_INO, .new_parent = KEY_ROOT_INO, .name = str("a"), .new_name = str("b")};
    struct msg_link_req link = {.new_parent = KEY_ROOT_INO, .new_name = str("b2")};
    uint64_t a = rig_make(&rig, 0, "a"), b = rig_make(&rig, 0, "b");
    const struct msg_inode_rep *rep;
    const void *any;

    link.ino = b;
    ck_ok(rig_do(&rig, 0, RPC_OP_LINK, &link, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &req, &any));
    rep = any;
    ck_assert_uint_eq(rep->inode.attr.ino, a);
    ck_assert(rep->has_victim && rep->victim.ino == b && rep->victim.nlink == 1);
    req.name = str("b");
    req.new_name = str("b2");
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &req, &any));
    rep = any;
    ck_assert(rep->has_victim && rep->victim.ino == b && rep->victim.nlink == 0);
    req.name = req.new_name;
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &req, &any));
    rep = any;
    ck_assert(rep->has_dir && !rep->inode.attr.ino && !rep->has_victim);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_answer_comes_with_a_lease_on_directory_and_inode);
    tcase_add_test(t, nobody_is_told_of_what_only_its_changer_watches);
    tcase_add_test(t, a_change_waits_until_who_watches_the_directory_has_answered);
    tcase_add_test(t, who_asks_during_a_change_gets_no_lease);
    tcase_add_test(t, who_is_told_hears_whether_the_owner_changes);
    tcase_add_test(t,
                   who_is_told_hears_of_an_owner_that_another_change_makes_and_this_one_takes_back);
    tcase_add_test(t, who_may_change_a_file_only_when_his_turn_comes_waits_for_its_leases_then);
    tcase_add_test(t, a_rename_tells_of_both_directories_and_both_inodes);
    tcase_add_test(t, attributes_of_a_file_that_another_writes_are_not_kept);
    tcase_add_test(t, who_has_a_file_open_is_told_before_it_is_cut);
    tcase_add_test(t, who_does_not_answer_is_evicted_and_delays_no_longer_than_that);
    tcase_add_test(t, a_client_that_has_died_delays_a_change_by_its_lease_time_only);
    tcase_add_test(t, what_changes_again_and_again_is_shared_until_it_is_quiet);
    tcase_add_test(t, a_retried_change_comes_without_leases);
    tcase_add_test(t, a_change_that_waited_for_reclaims_tells_who_watches_since);
    tcase_add_test(t, what_may_have_been_written_before_a_restart_is_not_kept);
    tcase_add_test(t, a_file_that_is_being_created_is_not_kept_by_who_sees_it_first);
    tcase_add_test(t, many_changes_at_once_of_one_client_all_come_with_the_lease);
    tcase_add_test(t, who_changes_a_directory_believes_its_answers_while_nobody_else_does);
    tcase_add_test(t, who_does_not_watch_begins_to_only_when_its_changes_are_over);
    tcase_add_test(t, a_rename_answers_with_both_inodes);
}

int main(void)
{
    return rig_main("mds-watch", add);
}
