/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the chunk store. One reactor owns everything here; the committer thread sees only a
 * struct chunk_batch while it is posted to it.
 *
 * A chunk in memory has three states: what readers see now (its fields), what the last commit took
 * (the posted batch), and what is durable. A home block (its place in the slot) that the durable or
 * the posted record refers to is `locked`: it is never overwritten in place. A write to such a
 * block is logged (small) or the chunk moves to a new slot (large).
 */
#ifndef AIFS_OSS_CHUNK_STORE_INT_H
#define AIFS_OSS_CHUNK_STORE_INT_H

#include <pthread.h>

#include "common/base/hmap.h"
#include "common/net/buf.h"
#include "common/rt/thread.h"
#include "common/stat/stat.h"
#include "oss/chunk/index.h"
#include "oss/chunk/seg.h"
#include "oss/chunk/slots.h"
#include "oss/chunk/store.h"

/* ---- objects in memory ---- */

struct chunk_inode {
    struct hmap_node node;
    uint64_t ino;
    uint64_t gen;      /* largest truncate generation applied or written with */
    uint64_t gen_done; /* largest applied: what its record says */
    bool tombstone;
    bool damaged;        /* its record: nothing but DESTROY, which writes another */
    bool missed, looked; /* a chunk was asked for that it does not have; and another */
    bool whole;          /* each chunk that has a record is in memory */
    uint32_t refs;
    uint32_t taken;  /* chunks of it that a commit took, so far */
    uint32_t shared; /* operations inside the gate */
    bool exclusive, granting;
    struct list waiting; /* chunk_op.wait_link */
    struct list chunks;  /* chunk.inode_link */
};

#define CHUNK_LOG_DIRTY   0x1u /* to be put into the index */
#define CHUNK_LOG_ON_DISK 0x2u /* in the index, or in the posted batch */

struct chunk_log {
    uint32_t block;
    uint32_t crc;
    uint32_t flags;
    uint8_t *data; /* NULL: dropped, to be deleted from the index */
};

struct chunk {
    struct hmap_node node;
    struct chunk_inode *inode;
    struct list inode_link;
    struct list lru_link; /* on store->lru while refs is 0 and it is clean */
    uint64_t index;
    uint32_t refs;
    /* what readers see */
    struct chunk_slot slot;
    uint32_t len;
    uint64_t version, truncate_gen, op_ids[2];
    uint32_t cap_blocks; /* of the arrays below, which are one allocation */
    uint32_t *crcs;
    uint64_t *present, *locked, *logged, *next_locked; /* bitmaps */
    struct chunk_log *logs;                            /* sorted by block */
    uint32_t n_logs, cap_logs;
    uint32_t log_promised; /* entries that writes on their way will take */
    /* what is durable, and what is being committed */
    struct chunk_slot disk_slot;
    bool on_disk;      /* has a record */
    bool record_dirty; /* the record must be written again */
    bool logs_dirty;
    bool dirty;      /* on store->dirty */
    bool wanted;     /* on store->wanted */
    bool barrier;    /* no new writer until the commit has taken it */
    bool committing; /* in the posted batch */
    struct chunk_slot posted_slot;
    struct list dirty_link, wanted_link, batch_link, fold_link;
    uint64_t seq;        /* of the newest change */
    uint64_t posted_seq; /* changes up to here are in the posted batch */
    uint64_t durable_seq;
    bool posted_record; /* the posted batch leaves a record of it */
    uint64_t dirty_bytes, posted_bytes;
    struct list waiting; /* chunk_op.wait_link: for a commit of wait_seq */
    /* who works on it */
    struct list holds, hold_queue; /* chunk_op.hold.link */
    uint32_t writers;              /* exclusive holds */
    bool granting;
};

/* Writes that are not done again (chunk_op.op_id): the last two. */
static inline bool chunk_has_op(const struct chunk *c, uint64_t op_id)
{
    return c->op_ids[0] == op_id || c->op_ids[1] == op_id;
}

static inline void chunk_note_op(struct chunk *c, uint64_t op_id)
{
    if (!op_id || chunk_has_op(c, op_id))
        return;
    c->op_ids[1] = c->op_ids[0];
    c->op_ids[0] = op_id;
}

