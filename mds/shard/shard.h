/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shard: a deterministic state machine over one store. What changes something is an entry; one
 * writer thread takes all waiting entries as a batch, executes them in order, commits once, then
 * answers all.
 *
 * Life of an entry: the caller fills it in and calls shard_submit() (any thread); it gets its index
 * and time stamp; the writer executes it; after the commit done() runs on the entry's reactor,
 * exactly once. An entry with a slot is executed at most once: if its slot already has its
 * sequence, the kept outcome is returned and nothing is executed.
 *
 * Bounds: queue_max entries (a batch counts as many as it has items); beyond it, or while RocksDB
 * is about to stop writers, shard_submit() refuses with -AIFS_EBUSY_SERVER before anything has
 * happened. While the disk under the store has less than reserve_bytes free, entries that need
 * space are answered -ENOSPC (SHARD_E_FREES says it frees some). A failed commit is the end: every
 * waiting entry and every later one gets -EIO with SHARD_R_UNKNOWN (nobody knows whether it is on
 * the disk), failed() is called, and the process should end: after a restart the slots know.
 */
#ifndef AIFS_MDS_SHARD_SHARD_H
#define AIFS_MDS_SHARD_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/rt/reactor.h"
#include "mds/shard/txn.h"
#include "mds/store/store.h"
#include "proto/msg.h"
#include "proto/ops.h"

struct shard;

/* Operations that do not come from the wire, numbered behind RPC_OP_LIMIT. Their msg is the struct
 * in brackets. */
enum shard_op {
    SHARD_OP_FIRST = RPC_OP_LIMIT,
    SHARD_OP_FORMAT = RPC_OP_LIMIT, /* [struct shard_format] first entry of a new store: root
                                       directory, identity */
    SHARD_OP_ORPHAN_RELEASE, /* [struct shard_ino] nobody has it open: destroy if it is an orphan */
    SHARD_OP_QUEUE_DONE,     /* [struct shard_queue_done] chunks are gone or cut: remove the item */
    SHARD_OP_SIZE_RECOVERED, /* [struct shard_size] a dead writer's file, from the targets */
    SHARD_OP_SIZE_UNSURE,    /* [struct shard_size] a writer died: queue the recovery of the size */
    SHARD_OP_TIMES,          /* [struct shard_size] size and mtime that a lease holder gave back */
    SHARD_OP_READS,          /* [struct shard_reads] inodes that were read: their atime */
    /* mds/session */
    SHARD_OP_SESSION_CREATE = RPC_OP_LIMIT + 16,
    SHARD_OP_SESSION_EVICT, /* -> evicted, with a fence */
    SHARD_OP_SESSION_REMOVE,
    SHARD_OP_FENCE_FORGET,
    SHARD_OP_BOOT,           /* a new leader: counts COUNTER_BOOT */
    SHARD_OP_SESSION_UNMARK, /* files that their sessions do not write any more */
    SHARD_OP_SESSION_ALONE,  /* [struct session_set_alone] may have answered removals ahead */
    /* mds/cluster */
    SHARD_OP_MAP_SET = RPC_OP_LIMIT + 32, /* [struct cluster_map_set] */
    /* mds/locks */
    SHARD_OP_LOCKS_FREE = RPC_OP_LIMIT + 48, /* [struct locks_free] */
    /* mds/gc */
    SHARD_OP_TRASH_TREE = RPC_OP_LIMIT + 56, /* [struct trash_detach] a tree loses its name */
    SHARD_OP_TRASH_NAMES,                    /* [struct trash_names] some of its content goes */
    SHARD_OP_LIMIT = RPC_OP_LIMIT + 64
};

struct shard_format {
    struct uuid fs;
    char fs_name[64];
    uint32_t root_mode, root_uid, root_gid;
};

struct shard_ino {
    uint64_t ino;
};

struct shard_queue_done {
    enum key_type queue; /* KEY_DESTROY or KEY_PUNCH */
    uint64_t ino;
    uint64_t index; /* of the item that was worked on: a newer one stays */
};

