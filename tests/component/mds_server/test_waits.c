// SPDX-License-Identifier: Apache-2.0
/* WAITS: who waits for whom. */
#include "mds/store/key_fmt.h"
#include "tests/component/mds_server/rig.h"

static struct rig rig;
static struct rig_call late; /* under way until the end of a test */

static void setup(void)
{
    rig_begin(&rig, 1, RIG_CLIENTS);
}

static void teardown(void)
{
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig_client_answer(&rig, i);
    rig_settle(&rig);
    rig_forget(&late);
    rig_end(&rig);
}

static const struct msg_waits_rep *waits(void)
{
    static const struct msg_empty none;
    const void *rep;

    ck_ok(rig_admin(&rig, RPC_OP_WAITS, &none, &rep));
    return rep;
}

static bool lock(unsigned client, uint64_t ino, uint64_t open_id, unsigned kind, uint64_t wait)
{
    struct msg_lock_req req = {
        .ino = ino,
        .open_id = open_id,
        .wait = wait,
        .lock = {
            .kind = kind, .type = MSG_LOCK_WRITE, .start = 5, .end = 9, .owner = 1, .pid = client}};
    const struct msg_lock_rep *rep;
    const void *any;

    ck_ok(rig_do(&rig, client, RPC_OP_LOCK, &req, &any));
    rep = any;
    return rep->granted;
}

START_TEST(nobody_waits_in_a_quiet_cluster)
{
    ck_assert_uint_eq(waits()->n_waits, 0);
    ck_assert(!waits()->more);
}
END_TEST

static void who_waits_for_a_lock(unsigned kind, uint32_t told)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id[RIG_CLIENTS] = {rep->open_id};
    const struct msg_wait *w;

    for (unsigned i = 1; i < RIG_CLIENTS; i++)
        open_id[i] = rig_open_file(&rig, i, ino, O_RDWR)->open_id;
    ck_assert(lock(0, ino, open_id[0], kind, 0));
    rig_pass(&rig, 1000);
    ck_assert(!lock(1, ino, open_id[1], kind, 71));
    ck_assert(!lock(2, ino, open_id[2], kind, 72));
    rig_pass(&rig, 1000);
    ck_assert_uint_eq(waits()->n_waits, 2);
    w = waits()->waits;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(w[i].kind, told);
        ck_assert_uint_eq(w[i].ino, ino);
        ck_assert(w[i].write && w[i].has_other && !w[i].other_waits);
        ck_assert_uint_eq(w[i].who.session, rig.client[i + 1].session);
        ck_assert_uint_eq(w[i].who.pid, i + 1);
        ck_assert_uint_eq(w[i].who.host.len, 4);
        ck_assert_uint_ge(w[i].who.age_ns, NS_PER_S);
        ck_assert_uint_eq(w[i].other.session, rig.client[0].session);
        ck_assert_uint_ge(w[i].other.age_ns, 2 * NS_PER_S);
    }
    if (kind == MSG_LOCK_RECORD) {
        ck_assert_uint_eq(w[0].start, 5);
        ck_assert_uint_eq(w[0].end, 9);
    }
}

START_TEST(who_waits_for_a_record_lock_is_told_with_who_holds_it)
{
    who_waits_for_a_lock(MSG_LOCK_RECORD, MSG_WAIT_RECORD);
}
END_TEST

START_TEST(who_waits_for_a_flock_is_told_with_who_holds_it)
{
    who_waits_for_a_lock(MSG_LOCK_FLOCK, MSG_WAIT_FLOCK);
}
END_TEST

