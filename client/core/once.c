/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of transfers that are not done twice: writes and punches without a lease, behind which
 * others write at the same places (docs/protocols.md 6).
 *
 * Happy path: a transfer gets its number when it is first sent, and keeps it while it is sent again
 * because its answer was lost; the target answers as done what it has done. Those that share a call
 * have numbers that follow each other, and keep them when each goes by itself then; one that has a
 * number shares no call. Of a file that has another truncate generation by now it is another
 * transfer. In another session a target would not know the number, and the server may have let
 * others write there since: what was begun in an earlier one is not sent any more. Nothing here can
 * fail.
 */
#include "client/core/core_int.h"

uint64_t once_id(struct oss_io *io)
{
    if (io->once && !io->once_id)
        io->once_id = ++io->core->op_ids;
    return io->once_id;
}

bool once_is_late(const struct oss_io *io)
{
    return (io->kind == OSS_IO_WRITE || io->kind == OSS_IO_PUNCH) &&
           io->session_epoch != io->core->session.epoch;
}

void once_forget(struct oss_io *io)
{
    io->once_id = 0;
}
