// SPDX-License-Identifier: Apache-2.0
/*
 * Unused slots as receive buffers, on targets that live in memory (tmpfs): the transport copies a
 * payload into the mapped segment file, and the write that follows names the slot in the chunk's
 * record instead of copying once more.
 *
 * Happy path: chunk_store_place() takes a free slot that was written before, so that its pages are
 * there; its mapping is filled in (once: it stays), the payload lands, and the write takes the slot
 * with chunk_place_take() after its sums were checked. What no write takes goes back with
 * chunk_store_unplace().
 *
 * What is mapped and filled in is bounded: at the bound slots that hold data are let go, in turn,
 * so that free ones stay for the next writes, and free ones only where that is not enough (they are
 * of another size than is written); what is let go comes back as it is used. A slot that is mapped
 * whole is read and written there, by copying (io.c). Nothing is touched by our own code unless its
 * pages are allocated, so there is no SIGBUS, unless somebody else cuts segment files short; a file
 * system that is full, or a kernel that cannot fill in, means no place, and the write goes the
 * ordinary way and meets the error there.
 */
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/stream.h"
#include "common/fault/fault.h"
#include "oss/chunk/store_int.h"

#define PLACE_MIN_BYTES  (64u * KIB)
#define PLACE_FREE_BYTES (32ull * MIB) /* on a target with less room slots are for data only */
#define PLACES_MAX       16u           /* given out and not taken */
#define LET_GO_BYTES     (8ull * MIB)  /* and what is asked for, at a time */
#define LOOKS_MAX        8192ull       /* mapped slots looked at for it */

enum { SLOT_FRESH, SLOT_WRITTEN, SLOT_MAPPED };

static struct chunk_slot_states *states_of(struct chunk_store *s, unsigned class)
{
    return &s->slot_states[class - CHUNK_CLASS_MIN];
}

static uint8_t state_get(struct chunk_store *s, struct chunk_slot slot)
{
    const struct chunk_slot_states *t = states_of(s, slot.class);

    return slot.number < t->n ? t->state[slot.number] : SLOT_FRESH;
}

static void state_set(struct chunk_store *s, struct chunk_slot slot, uint8_t to)
{
    struct chunk_slot_states *t = states_of(s, slot.class);
    uint8_t *was = &t->state[slot.number];

    if (*was == SLOT_MAPPED) {
        s->mapped_bytes -= 1ull << slot.class;
        t->n_mapped--;
    }
    if (to == SLOT_MAPPED) {
        s->mapped_bytes += 1ull << slot.class;
        t->n_mapped++;
    }
    *was = to;
}

void chunk_place_written(struct chunk_store *s, struct chunk_slot slot)
{
    struct chunk_slot_states *t = states_of(s, slot.class);

    if (slot.class > CHUNK_PLACE_CLASS_MAX || !s->seg.in_memory || !s->options.mapped_bytes)
        return;
    if (slot.number >= t->n) {
        uint32_t n = MAX(t->n, 256u);
        uint8_t *state;

        while (n <= slot.number)
            n *= 2;
        state = mem_realloc(t->state, n);
        if (!state)
            return; /* then it is never a place */
        memset(state + t->n, SLOT_FRESH, n - t->n);
        t->state = state;
        t->n = n;
    }
    if (t->state[slot.number] == SLOT_FRESH)
        t->state[slot.number] = SLOT_WRITTEN;
}

/* ---- the mapping ---- */

/* The hand goes round over all mapped slots. There is one. */
static struct chunk_slot next_mapped(struct chunk_store *s)
{
    struct chunk_slot *hand = &s->map_hand;
    const struct chunk_slot_states *t;
    const uint8_t *at = NULL;

    ASSERT(s->mapped_bytes);
    for (;;) {
        if (hand->class >= CHUNK_CLASS_MIN) {
            t = states_of(s, hand->class);
            if (t->n_mapped && hand->number < t->n)
                at = memchr(t->state + hand->number, SLOT_MAPPED, t->n - hand->number);
            if (at)
                break;
        }
        hand->class = hand->class >= CHUNK_CLASS_MIN && hand->class < CHUNK_PLACE_CLASS_MAX
                          ? (uint8_t)(hand->class + 1)
                          : CHUNK_CLASS_MIN;
        hand->number = 0;
    }
    hand->number = (uint32_t)(at - t->state) + 1;
    stat_inc(&s->n_map_looks);
    return (struct chunk_slot){.number = hand->number - 1, .class = hand->class};
}

