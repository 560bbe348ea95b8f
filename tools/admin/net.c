/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `net show`: can this machine reach the servers, by which of their addresses, over which transport
 * and how quickly; and which RDMA devices it has. Each address is asked by a connection of its own.
 * One that does not answer within --timeout is a row, not an error that ends the command.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/net/device.h"
#include "tools/admin/cluster.h"

#define PINGS       16u
#define SETTLE_NS   (300 * NS_PER_MS) /* the transport is changed in the background */
#define DEVICES_MAX 64u

static const struct out_column columns[] = {{"NODE", OUT_TEXT, NULL},
                                            {"TYPE", OUT_TEXT, NULL},
                                            {"ADDRESS", OUT_TEXT, NULL},
                                            {"STATE", OUT_TEXT, NULL},
                                            {"TRANSPORT", OUT_TEXT, NULL},
                                            {"RTT-US", OUT_COUNT, "rtt_us"},
                                            {"GBIT/S", OUT_COUNT, "gbit_per_s"},
                                            {"NUMA", OUT_TEXT, NULL}};

/* Is it another transport than the one that every connection begins with? */
static bool has_changed(const struct rpc_peer *peer, char transport[16])
{
    const struct rpc_link *link = rpc_peer_link((struct rpc_peer *)peer);
    const char *last = link ? strrchr(rpc_link_describe(link), ' ') : NULL;

    snprintf(transport, 16, "%s", last ? last + 1 : "-");
    return strcmp(transport, "tcp") != 0;
}

/* Round trips until the transport is settled, and PINGS more: the best of those. */
static int ask(struct rpc_sync *sync, const char *address, uint64_t timeout_ns, char transport[16],
               uint64_t *ret_rtt_us)
{
    static const struct msg_empty none;
    const struct clock *clock = clock_real();
    uint64_t best = UINT64_MAX, until = clock_mono_ns(clock) + SETTLE_NS, start;
    struct rpc_peer *peer;
    const void *rep;
    int rc = rpc_sync_connect(sync, address, timeout_ns, &peer);

    while (rc == 0 && !has_changed(peer, transport) && clock_mono_ns(clock) < until)
        rc = rpc_sync_call(sync, peer, RPC_OP_PING, &none, timeout_ns, &rep);
    for (unsigned k = 0; k < PINGS && rc == 0; k++) {
        start = clock_mono_ns(clock);
        rc = rpc_sync_call(sync, peer, RPC_OP_PING, &none, timeout_ns, &rep);
        best = MIN(best, clock_mono_ns(clock) - start);
    }
    if (rc == 0) {
        (void)has_changed(peer, transport);
        *ret_rtt_us = best / NS_PER_US;
    }
    return rc;
}

static bool address_row(const struct admin *a, struct rpc_sync *sync, struct out *o,
                        const struct map_node *n, const char *name, const char *address)
{
    char transport[16];
    uint64_t rtt_us = 0;
    int rc = ask(sync, address, a->timeout_ns, transport, &rtt_us);

    out_text(o, name);
    out_text(o, n->type == MAP_NODE_MDS ? "mds" : "oss");
    out_text(o, address);
    out_text(o, rc ? "unreachable" : "up");
    if (rc) {
        out_warning(o, "server %s does not answer at %s: %s", name, address, err_text(rc));
        out_none(o);
        out_none(o);
    } else {
        out_text(o, transport);
        out_number(o, rtt_us);
    }
    out_none(o);
    out_none(o);
    return rc == 0;
}

static void device_rows(struct out *o)
{
    struct net_device_port ports[DEVICES_MAX];
    unsigned n = net_devices(ports, DEVICES_MAX);

    for (unsigned k = 0; k < n; k++) {
        char name[96], numa[16];

        snprintf(name, sizeof name, "%.63s:%u", ports[k].device, ports[k].port);
        snprintf(numa, sizeof numa, "%d", ports[k].numa);
        out_none(o);
        out_text(o, "device");
        out_text(o, name);
        out_text(o, ports[k].state);
        out_text(o, ports[k].layer);
        out_none(o);
        out_number(o, ports[k].rate_bits / 1000000000);
        out_text(o, ports[k].numa < 0 ? NULL : numa);
    }
}

/* Another than for our own calls: this one may use what clients use. */
static int open_sync(const struct admin *a, struct rpc_sync **ret_sync)
{
    struct crypto_key key;
    char why[256];
    int rc = crypto_key_load(a->key_file, &key, why, sizeof why);

    rc = rc ? rc : rpc_sync_create_over(NET_WANT_AUTO, &key, "aifs-admin", ret_sync);
    explicit_bzero(&key, sizeof key);
    return rc ? admin_fail(rc, "cannot start") : ADMIN_OK;
}

int cmd_net_show(struct admin *a, int argc, char **argv)
{
    const char *only = argc ? argv[0] : NULL;
    struct cluster_map *map;
    struct rpc_sync *sync;
    struct out *o;
    bool found = false, all_up = true;
    char name[96];
    int rc;

    if (argc > 1)
        return admin_usage("net", "show", "unexpected argument %s", argv[1]);
    rc = admin_connect(a);
    if (rc == ADMIN_OK)
        rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    rc = open_sync(a, &sync);
    if (rc != ADMIN_OK) {
        map_put(map);
        return rc;
    }
    o = out_table(a, "aifs.net.show/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < map->n_nodes; i++) {
        const struct map_node *n = &map->nodes[i];

        if (only && !admin_node_is(n, only))
            continue;
        found = true;
        for (uint32_t k = 0; k < n->n_addresses; k++)
            all_up = address_row(a, sync, o, n, cluster_node_name(map, n, name), n->addresses[k]) &&
                     all_up;
    }
    if (only && !found) {
        admin_error("there is no server %s", only);
        out_drop(o);
        rc = ADMIN_NOT_FOUND;
    } else {
        if (!only)
            device_rows(o);
        out_print(o);
        rc = all_up ? ADMIN_OK : ADMIN_PARTIAL;
    }
    rpc_sync_destroy(sync);
    map_put(map);
    return rc;
}