#define CHUNK_BIT(map, b)   ((uint32_t)((map)[(b) / 64] >> ((b) % 64) & 1))
#define CHUNK_SET(map, b)   ((map)[(b) / 64] |= 1ull << ((b) % 64))
#define CHUNK_CLEAR(map, b) ((map)[(b) / 64] &= ~(1ull << ((b) % 64)))

static inline bool slot_equal(struct chunk_slot a, struct chunk_slot b)
{
    return a.class == b.class && a.number == b.number;
}

/* What the committer works on while the reactor goes on; one at a time. */
struct chunk_batch {
    struct reactor_work work;
    struct chunk_store *store;
    rocksdb_writebatch_t *wb;
    int *fds;
    unsigned n_fds, cap_fds;
    uint64_t bytes;           /* in wb */
    struct list chunks;       /* chunk.batch_link */
    struct list ops;          /* chunk_op.wait_link: waiting for the end of this batch */
    struct chunk_slot *frees; /* slots that nothing refers to once this is durable */
    uint32_t n_frees, cap_frees;
    int status;
};

/* What is known of the slots of a class, a byte each, as far as one was written. */
struct chunk_slot_states {
    uint8_t *state;
    uint32_t n, n_mapped;
};

struct chunk_store {
    struct chunk_store_options options;
    char *path; /* for people and looks: another directory may be there by now */
    char *at;   /* the one that was opened, wherever it is: files are opened through this */
    char tag[64];
    struct super super;
    int lock_fd, dir_fd;
    dev_t dir_dev; /* the directory that was opened */
    ino_t dir_ino;
    struct reactor *reactor;
    struct fio *fio;
    uint64_t verifier;
    struct index index;
    struct seg_set seg;
    struct slots slots;
    int failed; /* -errno of the sync that failed: nothing is written any more */

    struct hmap inodes, chunks;
    struct list lru; /* least recently used first */
    uint64_t cached_bytes;
    uint64_t n_records;

    struct list dirty, wanted, fold;
    uint64_t seq, dirty_bytes;
    uint64_t log_blocks, log_blocks_max; /* held in memory */
    uint64_t log_promised;               /* room that writes on their way will take */
    struct list log_free;                /* blocks to use: as many as are promised, or more */
    uint64_t log_spare;                  /* in log_free */
    struct chunk_op fold_op;             /* the background fold, one chunk after the other */
    bool folding, closing, close_waits_fold;
    uint32_t fold_left; /* chunks this pass may still take */
    struct reactor_timer commit_timer;
    struct reactor_timer space_timer;
    struct reactor_work build_work;
    bool build_pending;

    struct list batch_ops; /* operations that put something into the next batch (op->build) */
    struct chunk_batch batch;
    bool batch_posted;
    uint8_t *encode; /* for the largest record */
    pthread_t committer;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct chunk_batch *posted; /* under lock */
    bool stop;                  /* under lock */
    bool committer_running;
    uint64_t slow_until_ns, slow_ns; /* the reactor commits nothing: the last one slept */

    struct chunk_slot_states slot_states[SLOTS_CLASSES];
    uint64_t mapped_bytes;
    struct chunk_slot map_hand; /* where letting go of mapped slots went on to */
    struct chunk_ready {
        uint64_t seq;         /* s->seq when the space timer last saw writes */
        unsigned idle;        /* its turns since */
        unsigned calm;        /* its turns since streams last took much of what they were offered */
        uint64_t want;        /* what streams would have found useful */
        uint64_t taken, late; /* slots.classes[].taken_bytes and late_bytes of its last turn */
        uint64_t ahead;       /* bytes to prepare */
        struct reactor_timer timer;
        uint64_t n_ops;             /* s->n_ops when it last looked */
        uint32_t at;                /* the next slot to look at */
        uint64_t passed;            /* bytes of free slots before it */
        struct worker_pool *helper; /* NULL until it is needed */
        struct worker_job job;      /* fills memory in */
        bool busy, beside;          /* a job is under way; a thread does it */
        bool lost;                  /* pages went meanwhile: of which slots is not known here */
        struct chunk_slot slot;     /* the job's; its memory, and whether that is there now */
        uint8_t *memory;
        int status;
        void (*stopped)(struct chunk_store *s); /* when the job is over */
    } ready;
    uint64_t n_ops;    /* submitted, and places looked for */
    uint32_t n_places; /* given out, neither taken nor given back */

