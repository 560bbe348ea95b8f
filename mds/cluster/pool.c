// SPDX-License-Identifier: Apache-2.0
/*
 * POOL_CREATE, POOL_ADD, POOL_REMOVE: a change of the map, answered with a line for people.
 *
 * Failure modes: what could strand data is refused with -EBUSY: a target that is in a chain (see
 * change.h) or that reports chunks.
 */
#include <string.h>

#include "common/base/text.h"
#include "mds/cluster/cluster_int.h"

struct pool_change {
    struct map_change change;
    struct cluster *c;
    struct rpc_req *req;
    char name[MAP_NAME_BYTES];
};

static int pool_apply(struct map_change *change, struct cluster_map *m)
{
    struct pool_change *p = container_of(change, struct pool_change, change);
    const struct msg_pool_req *msg = p->req->msg;

    switch (p->req->header.op) {
    case RPC_OP_POOL_CREATE:
        return change_pool_create(m, p->name, msg->targets, msg->n_targets);
    case RPC_OP_POOL_ADD:
        return change_pool_add(m, p->name, msg->targets, msg->n_targets);
    default:
        return change_pool_remove(m, p->name, msg->targets, msg->n_targets);
    }
}

static const char *pool_verb(const struct rpc_req *req)
{
    return req->header.op == RPC_OP_POOL_CREATE ? "created"
           : req->header.op == RPC_OP_POOL_ADD  ? "has"
                                                : "has given up";
}

static void pool_done(struct map_change *change, int status)
{
    struct pool_change *p = container_of(change, struct pool_change, change);
    const struct msg_pool_req *msg = p->req->msg;
    struct cluster *c = p->c;
    struct msg_text_rep rep;
    struct strbuf text;

    strbuf_init(&text);
    strbuf_printf(&text, "%spool %s %s", msg->dry_run ? "would be done: " : "", p->name,
                  pool_verb(p->req));
    for (uint32_t i = 0; i < msg->n_targets; i++)
        strbuf_printf(&text, "%s %u",
                      i                                         ? ","
                      : p->req->header.op == RPC_OP_POOL_CREATE ? " with target"
                                                                : " target",
                      msg->targets[i]);
    if (status == 0 && strbuf_failed(&text))
        status = -ENOMEM;
    rep.text = (struct msg_bytes){text.data, (uint32_t)text.len};
    rpc_reply(p->req, status, status ? NULL : &rep);
    strbuf_fini(&text);
    mem_free(p);
    cluster_end(c);
}

static bool name_is_good(struct msg_bytes name)
{
    if (name.len == 0 || name.len >= MAP_NAME_BYTES)
        return false;
    for (uint32_t i = 0; i < name.len; i++) {
        unsigned char b = ((const unsigned char *)name.data)[i];

        if (b <= ' ' || b == 0x7f || strchr(",=/\"", b))
            return false;
    }
    return true;
}

static bool holds_data(struct cluster *c, const struct msg_pool_req *msg)
{
    struct list *l;

    list_for_each (l, &c->node_list) {
        const struct cluster_node *n = list_entry(l, struct cluster_node, all);

        for (uint32_t i = 0; i < n->n_targets; i++) {
            for (uint32_t k = 0; k < msg->n_targets; k++) {
                if (n->targets[i].stat.id == msg->targets[k] && n->targets[i].stat.chunks)
                    return true;
            }
        }
    }
    return false;
}

void cluster_serve_pool(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct cluster *c = cluster_of(m);
    const struct msg_pool_req *msg = req->msg;
    struct pool_change *p = NULL;
    int rc = 0;

    if (!name_is_good(msg->name) || msg->n_targets > MSG_ITEMS_MAX)
        rc = -EINVAL;
    else if (c->stopping)
        rc = -AIFS_ECANCELLED;
    else if (holds_data(c, msg))
        rc = -EBUSY;
    else if (!(p = mem_zalloc(sizeof *p)))
        rc = -ENOMEM;
    if (rc < 0) {
        rpc_reply(req, rc, NULL);
        return;
    }
    p->c = c;
    p->req = req;
    memcpy(p->name, msg->name.data, msg->name.len);
    p->change.apply = pool_apply;
    p->change.done = pool_done;
    p->change.dry_run = msg->dry_run;
    cluster_begin(c);
    cluster_change(c, &p->change);
}
