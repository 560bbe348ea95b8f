// SPDX-License-Identifier: Apache-2.0
/* Opens, leases, recalls and glimpses between clients that behave. */
#include <stdio.h>

#include "tests/component/mds_server/rig.h"

static struct rig rig;

static void setup(void)
{
    rig_begin(&rig, 2, 2);
}

static void teardown(void)
{
    rig_end(&rig);
}

START_TEST(the_creator_gets_a_write_lease)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);

    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_ne(rep->open_id, 0);
    ck_assert_uint_ne(rep->inode.lease_seq, 0);
}
END_TEST

START_TEST(readers_share_read_leases_without_a_recall)
{
    uint64_t ino = rig_make(&rig, 0, "f");

    ck_assert_int_eq(rig_open_file(&rig, 0, ino, O_RDONLY)->inode.lease, MSG_LEASE_READ);
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDONLY)->inode.lease, MSG_LEASE_READ);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, 0), 0);
}
END_TEST

START_TEST(a_second_opener_recalls_the_writer_and_everybody_works_without_leases)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, first = rep->open_id, seq = rep->inode.lease_seq, second;

    rig_grow(&rig, 0, ino, first, 100000);
    rig.client[0].release_size = 500000;
    rep = rig_open_file(&rig, 1, ino, O_RDWR);
    second = rep->open_id;
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
    ck_assert_uint_eq(rep->inode.attr.size, 500000); /* what the writer gave back */
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    ck_assert_uint_eq(rig_client_first(&rig.client[0], RPC_OP_RECALL)->seq, seq);
    rep = rig_open_file(&rig, 0, ino, O_RDONLY);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_NONE);
    rig_close_file(&rig, 0, ino, rep->open_id);
    rig_close_file(&rig, 0, ino, first);
    rep = rig_open_file(&rig, 1, ino, O_RDWR); /* alone again */
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert_uint_ne(rep->open_id, second);
}
END_TEST

START_TEST(a_writer_recalls_readers)
{
    uint64_t ino = rig_make(&rig, 0, "f");

    rig_open_file(&rig, 0, ino, O_RDONLY);
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_WRONLY)->inode.lease, MSG_LEASE_NONE);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
}
END_TEST

/* The answer that says so may be lost, and the word that the first one is to be given back, too. */
START_TEST(a_better_lease_that_is_told_while_the_first_is_taken_back_is_taken_back_too)
{
    uint64_t ino = rig_make(&rig, 0, "f");
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};
    const struct msg_inode_rep *rep;

    rig_open_file(&rig, 0, ino, O_RDONLY);
    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_settle(&rig);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    rep = rig_open_file(&rig, 0, ino, O_RDWR);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    rig.client[0].release = true;
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
    ck_assert(rig.client[0].alive);
}
END_TEST

START_TEST(a_truncate_by_somebody_else_waits_for_the_writer)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, seq = rep->inode.lease_seq;
    struct msg_setattr_req req = {.ino = ino, .set = MSG_SET_SIZE, .size = 0};
    struct rig_call call = {0};

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_SETATTR, &req);
    rig_pass(&rig, 1000);
    ck_assert(!call.done);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 1);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rig_forget(&call);
}
END_TEST

START_TEST(reports_and_closes_do_not_wait_for_a_recall)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    struct rig_call call = {0};

    rig_grow(&rig, 0, ino, open_id, 10000);
    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &call, RPC_OP_OPEN, &req);
    rig_pass(&rig, 500);
    ck_assert(!call.done);
    {
        struct msg_size_req size = {
            .ino = ino, .open_id = open_id, .size = 20000, .layout_generation = 2};
        struct mds_inode in;

        ck_ok(rig_inode(&rig, ino, &in));
        size.layout_generation = in.layout.generation;
        ck_ok(rig_do(&rig, 0, RPC_OP_SIZE, &size, NULL));
    }
    ck_assert(!call.done);
    rig_close_file(&rig, 0, ino, open_id); /* the lease goes with it */
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_int_eq(((const struct msg_inode_rep *)call.c.rep)->inode.lease, MSG_LEASE_WRITE);
    rig_forget(&call);
}
END_TEST

