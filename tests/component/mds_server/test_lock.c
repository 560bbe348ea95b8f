// SPDX-License-Identifier: Apache-2.0
/* Locks between sessions: who gets one, who waits, who is told, and what a crash, an eviction or a
 * repeated request makes of it. Three clients have one file open. */
#include "common/fault/fault.h"
#include "tests/component/mds_server/rig.h"

#define R MSG_LOCK_READ
#define W MSG_LOCK_WRITE
#define U MSG_LOCK_UNLOCK

static struct rig rig;
static uint64_t ino, open_id[RIG_CLIENTS];

static void setup(void)
{
    rig_open(&rig, NULL);
    rig_oss_start(&rig, 0, 1);
    for (unsigned i = 0; i < RIG_CLIENTS; i++) {
        const struct msg_inode_rep *rep;

        rig_client_open(&rig, i);
        rep = i ? rig_open_file(&rig, i, ino, O_RDWR) : rig_create(&rig, 0, "f", O_RDWR);
        ino = rep->inode.attr.ino;
        open_id[i] = rep->open_id;
    }
}

static void teardown(void)
{
    rig_end(&rig);
}

static struct msg_lock_req ask(unsigned client, uint64_t owner, unsigned type, uint64_t start,
                               uint64_t end, uint64_t wait)
{
    return (struct msg_lock_req){
        .ino = ino,
        .open_id = open_id[client],
        .lock = {.type = type, .start = start, .end = end, .owner = owner, .pid = 9},
        .wait = wait};
}

static const struct msg_lock_rep *lock_req(unsigned client, const struct msg_lock_req *req)
{
    const void *rep;

    ck_ok(rig_do(&rig, client, RPC_OP_LOCK, req, &rep));
    return rep;
}

/* Of the whole file, by owner 1 of the client. */
static bool lock(unsigned client, unsigned type, uint64_t wait)
{
    struct msg_lock_req req = ask(client, 1, type, 0, MSG_LOCK_END, wait);

    return lock_req(client, &req)->granted;
}

static bool flock_it(unsigned client, unsigned type, uint64_t wait)
{
    struct msg_lock_req req = ask(client, 1, type, 0, 0, wait);

    req.lock.kind = MSG_LOCK_FLOCK;
    return lock_req(client, &req)->granted;
}

static unsigned woken(unsigned client)
{
    rig_settle(&rig);
    return rig_client_count(&rig.client[client], RPC_OP_LOCK_WAKE, ino);
}

static bool has_locks(uint64_t session)
{
    struct store_value value = {0};
    struct key k;
    int rc;

    key_lock_session(&k, session, 0);
    rc = store_get(shard_store(rig.mds->shards[0]), NULL, k.b, k.len, &value);
    store_value_release(&value);
    return rc == 0;
}

static uint32_t listed(bool waits)
{
    struct msg_ino_req req = {.ino = ino};
    const struct msg_lock_list_rep *list;
    const void *rep;
    uint32_t n = 0;

    ck_ok(rig_admin(&rig, RPC_OP_LOCK_LIST, &req, &rep));
    list = rep;
    for (uint32_t i = 0; i < list->n_locks; i++) {
        n += list->locks[i].waits == waits;
        ck_assert_uint_eq(list->locks[i].host.len, 4);
    }
    return n;
}

START_TEST(one_writes_or_many_read)
{
    ck_assert(lock(0, R, 0));
    ck_assert(lock(1, R, 0));
    ck_assert(!lock(2, W, 0));
    ck_assert(lock(0, U, 0));
    ck_assert(!lock(1, W, 0) == false); /* the last reader may become the writer */
    ck_assert(!lock(2, R, 0));
    ck_assert_uint_eq(listed(false), 1);
    ck_assert(lock(1, U, 0));
    ck_assert(lock(2, R, 0));
}
END_TEST

