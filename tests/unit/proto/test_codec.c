// SPDX-License-Identifier: Apache-2.0
/*
 * Every message survives being decoded and encoded again, byte for byte; what is too long, too
 * many, out of range or torn is refused, at bounded cost.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/net.h"
#include "proto/codec.h"
#include "proto/map.h"
#include "proto/ops.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/random_msg.h"

static struct arena a;

static void start(void)
{
    arena_init(&a, 0);
}

static void stop(void)
{
    arena_reset(&a);
}

static void round_trip(unsigned op, bool reply, struct rng *g)
{
    const struct codec *c = codec_find(op, reply);
    const void *bytes, *again;
    uint32_t len, len_again;
    void *msg;

    bytes = random_msg(c, g, 12, &a, &len);
    ck_assert_msg(codec_decode(op, reply, bytes, len, &a, &msg) == 0,
                  "%s reply %d: %u bytes refused", rpc_op_name(op), reply, len);
    ck_assert_int_eq(codec_encode(op, reply, msg, &a, &again, &len_again), 0);
    ck_assert_msg(len == len_again && memcmp(bytes, again, len) == 0,
                  "%s reply %d changed on its way", rpc_op_name(op), reply);
    arena_reset(&a);
}

START_TEST(every_message_survives_the_way_through_the_codec)
{
    struct rng g = {1};

    for (unsigned op = 0; op < RPC_OP_LIMIT; op++) {
        if (!rpc_op_flags(op))
            continue;
        for (unsigned i = 0; i < 200; i++) {
            round_trip(op, false, &g);
            round_trip(op, true, &g);
        }
    }
}
END_TEST

START_TEST(torn_and_flipped_messages_never_do_harm)
{
    struct rng g = {2};
    uint32_t len;
    void *msg;

    for (unsigned op = 0; op < RPC_OP_LIMIT; op++) {
        for (unsigned i = 0; rpc_op_flags(op) && i < 200; i++) {
            bool reply = i & 1;
            uint8_t *bytes = (uint8_t *)random_msg(codec_find(op, reply), &g, 6, &a, &len);
            uint8_t *exact =
                malloc(len ? len : 1); /* so that the sanitizer sees a read behind the end */
            uint32_t cut = rng_below(&g, len + 1);

            a.limit_bytes = 1 << 20;
            memcpy(exact, bytes, len);
            (void)!codec_decode(op, reply, exact, cut, &a, &msg);
            for (unsigned k = 0; len && k <= i % 8; k++)
                exact[rng_below(&g, len)] ^= (uint8_t)(1u << rng_below(&g, 8));
            (void)!codec_decode(op, reply, exact, len, &a, &msg);
            free(exact);
            arena_reset(&a);
        }
    }
}
END_TEST

START_TEST(unknown_operations_and_fields)
{
    static const uint8_t with_field_99[] = {0x08, 0x07, 0x9a, 0x06,
                                            0x02, 'h',  'i'}; /* MAP_GET: epoch 7, field 99: "hi" */
    struct msg_map_req *m;
    void *msg;
    const void *data;
    uint32_t len;

    ck_assert_int_eq(codec_decode(77, false, "", 0, &a, &msg), -AIFS_EPROTO);
    ck_assert_int_eq(codec_decode(100000, false, "", 0, &a, &msg), -AIFS_EPROTO);
    ck_assert_int_eq(codec_encode(77, false, "", &a, &data, &len), -EINVAL);
    ck_assert_int_eq(
        codec_decode(RPC_OP_MAP_GET, false, with_field_99, sizeof with_field_99, &a, &msg), 0);
    m = msg;
    ck_assert_uint_eq(m->epoch, 7);
    ck_assert_int_eq(
        codec_decode(RPC_OP_PING, false, with_field_99, sizeof with_field_99, &a, &msg), 0);
    ck_assert_str_eq(rpc_op_name(77), "op 77");
    ck_assert_str_eq(rpc_op_name(RPC_OP_CREATE), "CREATE");
    ck_assert_uint_eq(rpc_op_flags(77), 0);
    ck_assert_uint_eq(rpc_op_flags(100000), 0);
}
END_TEST

/* Encoding checks nothing, so it can make what decoding must refuse. */
static int through(unsigned op, bool reply, const void *in)
{
    const void *data;
    uint32_t len;
    void *msg;

    ck_assert_int_eq(codec_encode(op, reply, in, &a, &data, &len), 0);
    return codec_decode(op, reply, data, len, &a, &msg);
}

static int name_through(const char *name, uint32_t len)
{
    struct msg_name_req m = {.name = {name, len}};

    return through(RPC_OP_LOOKUP, false, &m);
}

START_TEST(names_are_checked)
{
    char longest[256];

    memset(longest, 'n', sizeof longest);
    ck_assert_int_eq(name_through("a", 1), 0);
    ck_assert_int_eq(name_through(longest, 255), 0);
    ck_assert_int_eq(name_through(longest, 256), -AIFS_EPROTO);
    ck_assert_int_eq(name_through("", 0), -AIFS_EPROTO);
    ck_assert_int_eq(name_through("a/b", 3), -AIFS_EPROTO);
    ck_assert_int_eq(name_through("a\0b", 3), -AIFS_EPROTO);
    ck_assert_int_eq(name_through("\xff\x01\n", 3), 0); /* any other byte is a name to POSIX */
}
END_TEST