START_TEST(a_writer_writes_a_small_file_back_while_others_wait_for_it)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, seq = rep->inode.lease_seq;
    struct msg_write_inline_req write = {.ino = ino,
                                         .open_id = rep->open_id,
                                         .replace = true,
                                         .layout_generation = rep->inode.layout.generation};
    struct msg_setattr_req times = {.ino = ino, .set = MSG_SET_MTIME, .mtime = {.sec = 1234}};
    struct msg_setattr_req cut = {.ino = ino, .set = MSG_SET_SIZE, .size = 3};
    struct msg_open_req open = {.ino = ino, .flags = O_RDWR};
    struct iovec data = {"hello", 5};
    struct rig_call opening = {0}, cutting = {0};

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &opening, RPC_OP_OPEN, &open);
    rig_send(&rig, 1, 2, &cutting, RPC_OP_SETATTR, &cut);
    rig_pass(&rig, 100);
    rig.bulk_out = &data;
    ck_ok(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &write, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &times, NULL));
    ck_assert(!opening.done);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 500, rig_is_done, &opening));
    ck_ok(opening.status);
    rep = opening.c.rep;
    ck_assert_uint_eq(rep->inode.attr.size, 5);
    ck_assert_int_eq(rep->inode.attr.mtime.sec, 1234);
    ck_assert(rig_until(&rig, 500, rig_is_done, &cutting));
    ck_ok(cutting.status);
    rig_forget(&opening);
    rig_forget(&cutting);
}
END_TEST

START_TEST(a_stat_from_elsewhere_asks_the_writer_and_leaves_its_lease)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct msg_ino_req req = {.ino = ino};
    struct rig_call calls[4] = {0};
    const void *any;

    rig_grow(&rig, 0, ino, open_id, 10000);
    rig.client[0].glimpse_size = 77777;
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &req, &any));
    ck_assert_uint_eq(((const struct msg_inode_rep *)any)->inode.attr.size, 77777);
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &req, &any)); /* the writer itself */
    ck_assert_uint_eq(((const struct msg_inode_rep *)any)->inode.attr.size, 10000);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_GLIMPSE, ino), 1);
    for (unsigned i = 0; i < 4; i++)
        rig_send(&rig, 1, 0, &calls[i], RPC_OP_GETATTR, &req);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(rig_until(&rig, 1000, rig_is_done, &calls[i]));
        rig_forget(&calls[i]);
    }
    ck_assert_uint_le(rig_client_count(&rig.client[0], RPC_OP_GLIMPSE, ino), 3);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, 0), 0);
}
END_TEST

/* The name has never been missing. */
START_TEST(a_name_that_is_replaced_while_its_writer_is_asked_is_what_it_is_by_then)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t old = rep->inode.attr.ino, open_id = rep->open_id, new = rig_make(&rig, 0, "g");
    struct msg_name_req look = {.parent = KEY_ROOT_INO, .name = str("f")};
    struct msg_rename_req move = {
        .parent = KEY_ROOT_INO, .name = str("g"), .new_parent = KEY_ROOT_INO, .new_name = str("f")};
    struct rig_call call = {0};

    rig.client[0].glimpse_mute = true;
    rig_send(&rig, 1, 0, &call, RPC_OP_LOOKUP, &look);
    rig_settle(&rig);
    ck_assert(!call.done);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_GLIMPSE, old), 1);
    rig_close_file(&rig, 0, old, open_id);
    ck_ok(rig_do(&rig, 0, RPC_OP_RENAME, &move, NULL));
    rig_client_answer(&rig, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(((const struct msg_inode_rep *)call.c.rep)->inode.attr.ino, new);
    rig_forget(&call);
}
END_TEST

START_TEST(a_repeated_open_is_the_same_open)
{
    uint64_t ino = rig_make(&rig, 0, "f"), open_id;
    struct msg_open_req req = {.ino = ino, .flags = O_RDWR};
    const struct msg_inode_rep *rep = rig_open_file(&rig, 0, ino, O_RDWR);
    struct rig_call call = {0};

    open_id = rep->open_id;
    rig_send_again(&rig, 0, 1, &call, RPC_OP_OPEN, &req);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    rep = call.c.rep;
    ck_assert_uint_eq(rep->open_id, open_id);
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    rig_forget(&call);
    rig_close_file(&rig, 0, ino, open_id);
    ck_assert_int_eq(rig_open_file(&rig, 1, ino, O_RDWR)->inode.lease, MSG_LEASE_WRITE);
}
END_TEST

