// SPDX-License-Identifier: Apache-2.0
/*
 * Blocks between slots and memory. chunk_fetch() is the only way data leaves a slot: for a reader,
 * a merge or a copy alike, and it checks every block's sum on the way. A mismatch is reported once,
 * with target, inode, chunk and block, counted, and ends the operation with AIFS_ECORRUPT.
 *
 * Slots of a target in memory that are mapped whole are copied from and to, block by block, each
 * summed while it is in the processor's nearest cache.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "oss/chunk/store_int.h"

void chunk_report_corrupt(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t block,
                          const char *what)
{
    stat_inc(&s->n_errors);
    LOG_ERROR(s->tag, "inode %llu chunk %llu block %u: %s", (unsigned long long)ino,
              (unsigned long long)chunk, block, what);
}

/* Of blocks that were read; mapped: that are to be copied from there first, where the slot is. */
static int fetch_check(const struct chunk_fetch *f, uint32_t from, uint32_t to,
                       const uint8_t *mapped)
{
    const struct chunk *c = f->chunk;

    for (uint32_t b = from; b < to; b++) {
        uint8_t *data = f->dest + (size_t)(b - f->base) * CHUNK_BLOCK;

        if (mapped)
            memcpy(data, mapped + (size_t)b * CHUNK_BLOCK, CHUNK_BLOCK);
        if (LIKELY(crc32c(data, CHUNK_BLOCK) == c->crcs[b]))
            continue;
        chunk_report_corrupt(f->op->store, c->inode->ino, c->index, b, "checksum mismatch on disk");
        return -AIFS_ECORRUPT;
    }
    return 0;
}

static void fetch_go(struct chunk_fetch *f);

static void fetch_done(struct fio_op *fio, int status)
{
    struct chunk_fetch *f = container_of(fio, struct chunk_fetch, fio);
    struct chunk_store *s = f->op->store;

    if (!status && FAULT("chunk.read"))
        status = -EIO;
    if (status) {
        stat_inc(&s->n_errors);
        LOG_ERROR(s->tag, "inode %llu chunk %llu blocks %u to %u: read: %s",
                  (unsigned long long)f->chunk->inode->ino, (unsigned long long)f->chunk->index,
                  f->next, f->run_end, err_text(status));
        status = status == -ENODATA ? -AIFS_ECORRUPT : status;
    } else {
        status = fetch_check(f, f->next, f->run_end, f->mapped);
    }
    f->status = status;
    f->next = f->run_end;
    f->completed = true;
    if (!f->submitting)
        fetch_go(f);
}

/* Submits the run of home blocks from next on; false: the answer comes later. */
static bool fetch_run(struct chunk_fetch *f)
{
    struct chunk_store *s = f->op->store;
    struct chunk *c = f->chunk;
    uint32_t b = f->next;
    struct seg_file *file;
    uint64_t offset;

    file = c->slot.class ? seg_of_slot(&s->seg, c->slot, &offset) : NULL;
    if (!file) {
        chunk_report_corrupt(s, c->inode->ino, c->index, b, "its segment file is missing");
        f->status = -AIFS_ECORRUPT;
        return true;
    }
    while (b < f->end && CHUNK_BIT(c->present, b) && !CHUNK_BIT(c->logged, b))
        b++;
    f->run_end = b;
    f->iov.iov_base = f->dest + (size_t)(f->next - f->base) * CHUNK_BLOCK;
    f->iov.iov_len = (size_t)(b - f->next) * CHUNK_BLOCK;
    f->fio = (struct fio_op){.kind = FIO_READ,
                             .file = &file->file,
                             .iov = &f->iov,
                             .n_iov = 1,
                             .offset = offset + (uint64_t)f->next * CHUNK_BLOCK,
                             .done = fetch_done};
    f->submitting = true;
    f->completed = false;
    f->mapped = chunk_place_mapped(s, c->slot);
    if (f->mapped)
        fetch_done(&f->fio, 0);
    else
        fio_submit(s->fio, &f->fio);
    f->submitting = false;
    return f->completed;
}

