/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading committed state.
 *
 * Happy path: a point view holds the publication lock for reading and asks the cache, then the
 * snapshot, and caches what it found; a scan view counts the snapshot and puts nothing into the
 * cache, so that walking a large directory evicts nothing. Failure modes: records that do not
 * decode are logged with their key and returned as errors.
 */
#include "mds/shard/view.h"

#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "mds/shard/shard_int.h"

void view_begin(struct shard *s, struct view *v)
{
    pthread_rwlock_rdlock(&s->view.publish);
    *v = (struct view){.shard = s, .snapshot = s->view.current};
}

void view_end(struct view *v)
{
    pthread_rwlock_unlock(&v->shard->view.publish);
    v->snapshot = NULL;
}

void view_pin(struct shard *s, struct view *v)
{
    pthread_rwlock_rdlock(&s->view.publish);
    *v = (struct view){.shard = s, .snapshot = s->view.current, .pinned = true};
    atomic_fetch_add(&v->snapshot->refs, 1);
    pthread_rwlock_unlock(&s->view.publish);
}

void view_unpin(struct view *v)
{
    view_snapshot_unref(&v->shard->view, v->snapshot);
    v->snapshot = NULL;
}

int view_inode(struct view *v, uint64_t ino, struct mds_inode *ret_inode)
{
    struct view_cache *c = &v->shard->view;
    struct store_value value = {0};
    struct key k;
    int rc;

    if (!v->pinned && view_cache_get_inode(c, ino, ret_inode))
        return 0;
    key_number(&k, KEY_INODE, ino);
    rc = store_get(v->shard->store, v->snapshot->snap, k.b, k.len, &value);
    if (rc < 0)
        return rc;
    rc = rec_inode_decode(ino, value.data, value.len, ret_inode);
    store_value_release(&value);
    if (rc < 0)
        LOG_ERROR("view", "inode %llu: %s", (unsigned long long)ino, err_text(rc));
    else if (!v->pinned)
        view_cache_set_inode(c, ino, ret_inode);
    return rc;
}

int view_dirent(struct view *v, uint64_t parent, const void *name, uint32_t name_len,
                struct mds_dirent *ret_dirent)
{
    struct view_cache *c = &v->shard->view;
    struct store_value value = {0};
    uint64_t hash;
    struct key k;
    int rc;

    if (name_len == 0 || name_len > MSG_NAME_MAX)
        return -EINVAL;
    hash = key_name_hash(name, name_len);
    if (!v->pinned && view_cache_get_dirent(c, parent, hash, name, name_len, ret_dirent))
        return 0;
    key_dirent_hash(&k, parent, hash);
    key_append(&k, name, name_len);
    rc = store_get(v->shard->store, v->snapshot->snap, k.b, k.len, &value);
    if (rc < 0)
        return rc;
    rc = rec_dirent_decode(value.data, value.len, ret_dirent);
    store_value_release(&value);
    if (rc < 0)
        LOG_ERROR("view", "entry of directory %llu: %s", (unsigned long long)parent, err_text(rc));
    else if (!v->pinned)
        view_cache_set_dirent(c, parent, hash, name, name_len, ret_dirent);
    return rc;
}

bool view_dirent_cached(struct view *v, uint64_t parent, const void *name, uint32_t name_len,
                        struct mds_dirent *ret_dirent)
{
    return name_len > 0 && name_len <= MSG_NAME_MAX &&
           view_cache_get_dirent(&v->shard->view, parent, key_name_hash(name, name_len), name,
                                 name_len, ret_dirent);
}

int view_record(struct view *v, const struct key *k, struct arena *a, const void **ret_value,
                uint32_t *ret_len)
{
    struct store_value value = {0};
    void *copy;
    int rc = store_get(v->shard->store, v->snapshot->snap, k->b, k->len, &value);

    if (rc < 0)
        return rc;
    copy = arena_dup(a, value.data, value.len);
    if (copy) {
        *ret_value = copy;
        *ret_len = (uint32_t)value.len;
    }
    store_value_release(&value);
    return copy ? 0 : -ENOMEM;
}

int view_parent(struct view *v, uint64_t ino, uint64_t *ret_parent)
{
    struct store_value value = {0};
    struct key k;
    int rc;

    if (ino == KEY_ROOT_INO) {
        *ret_parent = 0;
        return 0;
    }
    key_number(&k, KEY_PARENT, ino);
    rc = store_get(v->shard->store, v->snapshot->snap, k.b, k.len, &value);
    if (rc < 0)
        return rc;
    if (value.len < sizeof(struct parent_rec)) {
        LOG_ERROR("view", "parent of directory %llu: %zu bytes", (unsigned long long)ino,
                  value.len);
        rc = -AIFS_ECORRUPT;
    } else {
        *ret_parent = le64_load(value.data);
    }
    store_value_release(&value);
    return rc;
}

