// SPDX-License-Identifier: Apache-2.0
/* The server restarts, in good order or by a crash at a step of a protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fault/fault.h"
#include "mds/session/session.h"
#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void teardown(void)
{
    rig_end(&rig);
}

static void setup(void)
{
    rig_begin(&rig, 2, 2);
}

START_TEST(opens_and_leases_come_back_by_reclaim)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;
    struct msg_open_req open = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, open_id, 50000);
    rig_restart(&rig);
    ck_assert(!session_grace_over(rig.mds));
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &open); /* would conflict, for all anybody knows */
    rig_pass(&rig, 500);
    ck_assert(!call.done);
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_assert(!call.done); /* the other one has not said what it had */
    rig.client[0].release_size = 60000;
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rep = call.c.rep;
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
    ck_assert_uint_eq(rep->inode.attr.size, 60000);
    ck_assert_uint_gt(rep->open_id, open_id);
    rig_forget(&call);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    rig_close_file(&rig, 0, ino, open_id);
}
END_TEST

START_TEST(a_stat_waits_for_who_may_have_been_writing_before_the_restart)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;
    struct msg_ino_req req = {.ino = ino};
    struct rig_call call = {0};
    const void *any;

    rig_grow(&rig, 0, ino, open_id, 50000);
    rig_restart(&rig);
    rig_send(&rig, 1, 0, &call, RPC_OP_GETATTR, &req);
    rig_pass(&rig, 500);
    ck_assert(!call.done);
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &req, &any)); /* the writer itself */
    rig.client[0].glimpse_size = 60000;
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rep = call.c.rep;
    ck_assert_uint_eq(rep->inode.attr.size, 60000);
    rig_forget(&call);
}
END_TEST

/* Who has not come back may believe any name. */
START_TEST(reads_do_not_wait_for_reclaims_and_changes_do)
{
    struct msg_create_req make = {.parent = KEY_ROOT_INO, .name = str("d"), .mode = 040777};
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    struct rig_call change = {0};

    rig_create(&rig, 0, "f", O_RDWR);
    rig_restart(&rig);
    rig_send(&rig, 1, 2, &change, RPC_OP_MKDIR, &make);
    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &name, NULL));
    rig_settle(&rig);
    ck_assert(!change.done);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_run(&rig, rig_is_done, &change));
    ck_ok(change.status);
    rig_forget(&change);
}
END_TEST

START_TEST(a_session_that_does_not_come_back_ends_the_wait_by_its_eviction)
{
    uint64_t dead = rig.client[0].session;

    rig_client_forget(&rig, 0);
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(!session_grace_over(rig.mds));
    ck_assert(rig_until(&rig, 8000, rig_grace_over, &rig));
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, dead), 0);
}
END_TEST

static bool is_fenced(void *session)
{
    return rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, *(uint64_t *)session) > 0;
}

/* It renews, so it believes in its leases until it hears that they are gone, or its time is over.
 */
START_TEST(what_an_evicted_session_may_read_from_its_cache_is_not_changed_after_a_restart_either)
{
    uint64_t ino = rig_make(&rig, 0, "f"), reader = rig.client[1].session;
    struct msg_setattr_req cut = {.ino = ino, .set = MSG_SET_SIZE, .size = 7};
    struct rig_call before = {0}, after = {0};

    rig_open_file(&rig, 1, ino, O_RDONLY);
    rig.client[1].release = false;
    rig_send(&rig, 0, 1, &before, RPC_OP_SETATTR, &cut);
    ck_assert(rig_until(&rig, 8000, is_fenced, &reader));
    rig_settle(&rig);
    ck_assert(!before.done);
    rig.client[1].alive = false;
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_send(&rig, 0, 2, &after, RPC_OP_SETATTR, &cut);
    rig_pass(&rig, 1000);
    ck_assert(!after.done);
    ck_assert(rig_until(&rig, 4000, rig_is_done, &after));
    ck_ok(after.status);
    rig_forget(&before);
    rig_forget(&after);
}
END_TEST

