// SPDX-License-Identifier: Apache-2.0
/* Records of the work queues that no program can read: they stay, and nothing waits for them. */
#include <stdio.h>

#include "common/base/log.h"
#include "mds/session/session.h"
#include "mds/shard/shard.h"
#include "tests/component/mds_server/rig.h"

static struct rig rig;
static char log_path[160];
static uint64_t first; /* a file with a smaller number than all others */

static void setup(void)
{
    rig_open(&rig, NULL);
    rig_oss_start(&rig, 0, 1);
    rig_oss_start(&rig, 1, 1);
    rig_client_open(&rig, 0);
    rig_client_open(&rig, 1);
    snprintf(log_path, sizeof log_path, "%s/log", rig.root);
    ck_ok(log_open_file(log_path));
    first = rig_create(&rig, 0, "first", O_RDONLY)->inode.attr.ino;
}

static void teardown(void)
{
    rig_end(&rig);
}

/* Puts what nobody can read under a key; the server stands still. */
static void damage_in(struct store *s, const struct key *k)
{
    struct store_batch *b;

    ck_ok(store_batch_create(s, &b));
    store_batch_put(b, k->b, k->len, "?", 1);
    ck_ok(store_commit(s, b, false));
    store_batch_destroy(b);
}

static void damage(enum key_type queue, uint64_t ino)
{
    struct key k;

    key_number(&k, queue, ino);
    damage_in(shard_store(rig.mds->shards[0]), &k);
}

static uint64_t make_large(const char *name, uint64_t *ret_open)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, name, O_RDWR);
    uint64_t ino = rep->inode.attr.ino;

    *ret_open = rep->open_id;
    rig_grow(&rig, 0, ino, *ret_open, 100000);
    return ino;
}

struct item {
    enum key_type queue;
    uint64_t ino;
};

static bool item_gone(void *arg)
{
    const struct item *i = arg;

    return !rig_has(&rig, i->queue, i->ino);
}

/* Makes the item, which nobody may work on yet. */
static void queue_one(const struct item *i, uint64_t open_id)
{
    struct msg_setattr_req cut = {
        .ino = i->ino, .set = MSG_SET_SIZE, .size = 5, .open_id = open_id};

    if (i->queue == KEY_PUNCH) {
        ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &cut, NULL));
    } else if (i->queue == KEY_RECOVER) {
        rig.client[0].alive = false;
        ck_ok(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL));
    } else {
        rig_close_file(&rig, 0, i->ino, open_id);
        ck_ok(rig_unlink(&rig, 0, "f"));
    }
    ck_assert(rig_has(&rig, i->queue, i->ino));
}

START_TEST(a_damaged_item_is_said_once_and_those_behind_it_are_done)
{
    static const enum key_type queues[] = {KEY_DESTROY, KEY_PUNCH, KEY_RECOVER};
    struct item i = {.queue = queues[_i]};
    char text[64];
    uint64_t open_id;

    damage(i.queue, first);
    i.ino = make_large("f", &open_id);
    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    queue_one(&i, open_id);
    rig_oss_restart(&rig, 1);
    ck_assert(rig_until(&rig, 10000, item_gone, &i));
    rig_pass(&rig, 130000); /* every queue has been looked at again */
    ck_assert(rig_has(&rig, i.queue, first));
    snprintf(text, sizeof text, "key %02x%016llx", (unsigned)i.queue, (unsigned long long)first);
    ck_assert_uint_eq(rig_lines_with(log_path, text), 1);
}
END_TEST

