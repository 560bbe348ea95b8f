/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans of a key prefix, and the first key of a range.
 *
 * Happy path: an iterator bounded above by the prefix's successor, so that RocksDB never walks over
 * deleted keys behind it, and placed once, so that it does not walk over those before it; a scan of
 * one hash of one directory uses the prefix bloom filters, ends with the prefix by itself, and may
 * go on to another hash. Failure modes: read errors make the iterator invalid; store_iter_error()
 * tells them from the end.
 */
#include <string.h>

#include "mds/store/store_int.h"

struct store_iter {
    rocksdb_iterator_t *it;
    rocksdb_readoptions_t *read;
    size_t prefix_len;
    bool placed; /* else it is at the prefix, without having gone there yet */
    bool below;  /* what it was placed at was before the prefix */
    bool fenced; /* it ends with the prefix by itself */
    uint8_t prefix[KEY_MAX_BYTES], upper[KEY_MAX_BYTES];
};

/* The smallest key greater than every key with the prefix: the last byte that is not 0xff, plus
 * one. */
static size_t prefix_successor(const uint8_t *prefix, size_t len, uint8_t *out)
{
    memcpy(out, prefix, len);
    while (len > 0 && out[len - 1] == 0xff)
        len--;
    if (len > 0)
        out[len - 1]++;
    return len;
}

/* Names of one hash end where the filters' prefix does; the bound only keeps RocksDB from asking
 * for the prefix of what is no name, and is the same for all of them. */
static void iter_bound(struct store_iter *it)
{
    const bool names = it->prefix_len == STORE_GROUP_BYTES;
    size_t len = prefix_successor(it->prefix, names ? 1 : it->prefix_len, it->upper);

    if (names)
        rocksdb_readoptions_set_prefix_same_as_start(it->read, 1);
    else
        rocksdb_readoptions_set_total_order_seek(it->read, 1);
    if (len)
        rocksdb_readoptions_set_iterate_upper_bound(it->read, (const char *)it->upper, len);
    it->fenced = !names && len;
}

int store_iter_create(struct store *s, const struct store_snapshot *snap, const void *prefix,
                      size_t prefix_len, struct store_iter **ret_iter)
{
    struct store_iter *it;

    if (prefix_len > KEY_MAX_BYTES)
        return -EINVAL;
    it = mem_alloc(sizeof(*it));
    if (!it)
        return -ENOMEM;
    memcpy(it->prefix, prefix, prefix_len);
    it->prefix_len = prefix_len;
    it->read = rocksdb_readoptions_create();
    if (snap)
        rocksdb_readoptions_set_snapshot(it->read, snap->snap);
    rocksdb_readoptions_set_ignore_range_deletions(it->read, 1); /* there are none */
    iter_bound(it);
    store_uncounted();
    it->it = rocksdb_create_iterator(s->db, it->read);
    it->placed = false;
    *ret_iter = it;
    return 0;
}

void store_iter_seek(struct store_iter *it, const void *key, size_t key_len)
{
    rocksdb_iter_seek(it->it, key, key_len);
    it->placed = true;
    it->below = key_len < it->prefix_len || memcmp(key, it->prefix, it->prefix_len) != 0;
}

void store_iter_move(struct store_iter *it, const void *prefix, size_t prefix_len)
{
    ASSERT(prefix_len == STORE_GROUP_BYTES && prefix_len == it->prefix_len &&
           *(const uint8_t *)prefix == it->prefix[0]);
    memcpy(it->prefix, prefix, prefix_len);
    it->placed = false;
}

bool store_iter_valid(struct store_iter *it)
{
    size_t len;
    const char *key;

    if (!it->placed)
        store_iter_seek(it, it->prefix, it->prefix_len);
    if (!rocksdb_iter_valid(it->it))
        return false;
    if (it->fenced && !it->below)
        return true;
    key = rocksdb_iter_key(it->it, &len);
    return len >= it->prefix_len && memcmp(key, it->prefix, it->prefix_len) == 0;
}

void store_iter_next(struct store_iter *it)
{
    rocksdb_iter_next(it->it);
}

const void *store_iter_key(struct store_iter *it, size_t *ret_len)
{
    return rocksdb_iter_key(it->it, ret_len);
}

const void *store_iter_value(struct store_iter *it, size_t *ret_len)
{
    return rocksdb_iter_value(it->it, ret_len);
}

int store_iter_error(struct store_iter *it)
{
    char *err = NULL;

    rocksdb_iter_get_error(it->it, &err);
    return err ? store_error("scan", err) : 0;
}

void store_iter_destroy(struct store_iter *it)
{
    if (!it)
        return;
    rocksdb_iter_destroy(it->it);
    rocksdb_readoptions_destroy(it->read);
    mem_free(it);
}

int store_first(struct store *s, const struct key *from, const struct key *to, struct key *ret_key)
{
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_iterator_t *it;
    char *err = NULL;
    int rc = -ENOENT;

    rocksdb_readoptions_set_ignore_range_deletions(read, 1);
    rocksdb_readoptions_set_total_order_seek(read, 1);
    rocksdb_readoptions_set_iterate_upper_bound(read, (const char *)to->b, to->len);
    store_uncounted();
    it = rocksdb_create_iterator(s->db, read);
    rocksdb_iter_seek(it, (const char *)from->b, from->len);
    if (rocksdb_iter_valid(it)) {
        size_t len;
        const char *key = rocksdb_iter_key(it, &len);

        rc = len <= KEY_MAX_BYTES ? 0 : -AIFS_ECORRUPT;
        if (rc == 0) {
            memcpy(ret_key->b, key, len);
            ret_key->len = (uint16_t)len;
        }
    } else {
        rocksdb_iter_get_error(it, &err);
        if (err)
            rc = store_error("look for the first key", err);
    }
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(read);
    return rc;
}
