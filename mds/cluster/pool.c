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

static int pool_apply(struct map_change *p, struct cluster_map *m)
{
    const struct msg_pool_req *msg = p->req->msg;

    memcpy(p->name, msg->name.data, msg->name.len);
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

static void pool_done(struct map_change *p, int status)
{
    const struct msg_pool_req *msg = p->req->msg;
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
}

static const struct map_change_ops pool = {pool_apply, pool_done};

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
    const struct msg_pool_req *msg = req->msg;
    int rc = 0;

    if (!name_is_good(msg->name) || msg->n_targets > MSG_ITEMS_MAX)
        rc = -EINVAL;
    else if (holds_data(cluster_of(req->handler_arg), msg))
        rc = -EBUSY;
    cluster_change_asked(req, rc, msg->dry_run, &pool);
}
