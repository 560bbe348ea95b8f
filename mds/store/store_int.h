/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share. */
#ifndef AIFS_MDS_STORE_STORE_INT_H
#define AIFS_MDS_STORE_STORE_INT_H

#include <rocksdb/c.h>
#include <stdatomic.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "mds/store/store.h"

#define STORE_GROUP_BYTES 15 /* type, parent, hash: key_dirent_hash() */

struct store {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *cf;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_newest;
    rocksdb_writeoptions_t *write_sync, *write_nosync;
    char *path;
    atomic_bool poisoned; /* a commit failed */
};

struct store_batch {
    rocksdb_writebatch_t *wb;
    size_t bytes;
};

struct store_snapshot {
    const rocksdb_snapshot_t *snap;
    rocksdb_readoptions_t *read;
};

/* RocksDB counts each thread's comparisons, unless that thread says that nobody asks for them:
 * before whatever reads or writes much. */
void store_uncounted(void);
int store_error(const char *what, char *text); /* logs and frees text */

#endif
