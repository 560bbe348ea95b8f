/* SPDX-License-Identifier: Apache-2.0 */
/* `node remove`: forget a server that is gone for good. Its targets have to be given up before,
 * since that is where data is lost; this only ends the mention of the server. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tools/admin/cluster.h"

/* Says what stands in the way; the metadata server looks, too. */
static int removable(const struct cluster *c, const struct map_node *n)
{
    if (cluster_node_up(cluster_node_live(c, n->id))) {
        admin_error("server %s is there: stop it first", n->alias);
        return ADMIN_CONFLICT;
    }
    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        const struct map_target *t = &c->map->targets[i];

        if (t->node != n->id || t->given_up)
            continue;
        admin_error("server %s has target %u (%s), and files may have data there. If it is lost "
                    "for good: aifs-admin target replace %u",
                    n->alias, t->id, t->alias, t->id);
        return ADMIN_CONFLICT;
    }
    return ADMIN_OK;
}

static int ask(struct admin *a, uint32_t node, const char *name)
{
    struct msg_node_req req = {.node = node, .dry_run = !a->yes};
    const struct msg_text_rep *text;
    char said[512];
    const void *rep;
    int rc = rpc_sync_call(a->sync, a->mds_peer, RPC_OP_NODE_REMOVE, &req, a->timeout_ns, &rep);

    if (rc == -EBUSY) {
        admin_error("server %s was there a moment ago, or has a target that is not given up", name);
        return ADMIN_CONFLICT;
    }
    if (rc < 0)
        return admin_fail(rc, "server %s", name);
    text = rep;
    snprintf(said, sizeof said, "%.*s", (int)text->text.len, (const char *)text->text.data);
    if (!a->json)
        puts(said);
    out_fields(a, "aifs.node.remove/1",
               (struct out_field[]){{"node", name, 0}, {"message", said, 0}}, 2);
    if (!a->yes && !a->json)
        admin_detail("nothing was changed: add --yes");
    return a->yes ? ADMIN_OK : ADMIN_CONFIRM;
}

int cmd_node_remove(struct admin *a, int argc, char **argv)
{
    const struct map_node *n;
    struct cluster c;
    uint32_t id = 0;
    int rc;

    if (argc != 1)
        return admin_usage("node", "remove", "say which server is gone");
    rc = cluster_get(a, &c);
    if (rc != ADMIN_OK)
        return rc;
    rc = admin_find_oss(c.map, argv[0], &n);
    if (rc == ADMIN_OK) {
        id = n->id;
        rc = removable(&c, n);
    }
    cluster_put(&c);
    return rc == ADMIN_OK ? ask(a, id, argv[0]) : rc;
}
