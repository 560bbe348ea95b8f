/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RocksDB behind store.h: opening, reading, committing.
 *
 * Happy path: one column family; point reads pinned in the block cache or memtable, helped by bloom
 * filters over whole keys and over the 15 bytes that name one hash of one directory; one write
 * batch per commit with one sync of the log. Failure modes: RocksDB's errors are texts: each is
 * logged once here and becomes a number. A failed commit poisons the store, because nobody knows
 * what of it is on the disk.
 */
#include "mds/store/store_int.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"

#define STORE_CACHE_DEFAULT    (64ull * MIB)
#define STORE_MEMTABLE_DEFAULT (32ull * MIB)

int store_error(const char *what, char *text)
{
    int rc = -EIO;

    if (strstr(text, "No space left"))
        rc = -ENOSPC;
    else if (strncmp(text, "Corruption", 10) == 0)
        rc = -AIFS_ECORRUPT;
    else if (strncmp(text, "NotFound", 8) == 0)
        rc = -ENOENT;
    LOG_ERROR("store", "%s: %s", what, text);
    rocksdb_free(text);
    return rc;
}

void store_uncounted(void)
{
    static _Thread_local bool told;

    if (!told)
        rocksdb_set_perf_level(rocksdb_disable);
    told = true;
}

/*
 * RocksDB remembers where it has put the last key of each prefix into the memtable and begins there
 * to look for the place of the next, instead of at the top of a skip list of which nothing is in
 * the processor's cache. With the first 8 bytes these are a record type and 256 neighbours of inode
 * numbers, directories or sessions; keys that are shorter are a prefix of their own. The C
 * interface knows the option by name only; a RocksDB without it works as well, and slower.
 */
static rocksdb_options_t *store_near_inserts(rocksdb_options_t *r)
{
    rocksdb_options_t *near = rocksdb_options_create();
    char *err = NULL;

    rocksdb_get_options_from_string(r, "memtable_insert_with_hint_prefix_extractor=capped:8", near,
                                    &err);
    if (err) {
        LOG_DEBUG("store", "no hints for insertions: %s", err);
        rocksdb_free(err);
        rocksdb_options_destroy(near);
        return r;
    }
    rocksdb_options_destroy(r);
    return near;
}

/*
 * Indexes and filters are within the cache's bound, and in parts of 4 KiB: a filter in one piece is
 * a MiB of each table file, and once they are more than the cache has room for, each read of a name
 * that is not there would bring in, and check, several of them.
 */
