// SPDX-License-Identifier: Apache-2.0
/*
 * RocksDB as a target's index. Every error of RocksDB is logged here with its text and becomes -EIO
 * (-ENOSPC when the file system is full).
 */
#include "oss/chunk/index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"

static int index_error(const struct index *x, const char *what, char *err)
{
    int rc = strstr(err, "No space left") ? -ENOSPC : -EIO;

    LOG_ERROR(x->tag, "index: %s: %s", what, err);
    rocksdb_free(err);
    return rc;
}

/* RocksDB counts each thread's comparisons, unless that thread says that nobody asks for them. */
static void index_uncounted(void)
{
    static _Thread_local bool told;

    if (!told)
        rocksdb_set_perf_level(rocksdb_disable);
    told = true;
}

static void index_set_options(struct index *x, const struct index_options *o)
{
    x->options = rocksdb_options_create();
    x->table = rocksdb_block_based_options_create();
    x->cache = rocksdb_cache_create_lru(o->block_cache_bytes);
    rocksdb_block_based_options_set_block_cache(x->table, x->cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(x->table, 1);
    rocksdb_block_based_options_set_filter_policy(x->table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(x->options, x->table);
    rocksdb_options_set_create_if_missing(x->options, 1);
    rocksdb_options_set_compression(x->options, rocksdb_no_compression);
    rocksdb_options_set_write_buffer_size(x->options, o->memtable_bytes);
    rocksdb_options_set_max_write_buffer_number(x->options, 3);
    rocksdb_options_set_max_background_jobs(x->options, 2);
    /* Tables that are not put together yet take the room of a full file system several times over:
     * commits wait for that after a few of them; RocksDB's own 36 are more than the reserve. */
    rocksdb_options_set_level0_slowdown_writes_trigger(x->options, 6);
    rocksdb_options_set_level0_stop_writes_trigger(x->options, 8);
    rocksdb_options_set_keep_log_file_num(x->options, 2);
    rocksdb_options_set_max_open_files(x->options, 256);
    rocksdb_options_set_paranoid_checks(x->options, 1);
    rocksdb_options_set_info_log_level(x->options, 2); /* warnings */
}

bool index_is_there(const char *dir)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/CURRENT", dir);
    return access(path, F_OK) == 0 || errno != ENOENT;
}

int index_open(struct index *x, const char *dir, const char *target, const char *tag,
               const struct index_options *o)
{
    char *err = NULL;

    memset(x, 0, sizeof *x);
    x->tag = tag;
    index_set_options(x, o);
    x->ro = rocksdb_readoptions_create();
    x->ro_scan = rocksdb_readoptions_create();
    x->ro_range = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(x->ro_scan, 0);
    x->wo = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(x->wo, 1);
    x->db = rocksdb_open(x->options, dir, &err);
    if (!x->db) {
        int rc = index_error(x, target, err);

        index_close(x);
        return rc;
    }
    return 0;
}

void index_close(struct index *x)
{
    if (x->db)
        rocksdb_close(x->db);
    if (x->options) {
        rocksdb_options_destroy(x->options);
        rocksdb_block_based_options_destroy(x->table);
        rocksdb_cache_destroy(x->cache);
        rocksdb_readoptions_destroy(x->ro);
        rocksdb_readoptions_destroy(x->ro_scan);
        rocksdb_readoptions_destroy(x->ro_range);
        rocksdb_writeoptions_destroy(x->wo);
    }
    memset(x, 0, sizeof *x);
}

int index_get(struct index *x, const uint8_t *key, size_t key_len, char **ret_value,
              size_t *ret_len)
{
    char *err = NULL, *value;
    size_t len;

    index_uncounted();
    value = rocksdb_get(x->db, x->ro, (const char *)key, key_len, &len, &err);
    if (err)
        return index_error(x, "read", err);
    if (!value)
        return -ENOENT;
    *ret_value = value;
    *ret_len = len;
    return 0;
}

void index_value_free(char *value)
{
    rocksdb_free(value);
}

int index_write(struct index *x, rocksdb_writebatch_t *batch)
{
    char *err = NULL;

    index_uncounted();
    rocksdb_write(x->db, x->wo, batch, &err);
    return err ? index_error(x, "commit", err) : 0;
}

void index_scan_start(struct index *x, struct index_scan *s, const uint8_t *key, size_t key_len)
{
    index_uncounted();
    s->it = rocksdb_create_iterator(x->db, x->ro_scan);
    rocksdb_iter_seek(s->it, (const char *)key, key_len);
}

void index_scan_start_range(struct index *x, struct index_scan *s, const uint8_t *key,
                            size_t key_len, const uint8_t *end, size_t end_len)
{
    index_uncounted();
    rocksdb_readoptions_set_iterate_upper_bound(x->ro_range, (const char *)end, end_len);
    s->it = rocksdb_create_iterator(x->db, x->ro_range);
    rocksdb_iter_seek(s->it, (const char *)key, key_len);
}

void index_scan_start_back(struct index *x, struct index_scan *s, const uint8_t *key,
                           size_t key_len)
{
    index_uncounted();
    s->it = rocksdb_create_iterator(x->db, x->ro_scan);
    rocksdb_iter_seek_for_prev(s->it, (const char *)key, key_len);
}

bool index_scan_valid(struct index_scan *s)
{
    if (!rocksdb_iter_valid(s->it))
        return false;
    s->key = (const uint8_t *)rocksdb_iter_key(s->it, &s->key_len);
    s->value = (const uint8_t *)rocksdb_iter_value(s->it, &s->value_len);
    return true;
}

void index_scan_next(struct index_scan *s)
{
    rocksdb_iter_next(s->it);
}

void index_scan_prev(struct index_scan *s)
{
    rocksdb_iter_prev(s->it);
}

int index_scan_end(struct index *x, struct index_scan *s)
{
    char *err = NULL;

    rocksdb_iter_get_error(s->it, &err);
    rocksdb_iter_destroy(s->it);
    s->it = NULL;
    return err ? index_error(x, "scan", err) : 0;
}
