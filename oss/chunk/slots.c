// SPDX-License-Identifier: Apache-2.0
/*
 * Slot allocation: first free slot of the first backed group that has one, else the first group
 * without space gets some. Freeing the last slot of a group keeps its space up to keep_bytes, then
 * gives it back. Fails with ENOSPC before anything is changed.
 */
#include "oss/chunk/slots.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#define SLOTS_GROUP_MAX (8ull * MIB)
#define PROMISED_GROUPS 3u /* kept on top of promises: a chunk grows through so many classes */

static struct slots_class *slots_class(struct slots *s, unsigned class)
{
    ASSERT(class >= CHUNK_CLASS_MIN && class <= CHUNK_CLASS_MAX);
    return &s->classes[class - CHUNK_CLASS_MIN];
}

static uint64_t group_bytes(const struct slots_class *c, unsigned class)
{
    return (uint64_t)c->group_slots << class;
}

unsigned slots_class_for(uint32_t len)
{
    unsigned class = CHUNK_CLASS_MIN;

    while (class < CHUNK_CLASS_MAX && len > (1u << class))
        class ++;
    return class;
}

int slots_init(struct slots *s, uint64_t capacity_bytes, uint64_t reserve_bytes,
               const struct slots_ops *ops, void *arg)
{
    uint64_t group = SLOTS_GROUP_MAX;

    memset(s, 0, sizeof *s);
    while (group > (1u << CHUNK_CLASS_MIN) && group > capacity_bytes / 64)
        group /= 2;
    s->group_bytes = group;
    s->capacity_bytes = capacity_bytes;
    s->reserve_bytes = reserve_bytes;
    s->keep_bytes = MIN(64ull * MIB, capacity_bytes / 8);
    s->ops = ops;
    s->arg = arg;
    for (unsigned i = 0; i < SLOTS_CLASSES; i++) {
        uint64_t n = group >> (i + CHUNK_CLASS_MIN);

        s->classes[i].group_slots = n ? (uint32_t)n : 1;
    }
    return 0;
}

void slots_fini(struct slots *s)
{
    for (unsigned i = 0; i < SLOTS_CLASSES; i++) {
        mem_free(s->classes[i].bitmap);
        mem_free(s->classes[i].groups);
    }
    memset(s, 0, sizeof *s);
}

static int class_grow(struct slots_class *c, uint32_t n_groups)
{
    uint32_t cap = MAX(c->cap_groups, 16u);
    uint64_t *bitmap;
    struct slots_group *groups;
    size_t words, old_words;

    if (n_groups > c->cap_groups) {
        while (cap < n_groups)
            cap *= 2;
        words = ((size_t)cap * c->group_slots + 63) / 64;
        old_words = c->cap_groups ? ((size_t)c->cap_groups * c->group_slots + 63) / 64 : 0;
        bitmap = mem_realloc(c->bitmap, words * 8);
        if (!bitmap)
            return -ENOMEM;
        c->bitmap = bitmap;
        groups = mem_realloc(c->groups, cap * sizeof *groups);
        if (!groups)
            return -ENOMEM;
        c->groups = groups;
        memset(bitmap + old_words, 0, (words - old_words) * 8);
        memset(groups + c->cap_groups, 0, (cap - c->cap_groups) * sizeof *groups);
        c->cap_groups = cap;
    }
    c->n_groups = MAX(c->n_groups, n_groups);
    return 0;
}

static bool bit_get(const struct slots_class *c, uint32_t n)
{
    return c->bitmap[n / 64] >> (n % 64) & 1;
}

bool slots_is_used(const struct slots *s, struct chunk_slot slot)
{
    const struct slots_class *c = &s->classes[slot.class - CHUNK_CLASS_MIN];

    return slot.number / c->group_slots < c->n_groups && bit_get(c, slot.number);
}

bool slots_is_backed(const struct slots *s, struct chunk_slot slot)
{
    const struct slots_class *c = &s->classes[slot.class - CHUNK_CLASS_MIN];
    uint32_t g = slot.number / c->group_slots;

    return g < c->n_groups && c->groups[g].backed;
}

int slots_mark(struct slots *s, struct chunk_slot slot)
{
    struct slots_class *c = slots_class(s, slot.class);
    uint32_t g = slot.number / c->group_slots;
    int rc = g >= UINT32_MAX / 2 ? -AIFS_ECORRUPT : class_grow(c, g + 1);

    if (rc)
        return rc;
    if (bit_get(c, slot.number))
        return -EEXIST;
    c->bitmap[slot.number / 64] |= 1ull << (slot.number % 64);
    if (!c->groups[g].backed) {
        c->groups[g].backed = true;
        s->backed_bytes += group_bytes(c, slot.class);
    }
    c->groups[g].used++;
    s->used_bytes += 1ull << slot.class;
    return 0;
}

