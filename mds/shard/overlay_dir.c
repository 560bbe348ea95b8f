/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the overlay has of a directory, and listing it from there.
 *
 * The store finds the next name by following a pointer into memory that no cache of the processor
 * has, and copies and compares each on the way; here are all the names of a directory that was
 * filled a while ago.
 *
 * Happy path: the first page puts the directory's groups in the order of their hashes (a roll), the
 * pages behind it go on there; the last one lets go of it. What is about to be read is asked for
 * some names ahead. Failure modes: a roll that there is no memory for, that would cost more than
 * the page is worth, or of a directory that is not all here, is not made: the store has it too. A
 * change of the directory ends its roll, and what has to be written first ends a listing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/shard/overlay.h"

#define HASH_SEED_DIR   0x646972ull
#define AT_FIRST        4u
#define ROLLED_MAX      262144u /* groups in all rolls: 4 MiB */
#define ROLL_PER_WANTED 16u     /* putting so many in order costs as much as one from the store */
#define INSERTION_MAX   16u
#define AHEAD_GROUP     16u
#define AHEAD_NAME      8u

struct overlay_roll {
    struct list link; /* on overlay.rolls */
    struct overlay_dir *dir;
    uint32_t n;
    struct overlay_at at[];
};

static struct overlay_dir *dir_find(const struct overlay *v, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&v->dirs, hash_u64(ino ^ HASH_SEED_DIR)); n;
         n = hmap_next(n)) {
        struct overlay_dir *d = container_of(n, struct overlay_dir, node);

        if (d->ino == ino)
            return d;
    }
    return NULL;
}

static struct overlay_dir *dir_obtain(struct overlay *v, uint64_t ino)
{
    struct overlay_dir *d = dir_find(v, ino);

    if (d)
        return d;
    d = mem_zalloc(sizeof(*d));
    if (!d)
        return NULL;
    d->ino = ino;
    hmap_insert(&v->dirs, &d->node, hash_u64(ino ^ HASH_SEED_DIR));
    return d;
}

static void dir_put(struct overlay *v, struct overlay_dir *d)
{
    if (d->n)
        return;
    hmap_remove(&v->dirs, &d->node);
    mem_free(d->at);
    mem_free(d);
}

static void roll_drop(struct overlay *v, struct overlay_roll *r)
{
    r->dir->roll = NULL;
    v->rolled -= r->n;
    list_remove(&r->link);
    mem_free(r);
}

void overlay_dir_changes(struct overlay *v, struct overlay_dir *d)
{
    if (d->roll)
        roll_drop(v, d->roll);
}

int overlay_dir_enter(struct overlay *v, struct obj_group *g)
{
    struct overlay_dir *d = dir_obtain(v, g->parent);

    if (!d)
        return -ENOMEM;
    if (d->n == d->cap) {
        uint32_t cap = MAX(d->cap * 2, AT_FIRST);
        struct overlay_at *at =
            d->cap < UINT32_MAX / 2 ? mem_realloc(d->at, cap * sizeof(*at)) : NULL;

        if (!at) {
            dir_put(v, d);
            return -ENOMEM;
        }
        d->at = at;
        d->cap = cap;
    }
    overlay_dir_changes(v, d);
    g->dir = d;
    g->at = d->n;
    d->at[d->n++] = (struct overlay_at){.hash = g->hash, .group = g};
    return 0;
}

/* Who uses a few names of a directory keeps these, not the room that all of them have had: that is
 * counted with the groups, and was let go of with them. */
static void dir_shrink(struct overlay_dir *d)
{
    const uint32_t cap = d->cap / 2;
    struct overlay_at *at =
        cap >= AT_FIRST && d->n <= cap / 2 ? mem_realloc(d->at, cap * sizeof(*at)) : NULL;

    if (!at)
        return;
    d->at = at;
    d->cap = cap;
}

void overlay_dir_leave(struct overlay *v, struct obj_group *g)
{
    struct overlay_dir *d = g->dir;

    overlay_dir_changes(v, d);
    d->at[g->at] = d->at[--d->n]; /* its own place, when it is the last one */
    d->at[g->at].group->at = g->at;
    dir_shrink(d);
    dir_put(v, d);
}

void overlay_name_exists(struct obj_group *g, struct obj_name *n, bool exists)
{
    if (n->exists == exists)
        return;
    n->exists = exists;
    if (exists)
        g->dir->names++;
    else
        g->dir->names--;
}