/* A storage server that is away keeps its record: it is long known that it believes in nothing. */
START_TEST(an_evicted_session_whose_file_waits_for_a_server_delays_no_restart_later)
{
    const struct msg_inode_rep *rep;
    uint64_t ino, evicted = rig.client[1].session;
    struct msg_setattr_req cut = {.set = MSG_SET_SIZE, .size = 7};
    struct rig_call call = {0};

    rig_oss_start(&rig, 1, 1);
    rep = rig_create(&rig, 1, "large", O_RDWR);
    rig_grow(&rig, 1, rep->inode.attr.ino, rep->open_id, 8u << 20);
    cut.ino = ino = rig_make(&rig, 0, "f");
    rig_open_file(&rig, 1, ino, O_RDONLY);
    rig.oss[1].alive = false;
    rig_pass(&rig, 3000);
    rig.client[1].release = false;
    rig_send(&rig, 0, 1, &call, RPC_OP_SETATTR, &cut);
    ck_assert(rig_until(&rig, 16000, rig_is_done, &call));
    ck_ok(call.status);
    rig_pass(&rig, 1000);
    ck_assert(rig_has(&rig, KEY_SESSION, evicted));
    rig.client[1].alive = false;
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(session_grace_over(rig.mds));
    ck_assert(rig_has(&rig, KEY_SESSION, evicted));
    rig_forget(&call);
}
END_TEST

START_TEST(an_orphan_lives_if_it_is_reclaimed_and_dies_if_not)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "kept", O_RDWR);
    uint64_t kept = rep->inode.attr.ino, kept_open = rep->open_id;
    uint64_t lost = rig_create(&rig, 0, "lost", O_RDWR)->inode.attr.ino;
    struct mds_inode in;

    ck_ok(rig_unlink(&rig, 0, "kept"));
    ck_ok(rig_unlink(&rig, 0, "lost"));
    rig_restart(&rig);
    ck_ok(rig_inode(&rig, lost, &in));
    ck_ok(rig_reclaim(&rig, 0, kept, kept_open, O_RDWR, MSG_LEASE_NONE, 0));
    ck_ok(rig_inode(&rig, lost, &in));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, lost, &in), -ENOENT);
    ck_ok(rig_inode(&rig, kept, &in));
    rig_close_file(&rig, 0, kept, kept_open);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, kept, &in), -ENOENT);
}
END_TEST

START_TEST(a_reclaim_sent_twice_is_one_reclaim)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;

    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_assert_int_eq(rig_reclaim(&rig, 1, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq),
                     -AIFS_EPROTO);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_close_file(&rig, 0, ino, open_id);
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDWR)->inode.lease, MSG_LEASE_WRITE);
}
END_TEST

#define ALLOCATIONS_MAX 300u /* no call makes so many */

/* The nth allocation from here on fails, whoever makes it: client, transport or server. */
static int without_memory(unsigned nth, unsigned op, const void *req, bool *ret_failed)
{
    char spec[64];
    int rc;

    snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
    ck_ok(fault_arm(spec));
    rc = rig_do(&rig, 0, op, req, NULL);
    *ret_failed = fault_count("mem.alloc") >= nth;
    fault_disarm_all();
    return rc;
}

START_TEST(a_renewal_without_memory_is_no_end_of_the_session)
{
    struct msg_server_wait wait = {.target = 1, .requests = 1};
    struct msg_renew_req renew = {.n_waits = 1, .waits = &wait};
    bool failed = true;

    for (unsigned nth = 1; failed; nth++) {
        int rc;

        ck_assert_uint_lt(nth, ALLOCATIONS_MAX);
        rc = without_memory(nth, RPC_OP_SESSION_RENEW, &renew, &failed);
        ck_assert_msg(rc == 0 || failed, "allocation %u: %s", nth, err_name(rc));
        ck_assert_msg(rc != -AIFS_ESESSION, "allocation %u", nth);
        ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_RENEW, &(struct msg_renew_req){0}, NULL));
    }
}
END_TEST

