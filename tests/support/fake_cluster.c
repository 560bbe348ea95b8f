/* SPDX-License-Identifier: Apache-2.0 */
/* Life of the cluster in memory: sessions, map, start and stop; see fake_cluster.h. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "proto/number.h"
#include "tests/support/fake_cluster.h"

/* ---- sessions ---- */

static uint64_t lease_ns(const struct fake_cluster *f)
{
    return f->lease_ns ? f->lease_ns : 15 * NS_PER_S;
}

static int64_t wall_ns(const struct fake_cluster *f)
{
    return clock_wall_ns(reactor_clock(f->reactor));
}

static void serve_session(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;
    const struct msg_session_open_req *m = req->msg;
    struct msg_session_open_rep rep = {.generation = 1,
                                       .slots = 64,
                                       .lease_ns = lease_ns(f),
                                       .wall_ns = wall_ns(f),
                                       .root = 1,
                                       .map_epoch = f->map->epoch,
                                       .inline_max = FAKE_INLINE_MAX};
    unsigned k = 0;

    f->calls[req->header.op]++;
    while (k < FAKE_SESSIONS - 1 && f->sessions[k].id)
        k++;
    memset(&f->sessions[k], 0, sizeof f->sessions[k]);
    f->sessions[k].id = rep.session = ++f->next_session;
    f->sessions[k].client = m->client;
    f->sessions[k].link = req->from;
    rpc_reply(req, 0, &rep);
}

static void serve_renew(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;
    struct fake_session *s = fake_session_of(f, req);
    struct msg_renew_rep rep = {
        .lease_ns = lease_ns(f), .wall_ns = wall_ns(f), .map_epoch = f->map->epoch};

    f->calls[req->header.op]++;
    if (s)
        fake_session_seen(f, s, req->from);
    if (req->header.op == RPC_OP_SESSION_RENEW) {
        const struct msg_renew_req *m = req->msg;

        f->n_waits = m->n_waits;
        if (m->n_waits)
            memcpy(f->waits, m->waits, m->n_waits * sizeof *f->waits);
        rpc_reply(req, s ? 0 : -AIFS_ESESSION, s ? &rep : NULL);
        return;
    }
    if (s && req->header.op == RPC_OP_SESSION_CLOSE)
        s->id = 0;
    if (s && req->header.op == RPC_OP_RECLAIM) {
        const struct msg_reclaim_req *m = req->msg;

        f->reclaims++;
        f->unsettled += m->unsettled;
        for (uint32_t k = 0; k < m->n_items; k++)
            ck_assert_uint_ne(m->items[k].open_id,
                              0); /* a server takes it for a breach of protocol */
    }
    rpc_reply(req, s ? 0 : -AIFS_ESESSION, s ? &(struct msg_empty){0} : NULL);
}

static void serve_map(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;
    struct msg_map_rep rep = {.map = f->map};

    rpc_reply(req, 0, &rep);
}

void fake_give_up(struct fake_cluster *f, unsigned oss)
{
    struct cluster_map *map = map_copy(f->map);

    ck_assert_ptr_nonnull(map);
    ck_assert_int_eq(map_give_up(map, oss + 1), 0);
    map->epoch++;
    map_put(f->map);
    f->map = map;
}

static void serve(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;

    switch (req->header.op) {
    case RPC_OP_SESSION_OPEN:
        serve_session(req);
        break;
    case RPC_OP_SESSION_RENEW:
    case RPC_OP_SESSION_CLOSE:
    case RPC_OP_RECLAIM:
        serve_renew(req);
        break;
    case RPC_OP_MAP_GET:
        serve_map(req);
        break;
    case RPC_OP_STATFS:
        rpc_reply(req, 0, &(struct msg_statfs_rep){.avail_bytes = f->avail_bytes});
        break;
    default:
        fake_mds_handle(req);
    }
}

static void handle(struct rpc_req *req)
{
    struct fake_cluster *f = req->handler_arg;
    int armed = fake_spare();

    if (f->mds_hold)
        list_push_back(&f->mds_held, &req->link);
    else
        serve(req);
    fake_unspare(armed);
}