static void store_table_options(struct store *s, uint64_t cache_bytes, rocksdb_options_t *r)
{
    rocksdb_block_based_table_options_t *b = rocksdb_block_based_options_create();

    s->cache = rocksdb_cache_create_lru(cache_bytes);
    rocksdb_block_based_options_set_block_cache(b, s->cache);
    rocksdb_block_based_options_set_filter_policy(b, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_block_size(b, 4096);
    rocksdb_block_based_options_set_index_type(
        b, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(b, 1);
    rocksdb_block_based_options_set_metadata_block_size(b, 4096);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(b, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(b, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(b, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(b, 1);
    rocksdb_options_set_block_based_table_factory(r, b);
    rocksdb_block_based_options_destroy(b);
}

static rocksdb_options_t *store_make_options(struct store *s, const struct store_options *o)
{
    uint64_t memtable = o->memtable_bytes ? o->memtable_bytes : STORE_MEMTABLE_DEFAULT;
    rocksdb_options_t *r = rocksdb_options_create();

    store_table_options(s, o->cache_bytes ? o->cache_bytes : STORE_CACHE_DEFAULT, r);
    rocksdb_options_set_create_if_missing(r, o->create);
    rocksdb_options_set_error_if_exists(r, o->create);
    rocksdb_options_set_compression(r, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(r, memtable);
    rocksdb_options_set_max_write_buffer_number(r, 3);
    rocksdb_options_set_max_background_jobs(r, 2);
    rocksdb_options_set_max_open_files(r, 512);
    rocksdb_options_set_keep_log_file_num(r, 4);
    rocksdb_options_set_max_log_file_size(r, 4u * MIB);
    rocksdb_options_set_prefix_extractor(
        r, rocksdb_slicetransform_create_fixed_prefix(STORE_GROUP_BYTES));
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(r, 0.05);
    rocksdb_options_set_memtable_whole_key_filtering(r, 1);
    /* Recovery stops at the first record that is not whole: behind the last sync, pages of the log
     * reach the disk in any order, and that must not keep a server from starting after a power
     * cut. */
    rocksdb_options_set_wal_recovery_mode(r, rocksdb_point_in_time_recovery);
    return store_near_inserts(r);
}

int store_open(const char *path, const struct store_options *o, struct store **ret_store)
{
    struct store *s = mem_zalloc(sizeof(*s));
    char *err = NULL;
    struct stat st;
    int rc;

    if (!s)
        return -ENOMEM;
    AUTO_FREE char *current = mem_printf("%s/CURRENT", path);
    s->path = mem_strdup(path);
    if (!current || !s->path) {
        rc = -ENOMEM;
        goto err_free;
    }
    if (!o->create && stat(current, &st) < 0) {
        rc = -errno;
        goto err_free;
    }
    s->options = store_make_options(s, o);
    const char *name = "default";
    const rocksdb_options_t *options = s->options;

    s->db = o->read_only
                ? rocksdb_open_for_read_only_column_families(s->options, path, 1, &name, &options,
                                                             &s->cf, 0, &err)
                : rocksdb_open_column_families(s->options, path, 1, &name, &options, &s->cf, &err);
    if (err) {
        rc = store_error(path, err);
        goto err_options;
    }
    s->read_newest = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(s->read_newest, 1);
    s->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(s->write_sync, 1);
    s->write_nosync = rocksdb_writeoptions_create();
    *ret_store = s;
    return 0;
err_options:
    rocksdb_options_destroy(s->options);
    rocksdb_cache_destroy(s->cache);
err_free:
    mem_free(s->path);
    mem_free(s);
    return rc;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    rocksdb_readoptions_destroy(s->read_newest);
    rocksdb_writeoptions_destroy(s->write_sync);
    rocksdb_writeoptions_destroy(s->write_nosync);
    rocksdb_column_family_handle_destroy(s->cf);
    rocksdb_close(s->db);
    rocksdb_options_destroy(s->options);
    rocksdb_cache_destroy(s->cache);
    mem_free(s->path);
    mem_free(s);
}

static const rocksdb_readoptions_t *store_read_options(const struct store *s,
                                                       const struct store_snapshot *snap)
{
    return snap ? snap->read : s->read_newest;
}

int store_get(struct store *s, const struct store_snapshot *snap, const void *key, size_t key_len,
              struct store_value *ret_value)
{
    char *err = NULL;
    rocksdb_pinnableslice_t *pin;

    if (FAULT("mds.store.get"))
        return -EIO;
    store_uncounted();
    pin = rocksdb_get_pinned(s->db, store_read_options(s, snap), key, key_len, &err);
    if (err)
        return store_error("get", err);
    if (!pin)
        return -ENOENT;
    ret_value->data = rocksdb_pinnableslice_value(pin, &ret_value->len);
    ret_value->pin = pin;
    return 0;
}

void store_value_release(struct store_value *v)
{
    if (v->pin)
        rocksdb_pinnableslice_destroy(v->pin);
    *v = (struct store_value){0};
}

#define STORE_MULTI_PIECE 64

/* values[] are filled piece by piece; on failure all of them are released. */
static int store_multi_piece(struct store *s, const struct store_snapshot *snap, size_t n,
                             const struct key *keys, struct store_value *ret_values)
{
    const char *key[STORE_MULTI_PIECE];
    size_t len[STORE_MULTI_PIECE];
    rocksdb_pinnableslice_t *pin[STORE_MULTI_PIECE];
    char *err[STORE_MULTI_PIECE];
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        key[i] = (const char *)keys[i].b;
        len[i] = keys[i].len;
    }
    store_uncounted();
    rocksdb_batched_multi_get_cf(s->db, store_read_options(s, snap), s->cf, n, key, len, pin, err,
                                 true);
    for (size_t i = 0; i < n; i++) {
        ret_values[i] = (struct store_value){0};
        if (err[i]) {
            rc = store_error("multi get", err[i]);
        } else if (pin[i]) {
            ret_values[i].data = rocksdb_pinnableslice_value(pin[i], &ret_values[i].len);
            ret_values[i].pin = pin[i];
        }
    }
    return rc;
}

int store_multi_get(struct store *s, const struct store_snapshot *snap, size_t n,
                    const struct key *keys, struct store_value *ret_values)
{
    size_t done = 0;
    int rc = 0;

    while (done < n && rc == 0) {
        size_t piece = MIN(n - done, (size_t)STORE_MULTI_PIECE);

        rc = store_multi_piece(s, snap, piece, keys + done, ret_values + done);
        done += piece;
    }
    for (size_t i = 0; rc < 0 && i < done; i++)
        store_value_release(&ret_values[i]);
    return rc;
}

int store_batch_create(struct store *s, struct store_batch **ret_batch)
{
    struct store_batch *b = mem_zalloc(sizeof(*b));

    (void)s;
    if (!b)
        return -ENOMEM;
    b->wb = rocksdb_writebatch_create();
    *ret_batch = b;
    return 0;
}

void store_batch_destroy(struct store_batch *b)
{
    if (!b)
        return;
    rocksdb_writebatch_destroy(b->wb);
    mem_free(b);
}

void store_batch_put(struct store_batch *b, const void *key, size_t key_len, const void *value,
                     size_t value_len)
{
    rocksdb_writebatch_put(b->wb, key, key_len, value, value_len);
    b->bytes += key_len + value_len;
}

void store_batch_delete(struct store_batch *b, const void *key, size_t key_len)
{
    rocksdb_writebatch_delete(b->wb, key, key_len);
    b->bytes += key_len;
}

size_t store_batch_bytes(const struct store_batch *b)
{
    return b->bytes;
}

int store_commit(struct store *s, struct store_batch *b, bool sync)
{
    char *err = NULL;
    int rc = 0;

    if (atomic_load(&s->poisoned))
        return -EIO;
    if (FAULT("mds.store.commit")) {
        LOG_ERROR("store", "%s: commit failed by an armed fault", s->path);
        rc = -EIO;
    } else {
        store_uncounted();
        rocksdb_write(s->db, sync ? s->write_sync : s->write_nosync, b->wb, &err);
        if (err)
            rc = store_error("commit", err);
    }
    rocksdb_writebatch_clear(b->wb);
    b->bytes = 0;
    if (rc < 0)
        atomic_store(&s->poisoned, true);
    return rc;
}

struct store_snapshot *store_snapshot_take(struct store *s)
{
    struct store_snapshot *snap = mem_zalloc(sizeof(*snap));

    if (!snap)
        return NULL;
    snap->snap = rocksdb_create_snapshot(s->db);
    snap->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_total_order_seek(snap->read, 1);
    rocksdb_readoptions_set_snapshot(snap->read, snap->snap);
    return snap;
}

void store_snapshot_release(struct store *s, struct store_snapshot *snap)
{
    if (!snap)
        return;
    rocksdb_readoptions_destroy(snap->read);
    rocksdb_release_snapshot(s->db, snap->snap);
    mem_free(snap);
}

enum store_flow store_flow(struct store *s)
{
    uint64_t v = 0;

    if (rocksdb_property_int(s->db, "rocksdb.is-write-stopped", &v) == 0 && v)
        return STORE_STOPPED;
    if (rocksdb_property_int(s->db, "rocksdb.actual-delayed-write-rate", &v) == 0 && v)
        return STORE_SLOW;
    return STORE_FLOWING;
}

uint64_t store_free_bytes(struct store *s)
{
    struct statvfs v;

    if (statvfs(s->path, &v) < 0)
        return 0;
    return (uint64_t)v.f_bavail * v.f_frsize;
}