struct shard_size {
    uint64_t ino;
    uint64_t size; /* never shrinks the file */
    bool has_mtime;
    struct msg_time mtime;
    uint64_t truncate_gen; /* of the size: an older one is ignored */
    uint64_t session;
    uint64_t index; /* SIZE_RECOVERED: of the item that was worked on: a newer one stays */
};

struct shard_reads {
    uint32_t n;
    const struct msg_read_item *items;
};

/* Outcome of an entry beside its status. */
#define SHARD_R_DUPLICATE 0x01u  /* not executed: the kept outcome */
#define SHARD_R_UNKNOWN   0x02u  /* the commit failed: it may or may not have happened */
#define SHARD_R_CREATED   0x04u  /* result_ino is new */
#define SHARD_R_ORPHANED  0x08u  /* result_ino lost its last name while open somewhere */
#define SHARD_R_DESTROY   0x10u  /* an item was added to KEY_DESTROY, for result_ino */
#define SHARD_R_PUNCH     0x20u  /* an item was added to KEY_PUNCH, for result_ino */
#define SHARD_R_RECOVER   0x40u  /* an item was added to KEY_RECOVER */
#define SHARD_R_TRASH     0x80u  /* an item was added to KEY_TRASH */
#define SHARD_R_NEWER     0x100u /* the item is not the one that is done */

#define SHARD_E_FREES                                                                              \
    0x1u /* may run when the disk is full: removes more than it adds, or is small and bounded, and \
            nothing could be removed without it */

#define SHARD_RESOLVED_MAX 4

/* One operation of a batch: what an entry of its own would have. */
struct shard_item {
    uint16_t op; /* MKNOD, MKDIR, UNLINK, RMDIR, RENAME */
    bool check_resolved, has_layout;
    bool is_open; /* what loses its name, whichever place it has */
    uint64_t resolved[2];
    const void *msg; /* as of that operation */
    struct msg_layout layout;
    int layout_status;
    /* in: not 0: it is not executed, this is its outcome. out: as of an entry */
    int status;
    uint32_t result;
    uint64_t result_ino;
};

struct shard_entry {
    struct list link;         /* the shard's, until done() */
    struct reactor_work work; /* the same */
    struct reactor *reactor;  /* where done() runs; NULL: on the writer's thread (it must be short
                                 and not submit-and-wait) */
    void (*done)(struct shard_entry *e);

    /* The entry: what a log would carry. Everything it points to stays until done(). */
    uint16_t op; /* enum rpc_op or enum shard_op */
    uint32_t flags;
    uint64_t session; /* 0: internal */
    uint32_t generation;
    uint32_t slot, sequence; /* slot 0: not exactly-once */
    const void *msg;         /* decoded request */
    const void
        *body; /* its encoded form, for a log that needs one; may be NULL with the local log */
    uint32_t body_len;
    const void *bulk; /* payload of WRITE_INLINE */
    uint32_t bulk_len;
    int64_t now_ns; /* set by shard_submit(): the leader's clock, never less than that of an earlier
                       entry */
    /* Numbers handed out by the leader (mds/session). */
    uint64_t open_id, lease_seq;
    enum msg_lease lease;
    bool holds_write;  /* WRITE_INLINE, SIZE, GROW: the session has a write lease by now */
    bool marks_writer; /* the open is to be remembered: the session may be writing that file */
    /*
     * What the leader resolved and froze: execution compares it and returns -AIFS_ERETRY when it is
     * no longer so. Which operation expects what in which place is written at the operation.
     */
    bool refused; /* it was not allowed, so nothing is frozen: RETRY if it is by now */
    bool check_resolved;
    uint64_t resolved[SHARD_RESOLVED_MAX];
    bool is_open[SHARD_RESOLVED_MAX]; /* somebody has resolved[i] open: its last unlink makes an
                                         orphan */
    /* The layout a new file gets, what a directory shall say about layouts: made by the leader from
     * the current map. */
    bool has_layout, has_stripe;
    struct msg_layout layout;
    int layout_status; /* why there is none */
    struct mds_stripe stripe;
    uint32_t inline_max; /* WRITE_INLINE: the leader's limit; 0: MSG_INLINE_MAX */
    uint32_t n_items;    /* BATCH; its items are no outcome when the entry is a duplicate */
    struct shard_item *items;

