/* SPDX-License-Identifier: Apache-2.0 */
/* Names as the client knows them: the cache (names.c), walking pages of a directory (dir.c), and
 * what is fetched before it is asked for (prelist.c), and what the server takes back
 * (invalidate.c). Included by core_int.h. */
#ifndef AIFS_CLIENT_CORE_NAMES_INT_H
#define AIFS_CLIENT_CORE_NAMES_INT_H

#include "client/core/core.h"
#include "common/base/hmap.h"

struct answer;
struct buf;
struct mds_op;

/* ---- the cache ---- */

struct name_entry {
    struct hmap_node node;
    struct list lru, of_dir;
    struct core_inode *dir; /* goes with it */
    uint64_t ino;           /* 0: does not exist */
    uint64_t event;         /* core.events_seen when it was learned */
    uint16_t len;
    char name[];
};

struct names_listed { /* in no table yet */
    struct hmap_node *first;
    uint32_t n;
};

int names_init(struct core *c) MUST_USE;
void names_fini(struct core *c);
/* From a read; true: it may be believed until the server says otherwise. */
bool names_learn(struct core *c, const struct answer *a, uint64_t parent, const char *name,
                 uint32_t len, uint64_t ino);
/* From a change of our own; flag: the RPC_FLAG_KEPT_* that speaks of the directory. */
bool names_changed(struct core *c, const struct answer *a, uint8_t flag, uint64_t parent,
                   const char *name, uint32_t len, uint64_t ino);
/* The same, of a directory that we are alone with: whatever the answer said, or will say. */
void names_set(struct core_inode *dir, const char *name, uint32_t len, uint64_t ino);
const struct name_entry *names_get(struct core *c, uint64_t parent, const char *name, uint32_t len);
/* Its directory is complete, and it is not in it. keep: the kernel will believe so too, so it is
 * remembered: when all of the directory is to be forgotten the kernel has to hear of it. */
bool names_is_absent(struct core *c, uint64_t parent, const char *name, uint32_t len, bool keep);
/* told: the kernel forgets it too. */
void names_drop(struct core *c, uint64_t parent, const char *name, uint32_t len, bool told);
void names_drop_dir(struct core_inode *dir);
void names_made_empty(const struct mds_op *op, struct core_inode *dir); /* by MKDIR, just now */
bool names_is_empty(const struct core_inode *dir);                      /* known so */
/* As names_learn(), of an entry of a listing, between two cookies; and the listing's end. */
bool names_listed(struct core_inode *dir, const struct answer *a, uint64_t from, uint64_t to,
                  const char *name, uint32_t len, uint64_t ino);
void names_list_end(struct core_inode *dir, const struct answer *a, uint64_t from);
void names_clear(struct core *c);

/* ---- pages ---- */

/* core_req.p.flags of a walk */
#define DIR_PLUS  0x1u
#define DIR_QUIET 0x2u /* nobody is told what it finds: it goes into the caches only */

/* The page of an answered READDIR is q's, for core_dirent_next(). */
void dir_page_take(struct core_req *q, struct mds_op *op);
void dir_page_set(struct core_req *q, struct buf *b, uint32_t len, const struct answer *a);

/* ---- the page listed last, again (relist.c) ---- */

void relist_keep(const struct core_req *q, const struct answer *a); /* q's: with q's caller */
bool relist_take(struct core_req *q, struct buf *b); /* true: it is in b, and that is q's page */
void relist_forget(struct core *c, uint64_t dir);    /* if it is of this directory; 0: of any */
void relist_fini(struct core *c);

/* ---- in advance ---- */

struct prelist {     /* of a directory */
    uint64_t cookie; /* where the next page begins */
    uint16_t missed; /* lookups that had to ask, since the last page */
    uint16_t left;   /* wished: names that we are alone with, and not removed yet */
    uint8_t rounds;  /* how often all of it was fetched */
    bool busy, useless;
};

/* A name of the directory had to be asked for, and the answer is kept. */
void prelist_missed(struct core *c, uint64_t dir, const struct msg_cred *cred);
/* A name of it was removed: ahead, or not, for want of what a page would have told. */
void prelist_removed(struct core_inode *dir, const struct msg_cred *cred, bool ahead);

/* ---- what the server says is about to change (invalidate.c) ---- */

void invalidate_handlers(struct core *c);
void invalidate_all(struct core *c); /* no lease on names and attributes holds any more */
/* A change of names in this directory begins: the kernel holds its lock. */
void invalidate_begin_change(struct core *c, uint64_t dir);
/* What was said of this directory is wrong: its names are forgotten, by the kernel too. */
void invalidate_doubt_dir(struct core *c, struct core_inode *dir);
void invalidate_drained(struct core *c, uint64_t ino); /* no removals of it are under way */
void invalidate_tick(struct core *c, uint64_t now);
void invalidate_fini(struct core *c);

#endif
