/* SPDX-License-Identifier: Apache-2.0 */
/* A page of a directory, built from a scan view; apart from its request, so that it can be tested
 * and measured alone. */
#ifndef AIFS_MDS_OPS_READDIR_H
#define AIFS_MDS_OPS_READDIR_H

#include "mds/ops/op.h"

struct group_name;

struct readdir_entry {
    uint64_t ino;
    uint32_t offset; /* of its record in data */
};

struct readdir_page {
    /* in */
    uint64_t cookie; /* of the last entry seen; 0: from the start */
    uint32_t max;    /* bytes */
    bool plus;
    bool (*unsure)(void *arg,
                   const struct mds_inode *in); /* leave the attributes out; may be NULL */
    /* MSG_ATTR_KEPT if it comes with a lease, and _ALONE; may be NULL */
    uint32_t (*keep)(void *arg, const struct mds_inode *in);
    void *arg;
    /* out */
    uint8_t *data;
    uint32_t len, count;
    bool full; /* there is more */
    /* private */
    struct readdir_entry *entries;
    uint32_t max_count;
    uint64_t hash;            /* of the last name; never 0 */
    uint32_t hash_at;         /* where in data its record begins, if it is there */
    struct group_name *group; /* names with that hash, when there is more than one */
    uint32_t n_group, group_cap;
};

/* What a page of a directory with so many entries may take. */
uint32_t readdir_page_bytes(const struct msg_readdir_req *req, uint64_t entries);
int readdir_page_fill(struct readdir_page *p, struct view *v, uint64_t dir) MUST_USE;
void readdir_page_fini(struct readdir_page *p); /* also after a failure */

#endif
