// SPDX-License-Identifier: Apache-2.0
/* Sessions that end: in good order, by silence, by not answering, by coming back. */
#include "common/fault/fault.h"
#include "mds/cluster/cluster.h"
#include "tests/component/mds_server/rig.h"

static struct rig rig;
static uint64_t ino, open_id, lease_seq, dead;

/* Client 0 writes a file with chunks under a write lease. */
static void setup(void)
{
    const struct msg_inode_rep *rep;

    rig_open(&rig, NULL);
    rig_oss_start(&rig, 0, 2);
    rig_oss_start(&rig, 1, 1);
    rig_client_open(&rig, 0);
    rig_client_open(&rig, 1);
    rep = rig_create(&rig, 0, "f", O_RDWR);
    ino = rep->inode.attr.ino;
    open_id = rep->open_id;
    lease_seq = rep->inode.lease_seq;
    rig_grow(&rig, 0, ino, open_id, 100000);
    dead = rig.client[0].session;
    rig.oss[0].high_water = 300000;
    rig.oss[1].high_water = 700000;
}

static void teardown(void)
{
    rig_end(&rig);
}

static bool session_gone(void *arg)
{
    (void)arg;
    return !rig_has(&rig, KEY_SESSION, dead);
}

static bool fence_arrived(void *arg)
{
    return rig_oss_count(arg, RPC_OP_OSS_FENCE, dead) > 0;
}

START_TEST(a_silent_writer_is_fenced_then_its_file_sealed_then_free)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};
    const struct msg_inode_rep *rep;

    rig_client_forget(&rig, 0);
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    ck_assert(rig_until(&rig, 10000, rig_is_done, &call));
    ck_ok(call.status);
    rep = call.c.rep;
    ck_assert_uint_eq(rep->inode.attr.size, 700000);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_SIZE_UNSURE, 0);
    rig_forget(&call);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(fence_arrived(&rig.oss[i]));
        ck_assert_int_lt(rig_oss_order(&rig.oss[i], RPC_OP_OSS_FENCE),
                         rig_oss_order(&rig.oss[i], RPC_OP_OSS_SEAL));
    }
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 2);
    ck_assert(rig_until(&rig, 1000, session_gone, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SESSION_RENEW, &(struct msg_renew_req){0}, NULL),
                     -AIFS_ESESSION);
}
END_TEST

static uint64_t size_of(const struct rig_call *call)
{
    return ((const struct msg_inode_rep *)call->c.rep)->inode.attr.size;
}

/* What the writer has been answered is not recorded here: that would be too short a size. */
START_TEST(a_stat_waits_until_the_size_of_a_silent_writers_file_is_recovered)
{
    struct msg_ino_req req = {.ino = ino};
    struct rig_call calls[3] = {0};

    rig.client[0].glimpse_mute = true;
    rig_send(&rig, 1, 0, &calls[0], RPC_OP_GETATTR, &req);
    rig_pass(&rig, 3000);
    ck_assert(!calls[0].done);
    ck_assert_uint_gt(rig_client_count(&rig.client[0], RPC_OP_GLIMPSE, ino), 1); /* asked again */
    rig_client_forget(&rig, 0);
    rig.oss[1].mute = true;
    ck_assert(rig_until(&rig, 10000, fence_arrived, &rig.oss[1]));
    rig_send(&rig, 1, 0, &calls[1], RPC_OP_GETATTR, &req); /* while it is evicted */
    rig_pass(&rig, 1000);
    ck_assert(!calls[0].done && !calls[1].done);
    rig_client_open(&rig, 0); /* its client has a new session, and knows as little */
    rig_send(&rig, 0, 0, &calls[2], RPC_OP_GETATTR, &req);
    rig_pass(&rig, 1000);
    ck_assert(!calls[2].done);
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(rig_until(&rig, 10000, rig_is_done, &calls[i]));
        ck_ok(calls[i].status);
        ck_assert_uint_eq(size_of(&calls[i]), 700000);
        rig_forget(&calls[i]);
    }
}
END_TEST

