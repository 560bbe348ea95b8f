/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of devices: pure functions of text and of what devices there are. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "common/net/device.h"

#define PORT_MAX 255u

static int bad(char *err, size_t err_len, int rc, const char *fmt, ...) PRINTF_LIKE(4, 5);
static int bad(char *err, size_t err_len, int rc, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err, err_len, fmt, ap);
    va_end(ap);
    return rc;
}

/* One entry, "mlx5_0" or "mlx5_0:1", of len bytes. */
static int parse_entry(const char *text, size_t len, struct net_device_list *l, char *err,
                       size_t err_len)
{
    const char *colon = memchr(text, ':', len);
    size_t name_len = colon ? (size_t)(colon - text) : len;
    size_t port_len = colon ? len - name_len - 1 : 0;
    char number[8] = "";
    uint64_t port = 0;

    if (name_len == 0 || name_len >= NET_DEVICE_NAME_BYTES || memchr(text, '/', name_len) ||
        memchr(text, ' ', name_len))
        return bad(err, err_len, -EINVAL, "\"%.*s\" is not device or device:port",
                   (int)MIN(len, 80u), text);
    if (colon) {
        memcpy(number, colon + 1, MIN(port_len, sizeof number - 1));
        if (port_len >= sizeof number || text_parse_u64(number, &port) < 0 || port < 1 ||
            port > PORT_MAX)
            return bad(err, err_len, -EINVAL, "\"%.*s\": a port is a number from 1 to %u",
                       (int)MIN(len, 80u), text, PORT_MAX);
    }
    if (l->n == NET_DEVICES_MAX)
        return bad(err, err_len, -EINVAL, "more than %u devices", NET_DEVICES_MAX);
    memcpy(l->entries[l->n].device, text, name_len);
    l->entries[l->n].device[name_len] = '\0';
    l->entries[l->n++].port = (unsigned)port;
    return 0;
}

int net_device_list_parse(const char *text, struct net_device_list *ret_list, char *err,
                          size_t err_len)
{
    struct net_device_list l = {.n = 0};
    int rc = 0;

    while (text && *text && rc == 0) {
        size_t len = strcspn(text, ",+");

        rc = parse_entry(text, len, &l, err, err_len);
        if (rc == 0 && text[len] && text[len + 1] == '\0')
            rc = bad(err, err_len, -EINVAL, "nothing behind the last %c", text[len]);
        text += len + (text[len] != '\0');
    }
    if (rc == 0)
        *ret_list = l;
    return rc;
}

/* A device that cannot be opened has port 0, and stands for any port of it. */
static bool entry_means(const struct net_device_list *l, unsigned k,
                        const struct net_device_port *p)
{
    return strcmp(l->entries[k].device, p->device) == 0 &&
           (l->entries[k].port == 0 || p->port == 0 || l->entries[k].port == p->port);
}

bool net_device_list_has(const struct net_device_list *l, const struct net_device_port *port)
{
    bool found = l->n == 0;

    for (unsigned k = 0; k < l->n && !found; k++)
        found = entry_means(l, k, port);
    return found;
}

static void name_ports(const struct net_device_port *ports, unsigned n, char *text, size_t len)
{
    size_t at = 0;

    snprintf(text, len, "none");
    for (unsigned k = 0; k < n && at < len; k++)
        at += (size_t)snprintf(text + at, len - at, "%s%s:%u", k ? ", " : "", ports[k].device,
                               ports[k].port);
}

int net_device_list_check(const struct net_device_list *l, const struct net_device_port *ports,
                          unsigned n_ports, char *err, size_t err_len)
{
    char there[256], port[16] = "";

    for (unsigned k = 0; k < l->n; k++) {
        bool found = false;

        for (unsigned p = 0; p < n_ports && !found; p++)
            found = entry_means(l, k, &ports[p]);
        if (found)
            continue;
        name_ports(ports, n_ports, there, sizeof there);
        if (l->entries[k].port)
            snprintf(port, sizeof port, ":%u", l->entries[k].port);
        return bad(err, err_len, -ENODEV, "there is no RDMA device %s%s here (there are: %s)",
                   l->entries[k].device, port, there);
    }
    return 0;
}

int net_device_list_usable(const struct net_device_list *l, const struct net_device_port *ports,
                           unsigned n_ports, char *err, size_t err_len)
{
    const char *closed = NULL;

    for (unsigned k = 0; k < n_ports; k++) {
        if (!net_device_list_has(l, &ports[k]))
            continue;
        if (ports[k].port)
            return 0;
        closed = ports[k].device;
    }
    if (closed)
        return bad(err, err_len, -ENODEV,
                   "RDMA device %s cannot be opened: has this process the right to "
                   "/dev/infiniband/uverbs*?",
                   closed);
    return bad(err, err_len, -ENODEV,
               "there is no RDMA device here (aifs-admin net show lists those of a machine)");
}

unsigned net_device_list_active(const struct net_device_list *l,
                                const struct net_device_port *ports, unsigned n_ports, char *text,
                                size_t text_len)
{
    unsigned n = 0;
    size_t at = 0;

    text[0] = '\0';
    for (unsigned k = 0; k < n_ports && at < text_len; k++) {
        if (strcmp(ports[k].state, "active") != 0 || !net_device_list_has(l, &ports[k]))
            continue;
        at += (size_t)snprintf(text + at, text_len - at, "%s%s:%u", n ? "," : "", ports[k].device,
                               ports[k].port);
        n++;
    }
    return n;
}
