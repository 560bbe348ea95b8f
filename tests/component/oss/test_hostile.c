// SPDX-License-Identifier: Apache-2.0
/* What no honest client and no honest server would send: the storage server answers it, and goes on
 * serving. */
#include <string.h>

#include "common/base/crc.h"
#include "proto/codec.h"
#include "tests/component/oss/server.h"
#include "tests/support/suite.h"
#include "tests/unit/proto/random_msg.h"

#define ROUNDS 60
#define MINE   0x123456789abcull /* file and session that nobody hits upon */

static const uint64_t likes[] = {
    0,    1,     2,     3,        9,          100,        101,       102,        4096,
    8192, 65536, CHUNK, 1u << 26, UINT32_MAX, 1ull << 52, INT64_MAX, 1ull << 63, UINT64_MAX};

static void serves(unsigned op, uint64_t seed)
{
    uint32_t len = 0;
    int rc;

    bed->session = MINE;
    rc = server_read(100, MINE, 0, 0, bed->buf + CHUNK, 4096, &len);

    ck_assert_msg(rc == 0 && len == 4096 && memcmp(bed->buf, bed->buf + CHUNK, 4096) == 0,
                  "after %s, %#llx: %s", rpc_op_name(op), (unsigned long long)seed, err_name(rc));
}

/* In a session, or in none; with a payload that is as long as its ranges, or not. */
static void send_any(struct rng *g, struct arena *a, unsigned op)
{
    struct iovec out = {bed->buf, rng_below(g, 4) ? rng_below(g, 9000) : 0};
    struct iovec in = {bed->buf + CHUNK, CHUNK};
    struct caller k;
    uint32_t len;
    void *msg;
    const void *bytes = random_msg(codec_find(op, false), g, 4, a, &len);

    if (codec_decode(op, false, bytes, len, a, &msg) < 0)
        return;
    bed->session = rng_below(g, 6);
    (void)server_call_bulk(&k, op, msg, rpc_op_flags(op) & OP_BULK_IN && out.iov_len ? &out : NULL,
                           rpc_op_flags(op) & OP_BULK_OUT ? &in : NULL);
    rpc_call_fini(&k.call);
}

START_TEST(any_numbers_are_answered)
{
    struct rng g = {.state = 1, .likes = likes, .n_likes = ARRAY_LEN(likes)};
    struct arena a;

    arena_init(&a, 0);
    server_fill(bed->buf, CHUNK, 5);
    ck_assert_int_eq(server_write(100, MINE, 0, 0, bed->buf, 4096, true, NULL), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned op = RPC_OP_OSS_READ; op < RPC_OP_LIMIT; op++) {
            uint64_t seed = g.state;

            if (!rpc_op_flags(op) || op == RPC_OP_OSS_TARGET_ADD) /* makes what it is told to */
                continue;
            send_any(&g, &a, op);
            arena_recycle(&a);
            serves(op, seed);
        }
    }
    arena_reset(&a);
}
END_TEST

SUITE_MAIN("oss hostile", server_make_bed, server_end_bed, any_numbers_are_answered)