START_TEST(a_repeated_create_is_the_same_open)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str("f"),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN | MSG_CREATE_EXCL,
                                 .open_flags = O_RDWR};
    struct rig_call call = {0};
    uint64_t ino, open_id;
    const void *any;

    ck_ok(rig_do(&rig, 0, RPC_OP_CREATE, &req, &any));
    ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
    open_id = ((const struct msg_inode_rep *)any)->open_id;
    rig_send_again(&rig, 0, 1, &call, RPC_OP_CREATE, &req);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_ok(call.status);
    ck_assert_uint_eq(((const struct msg_inode_rep *)call.c.rep)->open_id, open_id);
    ck_assert_int_eq(((const struct msg_inode_rep *)call.c.rep)->inode.lease, MSG_LEASE_WRITE);
    rig_forget(&call);
    rig_close_file(&rig, 0, ino, open_id);
    ck_ok(rig_unlink(&rig, 0, "f"));
    ck_assert_int_eq(rig_inode(&rig, ino, &(struct mds_inode){0}), -ENOENT);
}
END_TEST

START_TEST(a_lease_to_grow_a_shared_file_is_taken_back_after_the_growth)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, mine = rep->open_id;
    struct msg_lease_req get = {.ino = ino, .lease = MSG_LEASE_WRITE};
    struct msg_write_inline_req write = {.ino = ino};
    struct rig_call call = {0};
    uint64_t seq, theirs;
    const void *any;

    theirs = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_ok(rig_do(&rig, 0, RPC_OP_LEASE_GET, &get, &any));
    rep = any;
    ck_assert_int_eq(rep->inode.lease, MSG_LEASE_WRITE);
    ck_assert(rep->inode.has_data);
    seq = rep->inode.lease_seq;
    rig.client[0].release = false;
    write.open_id = theirs;
    rig_send(&rig, 1, 1, &call, RPC_OP_WRITE_INLINE, &write);
    rig_pass(&rig, 500);
    ck_assert(!call.done); /* the other one's write waits */
    rig_grow(&rig, 0, ino, mine, 8000);
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino), 2);
    rig_give(&rig, 0, ino, MSG_LEASE_NONE, seq, 0);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &call));
    ck_assert_int_eq(call.status, -AIFS_ESTALE_LAYOUT);
    rig_forget(&call);
}
END_TEST

/* The holder's copy was made without it, and will be sent whole. */
START_TEST(a_piece_of_a_small_file_is_refused_from_who_got_a_write_lease_meanwhile)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct msg_lease_req get = {.ino = ino, .lease = MSG_LEASE_WRITE};
    struct msg_write_inline_req piece = {.ino = ino, .open_id = rep->open_id, .offset = 2};
    struct iovec four = {(void *)"four", 4};

    rig_open_file(&rig, 1, ino, O_RDWR);
    rig.bulk_out = &four;
    ck_ok(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &piece, NULL)); /* nobody has a lease */
    ck_ok(rig_do(&rig, 0, RPC_OP_LEASE_GET, &get, NULL));
    rig.bulk_out = &four;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &piece, NULL), -AIFS_ESTALE_LAYOUT);
    piece.replace = true;
    rig.bulk_out = &four;
    ck_ok(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &piece, NULL));
}
END_TEST