START_TEST(a_reclaim_without_memory_can_be_sent_again)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    struct msg_reclaim_item items[] = {{.ino = rep->inode.attr.ino,
                                        .open_id = rep->open_id,
                                        .open_flags = O_RDWR,
                                        .lease = MSG_LEASE_WRITE,
                                        .lease_seq = rep->inode.lease_seq},
                                       {.open_flags = O_RDONLY}};
    struct msg_reclaim_req req = {.n_items = 2, .items = items, .last = true};
    uint64_t ino = items[0].ino;
    unsigned refused = 0;
    bool failed = true;

    rep = rig_create(&rig, 0, "g", O_RDONLY); /* not marked: nothing of it is there before */
    items[1].ino = rep->inode.attr.ino;
    items[1].open_id = rep->open_id;
    for (unsigned nth = 1; failed; nth++) {
        int rc;

        rig_restart(&rig);
        ck_assert_uint_lt(nth, ALLOCATIONS_MAX);
        rc = without_memory(nth, RPC_OP_RECLAIM, &req, &failed);
        ck_assert_msg(rc == 0 || failed, "allocation %u: %s", nth, err_name(rc));
        ck_assert_msg(rc != -AIFS_ESESSION, "allocation %u", nth);
        refused += rc != 0;
        ck_ok(rig_do(&rig, 0, RPC_OP_RECLAIM, &req, NULL));
        ck_assert(!session_grace_over(rig.mds));
        ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
        ck_assert(session_grace_over(rig.mds));
        ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDONLY)->inode.lease, MSG_LEASE_NONE);
        rig_close_file(&rig, 1, ino, ((const struct msg_inode_rep *)rig.call.c.rep)->open_id);
    }
    ck_assert_uint_gt(refused, 0);
    rig_close_file(&rig, 0, ino, items[0].open_id);
    rig_close_file(&rig, 0, items[1].ino, items[1].open_id);
}
END_TEST

/* Committed; to its client it was never answered, so there is nothing to reclaim. */
static void create_and_restart(const struct msg_create_req *req, uint64_t *ret_ino,
                               uint64_t *ret_open_id)
{
    const struct msg_inode_rep *rep;
    const void *any;

    ck_ok(rig_do(&rig, 0, RPC_OP_CREATE, req, &any));
    rep = any;
    *ret_ino = rep->inode.attr.ino;
    *ret_open_id = rep->open_id;
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
}

/* With the open it had, and without a lease. */
static void expect_answered_again(struct rig_call *call, uint64_t open_id)
{
    const struct msg_inode_rep *rep;

    ck_assert(rig_until(&rig, 1000, rig_is_done, call));
    ck_ok(call->status);
    rep = call->c.rep;
    ck_assert_uint_eq(rep->open_id, open_id);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
    rig_forget(call);
}

START_TEST(a_create_whose_answer_was_lost_with_the_server_is_answered_again)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str("f"),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN | MSG_CREATE_EXCL,
                                 .open_flags = O_RDWR};
    struct rig_call call = {0};
    uint64_t ino, open_id;

    create_and_restart(&req, &ino, &open_id);
    rig_send_again(&rig, 0, 1, &call, RPC_OP_CREATE, &req);
    expect_answered_again(&call, open_id);
    ck_ok(rig_unlink(&rig, 1, "f")); /* it is open: an orphan, not gone */
    ck_ok(rig_inode(&rig, ino, &(struct mds_inode){0}));
    rig_close_file(&rig, 0, ino, open_id);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, ino, &(struct mds_inode){0}), -ENOENT);
}
END_TEST

/* Sent before; its link broke. */
static void send_over_a_new_link(unsigned client, struct rig_call *call, unsigned op,
                                 const void *req)
{
    rig_send_again(&rig, client, 1, call, op, req);
    rpc_link_close(rpc_peer_link(rig.client[client].mds), -AIFS_ECONN);
}

START_TEST(a_create_answered_again_takes_the_lease_of_who_has_found_the_file_by_a_new_name)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str("f"),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN,
                                 .open_flags = O_RDWR};
    struct msg_rename_req rename = {
        .parent = KEY_ROOT_INO, .name = str("f"), .new_parent = KEY_ROOT_INO, .new_name = str("g")};
    struct rig_call call = {0};
    const struct msg_inode_rep *rep;
    uint64_t ino, open_id;

    create_and_restart(&req, &ino, &open_id);
    ck_ok(rig_do(&rig, 1, RPC_OP_RENAME, &rename, NULL));
    rep = rig_open_file(&rig, 1, ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    rig.client[1].release_size = 60000;
    send_over_a_new_link(0, &call, RPC_OP_CREATE, &req);
    expect_answered_again(&call, open_id);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_RECALL, ino), 1);
    rep = rig_open_file(&rig, 1, ino, O_RDWR); /* it is known that two have it open */
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
}
END_TEST

