// SPDX-License-Identifier: Apache-2.0
/*
 * A metadata server that runs out of memory: of every operation that is not a change of the name
 * space each allocation of the whole way fails in turn, the caller's and the transport's too. It is
 * answered right or with an error, no session ends over it, and the same once more is answered as
 * ever. Changes: mds-allocations; RENEW and RECLAIM: mds-restart.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "common/fault/fault.h"
#include "mds/ops/exec.h"
#include "tests/component/mds_server/rig.h"

#define ALLOCATIONS_MAX 400u /* no call makes so many */

struct scene {
    unsigned op;
    int want;
    const void *req;
    void (*prepare)(void); /* before each call; NULL: nothing is to be done */
    int (*ask)(void);      /* NULL: it is one call, */
    bool admin;            /* of an administrator */
    bool commits; /* a commit that is not heard of stops the shard: the server starts again */
};

static struct rig rig;
static uint64_t file, link_ino, open_id;
static _Atomic bool stopped; /* the shard */

static void shard_stopped(void *arg)
{
    (void)arg;
    stopped = true;
}

static void setup(void)
{
    const struct msg_inode_rep *rep;
    struct msg_create_req symlink = {
        .parent = KEY_ROOT_INO, .name = str("s"), .mode = S_IFLNK | 0777, .target = str("f")};
    struct msg_xattr_req x = {.name = str("user.k"), .value = str("v")};
    const void *any;

    rig_begin(&rig, 2, 1);
    x.ino = file = rig_make(&rig, 0, "f");
    ck_ok(rig_do(&rig, 0, RPC_OP_XATTR_SET, &x, NULL));
    ck_ok(rig_do(&rig, 0, RPC_OP_SYMLINK, &symlink, &any));
    rep = any;
    link_ino = rep->inode.attr.ino;
    rig.shard.overlay_bytes = rig.shard.view_bytes = 1; /* nothing stays cached between calls */
    rig.shard.failed = shard_stopped;
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    open_id = rig_open_file(&rig, 0, file, O_RDWR)->open_id;
}

static void teardown(void)
{
    fault_disarm_all();
    rig_end(&rig);
}

static int ask(const struct scene *s)
{
    if (s->ask)
        return s->ask();
    return s->admin ? rig_admin(&rig, s->op, s->req, NULL) : rig_do(&rig, 0, s->op, s->req, NULL);
}

static void prepare(const struct scene *s)
{
    if (s->prepare)
        s->prepare();
}

static bool is_as_ever(const struct scene *s)
{
    prepare(s);
    return ask(s) == s->want;
}

static void start_again(void)
{
    stopped = false;
    rig_restart(&rig);
    ck_ok(rig_reclaim(&rig, 0, 0, 0, 0, MSG_LEASE_NONE, 0));
    ck_assert(rig_until(&rig, 20000, rig_grace_over, &rig));
}

static bool asked[RPC_OP_LIMIT];
static unsigned n_failed; /* allocations, of all operations */

static void sweep(const struct scene *s)
{
    unsigned nth = 1;
    bool failed = true;

    prepare(s);
    ck_assert_int_eq(ask(s), s->want);
    for (; failed; nth++) {
        char spec[64];
        int rc;

        ck_assert_uint_lt(nth, ALLOCATIONS_MAX);
        snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
        prepare(s);
        ck_ok(fault_arm(spec));
        rc = ask(s);
        failed = fault_count("mem.alloc") >= nth;
        fault_disarm_all();
        ck_assert_msg(rc == s->want || (failed && rc != -AIFS_ESESSION), "%s, allocation %u: %s",
                      rpc_op_name(s->op), nth, err_name(rc));
        if (s->commits)
            rig_settle(&rig); /* whoever failed has said so */
        if (s->commits && stopped)
            start_again();
        ck_assert_msg(is_as_ever(s), "%s, after allocation %u", rpc_op_name(s->op), nth);
    }
    n_failed += nth - 2;
    asked[s->op] = true;
}

/* Neither asked of a metadata server by somebody, nor without a test of its own. */
static bool is_elsewhere(unsigned op)
{
    switch (op) {
    case RPC_OP_HELLO: /* rpc: proto-hello */
    case RPC_OP_AUTH:
    case RPC_OP_SESSION_RENEW: /* mds-restart */
    case RPC_OP_RECLAIM:
    case RPC_OP_RECALL: /* of clients */
    case RPC_OP_GLIMPSE:
    case RPC_OP_MAP_CHANGED:
    case RPC_OP_INVALIDATE:
    case RPC_OP_LOCK_WAKE:
        return true;
    default:
        return op >= RPC_OP_OSS_READ || (op < SHARD_OP_LIMIT && mds_exec_table[op]);
    }
}