START_TEST(ranges_are_apart_and_a_test_names_who_is_in_the_way)
{
    struct msg_lock_req a = ask(0, 1, W, 0, 9, 0), b = ask(1, 1, W, 10, 19, 0),
                        c = ask(2, 1, R, 5, 15, 0);
    const struct msg_lock_rep *rep;
    const void *any;

    ck_assert(lock_req(0, &a)->granted);
    ck_assert(lock_req(1, &b)->granted);
    ck_ok(rig_do(&rig, 2, RPC_OP_LOCK_TEST, &c, &any));
    rep = any;
    ck_assert(!rep->granted && rep->has_other);
    ck_assert_uint_eq(rep->other.session, rig.client[0].session);
    ck_assert_uint_eq(rep->other.end, 9);
    ck_assert_uint_eq(rep->other.pid, 9);
    a.lock = (struct msg_lock){.type = U, .start = 5, .end = 9, .owner = 1};
    ck_assert(lock_req(0, &a)->granted);
    c.lock.end = 9;
    ck_assert(lock_req(2, &c)->granted);
}
END_TEST

/* Who asks without wanting one is not told that nobody has it. */
START_TEST(locks_that_cannot_be_read_are_not_taken_for_none)
{
    struct msg_lock_req test = ask(1, 1, W, 0, 9, 0);
    struct msg_ino_req list = {.ino = ino};
    const void *any;

    ck_assert(lock(0, W, 0));
    ck_ok(fault_arm("mds.store.get=error"));
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LOCK_TEST, &test, NULL), -EIO);
    ck_assert_int_eq(rig_admin(&rig, RPC_OP_LOCK_LIST, &list, NULL), -EIO);
    fault_disarm_all();
    ck_ok(rig_do(&rig, 1, RPC_OP_LOCK_TEST, &test, &any));
    ck_assert(!((const struct msg_lock_rep *)any)->granted);
}
END_TEST

START_TEST(owners_of_one_session_exclude_each_other_too)
{
    struct msg_lock_req a = ask(0, 1, W, 0, 0, 0), b = ask(0, 2, W, 0, 0, 0);

    ck_assert(lock_req(0, &a)->granted);
    ck_assert(!lock_req(0, &b)->granted);
    ck_assert(lock_req(0, &a)->granted); /* again is no conflict */
    ck_assert_uint_eq(listed(false), 1);
}
END_TEST

START_TEST(waits_are_told_in_their_order)
{
    ck_assert(lock(0, W, 0));
    ck_assert(!lock(1, W, 71));
    ck_assert(!lock(2, W, 72));
    ck_assert_uint_eq(listed(true), 2);
    ck_assert_uint_eq(woken(1) + woken(2), 0);
    ck_assert(lock(0, U, 0));
    ck_assert_uint_eq(woken(1), 1);
    ck_assert_uint_eq(woken(2), 0);
    ck_assert(!lock(2, W, 72)); /* not its turn */
    ck_assert(!lock(0, W, 0));  /* nor of one who does not even wait */
    ck_assert(lock(1, W, 71));
    ck_assert(lock(1, U, 0));
    ck_assert_uint_eq(woken(2), 1);
    ck_assert(lock(2, W, 72));
    ck_assert_uint_eq(listed(true), 0);
}
END_TEST

START_TEST(who_does_not_take_what_it_waited_for_delays_others_for_a_moment_only)
{
    ck_assert(lock(0, W, 0));
    ck_assert(!lock(1, W, 71));
    ck_assert(!lock(2, W, 72));
    ck_assert(lock(0, U, 0));
    ck_assert_uint_eq(woken(1), 1);
    rig_pass(&rig, 2500);
    ck_assert_uint_eq(woken(2), 1);
    ck_assert(lock(2, W, 72));
    ck_assert(!lock(1, W, 71)); /* back in line */
    ck_assert(lock(2, U, 0));
    ck_assert_uint_eq(woken(1), 2);
    ck_assert(lock(1, W, 71));
}
END_TEST