/* More than a page of them, more than are told of, and one whose key no queue can have. */
START_TEST(many_damaged_items_do_not_hide_those_behind_them)
{
    struct item i = {.queue = KEY_DESTROY};
    struct key odd;
    uint64_t open_id;
    char name[64];

    log_set_burst(0);
    key_number(&odd, KEY_DESTROY, first);
    odd.b[odd.len++] = 0xab;
    damage_in(shard_store(rig.mds->shards[0]), &odd);
    for (unsigned k = 0; k < 300; k++) {
        snprintf(name, sizeof name, "f%u", k);
        damage(KEY_DESTROY, rig_create(&rig, 0, name, O_RDONLY)->inode.attr.ino);
    }
    i.ino = make_large("f", &open_id);
    rig_close_file(&rig, 0, i.ino, open_id);
    ck_ok(rig_unlink(&rig, 0, "f"));
    ck_assert(rig_until(&rig, 10000, item_gone, &i));
    for (unsigned k = 0; k < 2; k++) { /* all queues are looked at from their begin */
        rig_oss_restart(&rig, 1);
        rig_pass(&rig, 1000);
    }
    snprintf(name, sizeof name, "key 28%016llxab", (unsigned long long)first);
    ck_assert_uint_eq(rig_lines_with(log_path, name), 1);
    ck_assert_uint_eq(rig_lines_with(log_path, "more than 256 items"), 1);
    ck_assert_uint_eq(rig_lines_with(log_path, "queue 0x28"), 257);
}
END_TEST

static void damage_stopped(enum key_type queue, uint64_t ino)
{
    struct store_options o = {0};
    struct store *s;
    struct key k;

    rig_mds_stop(&rig);
    ck_ok(store_open(rig.dir, &o, &s));
    key_number(&k, queue, ino);
    damage_in(s, &k);
    store_close(s);
    rig_mds_start(&rig);
}

static const enum key_type of_the_dead[] = {KEY_PUNCH, KEY_RECOVER};

/* The item of a dead writer's file is damaged, and the server starts again. */
static void start_damaged(struct item *i, struct item *other)
{
    uint64_t open_id;

    i->ino = make_large("f", &open_id);
    other->ino = make_large("g", &open_id);
    rig.oss[1].alive = false;
    rig_pass(&rig, 4000);
    queue_one(other, open_id); /* with its session, f too */
    damage_stopped(i->queue, i->ino);
    rig_oss_restart(&rig, 0);
    rig_oss_restart(&rig, 1);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
}

/* Nobody knows what its writer has written, so nobody gets it; all the rest goes on. */
START_TEST(a_server_starts_with_damaged_items_and_keeps_the_files_of_the_dead)
{
    struct msg_open_req req = {.flags = O_RDWR};
    struct item i = {.queue = of_the_dead[_i]}, other = {.queue = KEY_RECOVER};
    struct rig_call held = {0};

    start_damaged(&i, &other);
    ck_assert(rig_until(&rig, 20000, item_gone, &other));
    rig_open_file(&rig, 1, other.ino, O_RDWR);
    req.ino = i.ino;
    rig_send(&rig, 1, 1, &held, RPC_OP_OPEN, &req);
    rig_pass(&rig, 60000);
    ck_assert(!held.done);
    ck_assert(rig_has(&rig, i.queue, i.ino));
    rpc_call_cancel(&held.c);
    ck_assert(rig_run(&rig, rig_is_done, &held));
    rig_forget(&held);
}
END_TEST

START_TEST(a_file_with_a_damaged_item_can_be_removed_and_its_dead_writer_goes_with_it)
{
    struct item i = {.queue = of_the_dead[_i]}, other = {.queue = KEY_RECOVER};
    struct item destroy = {.queue = KEY_DESTROY}, session = {KEY_SESSION, rig.client[0].session};

    start_damaged(&i, &other);
    ck_assert(rig_until(&rig, 20000, item_gone, &other));
    rig_pass(&rig, 10000);
    ck_assert(rig_has(&rig, KEY_SESSION, session.ino));
    ck_ok(rig_unlink(&rig, 1, "f"));
    destroy.ino = i.ino;
    ck_assert(rig_until(&rig, 20000, item_gone, &session));
    ck_assert(rig_until(&rig, 20000, item_gone, &destroy));
    ck_assert_uint_gt(rig_oss_count(&rig.oss[1], RPC_OP_OSS_DESTROY, i.ino), 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, a_damaged_item_is_said_once_and_those_behind_it_are_done, 0, 3);
    tcase_add_test(t, many_damaged_items_do_not_hide_those_behind_them);
    tcase_add_loop_test(t, a_server_starts_with_damaged_items_and_keeps_the_files_of_the_dead, 0,
                        2);
    tcase_add_loop_test(
        t, a_file_with_a_damaged_item_can_be_removed_and_its_dead_writer_goes_with_it, 0, 2);
}

int main(void)
{
    return rig_main("mds-damaged", add);
}