START_TEST(who_comes_after_others_is_told_with_the_first_of_them)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, a = rep->open_id, b, c;
    struct msg_lock_req read = {.ino = ino, .open_id = a, .lock = {.owner = 1, .end = 9}};

    b = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    c = rig_open_file(&rig, 2, ino, O_RDWR)->open_id;
    ck_ok(rig_do(&rig, 0, RPC_OP_LOCK, &read, NULL));
    ck_assert(!lock(1, ino, b, MSG_LOCK_RECORD, 71));
    read.open_id = c;
    read.wait = 72;
    ck_ok(rig_do(&rig, 2, RPC_OP_LOCK, &read, NULL)); /* behind the writer that came first */
    ck_assert_uint_eq(waits()->n_waits, 2);
    ck_assert(waits()->waits[1].other_waits && !waits()->waits[1].write);
    ck_assert_uint_eq(waits()->waits[1].other.session, rig.client[1].session);
}
END_TEST

START_TEST(a_change_that_waits_for_a_writer_is_told_with_him)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, seq = rep->inode.lease_seq;
    struct msg_setattr_req req = {.ino = ino, .set = MSG_SET_SIZE, .size = 0};
    const struct msg_wait *w;

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &late, RPC_OP_SETATTR, &req);
    rig_pass(&rig, 1000);
    ck_assert_uint_eq(waits()->n_waits, 1);
    w = waits()->waits;
    ck_assert_uint_eq(w->kind, MSG_WAIT_DATA);
    ck_assert_uint_eq(w->ino, ino);
    ck_assert(w->write && w->has_other);
    ck_assert_uint_eq(w->who.session, rig.client[1].session);
    ck_assert_uint_ge(w->who.age_ns, 900 * NS_PER_MS);
    ck_assert_uint_eq(w->other.session, rig.client[0].session);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &late));
    ck_assert_uint_eq(waits()->n_waits, 0);
}
END_TEST

START_TEST(a_change_that_others_are_told_of_first_is_told_with_who_is_silent)
{
    struct msg_name_req look = {.parent = KEY_ROOT_INO, .name = str("x")};
    struct msg_create_req req = {.parent = KEY_ROOT_INO, .name = str("x"), .mode = 040777};
    const struct msg_wait *w;

    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LOOKUP, &look, NULL), -ENOENT);
    rig.client[1].mute = true;
    rig_send(&rig, 0, 2, &late, RPC_OP_MKDIR, &req);
    rig_pass(&rig, 1000);
    ck_assert_uint_eq(waits()->n_waits, 1);
    w = waits()->waits;
    ck_assert_uint_eq(w->kind, MSG_WAIT_CACHE);
    ck_assert_uint_eq(w->ino, KEY_ROOT_INO);
    ck_assert_uint_eq(w->who.session, rig.client[0].session);
    ck_assert_uint_ge(w->who.age_ns, 900 * NS_PER_MS);
    ck_assert_uint_eq(w->other.session, rig.client[1].session);
    rig_client_answer(&rig, 1);
    ck_assert(rig_until(&rig, 5000, rig_is_done, &late));
    ck_assert_uint_eq(waits()->n_waits, 0);
}
END_TEST

