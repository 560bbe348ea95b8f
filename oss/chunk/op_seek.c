// SPDX-License-Identifier: Apache-2.0
/*
 * SEEK: where data, or a hole, begins, in the chunks of one stripe of a file. What is not committed
 * is committed first, so that the index tells; then a bounded number of records is looked at: an
 * answer may say only how far there is nothing.
 */
#include "common/base/err.h"
#include "oss/chunk/store_int.h"

#define SEEK_RECORDS 512u

struct seek {
    struct chunk_op *op;
    uint64_t next; /* chunk of the stripe: nothing was found before it */
    uint64_t at;   /* the same as an offset, not before start */
};

/* The first block of the record from `from` on that is present, or (hole) is not; behind the last
 * one everything is hole. */
static bool find_block(const struct chunk_record *r, uint32_t from, uint32_t blocks, bool hole,
                       uint32_t *ret_block)
{
    uint32_t have = MIN(chunk_blocks(r->len), blocks), b = from;

    if (hole && !r->bitmap)
        b = MAX(b, have);
    while (b < have && chunk_record_present(r, b) == hole)
        b++;
    *ret_block = b;
    return b < (hole ? blocks : have);
}

static void seek_go_on(struct seek *k, uint64_t next)
{
    k->next = next;
    k->at = MAX(k->at, next * k->op->chunk_bytes);
}

static bool seek_record(struct seek *k, uint64_t chunk, const struct chunk_record *r)
{
    struct chunk_op *op = k->op;
    uint64_t base = chunk * op->chunk_bytes, at = MAX(k->at, base);
    uint32_t block;

    if (find_block(r, (uint32_t)((at - base) / CHUNK_BLOCK), op->chunk_bytes / CHUNK_BLOCK,
                   op->hole, &block)) {
        k->at = MAX(at, base + (uint64_t)block * CHUNK_BLOCK);
        return true;
    }
    seek_go_on(k, chunk + op->stride);
    return false;
}

/* A record: 1 when what is looked for was found, 0, or an error. */
static int seek_look(struct seek *k, const struct index_scan *scan, uint64_t chunk)
{
    struct chunk_op *op = k->op;
    uint64_t first = op->start / op->chunk_bytes, skip = (chunk - first) % op->stride;
    struct chunk_record r;
    int rc;

    if (op->hole && chunk > k->next)
        return true; /* there is none for the chunk at k->at */
    if (skip) {      /* of another stripe, on the same target */
        if (!op->hole)
            seek_go_on(k, chunk - skip + op->stride);
        return false;
    }
    rc = chunk_record_decode(scan->key, scan->key_len, scan->value, scan->value_len, &r);
    return rc ? rc : seek_record(k, chunk, &r);
}

/* All that was asked for was looked at; records that are not there are holes. */
static void seek_over(struct seek *k)
{
    k->op->ret_found = k->op->hole;
    if (!k->op->hole)
        k->at = k->op->end;
}

static int seek_find(struct chunk_op *op)
{
    struct seek k = {.op = op, .next = op->start / op->chunk_bytes, .at = op->start};
    uint64_t last = (op->end - 1) / op->chunk_bytes;
    uint8_t key[CHUNK_KEY_MAX];
    struct index_scan scan;
    struct chunk_key c;
    bool more = false;
    int rc = 0, end;

    index_scan_start(&op->store->index, &scan, key, chunk_key_chunk(key, op->ino, k.next));
    for (uint32_t n = 0; !rc && index_scan_valid(&scan); n++, index_scan_next(&scan)) {
        rc = chunk_key_parse(scan.key, scan.key_len, &c);
        if (rc || c.type != CHUNK_KEY_CHUNK || c.ino != op->ino || c.chunk > last)
            break;
        more = n >= SEEK_RECORDS && k.at > op->start;
        if (more)
            break;
        rc = seek_look(&k, &scan, c.chunk);
    }
    end = index_scan_end(&op->store->index, &scan);
    op->ret_found = rc == true;
    if (!rc && !more)
        seek_over(&k);
    if (k.at >= op->end) {
        op->ret_found = false;
        k.at = op->end;
    }
    op->ret_offset = k.at;
    return end ? end : MIN(rc, 0);
}

static int seek_gate(struct chunk_op *op)
{
    int rc = chunk_gate_check(op, false);

    op->ret_offset = op->end;
    if (rc || op->start >= op->end)
        return cut_end(op, rc);
    sm_move(&op->sm, C_FLUSH);
    op->io_status = 0;
    return STEP_AGAIN;
}

int op_seek_step(struct chunk_op *op)
{
    switch (sm_state(&op->sm)) {
    case C_START:
        return cut_start(op);
    case C_GATE:
        return seek_gate(op);
    default: /* C_FLUSH */
        if (op->io_status)
            return cut_end(op, op->io_status);
        if (cut_flush(op, true))
            return STEP_WAIT;
        return cut_end(op, seek_find(op));
    }
}
