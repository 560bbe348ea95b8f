// SPDX-License-Identifier: Apache-2.0
/*
 * A metadata server whose store cannot be read at times: an error is no "no". What is open lives,
 * what is cut stays cut, and nobody is evicted or left untold over it.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "common/fault/fault.h"
#include "tests/component/mds_server/rig.h"

#define READS_MAX 40u /* of the store, no change makes so many */
#define OTHERS    200u

static struct rig rig;
static uint64_t file, open_id;
static uint64_t open_ino, others[OTHERS];

static void setup(void)
{
    rig_begin(&rig, 2, 1);
    file = rig_make(&rig, 0, "f");
    rig.shard.overlay_bytes = rig.shard.view_bytes = 1; /* nothing stays cached between calls */
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    open_id = rig_open_file(&rig, 0, file, O_RDWR)->open_id;
}

static void teardown(void)
{
    fault_disarm_all();
    rig_end(&rig);
}

static void make_others(void)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        struct msg_create_req req = {.parent = KEY_ROOT_INO, .mode = 0100666};
        char name[16];
        const void *any;

        snprintf(name, sizeof name, "other%u", i);
        req.name = str(name);
        ck_ok(rig_do(&rig, 0, RPC_OP_MKNOD, &req, &any));
        others[i] = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    }
}

/* The cache has room for one of them in each of its parts. */
static void forget_cached(void)
{
    struct mds_inode in;

    for (unsigned i = 0; i < OTHERS; i++)
        ck_ok(rig_inode(&rig, others[i], &in));
}

static int remove_open(bool by_rename)
{
    struct msg_rename_req move = {
        .parent = KEY_ROOT_INO, .name = str("x"), .new_parent = KEY_ROOT_INO, .new_name = str("y")};

    return by_rename ? rig_do(&rig, 0, RPC_OP_RENAME, &move, NULL) : rig_unlink(&rig, 0, "y");
}

/* What is open lives, whichever read of the store fails. */
START_TEST(a_read_that_fails_makes_no_open_file_a_closed_one)
{
    bool failed = true;

    make_others();
    for (unsigned nth = 1; failed; nth++) {
        const struct msg_inode_rep *rep = rig_create(&rig, 0, "x", O_RDWR);
        struct mds_inode in;
        char spec[64];
        uint64_t id;
        int rc;

        ck_assert_uint_lt(nth, READS_MAX);
        rig_close_file(&rig, 0, rep->inode.attr.ino, rep->open_id);
        rep = rig_create(&rig, 0, "y", O_RDWR);
        open_ino = rep->inode.attr.ino;
        id = rep->open_id;
        forget_cached();
        snprintf(spec, sizeof spec, "mds.store.get=error@%u", nth);
        ck_ok(fault_arm(spec));
        rc = remove_open(_i);
        failed = fault_count("mds.store.get") >= nth;
        fault_disarm_all();
        ck_assert(rc == 0 || failed);
        if (rc != 0)
            ck_ok(remove_open(_i));
        ck_assert_msg(rig_inode(&rig, open_ino, &in) == 0, "read %u: the file is gone", nth);
        rig_close_file(&rig, 0, open_ino, id);
        rig_settle(&rig);
        ck_assert_int_eq(rig_inode(&rig, open_ino, &in), -ENOENT);
        (void)rig_unlink(&rig, 0, "x");
        (void)rig_unlink(&rig, 0, "y");
    }
}
END_TEST

static struct msg_setattr_req shrink = {.set = MSG_SET_SIZE, .size = 1000};

/* Of a file with chunks on a server that does not answer; it is not in the cache. */
static void begin_cut(struct rig_call *call)
{
    make_others();
    rig_grow(&rig, 0, file, open_id, 100000);
    rig.oss[0].mute = true;
    shrink.ino = file;
    rig_send(&rig, 0, 1, call, RPC_OP_SETATTR, &shrink);
    rig_settle(&rig);
    ck_assert(!call->done);
    ck_assert(rig_has(&rig, KEY_PUNCH, file));
    forget_cached();
}

START_TEST(a_read_that_fails_makes_no_cut_a_finished_one)
{
    struct rig_call call = {0};

    begin_cut(&call);
    ck_ok(fault_arm("mds.store.get=error@1+"));
    rig_pass(&rig, 600);
    ck_assert_uint_gt(fault_count("mds.store.get"), 0);
    fault_disarm_all();
    ck_assert(!call.done);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert(((const struct msg_inode_rep *)call.c.rep)->inode.attr.flags &
              MSG_ATTR_PUNCH_PENDING);
    rig_forget(&call);
}
END_TEST

/* Those that the server has held. */
static void answer(unsigned op)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &rig.oss[0].held) {
        struct rpc_req *req = list_entry(l, struct rpc_req, link);

        if (req->header.op != op)
            continue;
        list_remove(l);
        rpc_reply(req, 0, NULL);
    }
}