START_TEST(a_stat_that_waits_is_answered_when_the_writer_speaks_or_gives_its_lease_back)
{
    struct msg_ino_req req = {.ino = ino};
    struct rig_call call = {0};

    rig.client[0].glimpse_mute = true;
    rig.client[0].glimpse_size = 234567;
    rig_send(&rig, 1, 0, &call, RPC_OP_GETATTR, &req);
    rig_pass(&rig, 2500);
    ck_assert(!call.done);
    rig.client[0].glimpse_mute = false;
    ck_assert(rig_until(&rig, 2000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(size_of(&call), 234567);
    rig_forget(&call);
    rig.client[0].glimpse_mute = true;
    rig_send(&rig, 1, 0, &call, RPC_OP_GETATTR, &req);
    rig_pass(&rig, 1500);
    ck_assert(!call.done);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, lease_seq, 345678);
    ck_assert(rig_until(&rig, 2000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(size_of(&call), 345678);
    rig_forget(&call);
}
END_TEST

START_TEST(a_look_up_does_not_wait_for_a_silent_writer_and_says_that_the_size_is_unsure)
{
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    const struct msg_inode_rep *rep;
    const void *any;

    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &name, &any));
    rep = any;
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_SIZE_UNSURE, 0);
    rig.client[0].glimpse_mute = true;
    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &name, &any));
    rep = any;
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_SIZE_UNSURE, MSG_ATTR_SIZE_UNSURE);
    ck_assert(rig.client[0].alive);
}
END_TEST

START_TEST(who_waits_for_a_silent_writer_is_told_when_the_server_stops)
{
    struct msg_ino_req req = {.ino = ino};
    struct rig_call call = {0};

    rig.client[0].glimpse_mute = true;
    rig_send(&rig, 1, 0, &call, RPC_OP_GETATTR, &req);
    rig_pass(&rig, 1500);
    ck_assert(!call.done);
    rig_mds_stop(&rig);
    ck_assert(rig_run(&rig, rig_is_done, &call));
    ck_assert_int_lt(call.status, 0);
    rig_forget(&call);
    rig_mds_start(&rig);
}
END_TEST

START_TEST(nothing_is_free_before_every_server_that_is_up_has_the_fence)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDONLY};
    struct rig_call call = {0};

    rig.oss[1].mute = true;
    rig_client_forget(&rig, 0);
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    ck_assert(rig_until(&rig, 10000, fence_arrived, &rig.oss[1]));
    rig_pass(&rig, 500);
    ck_assert(!call.done);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, 0), 0);
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    ck_assert(rig_until(&rig, 5000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
}
END_TEST

START_TEST(a_server_that_is_down_delays_only_files_with_chunks_there)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDONLY};
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDONLY);
    uint64_t small = rep->inode.attr.ino;
    struct rig_call call = {0};

    rig.oss[1].alive = false;
    rig_client_forget(&rig, 0);
    rig_send(&rig, 1, 2, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 9000);
    ck_assert(!call.done);
    rep = rig_open_file(&rig, 1, small, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert(!call.done);
    rig_oss_restart(&rig, 1); /* it gets the fences with its registration */
    ck_assert_uint_gt(rig.oss[1].fence_seq, 0);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(((const struct msg_inode_rep *)call.c.rep)->inode.attr.size, 700000);
    rig_forget(&call);
    ck_assert(rig_until(&rig, 1000, session_gone, NULL));
}
END_TEST

/* What the cut has not reached yet would count as written by the dead. */
START_TEST(a_file_that_is_being_cut_is_sealed_when_every_target_has_cut_it)
{
    struct msg_setattr_req cut = {
        .ino = ino, .set = MSG_SET_SIZE, .size = 1000, .open_id = open_id};
    struct mds_inode in;

    rig.oss[1].mute = true;
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &cut, NULL));
    rig.oss[1].alive = false;
    ck_assert(rig_has(&rig, KEY_PUNCH, ino));
    rig_client_forget(&rig, 0);
    rig_pass(&rig, 12000);
    ck_assert(rig_has(&rig, KEY_RECOVER, ino));
    rig_oss_restart(&rig, 1);
    rig_pass(&rig, 12000);
    ck_assert_uint_gt(rig_oss_count(&rig.oss[1], RPC_OP_OSS_TRUNCATE, ino), 0);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 0);
    rig.oss[0].high_water = rig.oss[1].high_water = 0;
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    ck_assert(rig_until(&rig, 30000, session_gone, NULL));
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 0);
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(in.size, 1000);
}
END_TEST

