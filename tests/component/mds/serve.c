/* SPDX-License-Identifier: Apache-2.0 */
/* A server and a client on one reactor: see serve.h. */
#include "tests/component/mds/serve.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "mds/dispatch.h"

static struct serve *self; /* the modules' own state has no place in a stand-in */

/* ---- stand-ins ---- */

static int fake_check(struct mds *m, struct rpc_req *req)
{
    (void)m;
    return req->header.session == SERVE_SESSION ? 0 : -AIFS_ESESSION;
}

static void fake_prepare(struct mds *m, struct mds_prepare *p)
{
    struct serve *s = self;
    void (*hook)(struct serve * s, struct mds_prepare * p) = s->on_prepare;

    (void)m;
    s->prepares++;
    for (unsigned i = 0; i < p->n_touch; i++) {
        struct mds_touch *t = &p->touch[i];

        for (unsigned j = 0; t->ino && j < SERVE_OPENS; j++)
            t->is_open |= s->open_ino[j] == t->ino;
        if (t->access == MDS_ACCESS_OPEN) {
            t->open_id = ++s->next_open;
            t->lease = s->grant;
            t->lease_seq = 1000 + t->open_id;
        } else if ((t->access == MDS_ACCESS_WRITE || t->access == MDS_ACCESS_REPORT) &&
                   (t->open_id >= SERVE_OPENS || s->open_ino[t->open_id] != t->ino)) {
            p->ready(p, -EBADF);
            return;
        }
    }
    s->on_prepare = NULL;
    if (hook)
        hook(s, p);
    p->ready(p, 0);
}

static void fake_finish(struct mds *m, struct mds_prepare *p, struct mds_outcome *o)
{
    struct serve *s = self;

    (void)m;
    (void)p;
    s->finishes++;
    if (o->open_id && o->status == 0)
        s->open_ino[o->open_id] = o->open_ino;
    if (s->lower_lease)
        o->lease = MSG_LEASE_NONE;
    s->lower_lease = false;
    s->outcome = *o;
}

static int fake_glimpse(struct mds *m, struct mds_glimpse *g)
{
    struct serve *s = self;

    (void)m;
    if (!s->writing)
        return 0;
    g->fresh = true;
    g->size = s->glimpse_size;
    g->mtime = (struct msg_time){.sec = INT32_MAX};
    g->done(g, 0);
    return 1;
}

static bool fake_watch(struct mds *m, uint64_t session, uint64_t ino, const struct msg_time *born,
                       bool own)
{
    (void)m;
    (void)session;
    (void)ino;
    (void)born;
    (void)own;
    return false;
}

static bool fake_has_open(struct mds *m, uint64_t session, uint64_t ino, uint64_t open_id)
{
    (void)m;
    (void)session;
    (void)ino;
    (void)open_id;
    return false;
}

static bool fake_told_of_cuts(struct mds *m, uint64_t session, uint64_t ino)
{
    (void)m;
    (void)session;
    (void)ino;
    return false;
}

static bool fake_is_writing(struct mds *m, uint64_t session, uint64_t ino)
{
    (void)m;
    (void)session;
    (void)ino;
    return self->writing;
}

static bool fake_alone_dir(struct mds *m, uint64_t session, uint64_t ino)
{
    (void)m;
    (void)session;
    (void)ino;
    return false;
}

static bool fake_alone_entry(struct mds *m, uint64_t session, uint64_t dir, uint64_t ino)
{
    (void)dir;
    return fake_alone_dir(m, session, ino);
}

static bool fake_park(struct mds *m, struct rpc_req *req, uint64_t ino,
                      void (*again)(struct rpc_req *req))
{
    (void)again;
    return fake_alone_dir(m, req->header.session, ino);
}

static struct cluster_map *fake_map(struct mds *m)
{
    (void)m;
    return self->map;
}

static void fake_statfs(struct mds *m, struct msg_statfs_rep *rep)
{
    (void)m;
    rep->total_bytes = 1 << 30;
}

static void fake_target_up(struct mds *m)
{
    (void)m;
    self->kicks++;
}

static void fake_kick(struct mds *m, enum key_type queue, uint64_t ino)
{
    (void)m;
    (void)queue;
    (void)ino;
    self->kicks++;
}

static void fake_punch_wait(struct mds *m, struct mds_punch_wait *w)
{
    (void)m;
    if (self->punch_now)
        w->done(w, 0);
    else
        self->waiting = w;
}

static const struct mds_session_ops session_ops = {.check = fake_check,
                                                   .prepare = fake_prepare,
                                                   .finish = fake_finish,
                                                   .glimpse = fake_glimpse,
                                                   .watch = fake_watch,
                                                   .told_of_cuts = fake_told_of_cuts,
                                                   .is_writing = fake_is_writing,
                                                   .alone_dir = fake_alone_dir,
                                                   .alone_entry = fake_alone_entry,
                                                   .alone_elsewhere = fake_alone_dir,
                                                   .park = fake_park,
                                                   .has_open = fake_has_open};
static const struct mds_cluster_ops cluster_ops = {fake_map, fake_statfs};
static const struct mds_gc_ops gc_ops = {fake_kick, fake_target_up, fake_punch_wait};

/* ---- the bed ---- */

static void make_map(struct serve *s)
{
    static const struct cluster_map none;
    uint32_t pool;

    s->map = map_copy(&none);
    ck_assert_ptr_nonnull(s->map);
    ck_ok(map_add_pool(s->map, "default", &pool));
    ck_ok(map_add_node(s->map, &(struct map_node){.id = 1, .type = MAP_NODE_OSS, .alias = "oss1"}));
    for (uint32_t i = 1; i <= 4; i++) {
        struct map_target t = {.id = i, .node = 1, .pool = pool, .state = MAP_TARGET_ONLINE};

        t.uuid.b[0] = (uint8_t)i;
        snprintf(t.alias, sizeof(t.alias), "t%u", i);
        ck_ok(map_add_target(s->map, &t));
    }
    ck_ok(map_grow_tables(s->map, pool));
}

