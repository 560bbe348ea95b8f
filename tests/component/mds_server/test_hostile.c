// SPDX-License-Identifier: Apache-2.0
/*
 * What no honest client and no honest server would send: the metadata server answers it, with an
 * error where it has to, and goes on serving. Messages that its codec refuses have tests of their
 * own (proto-codec, fuzz-proto): these here it takes for messages.
 */
#include "proto/codec.h"
#include "tests/component/mds_server/rig.h"
#include "tests/unit/proto/random_msg.h"

#define ROUNDS   40
#define SESSIONS 4000
#define TURNS    2000

static struct rig rig;
static struct arena arena;
static uint64_t file, dir, link_ino, open_id, lease_seq, generation;

static uint64_t make(unsigned op, const char *name, uint32_t mode)
{
    struct msg_create_req req = {
        .parent = KEY_ROOT_INO, .name = str(name), .mode = mode, .target = str("d")};
    const void *rep;

    ck_ok(rig_do(&rig, 0, op, &req, &rep));
    return ((const struct msg_inode_rep *)rep)->inode.attr.ino;
}

static void setup(void)
{
    const struct msg_inode_rep *rep;

    arena_init(&arena, 0);
    rig_begin(&rig, 2, 2);
    rig_client_connect(&rig, 2);
    dir = make(RPC_OP_MKDIR, "d", 040777);
    link_ino = make(RPC_OP_SYMLINK, "l", 0120777);
    rep = rig_create(&rig, 0, "f", O_RDWR);
    file = rep->inode.attr.ino;
    open_id = rep->open_id;
    lease_seq = rep->inode.lease_seq;
    generation = rep->inode.layout.generation;
}

static void teardown(void)
{
    arena_reset(&arena);
    rig_end(&rig);
}

static void serves(unsigned op, uint64_t round)
{
    struct msg_ino_req look = {.ino = KEY_ROOT_INO};
    int rc = rig_do(&rig, 1, RPC_OP_GETATTR, &look, NULL);

    ck_assert_msg(rc == 0, "after %s, round %llu: %s", rpc_op_name(op), (unsigned long long)round,
                  err_name(rc));
}

static const void *hostile(struct rng *g, unsigned op, struct arena *a)
{
    uint32_t len;
    void *msg;
    const void *bytes = random_msg(codec_find(op, false), g, 8, a, &len);

    return codec_decode(op, false, bytes, len, a, &msg) == 0 ? msg : NULL;
}

static struct rng_fit fits[] = {
    {NULL, "parent", KEY_ROOT_INO},
    {NULL, "new_parent", KEY_ROOT_INO},
    {"aifs.CreateReq", "ino", 0},
    {"aifs.BatchItem", "ino", 0},
    {"aifs.CreateReq", "flags", MSG_CREATE_OPEN},
    {"aifs.CreateReq", "flags", MSG_CREATE_OPEN | MSG_CREATE_TRUNC},
    {"aifs.CreateReq", "flags", MSG_CREATE_OPEN | MSG_CREATE_UNNAMED},
    {"aifs.CreateReq", "flags", MSG_CREATE_OPEN | MSG_CREATE_FOUND},
    {"aifs.RenameReq", "flags", 0},
    {"aifs.RenameReq", "flags", 2},
    {"aifs.BatchItem", "op", RPC_OP_MKNOD},
    {"aifs.BatchItem", "op", RPC_OP_MKDIR},
    {"aifs.BatchItem", "op", RPC_OP_UNLINK},
    {"aifs.BatchItem", "op", RPC_OP_RMDIR},
    {NULL, "open_flags", O_RDWR},
    {NULL, "open_flags", O_RDONLY},
    {"aifs.OpenReq", "flags", O_RDWR},
    {"aifs.OpenReq", "flags", O_RDONLY},
    {"aifs.OpenReq", "flags", O_WRONLY | O_TRUNC},
    {NULL, "mode", 0100644},
    {NULL, "mode", 040755},
    {NULL, "set", MSG_SET_MODE},
    {NULL, "set", MSG_SET_UID | MSG_SET_MTIME},
    {NULL, "set", MSG_SET_SIZE},
    {NULL, "size", 10},
    {NULL, "size", 100000},
    {NULL, "len", 100},
    {NULL, "uid", 0},
    {NULL, "rdev", 0},
    {NULL, "masked", 0},
    {NULL, "when_ns", 0},
    {NULL, "wrote_ns", 0},
    {NULL, "truncate_gen", 0},
    {NULL, "truncate_gen", 1},
    {NULL, "offset", 0},
    {NULL, "wait", 0},
    {NULL, "wait", 1},
    {NULL, "last", 1},
    /* filled in by numbers() */
    {NULL, "parent", 0},
    {NULL, "new_parent", 0},
    {NULL, "ino", 0},
    {NULL, "ino", 0},
    {NULL, "open_id", 0},
    {NULL, "lease_seq", 0},
    {NULL, "layout_generation", 0},
};
static void fit(void)
{
    const uint64_t own[] = {dir, dir, file, dir, open_id, lease_seq, generation};

    for (unsigned i = 0; i < ARRAY_LEN(own); i++)
        fits[ARRAY_LEN(fits) - ARRAY_LEN(own) + i].number = own[i];
}

