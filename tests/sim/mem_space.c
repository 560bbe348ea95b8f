/* SPDX-License-Identifier: Apache-2.0 */
/* See mem_space.h. */
#include "tests/sim/mem_space.h"

#include <errno.h>
#include <string.h>

#include "oss/chunk/store.h"
#include "tests/sim/sim.h"

#define SLOT_BYTES     ((uint64_t)SIM_CHUNK)
#define REFUSES_ANYWAY 700u /* per thousand overwrites, where others have filled the disk */

static uint64_t space_bytes(const struct mem_space *s, uint64_t used)
{
    switch (s->bound) {
    case SPACE_ENOUGH:
        return GIB;
    case SPACE_LITTLE:
        return s->slots > used ? (s->slots - used) * SLOT_BYTES : 0;
    default:
        return 0;
    }
}

static int refuse(void)
{
    sim_hit(SIM_WRITE_REFUSED);
    return -ENOSPC;
}

int mem_space_take(struct mem_space *s, uint64_t used, const struct chunk_op *op,
                   const uint8_t *data)
{
    uint64_t bytes = space_bytes(s, used), own;

    if (data && (s->bound != SPACE_NONE || memcmp(data + op->offset, op->data, op->len) == 0))
        return 0;
    if (data)
        return sim_chance(REFUSES_ANYWAY) ? refuse() : 0;
    if (s->bound == SPACE_ENOUGH || bytes >= SLOT_BYTES + s->promised_bytes)
        return 0;
    own = op->promise && *op->promise > op->keep ? *op->promise - op->keep : 0;
    if (!own || bytes < SLOT_BYTES + s->promised_bytes - own)
        return refuse();
    own = MIN(own, SLOT_BYTES);
    *op->promise -= own;
    s->promised_bytes -= own;
    return 0;
}

void mem_space_bound(struct chunk_store *store, enum space_bound bound, uint64_t spare_slots)
{
    uint64_t used;
    struct mem_space *s = sim_chunks_space(store, &used);

    s->bound = bound;
    s->slots = used + (s->promised_bytes + SLOT_BYTES - 1) / SLOT_BYTES + spare_slots;
}

void chunk_store_promise(struct chunk_store *store, uint64_t *promise, uint64_t more_bytes)
{
    uint64_t used;

    sim_chunks_space(store, &used)->promised_bytes += more_bytes;
    *promise += more_bytes;
}

void chunk_store_unpromise(struct chunk_store *store, uint64_t *promise)
{
    uint64_t used;

    sim_chunks_space(store, &used)->promised_bytes -= *promise;
    *promise = 0;
}

void chunk_store_stat(struct chunk_store *store, struct chunk_stat *ret_stat)
{
    uint64_t used;
    const struct mem_space *s = sim_chunks_space(store, &used);

    *ret_stat = (struct chunk_stat){
        .total_bytes = GIB,
        .free_bytes = space_bytes(s, used),
        .promised_bytes = s->bound == SPACE_ENOUGH ? 0 : s->promised_bytes,
    };
}

/* ---- what needs no disk ---- */

void chunk_store_options_default(struct chunk_store_options *o)
{
    memset(o, 0, sizeof *o);
}

bool chunk_store_commits_at_once(const struct chunk_store *s, uint32_t len)
{
    (void)s, (void)len;
    return sim_commits_at_once() && sim_now() / NS_PER_S % 4;
}

bool chunk_store_is_away(const struct chunk_store *s)
{
    (void)s;
    return false;
}

int chunk_store_list(struct chunk_store *s, bool first, uint64_t ino, uint64_t chunk,
                     uint64_t only_ino, struct chunk_list_item *out, uint32_t max)
{
    (void)s, (void)first, (void)ino, (void)chunk, (void)only_ino, (void)out, (void)max;
    return 0;
}