START_TEST(a_holder_that_keeps_its_lease_is_evicted_although_it_renews)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 3500);
    ck_assert(!call.done);
    ck_assert(rig.client[0].alive);
    ck_assert(rig_until(&rig, 12000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    ck_assert(!rig.client[0].alive); /* its renewal was refused */
}
END_TEST

/* Who waits needs the server too, and what the holder has not written would be lost. */
START_TEST(a_holder_that_cannot_write_back_keeps_its_lease_until_the_server_is_back)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig.client[0].release = false;
    rig.oss[1].alive = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 30000 + (uint64_t)_i * 500);
    ck_assert(!call.done);
    ck_assert(rig.client[0].alive);
    rig_oss_restart(&rig, 1);
    rig_pass(&rig, 2000); /* less than a lease time, which begins now */
    ck_assert(!call.done);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, lease_seq, 12345678);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(((const struct msg_inode_rep *)call.c.rep)->inode.attr.size, 12345678);
    rig_forget(&call);
    ck_assert(rig.client[0].alive);
}
END_TEST

START_TEST(once_the_server_is_back_a_holder_has_a_lease_time)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig.client[0].release = false;
    rig.oss[1].alive = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 30000);
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 20000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    ck_assert(!rig.client[0].alive);
}
END_TEST

START_TEST(what_an_evicted_session_sends_is_refused)
{
    struct msg_size_req size = {.ino = ino, .open_id = open_id, .size = 900000};
    struct msg_create_req create = {
        .parent = KEY_ROOT_INO, .name = str("late"), .mode = 0100666, .flags = 0};

    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, session_gone, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SIZE, &size, NULL), -AIFS_ESESSION);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &create, NULL), -AIFS_ESESSION);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, lease_seq, 12345678);
    rig_settle(&rig);
    {
        struct mds_inode in;

        ck_ok(rig_inode(&rig, ino, &in));
        ck_assert_uint_eq(in.size, 700000);
    }
}
END_TEST

START_TEST(a_client_that_opens_again_loses_its_old_session_at_once)
{
    const struct msg_inode_rep *rep;

    rig.client[0].alive = false;
    rig_client_open(&rig, 0);
    ck_assert_uint_ne(rig.client[0].session, dead);
    ck_assert(rig_until(&rig, 500, session_gone, NULL));
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.attr.size, 700000);
}
END_TEST

START_TEST(an_inline_file_of_a_dead_writer_is_cut_on_the_targets_before_it_is_free)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDWR);
    uint64_t small = rep->inode.attr.ino, gen = rep->inode.attr.truncate_gen;

    rig_client_forget(&rig, 0);
    rep = rig_open_file(&rig, 1, small, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.attr.truncate_gen, gen + 1);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_TRUNCATE, small), 2);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->seq, gen + 1);
}
END_TEST

/* The first of what a server has held. */
static void answer_one(unsigned i)
{
    struct rpc_req *req = list_entry(list_pop_front(&rig.oss[i].held), struct rpc_req, link);
    struct msg_seal_rep seal = {.high_water = rig.oss[i].high_water};

    rpc_reply(req, 0, req->header.op == RPC_OP_OSS_SEAL ? &seal : NULL);
    rig_settle(&rig);
}

static bool held_there(void *arg)
{
    return !list_empty(&((struct rig_oss *)arg)->held);
}

/* What the first seal has found is from before the second writer was kept out. */
START_TEST(a_file_of_two_dead_writers_is_sealed_when_the_second_is_fenced)
{
    struct rig_call call = {0};
    struct mds_inode in;

    rig_open_file(&rig, 1, ino, O_RDWR); /* both without a lease */
    rig.oss[1].mute = true;
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, held_there, &rig.oss[1]));
    answer_one(1); /* the fence */
    ck_assert(rig_until(&rig, 5000, held_there, &rig.oss[1]));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_SEAL, ino), 1);
    rig.client[1].alive = false;
    rig_send(&rig, 1, 0, &call, RPC_OP_SESSION_CLOSE, NULL);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    answer_one(1); /* the seal */
    rig_settle(&rig);
    ck_assert(rig_has(&rig, KEY_RECOVER, ino));
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert(in.flags & INODE_SIZE_UNSURE);
    rig.oss[1].high_water = 900000;
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    rig_client_open(&rig, 2);
    ck_assert_uint_eq(rig_open_file(&rig, 2, ino, O_RDWR)->inode.attr.size, 900000);
}
END_TEST