/* A client's own session is its own business: it opens another one. */
static void again(unsigned client)
{
    struct msg_ino_req look = {.ino = KEY_ROOT_INO};
    struct msg_open_req open = {.ino = file, .flags = O_RDWR};
    const void *rep;

    if (rig_do(&rig, client, RPC_OP_GETATTR, &look, NULL) < 0)
        rig_client_open(&rig, client);
    if (client == 0 && rig_do(&rig, 0, RPC_OP_OPEN, &open, &rep) == 0) {
        open_id = ((const struct msg_inode_rep *)rep)->open_id;
        lease_seq = ((const struct msg_inode_rep *)rep)->inode.lease_seq;
        generation = ((const struct msg_inode_rep *)rep)->inode.layout.generation;
        fit();
    }
}

static const char *const names[] = {"f", "d", "l", "new", ".", "..", "default", "user.k"};
static uint64_t likes[32];

/* Numbers that mean something here, and those at the ends of what fits. */
static struct rng numbers(void)
{
    const uint64_t all[] = {0,
                            1,
                            2,
                            3,
                            5,
                            8,
                            file,
                            file + 1,
                            dir,
                            link_ino,
                            open_id,
                            lease_seq,
                            1ull << 52,
                            1ull << 51,
                            (4095ull << 52) | 1,
                            UINT64_MAX,
                            INT64_MAX,
                            1ull << 63,
                            UINT32_MAX,
                            1ull << 31,
                            4096,
                            0100644,
                            040755,
                            0120777,
                            0170000,
                            rig.oss[0].target_id[0],
                            rig.oss[0].node_id};

    static_assert(sizeof all <= sizeof likes, "room for all");
    memcpy(likes, all, sizeof all);
    fit();
    return (struct rng){.state = 1,
                        .likes = likes,
                        .n_likes = ARRAY_LEN(all),
                        .fits = fits,
                        .n_fits = ARRAY_LEN(fits),
                        .names = names,
                        .n_names = ARRAY_LEN(names)};
}

static void send_any(struct rng *g, unsigned op, uint32_t role)
{
    struct iovec payload = {rig.bulk, rng_below(g, 100)};
    const void *msg = hostile(g, op, &arena);

    if (!msg)
        return;
    if (role == OP_SERVER) {
        (void)rig_admin(&rig, op, msg, NULL);
    } else {
        if (rpc_op_flags(op) & OP_BULK_IN)
            rig.bulk_out = &payload;
        (void)rig_do(&rig, 0, op, msg, NULL);
        again(0);
    }
    rig_forget(&rig.call);
    arena_recycle(&arena);
}

