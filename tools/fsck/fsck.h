/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consistency check, report only: names against inodes against chunks. Fed with every record of one
 * metadata snapshot, in key order, then with every chunk of every target; then it says what does
 * not agree. Memory: about 300 bytes per inode.
 *
 * A cluster in use changes while it is read. Metadata is one snapshot and must agree with itself
 * exactly; chunks are listed afterwards, so what may differ because time has passed (a file deleted
 * or written meanwhile) is counted as a note, not as damage: chunks of inodes the snapshot does not
 * have count as orphans only if their inode number is below the snapshot's highest, or one
 * that its session had used by then (proto/number.h).
 */
#ifndef AIFS_TOOLS_FSCK_FSCK_H
#define AIFS_TOOLS_FSCK_FSCK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "proto/map.h"
#include "proto/msg.h"

struct fsck;

enum fsck_level { FSCK_NOTE, FSCK_DAMAGE };
/* One finding: code ("dirent-without-inode"), the inode it is about, one path of it from the root
 * of the file system (NULL: not known), and a sentence. */
typedef void fsck_report_fn(void *arg, enum fsck_level level, const char *code, uint64_t ino,
                            const char *path, const char *text);

struct fsck_counts {
    uint64_t inodes, directories, files, inline_files, symlinks, others, names, xattrs, orphans,
        destroy_queue, punch_queue, chunks, chunk_bytes, orphan_chunks, damage, notes;
};

int fsck_create(const struct cluster_map *map, fsck_report_fn *report, void *arg,
                struct fsck **ret_fsck) MUST_USE;
void fsck_destroy(struct fsck *f);
/* Key and value of a metadata record. -ENOMEM; a record that cannot be decoded is a finding. */
int fsck_record(struct fsck *f, const void *key, size_t key_len, const void *value,
                size_t value_len) MUST_USE;
int fsck_metadata_done(struct fsck *f) MUST_USE; /* link counts, entry counts, reachability */
int fsck_chunk(struct fsck *f, uint32_t target, const struct msg_chunk_info *chunk) MUST_USE;
void fsck_get_counts(const struct fsck *f, struct fsck_counts *ret_counts);

#endif
