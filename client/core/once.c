/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of transfers that are not done twice: writes and punches without a lease, behind which
 * others write at the same places (docs/protocols.md 6).
 *
 * Happy path: a transfer gets its number when it is first sent, and keeps it while it is sent again
 * because its answer was lost; the target answers as done what it has done. Those that share a call
 * have numbers that follow each other, and keep them when each goes by itself then; one that has a
 * number shares no call. Of a file that has another truncate generation by now it is another
 * transfer. Nothing here can fail.
 */
#include "client/core/core_int.h"

uint64_t once_id(struct oss_io *io)
{
    if (io->once && !io->once_id)
        io->once_id = ++io->core->op_ids;
    return io->once_id;
}

void once_forget(struct oss_io *io)
{
    io->once_id = 0;
}
