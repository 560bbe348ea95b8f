/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers that have been waiting for an object storage server for long: once in a second they are
 * looked through; on a soft mount they end, and each is named once in the log.
 */
#include "client/core/core_int.h"

void oss_tick(struct core *c, uint64_t now)
{
    struct list *l;

    list_for_each (l, &c->ios) {
        struct oss_io *io = list_entry(l, struct oss_io, all);
        uint64_t age = now - io->started_ns;

        if (c->o.soft && age > c->o.timeo_ns && !io->cancelled)
            oss_io_cancel(io);
        if (io->hung_logged || age < c->o.hung_log_ns)
            continue;
        io->hung_logged = true;
        c->stats.hung++;
        LOG_WARN("client", "%s, target %u: %s of inode %llu has not been answered for %llu s",
                 io->node ? io->node->alias : "not sent", io->target ? io->target->id : 0,
                 rpc_op_name(io->call.op), (unsigned long long)io->inode->ino,
                 (unsigned long long)(age / NS_PER_S));
    }
}