static void group_unback(struct slots *s, unsigned class, uint32_t g)
{
    struct slots_class *c = slots_class(s, class);

    c->groups[g].backed = false;
    s->backed_bytes -= group_bytes(c, class);
    s->empty_bytes -= group_bytes(c, class);
    s->ops->unback(s->arg, class, g * c->group_slots, c->group_slots);
}

/* Gives empty groups back until want bytes could be backed, or (want 0) all of them. */
static void reclaim(struct slots *s, uint64_t want)
{
    for (unsigned i = 0; i < SLOTS_CLASSES && s->empty_bytes; i++) {
        struct slots_class *c = &s->classes[i];

        for (uint32_t g = 0; g < c->n_groups; g++) {
            if (want && s->backed_bytes + want <= s->capacity_bytes)
                return;
            if (c->groups[g].backed && !c->groups[g].used)
                group_unback(s, i + CHUNK_CLASS_MIN, g);
        }
    }
}

/* spare: others may lose their empty groups for it. hold: so much of the capacity is left alone. */
static int group_back(struct slots *s, unsigned class, bool spare, uint64_t hold,
                      uint32_t *ret_group)
{
    struct slots_class *c = slots_class(s, class);
    uint64_t bytes = group_bytes(c, class);
    uint32_t g = 0;
    int rc;

    if (spare && s->backed_bytes + bytes + hold > s->capacity_bytes)
        reclaim(s, bytes + hold);
    if (s->backed_bytes + bytes + hold > s->capacity_bytes)
        return -ENOSPC;
    while (g < c->n_groups && c->groups[g].backed)
        g++;
    rc = class_grow(c, g + 1);
    if (rc)
        return rc;
    rc = s->ops->back(s->arg, class, g * c->group_slots, c->group_slots);
    if (rc == -ENOSPC && spare && s->empty_bytes) {
        reclaim(s, 0);
        rc = s->ops->back(s->arg, class, g * c->group_slots, c->group_slots);
    }
    if (rc)
        return rc;
    c->groups[g].backed = true;
    c->hint = MIN(c->hint, g);
    s->backed_bytes += bytes;
    s->empty_bytes += bytes;
    *ret_group = g;
    return 0;
}

static uint32_t group_first_free(const struct slots_class *c, uint32_t g)
{
    uint32_t n = g * c->group_slots;

    while (bit_get(c, n))
        n++;
    ASSERT(n < (g + 1) * c->group_slots);
    return n;
}

/* The first backed group with a free slot, or n_groups. */
static uint32_t class_first_room(struct slots_class *c)
{
    uint32_t g = c->hint;

    while (g < c->n_groups && (!c->groups[g].backed || c->groups[g].used == c->group_slots))
        g++;
    c->hint = g;
    return g;
}

bool slots_next(struct slots *s, unsigned class, struct chunk_slot *ret_slot)
{
    struct slots_class *c = slots_class(s, class);
    uint32_t g = class_first_room(c);

    if (g == c->n_groups)
        return false;
    *ret_slot = (struct chunk_slot){.number = group_first_free(c, g), .class = (uint8_t) class};
    return true;
}

/* What others have been promised, as groups. */
static uint64_t held_bytes(const struct slots *s, uint64_t own)
{
    uint64_t others = s->promised_bytes - MIN(own, s->promised_bytes);

    return own || !others ? others : others + PROMISED_GROUPS * s->group_bytes;
}

/* For one who has been promised own of the promised bytes: they stay promised. */
static int alloc_promised(struct slots *s, unsigned class, enum slots_use use, uint64_t own,
                          struct chunk_slot *ret_slot)
{
    struct slots_class *c = slots_class(s, class);
    uint64_t others = s->promised_bytes - MIN(own, s->promised_bytes);
    uint64_t reserve = use == SLOTS_NEW ? s->reserve_bytes : 0;
    uint32_t g, n;
    int rc;