/* The holder takes its places by itself: another of its appends may be in this one. */
START_TEST(a_place_to_append_is_refused_to_who_got_a_write_lease_meanwhile)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct msg_lease_req get = {.ino = ino, .lease = MSG_LEASE_WRITE};
    struct msg_append_req append = {.ino = ino, .open_id = rep->open_id, .len = 100};
    struct msg_append_req theirs = {.ino = ino, .len = 100};
    const void *any;

    rig_grow(&rig, 0, ino, append.open_id, 50000);
    theirs.open_id = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_ok(rig_do(&rig, 0, RPC_OP_APPEND_RANGE, &append, &any)); /* nobody has a lease */
    ck_assert_uint_eq(((const struct msg_append_rep *)any)->offset, 50000);
    ck_ok(rig_do(&rig, 0, RPC_OP_LEASE_GET, &get, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_APPEND_RANGE, &append, NULL), -AIFS_ESTALE_LAYOUT);
    rig.client[0].release_size = 50300; /* two more, under the lease */
    ck_ok(rig_do(&rig, 1, RPC_OP_APPEND_RANGE, &theirs, &any));
    ck_assert_uint_eq(((const struct msg_append_rep *)any)->offset, 50300);
    ck_ok(rig_do(&rig, 0, RPC_OP_APPEND_RANGE, &append, &any));
    ck_assert_uint_eq(((const struct msg_append_rep *)any)->offset, 50400);
}
END_TEST

START_TEST(contents_come_with_the_size_they_have_and_not_with_the_one_they_will_have)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino;
    struct msg_lease_req get = {.ino = ino, .lease = MSG_LEASE_WRITE};
    struct msg_write_inline_req write = {.ino = ino, .open_id = rep->open_id, .replace = true};
    struct msg_ino_req look = {.ino = ino};
    struct iovec four = {(void *)"four", 4};
    const void *any;

    rig.bulk_out = &four;
    ck_ok(rig_do(&rig, 0, RPC_OP_WRITE_INLINE, &write, &any));
    rig_open_file(&rig, 1, ino, O_RDWR);
    ck_ok(rig_do(&rig, 0, RPC_OP_LEASE_GET, &get, &any)); /* to let it grow */
    rig.client[0].glimpse_size = 9000;
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &look, &any));
    ck_assert_uint_eq(((const struct msg_inode_rep *)any)->inode.attr.size, 9000);
    look.flags = MSG_INO_DATA;
    ck_ok(rig_do(&rig, 1, RPC_OP_GETATTR, &look, &any));
    rep = any;
    ck_assert_uint_eq(rep->inode.attr.size, 4);
    ck_assert_uint_eq(rep->inode.data.len, 4);
    ck_assert_int_eq(memcmp(rep->inode.data.data, "four", 4), 0);
}
END_TEST

START_TEST(who_has_a_small_file_open_gets_its_contents_whatever_its_mode_is_now)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, mine = rep->open_id;
    struct msg_setattr_req mode = {.ino = ino, .set = MSG_SET_MODE, .mode = 0};
    struct msg_ino_req look = {.ino = ino, .flags = MSG_INO_DATA, .cred = {.uid = 7, .gid = 7}};

    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &mode, NULL));
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_GETATTR, &look, NULL), -EACCES);
    look.open_id = mine;
    ck_ok(rig_do(&rig, 0, RPC_OP_GETATTR, &look, NULL));
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_GETATTR, &look, NULL), -EACCES);
}
END_TEST

START_TEST(an_open_id_of_somebody_else_is_refused)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    struct msg_size_req size = {.ino = rep->inode.attr.ino, .open_id = rep->open_id, .size = 10};
    struct msg_lease_req get = {.ino = rep->inode.attr.ino, .lease = MSG_LEASE_WRITE};

    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_SIZE, &size, NULL), -EBADF);
    ck_assert_int_eq(rig_do(&rig, 1, RPC_OP_LEASE_GET, &get, NULL), -EBADF);
    size.open_id = 12345;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SIZE, &size, NULL), -EBADF);
}
END_TEST

START_TEST(a_session_of_somebody_else_is_refused)
{
    rig.client[1].session = rig.client[0].session;
    ck_assert_int_eq(
        rig_do(&rig, 1, RPC_OP_GETATTR, &(struct msg_ino_req){.ino = KEY_ROOT_INO}, NULL),
        -AIFS_ESESSION);
}
END_TEST

START_TEST(an_unlinked_file_lives_until_its_last_close)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, first = rep->open_id, second;
    struct mds_inode in;

    second = rig_open_file(&rig, 1, ino, O_RDONLY)->open_id;
    ck_ok(rig_unlink(&rig, 1, "f"));
    ck_ok(rig_inode(&rig, ino, &in));
    ck_assert_uint_eq(in.nlink, 0);
    rig_close_file(&rig, 0, ino, first);
    rig_settle(&rig);
    ck_ok(rig_inode(&rig, ino, &in));
    rig_close_file(&rig, 1, ino, second);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, ino, &in), -ENOENT);
    ck_assert(!rig_has(&rig, KEY_ORPHAN, ino));
}
END_TEST