START_TEST(who_waits_for_a_storage_server_says_so_when_it_renews)
{
    struct msg_server_wait waiting[] = {
        {.target = 1, .ino = 77, .write = true, .requests = 3, .pid = 4711, .age_ns = NS_PER_S},
        {.target = 99, .ino = 78, .requests = 1, .age_ns = NS_PER_S}}; /* there is none */
    const struct msg_status_rep *s;
    const struct msg_wait *w;
    const void *any;

    rig.client[1].renew = (struct msg_renew_req){.n_waits = 2, .waits = waiting};
    ck_ok(rig_do(&rig, 1, RPC_OP_SESSION_RENEW, &rig.client[1].renew, NULL));
    rig.client[1].alive = false; /* it does not renew again so soon */
    rig_pass(&rig, 1000);
    rig.client[1].alive = true;
    ck_assert_uint_eq(waits()->n_waits, 1);
    w = waits()->waits;
    ck_assert_uint_eq(w->kind, MSG_WAIT_SERVER);
    ck_assert(w->ino == 77 && w->target == 1 && w->requests == 3 && w->write);
    ck_assert_uint_eq(w->who.session, rig.client[1].session);
    ck_assert_uint_eq(w->who.pid, 4711);
    ck_assert_uint_ge(w->who.age_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(w->server_state, MSG_SERVER_SLOW);
    ck_assert_int_eq(memcmp(w->other.host.data, "oss1", w->other.host.len), 0);
    rig.oss[0].alive = false;
    rig_pass(&rig, 4000);
    ck_assert_uint_eq(waits()->waits[0].server_state, MSG_SERVER_DOWN);
    rig_oss_start(&rig, 0, 0); /* without its disk */
    ck_assert_uint_eq(waits()->waits[0].server_state, MSG_SERVER_MISSING);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    s = any;
    for (uint32_t i = 0; i < s->n_sessions; i++) {
        bool it = s->sessions[i].session == rig.client[1].session;

        ck_assert_uint_eq(s->sessions[i].waiting, it ? 4 : 0);
        ck_assert_uint_eq(s->sessions[i].waits_target, it ? 1 : 0);
    }
    rig.client[1].renew.n_waits = 0;
    ck_ok(rig_do(&rig, 1, RPC_OP_SESSION_RENEW, &rig.client[1].renew, NULL));
    ck_assert_uint_eq(waits()->n_waits, 0);
}
END_TEST

START_TEST(many_who_wait_for_servers_leave_room_for_others)
{
    struct msg_server_wait waiting[MSG_SERVER_WAITS_MAX];
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, a = rep->open_id, b;

    for (unsigned i = 0; i < MSG_SERVER_WAITS_MAX; i++)
        waiting[i] = (struct msg_server_wait){.target = 1, .ino = i, .requests = 1};
    for (unsigned i = 0; i < RIG_CLIENTS; i++) {
        rig.client[i].renew =
            (struct msg_renew_req){.n_waits = MSG_SERVER_WAITS_MAX, .waits = waiting};
        ck_ok(rig_do(&rig, i, RPC_OP_SESSION_RENEW, &rig.client[i].renew, NULL));
    }
    b = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_assert(lock(0, ino, a, MSG_LOCK_RECORD, 0));
    ck_assert(!lock(1, ino, b, MSG_LOCK_RECORD, 100));
    ck_assert_uint_eq(waits()->n_waits, MSG_WAITS_MAX / 4 + 1);
    ck_assert(waits()->more);
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig.client[i].renew.n_waits = 0;
}
END_TEST

START_TEST(more_than_fit_are_said_to_be)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, a = rep->open_id, b;

    b = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_assert(lock(0, ino, a, MSG_LOCK_RECORD, 0));
    for (unsigned i = 0; i < MSG_WAITS_MAX; i++)
        ck_assert(!lock(1, ino, b, MSG_LOCK_RECORD, 100 + i));
    ck_assert_uint_eq(waits()->n_waits, MSG_WAITS_MAX);
    ck_assert(!waits()->more);
    ck_assert(!lock(1, ino, b, MSG_LOCK_RECORD, 99));
    ck_assert_uint_eq(waits()->n_waits, MSG_WAITS_MAX);
    ck_assert(waits()->more);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nobody_waits_in_a_quiet_cluster);
    tcase_add_test(t, who_waits_for_a_record_lock_is_told_with_who_holds_it);
    tcase_add_test(t, who_waits_for_a_flock_is_told_with_who_holds_it);
    tcase_add_test(t, who_comes_after_others_is_told_with_the_first_of_them);
    tcase_add_test(t, a_change_that_waits_for_a_writer_is_told_with_him);
    tcase_add_test(t, a_change_that_others_are_told_of_first_is_told_with_who_is_silent);
    tcase_add_test(t, who_waits_for_a_storage_server_says_so_when_it_renews);
    tcase_add_test(t, many_who_wait_for_servers_leave_room_for_others);
    tcase_add_test(t, more_than_fit_are_said_to_be);
}

int main(void)
{
    return rig_main("mds-waits", add);
}
