/* SPDX-License-Identifier: Apache-2.0 */
/* `version`: of this program, and of every server of the cluster, as they say themselves in the
 * handshake of a connection. Failure modes: a server that does not answer is a row without one. */
#include "common/base/err.h"
#include "proto/header_fmt.h"
#include "tools/admin/cluster.h"

static const struct out_column columns[] = {{"COMPONENT", OUT_TEXT, NULL},
                                            {"NAME", OUT_TEXT, NULL},
                                            {"VERSION", OUT_TEXT, NULL},
                                            {"WIRE", OUT_COUNT, NULL}};

static bool server_row(struct admin *a, struct out *o, const struct map_node *n, const char *name)
{
    struct rpc_peer *peer = NULL;
    bool is_mds = n->type == MAP_NODE_MDS;
    int rc = is_mds ? 0 : admin_connect_node(a, n, &peer);
    const struct rpc_link *l = rc == 0 ? rpc_peer_link(is_mds ? a->mds_peer : peer) : NULL;

    out_text(o, is_mds ? "mds" : "oss");
    out_text(o, name);
    if (l) {
        out_text(o, rpc_link_peer(l)->version);
        out_number(o, rpc_link_wire_version(l));
        return true;
    }
    out_none(o);
    out_none(o);
    out_warning(o, "server %s does not answer: %s", name, err_text(rc ? rc : -AIFS_ECONN));
    return false;
}

static int servers(struct admin *a, struct out *o)
{
    struct cluster_map *map;
    bool all = true;
    char name[96];
    int rc = admin_connect(a);

    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    for (uint32_t i = 0; i < map->n_nodes; i++)
        all = server_row(a, o, &map->nodes[i], cluster_node_name(map, &map->nodes[i], name)) && all;
    map_put(map);
    return all ? ADMIN_OK : ADMIN_PARTIAL;
}

int cmd_version(struct admin *a, int argc, char **argv)
{
    struct out *o;
    int rc;

    if (argc != 0)
        return admin_usage("version", NULL, "unexpected argument %s", argv[0]);
    o = out_table(a, "aifs.version/1", columns, ARRAY_LEN(columns));
    out_text(o, "aifs-admin");
    out_none(o);
    out_text(o, AIFS_VERSION);
    out_number(o, RPC_WIRE_VERSION);
    rc = admin_knows_cluster(a) ? servers(a, o) : ADMIN_OK;
    out_print(o);
    return rc;
}