/* The cut of a growth that was given up was under way already. */
START_TEST(an_earlier_cut_does_not_free_an_inline_file_of_a_dead_writer)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDWR);
    struct msg_size_req size = {.ino = rep->inode.attr.ino,
                                .open_id = rep->open_id,
                                .layout_generation = rep->inode.layout.generation,
                                .give_up = true};
    struct msg_open_req open = {.ino = size.ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig.oss[1].mute = true;
    ck_ok(rig_do(&rig, 0, RPC_OP_SIZE, &size, NULL));
    rig.client[0].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &open);
    rig_settle(&rig);
    answer_one(1); /* the cut of before */
    answer_one(1); /* the fence */
    rig_pass(&rig, 200);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[1], RPC_OP_OSS_TRUNCATE)->seq, 2);
    ck_assert(!call.done);
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    ck_assert(rig_until(&rig, 10000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
}
END_TEST

START_TEST(an_orphan_of_a_dead_client_is_destroyed_after_its_eviction)
{
    struct mds_inode in;

    ck_ok(rig_unlink(&rig, 1, "f"));
    ck_ok(rig_inode(&rig, ino, &in));
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, session_gone, NULL));
    ck_assert_int_eq(rig_inode(&rig, ino, &in), -ENOENT);
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, ino), 0);
    ck_assert(!rig_has(&rig, KEY_DESTROY, ino));
}
END_TEST

static bool file_gone(void *arg)
{
    struct mds_inode in;

    (void)arg;
    return rig_inode(&rig, ino, &in) == -ENOENT;
}

START_TEST(an_eviction_does_not_wait_for_a_file_that_goes_with_its_tree)
{
    struct msg_create_req make = {.parent = KEY_ROOT_INO, .name = str("top"), .mode = 040755};
    struct msg_rename_req move = {.parent = KEY_ROOT_INO, .name = str("f"), .new_name = str("f")};
    struct msg_rmtree_req tree = {.parent = KEY_ROOT_INO, .name = str("top")};
    const void *any;

    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &make, &any));
    tree.ino = move.new_parent = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &move, NULL));
    rig.oss[1].alive = false;
    rig_client_forget(&rig, 0);
    rig_pass(&rig, 12000);
    ck_assert(rig_has(&rig, KEY_RECOVER, ino)); /* its file can not be sealed */
    rig_mds_stop(&rig);                         /* and its opens are forgotten */
    rig_mds_start(&rig);
    rig_oss_restart(&rig, 0);
    rig_client_open(&rig, 1);
    ck_assert(!session_gone(NULL));
    ck_ok(rig_admin(&rig, RPC_OP_RMTREE, &tree, &any));
    ck_assert(rig_until(&rig, 30000, file_gone, NULL));
    ck_assert(rig_until(&rig, 30000, session_gone, NULL));
}
END_TEST

START_TEST(a_session_that_closed_its_files_ends_without_a_fence)
{
    rig_close_file(&rig, 0, ino, open_id);
    rig.client[0].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    ck_assert(session_gone(NULL));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, 0), 0);
}
END_TEST

START_TEST(a_session_that_leaves_with_files_open_is_fenced)
{
    rig.client[0].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    ck_assert(rig_until(&rig, 2000, session_gone, NULL));
    ck_assert(fence_arrived(&rig.oss[0]));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 2);
}
END_TEST

