/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's objects: find, load, flush, forget.
 *
 * Happy path: an object is found in the hash table, or decoded from the store once and kept. A
 * batch makes some dirty; flush encodes each once; settle moves them to the clean list and trims
 * it. Failure modes: a record that does not decode is reported with its key and never cached.
 */
#include "mds/shard/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"

#define HASH_SEED_GROUP  0x67726f7570ull
#define HASH_SEED_RECORD 0x7265636full
#define FLUSH_SORT_MIN   16u
#define GROUP_BYTES      (sizeof(struct obj_group) + sizeof(struct overlay_at) + 64)

int overlay_init(struct overlay *v, struct store *s, uint64_t limit_bytes)
{
    int rc;

    memset(v, 0, sizeof(*v));
    v->store = s;
    v->limit_bytes = limit_bytes;
    list_init(&v->clean);
    list_init(&v->dirty);
    list_init(&v->rolls);
    arena_init(&v->undo_arena, 0);
    rc = hmap_init(&v->map, 1024);
    if (rc < 0)
        return rc;
    rc = hmap_init(&v->dirs, 64);
    if (rc < 0)
        hmap_fini(&v->map);
    return rc;
}

static void group_free(struct overlay *v, struct obj_group *g)
{
    while (g->names) {
        struct obj_name *n = g->names;

        overlay_name_exists(g, n, false);
        g->names = n->next;
        mem_free(n);
    }
    overlay_dir_leave(v, g);
}

static void obj_drop(struct overlay *v, struct obj *o)
{
    hmap_remove(&v->map, &o->node);
    list_remove(&o->link);
    v->bytes -= o->bytes;
    if (o->kind == OBJ_GROUP)
        group_free(v, container_of(o, struct obj_group, o));
    else if (o->kind == OBJ_RECORD)
        mem_free(container_of(o, struct obj_record, o)->value);
    mem_free(o); /* o is the first member of each kind */
}

void overlay_fini(struct overlay *v)
{
    struct list *l;

    list_splice(&v->clean, &v->dirty);
    while ((l = v->clean.next) != &v->clean)
        obj_drop(v, list_entry(l, struct obj, link));
    overlay_pause(v);
    arena_reset(&v->undo_arena);
    hmap_fini(&v->map);
    hmap_fini(&v->dirs);
}

static void obj_add(struct overlay *v, struct obj *o, enum obj_kind kind, uint64_t hash,
                    size_t bytes)
{
    o->kind = kind;
    o->dirty = false;
    o->bytes = (uint32_t)bytes;
    v->bytes += bytes;
    list_push_back(&v->clean, &o->link);
    hmap_insert(&v->map, &o->node, hash);
}

static void obj_used(struct overlay *v, struct obj *o)
{
    if (!o->dirty && o->link.next != &v->clean) {
        list_remove(&o->link);
        list_push_back(&v->clean, &o->link);
    }
}

static int inode_load(struct overlay *v, struct obj_inode *i)
{
    const uint64_t ino = i->in.ino;
    struct store_value value = {0};
    struct key k;
    int rc;

    key_number(&k, KEY_INODE, ino);
    rc = store_get(v->store, NULL, k.b, k.len, &value);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    i->exists = true;
    rc = rec_inode_decode(ino, value.data, value.len, &i->in);
    store_value_release(&value);
    if (rc < 0)
        LOG_ERROR("shard", "inode %llu: %s", (unsigned long long)ino, err_text(rc));
    return rc;
}

struct obj_inode *overlay_find_inode(const struct overlay *v, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&v->map, hash_near(ino, 0)); n; n = hmap_next(n)) {
        struct obj *o = container_of(n, struct obj, node);
        struct obj_inode *i = container_of(o, struct obj_inode, o);

        if (o->kind == OBJ_INODE && i->in.ino == ino)
            return i;
    }
    return NULL;
}