static uint64_t n_mapped(struct chunk_store *s)
{
    uint64_t n = 0;

    for (unsigned class = CHUNK_CLASS_MIN; class <= CHUNK_PLACE_CLASS_MAX; class ++)
        n += states_of(s, class)->n_mapped;
    return n;
}

/* In one round at most, until no more than keep bytes are mapped: slots that hold data, or any. */
static void let_go(struct chunk_store *s, uint64_t keep, bool any)
{
    for (uint64_t left = MIN(n_mapped(s), LOOKS_MAX); left && s->mapped_bytes > keep; left--) {
        struct chunk_slot slot = next_mapped(s);

        if (any || slots_is_used(&s->slots, slot)) {
            state_set(s, slot, SLOT_WRITTEN);
            s->ready.lost |= slot_equal(slot, s->ready.slot);
            seg_unmap_slot(&s->seg, slot);
        }
    }
}

/* Makes room for bytes by letting go of slots that hold data, in turn, and where these are not
 * enough of any (free ones would have to be filled in again). LET_GO_BYTES more than needed go, so
 * that looking for them is rare. */
static bool mapping_has_room(struct chunk_store *s, uint64_t bytes, bool any)
{
    uint64_t bound = s->options.mapped_bytes;
    uint64_t keep = bound - MIN(bound, bytes + MIN(LET_GO_BYTES, bound / 8));

    if (s->mapped_bytes + bytes <= bound)
        return true;
    let_go(s, keep, false);
    if (any)
        let_go(s, keep, true);
    return s->mapped_bytes + bytes <= bound;
}

/* The slot's memory, every page of it there and writable. */
static uint8_t *slot_memory(struct chunk_store *s, struct chunk_slot slot)
{
    size_t bytes = (size_t)1 << slot.class;
    uint8_t *at = seg_map(&s->seg, slot);

    if (!at || state_get(s, slot) == SLOT_MAPPED)
        return at;
    if (!mapping_has_room(s, bytes, true) || FAULT("chunk.map") ||
        madvise(at, bytes, MADV_POPULATE_WRITE) < 0) {
        LOG_DEBUG(s->tag, "a slot cannot be mapped: %m");
        return NULL;
    }
    state_set(s, slot, SLOT_MAPPED);
    return at;
}

int chunk_place_prepare(struct chunk_store *s, struct chunk_slot slot, uint8_t **ret_at)
{
    uint8_t *at;

    if (state_get(s, slot) == SLOT_MAPPED)
        return 0;
    if (!mapping_has_room(s, 1ull << slot.class, false) || FAULT("chunk.map"))
        return -ENOSPC;
    chunk_place_written(s, slot); /* its pages are there as soon as they are filled in */
    at = seg_map(&s->seg, slot);
    if (!at || state_get(s, slot) == SLOT_FRESH)
        return -ENOMEM;
    *ret_at = at;
    return 1;
}

void chunk_place_prepared(struct chunk_store *s, struct chunk_slot slot)
{
    if (state_get(s, slot) == SLOT_WRITTEN &&
        s->mapped_bytes + (1ull << slot.class) <= s->options.mapped_bytes)
        state_set(s, slot, SLOT_MAPPED);
}

uint8_t *chunk_place_mapped(struct chunk_store *s, struct chunk_slot slot)
{
    if (slot.class > CHUNK_PLACE_CLASS_MAX || state_get(s, slot) != SLOT_MAPPED)
        return NULL;
    return seg_map(&s->seg, slot);
}

/* ---- places ---- */

/* Would a write of the first len bytes replace all that the chunk has? */
static bool replaces(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t len)
{
    const struct chunk *c = chunk_find(s, ino, chunk);

    return !c || c->len <= len;
}