uint64_t view_counter(struct view *v, enum key_counter c)
{
    struct store_value value = {0};
    uint64_t n = 0;
    struct key k;

    key_counter(&k, c);
    if (store_get(v->shard->store, v->snapshot->snap, k.b, k.len, &value) < 0)
        return 0;
    if (value.len == sizeof(uint64_t))
        n = le64_load(value.data);
    store_value_release(&value);
    return n;
}

int view_scan(struct view *v, const struct key *prefix, const struct key *from, view_scan_fn *fn,
              void *arg)
{
    struct store_iter *it;
    int rc = store_iter_create(v->shard->store, v->snapshot->snap, prefix->b, prefix->len, &it);

    if (rc < 0)
        return rc;
    if (from)
        store_iter_seek(it, from->b, from->len);
    for (; rc == 0 && store_iter_valid(it); store_iter_next(it)) {
        size_t key_len, len;
        const void *key = store_iter_key(it, &key_len);
        const void *value = store_iter_value(it, &len);

        rc = fn(arg, key, key_len, value, len);
    }
    if (rc == 0)
        rc = store_iter_error(it);
    store_iter_destroy(it);
    return rc < 0 ? rc : 0;
}

int view_names(struct view *v, uint64_t dir, uint64_t from_hash, uint32_t wanted, view_name_fn *fn,
               void *arg)
{
    struct shard *s = v->shard;
    int rc;

    if (pthread_mutex_trylock(&s->writing) != 0)
        return -ENOENT;
    rc = overlay_list(&s->overlay, dir, from_hash, wanted, fn, arg);
    pthread_mutex_unlock(&s->writing);
    if (rc != -ENOENT)
        atomic_fetch_add_explicit(&s->n_rolled, 1, memory_order_relaxed);
    return rc;
}

#define VIEW_INODES_PIECE 64

/* The cache agrees with a counted snapshot as long as that is the newest. Nothing is put in: a walk
 * evicts nothing. */
static uint32_t view_inodes_cached(struct view *v, uint32_t n, const uint64_t *inos,
                                   struct mds_inode *ret_inodes, bool *ret_found)
{
    struct view_cache *c = &v->shard->view;
    uint32_t n_found = 0;

    memset(ret_found, 0, n * sizeof *ret_found);
    if (v->pinned)
        pthread_rwlock_rdlock(&c->publish);
    for (uint32_t i = 0; i < n && v->snapshot == c->current; i++) {
        ret_found[i] = view_cache_get_inode(c, inos[i], &ret_inodes[i]);
        n_found += ret_found[i];
    }
    if (v->pinned)
        pthread_rwlock_unlock(&c->publish);
    return n_found;
}

/* Of the store: those that are not found yet. */
static int view_inodes_stored(struct view *v, uint32_t n, const uint64_t *inos,
                              struct mds_inode *ret_inodes, bool *ret_found)
{
    struct store_value values[VIEW_INODES_PIECE];
    struct key keys[VIEW_INODES_PIECE];
    uint32_t at[VIEW_INODES_PIECE], n_keys = 0;
    int rc;

    for (uint32_t i = 0; i < n; i++) {
        if (ret_found[i])
            continue;
        key_number(&keys[n_keys], KEY_INODE, inos[i]);
        at[n_keys++] = i;
    }
    rc = store_multi_get(v->shard->store, v->snapshot->snap, n_keys, keys, values);
    if (rc < 0)
        return rc;
    for (uint32_t k = 0; k < n_keys; k++) {
        uint32_t i = at[k];

        ret_found[i] = values[k].pin != NULL;
        if (ret_found[i] && rc == 0)
            rc = rec_inode_decode(inos[i], values[k].data, values[k].len, &ret_inodes[i]);
        store_value_release(&values[k]);
    }
    if (rc < 0)
        LOG_ERROR("view", "inodes from %llu: %s", (unsigned long long)inos[0], err_text(rc));
    return rc;
}

static int view_inodes_piece(struct view *v, uint32_t n, const uint64_t *inos,
                             struct mds_inode *ret_inodes, bool *ret_found)
{
    if (view_inodes_cached(v, n, inos, ret_inodes, ret_found) == n)
        return 0;
    return view_inodes_stored(v, n, inos, ret_inodes, ret_found);
}

int view_inodes(struct view *v, uint32_t n, const uint64_t *inos, struct mds_inode *ret_inodes,
                bool *ret_found)
{
    int rc = 0;

    for (uint32_t i = 0; i < n && rc == 0; i += VIEW_INODES_PIECE)
        rc = view_inodes_piece(v, MIN(n - i, VIEW_INODES_PIECE), inos + i, ret_inodes + i,
                               ret_found + i);
    return rc;
}
