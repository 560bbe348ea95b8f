// SPDX-License-Identifier: Apache-2.0
/*
 * SEAL, after a writer's death: commit what the target holds of the inode and say how far it
 * reaches. Only data of the given truncate generation counts: when that truncate has not come here
 * yet, older chunks may lie above the cut.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

static int seal_gate(struct chunk_op *op)
{
    if (op->inode->damaged)
        return cut_end(op, -AIFS_ECORRUPT);
    if (op->inode->tombstone)
        return cut_end(op, 0);
    if (op->truncate_gen < op->inode->gen_done)
        return cut_end(op, -AIFS_ESTALE_TRUNC);
    if (op->store->failed) /* what the index holds is known after a restart */
        return cut_end(op, op->store->failed);
    sm_move(&op->sm, C_FLUSH);
    op->io_status = 0;
    return STEP_AGAIN;
}

/* The last chunk that counts: usually the first one looked at. */
static int seal_find(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    uint8_t key[CHUNK_KEY_MAX];
    struct index_scan scan;
    struct chunk_record r;
    struct chunk_key k;
    int rc = 0, end;

    index_scan_start_back(&s->index, &scan, key, chunk_key_chunk(key, op->ino, UINT64_MAX));
    for (; index_scan_valid(&scan); index_scan_prev(&scan)) {
        rc = chunk_key_parse(scan.key, scan.key_len, &k);
        if (rc || k.type != CHUNK_KEY_CHUNK || k.ino != op->ino)
            break;
        rc = chunk_record_decode(scan.key, scan.key_len, scan.value, scan.value_len, &r);
        if (rc == -AIFS_ECORRUPT) { /* all of it counts: who reads it is to get an error */
            op->ret_high_water = (k.chunk + 1) * op->chunk_bytes;
            rc = 0;
            break;
        }
        if (rc)
            break;
        if (op->inode->gen_done < op->truncate_gen && r.truncate_gen < op->truncate_gen)
            continue;
        op->ret_high_water = k.chunk * op->chunk_bytes + MIN(r.len, op->chunk_bytes);
        break;
    }
    end = index_scan_end(&s->index, &scan);
    return end ? end : rc;
}

int op_seal_step(struct chunk_op *op)
{
    switch (sm_state(&op->sm)) {
    case C_START:
        return cut_start(op);
    case C_GATE:
        return seal_gate(op);
    default: /* C_FLUSH */
        if (op->io_status)
            return cut_end(op, op->io_status);
        if (cut_flush(op, true))
            return STEP_WAIT;
        return cut_end(op, seal_find(op));
    }
}
