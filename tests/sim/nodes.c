/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes: how each kind starts, and how it dies. A crash is a stop of the real code while its
 * disk refuses every commit and its network loses everything: nothing of the stop can be seen from
 * outside, and no memory is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "client/core/core.h"
#include "common/base/err.h"
#include "mds/cluster/cluster.h"
#include "mds/gc/gc.h"
#include "mds/locks/locks.h"
#include "mds/mds.h"
#include "mds/ops/exec.h"
#include "mds/session/session.h"
#include "oss/options.h"
#include "oss/oss.h"
#include "tests/sim/sim.h"

#define MDS_DIR "mds/shard0"

static struct crypto_key server_key, client_key;
static const struct mds_module *const modules[] = {&mds_cluster_module, &mds_session_module,
                                                   &mds_locks_module, &mds_gc_module,
                                                   &mds_dispatch_module};

static void ok(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "sim: %s: %s\n", what, err_text(rc));
    SIM_CHECK(rc == 0);
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void net_fast(struct net_options *o)
{
    net_options_default(o);
    o->ping_interval_ns = NS_PER_S;
    o->ping_timeout_ns = 2 * NS_PER_S;
    o->connect_timeout_ns = NS_PER_S;
}

void sim_rpc_create(struct sim_node *n, const struct uuid *id, const struct uuid *boot,
                    struct rpc_node **ret)
{
    struct rpc_node_options o = {.key = server_key, .bulk_pool = sim.pool};

    net_fast(&o.net);
    o.self.node = *id;
    o.self.boot = *boot;
    o.self.role = CRYPTO_ROLE_SERVER;
    memcpy(o.self.name, n->name, sizeof n->name);
    ok(rpc_node_create(n->reactor, &o, ret), "rpc_node_create");
}

static void listen_at(struct rpc_node *rpc, const char *text)
{
    struct net_addr addr;
    char err[128];
    uint16_t port;

    ok(net_addr_resolve(text, 0, &addr, err, sizeof err), "resolve");
    ok(rpc_node_listen(rpc, &addr, &port), "listen");
}

/* ---- the metadata server ---- */

static void count(void *arg)
{
    ++*(unsigned *)arg;
}

static bool all_stopped(void *arg)
{
    return *(unsigned *)arg == ARRAY_LEN(modules);
}

static void mds_format(struct mds *m)
{
    struct shard_format f = {.fs_name = "sim", .root_mode = 0777};
    struct shard_entry e;

    shard_entry_init(&e, SHARD_OP_FORMAT, &f, NULL, NULL);
    ok(shard_run(m->shards[0], &e), "format");
    shard_entry_fini(&e);
}

static void mds_start(struct sim_node *n)
{
    struct shard_options o = {.dir = MDS_DIR,
                              .store.create = n->starts == 1,
                              .exec = mds_exec_table,
                              .clock = &sim.clock.clock,
                              .on_reactor = true};
    struct mds *m = calloc(1, sizeof *m);

    SIM_CHECK(m);
    n->mds = m;
    m->conf = (struct mds_config){.dir = MDS_DIR,
                                  .name = "mds",
                                  .listen = "loop:mds",
                                  .advertise = "loop:mds",
                                  .fs_name = "sim",
                                  .inline_max = SIM_INLINE,
                                  .lease_ns = SIM_LEASE,
                                  .slots = 16};
    m->reactor = n->reactor;
    m->node_id.b[0] = 1;
    ok(uuid_random(&m->boot), "boot");
    ok(shard_open(&o, &m->shards[0]), "shard_open");
    m->n_shards = 1;
    if (n->starts == 1)
        mds_format(m);
    ok(worker_pool_create("sim", 0, &m->workers), "workers");
    sim_rpc_create(n, &m->node_id, &m->boot, &m->node);
    for (unsigned i = 0; i < ARRAY_LEN(modules); i++)
        ok(modules[i]->start(m), modules[i]->name);
    listen_at(m->node, "loop:mds");
}