static struct msg_session_open_req opens = {.host = {"host", 4}};
static uint8_t n_opened;

static void another_client(void)
{
    rig_client_connect(&rig, 1);
    rig.client[1].session = 0;
    opens.client = (struct uuid){{77, ++n_opened}};
}

static int open_session(void)
{
    return rig_do(&rig, 1, RPC_OP_SESSION_OPEN, &opens, NULL);
}

static void another_session(void)
{
    const struct msg_session_open_rep *rep;
    const void *any;

    another_client();
    ck_ok(rig_do(&rig, 1, RPC_OP_SESSION_OPEN, &opens, &any));
    rep = any;
    rig.client[1].session = rep->session;
    rig.client[1].generation = rep->generation;
}

static int close_session(void)
{
    return rig_do(&rig, 1, RPC_OP_SESSION_CLOSE, NULL, NULL);
}

static int register_node(void)
{
    return rig_oss_try(&rig, 0, 2);
}

static int dump(void)
{
    const void *any;
    struct msg_dump_req req = {0};
    int rc = rig_admin(&rig, RPC_OP_DUMP, &req, &any);

    if (rc)
        return rc;
    req.dump = ((const struct msg_dump_rep *)any)->dump;
    req.end = true;
    return rig_admin(&rig, RPC_OP_DUMP, &req, NULL);
}

static struct msg_rmtree_req tree = {.parent = KEY_ROOT_INO};
static char tree_name[16];

static void another_tree(void)
{
    static unsigned n;
    struct msg_create_req req = {.parent = KEY_ROOT_INO, .mode = S_IFDIR | 0755};
    const void *any;

    snprintf(tree_name, sizeof tree_name, "tree%u", ++n);
    req.name = tree.name = str(tree_name);
    ck_ok(rig_do(&rig, 0, RPC_OP_MKDIR, &req, &any));
    tree.ino = ((const struct msg_inode_rep *)any)->inode.attr.ino;
}