    struct buf_pool *edges;  /* two blocks each */
    struct buf_pool *copies; /* CHUNK_IO_MAX and two blocks */
    uint32_t zero_crc;

    void (*closed)(void *arg, int status);
    void *closed_arg;
    struct chunk_op close_op;

    struct stat_counter n_commits, n_syncs, n_errors, n_logged, n_folded, n_moves, n_copied,
        n_placed, n_mapped, n_map_looks, n_here, n_loads;
    struct stat_gauge g_used, g_free, g_dirty, g_log, g_ready, g_mapped;
    char labels[64];
    bool counted; /* registered */
};

/* ---- metrics.c ---- */
void chunk_metrics_start(struct chunk_store *s);
void chunk_metrics_stop(struct chunk_store *s);
void chunk_metrics_update(struct chunk_store *s); /* the gauges */

/*
 * ---- op.c: running an operation ----
 *
 * What an operation waits for, who wakes it, and what it may have in hand then:
 *
 *   gate of the inode    gate_leave() of the last one in the way      nothing
 *   hold of the chunk    chunk_hold_grant(): an overlapping hold       gate
 *                        ended, or the commit took the chunk
 *   edges (a buffer)     buf_put() of another operation                gate, hold
 *   copies (a buffer)    buf_put() of another operation                gate, hold, edges
 *   disk                 fio                                           all of these
 *   commit               batch_done(), commit_fail()                   gate
 *
 * A commit waits for the writers of its chunks: whoever waits for a commit with a hold or a buffer
 * in hand may wait for itself. Everything else is taken in the order of this table.
 */

/* What a step returns: how the operation ended (<= 0), or: */
#define STEP_WAIT  1 /* chunk_op_wake() comes */
#define STEP_AGAIN 2

void chunk_op_wake(struct chunk_op *op, int status); /* op->io_status = status, and on with it */
/* The gate of an inode: many shared, or one exclusive. Grants by chunk_op_wake(). */
void chunk_gate_enter(struct chunk_op *op, bool exclusive);
/* 0, -ENOENT (destroyed), -AIFS_ESTALE_TRUNC or -AIFS_ECORRUPT (its record). writes: remember a
 * newer generation. */
int chunk_gate_check(struct chunk_op *op, bool writes) MUST_USE;
/* Blocks [from, to) of op->c; exclusive for writers. Grants by chunk_op_wake(). */
void chunk_hold(struct chunk_op *op, uint32_t from, uint32_t to, bool exclusive);
/* From some blocks to the whole chunk, ahead of all who wait. */
void chunk_hold_upgrade(struct chunk_op *op);
void chunk_hold_release(struct chunk_op *op);
void chunk_hold_grant(struct chunk_store *s, struct chunk *c); /* after a barrier fell */

/* ---- chunk.c: objects ---- */

int chunk_inode_get(struct chunk_store *s, uint64_t ino, struct chunk_inode **ret_inode) MUST_USE;
void chunk_inode_put(struct chunk_store *s, struct chunk_inode *i);
/* Finds it in memory or loads it; an empty one when there is none. The caller holds the inode. */
int chunk_get(struct chunk_store *s, struct chunk_inode *i, uint64_t index,
              struct chunk **ret_chunk) MUST_USE;
struct chunk *chunk_find(struct chunk_store *s, uint64_t ino, uint64_t index);
void chunk_put(struct chunk_store *s, struct chunk *c);
int chunk_reserve(struct chunk_store *s, struct chunk *c, uint32_t blocks) MUST_USE;
void chunk_drop(struct chunk_store *s, struct chunk *c); /* out of memory, whatever it holds */
void chunk_cache_shrink(struct chunk_store *s, uint64_t to_bytes);
/* A change happened: it is dirty. bytes: for the bound on unstable data. */
void chunk_mark_dirty(struct chunk_store *s, struct chunk *c, uint64_t bytes);
/* Gives up c's slot for another (class 0: none); frees the old one now or after the commit. */
void chunk_set_slot(struct chunk_store *s, struct chunk *c, struct chunk_slot slot);

/* ---- scan.c: the index, at start ---- */

int chunk_scan(struct chunk_store *s) MUST_USE; /* -AIFS_ECORRUPT: told */

/* ---- log.c: logged blocks ---- */

