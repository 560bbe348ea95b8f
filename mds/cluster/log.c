// SPDX-License-Identifier: Apache-2.0
/*
 * Changes of the map become durable.
 *
 * Happy path: everything that waits is applied, one after the other, to a copy of the map; the
 * result gets the next epoch and is one entry; after the commit it is in force, sessions are told,
 * and each change is answered. A change that fails or changes nothing does not touch the others.
 * The map that was replaced lives until the reactor's next turn, for those who have borrowed it.
 */
#include <stdio.h>
#include <string.h>

#include "mds/cluster/cluster_int.h"
#include "mds/session/session.h"
#include "proto/codec.h"

static void log_run(struct cluster *c);

static void retire_run(struct reactor_work *work)
{
    struct cluster *c = container_of(work, struct cluster, retire);

    c->retiring = false;
    map_put(c->retired);
    c->retired = NULL;
    cluster_end(c);
}

static void map_install(struct cluster *c, struct cluster_map *m)
{
    if (c->retired)
        map_put(c->retired); /* nobody has run since it was replaced but what we called */
    c->retired = c->map;
    c->map = m;
    stat_gauge_set(&c->stats.epoch, (int64_t)m->epoch);
    rpc_node_set_map_epoch(c->mds->node, m->epoch);
    if (!c->retiring) {
        c->retiring = true;
        c->retire.fn = retire_run;
        cluster_begin(c);
        reactor_defer(c->mds->reactor, &c->retire);
    }
}

static void answer_all(struct cluster *c, int status)
{
    struct list *l, answers;

    list_init(&answers);
    list_splice(&answers, &c->committing);
    while ((l = list_pop_front(&answers))) {
        struct map_change *change = list_entry(l, struct map_change, link);

        change->ops->done(change, change->status ? change->status : status);
        mem_free(change);
        cluster_end(c);
    }
}

static void log_committed(struct mds_submit *s)
{
    struct cluster *c = container_of(s, struct cluster, submit);
    int rc = s->entry.status;

    mds_submit_fini(s);
    arena_reset(&c->encoded);
    if (rc == 0) {
        stat_inc(&c->stats.changes);
        map_install(c, c->next);
        LOG_INFO("cluster", "map %llu: %u nodes, %u targets, %u pools",
                 (unsigned long long)c->map->epoch, c->map->n_nodes, c->map->n_targets,
                 c->map->n_pools);
    } else {
        LOG_ERROR("cluster", "map %llu was not stored: %s", (unsigned long long)c->next->epoch,
                  err_name(rc));
        map_put(c->next);
    }
    c->next = NULL;
    c->busy = false;
    answer_all(c, rc);
    if (rc == 0)
        session_push_map(c->mds, c->map->epoch);
    if (!c->busy && !list_empty(&c->waiting)) { /* what came meanwhile */
        cluster_begin(c);
        log_run(c);
    }
    cluster_end(c);
}

/* Applies one change to *m, which becomes another map if that went well. */
static bool apply_one(struct map_change *change, struct cluster_map **m)
{
    struct cluster_map *trial = map_copy(*m);
    int rc = trial ? change->ops->apply(change, trial) : -ENOMEM;

    if (rc == 0 && map_check(trial) < 0)
        rc = -EINVAL;
    change->status = rc == CHANGE_NONE ? 0 : rc;
    if (rc != 0 || change->dry_run) {
        map_put(trial);
        return false;
    }
    map_put(*m);
    *m = trial;
    return true;
}

static int log_encode(struct cluster *c, struct cluster_map *m)
{
    m->epoch = c->map->epoch + 1;
    return codec_map_encode(m, &c->encoded, &c->set.data, &c->set.len);
}

static void log_run(struct cluster *c)
{
    struct cluster_map *m;
    bool changed = false;
    struct list *l;
    int rc = 0;

    if (c->busy || list_empty(&c->waiting))
        return;
    c->busy = true;
    list_splice(&c->committing, &c->waiting);
    m = map_copy(c->map);
    list_for_each (l, &c->committing) {
        struct map_change *change = list_entry(l, struct map_change, link);

        if (m)
            changed |= apply_one(change, &m);
        else
            change->status = -ENOMEM;
    }
    if (changed)
        rc = log_encode(c, m);
    if (changed && rc == 0) {
        c->next = m;
        mds_submit(c->mds, &c->submit, c->mds->shards[0], SHARD_OP_MAP_SET, &c->set, SHARD_E_FREES,
                   log_committed);
        return;
    }
    map_put(m);
    arena_reset(&c->encoded);
    c->busy = false;
    answer_all(c, rc);
    cluster_end(c);
    if (!list_empty(&c->waiting)) {
        cluster_begin(c);
        log_run(c);
    }
}

