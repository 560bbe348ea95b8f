/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers' cache and its publication.
 *
 * Happy path: a reader finds its object under one stripe's lock and copies it out; after a commit
 * the writer replaces what changed and the snapshot, in one step for all readers. Failure modes: an
 * object that cannot be cached for lack of memory is dropped, and read from the snapshot next time:
 * slower, never wrong.
 */
#include "mds/shard/view_cache.h"

#include <string.h>

#include "common/base/err.h"

struct view_obj {
    struct hmap_node node;
    struct list link;
    uint64_t id, name_hash; /* inode: its number and 0; entry: parent and hash of the name */
    uint32_t bytes;
    uint8_t name_len; /* 0: an inode */
    union {
        struct mds_inode in;
        struct {
            struct mds_dirent d;
            char name[];
        } entry;
    } u;
};

int view_cache_init(struct view_cache *c, struct store *s, uint64_t limit_bytes)
{
    pthread_rwlockattr_t attr;

    memset(c, 0, sizeof(*c));
    c->store = s;
    c->stripe_limit_bytes = limit_bytes / VIEW_STRIPES;
    c->current = mem_zalloc(sizeof(*c->current));
    if (!c->current)
        return -ENOMEM;
    c->current->refs = 1;
    c->current->snap = store_snapshot_take(s);
    if (!c->current->snap) {
        mem_free(c->current);
        return -ENOMEM;
    }
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&c->publish, &attr);
    pthread_rwlockattr_destroy(&attr);
    for (unsigned i = 0; i < VIEW_STRIPES; i++) {
        struct view_stripe *t = &c->stripes[i];

        pthread_mutex_init(&t->lock, NULL);
        list_init(&t->lru);
        if (hmap_init(&t->map, 256) < 0) {
            view_cache_fini(c);
            return -ENOMEM;
        }
    }
    return 0;
}

static void view_obj_drop(struct view_stripe *t, struct view_obj *o)
{
    hmap_remove(&t->map, &o->node);
    list_remove(&o->link);
    t->bytes -= o->bytes;
    mem_free(o);
}

void view_cache_fini(struct view_cache *c)
{
    for (unsigned i = 0; i < VIEW_STRIPES; i++) {
        struct view_stripe *t = &c->stripes[i];

        if (!t->map.buckets)
            continue;
        while (!list_empty(&t->lru))
            view_obj_drop(t, list_entry(t->lru.next, struct view_obj, link));
        hmap_fini(&t->map);
        pthread_mutex_destroy(&t->lock);
    }
    view_snapshot_unref(c, c->current);
    pthread_rwlock_destroy(&c->publish);
}

void view_snapshot_unref(struct view_cache *c, struct shard_snapshot *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        store_snapshot_release(c->store, s->snap);
        mem_free(s);
    }
}

static uint64_t view_hash(uint64_t id, uint64_t name_hash)
{
    return name_hash ? hash_u64(id ^ hash_u64(name_hash)) : hash_near(id, 0);
}

static struct view_stripe *view_stripe(struct view_cache *c, uint64_t hash)
{
    return &c->stripes[hash >> 60];
}

static struct view_obj *view_find(struct view_stripe *t, uint64_t hash, uint64_t id,
                                  uint64_t name_hash, const void *name, uint32_t name_len)
{
    for (struct hmap_node *n = hmap_first(&t->map, hash); n; n = hmap_next(n)) {
        struct view_obj *o = container_of(n, struct view_obj, node);

        if (o->id == id && o->name_hash == name_hash && o->name_len == name_len &&
            (name_len == 0 || memcmp(o->u.entry.name, name, name_len) == 0))
            return o;
    }
    return NULL;
}

static void view_used(struct view_stripe *t, struct view_obj *o)
{
    if (o->link.next != &t->lru) {
        list_remove(&o->link);
        list_push_back(&t->lru, &o->link);
    }
}

/* The object, new if it was not there; NULL: out of memory. */
static struct view_obj *view_obtain(struct view_stripe *t, uint64_t limit, uint64_t hash,
                                    uint64_t id, uint64_t name_hash, const void *name,
                                    uint32_t name_len)
{
    struct view_obj *o = view_find(t, hash, id, name_hash, name, name_len);
    size_t bytes = MAX(sizeof(*o), offsetof(struct view_obj, u.entry.name) + name_len);

    if (o) {
        view_used(t, o);
        return o;
    }
    if (name_len)
        bytes = offsetof(struct view_obj, u.entry.name) + name_len;
    o = mem_alloc(bytes);
    if (!o)
        return NULL;
    o->id = id;
    o->name_hash = name_hash;
    o->name_len = (uint8_t)name_len;
    o->bytes = (uint32_t)bytes + 32;
    if (name_len)
        memcpy(o->u.entry.name, name, name_len);
    hmap_insert(&t->map, &o->node, hash);
    list_push_back(&t->lru, &o->link);
    t->bytes += o->bytes;
    while (t->bytes > limit && t->lru.next != &o->link)
        view_obj_drop(t, list_entry(t->lru.next, struct view_obj, link));
    return o;
}