START_TEST(a_wait_that_is_given_up_lets_others_pass)
{
    struct msg_lock_wait cancel = {.ino = ino, .wait = 71};

    ck_assert(lock(0, R, 0));
    ck_assert(!lock(1, W, 71));
    ck_assert(!lock(2, R, 72)); /* behind the writer that came first */
    ck_ok(rig_do(&rig, 1, RPC_OP_LOCK_CANCEL, &cancel, NULL));
    ck_assert_uint_eq(woken(2), 1);
    ck_assert(lock(2, R, 72));
    ck_ok(rig_do(&rig, 1, RPC_OP_LOCK_CANCEL, &cancel, NULL)); /* again is nothing */
}
END_TEST

START_TEST(a_circle_between_sessions_is_a_deadlock)
{
    struct msg_lock_req a = ask(0, 1, W, 0, 0, 0), b = ask(1, 1, W, 1, 1, 0);

    ck_assert(lock_req(0, &a)->granted);
    ck_assert(lock_req(1, &b)->granted);
    a = ask(0, 1, W, 1, 1, 71);
    ck_assert(!lock_req(0, &a)->granted);
    b = ask(1, 1, R, 0, 0, 72);
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LOCK, &b, NULL), -EDEADLK);
    ck_assert_uint_eq(listed(true), 1);
    b = ask(1, 1, U, 0, MSG_LOCK_END, 0);
    ck_assert(lock_req(1, &b)->granted);
    ck_assert_uint_eq(woken(0), 1);
}
END_TEST

START_TEST(readers_that_both_want_to_write_are_a_deadlock_but_not_with_flock)
{
    ck_assert(lock(0, R, 0));
    ck_assert(lock(1, R, 0));
    ck_assert(!lock(0, W, 71));
    struct msg_lock_req req = ask(1, 1, W, 0, MSG_LOCK_END, 72);

    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LOCK, &req, NULL), -EDEADLK);
    ck_assert(flock_it(0, R, 0));
    ck_assert(flock_it(1, R, 0));
    ck_assert(!flock_it(0, W, 73)); /* gives up what it has first */
    ck_assert(flock_it(1, W, 74));
    ck_assert(flock_it(1, U, 0));
    ck_assert_uint_eq(woken(0), 1);
    ck_assert(flock_it(0, W, 73));
}
END_TEST

START_TEST(a_repeated_request_is_executed_once)
{
    struct msg_lock_req take = ask(0, 1, W, 0, 9, 0), drop = ask(0, 1, U, 0, 9, 0);
    struct rig_call call = {0};

    ck_assert(lock_req(0, &take)->granted);
    rig_send(&rig, 0, 2, &call, RPC_OP_LOCK, &drop);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_assert(lock(1, W, 0));
    rig_send_again(&rig, 0, 1, &call, RPC_OP_LOCK, &take); /* delayed: its first answer again */
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    rig_forget(&call);
    ck_assert_uint_eq(listed(false), 1);
    ck_assert(!lock(2, R, 0));
}
END_TEST

START_TEST(only_what_is_open_can_be_locked)
{
    struct msg_lock_req req = ask(0, 1, W, 0, 9, 0);

    req.open_id = open_id[1];
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_LOCK, &req, NULL), -EBADF);
}
END_TEST

START_TEST(locks_survive_a_restart_and_waits_ask_again)
{
    ck_assert(lock(0, W, 0));
    ck_assert(!lock(1, W, 71));
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_start(&rig, 0, 1);
    for (unsigned i = 0; i < RIG_CLIENTS; i++) {
        struct msg_reclaim_item item = {.ino = ino, .open_id = open_id[i], .open_flags = O_RDWR};
        struct msg_reclaim_req req = {.n_items = 1, .items = &item, .last = true};

        ck_ok(rig_do(&rig, i, RPC_OP_RECLAIM, &req, NULL));
    }
    ck_assert_uint_eq(listed(false), 1);
    ck_assert(!lock(1, W, 71));
    ck_assert(lock(0, U, 0));
    ck_assert_uint_eq(woken(1), 1);
    ck_assert(lock(1, W, 71));
}
END_TEST

static bool fence_arrived(void *arg)
{
    return rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, *(uint64_t *)arg) > 0;
}

static bool told(void *arg)
{
    return rig_client_count(arg, RPC_OP_LOCK_WAKE, ino) > 0;
}