START_TEST(many_clients_create_open_and_unlink_without_anything_left_behind)
{
    static struct rig_call calls[2][RIG_SLOTS];
    static struct msg_create_req req[2][RIG_SLOTS];
    static char names[RIG_SLOTS][8];
    struct msg_status_rep *status;
    const void *any;

    for (unsigned i = 0; i < RIG_SLOTS; i++)
        snprintf(names[i], sizeof names[i], "f%u", i % 5); /* the same names: creates meet opens */
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < RIG_SLOTS; i++) {
            for (unsigned c = 0; c < 2; c++) {
                req[c][i] = (struct msg_create_req){.parent = KEY_ROOT_INO,
                                                    .name = str(names[i]),
                                                    .mode = 0100666,
                                                    .flags = MSG_CREATE_OPEN,
                                                    .open_flags = i & 1 ? O_RDWR : O_RDONLY};
                rig_send(&rig, c, i + 1, &calls[c][i], RPC_OP_CREATE, &req[c][i]);
            }
        }
        for (unsigned i = 0; i < RIG_SLOTS; i++) {
            for (unsigned c = 0; c < 2; c++) {
                const struct msg_inode_rep *rep;

                ck_assert(rig_until(&rig, 20000, rig_is_done, &calls[c][i]));
                ck_ok(calls[c][i].status);
                rep = calls[c][i].c.rep;
                rig_close_file(&rig, c, rep->inode.attr.ino, rep->open_id);
                rig_forget(&calls[c][i]);
            }
        }
    }
    for (unsigned i = 0; i < 5; i++)
        ck_ok(rig_unlink(&rig, 0, names[i]));
    rig_settle(&rig);
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &any));
    status = (void *)any;
    ck_assert_uint_eq(status->inodes, 1);
    ck_assert_uint_eq(status->orphans, 0);
    ck_assert_uint_eq(status->sessions[0].opens + status->sessions[1].opens, 0);
    ck_assert_uint_eq(status->sessions[0].leases + status->sessions[1].leases, 0);
}
END_TEST

START_TEST(an_open_that_fails_after_it_has_waited_leaves_nothing)
{
    const struct msg_inode_rep *rep = rig_create(&rig, 0, "f", O_RDWR);
    uint64_t ino = rep->inode.attr.ino, open_id = rep->open_id;
    struct msg_setattr_req hide = {
        .ino = ino, .set = MSG_SET_SIZE | MSG_SET_MODE, .size = 7, .mode = 0600};
    struct msg_open_req look = {.ino = ino, .flags = O_RDONLY, .cred = {.uid = 1000, .gid = 1000}};
    struct rig_call hidden = {0}, looked = {0};

    rig.client[0].release = false;
    rig_send(&rig, 1, 1, &hidden, RPC_OP_SETATTR, &hide); /* inside, waits for the lease */
    rig_settle(&rig);
    rig_send(&rig, 1, 2, &looked, RPC_OP_OPEN, &look); /* behind it */
    rig_settle(&rig);
    ck_assert(!hidden.done && !looked.done);
    rig_close_file(&rig, 0, ino, open_id);
    ck_assert(rig_until(&rig, 1000, rig_is_done, &hidden));
    ck_assert(rig_until(&rig, 1000, rig_is_done, &looked));
    ck_ok(hidden.status);
    ck_assert_int_eq(looked.status, -EACCES);
    rig_forget(&hidden);
    rig_forget(&looked);
}
END_TEST