START_TEST(counts_and_ranges_are_checked)
{
    static uint32_t groups[MSG_GROUPS_MAX + 1];
    static struct msg_range ranges[MSG_RANGES_MAX + 1];
    struct msg_open_req open = {.cred = {.n_groups = MSG_GROUPS_MAX, .groups = groups}};
    struct msg_read_req read = {.n_ranges = MSG_RANGES_MAX, .ranges = ranges};
    struct msg_setattr_req set = {.mtime = {-5, 999999999}};
    struct msg_lease_req lease = {.lease = MSG_LEASE_WRITE};
    struct msg_inode_rep inode = {.inode.layout = {1, 1, 4, 1u << 20, 4, 3, 0}};
    struct msg_hello_req hello = {.name = {"tab\t", 4}};

    ck_assert_int_eq(through(RPC_OP_OPEN, false, &open), 0);
    open.cred.n_groups++;
    ck_assert_int_eq(through(RPC_OP_OPEN, false, &open), -AIFS_EPROTO);
    ck_assert_int_eq(through(RPC_OP_OSS_READ, false, &read), 0);
    read.n_ranges++;
    ck_assert_int_eq(through(RPC_OP_OSS_READ, false, &read), -AIFS_EPROTO);
    read.n_ranges = 1;
    ranges[0] = (struct msg_range){1, 0xffffffff, 4096};
    ck_assert_int_eq(through(RPC_OP_OSS_READ, false, &read), -AIFS_EPROTO);
    ck_assert_int_eq(through(RPC_OP_SETATTR, false, &set), 0);
    set.mtime.nsec = 1000000000;
    ck_assert_int_eq(through(RPC_OP_SETATTR, false, &set), -AIFS_EPROTO);
    ck_assert_int_eq(through(RPC_OP_LEASE_GET, false, &lease), 0);
    lease.lease = (enum msg_lease)3;
    ck_assert_int_eq(through(RPC_OP_LEASE_GET, false, &lease), -AIFS_EPROTO);
    ck_assert_int_eq(through(RPC_OP_OPEN, true, &inode), 0);
    inode.inode.layout.stripe_count = 5;
    ck_assert_int_eq(through(RPC_OP_OPEN, true, &inode), -AIFS_EPROTO);
    ck_assert_int_eq(through(RPC_OP_HELLO, false, &hello),
                     -AIFS_EPROTO); /* nothing that could forge log lines */
}
END_TEST

START_TEST(what_must_be_there_must_be_there)
{
    void *msg;

    ck_assert_int_eq(codec_decode(RPC_OP_GETATTR, false, "", 0, &a, &msg),
                     -AIFS_EPROTO); /* who asks? */
    ck_assert_int_eq(codec_decode(RPC_OP_GETATTR, true, "", 0, &a, &msg), -AIFS_EPROTO);
    ck_assert_int_eq(codec_decode(RPC_OP_HELLO, false, "", 0, &a, &msg), -AIFS_EPROTO);
    ck_assert_int_eq(codec_decode(RPC_OP_MAP_GET, true, "", 0, &a, &msg), -AIFS_EPROTO);
    ck_assert_int_eq(codec_decode(RPC_OP_STATFS, true, "", 0, &a, &msg), 0); /* zeros */
}
END_TEST

START_TEST(a_hostile_message_costs_no_more_than_the_limit)
{
    const size_t limit = 4u << 20;
    uint8_t *items = malloc(NET_HEAD_MAX);
    void *msg;

    for (size_t i = 0; i < NET_HEAD_MAX; i += 2) { /* half a million empty items */
        items[i] = 0x0a;
        items[i + 1] = 0;
    }
    arena_init(&a, limit);
    ck_assert_int_eq(codec_decode(RPC_OP_RECLAIM, false, items, NET_HEAD_MAX, &a, &msg),
                     -AIFS_EPROTO);
    ck_assert_uint_le(a.used_bytes, limit);
    arena_reset(&a);
    free(items);
}
END_TEST

START_TEST(ordinary_messages_need_no_memory_beyond_the_arenas_own)
{
    uint32_t groups[4] = {1, 2, 3, 4};
    struct msg_create_req create = {.cred = {.uid = 1, .n_groups = 4, .groups = groups},
                                    .name = {"checkpoint-000123.safetensors", 29}};
    struct msg_inode_rep inode = {
        .inode.attr = {.ino = 99, .mode = 0100644, .mtime = {1700000000, 123456789}},
        .inode.layout = {1, 1, 4, 1u << 20, 4, 3, 0}};
    struct msg_range range = {5, 0, 1u << 20};
    struct msg_read_req read = {.target = 1, .n_ranges = 1, .ranges = &range};

    ck_assert_int_eq(through(RPC_OP_CREATE, false, &create), 0);
    ck_assert_ptr_null(a.head);
    arena_reset(&a);
    ck_assert_int_eq(through(RPC_OP_CREATE, true, &inode), 0);
    ck_assert_ptr_null(a.head);
    arena_reset(&a);
    ck_assert_int_eq(through(RPC_OP_OSS_READ, false, &read), 0);
    ck_assert_ptr_null(a.head);
}
END_TEST

SUITE_MAIN("codec", start, stop, every_message_survives_the_way_through_the_codec,
           torn_and_flipped_messages_never_do_harm, unknown_operations_and_fields,
           names_are_checked, counts_and_ranges_are_checked, what_must_be_there_must_be_there,
           a_hostile_message_costs_no_more_than_the_limit,
           ordinary_messages_need_no_memory_beyond_the_arenas_own)