void fake_mds_release(struct fake_cluster *f)
{
    struct list *l;

    f->mds_hold = false;
    while ((l = list_pop_front(&f->mds_held)) != NULL)
        serve(list_entry(l, struct rpc_req, link));
}

static void link_down(struct rpc_link *l, void *arg)
{
    struct fake_cluster *f = arg;
    unsigned k;

    for (k = 0; k < FAKE_SESSIONS; k++)
        if (f->sessions[k].link == l)
            f->sessions[k].link = NULL;
}

bool fake_may_write(const struct fake_inode *i, const struct rpc_req *req, uint64_t open_id)
{
    for (unsigned k = 0; k < FAKE_HOLDERS; k++) {
        const struct fake_holder *h = &i->opens[k];

        if (h->session == req->header.session && h->open_id == open_id && h->writes)
            return true;
    }
    return false;
}

bool fake_holds_lease(const struct fake_inode *i, uint64_t session, uint64_t seq)
{
    for (unsigned k = 0; k < FAKE_HOLDERS; k++)
        if (i->leases[k].session == session && i->leases[k].seq == seq)
            return true;
    return false;
}

bool fake_holds_write(const struct fake_inode *i, uint64_t session)
{
    for (unsigned k = 0; k < FAKE_HOLDERS; k++)
        if (i->leases[k].session == session && i->leases[k].lease == MSG_LEASE_WRITE)
            return true;
    return false;
}

void fake_mds_forget_sessions(struct fake_cluster *f)
{
    unsigned k, n;
    struct list *l;

    for (k = 0; k < FAKE_SESSIONS; k++)
        f->sessions[k].id = 0;
    for (k = 0; k < FAKE_INODES; k++) {
        for (n = 0; n < FAKE_HOLDERS; n++) {
            f->inodes[k].opens[n].session = 0;
            f->inodes[k].leases[n].session = 0;
            f->inodes[k].leases[n].lease = MSG_LEASE_NONE;
        }
    }
    while ((l = list_pop_front(&f->waiting)) != NULL)
        rpc_reply(list_entry(l, struct rpc_req, link), -AIFS_ESESSION, NULL);
}

void fake_mds_break_links(struct fake_cluster *f)
{
    unsigned k;

    for (k = 0; k < FAKE_SESSIONS; k++)
        if (f->sessions[k].link)
            rpc_link_close(f->sessions[k].link, -AIFS_ECONN);
}

/* ---- life ---- */

static void make_map(struct fake_cluster *f)
{
    struct cluster_map empty = {.epoch = 1};
    struct map_node node = {.id = 1, .type = MAP_NODE_MDS, .alias = "mds1", .n_addresses = 1};
    uint32_t pool;
    unsigned k;

    f->map = map_copy(&empty);
    ck_assert_int_eq(uuid_random(&node.uuid), 0);
    snprintf(node.addresses[0], sizeof node.addresses[0], "loop:%s", f->name);
    ck_assert_int_eq(map_add_node(f->map, &node), 0);
    ck_assert_int_eq(map_add_pool(f->map, "default", &pool), 0);
    for (k = 0; k < f->n_oss; k++) {
        struct map_target t = {
            .id = k + 1, .node = k + 2, .pool = pool, .state = MAP_TARGET_ONLINE};

        node.id = k + 2;
        node.type = MAP_NODE_OSS;
        snprintf(node.alias, sizeof node.alias, "oss%u", k + 1);
        snprintf(node.addresses[0], sizeof node.addresses[0], "loop:%s-oss%u", f->name, k);
        ck_assert_int_eq(uuid_random(&node.uuid), 0);
        ck_assert_int_eq(map_add_node(f->map, &node), 0);
        ck_assert_int_eq(uuid_random(&t.uuid), 0);
        ck_assert_int_eq(map_add_target(f->map, &t), 0);
    }
    ck_assert_int_eq(map_grow_tables(f->map, pool), 0);
}

