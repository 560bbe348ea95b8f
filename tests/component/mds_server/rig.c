// SPDX-License-Identifier: Apache-2.0
/* The server's side of the rig, time, and what is committed: see rig.h. */
#include "tests/component/mds_server/rig.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mds/cluster/cluster.h"
#include "mds/gc/gc.h"
#include "mds/locks/locks.h"
#include "mds/ops/exec.h"
#include "mds/session/session.h"
#include "tests/component/mds_server/rig_int.h"

static const struct mds_module *const modules[] = {&mds_cluster_module, &mds_session_module,
                                                   &mds_locks_module, &mds_gc_module,
                                                   &mds_dispatch_module};

/* ---- time ---- */

/* Writer and workers have threads of their own, and only the reactor gives them work: once they
 * have none, what they did is posted, and a turn without work after that is the end. */
static bool threads_idle(struct rig *r)
{
    return !r->mds || (shard_is_idle(r->mds->shards[0]) && worker_pool_is_idle(r->mds->workers));
}

bool rig_run(struct rig *r, bool (*until)(void *arg), void *arg)
{
    while (!until(arg)) {
        bool idle = threads_idle(r), did = reactor_run_once(r->reactor, 0);

        if (idle && !did)
            return until(arg);
        if (!did)
            sched_yield();
    }
    return true;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void rig_settle(struct rig *r)
{
    rig_run(r, never, NULL);
}

void rig_pass(struct rig *r, uint64_t ms)
{
    for (uint64_t t = 0; t < ms; t += 50) {
        clock_virtual_advance(&r->clock, 50 * NS_PER_MS);
        for (unsigned i = 0; i < RIG_OSS; i++)
            rig_oss_tick(&r->oss[i]);
        for (unsigned i = 0; i < RIG_CLIENTS; i++)
            rig_client_tick(&r->client[i]);
        rig_settle(r);
    }
}

bool rig_until(struct rig *r, uint64_t max_ms, bool (*until)(void *arg), void *arg)
{
    for (uint64_t t = 0; t < max_ms && !until(arg); t += 50) {
        rig_settle(r);
        if (!until(arg))
            rig_pass(r, 50);
    }
    rig_settle(r);
    return until(arg);
}

/* ---- the server ---- */

void rig_node(struct rig *r, const struct crypto_key *key, const char *name,
              const struct uuid *node, struct rpc_node **ret)
{
    struct rpc_node_options o = {.key = *key, .bulk_pool = r->pool, .self.node = *node};

    net_options_default(&o.net);
    o.self.role = key->role;
    snprintf(o.self.name, sizeof o.self.name, "%s", name);
    ck_ok(uuid_random(&o.self.boot));
    ck_ok(rpc_node_create(r->reactor, &o, ret));
}

void rig_listen(struct rpc_node *node, const char *text)
{
    struct net_addr addr;
    char err[128];
    uint16_t port;

    ck_ok(net_addr_resolve(text, 0, &addr, err, sizeof err));
    ck_ok(rpc_node_listen(node, &addr, &port));
}

void rig_mds_start(struct rig *r)
{
    struct mds *m = calloc(1, sizeof *m);

    r->mds = m;
    r->starts++;
    m->conf = (struct mds_config){.dir = r->dir,
                                  .name = "mds1",
                                  .listen = "loop:mds",
                                  .advertise = "loop:mds",
                                  .fs_name = "test",
                                  .inline_max = 4096,
                                  .lease_ns = RIG_LEASE,
                                  .slots = RIG_SLOTS};
    m->reactor = r->reactor;
    m->node_id.b[0] = 1;
    ck_ok(shard_open(&r->shard, &m->shards[0]));
    m->n_shards = 1;
    if (r->shard.store.create) {
        struct shard_format f = {.fs_name = "test", .root_mode = 0777};
        struct shard_entry e;

        shard_entry_init(&e, SHARD_OP_FORMAT, &f, NULL, NULL);
        ck_ok(shard_run(m->shards[0], &e));
        shard_entry_fini(&e);
        r->shard.store.create = false;
    }
    ck_ok(worker_pool_create("rig", 1, &m->workers));
    rig_node(r, &r->key, "mds1", &m->node_id, &m->node);
    for (unsigned i = 0; i < ARRAY_LEN(modules); i++)
        ck_ok(modules[i]->start(m));
    rig_listen(m->node, "loop:mds");
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

void rig_mds_stop(struct rig *r)
{
    struct mds *m = r->mds;
    bool done = false;

    for (unsigned i = ARRAY_LEN(modules); i-- > 0;) {
        done = false;
        modules[i]->stop(m, set_true, &done);
        ck_assert_msg(rig_run(r, is_true, &done), "%s does not stop", modules[i]->name);
    }
    done = false;
    rpc_node_shutdown(m->node, set_true, &done);
    ck_assert_msg(rig_run(r, is_true, &done), "the server's links do not close");
    shard_close(m->shards[0]);
    worker_pool_destroy(m->workers);
    while (reactor_run_once(r->reactor, 0))
        ;
    for (unsigned i = ARRAY_LEN(modules); i-- > 0;)
        modules[i]->free(m);
    rpc_node_destroy(m->node);
    free(m);
    r->mds = NULL;
}

/* ---- all of it ---- */

static void remove_flat(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[512];

    while (d && (e = readdir(d))) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void rig_remove(const char *root)
{
    char dir[160];

    snprintf(dir, sizeof dir, "%s/shard0", root);
    remove_flat(dir);
    remove_flat(root);
}

void rig_make_root(char *root, size_t size)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(root, size, "%s/aifs-mds-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

void rig_end(struct rig *r)
{
    char root[sizeof r->root];

    memcpy(root, r->root, sizeof root);
    rig_close(r);
    rig_remove(root);
}

void rig_open(struct rig *r, const char *root)
{
    struct reactor_options ro = {.name = "rig", .clock = &r->clock.clock};

    memset(r, 0, sizeof *r);
    if (root)
        snprintf(r->root, sizeof r->root, "%s", root);
    else
        rig_make_root(r->root, sizeof r->root);
    snprintf(r->dir, sizeof r->dir, "%s/shard0", r->root);
    r->shard = (struct shard_options){.dir = r->dir,
                                      .store.create = access(r->dir, F_OK) < 0,
                                      .exec = mds_exec_table,
                                      .sync = false,
                                      .clock = &r->clock.clock};
    clock_virtual_init(&r->clock, 1000 * NS_PER_S, 1700000000ll * (int64_t)NS_PER_S);
    ck_ok(reactor_create(&ro, &r->reactor));
    ck_ok(crypto_key_create(&r->key));
    ck_ok(crypto_key_derive(&r->key, CRYPTO_ROLE_CLIENT, &r->client_key));
    ck_ok(buf_pool_create("rig", MSG_BULK_MAX, 8, &r->pool));
    rig_mds_start(r);
    for (unsigned i = 0; i < RIG_OSS; i++)
        rig_oss_init(r, i);
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig_client_init(r, i);
}

void rig_begin(struct rig *r, uint32_t n_targets, unsigned n_clients)
{
    rig_open(r, NULL);
    rig_oss_start(r, 0, n_targets);
    for (unsigned i = 0; i < n_clients; i++)
        rig_client_open(r, i);
}

void rig_close_node(struct rig *r, struct rpc_node *node)
{
    bool done = false;

    rpc_node_shutdown(node, set_true, &done);
    ck_assert(rig_run(r, is_true, &done));
    rpc_node_destroy(node);
}

void rig_restart(struct rig *r)
{
    rig_mds_stop(r);
    rig_mds_start(r);
    rig_oss_start(r, 0, 2);
}

bool rig_grace_over(void *arg)
{
    return session_grace_over(((struct rig *)arg)->mds);
}

void rig_close(struct rig *r)
{
    rig_forget(&r->call);
    for (unsigned i = 0; i < RIG_CLIENTS; i++)
        rig_client_fini(&r->client[i]);
    for (unsigned i = 0; i < RIG_OSS; i++)
        rig_oss_release(r, i);
    if (r->mds)
        rig_mds_stop(r);
    for (unsigned i = 0; i < RIG_OSS; i++)
        rig_oss_fini(&r->oss[i]);
    while (reactor_run_once(r->reactor, 0))
        ;
    buf_pool_destroy(r->pool);
    reactor_destroy(r->reactor);
}

/* ---- what is committed ---- */

int rig_inode(struct rig *r, uint64_t ino, struct mds_inode *ret_inode)
{
    struct view v;
    int rc;

    view_begin(r->mds->shards[0], &v);
    rc = view_inode(&v, ino, ret_inode);
    view_end(&v);
    return rc;
}

bool rig_has(struct rig *r, enum key_type type, uint64_t n)
{
    struct store_value value = {0};
    struct key k;
    int rc;

    key_number(&k, type, n);
    rc = store_get(shard_store(r->mds->shards[0]), NULL, k.b, k.len, &value);
    store_value_release(&value);
    return rc == 0;
}

int rig_main(const char *name, void (*add)(TCase *t))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(t, 60);
    add(t);
    suite_add_tcase(s, t);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

unsigned rig_lines_with(const char *path, const char *text)
{
    char line[512];
    unsigned n = 0;
    FILE *f = fopen(path, "re");

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}
