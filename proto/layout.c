// SPDX-License-Identifier: Apache-2.0
/*
 * Layouts of new files, and the chain of a chunk. Pure; the arithmetic is published with test
 * vectors in docs/placement.md and must never change for an existing file.
 */
#include "proto/layout.h"

#include <errno.h>
#include <string.h>

#include "common/base/err.h"

#define LAYOUT_POOL_DEFAULT "default"

int layout_check(const struct msg_layout *l)
{
    bool ok = l->copies >= 1 && l->copies <= MSG_COPIES_MAX && l->table_len >= 1 &&
              l->table_len <= MAP_ITEMS_MAX && l->chunk_bytes >= LAYOUT_CHUNK_MIN &&
              l->chunk_bytes <= LAYOUT_CHUNK_MAX && (l->chunk_bytes & (l->chunk_bytes - 1)) == 0 &&
              l->stripe_count >= 1 && l->stripe_count <= l->table_len && l->start < l->table_len;

    return ok ? 0 : -AIFS_EPROTO;
}

const struct map_chain *layout_chain(const struct msg_layout *l, const struct cluster_map *m,
                                     uint64_t chunk)
{
    const struct map_table *t = map_table(m, l->pool, l->copies);

    if (!t || t->n_chains < l->table_len)
        return NULL;
    return map_chain(m, t->chains[layout_table_index(l, chunk)]);
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t layout_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

const struct map_pool *layout_pool_default(const struct cluster_map *m)
{
    const struct map_pool *p =
        map_pool_by_name(m, LAYOUT_POOL_DEFAULT, (uint32_t)strlen(LAYOUT_POOL_DEFAULT));

    return p || m->n_pools == 0 ? p : &m->pools[0];
}

static const struct map_pool *layout_pool(const struct cluster_map *m,
                                          const struct msg_stripe *const *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (s[i]->pool.len)
            return map_pool_by_name(m, s[i]->pool.data, s[i]->pool.len);
    }
    return layout_pool_default(m);
}

/* What a stripe asks for; each field from the first of s that has it. */
static void layout_gather(const struct msg_stripe *const *s, unsigned n, struct msg_stripe *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < n; i++) {
        if (!out->chunk_bytes)
            out->chunk_bytes = s[i]->chunk_bytes;
        if (!out->copies)
            out->copies = s[i]->copies;
        if (!out->stripe_count && !out->all) {
            out->stripe_count = s[i]->all ? 0 : s[i]->stripe_count;
            out->all = s[i]->all;
        }
        if (!out->has_start && s[i]->has_start) {
            out->has_start = true;
            out->start = s[i]->start;
        }
    }
}

static bool layout_pool_has_targets(const struct cluster_map *m, uint32_t pool)
{
    for (uint32_t i = 0; i < m->n_tables; i++) {
        if (m->tables[i].pool == pool && m->tables[i].n_chains)
            return true;
    }
    return false;
}

void layout_turn(const struct cluster_map *m, uint64_t turn, struct msg_layout *l)
{
    const struct map_table *t = map_table(m, l->pool, l->copies);

    if (t && map_table_live(t))
        l->start = t->first + (uint32_t)(turn % map_table_live(t));
}

int layout_make(const struct cluster_map *m, const struct msg_stripe *asked,
                const struct msg_stripe *inherited, uint64_t seed, struct msg_layout *ret_layout)
{
    const struct msg_stripe *s[2];
    const struct map_pool *pool;
    const struct map_table *t;
    struct msg_stripe want;
    struct msg_layout l = {0};
    uint32_t live;
    unsigned n = 0;

    if (asked && !asked->inherit)
        s[n++] = asked;
    if (inherited)
        s[n++] = inherited;
    layout_gather(s, n, &want);
    pool = layout_pool(m, s, n);
    if (!pool)
        return -ENOENT;
    if (!layout_pool_has_targets(m, pool->id))
        return -ENOSPC;
    l.pool = pool->id;
    l.copies = want.copies ? want.copies : 1;
    t = map_table(m, l.pool, l.copies);
    if (!t || t->n_chains == 0)
        return -EINVAL;
    live = map_table_live(t);
    if (live == 0)
        return -ENOSPC;
    l.table_len = t->n_chains;
    l.chunk_bytes = want.chunk_bytes ? want.chunk_bytes : LAYOUT_CHUNK_DEFAULT;
    l.stripe_count = want.all || !want.stripe_count ? live : MIN(want.stripe_count, live);
    l.start = (uint32_t)(want.has_start ? want.start : layout_mix(seed) % live);
    if (l.start >= live && !(asked && !asked->inherit && asked->has_start))
        l.start %= live; /* inherited from a directory that was made for another pool */
    if (l.start >= live)
        return -EINVAL;
    l.start += t->first;
    if (layout_check(&l))
        return -EINVAL;
    *ret_layout = l;
    return 0;
}