/* What it opened is what had the name when it was executed, whoever replaces it. */
START_TEST(an_open_by_name_opens_what_is_there_and_makes_nothing)
{
    struct msg_create_req req = {.parent = KEY_ROOT_INO,
                                 .name = str("f"),
                                 .mode = 0100000,
                                 .flags = MSG_CREATE_OPEN | MSG_CREATE_FOUND,
                                 .open_flags = O_RDONLY};
    struct msg_rename_req rename = {
        .parent = KEY_ROOT_INO, .name = str("g"), .new_parent = KEY_ROOT_INO, .new_name = str("f")};
    struct msg_create_req dir = {.parent = KEY_ROOT_INO, .name = str("d"), .mode = 040755};
    const struct msg_inode_rep *rep;
    struct msg_setattr_req hide = {.set = MSG_SET_MODE, .mode = 0600};
    const void *any;
    uint64_t ino, other, open_id;

    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -ENOENT);
    ino = rig_make(&rig, 0, "f");
    other = rig_make(&rig, 0, "g");
    ck_ok(rig_do(&rig, 0, RPC_OP_CREATE, &req, &any));
    rep = any;
    ck_assert(!rep->created);
    ck_assert_uint_eq(rep->inode.attr.ino, ino);
    open_id = rep->open_id;
    ck_ok(rig_do(&rig, 1, RPC_OP_RENAME, &rename, NULL));
    rep = rig_open_file(&rig, 0, ino, O_RDONLY); /* it lives on for who has it open */
    ck_assert_uint_eq(rep->inode.attr.nlink, 0);
    rig_close_file(&rig, 0, ino, rep->open_id);
    rig_close_file(&rig, 0, ino, open_id);
    ck_assert_int_eq(rig_inode(&rig, ino, &(struct mds_inode){0}), -ENOENT);
    hide.ino = other;
    ck_ok(rig_do(&rig, 0, RPC_OP_SETATTR, &hide, NULL));
    req.cred = (struct msg_cred){.uid = 1000, .gid = 1000};
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -EACCES);
    req.name = str("none"); /* whom the directory would let make nothing */
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -ENOENT);
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &dir, NULL));
    req.name = str("d");
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -EISDIR);
    req.flags |= MSG_CREATE_UNNAMED;
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CREATE, &req, NULL), -EINVAL);
    ck_ok(rig_unlink(&rig, 0, "f"));
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_creator_gets_a_write_lease);
    tcase_add_test(t, readers_share_read_leases_without_a_recall);
    tcase_add_test(t, a_second_opener_recalls_the_writer_and_everybody_works_without_leases);
    tcase_add_test(t, a_writer_recalls_readers);
    tcase_add_test(t, a_better_lease_that_is_told_while_the_first_is_taken_back_is_taken_back_too);
    tcase_add_test(t, a_truncate_by_somebody_else_waits_for_the_writer);
    tcase_add_test(t, reports_and_closes_do_not_wait_for_a_recall);
    tcase_add_test(t, a_writer_writes_a_small_file_back_while_others_wait_for_it);
    tcase_add_test(t, a_stat_from_elsewhere_asks_the_writer_and_leaves_its_lease);
    tcase_add_test(t, a_name_that_is_replaced_while_its_writer_is_asked_is_what_it_is_by_then);
    tcase_add_test(t, an_open_that_fails_after_it_has_waited_leaves_nothing);
    tcase_add_test(t, a_repeated_open_is_the_same_open);
    tcase_add_test(t, a_repeated_create_is_the_same_open);
    tcase_add_test(t, a_lease_to_grow_a_shared_file_is_taken_back_after_the_growth);
    tcase_add_test(t, a_piece_of_a_small_file_is_refused_from_who_got_a_write_lease_meanwhile);
    tcase_add_test(t, a_place_to_append_is_refused_to_who_got_a_write_lease_meanwhile);
    tcase_add_test(t, contents_come_with_the_size_they_have_and_not_with_the_one_they_will_have);
    tcase_add_test(t, who_has_a_small_file_open_gets_its_contents_whatever_its_mode_is_now);
    tcase_add_test(t, an_open_id_of_somebody_else_is_refused);
    tcase_add_test(t, a_session_of_somebody_else_is_refused);
    tcase_add_test(t, an_open_by_name_opens_what_is_there_and_makes_nothing);
    tcase_add_test(t, an_unlinked_file_lives_until_its_last_close);
    tcase_add_test(t, many_clients_create_open_and_unlink_without_anything_left_behind);
}

int main(void)
{
    return rig_main("mds-share", add);
}
