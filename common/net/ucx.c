/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports beside the socket. This end offers none yet, so every connection stays on its socket;
 * asking for one by force is an error.
 */
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/net_int.h"

int ucx_offer(struct net_conn *c, void *offer UNUSED, uint32_t *len)
{
    (void)c;
    *len = 0;
    return 0;
}

int ucx_upgrade(struct net_conn *c, const void *peer_offer UNUSED, uint32_t len UNUSED)
{
    if (c->options.want == NET_WANT_SHM || c->options.want == NET_WANT_RDMA) {
        LOG_ERROR("net", "%s: the transport asked for is not available between these two processes",
                  c->describe);
        return -ENOTSUP;
    }
    return 0;
}

void ucx_control(struct net_conn *c, enum frame_type type UNUSED)
{
    net_conn_close(c, -AIFS_EPROTO);
}

void ucx_resume(struct net_conn *c UNUSED)
{
}

void ucx_abort(struct net_conn *c UNUSED)
{
}

void ucx_release(struct net_conn *c UNUSED)
{
}
