// SPDX-License-Identifier: Apache-2.0
/*
 * Chained hash map: a power-of-two table of singly linked chains. Inserting pushes on a chain and
 * doubles the table when there are as many elements as chains. The only thing that can fail is
 * memory: fatal for hmap_init() alone, afterwards the chains just get longer.
 *
 * hash_u64() is the finaliser of splitmix64 (Steele, Lea, Flood 2014); hash_bytes() folds 8 bytes
 * at a time by a 64 x 64 -> 128 bit product.
 */
#include "common/base/hmap.h"

#include <errno.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/bytes.h"
#include "common/base/mem.h"

#define MIN_BUCKETS 8u
#define MAX_BUCKETS ((size_t)1 << 40)
#define NEAR_BITS   3

static struct hmap_node **bucket_of(const struct hmap *m, uint64_t hash)
{
    return &m->buckets[hash & (m->n_buckets - 1)];
}

int hmap_init(struct hmap *m, size_t expected)
{
    size_t n = MIN_BUCKETS;

    while (n < expected && n < MAX_BUCKETS)
        n *= 2;
    m->buckets = mem_array(n, sizeof *m->buckets);
    if (!m->buckets)
        return -ENOMEM;
    m->n_buckets = n;
    m->count = 0;
    return 0;
}

void hmap_fini(struct hmap *m)
{
    mem_free(m->buckets);
    m->buckets = NULL;
    m->n_buckets = 0;
    m->count = 0;
}

static void hmap_grow(struct hmap *m)
{
    struct hmap old = *m;
    size_t i;

    if (old.n_buckets >= MAX_BUCKETS)
        return;
    m->buckets = mem_array(old.n_buckets * 2, sizeof *m->buckets);
    if (!m->buckets) {
        m->buckets = old.buckets;
        return;
    }
    m->n_buckets = old.n_buckets * 2;
    for (i = 0; i < old.n_buckets; i++) {
        while (old.buckets[i]) {
            struct hmap_node *n = old.buckets[i];
            struct hmap_node **b = bucket_of(m, n->hash);

            old.buckets[i] = n->next;
            n->next = *b;
            *b = n;
        }
    }
    mem_free(old.buckets);
}

void hmap_insert(struct hmap *m, struct hmap_node *n, uint64_t hash)
{
    struct hmap_node **b;

    if (m->count >= m->n_buckets)
        hmap_grow(m);
    b = bucket_of(m, hash);
    n->hash = hash;
    n->next = *b;
    *b = n;
    m->count++;
}

void hmap_remove(struct hmap *m, struct hmap_node *n)
{
    struct hmap_node **link = bucket_of(m, n->hash);

    while (*link != n) {
        ASSERT(*link);
        link = &(*link)->next;
    }
    *link = n->next;
    n->next = NULL;
    m->count--;
}

static struct hmap_node *find_from(struct hmap_node *n, uint64_t hash)
{
    while (n && n->hash != hash)
        n = n->next;
    return n;
}

struct hmap_node *hmap_first(const struct hmap *m, uint64_t hash)
{
    return find_from(*bucket_of(m, hash), hash);
}

struct hmap_node *hmap_next(const struct hmap_node *n)
{
    return find_from(n->next, n->hash);
}

struct hmap_node *hmap_walk(const struct hmap *m, size_t *pos, struct hmap_node *prev_next)
{
    if (prev_next)
        return prev_next;
    while (*pos < m->n_buckets) {
        struct hmap_node *n = m->buckets[(*pos)++];

        if (n)
            return n;
    }
    return NULL;
}

uint64_t hash_u64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t hash_near(uint64_t x, uint64_t salt)
{
    return hash_u64((x >> NEAR_BITS) ^ salt) << NEAR_BITS | (x & ((1u << NEAR_BITS) - 1));
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 r = (unsigned __int128)a * b;

    return (uint64_t)r ^ (uint64_t)(r >> 64);
}

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = hash_u64(seed ^ len);
    unsigned char tail[8] = {0};

    for (; len >= 8; p += 8, len -= 8)
        h = fold(h ^ le64_load(p), 0x9e3779b97f4a7c15u) + 0xbf58476d1ce4e5b9u;
    if (len)
        memcpy(tail, p, len);
    return hash_u64(fold(h ^ le64_load(tail), 0x94d049bb133111ebu));
}
