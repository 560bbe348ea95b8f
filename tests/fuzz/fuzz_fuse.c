// SPDX-License-Identifier: Apache-2.0
/*
 * What comes from /dev/fuse or by its ring: messages of every operation, damaged and cut, in memory
 * that ends where they end. A request that comes out of one names nothing outside of it.
 */
#include <stdlib.h>
#include <string.h>

#include "client/fuse/wire_decode.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 2048u

static volatile unsigned char sink;

static void touch(const void *data, size_t len)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++)
        sink ^= p[i];
}

static void touch_name(const char *name)
{
    FUZZ_CHECK(strlen(name) > 0 && strlen(name) <= MSG_NAME_MAX);
}

/* Everything that a handler may look at. */
static void use(const struct channel_req *q)
{
    switch (q->op) {
    case CHANNEL_LOOKUP:
    case CHANNEL_UNLINK:
    case CHANNEL_RMDIR:
    case CHANNEL_REMOVEXATTR:
        touch_name(q->name.name);
        break;
    case CHANNEL_MKNOD:
    case CHANNEL_MKDIR:
    case CHANNEL_CREATE:
        touch_name(q->make.name);
        break;
    case CHANNEL_SYMLINK:
        touch_name(q->make.name);
        touch(q->make.target, strlen(q->make.target));
        break;
    case CHANNEL_RENAME:
        touch_name(q->rename.name);
        touch_name(q->rename.new_name);
        break;
    case CHANNEL_LINK:
        touch_name(q->link_to.new_name);
        break;
    case CHANNEL_WRITE:
        touch(q->io.data, q->io.len);
        break;
    case CHANNEL_READ:
    case CHANNEL_READDIR:
        FUZZ_CHECK(q->io.len <= CHANNEL_IO_MAX);
        break;
    case CHANNEL_GETXATTR:
        touch_name(q->xattr.name);
        break;
    case CHANNEL_SETXATTR:
        touch_name(q->xattr.name);
        touch(q->xattr.value, q->xattr.size);
        break;
    case CHANNEL_SETLK:
    case CHANNEL_GETLK:
        FUZZ_CHECK(q->lock.lock.start <= q->lock.lock.end && q->lock.lock.end <= MSG_LOCK_END);
        break;
    default:
        break;
    }
}

/* Arguments that may be plausible, then text, small numbers among them. */
static size_t fill(struct rng *g, uint8_t *body)
{
    size_t args = 8 * (size_t)rng_below(g, 12), len = args;

    for (size_t i = 0; i < args; i++)
        body[i] = rng_below(g, 3) ? 0 : (uint8_t)rng_below(g, 256);
    for (uint32_t texts = rng_below(g, 4); texts > 0; texts--) {
        size_t n = rng_below(g, rng_below(g, 8) ? 40 : 500);

        for (size_t i = 0; i < n; i++)
            body[len + i] = (uint8_t)(1 + rng_below(g, 255));
        body[len + n] = 0;
        len += n + 1;
    }
    if (args >= 24 && rng_below(g, 2)) { /* the size of a WRITE or of a value that fits */
        uint32_t rest = (uint32_t)(len - MIN(len, 40));
        uint32_t size = rng_below(g, 2) ? rest : (uint32_t)args;

        memcpy(body + (rng_below(g, 2) ? 16 : 0), &size, sizeof size);
    }
    return len;
}

static void fuzz_request(struct rng *g)
{
    static struct channel_req q;
    uint8_t body[BODY_MAX];
    size_t len = fill(g, body);
    struct wire_in_header h = {.opcode = rng_below(g, WIRE_OPCODES + 2), .nodeid = 1};
    uint8_t *exact;

    if (rng_below(g, 4) == 0)
        len = fuzz_mutate(g, body, len);
    if (rng_below(g, 16) == 0)
        h.total_extlen = (uint16_t)rng_below(g, 40);
    exact = malloc(len ? len : 1);
    memcpy(exact, body, len);
    q.op = wire_op(h.opcode);
    if (q.op != CHANNEL_N_OPS && wire_decode(&h, exact, len, rng_below(g, 2), &q) == 0)
        use(&q);
    free(exact);
}

static void fuzz_forgets(struct rng *g)
{
    uint8_t body[BODY_MAX];
    size_t len = fill(g, body), n;
    uint8_t *exact = malloc(len ? len : 1);
    const struct wire_forget_one *f;

    memcpy(exact, body, len);
    f = wire_forgets(exact, len, &n);
    touch(f, n * sizeof *f);
    free(exact);
}

/* By the ring: lengths that may be anything, memory that ends where the entry ends. */
static void fuzz_ring(struct rng *g)
{
    static struct channel_req q;
    size_t room = 8 * (size_t)(1 + rng_below(g, 64));
    uint8_t body[BODY_MAX] = {0}, *memory = malloc(WIRE_RING_OP_BYTES + room);
    struct wire_ring_header h = {.in = {.opcode = rng_below(g, WIRE_OPCODES + 2), .nodeid = 1}};
    const void *joined;
    size_t len;

    (void)fill(g, body);
    memcpy(h.op_in, body, sizeof h.op_in);
    memcpy(memory + WIRE_RING_OP_BYTES, body + sizeof h.op_in, room);
    h.payload_len = rng_below(g, 8) ? rng_below(g, (uint32_t)room + 1) : rng_below(g, UINT32_MAX);
    h.in.len = (uint32_t)sizeof h.in + h.payload_len + 8 * rng_below(g, 20);
    if (rng_below(g, 8) == 0)
        h.in.len = rng_below(g, UINT32_MAX);
    q.op = wire_op(h.in.opcode);
    if (wire_ring_join(&h, memory + WIRE_RING_OP_BYTES, room, &joined, &len) == 0) {
        touch(joined, len);
        if (q.op != CHANNEL_N_OPS && wire_decode(&h.in, joined, len, rng_below(g, 2), &q) == 0)
            use(&q);
    }
    free(memory);
}

int main(int argc, char **argv)
{
    static const struct fuzz_case cases[] = {
        {"request", fuzz_request}, {"forgets", fuzz_forgets}, {"ring", fuzz_ring}};

    return fuzz_main(argc, argv, cases, ARRAY_LEN(cases));
}