void fake_move_layout(struct fake_cluster *f, struct fake_inode *i)
{
    i->layout.start = (i->layout.start + 1) % i->layout.table_len;
    i->layout.generation++;
    i->attr.change = ++f->change;
}

void fake_set_layout(struct fake_cluster *f, struct rpc_req *req)
{
    const struct msg_xattr_req *m = req->msg;

    if (m->name.len != 11 || memcmp(m->name.data, "aifs.layout", 11) != 0) {
        rpc_reply(req, -EOPNOTSUPP, NULL);
        return;
    }
    fake_move_layout(f, fake_by_ino(f, m->ino));
    rpc_reply(req, 0, &(struct msg_empty){0});
}

uint64_t fake_mds_features = RPC_FEATURE_BY_NAME;
static struct buf_pool *mds_pool;

void fake_mds_start(struct fake_cluster *f)
{
    static const unsigned ops[] = {
        RPC_OP_LOOKUP,        RPC_OP_GETATTR,       RPC_OP_SETATTR,      RPC_OP_CREATE,
        RPC_OP_MKDIR,         RPC_OP_UNLINK,        RPC_OP_RMDIR,        RPC_OP_RENAME,
        RPC_OP_OPEN,          RPC_OP_CLOSE,         RPC_OP_FSYNC,        RPC_OP_WRITE_INLINE,
        RPC_OP_GROW,          RPC_OP_SIZE,          RPC_OP_STATFS,       RPC_OP_APPEND_RANGE,
        RPC_OP_LEASE_GET,     RPC_OP_LEASE_RELEASE, RPC_OP_SESSION_OPEN, RPC_OP_SESSION_RENEW,
        RPC_OP_SESSION_CLOSE, RPC_OP_RECLAIM,       RPC_OP_MAP_GET,      RPC_OP_LOCK,
        RPC_OP_LOCK_CANCEL,   RPC_OP_READDIR,       RPC_OP_BATCH,        RPC_OP_MKNOD,
        RPC_OP_LOCK_TEST,     RPC_OP_XATTR_SET};
    struct rpc_node_options n = {.key = f->key, .without = ~fake_mds_features};
    struct net_addr a;
    char text[80], err[128];
    unsigned k;

    net_options_default(&n.net);
    n.self.role = CRYPTO_ROLE_SERVER;
    memcpy(n.self.name, "mds1", 5);
    ck_assert_int_eq(buf_pool_create("fake-mds", MSG_BULK_MAX, 8, &mds_pool), 0);
    n.bulk_pool = mds_pool;
    ck_assert_int_eq(uuid_random(&n.self.node), 0);
    ck_assert_int_eq(uuid_random(&n.self.boot), 0);
    ck_assert_int_eq(rpc_node_create(f->reactor, &n, &f->mds), 0);
    for (k = 0; k < ARRAY_LEN(ops); k++)
        rpc_node_handle(f->mds, ops[k], handle, f);
    rpc_node_on_link(f->mds, NULL, link_down, f);
    ck_assert_int_eq(net_addr_resolve(fake_mds_address(f, text), 1, &a, err, sizeof err), 0);
    ck_assert_int_eq(rpc_node_listen(f->mds, &a, NULL), 0);
}

static bool is_room(const struct fake_cluster *f, const struct fake_inode *i)
{
    if (!i->used)
        return true;
    for (unsigned k = 0; k < FAKE_HOLDERS; k++)
        if (i->opens[k].session)
            return false;
    return f->forgets && i->data_len && number_is_given(i->attr.ino);
}

struct fake_inode *fake_make(struct fake_cluster *f, uint64_t parent, const struct msg_bytes *name,
                             uint32_t mode)
{
    struct fake_inode *i;
    unsigned k = 1;

    while (k < FAKE_INODES && !is_room(f, &f->inodes[k]))
        k++;
    ck_assert_uint_lt(k, FAKE_INODES);
    i = &f->inodes[k];
    memset(i, 0, sizeof *i);
    i->used = true;
    i->parent = parent;
    memcpy(i->name, name->data, name->len);
    i->attr = (struct msg_attr){.ino = k, .mode = mode, .nlink = 1, .change = ++f->change};
    i->attr.flags = S_ISREG(mode) ? MSG_ATTR_INLINE : 0;
    i->layout = (struct msg_layout){.pool = 1,
                                    .copies = 1,
                                    .table_len = f->n_oss,
                                    .chunk_bytes = FAKE_CHUNK,
                                    .stripe_count = f->n_oss,
                                    .start = k % f->n_oss,
                                    .generation = 1};
    return i;
}