struct chunk_log *chunk_log_find(struct chunk *c, uint32_t block); /* with data; NULL */
int chunk_log_put(struct chunk_store *s, struct chunk *c, uint32_t block, const uint8_t *data,
                  uint32_t crc) MUST_USE; /* copies */
/* Room and memory for n blocks of c: -ENOMEM, and nothing is reserved. Each is used up by
 * chunk_log_put_reserved(), which cannot fail, or given back. */
int chunk_log_reserve(struct chunk_store *s, struct chunk *c, uint32_t n) MUST_USE;
void chunk_log_unreserve(struct chunk_store *s, struct chunk *c, uint32_t n);
void chunk_log_put_reserved(struct chunk_store *s, struct chunk *c, uint32_t block,
                            const uint8_t *data, uint32_t crc);
void chunk_log_drop(struct chunk_store *s, struct chunk *c, uint32_t from, uint32_t to);
/* From the index, at start. */
int chunk_log_attach(struct chunk_store *s, struct chunk *c, uint32_t block,
                     const struct log_record *r) MUST_USE;
/* Its record in the index is damaged: what the home holds is older, so the block gets a sum that is
 * wrong for it, and the next commit puts that in the place of the record. */
int chunk_log_lose(struct chunk_store *s, struct chunk *c, uint32_t block) MUST_USE;
void chunk_log_free_all(struct chunk_store *s, struct chunk *c);
bool chunk_log_has_room(const struct chunk_store *s, uint32_t blocks);
void chunk_log_release_pool(struct chunk_store *s);

/* ---- io.c: blocks from and to slots ---- */

/* Fills dest with blocks [from, to): slot, log or zeros, each checked. Ends in chunk_op_wake(). */
void chunk_fetch(struct chunk_op *op, uint32_t from, uint32_t to, uint8_t *dest);
/* Writes n iovecs to a block of a slot. Ends in chunk_op_wake(). crcs, only where the slot is
 * mapped (chunk_place_mapped()): op's first block, and the sums that its blocks must have; what is
 * wrong ends it with -AIFS_ECHECKSUM, a part of the slot written. */
void chunk_store_blocks(struct chunk_op *op, struct chunk_slot slot, uint32_t block, unsigned n_iov,
                        const uint32_t *crcs);
/* What came from the network at this offset of the chunk has not the sum that came with it. */
void chunk_report_damaged(const struct chunk_op *op, uint32_t offset);
int chunk_check_sums(const struct chunk_op *op) MUST_USE; /* of a WRITE: what came with it */
void chunk_report_corrupt(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t block,
                          const char *what);

/* ---- ready.c: space for the next writes, on targets in memory ---- */

void chunk_ready_init(struct chunk_store *s);
void chunk_ready_stop(struct chunk_store *s); /* nothing new is begun */
/* True: stopped() comes when what is under way has ended; false: nothing is. */
bool chunk_ready_wait(struct chunk_store *s, void (*stopped)(struct chunk_store *s)) MUST_USE;
void chunk_ready_fini(struct chunk_store *s); /* nothing is under way */
void chunk_ready_turn(struct chunk_store *s); /* of the space timer */

/* ---- place.c: slots as receive buffers ---- */

#define CHUNK_PLACE_CLASS_MAX 20u /* CHUNK_IO_MAX */

extern const struct slots_ops chunk_place_slots_ops; /* seg_slots_ops, and what is mapped with it */
/* Something was written into a slot: its pages are there, and it may be a place when it is free. */
void chunk_place_written(struct chunk_store *s, struct chunk_slot slot);
/* A slot's memory, if all of it is mapped; until the next event. NULL: read the file. */
uint8_t *chunk_place_mapped(struct chunk_store *s, struct chunk_slot slot);
/* Before anybody needs a free slot: 1, *ret_at is to be filled in by whoever may wait for that, and
 * chunk_place_prepared() says that it was; 0: it is mapped; negative: not now. */
int chunk_place_prepare(struct chunk_store *s, struct chunk_slot slot, uint8_t **ret_at) MUST_USE;
void chunk_place_prepared(struct chunk_store *s, struct chunk_slot slot);
/* May op, which holds its whole chunk or will, make its place the chunk's slot? */
bool chunk_place_fits(const struct chunk_op *op);
uint32_t chunk_place_checked(const struct chunk_op *op); /* its first bytes, while they landed */
/* The place becomes op->write.slot, with the data in it. -EIO: a fault point. */
int chunk_place_take(struct chunk_op *op) MUST_USE;
void chunk_places_free(struct chunk_store *s);

