// SPDX-License-Identifier: Apache-2.0
/* The workers of the destroy and punch queues. */
#include <stdio.h>

#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_open(&rig, NULL);
    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    rig_client_open(&rig, 0);
}

static void teardown(void)
{
    rig_end(&rig);
}

static uint64_t make_large(const char *name, uint64_t *ret_open)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, name, O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;

    rig_grow(&rig, 0, ino, open_id, 100000);
    if (ret_open)
        *ret_open = open_id;
    else
        rig_close_file(&rig, 0, ino, open_id);
    return ino;
}

static bool queue_empty(void *arg)
{
    return !rig_has(&rig, KEY_DESTROY, *(uint64_t *)arg) &&
           !rig_has(&rig, KEY_PUNCH, *(uint64_t *)arg);
}

START_TEST(chunks_of_a_removed_file_are_destroyed_on_every_target)
{
    uint64_t ino = make_large("f", NULL);

    ck_ok(rig_unlink(&rig, 0, "f"));
    ck_assert(rig_until(&rig, 1000, queue_empty, &ino));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, ino), 1);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, ino), 1);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_DESTROY)->target,
                      rig.oss[0].target_id[0]);
}
END_TEST

START_TEST(a_file_that_never_had_chunks_is_just_gone)
{
    (void)rig_make(&rig, 0, "f");
    ck_ok(rig_unlink(&rig, 0, "f"));
    rig_pass(&rig, 500);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, 0), 0);
}
END_TEST

START_TEST(a_server_that_is_down_gets_the_destroys_when_it_is_back)
{
    uint64_t ino = make_large("f", NULL);

    rig.oss[1].alive = false;
    rig_pass(&rig, 4000); /* it is offline now */
    ck_ok(rig_unlink(&rig, 0, "f"));
    rig_pass(&rig, 3000);
    ck_assert(rig_has(&rig, KEY_DESTROY, ino));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, ino), 0);
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 1000, queue_empty, &ino)); /* its registration is enough */
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, ino), 1);
}
END_TEST

/* The only target of server 1. */
static void give_up(void)
{
    struct msg_pool_req lost = {.n_targets = 1, .targets = &rig.oss[1].target_id[0]};
    const void *any;

    ck_ok(rig_admin(&rig, RPC_OP_TARGET_REPLACE, &lost, &any));
}

START_TEST(a_target_that_is_given_up_has_confirmed_everything)
{
    uint64_t open_id, ino = make_large("f", NULL), cut = make_large("g", &open_id), later;
    struct msg_setattr_req req = {
        .ino = cut, .set = MSG_SET_SIZE, .size = 40000, .open_id = open_id};
    struct mds_inode in;

    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    ck_ok(rig_unlink(&rig, 0, "f"));
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &req, NULL)); /* after a second, with the cut pending */
    rig_pass(&rig, 3000);
    ck_assert(rig_has(&rig, KEY_DESTROY, ino) && rig_has(&rig, KEY_PUNCH, cut));
    give_up();
    ck_assert(rig_until(&rig, 1000, queue_empty, &ino));
    ck_assert(rig_until(&rig, 1000, queue_empty, &cut));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_TRUNCATE, cut), 1);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, 0), 0);
    ck_ok(rig_inode(&rig, cut, &in));
    ck_assert(!(in.flags & INODE_PUNCH_PENDING));
    later = make_large("h", NULL);
    ck_ok(rig_inode(&rig, later, &in));
    ck_assert_uint_eq(in.layout.stripe_count, 1);
    rig_oss_restart(&rig, 1); /* it is there again: too late */
    ck_assert_uint_eq(rig.oss[1].target_id[0], 0);
    ck_ok(rig_unlink(&rig, 0, "h"));
    ck_assert(rig_until(&rig, 1000, queue_empty, &later));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, 0), 0);
}
END_TEST

START_TEST(an_error_of_a_server_keeps_the_item_and_it_is_tried_again)
{
    uint64_t ino = make_large("f", NULL), other = make_large("g", NULL);

    rig.oss[1].fail = -EIO;
    ck_ok(rig_unlink(&rig, 0, "f"));
    rig_pass(&rig, 2000);
    ck_assert(rig_has(&rig, KEY_DESTROY, ino));
    rig.oss[1].fail = 0;
    ck_ok(rig_unlink(&rig, 0, "g")); /* a kick finds both */
    ck_assert(rig_until(&rig, 1000, queue_empty, &other));
    ck_assert(rig_until(&rig, 20000, queue_empty, &ino));
}
END_TEST

static bool all_gone(void *arg)
{
    for (uint64_t i = 1; i <= *(uint64_t *)arg; i++) {
        if (rig_has(&rig, KEY_DESTROY, i))
            return false;
    }
    return true;
}

