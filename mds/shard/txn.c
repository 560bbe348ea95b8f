/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state as an executing operation sees and changes it: typed access to the overlay.
 *
 * Happy path: get finds or loads an object; modify saves its former state and hands it out.
 * Failure modes: errors leave the operation to return them; the caller (execute.c) then undoes all.
 */
#include "mds/shard/txn.h"

#include <string.h>

#include "common/base/log.h"
#include "mds/shard/shard_int.h"

int txn_inode_get(struct txn *t, uint64_t ino, const struct mds_inode **ret_inode)
{
    struct obj_inode *i;
    int rc = overlay_inode(t->overlay, ino, &i);

    if (rc < 0)
        return rc;
    if (!i->exists)
        return -ENOENT;
    *ret_inode = &i->in;
    return 0;
}

int txn_inode_modify(struct txn *t, uint64_t ino, struct mds_inode **ret_inode)
{
    struct obj_inode *i;
    int rc = overlay_inode(t->overlay, ino, &i);

    if (rc < 0)
        return rc;
    if (!i->exists)
        return -ENOENT;
    rc = overlay_touch_inode(t->overlay, i);
    if (rc < 0)
        return rc;
    *ret_inode = &i->in;
    return 0;
}

static int inode_make(struct txn *t, struct obj_inode *i, uint64_t ino,
                      struct mds_inode **ret_inode)
{
    int rc;

    if (i->exists)
        return -EEXIST;
    rc = overlay_touch_inode(t->overlay, i);
    if (rc < 0)
        return rc;
    i->exists = true;
    i->in = (struct mds_inode){.ino = ino};
    *ret_inode = &i->in;
    return 0;
}

int txn_inode_create(struct txn *t, uint64_t ino, struct mds_inode **ret_inode)
{
    struct obj_inode *i;
    int rc = overlay_inode(t->overlay, ino, &i);

    return rc < 0 ? rc : inode_make(t, i, ino, ret_inode);
}

int txn_inode_new(struct txn *t, uint64_t ino, struct mds_inode **ret_inode)
{
    struct obj_inode *i;
    int rc = overlay_inode_fresh(t->overlay, ino, &i);

    return rc < 0 ? rc : inode_make(t, i, ino, ret_inode);
}

int txn_inodes_unused(struct txn *t, uint64_t first, uint64_t n)
{
    struct key from, to, found = {0};
    int rc;

    key_number(&from, KEY_INODE, first);
    key_number(&to, KEY_INODE, first + n);
    rc = store_first(t->overlay->store, &from, &to, &found);
    if (rc == 0) {
        LOG_ERROR("shard", "inode %llu exists before its number has been given away",
                  (unsigned long long)be64_load(found.b + 1));
        rc = -AIFS_ECORRUPT;
    }
    return rc == -ENOENT ? 0 : rc;
}

int txn_inode_delete(struct txn *t, uint64_t ino)
{
    struct obj_inode *i;
    int rc = overlay_inode(t->overlay, ino, &i);

    if (rc < 0)
        return rc;
    if (!i->exists)
        return -ENOENT;
    rc = overlay_touch_inode(t->overlay, i);
    if (rc < 0)
        return rc;
    i->exists = false;
    return 0;
}

static struct obj_name *group_find(const struct obj_group *g, const void *name, uint32_t len)
{
    for (struct obj_name *n = g->names; n; n = n->next) {
        if (n->name_len == len && memcmp(n->name, name, len) == 0)
            return n;
    }
    return NULL;
}

int txn_dirent_get(struct txn *t, uint64_t parent, const void *name, uint32_t name_len,
                   struct mds_dirent *ret_dirent)
{
    struct obj_group *g;
    struct obj_name *n;
    int rc = overlay_group(t->overlay, parent, key_name_hash(name, name_len), &g);

    if (rc < 0)
        return rc;
    n = group_find(g, name, name_len);
    if (!n || !n->exists)
        return -ENOENT;
    *ret_dirent = n->d;
    return 0;
}

/* The number behind the largest in use, so that a scan that is under way meets a new name only
 * once. */
static uint16_t group_next_ordinal(const struct obj_group *g)
{
    uint16_t max = 0;
    bool used;

    for (const struct obj_name *n = g->names; n; n = n->next)
        max = n->exists ? MAX(max, n->d.ordinal) : max;
    if (max < UINT16_MAX)
        return (uint16_t)(max + 1);
    for (uint16_t o = 1; o < UINT16_MAX; o++) {
        used = false;
        for (const struct obj_name *n = g->names; n && !used; n = n->next)
            used = n->exists && n->d.ordinal == o;
        if (!used)
            return o;
    }
    return 0;
}

int txn_dirent_put(struct txn *t, uint64_t parent, const void *name, uint32_t name_len,
                   uint64_t ino, uint8_t type)
{
    struct obj_group *g;
    struct obj_name *n;
    uint16_t ordinal;
    int rc = overlay_group(t->overlay, parent, key_name_hash(name, name_len), &g);

    if (rc < 0)
        return rc;
    n = group_find(g, name, name_len);
    ordinal = n && n->exists ? n->d.ordinal : group_next_ordinal(g);
    if (ordinal == 0)
        return -ENOSPC;
    if (!n) {
        n = overlay_add_name(t->overlay, g, name, name_len);
        rc = n ? 0 : -ENOMEM;
    } else {
        rc = overlay_touch_name(t->overlay, g, n);
    }
    if (rc < 0)
        return rc;
    overlay_name_exists(g, n, true);
    n->d = (struct mds_dirent){.ino = ino, .type = type, .ordinal = ordinal};
    return 0;
}