/* Every name of it is here, so that another group has none. */
bool overlay_dir_is_whole(const struct overlay *v, const struct overlay_dir *d)
{
    const struct obj_inode *i = overlay_find_inode(v, d->ino);

    return i && i->exists && S_ISDIR(i->in.mode) && i->in.entries == d->names;
}

/* ---- in order ---- */

static int at_compare(const void *a, const void *b)
{
    const struct overlay_at *x = a, *y = b;

    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void sort_few(struct overlay_at *at, uint32_t n)
{
    if (n > INSERTION_MAX) {
        qsort(at, n, sizeof(*at), at_compare);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct overlay_at x = at[i];
        uint32_t j = i;

        for (; j > 0 && at[j - 1].hash > x.hash; j--)
            at[j] = at[j - 1];
        at[j] = x;
    }
}

/* Hashes are spread evenly (where somebody has seen to it that they are not it is qsort(3) that has
 * the work): as many shelves as there are groups, by their high bits, then the few on each. */
static void sort_into(struct overlay_at *to, const struct overlay_at *from, uint32_t n)
{
    unsigned bits = 0;
    uint32_t *end, begin = 0;

    while (bits < 20 && 1u << bits < n)
        bits++;
    end = mem_array((size_t)1 << bits, sizeof(*end));
    if (!end) {
        memcpy(to, from, n * sizeof(*to));
        qsort(to, n, sizeof(*to), at_compare);
        return;
    }
#define SHELF(hash) MIN((hash) >> (KEY_HASH_BITS - bits), ((uint64_t)1 << bits) - 1)
    for (uint32_t i = 0; i < n; i++)
        end[SHELF(from[i].hash)]++;
    for (uint32_t i = 0, sum = 0; i < 1u << bits; i++) { /* how many become where each begins */
        uint32_t count = end[i];

        end[i] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[end[SHELF(from[i].hash)]++] = from[i];
#undef SHELF
    for (uint32_t i = 0; i < 1u << bits; i++) {
        sort_few(to + begin, end[i] - begin);
        begin = end[i];
    }
    mem_free(end);
}

static struct overlay_roll *roll_make(struct overlay *v, struct overlay_dir *d, uint32_t wanted)
{
    struct overlay_roll *r;

    if (d->n / ROLL_PER_WANTED > wanted || d->n > ROLLED_MAX)
        return NULL;
    r = mem_alloc(sizeof(*r) + d->n * sizeof(*r->at));
    if (!r)
        return NULL;
    while (v->rolled + d->n > ROLLED_MAX)
        roll_drop(v, list_entry(v->rolls.next, struct overlay_roll, link));
    sort_into(r->at, d->at, d->n);
    r->dir = d;
    r->n = d->n;
    d->roll = r;
    v->rolled += r->n;
    list_push_back(&v->rolls, &r->link);
    return r;
}

/* The first with this hash or a higher one. */
static uint32_t roll_place(const struct overlay_roll *r, uint64_t hash)
{
    uint32_t from = 0, to = r->n;

    while (from < to) {
        uint32_t mid = from + (to - from) / 2;

        if (r->at[mid].hash < hash)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static int roll_list(const struct overlay_roll *r, uint32_t i, overlay_name_fn *fn, void *arg)
{
    int rc = 0;

    for (; i < r->n && rc == 0; i++) {
        const struct obj_group *g = r->at[i].group;

        if (i + AHEAD_GROUP < r->n)
            __builtin_prefetch(&r->at[i + AHEAD_GROUP].group->names);
        if (i + AHEAD_NAME < r->n) {
            const char *ahead = (const char *)r->at[i + AHEAD_NAME].group->names;

            __builtin_prefetch(ahead);
            __builtin_prefetch(ahead + sizeof(struct obj_name)); /* where the name is */
        }
        for (const struct obj_name *n = g->names; n && rc == 0; n = n->next)
            rc = fn(arg, r->at[i].hash, &n->d, n->name, n->name_len);
    }
    return rc;
}

int overlay_list(struct overlay *v, uint64_t dir, uint64_t from_hash, uint32_t wanted,
                 overlay_name_fn *fn, void *arg)
{
    struct overlay_dir *d = dir_find(v, dir);
    struct overlay_roll *r;
    int rc;

    if (!d || !list_empty(&v->dirty) || !overlay_dir_is_whole(v, d))
        return -ENOENT;
    r = d->roll ? d->roll : roll_make(v, d, wanted);
    if (!r)
        return -ENOENT;
    rc = roll_list(r, roll_place(r, from_hash), fn, arg);
    if (rc != 0) {
        list_remove(&r->link);
        list_push_back(&v->rolls, &r->link);
    } else {
        roll_drop(v, r);
    }
    return rc;
}