static int inode_find(struct overlay *v, uint64_t ino, bool load, struct obj_inode **ret_obj)
{
    struct obj_inode *i = overlay_find_inode(v, ino);
    int rc;

    if (i) {
        obj_used(v, &i->o);
        *ret_obj = i;
        return 0;
    }
    i = mem_zalloc(sizeof(*i));
    if (!i)
        return -ENOMEM;
    i->in.ino = ino;
    rc = load ? inode_load(v, i) : 0;
    if (rc < 0) {
        mem_free(i);
        return rc;
    }
    obj_add(v, &i->o, OBJ_INODE, hash_near(ino, 0), sizeof(*i) + 64);
    *ret_obj = i;
    return 0;
}

int overlay_inode(struct overlay *v, uint64_t ino, struct obj_inode **ret_obj)
{
    return inode_find(v, ino, true, ret_obj);
}

int overlay_inode_fresh(struct overlay *v, uint64_t ino, struct obj_inode **ret_obj)
{
    return inode_find(v, ino, false, ret_obj);
}

static struct obj_name *group_add(struct overlay *v, struct obj_group *g, const void *name,
                                  uint32_t name_len)
{
    struct obj_name *n = mem_zalloc(sizeof(*n) + name_len);

    if (!n)
        return NULL;
    n->name_len = (uint8_t)name_len;
    memcpy(n->name, name, name_len);
    n->next = g->names;
    g->names = n;
    g->o.bytes += (uint32_t)sizeof(*n) + name_len;
    v->bytes += sizeof(*n) + name_len;
    return n;
}

static int group_add_stored(struct overlay *v, struct obj_group *g, const void *name,
                            size_t name_len, const void *value, size_t len)
{
    struct obj_name *n = group_add(v, g, name, (uint32_t)name_len);
    int rc = n ? rec_dirent_decode(value, len, &n->d) : -ENOMEM;

    if (rc == 0)
        overlay_name_exists(g, n, true);
    else
        LOG_ERROR("shard", "entry %.*s of directory %llu: %s", (int)name_len, (const char *)name,
                  (unsigned long long)g->parent, err_text(rc));
    return rc;
}

/* What a batch loads comes by one iterator: making one costs as much as using it. */
static int scan_move(struct overlay *v, const struct key *k)
{
    if (!v->scan)
        return store_iter_create(v->store, NULL, k->b, k->len, &v->scan);
    store_iter_move(v->scan, k->b, k->len);
    return 0;
}

static int group_load(struct overlay *v, struct obj_group *g)
{
    struct key k;
    int rc;

    key_dirent_hash(&k, g->parent, g->hash);
    rc = scan_move(v, &k);
    for (; rc == 0 && store_iter_valid(v->scan); store_iter_next(v->scan)) {
        size_t key_len, len;
        const uint8_t *key = store_iter_key(v->scan, &key_len);
        const void *value = store_iter_value(v->scan, &len);

        rc = key_len <= k.len || key_len > KEY_MAX_BYTES
                 ? -AIFS_ECORRUPT
                 : group_add_stored(v, g, key + k.len, key_len - k.len, value, len);
    }
    if (rc == 0)
        rc = store_iter_error(v->scan);
    if (rc < 0)
        overlay_pause(v);
    return rc;
}

void overlay_pause(struct overlay *v)
{
    store_iter_destroy(v->scan);
    v->scan = NULL;
}

static int group_make(struct overlay *v, uint64_t parent, uint64_t name_hash, uint64_t hash,
                      struct obj_group **ret_obj)
{
    struct obj_group *g = mem_zalloc(sizeof(*g));
    int rc;

    if (!g)
        return -ENOMEM;
    g->parent = parent;
    g->hash = name_hash;
    rc = overlay_dir_enter(v, g);
    if (rc < 0) {
        mem_free(g);
        return rc;
    }
    obj_add(v, &g->o, OBJ_GROUP, hash, GROUP_BYTES);
    rc = overlay_dir_is_whole(v, g->dir) ? 0 : group_load(v, g);
    if (rc < 0) {
        obj_drop(v, &g->o);
        return rc;
    }
    *ret_obj = g;
    return 0;
}