START_TEST(many_removed_files_go_in_few_calls)
{
    uint64_t last = 0;
    char name[16];
    unsigned calls = 0;

    rig.oss[0].mute = rig.oss[1].mute = true; /* the first call keeps the rest waiting */
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "f%u", i);
        last = make_large(name, NULL);
        ck_ok(rig_unlink(&rig, 0, name));
    }
    rig.oss[0].mute = rig.oss[1].mute = false;
    rig_oss_release(&rig, 0);
    rig_oss_release(&rig, 1);
    ck_assert(rig_until(&rig, 5000, all_gone, &last));
    for (unsigned i = 0; i < RIG_NOTES; i++)
        calls += rig.oss[0].notes[i].op == RPC_OP_OSS_DESTROY && rig.oss[0].notes[i].n > 100;
    ck_assert_uint_gt(calls, 100);
}
END_TEST

static void mute(bool on)
{
    rig.oss[0].mute = rig.oss[1].mute = on;
}

static void release(void)
{
    rig_oss_release(&rig, 0);
    rig_oss_release(&rig, 1);
}

START_TEST(a_file_removed_while_a_page_is_destroyed_does_not_hide_the_next_page)
{
    uint64_t last = 0;
    char name[16];

    mute(true);
    for (unsigned i = 0; i < 560; i++) { /* more than two pages */
        snprintf(name, sizeof name, "f%u", i);
        make_large(name, NULL);
        ck_ok(rig_unlink(&rig, 0, name));
    }
    last = make_large("last", NULL);
    release(); /* the first file, which waited for nobody */
    rig_pass(&rig, 100);
    release();
    rig_pass(&rig, 100);
    ck_ok(rig_unlink(&rig, 0, "last"));
    rig_pass(&rig, 100);
    mute(false);
    release();
    ck_assert(rig_until(&rig, 5000, all_gone, &last));
}
END_TEST

/* Makes n files and removes one every 20 ms; how many the first server has been told of. */
static unsigned remove_slowly(unsigned n, bool roomy, uint64_t *ret_last)
{
    char name[16];

    rig.oss[0].roomy = rig.oss[1].roomy = roomy;
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "f%u", i);
        *ret_last = make_large(name, NULL);
    }
    rig_pass(&rig, 2500); /* heartbeats */
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "f%u", i);
        ck_ok(rig_unlink(&rig, 0, name));
        clock_virtual_advance(&rig.clock, 20 * NS_PER_MS);
        rig_settle(&rig);
    }
    return rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, 0);
}

START_TEST(destruction_waits_for_a_pause_in_the_removals)
{
    uint64_t last;

    ck_assert_uint_eq(remove_slowly(20, true, &last), 1);
    ck_assert(rig_until(&rig, 200, all_gone, &last));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, 0), 20);
}
END_TEST

START_TEST(destruction_waits_no_longer_than_a_second)
{
    uint64_t last;
    unsigned n = remove_slowly(60, true, &last);

    ck_assert_uint_ge(n, 40);
    ck_assert_uint_lt(n, 60);
    ck_assert(rig_until(&rig, 200, all_gone, &last));
}
END_TEST

START_TEST(destruction_does_not_wait_for_a_pause_when_a_target_is_short_of_space)
{
    uint64_t last;

    ck_assert_uint_ge(remove_slowly(20, false, &last), 15);
    ck_assert(rig_until(&rig, 200, all_gone, &last));
}
END_TEST

START_TEST(a_truncate_is_answered_when_every_target_has_cut)
{
    uint64_t open_id, ino = make_large("f", &open_id);
    struct msg_setattr_req req = {
        .ino = ino, .set = MSG_SET_SIZE, .size = 5000, .open_id = open_id};
    struct rig_call call = {0};
    const struct msg_inode_rep *rep;

    rig.oss[1].mute = true;
    rig_send(&rig, 0, 1, &call, RPC_OP_SETATTR, &req);
    rig_pass(&rig, 300);
    ck_assert(!call.done);
    rig.oss[1].mute = false;
    rig_oss_release(&rig, 1);
    ck_assert(rig_until(&rig, 300, rig_is_done, &call));
    ck_ok(call.status);
    rep = call.c.rep;
    ck_assert_uint_eq(rep->inode.attr.size, 5000);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->size, 5000);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->seq,
                      rep->inode.attr.truncate_gen);
    rig_forget(&call);
}
END_TEST

START_TEST(a_truncate_that_can_not_reach_a_target_is_answered_with_the_flag_set)
{
    uint64_t open_id, ino = make_large("f", &open_id);
    struct msg_setattr_req cut = {
        .ino = ino, .set = MSG_SET_SIZE, .size = 5000, .open_id = open_id};
    struct msg_setattr_req grow = cut;
    struct rig_call call = {0};
    const void *any;

    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &cut, &any));
    ck_assert(((const struct msg_inode_rep *)any)->inode.attr.flags & MSG_ATTR_PUNCH_PENDING);
    grow.size = 9000;
    rig_send(&rig, 0, 1, &call, RPC_OP_SETATTR, &grow);
    rig_pass(&rig, 2000);
    ck_assert(!call.done); /* no larger size before the cut is everywhere */
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 2000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(((const struct msg_inode_rep *)call.c.rep)->inode.attr.size, 9000);
    rig_forget(&call);
    ck_assert(queue_empty(&ino));
}
END_TEST