    if (s->used_bytes + (1ull << class) + reserve + others > s->capacity_bytes)
        return -ENOSPC;
    g = class_first_room(c);
    if (g == c->n_groups) {
        rc = group_back(s, class, true, use == SLOTS_NEW ? held_bytes(s, own) : 0, &g);
        if (rc)
            return rc;
        c->late_bytes += group_bytes(c, class);
    }
    n = group_first_free(c, g);
    c->bitmap[n / 64] |= 1ull << (n % 64);
    if (!c->groups[g].used++)
        s->empty_bytes -= group_bytes(c, class);
    s->used_bytes += 1ull << class;
    c->taken_bytes += 1ull << class;
    *ret_slot = (struct chunk_slot){.number = n, .class = (uint8_t) class};
    return 0;
}

int slots_alloc(struct slots *s, unsigned class, enum slots_use use, struct chunk_slot *ret_slot)
{
    return alloc_promised(s, class, use, 0, ret_slot);
}

int slots_alloc_owed(struct slots *s, unsigned class, enum slots_use use, uint64_t *promise,
                     uint64_t keep, struct chunk_slot *ret_slot)
{
    uint64_t own = *promise > keep ? *promise - keep : 0;
    int rc = own ? alloc_promised(s, class, use, own, ret_slot) : -ENOSPC;

    if (!rc) {
        own = MIN(own, 1ull << class);
        *promise -= own;
        s->promised_bytes -= own;
    }
    return rc;
}

/* Of one class, the highest first: allocation begins with the lowest. */
static void class_trim(struct slots *s, unsigned class, uint64_t keep_bytes)
{
    const struct slots_class *c = slots_class(s, class);

    for (uint32_t g = c->n_groups; g-- > 0 && s->empty_bytes > keep_bytes;)
        if (c->groups[g].backed && !c->groups[g].used)
            group_unback(s, class, g);
}

static void trim_others(struct slots *s, unsigned class, uint64_t keep_bytes)
{
    for (unsigned k = CHUNK_CLASS_MAX; k >= CHUNK_CLASS_MIN; k--)
        if (k != class)
            class_trim(s, k, keep_bytes);
}

void slots_trim(struct slots *s, unsigned class, uint64_t keep_bytes)
{
    trim_others(s, class, keep_bytes);
    class_trim(s, class, keep_bytes);
}

int slots_back_ahead(struct slots *s, unsigned class)
{
    uint64_t bytes = group_bytes(slots_class(s, class), class);
    uint32_t g;

    if (bytes > s->keep_bytes)
        return -ENOSPC;
    trim_others(s, class, s->keep_bytes - bytes);
    return s->empty_bytes + bytes <= s->keep_bytes
               ? group_back(s, class, false, held_bytes(s, 0), &g)
               : -ENOSPC;
}

bool slots_free_from(struct slots *s, unsigned class, uint32_t from, struct chunk_slot *ret_slot)
{
    const struct slots_class *c = slots_class(s, class);

    for (uint32_t n = from; n / c->group_slots < c->n_groups; n++) {
        const struct slots_group *g = &c->groups[n / c->group_slots];

        if (!g->backed || g->used == c->group_slots) {
            n += c->group_slots - n % c->group_slots - 1;
        } else if (!bit_get(c, n)) {
            *ret_slot = (struct chunk_slot){.number = n, .class = (uint8_t) class};
            return true;
        }
    }
    return false;
}

void slots_free(struct slots *s, struct chunk_slot slot)
{
    struct slots_class *c = slots_class(s, slot.class);
    uint32_t g = slot.number / c->group_slots;

    ASSERT(g < c->n_groups && bit_get(c, slot.number));
    c->bitmap[slot.number / 64] &= ~(1ull << (slot.number % 64));
    s->used_bytes -= 1ull << slot.class;
    c->hint = MIN(c->hint, g);
    if (--c->groups[g].used == 0) {
        s->empty_bytes += group_bytes(c, slot.class);
        if (s->empty_bytes > s->keep_bytes)
            group_unback(s, slot.class, g);
    }
}

uint64_t slots_free_bytes(const struct slots *s)
{
    uint64_t gone = s->used_bytes + s->reserve_bytes;

    return gone < s->capacity_bytes ? s->capacity_bytes - gone : 0;
}

void slots_unback_rest(struct slots *s, unsigned class, uint32_t n_slots)
{
    struct slots_class *c = slots_class(s, class);
    uint32_t n_groups = (n_slots + c->group_slots - 1) / c->group_slots, first;

    for (uint32_t g = 0; g < n_groups; g++) {
        first = g;
        while (g < n_groups && !(g < c->n_groups && c->groups[g].backed))
            g++;
        if (g > first)
            s->ops->unback(s->arg, class, first * c->group_slots, (g - first) * c->group_slots);
    }
}