START_TEST(an_eviction_that_fails_is_tried_again_and_nobody_waits_for_ever)
{
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig.client[0].release = false; /* and it goes on renewing */
    ck_ok(fault_arm("mds.evict.entry=error@1"));
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 1000);
    rig.client[0].release = true; /* with the next recall */
    ck_assert(rig_until(&rig, RIG_LEASE / NS_PER_MS, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    ck_assert(rig.client[0].alive);
    ck_assert_uint_eq(fault_count("mds.evict.entry"), 1);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 2);
    fault_disarm_all();
}
END_TEST

START_TEST(a_close_or_new_session_whose_eviction_fails_is_told_so)
{
    struct msg_session_open_req req = {.client = rig.client[0].id, .host = str("host")};

    ck_ok(fault_arm("mds.evict.entry=error@1+"));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL), -ENOMEM);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SESSION_OPEN, &req, NULL), -AIFS_EBUSY_SERVER);
    fault_disarm_all();
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    ck_assert(rig_until(&rig, 2000, session_gone, NULL));
}
END_TEST

START_TEST(a_record_that_could_not_be_removed_goes_later)
{
    rig_close_file(&rig, 0, ino, open_id);
    rig.client[0].alive = false;
    ck_ok(fault_arm("mds.session.remove=error@1"));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL), -ENOMEM);
    ck_assert(rig_until(&rig, 2000, session_gone, NULL));
    fault_disarm_all();
}
END_TEST

START_TEST(a_server_that_was_stopped_for_long_evicts_nobody)
{
    clock_virtual_advance(&rig.clock, 60 * NS_PER_S); /* as if the process had been frozen */
    rig_settle(&rig);
    rig_pass(&rig, 2000);
    ck_assert(rig.client[0].alive);
    ck_assert(rig_has(&rig, KEY_SESSION, dead));
    ck_assert(cluster_target_up(rig.mds, rig.oss[0].target_id[0]));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_silent_writer_is_fenced_then_its_file_sealed_then_free);
    tcase_add_test(t, a_stat_waits_until_the_size_of_a_silent_writers_file_is_recovered);
    tcase_add_test(t, a_stat_that_waits_is_answered_when_the_writer_speaks_or_gives_its_lease_back);
    tcase_add_test(t, a_look_up_does_not_wait_for_a_silent_writer_and_says_that_the_size_is_unsure);
    tcase_add_test(t, who_waits_for_a_silent_writer_is_told_when_the_server_stops);
    tcase_add_test(t, nothing_is_free_before_every_server_that_is_up_has_the_fence);
    tcase_add_test(t, a_server_that_is_down_delays_only_files_with_chunks_there);
    tcase_add_test(t, a_file_that_is_being_cut_is_sealed_when_every_target_has_cut_it);
    tcase_add_test(t, a_holder_that_keeps_its_lease_is_evicted_although_it_renews);
    tcase_add_loop_test(t, a_holder_that_cannot_write_back_keeps_its_lease_until_the_server_is_back,
                        0, 8);
    tcase_add_test(t, once_the_server_is_back_a_holder_has_a_lease_time);
    tcase_add_test(t, what_an_evicted_session_sends_is_refused);
    tcase_add_test(t, a_client_that_opens_again_loses_its_old_session_at_once);
    tcase_add_test(t, an_inline_file_of_a_dead_writer_is_cut_on_the_targets_before_it_is_free);
    tcase_add_test(t, a_file_of_two_dead_writers_is_sealed_when_the_second_is_fenced);
    tcase_add_test(t, an_earlier_cut_does_not_free_an_inline_file_of_a_dead_writer);
    tcase_add_test(t, an_orphan_of_a_dead_client_is_destroyed_after_its_eviction);
    tcase_add_test(t, an_eviction_does_not_wait_for_a_file_that_goes_with_its_tree);
    tcase_add_test(t, a_session_that_closed_its_files_ends_without_a_fence);
    tcase_add_test(t, a_session_that_leaves_with_files_open_is_fenced);
    tcase_add_test(t, an_eviction_that_fails_is_tried_again_and_nobody_waits_for_ever);
    tcase_add_test(t, a_close_or_new_session_whose_eviction_fails_is_told_so);
    tcase_add_test(t, a_record_that_could_not_be_removed_goes_later);
    tcase_add_test(t, a_server_that_was_stopped_for_long_evicts_nobody);
}

int main(void)
{
    return rig_main("mds-evict", add);
}
