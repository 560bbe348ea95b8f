/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA devices and their ports. A device that cannot be opened (no rights to /dev/infiniband) has
 * one row that says so, with port 0. */
#include "common/net/device.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "common/base/bytes.h"

/* InfiniBand Architecture 1.5, PortInfo: LinkSpeedActive, LinkSpeedExtActive, LinkWidthActive. */
uint64_t net_device_rate(uint8_t width_code, uint8_t speed_code)
{
    static const struct {
        uint8_t code;
        uint64_t bits;
    } speeds[] = {{1, 2500000000},   {2, 5000000000},   {4, 10000000000},  {8, 10000000000},
                  {16, 14062500000}, {32, 25781250000}, {64, 53125000000}, {128, 106250000000}};
    static const struct {
        uint8_t code, lanes;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    uint64_t bits = 0, lanes = 0;

    for (unsigned k = 0; k < ARRAY_LEN(speeds); k++)
        if (speeds[k].code == speed_code)
            bits = speeds[k].bits;
    for (unsigned k = 0; k < ARRAY_LEN(widths); k++)
        if (widths[k].code == width_code)
            lanes = widths[k].lanes;
    return bits * lanes;
}

static const char *state_name(enum ibv_port_state s)
{
    switch (s) {
    case IBV_PORT_ACTIVE:
        return "active";
    case IBV_PORT_ARMED:
        return "armed";
    case IBV_PORT_INIT:
        return "initialising";
    case IBV_PORT_DOWN:
        return "down";
    default:
        return "unknown";
    }
}

static int numa_of(const struct ibv_device *d)
{
    char path[sizeof d->ibdev_path + 32];
    int numa = -1;
    FILE *f;

    snprintf(path, sizeof path, "%s/device/numa_node", d->ibdev_path);
    f = fopen(path, "re");
    if (f && fscanf(f, "%d", &numa) != 1)
        numa = -1;
    if (f)
        fclose(f);
    return numa;
}

static unsigned ports_of(struct ibv_device *d, struct net_device_port *ports, unsigned max)
{
    struct net_device_port base = {.state = "not accessible", .layer = "unknown"};
    struct ibv_context *ctx = ibv_open_device(d);
    struct ibv_device_attr attr;
    struct ibv_port_attr p;
    unsigned n = 0;

    snprintf(base.device, sizeof base.device, "%s", ibv_get_device_name(d));
    base.numa = numa_of(d);
    if (!ctx || ibv_query_device(ctx, &attr)) {
        if (max)
            ports[n++] = base;
    } else {
        for (unsigned port = 1; port <= attr.phys_port_cnt && n < max; port++) {
            if (ibv_query_port(ctx, (uint8_t)port, &p))
                continue;
            ports[n] = base;
            ports[n].port = port;
            ports[n].state = state_name(p.state);
            ports[n].layer = p.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet" : "infiniband";
            ports[n++].rate_bits = net_device_rate(p.active_width, p.active_speed);
        }
    }
    if (ctx)
        ibv_close_device(ctx);
    return n;
}

unsigned net_devices(struct net_device_port *ports, unsigned max)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    unsigned n = 0;

    for (int k = 0; list && k < count; k++)
        n += ports_of(list[k], ports + n, max - n);
    if (list)
        ibv_free_device_list(list);
    return n;
}