START_TEST(the_locks_of_a_silent_client_are_free_after_the_fence)
{
    uint64_t dead = rig.client[0].session;

    ck_assert(lock(0, W, 0));
    ck_assert(!lock(1, W, 71));
    rig.oss[0].mute = true;
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, fence_arrived, &dead));
    rig_pass(&rig, 500);
    ck_assert_uint_eq(woken(1), 0); /* its data may still change: the fence is not acknowledged */
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 5000, told, &rig.client[1]));
    ck_assert(lock(1, W, 71));
    ck_assert(!has_locks(dead));
    ck_assert(has_locks(rig.client[1].session));
}
END_TEST

/* A server that does not hear of the fence may be heard of by the dead client. */
START_TEST(a_lock_of_a_silent_client_stays_while_what_it_has_written_under_it_may_still_arrive)
{
    uint64_t dead = rig.client[0].session, small = ino, small_id = open_id[1], large;
    const struct msg_inode_rep *rep;

    ck_assert(lock(0, W, 0));
    rig_oss_start(&rig, 1, 1);
    rep = rig_create(&rig, 0, "large", O_RDWR);
    ino = large = rep->inode.attr.ino;
    open_id[0] = rep->open_id;
    rig_grow(&rig, 0, ino, open_id[0], 8u << 20);
    open_id[1] = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_assert(lock(0, W, 0));
    rig.oss[1].alive = false;
    rig_pass(&rig, 5000);
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, fence_arrived, &dead));
    rig_pass(&rig, 500);
    ck_assert(!lock(1, W, 7));
    ck_assert(has_locks(dead));
    ino = small;
    open_id[2] = open_id[1];
    open_id[1] = small_id;
    ck_assert(lock(1, W, 0));
    ino = large;
    open_id[1] = open_id[2];
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 10000, told, &rig.client[1]));
    ck_assert(lock(1, W, 7));
    ck_assert(!has_locks(dead));
}
END_TEST

static void die_silently(unsigned client)
{
    uint64_t dead = rig.client[client].session;

    rig_client_forget(&rig, client);
    ck_assert(rig_until(&rig, 10000, fence_arrived, &dead));
    rig_pass(&rig, 500);
}

/* Two have written the file, and a server of it is away when they die; then this one restarts, and
 * what it finds names the second. */
START_TEST(so_does_that_of_the_first_of_two_silent_clients_when_the_server_restarts)
{
    uint64_t first = rig.client[0].session;
    struct mds_inode in;

    rig_oss_start(&rig, 1, 1);
    ino = rig_create(&rig, 0, "large", O_RDWR)->inode.attr.ino;
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        open_id[i] = rig_open_file(&rig, i, ino, O_RDWR)->open_id;
    rig_grow(&rig, 0, ino, open_id[0], 8u << 20);
    ck_assert(lock(0, W, 0));
    rig.oss[1].alive = false;
    rig_pass(&rig, 5000);
    die_silently(0);
    die_silently(1);
    rig_mds_stop(&rig);
    rig_mds_start(&rig);
    rig_oss_start(&rig, 0, 1);
    ck_ok(rig_reclaim(&rig, 2, ino, open_id[2], O_RDWR, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 10000, rig_grace_over, &rig));
    rig_pass(&rig, 500);
    ck_assert(has_locks(first));
    ck_assert(!lock(2, W, 7));
    rig.oss[1].high_water = 9u << 20;
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 10000, told, &rig.client[2]));
    ck_assert(lock(2, W, 7));
    ck_assert(!has_locks(first));
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(in.size, 9u << 20);
}
END_TEST

START_TEST(a_client_that_leaves_gives_up_its_locks_and_waits)
{
    ck_assert(lock(0, W, 0));
    ck_assert(!lock(1, W, 71));
    ck_assert(!lock(2, W, 72));
    rig_close_file(&rig, 1, ino, open_id[1]);
    rig_close_file(&rig, 0, ino, open_id[0]);
    ck_ok(rig_do(&rig, 1, RPC_OP_SESSION_CLOSE, NULL, NULL));
    rig.client[1].alive = false;
    ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    rig.client[0].alive = false;
    ck_assert_uint_eq(woken(2), 1);
    ck_assert(lock(2, W, 72));
    ck_assert_uint_eq(listed(false), 1);
}
END_TEST