START_TEST(what_is_asked_without_memory_is_answered_right_or_refused)
{
    struct msg_ino_req of_file = {.ino = file}, of_link = {.ino = link_ino};
    struct msg_name_req name = {.parent = KEY_ROOT_INO, .name = str("f")};
    struct msg_xattr_req x = {.ino = file, .name = str("user.k")};
    struct msg_readdir_req list = {.ino = KEY_ROOT_INO, .max_bytes = 4096, .plus = true};
    struct msg_lease_req lease = {.ino = file, .lease = MSG_LEASE_READ};
    struct msg_lock_req lock = {
        .ino = file, .open_id = open_id, .lock = {.type = MSG_LOCK_WRITE, .end = 9, .owner = 1}};
    struct msg_lock_wait wait = {.ino = file, .wait = 77};
    struct msg_close_req nothing = {0};
    struct msg_map_req map = {0};
    uint32_t target = rig.oss[0].target_id[1];
    struct msg_pool_req lost = {.n_targets = 1, .targets = &target, .dry_run = true};
    struct msg_node_req node = {.node = rig.oss[0].node_id, .dry_run = true};
    struct msg_heartbeat_req beat = {.node_id = rig.oss[0].node_id, .boot = rig.oss[0].boot};
    struct msg_pool_req pool = {.name = str("fast"), .dry_run = true};
    struct msg_pool_req taken = {
        .name = str("default"), .n_targets = 1, .targets = &target, .dry_run = true};
    const struct scene scenes[] = {
        {RPC_OP_PING, 0, NULL},
        {RPC_OP_LOAD, 0, NULL, .admin = true},
        {RPC_OP_LOOKUP, 0, &name},
        {RPC_OP_GETATTR, 0, &of_file},
        {RPC_OP_READLINK, 0, &of_link},
        {RPC_OP_READDIR, 0, &list},
        {RPC_OP_CLOSE, 0, &nothing},
        {RPC_OP_STATFS, 0, &of_file},
        {RPC_OP_XATTR_GET, 0, &x},
        {RPC_OP_XATTR_LIST, 0, &of_file},
        {RPC_OP_FSYNC, 0, &of_file},
        {RPC_OP_LEASE_GET, 0, &lease},
        {RPC_OP_LEASE_RELEASE, 0, &lease},
        {RPC_OP_MAP_GET, 0, &map},
        {RPC_OP_STATUS, 0, NULL, .admin = true},
        {RPC_OP_TARGET_REPLACE, -EBUSY, &lost, .admin = true},
        {RPC_OP_NODE_REMOVE, -EBUSY, &node, .admin = true},
        {RPC_OP_LOCK_TEST, 0, &lock},
        {RPC_OP_LOCK_CANCEL, 0, &wait},
        {RPC_OP_LOCK_LIST, 0, &of_file, .admin = true},
        {RPC_OP_WAITS, 0, NULL, .admin = true},
        {RPC_OP_HEARTBEAT, 0, &beat, .admin = true},
        {RPC_OP_NODE_REGISTER, 0, .ask = register_node},
        {RPC_OP_POOL_CREATE, 0, &pool, .admin = true},
        {RPC_OP_POOL_ADD, 0, &taken, .admin = true},
        {RPC_OP_POOL_REMOVE, -EBUSY, &taken, .admin = true},
        {RPC_OP_DUMP, 0, .ask = dump},
        {RPC_OP_RMTREE, 0, &tree, .prepare = another_tree, .admin = true, .commits = true},
        {RPC_OP_SESSION_OPEN, 0, .prepare = another_client, .ask = open_session, .commits = true},
        {RPC_OP_SESSION_CLOSE, 0, .prepare = another_session, .ask = close_session,
         .commits = true},
    };

    for (unsigned i = 0; i < ARRAY_LEN(scenes); i++)
        sweep(&scenes[i]);
    ck_assert_uint_gt(n_failed, ARRAY_LEN(scenes));
#define CHECK(NAME, ...)                                                                           \
    ck_assert_msg(asked[RPC_OP_##NAME] || is_elsewhere(RPC_OP_##NAME),                             \
                  "nobody knows what " #NAME " does without memory");
    RPC_OP_TABLE(CHECK)
}
END_TEST

/* Of a caller with so many groups. Returns whether the nth allocation was made, and failed. */
static bool open_without_memory(unsigned groups, unsigned nth, int *ret_rc,
                                struct msg_inode_rep *ret_rep)
{
    static const uint32_t group[MSG_GROUPS_MAX];
    struct msg_create_req req = {.cred = {.n_groups = groups, .groups = group},
                                 .parent = KEY_ROOT_INO,
                                 .name = str("new"),
                                 .mode = 0100666,
                                 .flags = MSG_CREATE_OPEN,
                                 .open_flags = O_RDWR};
    const void *rep;
    char spec[64];
    bool failed;

    snprintf(spec, sizeof spec, "mem.alloc=error@%u", nth);
    ck_ok(fault_arm(spec));
    *ret_rc = rig_do(&rig, 0, RPC_OP_CREATE, &req, &rep);
    failed = fault_count("mem.alloc") >= nth;
    fault_disarm_all();
    if (*ret_rc == 0)
        *ret_rep = *(const struct msg_inode_rep *)rep;
    rig_settle(&rig);
    if (stopped) {
        start_again();
        rig_client_open(&rig, 1);
    }
    return failed;
}

/* It is open, and of the lease that was promised the server knows. */
static void expect_open(const struct msg_inode_rep *rep)
{
    uint64_t ino = rep->inode.attr.ino, other;
    struct mds_inode in;

    other = rig_open_file(&rig, 1, ino, O_RDWR)->open_id;
    ck_assert_uint_eq(rig_client_count(&rig.client[0], RPC_OP_RECALL, ino),
                      rep->inode.lease != MSG_LEASE_NONE);
    rig_close_file(&rig, 1, ino, other);
    ck_ok(rig_unlink(&rig, 0, "new"));
    rig_settle(&rig);
    ck_ok(rig_inode(&rig, ino, &in));
    rig_close_file(&rig, 0, ino, rep->open_id);
    rig_settle(&rig);
    ck_assert_int_eq(rig_inode(&rig, ino, &in), -ENOENT);
}

/* The answer is decoded in the memory of its request, which more groups fill further. */
START_TEST(an_open_that_is_answered_is_known_though_there_was_no_memory)
{
    struct msg_inode_rep rep;
    int rc;

    rig_client_open(&rig, 1);
    for (unsigned groups = 0; groups < 400; groups += 20) {
        bool failed = true;

        for (unsigned nth = 1; failed; nth++) {
            ck_assert_uint_lt(nth, ALLOCATIONS_MAX);
            failed = open_without_memory(groups, nth, &rc, &rep);
            ck_assert_msg(rc == 0 || failed, "allocation %u: %s", nth, err_name(rc));
            if (rc == 0)
                expect_open(&rep);
            else
                (void)rig_unlink(&rig, 0, "new");
            rig_settle(&rig);
        }
    }
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_is_asked_without_memory_is_answered_right_or_refused);
    tcase_add_test(t, an_open_that_is_answered_is_known_though_there_was_no_memory);
}

int main(void)
{
    return rig_main("mds-memory", add);
}