int overlay_group(struct overlay *v, uint64_t parent, uint64_t name_hash,
                  struct obj_group **ret_obj)
{
    uint64_t hash = hash_u64(parent ^ hash_u64(name_hash ^ HASH_SEED_GROUP));
    struct obj_group *g;

    for (struct hmap_node *n = hmap_first(&v->map, hash); n; n = hmap_next(n)) {
        struct obj *o = container_of(n, struct obj, node);

        g = container_of(o, struct obj_group, o);
        if (o->kind == OBJ_GROUP && g->parent == parent && g->hash == name_hash) {
            obj_used(v, o);
            *ret_obj = g;
            return 0;
        }
    }
    return group_make(v, parent, name_hash, hash, ret_obj);
}

static uint64_t record_hash(const uint8_t *key, size_t len)
{
    if (len < 9 || key[0] == KEY_XATTR) /* all others end with a number */
        return hash_bytes(key, len, HASH_SEED_RECORD);
    return hash_near(be64_load(key + len - 8), hash_bytes(key, len - 8, HASH_SEED_RECORD));
}

struct obj_record *overlay_find_record(struct overlay *v, const void *key, size_t len)
{
    for (struct hmap_node *n = hmap_first(&v->map, record_hash(key, len)); n; n = hmap_next(n)) {
        struct obj *o = container_of(n, struct obj, node);
        struct obj_record *r = container_of(o, struct obj_record, o);

        if (o->kind == OBJ_RECORD && r->key_len == len && memcmp(r->key, key, len) == 0)
            return r;
    }
    return NULL;
}

static int record_load(struct overlay *v, const struct key *k, struct obj_record *r)
{
    struct store_value value = {0};
    int rc = store_get(v->store, NULL, k->b, k->len, &value);

    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    r->exists = true;
    r->len = (uint32_t)value.len;
    r->value = value.len ? mem_dup(value.data, value.len) : NULL;
    store_value_release(&value);
    return r->len && !r->value ? -ENOMEM : 0;
}

static int record_find(struct overlay *v, const struct key *k, bool load,
                       struct obj_record **ret_obj)
{
    struct obj_record *r = overlay_find_record(v, k->b, k->len);
    int rc;

    if (r) {
        obj_used(v, &r->o);
        *ret_obj = r;
        return 0;
    }
    r = mem_zalloc(sizeof(*r) + k->len);
    if (!r)
        return -ENOMEM;
    r->key_len = k->len;
    memcpy(r->key, k->b, k->len);
    rc = load ? record_load(v, k, r) : 0;
    if (rc < 0) {
        mem_free(r);
        return rc;
    }
    obj_add(v, &r->o, OBJ_RECORD, record_hash(k->b, k->len), sizeof(*r) + k->len + r->len + 64);
    *ret_obj = r;
    return 0;
}

int overlay_record(struct overlay *v, const struct key *k, struct obj_record **ret_obj)
{
    return record_find(v, k, true, ret_obj);
}

int overlay_record_fresh(struct overlay *v, const struct key *k, struct obj_record **ret_obj)
{
    return record_find(v, k, false, ret_obj);
}

struct obj_name *overlay_add_name(struct overlay *v, struct obj_group *g, const void *name,
                                  uint32_t name_len)
{
    struct obj_name *n = group_add(v, g, name, name_len);

    if (n && overlay_touch_name(v, g, n) < 0) {
        g->names = n->next;
        g->o.bytes -= (uint32_t)sizeof(*n) + name_len;
        v->bytes -= sizeof(*n) + name_len;
        mem_free(n);
        n = NULL;
    }
    return n;
}

static void flush_group(const struct obj_group *g, struct store_batch *b)
{
    for (const struct obj_name *n = g->names; n; n = n->next) {
        struct dirent_rec rec;
        struct key k;

        if (!n->dirty)
            continue;
        key_dirent_hash(&k, g->parent, g->hash);
        key_append(&k, n->name, n->name_len);
        if (n->exists) {
            rec_dirent_encode(&n->d, &rec);
            store_batch_put(b, k.b, k.len, &rec, sizeof(rec));
        } else {
            store_batch_delete(b, k.b, k.len);
        }
    }
}

