// SPDX-License-Identifier: Apache-2.0
/* Opens of one file at the same moment: who may have which lease, and what has lost its names. */
#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_begin(&rig, 2, RIG_CLIENTS);
}

static void teardown(void)
{
    rig_end(&rig);
}

static void expect_open(struct rig_call *call, enum msg_lease lease)
{
    ck_assert(rig_until(&rig, 1000, rig_is_done, call));
    ck_ok(call->status);
    ck_assert_int_eq(((const struct msg_inode_rep *)call->c.rep)->inode.lease, lease);
    rig_forget(call);
}

/* It reads from its cache until it has the answer, and that may be lost. And it may need the answer
 * to give its lease back, so it is not kept waiting for that. */
START_TEST(a_reader_that_becomes_a_writer_beside_others_keeps_its_lease_until_it_gives_it_back)
{
    uint64_t ino = rig_make(&rig, 0, "f"), seq;
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call mine = {0}, theirs = {0};

    seq = rig_open_file(&rig, 0, ino, O_RDONLY)->inode.lease_seq;
    rig_open_file(&rig, 1, ino, O_RDONLY);
    rig.client[0].release = false;
    rig_send(&rig, 0, 1, &mine, RPC_OP_OPEN, &req);
    expect_open(&mine, MSG_LEASE_READ);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_RECALL, ino), 1);
    rig_send(&rig, 2, 1, &theirs, RPC_OP_OPEN, &req);
    rig_pass(&rig, 500);
    ck_assert(!theirs.done);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    expect_open(&theirs, MSG_LEASE_NONE);
    ck_assert_int_eq(rig_open_file(&rig, 0, ino, O_RDONLY)->inode.lease, MSG_LEASE_NONE);
    ck_assert(rig.client[0].alive);
}
END_TEST

/* Who reads on elsewhere has no lease from then on, and needs none to be asked for. */
START_TEST(a_reader_that_becomes_the_only_writer_has_the_lease_when_it_is_alone)
{
    uint64_t ino = rig_make(&rig, 0, "f"), other;
    const struct msg_inode_rep *rep;

    rig_open_file(&rig, 0, ino, O_RDONLY);
    other = rig_open_file(&rig, 1, ino, O_RDONLY)->open_id;
    rig_open_file(&rig, 0, ino, O_RDWR);
    rig_settle(&rig);
    rig_close_file(&rig, 1, ino, other);
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_eq(rig_client_count(&rig.client[1], RPC_OP_RECALL, ino), 1);
}
END_TEST

START_TEST(who_waits_to_open_a_file_without_a_name_finds_it_when_the_last_other_has_closed_it)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, first = rep->open_id;
    struct msg_open_req req = {.ino = ino, .flags = O_RDONLY};
    struct rig_call call = {0};
    struct mds_inode in;
    uint64_t second;

    rig_grow(&rig, 0, ino, first, 50000);
    ck_ok(rig_unlink(&rig, 0, "f"));
    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 100);
    ck_assert(!call.done);
    rig_close_file(&rig, 0, ino, first);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    second = ((const struct msg_inode_rep *)call.c.rep)->open_id;
    rig_forget(&call);
    rig_settle(&rig);
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(rig_oss_count(&rig.oss[0], RPC_OP_OSS_DESTROY, ino), 0);
    rig_close_file(&rig, 1, ino, second);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, ino, &in), -ENOENT);
}
END_TEST

/* It was refused: then it is nobody's. */
START_TEST(a_file_without_a_name_goes_when_who_waited_to_open_it_may_not)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, first = rep->open_id;
    struct msg_open_req req = {.ino = ino, .flags = O_RDONLY, .cred = {.uid = 7, .gid = 7}};
    struct msg_setattr_req hide = {.ino = ino, .set = MSG_SET_MODE, .mode = 0600};
    struct rig_call call = {0};
    struct mds_inode in;

    ck_ok(rig_unlink(&rig, 0, "f"));
    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_settle(&rig);
    ck_assert(!call.done);
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &hide, NULL));
    rig_close_file(&rig, 0, ino, first);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_assert_int_eq(call.status, -EACCES);
    rig_forget(&call);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, ino, &in), -ENOENT);
}
END_TEST

/* It may be letting it grow: then its chunks are where they are. */
START_TEST(who_gives_a_file_another_layout_has_its_writer_give_the_lease_back_first)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id, seq = rep->inode.lease_seq;
    struct msg_xattr_req set = {.ino = ino, .name = str("aifs.layout"), .value = str("count=1")};
    struct rig_call call = {0};
    struct mds_inode in;

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_XATTR_SET, &set);
    rig_pass(&rig, 100);
    ck_assert(!call.done);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    rig_grow(&rig, 0, ino, open_id, 50000);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_assert_int_eq(call.status, -ENOTEMPTY);
    rig_forget(&call);
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(in.size, 50000);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(
        t, a_reader_that_becomes_a_writer_beside_others_keeps_its_lease_until_it_gives_it_back);
    tcase_add_test(t, a_reader_that_becomes_the_only_writer_has_the_lease_when_it_is_alone);
    tcase_add_test(
        t, who_waits_to_open_a_file_without_a_name_finds_it_when_the_last_other_has_closed_it);
    tcase_add_test(t, who_gives_a_file_another_layout_has_its_writer_give_the_lease_back_first);
    tcase_add_test(t, a_file_without_a_name_goes_when_who_waited_to_open_it_may_not);
}

int main(void)
{
    return rig_main("mds-openers", add);
}
