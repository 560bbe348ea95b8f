// SPDX-License-Identifier: Apache-2.0
/* What a client tells of reads, with CLOSE. */
#include "tests/component/mds_server/rig.h"

static struct rig rig;
static uint64_t ino;

static void setup(void)
{
    rig_begin(&rig, 2, 2);
    ino = rig_make(&rig, 0, "f");
    rig_pass(&rig, 1000);
}

static void teardown(void)
{
    rig_end(&rig);
}

static struct mds_inode stored(void)
{
    struct mds_inode in;

    ck_ok(rig_inode(&rig, ino, &in));
    return in;
}

static struct msg_time now(void)
{
    int64_t ns = clock_wall_ns(&rig.clock.clock);

    return (struct msg_time){ns / (int64_t)NS_PER_S, (uint32_t)(ns % (int64_t)NS_PER_S)};
}

static int tell(unsigned client, const struct msg_read_item *items, uint32_t n)
{
    struct msg_close_req req = {.n_reads = n, .reads = items};

    return rig_do(&rig, client, RPC_OP_CLOSE, &req, NULL);
}

static void read_at(unsigned client, struct msg_time at, struct msg_time was)
{
    struct msg_read_item item = {.ino = ino, .atime = at, .was = was};

    ck_ok(tell(client, &item, 1));
}

static bool same(struct msg_time a, struct msg_time b)
{
    return a.sec == b.sec && a.nsec == b.nsec;
}

START_TEST(a_read_moves_atime_and_nothing_else)
{
    struct mds_inode was = stored(), is;

    read_at(0, now(), was.atime);
    is = stored();
    ck_assert(same(is.atime, now()));
    ck_assert(same(is.mtime, was.mtime) && same(is.ctime, was.ctime));
    ck_assert_uint_eq(is.change, was.change);
}
END_TEST

START_TEST(who_keeps_the_attributes_is_not_told)
{
    struct msg_ino_req req = {.ino = ino};

    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &req, NULL));
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDONLY)->inode.lease, MSG_LEASE_READ);
    read_at(0, now(), stored().atime);
    rig_settle(&rig);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_INVALIDATE, 0), 0);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_RECALL, 0), 0);
}
END_TEST

START_TEST(only_the_first_of_many_readers_costs_an_entry)
{
    struct msg_time was = stored().atime, first;
    struct shard_stats before, after;

    read_at(0, now(), was);
    first = stored().atime;
    shard_get_stats(rig.mds->shards[0], &before);
    rig_pass(&rig, 1000);
    shard_get_stats(rig.mds->shards[0], &before);
    read_at(1, now(), was);
    read_at(1, now(), first);
    shard_get_stats(rig.mds->shards[0], &after);
    ck_assert_uint_eq(after.entries, before.entries);
    ck_assert(same(stored().atime, first));
}
END_TEST

START_TEST(a_time_that_somebody_has_set_since_the_read_stays)
{
    struct msg_time was = stored().atime, at = now();
    struct msg_setattr_req set = {.ino = ino, .set = MSG_SET_ATIME, .atime = {12, 34}};

    rig_pass(&rig, 100);
    ck_ok(rig_do(&rig, 1, RPC_OP_SETATTR, &set, NULL));
    read_at(0, at, was);
    ck_assert(same(stored().atime, set.atime));
    rig_pass(&rig, 100);
    read_at(0, now(), was);
    ck_assert(same(stored().atime, now()));
}
END_TEST

START_TEST(what_is_gone_or_no_inode_at_all_is_no_error)
{
    struct msg_read_item items[] = {{.ino = ino, .atime = now(), .was = stored().atime},
                                    {.ino = 0, .atime = now()},
                                    {.ino = UINT64_MAX, .atime = now()},
                                    {.ino = 999999, .atime = now()}};

    ck_ok(rig_unlink(&rig, 0, "f"));
    ck_ok(tell(0, items, 4));
    ck_ok(tell(0, items + 1, 3));
}
END_TEST

START_TEST(a_session_that_is_no_more_tells_nothing)
{
    struct msg_time was = stored().atime;
    struct msg_read_item item = {.ino = ino, .atime = now(), .was = was};

    rig.client[0].alive = false;
    rig_pass(&rig, 2 * RIG_LEASE / NS_PER_MS);
    ck_assert_int_eq(tell(0, &item, 1), -AIFS_ESESSION);
    ck_assert(same(stored().atime, was));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_read_moves_atime_and_nothing_else);
    tcase_add_test(t, who_keeps_the_attributes_is_not_told);
    tcase_add_test(t, only_the_first_of_many_readers_costs_an_entry);
    tcase_add_test(t, a_time_that_somebody_has_set_since_the_read_stays);
    tcase_add_test(t, what_is_gone_or_no_inode_at_all_is_no_error);
    tcase_add_test(t, a_session_that_is_no_more_tells_nothing);
}

int main(void)
{
    return rig_main("mds-reads", add);
}