/* Nothing keeps a file that was only to be read by a client that has never heard of it. */
START_TEST(a_create_whose_file_has_gone_since_is_not_answered_with_the_open_it_had)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str("f"),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN,
                                 .open_flags = O_RDONLY};
    struct rig_call call = {0};
    uint64_t ino, open_id;

    create_and_restart(&req, &ino, &open_id);
    ck_ok(rig_unlink(&rig, 1, "f"));
    ck_assert_int_eq(rig_inode(&rig, ino, &(struct mds_inode){0}), -ENOENT);
    send_over_a_new_link(0, &call, RPC_OP_CREATE, &req);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_assert_int_eq(call.status, -ESTALE);
    rig_forget(&call);
}
END_TEST

START_TEST(a_session_that_leaves_while_others_reclaim_is_answered_although_it_reclaims_too)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;
    struct rig_call call = {0};

    rig_restart(&rig);
    rig_send(&rig, 0, 0, &call, RPC_OP_SESSION_CLOSE, NULL);
    rig_pass(&rig, 200);
    ck_assert(!call.done); /* until client 1 has said what it has */
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 2000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    rig.client[0].alive = false;
}
END_TEST

START_TEST(a_server_whose_disk_is_full_starts_and_lets_files_be_removed)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO, .name = str("g"), .mode = 0100666};

    rig_close_file(&rig, 0, rig_create(&rig, 0, "f", O_RDWR)->inode.attr.ino,
                   ((const struct msg_inode_rep *)rig.call.c.rep)->open_id);
    rig_mds_stop(&rig);
    rig.shard.reserve_bytes = 1ull << 62;
    rig_mds_start(&rig);
    rig_oss_start(&rig, 0, 2);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_client_open(&rig, 2);
    ck_assert_int_eq(rig_do(&rig, 2, RPC_OP_CREATE, &req, NULL), -ENOSPC);
    ck_ok(rig_unlink(&rig, 2, "f"));
}
END_TEST

/* ---- crashes ---- */

enum scenario { EVICT, EVICT_INLINE, UNLINK, TRUNCATE };

struct crash {
    const char *fault;
    enum scenario scenario;
};

static const struct crash crashes[] = {
    {"mds.evict.after_entry=crash", EVICT},
    {"mds.evict.after_fence=crash", EVICT},
    {"mds.evict.after_seal=crash", EVICT},
    {"mds.evict.after_entry=crash", EVICT_INLINE},
    {"mds.gc.punch.before_done=crash", EVICT_INLINE},
    {"mds.gc.destroy.before_done=crash", UNLINK},
    {"mds.gc.punch.before_done=crash", TRUNCATE},
};

#define CRASH_STATUS 137

static void make_victim(struct rig *r, enum scenario scenario)
{
    const struct msg_inode_rep *rep;
    uint64_t ino, open_id;

    rig_oss_start(r, 0, 2);
    rig_client_open(r, 0);
    rep = rig_create(r, 0, "f", O_RDWR);
    ino = rep->inode.attr.ino;
    open_id = rep->open_id;
    if (scenario != EVICT_INLINE)
        rig_grow(r, 0, ino, open_id, 100000);
    r->oss[0].high_water = 250000;
}

/* In a child: the server dies where the fault says. */
static void run_to_the_crash(const char *root, const struct crash *c)
{
    struct msg_setattr_req cut = {.set = MSG_SET_SIZE, .size = 10};
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    struct rig_call call = {0};
    uint64_t ino;
    const void *any;

    rig_open(&rig, root);
    make_victim(&rig, c->scenario);
    ck_ok(rig_do(&rig, 0, RPC_OP_LOOKUP, &name, &any));
    ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    ck_ok(fault_arm(c->fault));
    if (c->scenario == UNLINK) {
        rig_client_forget(&rig, 0);
        rig_client_open(&rig, 0); /* the old session's eviction closes it */
        rig_send(&rig, 0, 1, &call, RPC_OP_UNLINK, &name);
    } else if (c->scenario == TRUNCATE) {
        cut.ino = ino;
        rig_send(&rig, 0, 1, &call, RPC_OP_SETATTR, &cut);
    } else {
        rig_client_forget(&rig, 0);
    }
    rig_pass(&rig, 20000);
    _exit(0); /* it did not crash */
}

