// SPDX-License-Identifier: Apache-2.0
/*
 * Targets that are not where they lived: an empty directory that a server offers in the place of a
 * known target is refused (change.h), which STATUS tells until the target is there again, its
 * server offers something else, or an operator has given it up with TARGET_REPLACE. Then its server
 * is asked to register again and the new one is taken. What was given up and comes back is refused
 * and told in the same way. A server all of whose targets were given up can be removed, too.
 *
 * Failure modes: out of memory: it is refused all the same, only STATUS does not tell. After a
 * start nothing is known until the servers have registered.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "mds/cluster/cluster_int.h"

static struct cluster_refused *refused_find(struct cluster *c, uint32_t instead_of)
{
    struct list *l;

    list_for_each (l, &c->refused) {
        struct cluster_refused *r = list_entry(l, struct cluster_refused, link);

        if (r->instead_of == instead_of)
            return r;
    }
    return NULL;
}

static bool is_offered(struct cluster *c, const struct msg_register_req *req, uint32_t instead_of)
{
    for (uint32_t i = 0; i < req->n_targets; i++) {
        if (change_instead_of(c->map, req, i) == instead_of)
            return true;
    }
    return false;
}

static bool text_is(const char *text, struct msg_bytes b)
{
    return strlen(text) == b.len && (!b.len || !memcmp(text, b.data, b.len));
}

static void refused_forget(struct cluster_refused *r)
{
    list_remove(&r->link);
    mem_free(r);
}

/* The same server by its name: with another disk it may have another uuid. */
static bool is_in_its_place(const struct cluster_refused *r, const struct msg_register_req *req)
{
    bool found = false;

    for (uint32_t i = 0; i < req->n_targets; i++)
        found = found || text_is(r->path, req->targets[i].path);
    return found && text_is(r->alias, req->alias);
}

/* What is there again, what this server had offered and does not any more, and what something else
 * is in the place of. */
static void refused_clean(struct cluster *c, const struct msg_register_req *req)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &c->refused) {
        struct cluster_refused *r = list_entry(l, struct cluster_refused, link);
        const struct map_target *t = map_target(c->map, r->instead_of);
        bool over = !t || t->state == MAP_TARGET_ONLINE || uuid_equal(&r->node, &req->node) ||
                    is_in_its_place(r, req);

        if (over && !is_offered(c, req, r->instead_of)) /* online: not yet missed, perhaps */
            refused_forget(r);
    }
}

static void refused_text(char *to, size_t size, struct msg_bytes from)
{
    uint32_t n = MIN(from.len, (uint32_t)size - 1u);

    if (n)
        memcpy(to, from.data, n);
}

void cluster_refused_note(struct cluster *c, const struct msg_register_req *req)
{
    refused_clean(c, req);
    for (uint32_t i = 0; i < req->n_targets; i++) {
        uint32_t instead_of = change_instead_of(c->map, req, i);
        struct cluster_refused *r = instead_of ? refused_find(c, instead_of) : NULL;

        if (r)
            r->seen_ns = cluster_now_ns(c);
        if (!instead_of || r || !(r = mem_zalloc(sizeof *r)))
            continue; /* a server without anything else asks once a second: said once */
        r->instead_of = instead_of;
        r->seen_ns = cluster_now_ns(c);
        r->node = req->node;
        refused_text(r->alias, sizeof r->alias, req->alias);
        refused_text(r->path, sizeof r->path, req->targets[i].path);
        list_push_back(&c->refused, &r->link);
        r->itself = map_target(c->map, instead_of)->given_up;
        if (r->itself) {
            LOG_WARN("cluster",
                     "target %u, which was given up, is there again at %s of %s: refused",
                     instead_of, r->path, r->alias);
            continue;
        }
        LOG_WARN("cluster",
                 "server %s has a new target at %s, where target %u lived, which is not there: "
                 "refused. Is its disk mounted? If it is lost: aifs-admin target replace %u",
                 r->alias, r->path, instead_of, instead_of);
    }
}

void cluster_refused_fini(struct cluster *c)
{
    struct list *l;

    while ((l = list_pop_front(&c->refused)))
        mem_free(list_entry(l, struct cluster_refused, link));
}