bool chunk_store_place(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t offset,
                       uint32_t len, struct chunk_place *ret_place)
{
    unsigned class = slots_class_for(len);
    struct chunk_slot slot, got;
    uint8_t *data;

    s->n_ops++;
    if (offset || len < PLACE_MIN_BYTES || len > CHUNK_IO_MAX || len % CHUNK_BLOCK ||
        !s->seg.in_memory || (1ull << class) > s->options.mapped_bytes || s->failed ||
        s->n_places >= PLACES_MAX || slots_free_bytes(&s->slots) < PLACE_FREE_BYTES ||
        !replaces(s, ino, chunk, len))
        return false;
    if (!slots_next(&s->slots, class, &slot) || state_get(s, slot) == SLOT_FRESH)
        return false;
    data = slot_memory(s, slot);
    if (!data || slots_alloc(&s->slots, class, SLOTS_NEW, &got) < 0)
        return false;
    ASSERT(got.class == slot.class && got.number == slot.number);
    s->n_places++;
    *ret_place = (struct chunk_place){.store = s, .slot = slot, .data = data};
    return true;
}

/* Past the caches: a slot is written as a whole, and not read again before many others were. */
void chunk_store_land(struct chunk_place *p, const void *data, uint32_t len)
{
    const uint8_t *from = data;
    uint8_t *to = p->data + p->landed;
    uint32_t n;

    ASSERT(len <= (1u << p->slot.class) - p->landed);
    for (uint32_t at = 0; at < len; at += n) {
        n = MIN(len - at, CHUNK_BLOCK);
        if (n == CHUNK_BLOCK && p->crcs && p->checked == p->landed + at &&
            crc32c(from + at, n) == p->crcs[p->checked / CHUNK_BLOCK])
            p->checked += n;
        stream_copy(to + at, from + at, n);
    }
    p->landed += len;
}

uint32_t chunk_place_checked(const struct chunk_op *op)
{
    const struct chunk_place *p = op->place;

    if (p)
        stream_end(); /* from here on others may see it */
    return p && p->crcs && p->crcs == op->crcs && p->data == op->data && !op->offset
               ? MIN(p->checked, op->len)
               : 0;
}

void chunk_store_unplace(struct chunk_place *p)
{
    struct chunk_store *s = p->store;

    if (!p->slot.class)
        return;
    /* Whatever kept the payload from landing: the mapping is looked at again before the next. */
    state_set(s, p->slot, SLOT_WRITTEN);
    s->n_places--;
    slots_free(&s->slots, p->slot);
    p->slot.class = 0;
}

bool chunk_place_fits(const struct chunk_op *op)
{
    const struct chunk_place *p = op->place;

    return p && p->slot.class && p->data == op->data && !op->offset && op->len % CHUNK_BLOCK == 0 &&
           op->len >= op->c->len && op->len <= 1u << p->slot.class;
}

int chunk_place_take(struct chunk_op *op)
{
    struct chunk_store *s = op->store;
    uint64_t offset;

    op->write.slot = op->place->slot;
    op->write.placed = true;
    op->place->slot.class = 0;
    s->n_places--;
    stat_inc(&s->n_placed);
    /* The payload landed before: whatever sync follows covers it. */
    seg_of_slot(&s->seg, op->write.slot, &offset)->dirty = true;
    if (!FAULT("chunk.write"))
        return 0;
    stat_inc(&s->n_errors);
    return -EIO;
}

/* ---- space that comes and goes ---- */

static int places_back(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    return seg_slots_ops.back(arg, class, first, n);
}

static void places_unback(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    struct chunk_store *s = container_of(arg, struct chunk_store, seg);
    const struct chunk_slot_states *t = states_of(s, class);

    if (s->failed) /* which slots the index names is known after a restart */
        return;
    for (uint32_t k = first; k < first + n && k < t->n; k++)
        state_set(s, (struct chunk_slot){.number = k, .class = (uint8_t) class}, SLOT_FRESH);
    s->ready.lost = true;
    seg_slots_ops.unback(arg, class, first, n);
}

const struct slots_ops chunk_place_slots_ops = {places_back, places_unback};

void chunk_places_free(struct chunk_store *s)
{
    ASSERT(!s->n_places);
    for (unsigned i = 0; i < SLOTS_CLASSES; i++)
        mem_free(s->slot_states[i].state);
}