/* What is to be cut would count as written. */
START_TEST(a_read_that_fails_lets_no_file_be_sealed_before_it_is_cut)
{
    struct rig_call call = {0};
    struct mds_inode in;

    begin_cut(&call);
    rig.client[0].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    rig_settle(&rig);
    forget_cached();
    ck_ok(fault_arm("mds.store.get=error@1+"));
    answer(RPC_OP_OSS_FENCE);
    rig_pass(&rig, 400);
    ck_assert_uint_gt(fault_count("mds.store.get"), 0);
    fault_disarm_all();
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, file), 0);
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    rig_pass(&rig, 20000);
    ck_assert(!rig_has(&rig, KEY_RECOVER, file));
    ck_ok(rig_inode(&rig, file, &in));
    ck_assert_uint_eq(in.size, 1000);
    rig_forget(&call);
}
END_TEST

static bool told_of_owner(uint64_t ino)
{
    const struct rig_client *c = &rig.client[1];

    for (unsigned k = 0; k < MIN(c->n_notes, (unsigned)RIG_NOTES); k++) {
        if (c->notes[k].op == RPC_OP_INVALIDATE && c->notes[k].ino == ino && c->notes[k].owner)
            return true;
    }
    return false;
}

/* Kernels ask for who owns a file when they look up its name, and are told to do so again. */
START_TEST(a_read_that_fails_hides_no_change_of_the_owner)
{
    struct msg_ino_req look;
    struct msg_setattr_req set = {.set = MSG_SET_UID};
    bool failed = true;

    make_others();
    rig_client_open(&rig, 1);
    look = (struct msg_ino_req){.ino = others[0]};
    set.ino = others[0];
    for (unsigned nth = 1; failed; nth++) {
        char spec[64];
        int rc;

        ck_assert_uint_lt(nth, READS_MAX);
        ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &look, NULL));
        rig.client[1].n_notes = 0;
        set.uid = nth;
        forget_cached();
        snprintf(spec, sizeof spec, "mds.store.get=error@%u", nth);
        ck_ok(fault_arm(spec));
        rc = rig_do(&rig, 0, RPC_OP_SETATTR, &set, NULL);
        failed = fault_count("mds.store.get") >= nth;
        fault_disarm_all();
        ck_assert(rc == 0 || failed);
        ck_assert_msg(rc < 0 || told_of_owner(others[0]), "read %u: nobody is told", nth);
        rig_pass(&rig, 2000); /* it does not come to shared mode */
    }
}
END_TEST

START_TEST(a_read_that_fails_evicts_nobody_whose_storage_server_is_away)
{
    struct msg_open_req req = {.flags = O_RDONLY};
    struct rig_call call = {0};

    make_others();
    rig_client_open(&rig, 1);
    rig_grow(&rig, 0, file, open_id, 100000);
    rig.oss[0].alive = false;
    rig_pass(&rig, 6000);
    rig.client[0].release = false;
    req.ino = file;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_settle(&rig);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, file), 1);
    rig_pass(&rig, RIG_LEASE / NS_PER_MS - 50);
    forget_cached();
    ck_ok(fault_arm("mds.store.get=error@1"));
    rig_pass(&rig, 1000);
    ck_assert_uint_gt(fault_count("mds.store.get"), 0);
    fault_disarm_all();
    rig_pass(&rig, 10000);
    ck_assert(rig.client[0].alive);
    ck_assert(!call.done);
    rig.oss[0].alive = true;
    rig_pass(&rig, 20000);
    ck_assert(!rig.client[0].alive); /* it could have by now */
    rig_forget(&call);
}
END_TEST

/* The cut of a growth that was given up was under way already when its writer died. */
START_TEST(a_read_that_fails_lets_no_earlier_cut_free_the_file_of_a_dead_writer)
{
    const struct msg_inode_rep *rep;
    struct msg_size_req size = {.give_up = true};
    struct msg_open_req open = {.flags = O_RDWR};
    struct rig_call told = {0}, call = {0};

    make_others();
    rep = rig_create(&rig, 0, "small", O_RDWR);
    open.ino = size.ino = rep->inode.attr.ino;
    size.open_id = rep->open_id;
    size.layout_generation = rep->inode.layout.generation;
    rig.oss[0].mute = true;
    rig_send(&rig, 0, 1, &told, RPC_OP_SIZE, &size);
    rig_settle(&rig);
    ck_assert(rig_has(&rig, KEY_PUNCH, size.ino));
    rig.client[0].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    rig_client_open(&rig, 1);
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &open);
    rig_settle(&rig);
    forget_cached();
    ck_ok(fault_arm("mds.store.get=error@2+")); /* the first one is of the item */
    answer(RPC_OP_OSS_TRUNCATE);
    rig_settle(&rig);
    ck_assert_uint_gt(fault_count("mds.store.get"), 1);
    fault_disarm_all();
    answer(RPC_OP_OSS_FENCE);
    rig_pass(&rig, 200);
    ck_assert(!call.done);
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 10000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    rig_forget(&told);
}
END_TEST
static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_read_that_fails_makes_no_cut_a_finished_one);
    tcase_add_test(t, a_read_that_fails_lets_no_file_be_sealed_before_it_is_cut);
    tcase_add_test(t, a_read_that_fails_hides_no_change_of_the_owner);
    tcase_add_test(t, a_read_that_fails_evicts_nobody_whose_storage_server_is_away);
    tcase_add_test(t, a_read_that_fails_lets_no_earlier_cut_free_the_file_of_a_dead_writer);
    tcase_add_loop_test(t, a_read_that_fails_makes_no_open_file_a_closed_one, 0, 2);
}

int main(void)
{
    return rig_main("mds-failed-reads", add);
}
