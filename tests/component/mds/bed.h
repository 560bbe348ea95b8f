/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test bed for a shard: a real store in a directory of its own, formatted; one call per
 * operation, with the outcome decoded. Everything belongs to the test that made it.
 */
#ifndef AIFS_TESTS_COMPONENT_MDS_BED_H
#define AIFS_TESTS_COMPONENT_MDS_BED_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/clock.h"
#include "mds/shard/shard.h"
#include "mds/shard/view.h"
#include "proto/codec.h"
#include "proto/msg.h"

struct bed {
    char root[128], dir[160];
    struct clock_virtual clock;
    struct shard_options options;
    struct shard *shard;
    uint64_t session; /* 0: calls have no slot */
    uint32_t slot, sequence;
    bool holds_write; /* of the next call: its session has a write lease on the file */
    struct msg_cred cred;
    /* of the last call */
    struct shard_entry e;
    bool e_used;
    struct arena arena;
    const struct msg_inode_rep *rep;
    /* for the next call; reset after it */
    bool is_open[SHARD_RESOLVED_MAX];
    bool check_resolved;
    uint64_t resolved[SHARD_RESOLVED_MAX];
    const void *bulk;
    uint32_t bulk_len;
};

void bed_open(struct bed *b);                      /* makes, formats and opens */
void bed_start(struct bed *b);                     /* opens what is there */
void bed_stop(struct bed *b);                      /* closes, keeps the directory */
void bed_close(struct bed *b);                     /* closes and removes */
void bed_session(struct bed *b, uint64_t session); /* writes an open session into the store */

int bed_call(struct bed *b, unsigned op, const void *msg); /* executes; b->rep when there is one */
int bed_again(struct bed *b, unsigned op,
              const void *msg); /* with the slot and sequence of the last call */

static inline struct msg_bytes str(const char *s)
{
    return (struct msg_bytes){.data = s, .len = (uint32_t)strlen(s)};
}

int bed_make(struct bed *b, unsigned op, uint64_t parent, const char *name, uint32_t mode,
             uint64_t *ret_ino);
uint64_t bed_file(struct bed *b, uint64_t parent, const char *name); /* 0644; must succeed */
uint64_t bed_dir(struct bed *b, uint64_t parent, const char *name);  /* 0755; must succeed */
int bed_name(struct bed *b, unsigned op, uint64_t parent, const char *name); /* UNLINK, RMDIR */
int bed_rename(struct bed *b, uint64_t p, const char *n, uint64_t np, const char *nn,
               uint32_t flags);
int bed_link(struct bed *b, uint64_t ino, uint64_t parent, const char *name);
int bed_write(struct bed *b, uint64_t ino, uint64_t offset, const void *data, uint32_t len,
              unsigned how);
#define BED_REPLACE 1u
#define BED_APPEND  2u

/* Committed state. */
uint64_t bed_lookup(struct bed *b, uint64_t parent, const char *name); /* 0: absent */
int bed_inode(struct bed *b, uint64_t ino, struct mds_inode *ret);
unsigned bed_count(struct bed *b, enum key_type type); /* records of a type */
bool bed_has(struct bed *b, enum key_type type, uint64_t n);
/* The tree agrees with itself: link counts, entry counts, parents, inodes without names,
 * COUNTER_INODES. Aborts the test when not. */
void bed_check_tree(struct bed *b);

#define ck_ok(expr) ck_assert_int_eq((expr), 0)

#endif
