// SPDX-License-Identifier: Apache-2.0
/*
 * STATUS and statfs. The lengths of the queues are counted in the store, on a worker, up to a
 * bound; everything else is in memory. Failure modes: out of memory. What would be too long for one
 * message goes without texts that are not needed to tell who is who.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"
#include "mds/session/session.h"

#define COUNT_MAX 1000000u

/* A message holds NET_HEAD_MAX. What an entry takes at most, without its texts: */
#define STATUS_MAX_BYTES  (900u << 10)
#define SESSION_MAX_BYTES 96u
#define TARGET_MAX_BYTES  96u
#define NODE_MAX_BYTES    32u

struct tree {
    uint64_t ino;
    struct mds_trash_tree rec;
};

struct status {
    struct worker_job job;
    struct cluster *c;
    struct rpc_req *req;
    struct msg_status_rep rep;
    int error;
    uint32_t n_trees;
    struct tree trees[MSG_TREES_MAX];
};

static int count_one(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    uint64_t *n = arg;

    (void)key;
    (void)key_len;
    (void)value;
    (void)len;
    return ++*n >= COUNT_MAX;
}

static int count(struct view *v, enum key_type type, uint64_t *ret_n)
{
    struct key k;

    *ret_n = 0;
    key_single(&k, type);
    return view_scan(v, &k, NULL, count_one, ret_n);
}

static int see_tree(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct status *s = arg;
    struct tree *t = &s->trees[s->n_trees];
    int rc = key_len == 9 ? rec_trash_tree_decode(value, len, &t->rec) : -AIFS_ECORRUPT;

    if (rc < 0)
        return rc;
    t->ino = key_number_of(key);
    return ++s->n_trees == MSG_TREES_MAX;
}

static int list_trees(struct status *s, struct view *v)
{
    struct key k;

    key_single(&k, KEY_TRASH_TREE);
    return view_scan(v, &k, NULL, see_tree, s);
}

static void status_run(struct worker_job *j)
{
    struct status *s = container_of(j, struct status, job);
    struct view v;

    view_pin(s->c->mds->shards[0], &v);
    s->rep.inodes = view_counter(&v, COUNTER_INODES);
    s->error = count(&v, KEY_DESTROY, &s->rep.destroy_queue);
    if (s->error == 0)
        s->error = count(&v, KEY_PUNCH, &s->rep.punch_queue);
    if (s->error == 0)
        s->error = count(&v, KEY_RECOVER, &s->rep.recovery_queue);
    if (s->error == 0)
        s->error = count(&v, KEY_ORPHAN, &s->rep.orphans);
    if (s->error == 0)
        s->error = count(&v, KEY_TRASH, &s->rep.trash_queue);
    if (s->error == 0)
        s->error = list_trees(s, &v);
    view_unpin(&v);
}

/* What was given up, or refused, counts nowhere. */
static bool target_counts(const struct cluster *c, const struct msg_target_stat *t)
{
    const struct map_target *known = t->id ? map_target(c->map, t->id) : NULL;

    return known && !known->given_up;
}

static int status_nodes(struct status *s)
{
    struct cluster *c = s->c;
    struct arena *a = &s->req->arena;
    struct msg_node_live *nodes = arena_alloc(a, (c->nodes.count + 1) * sizeof *nodes);
    uint64_t now_ns = cluster_now_ns(c);
    struct list *l;

    if (!nodes)
        return -ENOMEM;
    s->rep.nodes = nodes;
    list_for_each (l, &c->node_list) {
        const struct cluster_node *n = list_entry(l, struct cluster_node, all);
        struct msg_target_stat *stats = arena_alloc(a, (n->n_targets + 1u) * sizeof *stats);

        if (!stats)
            return -ENOMEM;
        uint32_t n_stats = 0;

        for (uint32_t i = 0; i < n->n_targets; i++) {
            if (!n->targets[i].stat.id || target_counts(c, &n->targets[i].stat))
                stats[n_stats++] = n->targets[i].stat;
        }
        nodes[s->rep.n_nodes++] =
            (struct msg_node_live){.id = n->id,
                                   .seen_ns_ago = now_ns - n->seen_ns,
                                   .n_targets = n_stats,
                                   .targets = stats,
                                   .disconnected = n->link && !rpc_link_alive(n->link)};
    }
    return 0;
}

static int status_trees(struct status *s)
{
    struct msg_trash_tree *trees = arena_alloc(&s->req->arena, sizeof *trees * MSG_TREES_MAX);
    int64_t now_ns = clock_wall_ns(reactor_clock(s->c->mds->reactor));

    if (!trees)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->n_trees; i++) {
        const struct mds_trash_tree *r = &s->trees[i].rec;

        trees[i] = (struct msg_trash_tree){
            .ino = s->trees[i].ino,
            .name = {r->name, r->name_len}, /* s lives until the reply is encoded */
            .started_ns_ago = now_ns > r->started_ns ? (uint64_t)(now_ns - r->started_ns) : 0,
            .directories = r->directories,
            .objects = r->objects,
            .removed = r->removed};
    }
    s->rep.trees = trees;
    s->rep.n_trees = s->n_trees;
    return 0;
}

