/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a transfer asks a target for, and what the answer says.
 *
 * Happy path: of a write every block's checksum goes along, and a target that has promised room may
 * keep it for a COMMIT; the verifier and the grant of its answer are noted. Of a read every block's
 * checksum is verified, and what does not exist is zeroed.
 *
 * Failure: an answer that cannot be, or data that its checksum denies: retry.c decides.
 */
#include "client/core/core_int.h"
#include "client/core/room.h"

unsigned oss_message_op(enum oss_kind kind)
{
    static const unsigned opcodes[] = {[OSS_IO_READ] = RPC_OP_OSS_READ,
                                       [OSS_IO_WRITE] = RPC_OP_OSS_WRITE,
                                       [OSS_IO_PUNCH] = RPC_OP_OSS_PUNCH,
                                       [OSS_IO_SEEK] = RPC_OP_OSS_SEEK};

    return opcodes[kind];
}

/* ---- the answer ---- */

int oss_read_check(struct oss_io *io, uint32_t len, const uint32_t *crcs)
{
    uint8_t *data = io->iov[0].iov_base;

    if (len) {
        size_t n = crc32c_blocks(io->range.offset, data, len, io->crcs);

        if (memcmp(io->crcs, crcs, n * sizeof io->crcs[0]) != 0) {
            io->core->stats.checksum_errors++;
            LOG_WARN("client", "inode %llu chunk %llu from target %u: data and checksum disagree",
                     (unsigned long long)io->inode->ino, (unsigned long long)io->range.chunk,
                     io->target->id);
            return -AIFS_ECHECKSUM;
        }
    }
    memset(data + len, 0, io->range.len - len);
    io->got = len;
    return 0;
}

/* The payload is what exists of the one range; the rest is a hole. */
static int read_verify(struct oss_io *io, const struct msg_read_rep *rep)
{
    if (rep->n_lens != 1 || rep->lens[0] > io->range.len || rep->lens[0] != io->call.bulk_in_len ||
        rep->n_crcs != crc_pieces(io->range.offset, rep->lens[0]))
        return -AIFS_EPROTO;
    return oss_read_check(io, rep->lens[0], rep->crcs);
}

/* Durable without a COMMIT? Large ones tell what to expect of the next. */
static void commit_spared(struct oss_io *io, bool committed)
{
    if (!io->stable && io->len >= io->core->o.straight_bytes) {
        io->target->told = true;
        io->target->at_once = committed;
    }
    io->stable |= committed;
}

static int seek_noted(struct oss_io *io, const struct msg_seek_rep *rep)
{
    if (rep->offset < io->from || rep->offset > io->to || (rep->found && rep->offset == io->to) ||
        (!rep->found && rep->offset == io->from))
        return -AIFS_EPROTO;
    io->found = rep->found;
    io->from = rep->offset;
    return 0;
}

int oss_message_noted(struct oss_io *io)
{
    switch (io->kind) {
    case OSS_IO_READ:
        return read_verify(io, io->call.rep);
    case OSS_IO_WRITE:
        oss_write_noted(io->target, io->call.rep);
        commit_spared(io, ((const struct msg_write_rep *)io->call.rep)->committed);
        return 0;
    case OSS_IO_SEEK:
        return seek_noted(io, io->call.rep);
    default:
        return 0;
    }
}

/* ---- the question ---- */

uint64_t oss_want_grant(const struct core *c)
{
    return MAX(c->max_dirty / 4, (uint64_t)4 * CORE_LARGE_BYTES);
}

static void crc_iov(struct oss_io *io)
{
    uint32_t at = io->range.offset, n = 0, crc = 0;
    unsigned i;

    if (io->n_iov == 1) {
        io->msg.write.n_crcs = (uint32_t)crc32c_blocks(at, io->iov[0].iov_base, io->len, io->crcs);
        return;
    }
    for (i = 0; i < io->n_iov; i++) {
        const uint8_t *p = io->iov[i].iov_base;
        size_t left = io->iov[i].iov_len;

        while (left) {
            uint32_t step = (uint32_t)MIN(left, CRC_BLOCK_BYTES - at % CRC_BLOCK_BYTES);

            crc = crc32c_more(crc, p, step);
            at += step;
            p += step;
            left -= step;
            if (at % CRC_BLOCK_BYTES == 0 || at == io->range.offset + io->len) {
                io->crcs[n++] = crc;
                crc = 0;
            }
        }
    }
    io->msg.write.n_crcs = n;
}

bool oss_write_stable(struct oss_target *t, const struct core_inode *i, uint32_t len, bool stable)
{
    if (stable || room_granted(t) < len || i->lease != MSG_LEASE_WRITE)
        return true; /* no room promised: durable before the reply, or ENOSPC */
    t->flying += len;
    return false;
}

static void fill_write(struct oss_io *io)
{
    struct oss_target *t = io->target;

    io->stable = oss_write_stable(t, io->inode, io->len, io->stable);
    io->msg.write = (struct msg_write_req){
        .target = t->id,
        .ino = io->inode->ino,
        .truncate_gen = io->placed ? io->placed_gen : io->inode->attr.truncate_gen,
        .stable = io->stable,
        .n_ranges = 1,
        .ranges = &io->range,
        .crcs = io->crcs,
        .op_id = ++io->core->op_ids,
        .want_grant = oss_want_grant(io->core),
        .keep_grant = io->block ? 0 : room_owed(t),
        .once = once_id(io),
    };
    crc_iov(io);
    io->call.bulk_out = io->iov;
    io->call.n_bulk_out = io->n_iov;
}

static void fill_read(struct oss_io *io)
{
    io->msg.read = (struct msg_read_req){
        .target = io->target->id,
        .ino = io->inode->ino,
        .truncate_gen = io->inode->attr.truncate_gen,
        .n_ranges = 1,
        .ranges = &io->range,
    };
    io->call.bulk_in = io->iov;
    io->call.n_bulk_in = io->n_iov;
}

static void fill_punch(struct oss_io *io)
{
    io->msg.punch = (struct msg_cut_req){
        .target = io->target->id,
        .ino = io->inode->ino,
        .truncate_gen = io->inode->attr.truncate_gen,
        .chunk_bytes = io->inode->layout.chunk_bytes,
        .start = io->from,
        .end = io->to,
        .once = once_id(io),
    };
}

static void fill_seek(struct oss_io *io)
{
    io->msg.seek = (struct msg_seek_req){
        .target = io->target->id,
        .ino = io->inode->ino,
        .truncate_gen = io->inode->attr.truncate_gen,
        .chunk_bytes = io->inode->layout.chunk_bytes,
        .stride = io->inode->layout.stripe_count,
        .start = io->from,
        .end = io->to,
        .hole = io->hole,
    };
}

void oss_message_fill(struct oss_io *io)
{
    if (io->kind == OSS_IO_READ)
        fill_read(io);
    else if (io->kind == OSS_IO_WRITE)
        fill_write(io);
    else if (io->kind == OSS_IO_PUNCH)
        fill_punch(io);
    else
        fill_seek(io);
}