static void make_node(struct serve *s, const struct crypto_key *key, const char *name,
                      struct buf_pool *pool, struct rpc_node **ret)
{
    struct rpc_node_options o = {.key = *key, .bulk_pool = pool};

    net_options_default(&o.net);
    o.net.want = NET_WANT_TCP;
    o.self.role = CRYPTO_ROLE_SERVER;
    snprintf(o.self.name, sizeof(o.self.name), "%s", name);
    ck_ok(uuid_random(&o.self.node));
    ck_ok(uuid_random(&o.self.boot));
    ck_ok(rpc_node_create(s->reactor, &o, ret));
}

void serve_open(struct serve *s)
{
    struct crypto_key key;
    struct net_addr addr;
    char text[64], err[128];
    const char *addresses[] = {text};
    uint16_t port;

    memset(s, 0, sizeof(*s));
    self = s;
    bed_open(&s->bed);
    bed_session(&s->bed, SERVE_SESSION);
    s->bed.slot = 2;
    ck_ok(crypto_key_create(&key));
    ck_ok(reactor_create(&(struct reactor_options){.name = "serve"}, &s->reactor));
    ck_ok(buf_pool_create("serve", MSG_BULK_MAX, 4, &s->pool));
    s->mds = calloc(1, sizeof(*s->mds));
    s->mds->reactor = s->reactor;
    s->mds->conf.inline_max = 16384;
    s->mds->conf.slots = 64;
    s->mds->shards[0] = s->bed.shard;
    s->mds->n_shards = 1;
    s->mds->session_ops = &session_ops;
    s->mds->cluster_ops = &cluster_ops;
    s->mds->gc_ops = &gc_ops;
    s->grant = MSG_LEASE_WRITE;
    make_map(s);
    make_node(s, &key, "mds", s->pool, &s->mds->node);
    make_node(s, &key, "client", NULL, &s->client);
    ck_ok(mds_dispatch_module.start(s->mds));
    ck_ok(net_addr_resolve("127.0.0.1:0", 0, &addr, err, sizeof(err)));
    ck_ok(rpc_node_listen(s->mds->node, &addr, &port));
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    ck_ok(rpc_peer_create(s->client, addresses, 1, NULL, NULL, &s->peer));
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void forget(struct serve *s)
{
    if (s->used)
        rpc_call_fini(&s->call);
    s->used = false;
}

void serve_close(struct serve *s)
{
    bool client = false, server = false, stopped = false;

    forget(s);
    mds_dispatch_module.stop(s->mds, set_true, &stopped);
    ck_assert(serve_wait(s, &stopped));
    rpc_peer_destroy(s->peer);
    rpc_node_shutdown(s->client, set_true, &client);
    ck_assert(serve_wait(s, &client));
    rpc_node_shutdown(s->mds->node, set_true, &server);
    ck_assert(serve_wait(s, &server));
    ck_assert_uint_eq(s->prepares, s->finishes);
    mds_dispatch_module.free(s->mds);
    rpc_node_destroy(s->client);
    rpc_node_destroy(s->mds->node);
    buf_pool_destroy(s->pool);
    bed_check_tree(&s->bed);
    bed_close(&s->bed);
    while (reactor_run_once(s->reactor, 0))
        ;
    reactor_destroy(s->reactor);
    map_put(s->map);
    free(s->mds);
}

bool serve_wait(struct serve *s, const bool *until)
{
    uint64_t end = clock_mono_ns(clock_real()) + 30 * NS_PER_S;

    while (!*until && clock_mono_ns(clock_real()) < end)
        reactor_run_once(s->reactor, 100 * NS_PER_MS);
    return *until;
}

static void call_done(struct rpc_call *c, int status)
{
    struct serve *s = c->arg;

    s->status = status;
    s->done = true;
}

static struct iovec in_iov;

static void start(struct serve *s, unsigned op, const void *req, const struct iovec *bulk)
{
    forget(s);
    rpc_call_init(&s->call, op, req, call_done, s);
    s->used = true;
    s->done = false;
    s->call.session = SERVE_SESSION;
    s->call.slot = 1;
    s->call.slot_sequence = s->sequence;
    s->call.timeout_ns = 60 * NS_PER_S;
    s->call.bulk_out = bulk;
    s->call.n_bulk_out = bulk ? 1 : 0;
    in_iov = (struct iovec){s->bulk, sizeof(s->bulk)};
    s->call.bulk_in = &in_iov;
    s->call.n_bulk_in = 1;
    rpc_peer_call(s->peer, &s->call);
}

void serve_start_call(struct serve *s, unsigned op, const void *req, const struct iovec *bulk)
{
    s->sequence++;
    start(s, op, req, bulk);
}

const void *serve_again(struct serve *s, unsigned op, const void *req, int *ret_status)
{
    start(s, op, req, NULL);
    ck_assert(serve_wait(s, &s->done));
    *ret_status = s->status;
    return s->call.rep;
}

const void *serve_call(struct serve *s, unsigned op, const void *req, int *ret_status)
{
    s->sequence++;
    return serve_again(s, op, req, ret_status);
}

const struct msg_inode_rep *serve_inode(struct serve *s, unsigned op, const void *req)
{
    const struct msg_inode_rep *rep;
    int status;

    rep = serve_call(s, op, req, &status);
    ck_ok(status);
    ck_assert_ptr_nonnull(rep);
    return rep;
}
