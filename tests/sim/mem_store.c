/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mds/store/store.h in memory, in the stead of RocksDB: what was committed outlives the handle, as
 * a disk would, until sim_store_forget(). Every key keeps all its versions, so a snapshot is a
 * number. A store can be told to fail its commits: that is the moment of a crash.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "mds/store/store.h"
#include "tests/sim/sim.h"

struct version {
    struct version *older;
    uint64_t seq;
    size_t len;
    bool deleted;
    uint8_t data[];
};

struct record {
    struct version *newest;
    size_t len;
    uint8_t key[KEY_MAX_BYTES];
};

struct store { /* lives on when it is closed */
    struct list link;
    char path[160];
    bool open, failing;
    uint64_t seq;
    struct record **records; /* sorted */
    size_t n, cap;
};

struct change {
    struct list link;
    bool deleted;
    size_t key_len, len;
    uint8_t data[]; /* key, value */
};

struct store_batch {
    struct list changes;
    size_t bytes;
};

struct store_snapshot {
    uint64_t seq;
};

struct store_iter {
    struct store *store;
    uint64_t seq;
    size_t prefix_len, at;
    uint8_t prefix[KEY_MAX_BYTES], key[KEY_MAX_BYTES];
    size_t key_len;
    const struct version *now;
};

static struct list stores = {&stores, &stores};

static int key_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    int c = memcmp(a, b, MIN(a_len, b_len));

    return c ? c : (a_len > b_len) - (a_len < b_len);
}

/* The first record whose key is not below. */
static size_t find(const struct store *s, const void *key, size_t len)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (key_compare(s->records[mid]->key, s->records[mid]->len, key, len) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static const struct version *version_at(const struct record *r, uint64_t seq)
{
    const struct version *v = r->newest;

    while (v && v->seq > seq)
        v = v->older;
    return v && !v->deleted ? v : NULL;
}

/* ---- life ---- */

int store_open(const char *path, const struct store_options *o, struct store **ret_store)
{
    struct list *l;
    struct store *s;

    list_for_each (l, &stores) {
        s = list_entry(l, struct store, link);
        if (strcmp(s->path, path) != 0)
            continue;
        SIM_CHECK(!s->open);
        s->open = true;
        s->failing = false;
        *ret_store = s;
        return 0;
    }
    if (!o->create)
        return -ENOENT;
    s = calloc(1, sizeof *s);
    SIM_CHECK(s && strlen(path) < sizeof s->path);
    strcpy(s->path, path);
    s->open = true;
    list_push_back(&stores, &s->link);
    *ret_store = s;
    return 0;
}

void store_close(struct store *s)
{
    if (s)
        s->open = false;
}

void sim_store_fail(const char *path)
{
    struct list *l;

    list_for_each (l, &stores)
        if (strcmp(list_entry(l, struct store, link)->path, path) == 0)
            list_entry(l, struct store, link)->failing = true;
}

static void record_free(struct record *r)
{
    struct version *v, *older;

    for (v = r->newest; v; v = older) {
        older = v->older;
        free(v);
    }
    free(r);
}

void sim_store_forget(void)
{
    struct list *l;

    while ((l = list_pop_front(&stores))) {
        struct store *s = list_entry(l, struct store, link);

        SIM_CHECK(!s->open);
        for (size_t i = 0; i < s->n; i++)
            record_free(s->records[i]);
        free(s->records);
        free(s);
    }
}

/* ---- reading ---- */

int store_get(struct store *s, const struct store_snapshot *snap, const void *key, size_t key_len,
              struct store_value *ret_value)
{
    size_t i = find(s, key, key_len);
    const struct version *v = NULL;

    if (i < s->n && key_compare(s->records[i]->key, s->records[i]->len, key, key_len) == 0)
        v = version_at(s->records[i], snap ? snap->seq : s->seq);
    if (!v)
        return -ENOENT;
    *ret_value = (struct store_value){.data = v->data, .len = v->len};
    return 0;
}

void store_value_release(struct store_value *v)
{
    *v = (struct store_value){0};
}

int store_multi_get(struct store *s, const struct store_snapshot *snap, size_t n,
                    const struct key *keys, struct store_value *ret_values)
{
    for (size_t i = 0; i < n; i++)
        if (store_get(s, snap, keys[i].b, keys[i].len, &ret_values[i]) < 0)
            ret_values[i] = (struct store_value){0};
    return 0;
}

int store_iter_create(struct store *s, const struct store_snapshot *snap, const void *prefix,
                      size_t prefix_len, struct store_iter **ret_iter)
{
    struct store_iter *it = calloc(1, sizeof *it);

    SIM_CHECK(it && prefix_len <= KEY_MAX_BYTES);
    it->store = s;
    it->seq = snap ? snap->seq : s->seq;
    it->prefix_len = prefix_len;
    memcpy(it->prefix, prefix, prefix_len);
    *ret_iter = it;
    store_iter_seek(it, prefix, prefix_len);
    return 0;
}

static void settle(struct store_iter *it)
{
    struct store *s = it->store;

    for (it->now = NULL; it->at < s->n; it->at++) {
        const struct record *r = s->records[it->at];

        if (r->len < it->prefix_len || memcmp(r->key, it->prefix, it->prefix_len) != 0)
            return;
        it->now = version_at(r, it->seq);
        if (!it->now)
            continue;
        memcpy(it->key, r->key, r->len);
        it->key_len = r->len;
        return;
    }
}

void store_iter_seek(struct store_iter *it, const void *key, size_t key_len)
{
    it->at = find(it->store, key, key_len);
    settle(it);
}

void store_iter_move(struct store_iter *it, const void *prefix, size_t prefix_len)
{
    SIM_CHECK(prefix_len == it->prefix_len);
    memcpy(it->prefix, prefix, prefix_len);
    store_iter_seek(it, prefix, prefix_len);
}

bool store_iter_valid(struct store_iter *it)
{
    return it->now != NULL;
}

void store_iter_next(struct store_iter *it)
{
    it->at = find(it->store, it->key, it->key_len) + 1; /* records may have come since */
    settle(it);
}

const void *store_iter_key(struct store_iter *it, size_t *ret_len)
{
    *ret_len = it->key_len;
    return it->key;
}

const void *store_iter_value(struct store_iter *it, size_t *ret_len)
{
    *ret_len = it->now->len;
    return it->now->data;
}

int store_iter_error(struct store_iter *it)
{
    (void)it;
    return 0;
}

void store_iter_destroy(struct store_iter *it)
{
    free(it);
}

int store_first(struct store *s, const struct key *from, const struct key *to, struct key *ret_key)
{
    for (size_t i = find(s, from->b, from->len); i < s->n; i++) {
        const struct record *r = s->records[i];

        if (key_compare(r->key, r->len, to->b, to->len) >= 0)
            break;
        if (!version_at(r, s->seq))
            continue;
        memcpy(ret_key->b, r->key, r->len);
        ret_key->len = (uint16_t)r->len;
        return 0;
    }
    return -ENOENT;
}

/* ---- writing ---- */

int store_batch_create(struct store *s, struct store_batch **ret_batch)
{
    struct store_batch *b = calloc(1, sizeof *b);

    (void)s;
    SIM_CHECK(b);
    list_init(&b->changes);
    *ret_batch = b;
    return 0;
}

static void batch_clear(struct store_batch *b)
{
    struct list *l;

    while ((l = list_pop_front(&b->changes)))
        free(list_entry(l, struct change, link));
    b->bytes = 0;
}

void store_batch_destroy(struct store_batch *b)
{
    if (!b)
        return;
    batch_clear(b);
    free(b);
}

static void batch_add(struct store_batch *b, bool deleted, const void *key, size_t key_len,
                      const void *value, size_t len)
{
    struct change *c = malloc(sizeof *c + key_len + len);

    SIM_CHECK(c && key_len <= KEY_MAX_BYTES);
    *c = (struct change){.deleted = deleted, .key_len = key_len, .len = len};
    memcpy(c->data, key, key_len);
    if (len)
        memcpy(c->data + key_len, value, len);
    list_push_back(&b->changes, &c->link);
    b->bytes += key_len + len;
}

void store_batch_put(struct store_batch *b, const void *key, size_t key_len, const void *value,
                     size_t value_len)
{
    batch_add(b, false, key, key_len, value, value_len);
}

void store_batch_delete(struct store_batch *b, const void *key, size_t key_len)
{
    batch_add(b, true, key, key_len, NULL, 0);
}

size_t store_batch_bytes(const struct store_batch *b)
{
    return b->bytes;
}

static struct record *record_make(struct store *s, size_t at, const void *key, size_t len)
{
    struct record *r = calloc(1, sizeof *r);

    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 256;
        s->records = realloc(s->records, s->cap * sizeof(struct record *));
    }
    SIM_CHECK(r && s->records);
    memmove(s->records + at + 1, s->records + at, (s->n - at) * sizeof(struct record *));
    memcpy(r->key, key, len);
    r->len = len;
    s->records[at] = r;
    s->n++;
    return r;
}