bool view_cache_get_inode(struct view_cache *c, uint64_t ino, struct mds_inode *ret)
{
    uint64_t hash = view_hash(ino, 0);
    struct view_stripe *t = view_stripe(c, hash);
    struct view_obj *o;

    pthread_mutex_lock(&t->lock);
    o = view_find(t, hash, ino, 0, NULL, 0);
    if (o) {
        view_used(t, o);
        *ret = o->u.in;
    }
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add_explicit(o ? &c->hits : &c->misses, 1, memory_order_relaxed);
    return o != NULL;
}

bool view_cache_get_dirent(struct view_cache *c, uint64_t parent, uint64_t name_hash,
                           const void *name, uint32_t name_len, struct mds_dirent *ret)
{
    uint64_t hash = view_hash(parent, name_hash);
    struct view_stripe *t = view_stripe(c, hash);
    struct view_obj *o;

    pthread_mutex_lock(&t->lock);
    o = view_find(t, hash, parent, name_hash, name, name_len);
    if (o) {
        view_used(t, o);
        *ret = o->u.entry.d;
    }
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add_explicit(o ? &c->hits : &c->misses, 1, memory_order_relaxed);
    return o != NULL;
}

void view_cache_set_inode(struct view_cache *c, uint64_t ino, const struct mds_inode *in)
{
    uint64_t hash = view_hash(ino, 0);
    struct view_stripe *t = view_stripe(c, hash);
    struct view_obj *o;

    pthread_mutex_lock(&t->lock);
    if (in) {
        o = view_obtain(t, c->stripe_limit_bytes, hash, ino, 0, NULL, 0);
        if (o)
            o->u.in = *in;
    } else {
        o = view_find(t, hash, ino, 0, NULL, 0);
        if (o)
            view_obj_drop(t, o);
    }
    pthread_mutex_unlock(&t->lock);
}

void view_cache_set_dirent(struct view_cache *c, uint64_t parent, uint64_t name_hash,
                           const void *name, uint32_t name_len, const struct mds_dirent *d)
{
    uint64_t hash = view_hash(parent, name_hash);
    struct view_stripe *t = view_stripe(c, hash);
    struct view_obj *o;

    pthread_mutex_lock(&t->lock);
    if (d) {
        o = view_obtain(t, c->stripe_limit_bytes, hash, parent, name_hash, name, name_len);
        if (o)
            o->u.entry.d = *d;
    } else {
        o = view_find(t, hash, parent, name_hash, name, name_len);
        if (o)
            view_obj_drop(t, o);
    }
    pthread_mutex_unlock(&t->lock);
}

static void publish_obj(struct view_cache *c, struct obj *o)
{
    struct obj_inode *i = container_of(o, struct obj_inode, o);
    struct obj_group *g = container_of(o, struct obj_group, o);

    if (o->kind == OBJ_INODE) {
        view_cache_set_inode(c, i->in.ino, i->exists ? &i->in : NULL);
    } else if (o->kind == OBJ_GROUP) {
        for (struct obj_name *n = g->names; n; n = n->next) {
            if (n->dirty)
                view_cache_set_dirent(c, g->parent, g->hash, n->name, n->name_len,
                                      n->exists ? &n->d : NULL);
        }
    }
}

int view_cache_publish(struct view_cache *c, struct overlay *v)
{
    struct shard_snapshot *next = mem_zalloc(sizeof(*next)), *last;
    struct list *l;

    if (!next)
        return -ENOMEM;
    next->refs = 1;
    next->snap = store_snapshot_take(c->store);
    if (!next->snap) {
        mem_free(next);
        return -ENOMEM;
    }
    pthread_rwlock_wrlock(&c->publish);
    last = c->current;
    c->current = next;
    list_for_each (l, &v->dirty)
        publish_obj(c, list_entry(l, struct obj, link));
    pthread_rwlock_unlock(&c->publish);
    view_snapshot_unref(c, last);
    return 0;
}