struct map_change *cluster_change_new(struct cluster *c, const struct map_change_ops *ops)
{
    struct map_change *change = mem_zalloc(sizeof *change);

    if (!change)
        return NULL;
    change->ops = ops;
    change->c = c;
    return change;
}

void cluster_change(struct map_change *change)
{
    struct cluster *c = change->c;
    bool first = list_empty(&c->waiting) && !c->busy;

    cluster_begin(c); /* until it is answered */
    list_push_back(&c->waiting, &change->link);
    if (first) {
        cluster_begin(c);
        log_run(c);
    }
}

void cluster_change_asked(struct rpc_req *req, int rc, bool dry_run,
                          const struct map_change_ops *ops)
{
    struct cluster *c = cluster_of(req->handler_arg);
    struct map_change *change = NULL;

    if (rc == 0 && c->stopping)
        rc = -AIFS_ECANCELLED;
    if (rc == 0 && !(change = cluster_change_new(c, ops)))
        rc = -ENOMEM;
    if (rc < 0) {
        rpc_reply(req, rc, NULL);
        return;
    }
    change->req = req;
    change->dry_run = dry_run;
    cluster_change(change);
}

/* ---- start ---- */

static int log_fetch(struct cluster *c, struct cluster_map **ret_map)
{
    struct store_value value = {0};
    struct cluster_map *m;
    struct arena a;
    struct key k;
    int rc;

    key_single(&k, KEY_MAP);
    rc = store_get(shard_store(c->mds->shards[0]), NULL, k.b, k.len, &value);
    if (rc == -ENOENT) {
        *ret_map = NULL;
        return 0;
    }
    if (rc < 0)
        return rc;
    arena_init(&a, 0);
    rc = codec_map_decode(value.data, (uint32_t)value.len, &a, &m);
    if (rc == 0) {
        *ret_map = map_copy(m);
        rc = *ret_map ? 0 : -ENOMEM;
    } else {
        LOG_ERROR("cluster", "the stored map is damaged: %s", err_name(rc));
    }
    arena_reset(&a);
    store_value_release(&value);
    return rc;
}

static int log_store(struct cluster *c)
{
    struct shard_entry e;
    int rc = log_encode(c, c->map);

    if (rc < 0)
        return rc;
    shard_entry_init(&e, SHARD_OP_MAP_SET, &c->set, NULL, NULL);
    e.flags = SHARD_E_FREES;
    rc = shard_run(c->mds->shards[0], &e);
    shard_entry_fini(&e);
    arena_reset(&c->encoded);
    return rc;
}

int cluster_log_load(struct cluster *c)
{
    struct change_self self = {.uuid = c->mds->node_id,
                               .alias = c->mds->conf.name,
                               .address = c->mds->conf.advertise ? c->mds->conf.advertise
                                                                 : c->mds->conf.listen};
    struct cluster_map *m = NULL, empty = {.fs = c->mds->fs};
    int rc = log_fetch(c, &m);

    if (rc < 0)
        return rc;
    snprintf(empty.fs_name, sizeof empty.fs_name, "%s", c->mds->conf.fs_name);
    if (!m)
        m = map_copy(&empty);
    rc = m ? change_self(m, &self) : -ENOMEM;
    c->map = m;
    if (rc == 0)
        rc = log_store(c);
    if (rc < 0)
        cluster_log_fini(c);
    if (rc < 0)
        return rc;
    stat_gauge_set(&c->stats.epoch, (int64_t)c->map->epoch);
    rpc_node_set_map_epoch(c->mds->node, c->map->epoch);
    return rc == CHANGE_NONE ? 0 : rc;
}

void cluster_log_fini(struct cluster *c)
{
    if (c->map)
        map_put(c->map);
    c->map = NULL;
    arena_reset(&c->encoded);
}
