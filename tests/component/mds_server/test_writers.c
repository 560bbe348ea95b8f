// SPDX-License-Identifier: Apache-2.0
/* What a client was writing when it died together with the server, and what is believed of what
 * clients reclaim. */
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

#define FORGOTTEN_MS 62000 /* after a close */

/* ---- the server and a writer die together ---- */

/* Client 0 is gone with the server; client 1 opens the file for writing. */
static const struct msg_inode_rep *open_after_both_died(uint64_t ino, struct rig_call *call)
{
    struct msg_open_req open = {.ino = ino, .flags = O_RDWR};

    rig_client_forget(&rig, 0);
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_send(&rig, 1, 1, call, RPC_OP_OPEN, &open);
    ck_assert(rig_until(&rig, 10000, rig_is_done, call));
    ck_ok(call->status);
    return call->c.rep;
}

START_TEST(a_striped_file_whose_writer_died_with_the_server_is_sealed)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, dead = rig.client[0].session;
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, rep->open_id, 50000);
    rig.oss[0].high_water = 300000; /* written, not reported */
    rep = open_after_both_died(ino, &call);
    ck_assert_uint_eq(rep->inode.attr.size, 300000);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_SIZE_UNSURE, 0);
    ck_assert_uint_gt(rig_oss_count(&rig.oss[0], RPC_OP_OSS_FENCE, dead), 0);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 2);
    ck_assert_int_lt(rig_oss_order(&rig.oss[0], RPC_OP_OSS_FENCE),
                     rig_oss_order(&rig.oss[0], RPC_OP_OSS_SEAL));
    rig_forget(&call);
}
END_TEST

START_TEST(an_inline_file_whose_writer_died_with_the_server_is_cut)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, gen = rep->inode.attr.truncate_gen;
    struct rig_call call = {0};
    struct mds_inode in;

    rep = open_after_both_died(ino, &call);
    ck_assert_uint_eq(rep->inode.attr.truncate_gen, gen + 1);
    ck_assert_uint_eq(rep->inode.attr.flags & MSG_ATTR_PUNCH_PENDING, 0);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_TRUNCATE, ino), 2);
    rig_forget(&call);
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_ne(in.flags & INODE_STRAY_CHUNKS, 0); /* its removal looks for chunks */
}
END_TEST

START_TEST(a_file_opened_for_writing_again_is_remembered_too)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 1, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct rig_call call = {0};

    rig_grow(&rig, 1, ino, open_id, 50000);
    rig_close_file(&rig, 1, ino, open_id);
    rep = rig_open_file(&rig, 0, ino, O_WRONLY);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    rig.oss[0].high_water = 300000;
    ck_assert_uint_eq(open_after_both_died(ino, &call)->inode.attr.size, 300000);
    rig_forget(&call);
}
END_TEST

START_TEST(a_file_that_was_closed_or_only_read_is_left_alone)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, open_id, 50000);
    rig_close_file(&rig, 0, ino, open_id);
    rig_pass(&rig, FORGOTTEN_MS);
    rig_open_file(&rig, 0, ino, O_RDONLY);
    rig.oss[0].high_water = 300000;
    ck_assert_uint_eq(open_after_both_died(ino, &call)->inode.attr.size, 50000);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, 0), 0);
    rig_forget(&call);
}
END_TEST

START_TEST(opening_for_writing_again_soon_needs_no_entry)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct shard_stats before, after;

    rig_close_file(&rig, 0, ino, rep->open_id);
    rig_pass(&rig, 2000);
    shard_get_stats(rig.mds->shards[0], &before);
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    shard_get_stats(rig.mds->shards[0], &after);
    ck_assert_uint_eq(after.commits, before.commits);
    rig_close_file(&rig, 0, ino, rep->open_id);
    rig_pass(&rig, FORGOTTEN_MS);
    shard_get_stats(rig.mds->shards[0], &before);
    rep = rig_open_file(&rig, 0, ino, O_RDONLY);
    shard_get_stats(rig.mds->shards[0], &after);
    ck_assert_uint_eq(after.commits, before.commits);
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    shard_get_stats(rig.mds->shards[0], &after);
    ck_assert_uint_eq(after.commits, before.commits + 1);
}
END_TEST

START_TEST(an_open_that_was_remembered_brings_the_content)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 1, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct msg_write_inline_req req = {.ino = ino, .open_id = rep->open_id, .replace = true};
    struct iovec text = {"hello", 5};

    rig.bulk_out = &text;
    ck_ok(rig_do(&rig, 1, RPC_OP_WRITE_INLINE, &req, NULL));
    rig_close_file(&rig, 1, ino, req.open_id);
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    ck_assert(rep->inode.has_data);
    ck_assert_uint_eq(rep->inode.data.len, 5);
    ck_assert_mem_eq(rep->inode.data.data, "hello", 5);
    ck_assert_uint_eq(rep->inode.attr.size, 5);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
}
END_TEST