static void flush_inode(const struct obj_inode *i, struct store_batch *b)
{
    struct inode_rec rec;
    struct key k;

    key_number(&k, KEY_INODE, i->in.ino);
    if (i->exists) {
        rec_inode_encode(&i->in, &rec);
        store_batch_put(b, k.b, k.len, &rec, sizeof(rec));
    } else {
        store_batch_delete(b, k.b, k.len);
    }
}

static void flush_obj(const struct obj *o, struct store_batch *b)
{
    const struct obj_record *r = container_of(o, struct obj_record, o);

    if (o->kind == OBJ_INODE)
        flush_inode(container_of(o, struct obj_inode, o), b);
    else if (o->kind == OBJ_GROUP)
        flush_group(container_of(o, struct obj_group, o), b);
    else if (r->exists)
        store_batch_put(b, r->key, r->key_len, r->value ? r->value : "", r->len);
    else
        store_batch_delete(b, r->key, r->key_len);
}

struct flush_item {
    uint64_t major, minor;
    const struct obj *o;
};

/* About as the keys are in the store: neighbours by kind are enough. */
static struct flush_item flush_place(const struct obj *o)
{
    const struct obj_group *g = container_of(o, struct obj_group, o);
    const struct obj_record *r = container_of(o, struct obj_record, o);
    struct flush_item f = {.o = o};
    uint8_t head[16] = {0};

    if (o->kind == OBJ_INODE) {
        f.major = container_of(o, struct obj_inode, o)->in.ino;
    } else if (o->kind == OBJ_GROUP) {
        f.major = g->parent;
        f.minor = g->hash;
    } else {
        memcpy(head, r->key, MIN(r->key_len, sizeof(head)));
        f.major = be64_load(head);
        f.minor = be64_load(head + 8);
    }
    return f;
}

static int flush_compare(const void *a, const void *b)
{
    const struct flush_item *x = a, *y = b;

    if (x->o->kind != y->o->kind)
        return x->o->kind < y->o->kind ? -1 : 1;
    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    return (x->minor > y->minor) - (x->minor < y->minor);
}

void overlay_flush(struct overlay *v, struct store_batch *b)
{
    struct flush_item *items;
    struct list *l;
    size_t n = 0;

    list_for_each (l, &v->dirty)
        n++;
    items = n >= FLUSH_SORT_MIN ? mem_array(n, sizeof(*items)) : NULL;
    if (!items) {
        list_for_each (l, &v->dirty)
            flush_obj(list_entry(l, struct obj, link), b);
        return;
    }
    n = 0;
    list_for_each (l, &v->dirty)
        items[n++] = flush_place(list_entry(l, struct obj, link));
    qsort(items, n, sizeof(*items), flush_compare);
    for (size_t i = 0; i < n; i++)
        flush_obj(items[i].o, b);
    mem_free(items);
}

/* Names that are gone from the store need not be remembered one by one: an empty group says it
 * all. */
static void group_settle(struct overlay *v, struct obj_group *g)
{
    struct obj_name **p = &g->names;

    while (*p) {
        struct obj_name *n = *p;

        n->dirty = false;
        if (n->exists) {
            p = &n->next;
            continue;
        }
        *p = n->next;
        g->o.bytes -= (uint32_t)sizeof(*n) + n->name_len;
        v->bytes -= sizeof(*n) + n->name_len;
        mem_free(n);
    }
}

void overlay_settle(struct overlay *v)
{
    struct list *l;

    while ((l = list_pop_front(&v->dirty))) {
        struct obj *o = list_entry(l, struct obj, link);

        o->dirty = false;
        if (o->kind == OBJ_GROUP)
            group_settle(v, container_of(o, struct obj_group, o));
        list_push_back(&v->clean, &o->link);
    }
    while (v->bytes > v->limit_bytes && !list_empty(&v->clean))
        obj_drop(v, list_entry(v->clean.next, struct obj, link));
}