static bool all_is_done(void *arg)
{
    struct rig *r = arg;
    for (unsigned type = KEY_DESTROY; type <= KEY_RECOVER; type++) {
        for (uint64_t i = 1; i < 64; i++) {
            if (rig_has(r, (enum key_type)type, i))
                return false;
        }
    }
    return !rig_has(r, KEY_SESSION, 1) && session_grace_over(r->mds);
}

START_TEST(a_crash_at_any_step_is_made_good_after_the_restart)
{
    const struct crash *c = &crashes[_i];
    char root[sizeof rig.root];
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    const struct msg_inode_rep *rep;
    const void *any;
    int status, rc;
    pid_t pid;

    rig_make_root(root, sizeof root);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run_to_the_crash(root, c);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == CRASH_STATUS,
                  "%s was not reached (status %#x)", c->fault, (unsigned)status);
    rig_open(&rig, root);
    rig_oss_start(&rig, 0, 2);
    rig.oss[0].high_water = 250000;
    rig_client_open(&rig, 1);
    ck_assert(rig_until(&rig, 30000, all_is_done, &rig));
    rc = rig_do(&rig, 1, RPC_OP_LOOKUP, &name, &any);
    if (c->scenario == UNLINK) {
        ck_assert_int_eq(rc, -ENOENT);
        ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, 0), 0);
        return;
    }
    ck_ok(rc);
    rep = any;
    if (c->scenario == EVICT)
        ck_assert_uint_eq(rep->inode.attr.size, 250000);
    if (c->scenario == TRUNCATE)
        ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->size, 10);
    if (c->scenario == EVICT_INLINE)
        ck_assert_uint_eq(rep->inode.attr.truncate_gen, 1);
    rep = rig_open_file(&rig, 1, rep->inode.attr.ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.attr.flags & (MSG_ATTR_PUNCH_PENDING | MSG_ATTR_SIZE_UNSURE), 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, opens_and_leases_come_back_by_reclaim);
    tcase_add_test(t, a_stat_waits_for_who_may_have_been_writing_before_the_restart);
    tcase_add_test(t, reads_do_not_wait_for_reclaims_and_changes_do);
    tcase_add_test(t, a_session_that_does_not_come_back_ends_the_wait_by_its_eviction);
    tcase_add_test(
        t, what_an_evicted_session_may_read_from_its_cache_is_not_changed_after_a_restart_either);
    tcase_add_test(t, an_evicted_session_whose_file_waits_for_a_server_delays_no_restart_later);
    tcase_add_test(t, an_orphan_lives_if_it_is_reclaimed_and_dies_if_not);
    tcase_add_test(t, a_reclaim_sent_twice_is_one_reclaim);
    tcase_add_test(t, a_server_whose_disk_is_full_starts_and_lets_files_be_removed);
    tcase_add_test(t, a_renewal_without_memory_is_no_end_of_the_session);
    tcase_add_test(t, a_reclaim_without_memory_can_be_sent_again);
    tcase_add_test(t, a_create_whose_answer_was_lost_with_the_server_is_answered_again);
    tcase_add_test(t,
                   a_create_answered_again_takes_the_lease_of_who_has_found_the_file_by_a_new_name);
    tcase_add_test(t, a_create_whose_file_has_gone_since_is_not_answered_with_the_open_it_had);
    tcase_add_test(t,
                   a_session_that_leaves_while_others_reclaim_is_answered_although_it_reclaims_too);
}

static void add_crashes(TCase *t)
{
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_loop_test(t, a_crash_at_any_step_is_made_good_after_the_restart, 0,
                        (int)ARRAY_LEN(crashes));
}

int main(void)
{
    int rc = rig_main("mds-restart", add);

    return rig_main("mds-crash-steps", add_crashes) == EXIT_SUCCESS ? rc : EXIT_FAILURE;
}