START_TEST(what_a_writer_has_reclaimed_and_closed_is_left_alone)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;

    rig_grow(&rig, 0, ino, open_id, 50000);
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_close_file(&rig, 0, ino, open_id);
    rig_pass(&rig, FORGOTTEN_MS);
    rig_client_forget(&rig, 0);
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 8000, rig_grace_over, &rig));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, 0), 0);
}
END_TEST

START_TEST(a_writer_that_was_gone_before_a_second_restart_is_remembered)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, rep->open_id, 50000);
    rig.oss[0].high_water = 300000;
    rig_client_forget(&rig, 0);
    rig_restart(&rig);
    rig_pass(&rig, 500);
    ck_assert_uint_eq(open_after_both_died(ino, &call)->inode.attr.size, 300000);
    rig_forget(&call);
}
END_TEST

START_TEST(a_session_that_leaves_without_reclaiming_is_fenced_and_sealed)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, rep->open_id, 50000);
    rig_restart(&rig);
    rig.oss[0].mute = true;
    rig.client[0].alive = false;
    rig_send(&rig, 0, 0, &call, RPC_OP_SESSION_CLOSE, NULL);
    rig_settle(&rig);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SESSION_CLOSE, NULL, NULL), -AIFS_EBUSY_SERVER);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    rig_pass(&rig, 500);
    ck_assert(!session_grace_over(rig.mds));
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 8000, rig_grace_over, &rig));
    rig_settle(&rig);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_SEAL, ino), 2);
}
END_TEST

/* ---- a file that two have open, and one lets it grow ---- */

struct shared {
    uint64_t ino, open_id[2], seq; /* seq: of client 1's lease */
};

static void share(struct shared *f)
{
    struct msg_lease_req get = {.lease = MSG_LEASE_WRITE};
    const void *any;

    f->ino = get.ino = rig_create(&rig, 0, "f", O_RDWR)->inode.attr.ino;
    rig_close_file(&rig, 0, f->ino, ((const struct msg_inode_rep *)rig.call.c.rep)->open_id);
    for (unsigned i = 0; i < 2; i++)
        f->open_id[i] = rig_open_file(&rig, i, f->ino, O_RDWR)->open_id;
    ck_ok(rig_do(&rig, 1, RPC_OP_LEASE_GET, &get, &any));
    ck_assert_int_eq(((const struct msg_inode_rep *)any)->inode.lease, MSG_LEASE_WRITE);
    f->seq = ((const struct msg_inode_rep *)any)->inode.lease_seq;
}

/* What client 1 has written into chunks is still good. */
static void growth_goes_on(const struct shared *f)
{
    struct mds_inode in;

    ck_ok(rig_inode(&rig, f->ino, &in));
    ck_assert_uint_eq(in.truncate_gen, 0);
    ck_assert_uint_eq(in.flags, INODE_INLINE);
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_TRUNCATE, f->ino), 0);
    rig_grow(&rig, 1, f->ino, f->open_id[1], 50000);
}

static bool session_gone(void *arg)
{
    return !rig_has(&rig, KEY_SESSION, *(uint64_t *)arg);
}

START_TEST(a_growth_is_not_cut_by_the_death_of_another_writer)
{
    uint64_t dead = rig.client[0].session;
    struct shared f;

    share(&f);
    rig_client_forget(&rig, 0);
    ck_assert(rig_until(&rig, 10000, session_gone, &dead));
    growth_goes_on(&f);
}
END_TEST

START_TEST(nor_when_the_server_dies_too)
{
    uint64_t dead = rig.client[0].session;
    struct shared f;

    share(&f);
    rig_client_forget(&rig, 0);
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 1, f.ino, f.open_id[1], O_RDWR, MSG_LEASE_WRITE, f.seq));
    ck_assert(rig_until(&rig, 10000, session_gone, &dead));
    growth_goes_on(&f);
}
END_TEST

START_TEST(an_early_eviction_waits_until_others_have_said_what_they_have)
{
    struct msg_session_open_req again = {.client = rig.client[0].id, .host = str("host")};
    uint64_t dead = rig.client[0].session;
    struct rig_call call = {0};
    struct shared f;

    share(&f);
    rig_restart(&rig);
    rig.client[0].alive = false;
    rig_send(&rig, 0, 0, &call, RPC_OP_SESSION_OPEN, &again);
    rig_pass(&rig, 1000);
    ck_assert(!call.done);
    ck_ok(rig_reclaim(&rig, 1, f.ino, f.open_id[1], O_RDWR, MSG_LEASE_WRITE, f.seq));
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    ck_assert(rig_until(&rig, 1000, session_gone, &dead));
    growth_goes_on(&f);
}
END_TEST