/* It was asked for before the session ended, and is refused behind that. */
START_TEST(a_session_that_ends_while_its_lock_is_refused_waits_for_nothing)
{
    struct msg_lock_req want = ask(0, 1, W, 0, 0, 7);
    struct rig_call lock_call = {0}, close_call = {0};

    want.lock.kind = MSG_LOCK_FLOCK;
    ck_assert(flock_it(0, R, 0));
    ck_assert(flock_it(1, R, 0));
    rig.client[0].alive = false;
    rig_send(&rig, 0, 1, &lock_call, RPC_OP_LOCK, &want); /* what it has goes first */
    rig_send(&rig, 0, 0, &close_call, RPC_OP_SESSION_CLOSE, NULL);
    ck_assert(rig_until(&rig, 2000, rig_is_done, &close_call));
    ck_assert(rig_until(&rig, 2000, rig_is_done, &lock_call));
    rig_pass(&rig, 1000);
    ck_assert_uint_eq(listed(true), 0);
    ck_assert_int_ne(lock_call.status, 0);
    rig_forget(&lock_call);
    rig_forget(&close_call);
}
END_TEST

START_TEST(a_file_has_so_many_locks_and_no_more)
{
    struct msg_lock_req req = ask(0, 1, W, 0, 0, 0);

    struct msg_lock_req many[16];
    struct rig_call calls[16] = {0};

    for (uint64_t i = 0; i < 4096; i += 16) {
        for (unsigned k = 0; k < 16; k++) {
            many[k] = ask(0, 1, W, 2 * (i + k), 2 * (i + k), 0);
            rig_send(&rig, 0, k + 1, &calls[k], RPC_OP_LOCK, &many[k]);
        }
        for (unsigned k = 0; k < 16; k++) {
            ck_assert(rig_until(&rig, 1000, rig_is_done, &calls[k]));
            ck_ok(calls[k].status);
            rig_forget(&calls[k]);
        }
    }
    req.lock.start = req.lock.end = 2 * 4096;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_LOCK, &req, NULL), -ENOLCK);
    ck_assert(lock(0, U, 0));
    ck_assert(!rig_has(&rig, KEY_LOCK, ino));
    ck_assert(!has_locks(rig.client[0].session));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_writes_or_many_read);
    tcase_add_test(t, ranges_are_apart_and_a_test_names_who_is_in_the_way);
    tcase_add_test(t, locks_that_cannot_be_read_are_not_taken_for_none);
    tcase_add_test(t, owners_of_one_session_exclude_each_other_too);
    tcase_add_test(t, waits_are_told_in_their_order);
    tcase_add_test(t, who_does_not_take_what_it_waited_for_delays_others_for_a_moment_only);
    tcase_add_test(t, a_wait_that_is_given_up_lets_others_pass);
    tcase_add_test(t, a_circle_between_sessions_is_a_deadlock);
    tcase_add_test(t, readers_that_both_want_to_write_are_a_deadlock_but_not_with_flock);
    tcase_add_test(t, a_repeated_request_is_executed_once);
    tcase_add_test(t, only_what_is_open_can_be_locked);
    tcase_add_test(t, locks_survive_a_restart_and_waits_ask_again);
    tcase_add_test(t, the_locks_of_a_silent_client_are_free_after_the_fence);
    tcase_add_test(
        t, a_lock_of_a_silent_client_stays_while_what_it_has_written_under_it_may_still_arrive);
    tcase_add_test(t, so_does_that_of_the_first_of_two_silent_clients_when_the_server_restarts);
    tcase_add_test(t, a_client_that_leaves_gives_up_its_locks_and_waits);
    tcase_add_test(t, a_session_that_ends_while_its_lock_is_refused_waits_for_nothing);
    tcase_add_test(t, a_file_has_so_many_locks_and_no_more);
}

int main(void)
{
    return rig_main("mds-lock", add);
}