static void send_all(uint32_t role)
{
    struct rng g = numbers();

    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned op = RPC_OP_SESSION_OPEN; op < RPC_OP_LIMIT; op++) {
            uint64_t seed = g.state;

            if (!(rpc_op_flags(op) & role))
                continue;
            send_any(&g, op, role);
            serves(op, seed);
        }
    }
}

START_TEST(any_numbers_of_a_client_are_answered)
{
    send_all(OP_CLIENT);
}
END_TEST

START_TEST(any_numbers_of_a_server_are_answered)
{
    send_all(OP_SERVER);
}
END_TEST

/* Of two clients, whose requests meet each other. */
START_TEST(any_numbers_of_many_requests_at_once_are_answered)
{
    static struct rig_call calls[2][RIG_SLOTS];
    static struct arena arenas[2][RIG_SLOTS];
    struct rng g = numbers();

    for (unsigned k = 0; k < 2 * RIG_SLOTS; k++)
        arena_init(&arenas[k & 1][k / 2], 0);
    for (unsigned i = 0; i < TURNS; i++) {
        unsigned c = rng_below(&g, 2), slot = rng_below(&g, RIG_SLOTS);
        unsigned op = RPC_OP_RECLAIM + rng_below(&g, RPC_OP_LOCK_CANCEL - RPC_OP_RECLAIM + 1);
        struct rig_call *call = &calls[c][slot];
        const void *msg;

        if (!(rpc_op_flags(op) & OP_CLIENT) || op >= RPC_OP_OSS_READ)
            continue;
        if (call->used)
            ck_assert_msg(rig_until(&rig, 120000, rig_is_done, call), "turn %u: %s is not answered",
                          i, rpc_op_name(call->c.op));
        rig_forget(call);
        arena_recycle(&arenas[c][slot]);
        msg = hostile(&g, op, &arenas[c][slot]);
        if (msg)
            rig_send(&rig, c, rpc_op_flags(op) & OP_SLOT ? slot + 1 : 0, call, op, msg);
        if (rng_below(&g, 8) == 0)
            rig_settle(&rig);
        if (rng_below(&g, 50) == 0)
            again(c);
    }
    for (unsigned k = 0; k < 2 * RIG_SLOTS; k++) {
        struct rig_call *call = &calls[k & 1][k / 2];

        if (call->used)
            ck_assert(rig_until(&rig, 120000, rig_is_done, call));
        rig_forget(call);
        arena_reset(&arenas[k & 1][k / 2]);
    }
    again(1);
    serves(0, 0);
}
END_TEST

START_TEST(a_file_that_is_none_has_no_size_to_be_set)
{
    const uint64_t inos[] = {0, file + 1000, 7ull << 52, UINT64_MAX};

    for (unsigned i = 0; i < ARRAY_LEN(inos); i++) {
        struct msg_setattr_req req = {.ino = inos[i], .set = MSG_SET_SIZE, .size = 1};

        ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_SETATTR, &req, NULL), -ENOENT);
        serves(RPC_OP_SETATTR, i);
    }
}
END_TEST