static const struct msg_inode_rep *given_up(uint64_t ino, uint64_t open_id, struct rig_call *call)
{
    struct msg_size_req req = {.ino = ino, .open_id = open_id, .give_up = true};
    struct mds_inode in;

    ck_ok(rig_inode(&rig, ino, &in));
    req.layout_generation = in.layout.generation;
    req.truncate_gen = in.truncate_gen;
    rig_send(&rig, 0, 1, call, RPC_OP_SIZE, &req);
    ck_assert(rig_until(&rig, 3000, rig_is_done, call));
    ck_ok(call->status);
    return call->c.rep;
}

START_TEST(a_growth_that_is_given_up_is_cut_on_every_target)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct rig_call call = {0};

    rep = given_up(ino, open_id, &call);
    ck_assert_uint_eq(rep->inode.attr.truncate_gen, 1);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
    for (unsigned k = 0; k < 2; k++) {
        ck_assert_uint_eq(rig_oss_last(&rig.oss[k], RPC_OP_OSS_TRUNCATE)->size, 0);
        ck_assert_uint_eq(rig_oss_last(&rig.oss[k], RPC_OP_OSS_TRUNCATE)->seq, 1);
    }
    rig_forget(&call);
    rig_close_file(&rig, 0, ino, open_id);
    ck_ok(rig_unlink(&rig, 0, "small"));
    ck_assert(rig_until(&rig, 3000, queue_empty, &ino));
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, ino), 0);
}
END_TEST

START_TEST(a_growth_that_is_given_up_is_cut_after_a_restart_too)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct rig_call call = {0};
    struct mds_inode in;

    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    rep = given_up(ino, rep->open_id, &call);
    ck_assert(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING);
    rig_forget(&call);
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_restart(&rig, 0);
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 30000, queue_empty, &ino));
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(in.flags & INODE_PUNCH_PENDING, 0);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[1], RPC_OP_OSS_TRUNCATE)->seq, 1);
}
END_TEST

START_TEST(a_growth_is_not_given_up_by_who_does_not_hold_the_file)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "small", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct msg_lease_req back = {
        .ino = ino, .lease = MSG_LEASE_NONE, .lease_seq = rep->inode.lease_seq};
    struct msg_size_req req = {.ino = ino,
                               .open_id = open_id,
                               .layout_generation = rep->inode.layout.generation,
                               .give_up = true};

    ck_ok(rig_do(&rig, 0, RPC_OP_LEASE_RELEASE, &back, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SIZE, &req, NULL), -AIFS_ELEASE);
    ck_assert(queue_empty(&ino));
}
END_TEST

START_TEST(a_second_cut_while_the_first_is_under_way_is_not_forgotten)
{
    uint64_t open_id, ino = make_large("f", &open_id);
    struct msg_setattr_req req = {
        .ino = ino, .set = MSG_SET_SIZE, .size = 5000, .open_id = open_id};
    struct msg_setattr_req less = req;
    struct rig_call first = {0}, second = {0};

    rig.oss[0].mute = true;
    rig_send(&rig, 0, 1, &first, RPC_OP_SETATTR, &req);
    rig_settle(&rig);
    less.size = 3000;
    rig_send(&rig, 0, 2, &second, RPC_OP_SETATTR, &less);
    rig_settle(&rig);
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 3000, rig_is_done, &first));
    ck_assert(rig_until(&rig, 3000, rig_is_done, &second));
    ck_assert(rig_until(&rig, 8000, queue_empty, &ino));
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->size, 3000);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[1], RPC_OP_OSS_TRUNCATE)->size, 3000);
    rig_forget(&first);
    rig_forget(&second);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, chunks_of_a_removed_file_are_destroyed_on_every_target);
    tcase_add_test(t, a_file_that_never_had_chunks_is_just_gone);
    tcase_add_test(t, a_server_that_is_down_gets_the_destroys_when_it_is_back);
    tcase_add_test(t, a_target_that_is_given_up_has_confirmed_everything);
    tcase_add_test(t, an_error_of_a_server_keeps_the_item_and_it_is_tried_again);
    tcase_add_test(t, many_removed_files_go_in_few_calls);
    tcase_add_test(t, a_file_removed_while_a_page_is_destroyed_does_not_hide_the_next_page);
    tcase_add_test(t, destruction_waits_for_a_pause_in_the_removals);
    tcase_add_test(t, destruction_waits_no_longer_than_a_second);
    tcase_add_test(t, destruction_does_not_wait_for_a_pause_when_a_target_is_short_of_space);
    tcase_add_test(t, a_truncate_is_answered_when_every_target_has_cut);
    tcase_add_test(t, a_truncate_that_can_not_reach_a_target_is_answered_with_the_flag_set);
    tcase_add_test(t, a_growth_that_is_given_up_is_cut_on_every_target);
    tcase_add_test(t, a_growth_that_is_given_up_is_cut_after_a_restart_too);
    tcase_add_test(t, a_growth_is_not_given_up_by_who_does_not_hold_the_file);
    tcase_add_test(t, a_second_cut_while_the_first_is_under_way_is_not_forgotten);
}

int main(void)
{
    return rig_main("mds-queue", add);
}