int txn_dirent_delete(struct txn *t, uint64_t parent, const void *name, uint32_t name_len)
{
    struct obj_group *g;
    struct obj_name *n;
    int rc = overlay_group(t->overlay, parent, key_name_hash(name, name_len), &g);

    if (rc < 0)
        return rc;
    n = group_find(g, name, name_len);
    if (!n || !n->exists)
        return -ENOENT;
    rc = overlay_touch_name(t->overlay, g, n);
    if (rc == 0)
        overlay_name_exists(g, n, false);
    return rc;
}

int txn_record_get(struct txn *t, const struct key *k, const void **ret_value, uint32_t *ret_len)
{
    struct obj_record *r;
    int rc = overlay_record(t->overlay, k, &r);

    if (rc < 0)
        return rc;
    if (!r->exists)
        return -ENOENT;
    *ret_value = r->value ? r->value : "";
    *ret_len = r->len;
    return 0;
}

int txn_record_put(struct txn *t, const struct key *k, const void *value, uint32_t len)
{
    struct obj_record *r;
    int rc = overlay_record(t->overlay, k, &r);

    return rc < 0 ? rc : overlay_set_record(t->overlay, r, true, value, len);
}

int txn_record_add(struct txn *t, const struct key *k, const void *value, uint32_t len)
{
    struct obj_record *r;
    int rc = overlay_record_fresh(t->overlay, k, &r);

    return rc < 0 ? rc : overlay_set_record(t->overlay, r, true, value, len);
}

int txn_record_delete(struct txn *t, const struct key *k)
{
    struct obj_record *r;
    int rc = overlay_record(t->overlay, k, &r);

    if (rc < 0)
        return rc;
    return r->exists ? overlay_set_record(t->overlay, r, false, NULL, 0) : 0;
}

/* Records found by a scan, copied before the first call: the callback may change what is
 * scanned. */
struct scan_item {
    struct scan_item *next;
    struct key key;
    const void *value;
    uint32_t len;
};

static int scan_add(struct arena *a, struct scan_item **head, const void *key, size_t key_len,
                    const void *value, size_t len)
{
    struct scan_item *i = arena_alloc(a, sizeof(*i));

    if (!i)
        return -ENOMEM;
    i->key.len = (uint16_t)key_len;
    memcpy(i->key.b, key, key_len);
    i->value = len ? arena_dup(a, value, len) : "";
    i->len = (uint32_t)len;
    i->next = *head;
    *head = i;
    return i->value ? 0 : -ENOMEM;
}

static int scan_collect(struct txn *t, const struct key *prefix, struct arena *a,
                        struct scan_item **head)
{
    struct store_iter *it;
    struct list *l;
    int rc = store_iter_create(t->shard->store, NULL, prefix->b, prefix->len, &it);

    if (rc < 0)
        return rc;
    for (; rc == 0 && store_iter_valid(it); store_iter_next(it)) {
        size_t key_len, len;
        const void *key = store_iter_key(it, &key_len);
        const void *value = store_iter_value(it, &len);
        const struct obj_record *r = overlay_find_record(t->overlay, key, key_len);

        if (key_len <= KEY_MAX_BYTES && !(r && r->o.dirty))
            rc = scan_add(a, head, key, key_len, value, len);
    }
    if (rc == 0)
        rc = store_iter_error(it);
    store_iter_destroy(it);
    list_for_each (l, &t->overlay->dirty) {
        const struct obj *o = list_entry(l, struct obj, link);
        const struct obj_record *r = container_of(o, const struct obj_record, o);

        if (rc == 0 && o->kind == OBJ_RECORD && r->exists && r->key_len >= prefix->len &&
            memcmp(r->key, prefix->b, prefix->len) == 0)
            rc = scan_add(a, head, r->key, r->key_len, r->value, r->len);
    }
    return rc;
}

int txn_record_scan(struct txn *t, const struct key *prefix, txn_scan_fn *fn, void *arg)
{
    struct scan_item *items = NULL;
    struct arena a;
    int rc;

    arena_init(&a, 0);
    rc = scan_collect(t, prefix, &a, &items);
    for (struct scan_item *i = items; i && rc == 0; i = i->next)
        rc = fn(arg, &i->key, i->value, i->len);
    arena_reset(&a);
    return rc < 0 ? rc : 0;
}

int txn_counter_add(struct txn *t, enum key_counter c, int64_t n, uint64_t *ret_before)
{
    const void *value;
    uint64_t before = 0;
    uint8_t after[8];
    uint32_t len;
    struct key k;
    int rc;

    key_counter(&k, c);
    rc = txn_record_get(t, &k, &value, &len);
    if (rc == 0 && len != sizeof(after))
        return -AIFS_ECORRUPT;
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0)
        before = le64_load(value);
    le64_store(after, before + (uint64_t)n);
    rc = txn_record_put(t, &k, after, sizeof(after));
    if (rc == 0 && ret_before)
        *ret_before = before;
    return rc;
}

int64_t txn_now_ns(const struct txn *t)
{
    return t->entry->now_ns;
}

struct msg_time txn_now(const struct txn *t)
{
    int64_t ns = t->entry->now_ns, sec = ns / (int64_t)NS_PER_S, rest = ns % (int64_t)NS_PER_S;

    if (rest < 0) {
        sec--;
        rest += (int64_t)NS_PER_S;
    }
    return (struct msg_time){.sec = sec, .nsec = (uint32_t)rest};
}

uint64_t txn_index(const struct txn *t)
{
    return t->entry->index;
}

uint32_t txn_shard(const struct txn *t)
{
    return t->shard->o.id;
}

void *txn_alloc(struct txn *t, size_t size)
{
    return arena_alloc(t->arena, size);
}
