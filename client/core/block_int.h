/* SPDX-License-Identifier: Apache-2.0 */
/* Data cache: blocks of files (block.c, block_send.c, scatter.c). Included by core_int.h. */
#ifndef AIFS_CLIENT_CORE_BLOCK_INT_H
#define AIFS_CLIENT_CORE_BLOCK_INT_H

#include "client/core/core.h"
#include "client/core/extents.h"
#include "client/core/mem_int.h"
#include "common/base/hmap.h"
#include "common/net/buf.h"

struct core_inode;
struct oss_io;
struct oss_target;
struct inode_target;
struct scatter;

#define BLOCK_FLYING_MAX 32u /* as many pieces as a block can be dirty in */

struct block {
    struct hmap_node node;
    struct list lru;      /* core.block_lru or block_spent of its class while clean and idle */
    bool spent;           /* its reader keeps a copy, or a stream of writes has passed it */
    struct list by_inode; /* core_inode.blocks */
    struct list unc_link; /* inode_target.blocks */
    struct core_inode *inode;
    uint64_t index;
    struct buf *buf;         /* NULL: scattered */
    struct scatter *scatter; /* pages instead of a buffer, or NULL */
    struct extents valid, dirty, unc, committing;
    struct inode_target *unc_in;
    uint64_t charged;              /* room.c, for what is dirty: */
    struct oss_target *charged_to; /* counts it in unsent */
    uint32_t n_ios;                /* writes in flight */
    uint32_t fill_start, fill_end; /* being read; equal: none */
    struct oss_io *fill;
    struct list waiters;                    /* struct core_req.p.wait */
    struct extent flying[BLOCK_FLYING_MAX]; /* ranges being sent */
    uint32_t ahead; /* bytes fetched in advance that no reader has asked for yet */
    bool dead;      /* off the hash: dropped while busy, freed with the last transfer */
    bool settling;  /* those that waited for it go on right now */
};

struct block *block_find(struct core *c, const struct core_inode *i, uint64_t index);
/* Found or made with room for bytes [0, need) of the block; NULL: no memory now. */
struct block *block_get(struct core_inode *i, uint64_t index, uint32_t need, enum mem_how how);
/* A new one, which owns buf or s; NULL: no memory. */
struct block *block_new(struct core_inode *i, uint64_t index, struct buf *buf, struct scatter *s);
struct oss_target *block_target(const struct block *b);     /* of its transfers; may be NULL */
void block_account_dirty(struct block *b, uint32_t before); /* dirty has changed */
/* No target has it, and it is not to be read but where it is dirty. */
void block_not_stored(struct block *b, uint32_t start, uint32_t end);
bool block_busy(const struct block *b, uint32_t start,
                uint32_t end); /* a transfer touches that range */
void block_wait(struct block *b, struct core_req *q, void (*resume)(struct core_req *q));
void block_settle(struct block *b); /* after a change: LRU, waiters, freeing */
int block_fill(struct block *b, uint32_t start, uint32_t end,
               bool ahead);                    /* -ENOMEM; 0: under way */
void block_send(struct block *b, bool stable); /* all dirty pieces of it */
void block_drop(struct block *b);              /* forgets it; what is dirty is lost */
void block_wanted(struct block *b);            /* a reader has come */
/* Its contents in a buffer that nobody else reads; false: no memory. */
bool block_own(struct block *b);
bool blocks_all_sent(const struct core_inode *i, uint64_t from); /* nothing dirty before from */
void block_cut(struct block *b, uint32_t at);                    /* truncate inside it */
bool block_clean(const struct block *b);
bool block_evict_one(struct core *c, uint32_t bytes);
bool block_evict_class(struct core *c, unsigned class); /* the least recently used of it */
bool block_evict_spent(struct core *c, unsigned class); /* one whose reader keeps a copy */
void block_spend(struct block *b);                      /* is not expected to be read here again */
/* [start, end) holds new bytes. -ENOSPC: too scattered; send the block first. */
int block_set_dirty(struct block *b, uint32_t start, uint32_t end) MUST_USE;
void block_dirty_valid(struct block *b); /* all that is valid is dirty */
/* What a target has not taken and made durable yet; false: it is in too many pieces to tell. */
bool block_unsaved(const struct block *b, struct extents *ret_unsaved);
void block_doubt(struct block *b); /* only what is unsaved is known to be right */
/* Of an idle block: what can be read again is not valid any more. false: it has got no simpler. */
bool block_forget_clean(struct block *b);
void blocks_drop_all(struct core_inode *i, bool also_dirty);
void blocks_send_all(struct core_inode *i, bool stable);

#endif