int cluster_refused_list(struct cluster *c, struct arena *a, struct msg_status_rep *rep)
{
    struct msg_refused_target *all;
    struct list *l;
    uint32_t n = 0;

    list_for_each (l, &c->refused)
        n++;
    n = MIN(n, MSG_ITEMS_MAX);
    all = arena_alloc(a, (n + 1u) * sizeof *all);
    if (!all)
        return -ENOMEM;
    rep->refused = all;
    list_for_each (l, &c->refused) {
        const struct cluster_refused *r = list_entry(l, struct cluster_refused, link);

        if (rep->n_refused == n)
            break;
        all[rep->n_refused++] =
            (struct msg_refused_target){.instead_of = r->instead_of,
                                        .alias = {r->alias, (uint32_t)strlen(r->alias)},
                                        .path = {r->path, (uint32_t)strlen(r->path)},
                                        .seen_ns_ago = cluster_now_ns(c) - r->seen_ns};
    }
    return 0;
}

/* ---- TARGET_REPLACE ---- */

static int replace_apply(struct map_change *change, struct cluster_map *m)
{
    const struct msg_pool_req *msg = change->req->msg;

    return change_replace(m, msg->targets[0]);
}

static void replace_done(struct map_change *r, int status)
{
    const struct msg_pool_req *msg = r->req->msg;
    struct cluster_refused *refused = refused_find(r->c, msg->targets[0]);
    struct cluster *c = r->c;
    struct msg_text_rep rep;
    struct strbuf text;

    if (refused && refused->itself)
        refused = NULL; /* given up before, and there again */
    strbuf_init(&text);
    strbuf_printf(&text,
                  msg->dry_run
                      ? "would be done: target %u is given up for good: what it held is lost, also "
                        "if its disk comes back, new files do not use it, and its place is free"
                      : "target %u has been given up: what it held is lost, new files do not use "
                        "it any more, and its place is free",
                  msg->targets[0]);
    if (refused && status == 0)
        strbuf_printf(&text, " for the new target at %s of %s", refused->path, refused->alias);
    else if (status == 0)
        strbuf_printf(&text, ": an empty directory there becomes a new target when its server is "
                             "started again");
    if (status == 0 && strbuf_failed(&text))
        status = -ENOMEM;
    if (status == 0 && !msg->dry_run)
        LOG_WARN("cluster", "%s", text.data);
    if (status == 0 && !msg->dry_run && refused)
        refused_forget(refused);
    if (status == 0 && !msg->dry_run && c->mds->gc_ops && !c->stopping)
        c->mds->gc_ops->target_up(c->mds); /* what waited for its confirmation */
    rep.text = (struct msg_bytes){text.data, (uint32_t)text.len};
    rpc_reply(r->req, status, status ? NULL : &rep);
    strbuf_fini(&text);
}

static const struct map_change_ops replace = {replace_apply, replace_done};

void cluster_serve_replace(struct rpc_req *req)
{
    const struct msg_pool_req *msg = req->msg;

    cluster_change_asked(req, msg->n_targets == 1 ? 0 : -EINVAL, msg->dry_run, &replace);
}

/* ---- NODE_REMOVE ---- */

static int remove_apply(struct map_change *r, struct cluster_map *m)
{
    const struct msg_node_req *msg = r->req->msg;
    const struct cluster_node *n = cluster_node(r->c, msg->node);
    const struct map_node *mn = map_node(m, msg->node);

    if (n && (n->up || n->waited_for))
        return -EBUSY;
    if (mn)
        memcpy(r->name, mn->alias, sizeof r->name);
    return change_remove_node(m, msg->node);
}

static void remove_done(struct map_change *r, int status)
{
    const struct msg_node_req *msg = r->req->msg;
    struct cluster *c = r->c;
    struct msg_text_rep rep;
    char text[256];
    int n = snprintf(text, sizeof text,
                     msg->dry_run ? "would be done: server %s (node %u) is removed: nothing of it "
                                    "is known any more but its targets, which were given up"
                                  : "server %s (node %u) has been removed; its targets stay in "
                                    "target list as given-up",
                     r->name, msg->node);

    if (status == 0 && !msg->dry_run) {
        LOG_WARN("cluster", "%s", text);
        if (!c->stopping)
            cluster_node_forget(c, msg->node);
    }
    rep.text = (struct msg_bytes){text, (uint32_t)n};
    rpc_reply(r->req, status, status ? NULL : &rep);
}

static const struct map_change_ops removal = {remove_apply, remove_done};

void cluster_serve_remove(struct rpc_req *req)
{
    const struct msg_node_req *msg = req->msg;

    cluster_change_asked(req, 0, msg->dry_run, &removal);
}