const char *fake_mds_address(struct fake_cluster *f, char out[80])
{
    snprintf(out, 80, "loop:%s", f->name);
    return out;
}

void fake_cluster_start(struct fake_cluster *f, struct reactor *r, struct clock_virtual *clock,
                        unsigned n_oss)
{
    unsigned k;

    memset(f, 0, sizeof *f);
    f->reactor = r;
    f->clock = clock;
    f->n_oss = n_oss;
    list_init(&f->waiting);
    list_init(&f->mds_held);
    list_init(&f->removals_held);
    snprintf(f->name, sizeof f->name, "fake%d", (int)getpid());
    ck_assert_int_eq(crypto_key_create(&f->key), 0);
    fake_make(f, 0, &(struct msg_bytes){"", 0}, S_IFDIR | 0755);
    make_map(f);
    fake_mds_start(f);
    for (k = 0; k < n_oss; k++)
        fake_oss_start(f, k);
}

static void node_down(void *arg)
{
    *(bool *)arg = true;
}

static void step(struct fake_cluster *f)
{
    if (!reactor_run_once(f->reactor, 0))
        clock_virtual_advance(f->clock, NS_PER_MS);
}

void fake_run_until(struct fake_cluster *f, const bool *flag)
{
    uint64_t end = f->clock->now_ns + 600 * NS_PER_S;

    while (!*flag) {
        ck_assert_msg(f->clock->now_ns < end, "not done after ten minutes of the test's clock");
        step(f);
    }
}

void fake_run_for(struct fake_cluster *f, uint64_t ns)
{
    uint64_t end = f->clock->now_ns + ns;

    while (f->clock->now_ns < end)
        step(f);
}

static void node_end(struct fake_cluster *f, struct rpc_node *n)
{
    bool down = false;

    rpc_node_shutdown(n, node_down, &down);
    fake_run_until(f, &down);
    rpc_node_destroy(n);
}

void fake_mds_restart(struct fake_cluster *f)
{
    struct list *l;

    fake_mds_break_links(f);
    while ((l = list_pop_front(&f->removals_held)) != NULL) /* to nobody */
        rpc_reply(list_entry(l, struct rpc_req, link), -AIFS_EDOWN, NULL);
    node_end(f, f->mds);
    buf_pool_destroy(mds_pool);
    fake_mds_start(f);
}

void fake_cluster_stop(struct fake_cluster *f)
{
    struct hmap_node *h, *next;
    size_t pos;
    unsigned k;

    fake_mds_release(f);
    fake_release_removals(f);
    for (k = 0; k < f->n_oss; k++) {
        fake_oss_release(&f->oss[k]);
        node_end(f, f->oss[k].node);
        buf_pool_destroy(f->oss[k].pool);
        hmap_for_each (h, next, pos, &f->oss[k].chunks) {
            struct fake_chunk *c = container_of(h, struct fake_chunk, node);

            hmap_remove(&f->oss[k].chunks, h);
            mem_free(c->now);
            mem_free(c->durable);
            mem_free(c);
        }
        hmap_fini(&f->oss[k].chunks);
    }
    node_end(f, f->mds);
    buf_pool_destroy(mds_pool);
    map_put(f->map);
}

struct fake_session *fake_session_of(struct fake_cluster *f, const struct rpc_req *req)
{
    unsigned k;

    for (k = 0; k < FAKE_SESSIONS; k++)
        if (f->sessions[k].id && f->sessions[k].id == req->header.session)
            return &f->sessions[k];
    return NULL;
}