static void mds_crash(struct sim_node *n)
{
    struct mds *m = n->mds;
    unsigned stopped = 0;
    bool done = false;

    sim_store_fail(MDS_DIR);
    for (unsigned i = ARRAY_LEN(modules); i-- > 0;) /* all at once: nobody waits for clients */
        modules[i]->stop(m, count, &stopped);
    SIM_CHECK(sim_run_alone(n, all_stopped, &stopped));
    rpc_node_shutdown(m->node, set_true, &done);
    SIM_CHECK(sim_run_alone(n, is_true, &done));
    shard_close(m->shards[0]);
    worker_pool_destroy(m->workers);
    while (reactor_run_once(n->reactor, 0))
        ;
    for (unsigned i = ARRAY_LEN(modules); i-- > 0;)
        modules[i]->free(m);
    rpc_node_destroy(m->node);
    free(m);
    n->mds = NULL;
}

static bool is_stored(enum key_type what, uint64_t ino)
{
    struct store_value value = {0};
    struct key k;

    key_number(&k, what, ino);
    return store_get(shard_store(sim_mds()->mds->shards[0]), NULL, k.b, k.len, &value) >= 0;
}

bool sim_is_there(uint64_t ino)
{
    return sim_mds()->mds && is_stored(KEY_INODE, ino);
}

bool sim_is_sealing(uint64_t ino)
{
    if (!sim_mds()->mds)
        return true;
    if (is_stored(KEY_PUNCH, ino))
        sim_hit(SIM_PUNCH_PENDING);
    return is_stored(KEY_RECOVER, ino);
}

/* ---- storage servers ---- */

static void set(struct conf *c, const char *name, const char *value)
{
    char err[256];

    ok(conf_set(c, name, value, "sim", err, sizeof err), name);
}

static void oss_start(struct sim_node *n)
{
    static const struct conf_option *const tables[] = {oss_options, conf_common_options, NULL};
    struct oss *o = calloc(1, sizeof *o);
    char text[64], err[256];

    SIM_CHECK(o);
    n->oss = o;
    ok(conf_create(tables, &o->conf), "conf");
    snprintf(text, sizeof text, "loop:%s", n->name);
    set(o->conf, "oss.listen", text);
    set(o->conf, "oss.advertise", text);
    set(o->conf, "oss.mds", "loop:mds");
    snprintf(text, sizeof text, "/%s", n->name);
    set(o->conf, "oss.targets", text);
    o->reactor = n->reactor;
    o->key = server_key;
    o->in = o->out = sim.pool;
    o->run_dir = "";
    o->fan_width = 1; /* requests here have few pieces: it must take several turns all the same */
    memcpy(o->name, n->name, sizeof n->name);
    ok(uuid_random(&o->boot), "boot");
    ok(oss_sessions_init(o), "sessions");
    ok(oss_targets_open(o, err, sizeof err), "targets");
    sim_rpc_create(n, &o->node, &o->boot, &o->rpc);
    ok(oss_dispatch_start(o), "dispatch");
    snprintf(text, sizeof text, "loop:%s", n->name);
    listen_at(o->rpc, text);
    ok(oss_cluster_start(o), "cluster");
}

static void oss_crash(struct sim_node *n)
{
    struct oss *o = n->oss;
    bool done = false;

    o->stopping = true;
    o->ready = false;
    oss_cluster_stop(o);
    for (uint32_t i = 0; i < o->n_targets; i++)
        sim_chunks_crash(o->targets[i].store);
    rpc_node_shutdown(o->rpc, set_true, &done);
    SIM_CHECK(sim_run_alone(n, is_true, &done));
    done = false;
    for (uint32_t i = 0; i < o->n_targets; i++)
        sim_chunks_crash(o->targets[i].store);
    oss_targets_close(o, set_true, &done);
    SIM_CHECK(sim_run_alone(n, is_true, &done));
    oss_cluster_free(o);
    rpc_node_destroy(o->rpc);
    oss_dispatch_stop(o);
    oss_sessions_fini(o);
    while (reactor_run_once(n->reactor, 0))
        ;
    conf_destroy(o->conf);
    free(o);
    n->oss = NULL;
}

/* ---- clients ---- */

static struct core_req mount_reqs[SIM_CLIENTS], unmount_req;

static void mounted(struct core_req *q, int status)
{
    struct sim_node *n = q->arg;

    if (status == 0)
        sim_work_client_up(n);
    else if (!n->dead)
        n->failed = true; /* its first message came twice: it has lost its session already */
}