static void apply(struct store *s, const struct change *c)
{
    size_t at = find(s, c->data, c->key_len);
    struct version *v = malloc(sizeof *v + c->len);
    struct record *r;

    SIM_CHECK(v);
    if (at < s->n &&
        key_compare(s->records[at]->key, s->records[at]->len, c->data, c->key_len) == 0)
        r = s->records[at];
    else
        r = record_make(s, at, c->data, c->key_len);
    *v = (struct version){.older = r->newest, .seq = s->seq, .len = c->len, .deleted = c->deleted};
    memcpy(v->data, c->data + c->key_len, c->len);
    r->newest = v;
}

int store_commit(struct store *s, struct store_batch *b, bool sync)
{
    struct list *l;

    (void)sync;
    if (s->failing) {
        batch_clear(b);
        return -EIO;
    }
    s->seq++;
    list_for_each (l, &b->changes)
        apply(s, list_entry(l, struct change, link));
    batch_clear(b);
    return 0;
}

struct store_snapshot *store_snapshot_take(struct store *s)
{
    struct store_snapshot *snap = malloc(sizeof *snap);

    SIM_CHECK(snap);
    snap->seq = s->seq;
    return snap;
}

void store_snapshot_release(struct store *s, struct store_snapshot *snap)
{
    (void)s;
    free(snap);
}

enum store_flow store_flow(struct store *s)
{
    (void)s;
    return STORE_FLOWING;
}

uint64_t store_free_bytes(struct store *s)
{
    (void)s;
    return GIB;
}