    /* The outcome, valid in done(). */
    int status;
    uint32_t result; /* SHARD_R_* */
    uint64_t result_ino;
    uint64_t index;    /* in the order of execution; 0: not executed */
    const void *reply; /* encoded reply (status 0), in the arena */
    uint32_t reply_len;
    struct arena arena;    /* the writer's until done(); then the caller's, who resets it */
    uint64_t submitted_ns; /* for latency figures */
    void *wait;            /* shard_run()'s */
};

/*
 * One operation: executes e against t. Returns the status. On 0 *ret_rep may be set to the reply
 * struct of the op (proto/ops.h), allocated with txn_alloc(); internal operations may leave any
 * struct of theirs there for done() (e->reply then points to it, e->reply_len 0).
 */
typedef int shard_exec_fn(struct txn *t, struct shard_entry *e, const void **ret_rep);
shard_exec_fn shard_exec_batch; /* BATCH: entry.items, each by its own function (batch.c) */

struct shard_options {
    const char *dir;
    uint32_t id;
    struct store_options store;
    const struct clock *clock; /* NULL: clock_real() */
    bool on_reactor;           /* no thread: whoever submits executes and commits, a reactor at
                                  the end of its turn. For tests that are one thread */
    bool sync;                 /* false: commits are not synced; for throw-away file systems */
    uint32_t queue_max;        /* entries waiting; 0: 4096 */
    uint32_t batch_max;        /* entries per commit; 0: 1024 */
    uint64_t overlay_bytes;    /* decoded objects the writer keeps between batches; 0: 64 MiB */
    uint64_t view_bytes;       /* records readers keep; 0: 64 MiB */
    uint64_t reserve_bytes;    /* kept free on the disk; 0: 64 MiB */
    shard_exec_fn *const
        *exec; /* SHARD_OP_LIMIT functions by op; NULL: unknown op. See mds/ops/exec.h */
    void (*failed)(void *arg); /* on the writer's thread, once */
    void *arg;
};

/* Opens and checks the format: -ENOENT (no store), -AIFS_EFORMAT (logged with both versions),
 * -AIFS_ECORRUPT; starts the writer. With store.create the store is new: the first entry must be
 * SHARD_OP_FORMAT. */
int shard_open(const struct shard_options *o, struct shard **ret_shard) MUST_USE;
/* Executes what is queued, stops the writer, closes. No done() is outstanding afterwards except
 * those posted to reactors. No view may be in use. */
void shard_close(struct shard *s);
/* 0: done() will run. -AIFS_EBUSY_SERVER, -AIFS_ECANCELLED (closing), -EIO (failed): it will
 * not. */
int shard_submit(struct shard *s, struct shard_entry *e) MUST_USE;
void shard_entry_init(struct shard_entry *e, unsigned op, const void *msg, struct reactor *r,
                      void (*done)(struct shard_entry *e));
void shard_entry_fini(struct shard_entry *e);
/* Submits and waits. For start, tools and tests: never on a reactor. */
int shard_run(struct shard *s, struct shard_entry *e) MUST_USE;

#define SHARD_TIGHT 4u
/* The disk has, or had at the last commit, less than SHARD_TIGHT times reserve_bytes free: soon
 * there may be no room. Any thread. */
bool shard_is_tight(struct shard *s);
struct store *shard_store(struct shard *s);
const struct format_rec *shard_format(const struct shard *s);

struct shard_stats {
    uint64_t entries, commits, duplicates, retries, refused, exec_ns, commit_ns, view_hits,
        view_misses, queued, rolled;
};
void shard_get_stats(struct shard *s, struct shard_stats *ret_stats);
/* Nothing waits: every done() so far has run or been posted. Waits for a batch under way; not in
 * a done(). For tests on a virtual clock. */
bool shard_is_idle(struct shard *s);

#endif