/* ---- commit.c ---- */

int chunk_commit_start(struct chunk_store *s) MUST_USE; /* the thread */
void chunk_commit_stop(struct chunk_store *s);
void chunk_commit_want(struct chunk_store *s, struct chunk *c);
void chunk_commit_want_all(struct chunk_store *s);
/* Inside op->build() only: takes c into the batch, whatever list it is on. */
void chunk_commit_take(struct chunk_store *s, struct chunk *c);
/* Waits until changes of c up to now are durable; false: they are. Ends in chunk_op_wake(). */
bool chunk_commit_wait(struct chunk_op *op, struct chunk *c, uint64_t seq);
/* op->build() puts something into the next batch; wakes when that is durable. */
void chunk_commit_with(struct chunk_op *op);
/* Inside op->build() only. */
void chunk_commit_free_slot(struct chunk_store *s,
                            struct chunk_slot slot); /* when the next batch is durable */
void chunk_commit_schedule(struct chunk_store *s);
void chunk_commit_timer(struct reactor_timer *t);
void chunk_commit_build(struct reactor_work *w);

/* ---- operations, one file each ---- */

int op_read_step(struct chunk_op *op);
int op_write_step(struct chunk_op *op);
int op_commit_step(struct chunk_op *op);
int op_truncate_step(struct chunk_op *op);
int op_punch_step(struct chunk_op *op);
int op_destroy_step(struct chunk_op *op);
int op_seal_step(struct chunk_op *op);
int op_seek_step(struct chunk_op *op);
int op_fence_step(struct chunk_op *op);
void op_write_fini(struct chunk_op *op);
int op_fold_step(struct chunk_op *op);
extern const struct sm_conf op_read_sm, op_write_sm, op_commit_sm, op_fence_sm, op_fold_sm;

/* ---- cut.c: what TRUNCATE, PUNCH, DESTROY, SEAL and SEEK share ---- */

struct chunk_victim {
    uint64_t chunk;
    struct chunk_slot slot;
    bool damaged; /* its record: what is logged of it is not known */
};

struct chunk_cut {
    struct reactor_work work;
    struct chunk_op *op;
    struct chunk_victim *victims; /* chunks of the inode in the index, in order */
    uint32_t n_victims, cap_victims, next;
    uint32_t max_victims; /* the scan stops after so many, with more set; 0: never */
    bool more;
    uint32_t taken;              /* inode->taken when the scan began */
    uint64_t scan_from, scan_to; /* chunks, to inclusive */
    uint32_t lo, hi;             /* bytes of op->c that become zeros */
    struct buf *block;
};

enum { C_START, C_GATE, C_FLUSH, C_SCAN, C_BUFFER, C_HEAD, C_TAIL, C_COMMIT, C_END };
extern const struct sm_conf op_truncate_sm, op_punch_sm, op_destroy_sm, op_seal_sm, op_seek_sm;
int cut_start(struct chunk_op *op);           /* C_START -> C_GATE */
int cut_end(struct chunk_op *op, int status); /* -> C_END */
/* Waits until nothing of the inode is being committed, or (dirty) nothing is uncommitted. False: it
 * is so. */
bool cut_flush(struct chunk_op *op, bool dirty);
/* Lists chunks [from, to] of the inode into victims; ends in chunk_op_wake(). */
void cut_scan(struct chunk_op *op, uint64_t from, uint64_t to);
/* Zeroes [lo, hi) of op->c: moves through C_BUFFER C_HEAD C_TAIL. */
int cut_zero(struct chunk_op *op, uint32_t lo, uint32_t hi);
int cut_zero_step(struct chunk_op *op, bool *ret_done); /* for those states */
void cut_put_block(struct chunk_op *op); /* what cut_zero() took; before the wait for a commit */
/* Inside op->build(): the victims go, from memory and from the index. */
void cut_kill(struct chunk_op *op, uint64_t from);
void cut_put_inode(struct chunk_op *op, const struct inode_record *r);
void op_cut_fini(struct chunk_op *op);

/* ---- op_fold.c ---- */
void chunk_fold_check(struct chunk_store *s); /* start folding when the log is half full */
void chunk_fold_all(struct chunk_store *s);   /* once over all of it */

#endif