/* Every operation that takes a name, with this one. */
static void nobody_is_called(struct msg_bytes name, bool lookup_too)
{
    const struct msg_bytes good = str("good");
    struct msg_name_req named = {.parent = KEY_ROOT_INO, .name = name};
    struct msg_create_req made = {
        .parent = KEY_ROOT_INO, .name = name, .mode = 0100644, .target = good};
    struct msg_rename_req from = {
        .parent = KEY_ROOT_INO, .new_parent = dir, .name = name, .new_name = good};
    struct msg_rename_req to = {
        .parent = KEY_ROOT_INO, .new_parent = dir, .name = str("f"), .new_name = name};
    struct msg_link_req linked = {.ino = file, .new_parent = dir, .new_name = name};
    struct msg_batch_item item = {
        .op = RPC_OP_MKNOD, .parent = KEY_ROOT_INO, .name = name, .mode = 0100644};
    struct msg_batch_req batch = {.n_items = 1, .items = &item};
    const struct {
        unsigned op;
        const void *req;
    } calls[] = {{RPC_OP_LOOKUP, &named}, {RPC_OP_UNLINK, &named}, {RPC_OP_RMDIR, &named},
                 {RPC_OP_CREATE, &made},  {RPC_OP_MKDIR, &made},   {RPC_OP_MKNOD, &made},
                 {RPC_OP_SYMLINK, &made}, {RPC_OP_RENAME, &from},  {RPC_OP_RENAME, &to},
                 {RPC_OP_LINK, &linked},  {RPC_OP_BATCH, &batch}};

    for (unsigned i = lookup_too ? 0 : 1; i < ARRAY_LEN(calls); i++) {
        const void *rep = NULL;
        int rc = rig_do(&rig, 0, calls[i].op, calls[i].req, &rep);

        if (calls[i].op == RPC_OP_BATCH && rc == 0)
            rc = err_from_wire(((const struct msg_batch_rep *)rep)->items[0].status);
        ck_assert_msg(rc < 0, "%s takes a name of %u bytes", rpc_op_name(calls[i].op), name.len);
        serves(calls[i].op, i);
    }
}

START_TEST(names_that_are_none_are_refused)
{
    static const char longest[256];
    char too_long[256];

    memset(too_long, 'x', sizeof too_long);
    nobody_is_called((struct msg_bytes){"", 0}, true);
    nobody_is_called((struct msg_bytes){too_long, sizeof too_long}, true);
    nobody_is_called((struct msg_bytes){longest, 3}, true);
    nobody_is_called((struct msg_bytes){"a\0b", 3}, true);
    nobody_is_called(str("a/b"), true);
    nobody_is_called(str("/"), true);
    nobody_is_called(str("."), false);
    nobody_is_called(str(".."), false);
}
END_TEST

START_TEST(lists_longer_than_there_are_are_refused)
{
    static uint32_t groups[MSG_GROUPS_MAX + 1];
    static struct msg_close_item closed[MSG_ITEMS_MAX + 1];
    static struct msg_batch_item items[MSG_BATCH_MAX + 1];
    struct msg_ino_req look = {.ino = KEY_ROOT_INO,
                               .cred = {.n_groups = MSG_GROUPS_MAX + 1, .groups = groups}};
    struct msg_close_req close = {.n_items = MSG_ITEMS_MAX + 1, .items = closed};
    struct msg_batch_req batch = {.n_items = MSG_BATCH_MAX + 1, .items = items};
    struct msg_lease_req lease = {.ino = file, .lease = (enum msg_lease)7};

    for (unsigned i = 0; i <= MSG_BATCH_MAX; i++)
        items[i].name = str("new");
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_GETATTR, &look, NULL), -AIFS_EPROTO);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_CLOSE, &close, NULL), -AIFS_EPROTO);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_BATCH, &batch, NULL), -AIFS_EPROTO);
    ck_assert_int_eq(rig_do(&rig, 0, RPC_OP_LEASE_GET, &lease, NULL), -AIFS_EPROTO);
    batch.n_items = MSG_BATCH_MAX; /* of an operation that is none */
    ck_ok(rig_do(&rig, 0, RPC_OP_BATCH, &batch, NULL));
    serves(RPC_OP_BATCH, 0);
}
END_TEST

/* What is for servers and administrators from a client; and what a metadata server asks of others,
 * or is for another kind of server, from anybody. */