static void fetch_go(struct chunk_fetch *f)
{
    struct chunk *c = f->chunk;
    uint32_t blocks = chunk_blocks(c->len);

    while (!f->status && f->next < f->end) {
        uint8_t *dest = f->dest + (size_t)(f->next - f->base) * CHUNK_BLOCK;
        struct chunk_log *log;

        if (f->next >= blocks || !CHUNK_BIT(c->present, f->next)) {
            memset(dest, 0, CHUNK_BLOCK);
            f->next++;
        } else if ((log = chunk_log_find(c, f->next))) {
            memcpy(dest, log->data, CHUNK_BLOCK);
            f->next++;
        } else if (!fetch_run(f)) {
            return;
        }
    }
    chunk_op_wake(f->op, f->status);
}

void chunk_fetch(struct chunk_op *op, uint32_t from, uint32_t to, uint8_t *dest)
{
    op->fetch = (struct chunk_fetch){
        .op = op, .chunk = op->c, .dest = dest, .base = from, .next = from, .end = to};
    fetch_go(&op->fetch);
}

static void blocks_stored(struct fio_op *fio, int status)
{
    struct chunk_op *op = container_of(fio, struct chunk_op, fio);
    struct chunk_store *s = op->store;

    chunk_place_written(s, op->slot);
    op->file->dirty = true; /* only now: a sync taken earlier would not have covered it */
    if (!status && FAULT("chunk.write"))
        status = -EIO;
    if (status && status != -AIFS_ECHECKSUM) { /* that one is not the disk's, and was told */
        stat_inc(&s->n_errors);
        LOG_ERROR(s->tag, "inode %llu chunk %llu: write: %s", (unsigned long long)op->ino,
                  (unsigned long long)op->c->index, err_text(status));
    }
    chunk_op_wake(op, status);
}

void chunk_report_damaged(const struct chunk_op *op, uint32_t offset)
{
    LOG_WARN(op->store->tag, "inode %llu chunk %llu offset %u: data arrived damaged",
             (unsigned long long)op->ino, (unsigned long long)op->chunk, offset);
}

int chunk_check_sums(const struct chunk_op *op)
{
    uint32_t done = chunk_place_checked(op), i = done / CHUNK_BLOCK;
    uint32_t offset = op->offset + done, left = op->len - done;
    const uint8_t *p = (const uint8_t *)op->data + done;

    while (op->crcs && left) {
        uint32_t n = MIN(left, CHUNK_BLOCK - offset % CHUNK_BLOCK);

        if (crc32c(p, n) != op->crcs[i++]) {
            chunk_report_damaged(op, offset);
            return -AIFS_ECHECKSUM;
        }
        p += n;
        offset += n;
        left -= n;
    }
    return 0;
}

/* Into the slot's memory; whole blocks. */
static int copy_mapped(const struct chunk_op *op, uint8_t *to, unsigned n_iov, const uint32_t *crcs)
{
    const uint8_t *start = to;

    for (unsigned i = 0; i < n_iov; i++) {
        const uint8_t *from = op->iov[i].iov_base, *end = from + op->iov[i].iov_len;

        for (; from < end; from += CHUNK_BLOCK, to += CHUNK_BLOCK) {
            if (crcs && UNLIKELY(crc32c(from, CHUNK_BLOCK) != *crcs++)) {
                chunk_report_damaged(op, op->offset + (uint32_t)(to - start));
                return -AIFS_ECHECKSUM;
            }
            memcpy(to, from, CHUNK_BLOCK);
        }
    }
    return 0;
}

void chunk_store_blocks(struct chunk_op *op, struct chunk_slot slot, uint32_t block, unsigned n_iov,
                        const uint32_t *crcs)
{
    struct chunk_store *s = op->store;
    uint8_t *mapped = chunk_place_mapped(s, slot);
    uint64_t offset;
    struct seg_file *file = seg_of_slot(&s->seg, slot, &offset);

    if (!file) {
        chunk_report_corrupt(s, op->ino, op->c->index, block, "its segment file is missing");
        chunk_op_wake(op, -AIFS_ECORRUPT);
        return;
    }
    op->fio = (struct fio_op){.kind = FIO_WRITE,
                              .file = &file->file,
                              .iov = op->iov,
                              .n_iov = n_iov,
                              .offset = offset + (uint64_t)block * CHUNK_BLOCK,
                              .done = blocks_stored};
    op->file = file;
    op->slot = slot;
    if (!mapped) {
        ASSERT(!crcs);
        fio_submit(s->fio, &op->fio);
        return;
    }
    stat_inc(&s->n_mapped);
    blocks_stored(&op->fio, copy_mapped(op, mapped + (size_t)block * CHUNK_BLOCK, n_iov, crcs));
}