static size_t status_bytes(const struct msg_status_rep *rep)
{
    size_t n = (size_t)rep->n_sessions * SESSION_MAX_BYTES;

    for (uint32_t i = 0; i < rep->n_sessions; i++) {
        const struct msg_session_info *s = &rep->sessions[i];

        n += s->host.len + s->mount.len + s->job.len + s->address.len;
    }
    for (uint32_t i = 0; i < rep->n_nodes; i++) {
        const struct msg_node_live *node = &rep->nodes[i];

        n += NODE_MAX_BYTES + (size_t)node->n_targets * TARGET_MAX_BYTES;
        for (uint32_t k = 0; k < node->n_targets; k++)
            n += node->targets[k].path.len + node->targets[k].pool.len;
    }
    for (uint32_t i = 0; i < rep->n_trees; i++)
        n += SESSION_MAX_BYTES + rep->trees[i].name.len;
    for (uint32_t i = 0; i < rep->n_refused; i++)
        n += TARGET_MAX_BYTES + rep->refused[i].alias.len + rep->refused[i].path.len;
    return n;
}

/* Where a session's client has its mount, and which job it is; what the map says of targets, too.
 */
static void status_shorten(struct msg_status_rep *rep)
{
    if (status_bytes(rep) <= STATUS_MAX_BYTES)
        return;
    for (uint32_t i = 0; i < rep->n_nodes; i++) {
        struct msg_target_stat *t = (struct msg_target_stat *)rep->nodes[i].targets;

        for (uint32_t k = 0; k < rep->nodes[i].n_targets; k++)
            t[k].path = t[k].pool = (struct msg_bytes){0};
    }
    if (status_bytes(rep) <= STATUS_MAX_BYTES)
        return;
    for (uint32_t i = 0; i < rep->n_sessions; i++) {
        struct msg_session_info *s = (struct msg_session_info *)&rep->sessions[i];

        s->mount = s->job = (struct msg_bytes){0};
    }
}

static void status_done(struct worker_job *j)
{
    struct status *s = container_of(j, struct status, job);
    struct cluster *c = s->c;
    struct mds *m = c->mds;
    struct shard_stats stats;
    int rc = s->error;

    shard_get_stats(m->shards[0], &stats);
    s->rep.fs = m->fs;
    s->rep.fs_name = (struct msg_bytes){m->conf.fs_name, (uint32_t)strlen(m->conf.fs_name)};
    s->rep.version = (struct msg_bytes){AIFS_VERSION, sizeof AIFS_VERSION - 1};
    s->rep.lease_ns = m->conf.lease_ns;
    s->rep.uptime_ns = cluster_now_ns(c) - m->started_ns;
    s->rep.map_epoch = c->map->epoch;
    s->rep.commits = stats.commits;
    s->rep.operations = stats.entries;
    if (rc == 0)
        rc = status_nodes(s);
    if (rc == 0)
        rc = status_trees(s);
    if (rc == 0)
        rc = cluster_refused_list(c, &s->req->arena, &s->rep);
    if (rc == 0 && m->session)
        rc = session_list(m, &s->req->arena, &s->rep.sessions, &s->rep.n_sessions);
    if (rc == 0)
        status_shorten(&s->rep);
    rpc_reply(s->req, rc, rc ? NULL : &s->rep);
    mem_free(s);
    cluster_end(c);
}

void cluster_serve_status(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct cluster *c = cluster_of(m);
    struct status *s = c->stopping ? NULL : mem_zalloc(sizeof *s);

    if (!s) {
        rpc_reply(req, c->stopping ? -AIFS_ECANCELLED : -ENOMEM, NULL);
        return;
    }
    s->c = c;
    s->req = req;
    s->job.run = status_run;
    s->job.done = status_done;
    cluster_begin(c);
    worker_pool_submit(m->workers, m->reactor, &s->job);
}

void cluster_statfs(struct mds *m, struct msg_statfs_rep *ret_rep)
{
    struct cluster *c = cluster_of(m);
    struct list *l;

    memset(ret_rep, 0, sizeof *ret_rep);
    list_for_each (l, &c->node_list) {
        const struct cluster_node *n = list_entry(l, struct cluster_node, all);

        for (uint32_t i = 0; i < n->n_targets; i++) {
            const struct msg_target_stat *t = &n->targets[i].stat;

            if (!target_counts(c, t))
                continue;
            ret_rep->total_bytes += t->total_bytes;
            ret_rep->avail_bytes += t->free_bytes;
            if (t->used_bytes < t->total_bytes) /* as with root's part of a disk: not for data */
                ret_rep->free_bytes += t->total_bytes - t->used_bytes;
        }
    }
}

bool cluster_space_short(struct mds *m)
{
    struct cluster *c = cluster_of(m);
    struct list *l;

    list_for_each (l, &c->node_list) {
        const struct cluster_node *n = list_entry(l, struct cluster_node, all);

        for (uint32_t i = 0; n->up && i < n->n_targets; i++) {
            const struct msg_target_stat *t = &n->targets[i].stat;

            if (target_counts(c, t) && t->free_bytes < MAX(t->total_bytes / 8, (uint64_t)GIB))
                return true;
        }
    }
    return false;
}