START_TEST(operations_that_are_for_others_are_refused)
{
    struct rng g = numbers();

    for (unsigned op = RPC_OP_LOAD + 1; op < RPC_OP_LIMIT; op++) {
        uint32_t flags = rpc_op_flags(op);
        bool elsewhere = (op >= RPC_OP_RECALL && op <= RPC_OP_INVALIDATE) ||
                         op == RPC_OP_LOCK_WAKE || op >= RPC_OP_OSS_READ;
        const void *msg = flags ? hostile(&g, op, &arena) : NULL;
        int rc;

        if (!msg || (!elsewhere && flags & OP_CLIENT))
            continue;
        rc = rig_do(&rig, 0, op, msg, NULL);
        ck_assert_msg(rc == -EOPNOTSUPP || rc == -AIFS_EROLE, "%s of a client: %s", rpc_op_name(op),
                      err_name(rc));
        if (elsewhere)
            ck_assert_int_eq(rig_admin(&rig, op, msg, NULL), -EOPNOTSUPP);
        rig_forget(&rig.call);
        arena_recycle(&arena);
        serves(op, 0);
    }
}
END_TEST

/* With texts as long as they may be: together longer than a message. */
START_TEST(sessions_with_long_texts_do_not_end_the_status)
{
    static char text[MSG_PATH_MAX];
    struct msg_session_open_req open = {
        .host = {text, 200}, .mount = {text, sizeof text}, .job = {text, 200}};
    const struct msg_status_rep *status;
    const void *rep;

    memset(text, 'x', sizeof text);
    for (unsigned i = 0; i < SESSIONS; i++) {
        open.client.b[0] = 1;
        open.client.b[1] = (uint8_t)i;
        open.client.b[2] = (uint8_t)(i >> 8);
        ck_ok(rig_do(&rig, 2, RPC_OP_SESSION_OPEN, &open, NULL));
    }
    ck_ok(rig_admin(&rig, RPC_OP_STATUS, NULL, &rep));
    status = rep;
    ck_assert_uint_eq(status->n_sessions, SESSIONS + 2);
    ck_assert_uint_gt(status->sessions[0].host.len, 0);
}
END_TEST

START_TEST(slots_that_a_session_does_not_have_are_refused)
{
    struct msg_setattr_req set = {.ino = file, .set = MSG_SET_MODE, .mode = 0600};
    struct msg_batch_item item = {
        .op = RPC_OP_MKNOD, .parent = KEY_ROOT_INO, .name = str("new"), .mode = 0100644};
    struct msg_batch_req batch = {.n_items = 1, .items = &item};
    struct msg_lock_req lock = {.ino = file, .open_id = open_id, .lock.end = MSG_LOCK_END};
    const struct {
        unsigned op;
        const void *req;
    } calls[] = {{RPC_OP_SETATTR, &set}, {RPC_OP_BATCH, &batch}, {RPC_OP_LOCK, &lock}};
    const uint32_t slots[] = {0, RIG_SLOTS + 1, UINT32_MAX};

    for (unsigned i = 0; i < ARRAY_LEN(calls) * ARRAY_LEN(slots); i++) {
        unsigned k = i / ARRAY_LEN(slots);
        struct rig_client *c = &rig.client[0];
        struct rig_call call = {.used = true};

        rpc_call_init(&call.c, calls[k].op, calls[k].req, rig_call_done, &call);
        call.c.session = c->session;
        call.c.generation = c->generation;
        call.c.slot = slots[i % ARRAY_LEN(slots)];
        rpc_peer_call(c->mds, &call.c);
        ck_assert(rig_until(&rig, 20000, rig_is_done, &call));
        ck_assert_int_eq(call.status, -AIFS_EPROTO);
        rig_forget(&call);
    }
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, any_numbers_of_a_client_are_answered);
    tcase_add_test(t, any_numbers_of_a_server_are_answered);
    tcase_add_test(t, any_numbers_of_many_requests_at_once_are_answered);
    tcase_add_test(t, a_file_that_is_none_has_no_size_to_be_set);
    tcase_add_test(t, names_that_are_none_are_refused);
    tcase_add_test(t, lists_longer_than_there_are_are_refused);
    tcase_add_test(t, operations_that_are_for_others_are_refused);
    tcase_add_test(t, sessions_with_long_texts_do_not_end_the_status);
    tcase_add_test(t, slots_that_a_session_does_not_have_are_refused);
}

int main(void)
{
    return rig_main("mds-hostile", add);
}