static void client_start(struct sim_node *n)
{
    struct core_req *q = &mount_reqs[n->index];
    struct core_options o;

    core_options_default(&o);
    net_fast(&o.net);
    o.mds[0] = "loop:mds";
    o.n_mds = 1;
    o.key = client_key;
    o.host = n->name;
    o.mount = "sim";
    o.memory_limit = 32 * MIB;
    o.hung_log_ns = 3600 * NS_PER_S;
    o.create_ahead = sim_chance(900);
    o.straight_bytes = sim_commits_at_once() ? SIM_CELL_BYTES : 0;
    ok(core_create(n->reactor, &o, &n->core), "core_create");
    memset(q, 0, sizeof *q);
    q->done = mounted;
    q->arg = n;
    core_mount(n->core, q);
}

static void unmounted(struct core_req *q, int status)
{
    (void)status;
    *(bool *)q->arg = true;
}

/* A client whose mount has failed says good-bye first, and is not heard any more. */
static void give_up_goodbye(struct sim_node *n)
{
    uint64_t due = reactor_due_ns(n->reactor);

    SIM_CHECK(due > sim_now() && due - sim_now() <= 2 * NS_PER_S);
    clock_virtual_advance(&sim.clock, due - sim_now());
}

static void client_crash(struct sim_node *n)
{
    bool done = false;

    memset(&unmount_req, 0, sizeof unmount_req);
    unmount_req.done = unmounted;
    unmount_req.arg = &done;
    core_unmount(n->core, &unmount_req, true);
    while (!sim_run_alone(n, is_true, &done))
        give_up_goodbye(n);
    sim_work_client_down(n);
    core_destroy(n->core);
    while (reactor_run_once(n->reactor, 0))
        ;
    n->core = NULL;
}

/* ---- all kinds ---- */

void sim_node_start(struct sim_node *n)
{
    n->starts++;
    n->restart_ns = 0;
    n->failed = false;
    n->up = true;
    sim_say("%s starts", n->name);
    if (n->kind == NODE_MDS)
        mds_start(n);
    else if (n->kind == NODE_OSS)
        oss_start(n);
    else
        client_start(n);
}

void sim_node_crash(struct sim_node *n, bool silent)
{
    sim_say("%s dies%s", n->name, silent ? " silently" : "");
    n->dead = true;
    n->silent = silent;
    n->resume_ns = 0;
    if (n->kind == NODE_MDS)
        mds_crash(n);
    else if (n->kind == NODE_OSS)
        oss_crash(n);
    else
        client_crash(n);
    n->up = n->dead = false;
}

static bool registered(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < SIM_OSS; i++)
        if (!sim_oss(i)->oss->ready)
            return false;
    return true;
}

void sim_nodes_create(void)
{
    static const char *const names[] = {"mds", "oss1", "oss2", "client1", "client2", "client3"};

    memset(sim.node, 0, sizeof sim.node);
    ok(crypto_key_create(&server_key), "key");
    ok(crypto_key_derive(&server_key, CRYPTO_ROLE_CLIENT, &client_key), "key");
    for (unsigned i = 0; i < SIM_NODES; i++) {
        struct sim_node *n = &sim.node[i];
        struct reactor_options o = {.name = "sim", .clock = &sim.clock.clock};

        n->kind = i == 0 ? NODE_MDS : i <= SIM_OSS ? NODE_OSS : NODE_CLIENT;
        n->index = i == 0 ? 0 : i <= SIM_OSS ? i - 1 : i - 1 - SIM_OSS;
        snprintf(n->name, sizeof n->name, "%s", names[i]);
        ok(reactor_create(&o, &n->reactor), "reactor");
    }
    for (unsigned i = 0; i <= SIM_OSS; i++)
        sim_node_start(&sim.node[i]);
    SIM_CHECK(sim_run_until(registered, NULL, 20 * NS_PER_S));
    for (unsigned i = 0; i < SIM_CLIENTS; i++)
        sim_node_start(sim_client(i));
}

void sim_nodes_destroy(void)
{
    for (unsigned i = SIM_NODES; i-- > 0;)
        if (sim.node[i].up)
            sim_node_crash(&sim.node[i], false);
    for (bool any = true; any;) { /* parcels to those who are gone */
        any = false;
        for (unsigned i = 0; i < SIM_NODES; i++)
            any |= reactor_run_once(sim.node[i].reactor, 0);
    }
    for (unsigned i = 0; i < SIM_NODES; i++)
        reactor_destroy(sim.node[i].reactor);
}