START_TEST(who_renews_and_never_reclaims_is_evicted)
{
    uint64_t idle = rig.client[0].session;

    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    rig_pass(&rig, RIG_LEASE / NS_PER_MS + 1000);
    ck_assert(rig.client[0].alive);
    ck_assert(!session_grace_over(rig.mds));
    ck_assert(rig_until(&rig, 3 * RIG_LEASE / NS_PER_MS, rig_grace_over, &rig));
    ck_assert(rig_until(&rig, 1000, session_gone, &idle));
}
END_TEST

START_TEST(a_file_created_while_its_session_is_evicted_is_cut_before_others_have_it)
{
    struct msg_create_req create = {.parent = KEY_ROOT_INO,
                                    .name = str("f"),
                                    .mode = 0100666,
                                    .flags = MSG_CREATE_OPEN,
                                    .open_flags = O_RDWR};
    struct msg_session_open_req again = {.client = rig.client[0].id, .host = str("host")};
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    struct rig_call call[3];
    struct msg_open_req open = {.flags = O_RDWR};
    const void *any;

    memset(call, 0, sizeof call);
    rig.oss[0].mute = true;
    rig_send(&rig, 0, 1, &call[0], RPC_OP_CREATE, &create);
    rig_send(&rig, 0, 0, &call[1], RPC_OP_SESSION_OPEN, &again); /* in the same batch */
    rig_pass(&rig, 100);
    ck_ok(rig_do(&rig, 1, RPC_OP_LOOKUP, &name, &any));
    open.ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    rig_send(&rig, 1, 1, &call[2], RPC_OP_OPEN, &open);
    rig_pass(&rig, 100);
    ck_assert(!call[2].done);
    rig.oss[0].mute = false;
    rig_oss_release(&rig, 0);
    ck_assert(rig_until(&rig, 5000, rig_is_done, &call[2]));
    ck_ok(call[2].status);
    any = call[2].c.rep;
    ck_assert_uint_eq(((const struct msg_inode_rep *)any)->inode.attr.truncate_gen, 1);
    ck_assert_uint_eq(rig_oss_last(&rig.oss[0], RPC_OP_OSS_TRUNCATE)->size, 0);
    for (unsigned i = 0; i < 3; i++)
        rig_forget(&call[i]);
}
END_TEST

/* ---- reclaims that are not believed ---- */

START_TEST(what_was_never_opened_for_writing_is_not_reclaimed)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;
    struct msg_size_req size = {.ino = ino, .open_id = open_id + 5, .size = 9};

    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_ok(rig_reclaim(&rig, 1, ino, open_id + 5, O_RDWR, MSG_LEASE_WRITE, seq + 5));
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_SIZE, &size, NULL), -EBADF);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 0);
}
END_TEST

START_TEST(nothing_is_reclaimed_after_the_last_reclaim)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;

    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_ok(rig_reclaim(&rig, 1, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_ok(rig_reclaim(&rig, 0, ino, open_id, O_RDWR, MSG_LEASE_WRITE, seq));
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDWR)->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 0);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_striped_file_whose_writer_died_with_the_server_is_sealed);
    tcase_add_test(t, an_inline_file_whose_writer_died_with_the_server_is_cut);
    tcase_add_test(t, a_file_opened_for_writing_again_is_remembered_too);
    tcase_add_test(t, a_file_that_was_closed_or_only_read_is_left_alone);
    tcase_add_test(t, opening_for_writing_again_soon_needs_no_entry);
    tcase_add_test(t, an_open_that_was_remembered_brings_the_content);
    tcase_add_test(t, what_a_writer_has_reclaimed_and_closed_is_left_alone);
    tcase_add_test(t, a_writer_that_was_gone_before_a_second_restart_is_remembered);
    tcase_add_test(t, a_session_that_leaves_without_reclaiming_is_fenced_and_sealed);
    tcase_add_test(t, a_growth_is_not_cut_by_the_death_of_another_writer);
    tcase_add_test(t, nor_when_the_server_dies_too);
    tcase_add_test(t, an_early_eviction_waits_until_others_have_said_what_they_have);
    tcase_add_test(t, who_renews_and_never_reclaims_is_evicted);
    tcase_add_test(t, a_file_created_while_its_session_is_evicted_is_cut_before_others_have_it);
    tcase_add_test(t, what_was_never_opened_for_writing_is_not_reclaimed);
    tcase_add_test(t, nothing_is_reclaimed_after_the_last_reclaim);
}

int main(void)
{
    return rig_main("mds-writers", add);
}
