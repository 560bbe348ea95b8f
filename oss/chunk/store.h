/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunk store: chunks of inodes on one target (docs/on-disk-oss.md). Usable without a network.
 *
 * A chunk is addressed by (inode, index) and holds up to 64 MiB. What is acknowledged as stable, or
 * covered by a later CHUNK_COMMIT, survives kill -9 and power cut; what is not is old or new, block
 * by block, never a mixture within a block and never garbage: every block carries a CRC-32C that is
 * checked on each read and before each merge.
 *
 * Threads: a store belongs to one reactor. All calls are made there, all completions run there; the
 * store has one thread of its own, the committer. Only open, close's tail and format block.
 *
 * Operations: fill in a struct chunk_op (zeroed first), then chunk_store_submit(). It and
 * everything it points to is caller-owned until done() has run, exactly once, perhaps before submit
 * returns.
 *
 * Order: operations on one chunk whose block ranges overlap run in the order they were submitted;
 * TRUNCATE, PUNCH, DESTROY and SEAL of an inode run alone, after what was submitted before them.
 *
 * Failures: -ENOSPC, -AIFS_ESTALE_TRUNC (truncate generation too old), -ENOENT (the inode was
 * destroyed), -AIFS_ECHECKSUM (data does not match the sums that came with it), -AIFS_ECORRUPT
 * (data on disk does not match), -EIO (the disk says so, or the store has failed: after a failed
 * sync nothing more is written until a restart), -EINVAL, -ENOMEM.
 */
#ifndef AIFS_OSS_CHUNK_STORE_H
#define AIFS_OSS_CHUNK_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/ids.h"
#include "common/net/buf.h"
#include "common/rt/reactor.h"
#include "common/rt/sm.h"
#include "common/uring/fio.h"
#include "oss/chunk/chunk_fmt.h"
#include "oss/chunk/super.h"

#define CHUNK_IO_MAX (1u * MIB) /* of one READ or WRITE */

struct chunk_store;
struct chunk_store_options {
    const char *path;
    const char *engine; /* "auto", "plain", "uring" */
    struct reactor *reactor;
    struct fio *fio;
    struct uuid cluster;         /* must be the one in the superblock, else -AIFS_ECLUSTER */
    uint64_t capacity_bytes;     /* 0: what the file system has */
    uint64_t cache_bytes;        /* decoded chunk records */
    uint64_t log_bytes;          /* small overwrites not yet folded; less on a small target */
    uint64_t dirty_bytes;        /* unstable data; beyond it writes wait for their commit */
    uint64_t commit_interval_ns; /* unstable data is committed after that */
    uint64_t memtable_bytes, block_cache_bytes;
    uint64_t tombstone_ns; /* how long a destroyed inode is remembered */
    uint64_t mapped_bytes; /* slots kept mapped as places for payloads (tmpfs only); 0: none */
    uint64_t ready_bytes;  /* of them, made ready while nothing is asked for (ready.c); 0: none */
};
void chunk_store_options_default(struct chunk_store_options *o);

/* Opens a formatted target (super_format()); scans its index. Blocks. */
int chunk_store_open(const struct chunk_store_options *o, struct chunk_store **ret_store) MUST_USE;
/* Commits everything, then closes; done() runs on the reactor, after which the store is gone. No
 * operation may be in flight. */
void chunk_store_close(struct chunk_store *s, void (*done)(void *arg, int status), void *arg);

const struct super *chunk_store_super(const struct chunk_store *s);
const char *chunk_store_path(const struct chunk_store *s);
/* Its path leads elsewhere, or nowhere: the directory was renamed, or its file system detached.
 * What is open goes on, but nothing new can be opened in it. Any thread; blocks as long as its disk
 * does not answer. */
bool chunk_store_is_away(const struct chunk_store *s);
int chunk_store_set_id(struct chunk_store *s,
                       uint32_t id) MUST_USE; /* the cluster numbered it; blocks */
uint64_t chunk_store_verifier(const struct chunk_store *s);
/* The fences it remembers, one call each. */
void chunk_store_fences(struct chunk_store *s,
                        void (*fn)(void *arg, uint64_t session, uint32_t generation), void *arg);

enum chunk_op_kind {
    CHUNK_READ, /* ino chunk truncate_gen offset len (multiples of CHUNK_BLOCK) data crcs -> ret_len
                   ret_crcs */
    CHUNK_VERIFY,   /* ino chunk: reads and checks it all */
    CHUNK_WRITE,    /* ino chunk truncate_gen op_id offset len data crcs stable */
    CHUNK_COMMIT,   /* ino: everything acknowledged so far is durable; ino 0: of all inodes */
    CHUNK_TRUNCATE, /* ino truncate_gen chunk_bytes start */
    CHUNK_PUNCH,    /* ino truncate_gen chunk_bytes start end */
    CHUNK_DESTROY,  /* ino */
    CHUNK_SEAL,     /* ino truncate_gen chunk_bytes -> ret_high_water */
    CHUNK_SEEK,     /* ino truncate_gen chunk_bytes stride start end hole -> ret_found ret_offset */
    CHUNK_FENCE,    /* fences n_fences: remember them */
    CHUNK_FOLD,     /* internal */
};

/*
 * An unused slot as the buffer in which the payload of one write lands, on a target in memory: what
 * is in it counts for nothing until a CHUNK_WRITE with it has checked the sums and taken it.
 */
struct chunk_place {
    struct chunk_store *store;
    struct chunk_slot slot; /* class 0: taken by a write, or given back */
    uint8_t *data;
    const uint32_t *crcs; /* what its blocks are to sum up to; NULL: not known yet */
    uint32_t checked;     /* so many bytes do */
    uint32_t landed;      /* came by chunk_store_land() */
};

struct chunk_fence {
    uint64_t session;
    uint32_t generation;
};

struct chunk;
struct chunk_cut;
struct chunk_inode;
struct chunk_op;
struct seg_file;

struct chunk_fetch { /* private to oss/chunk: blocks on their way from a slot to memory */
    struct chunk_op *op;
    struct chunk *chunk;
    uint8_t *dest;
    uint32_t base, next, end, run_end;
    struct fio_op fio;
    struct iovec iov;
    const uint8_t *mapped; /* the slot, where its blocks are copied from; NULL: they are read */
    bool submitting, completed;
    int status;
};

struct chunk_write {        /* private to oss/chunk: what a write has decided */
    uint32_t from, to;      /* blocks */
    uint64_t log_map[5];    /* of them, relative to from: those that go into the log */
    uint32_t n_log;         /* room of the log taken for them */
    bool whole;             /* needs the chunk for itself: it gets a new slot */
    struct chunk_slot slot; /* new one, taken; class 0: none */
    struct buf *edges;      /* merged first and last block */
    struct buf
        *copy; /* the other blocks on their way to the new slot, or an aligned copy of the data */
    struct buf_waiter waiter;
    bool head, tail; /* the edge comes from edges */
    bool copying;    /* blocks outside the write are being brought to the new slot */
    bool placed;     /* the data is in the new slot already */
    bool unchecked;  /* the sums that came with the data have not been checked yet */
    bool retried;    /* no space: waited for the slots that a commit frees */
    uint32_t head_crc, tail_crc;
    uint32_t next, run;     /* progress of copying and writing */
    const uint8_t *aligned; /* block `from` starts here, if the data had to be moved */
};

struct chunk_op {
    enum chunk_op_kind kind;
    void (*done)(struct chunk_op *op, int status);
    void *arg;
    /* in */
    uint64_t ino, chunk, truncate_gen;
    uint64_t op_id; /* WRITE: if it is among the last two of the chunk it is done; 0: it has none */
    uint32_t offset, len;
    uint32_t chunk_bytes, stride;
    uint64_t start, end;
    bool hole;
    void *data;     /* READ: page aligned, len bytes; a read writes whole blocks */
    uint32_t *crcs; /* READ: one per block; WRITE: crc_pieces(offset, len), borrowed */
    bool stable;
    struct chunk_place *place; /* WRITE: data is in it; NULL: it is not */
    uint64_t *promise; /* WRITE: space promised to the writer (chunk_store_promise()), or NULL; */
    uint64_t keep;     /* all but so much of it may be used where there is no other */
    const struct chunk_fence *fences;
    uint32_t n_fences;
    /* out */
    uint32_t ret_len;  /* bytes that exist, from offset on */
    uint32_t ret_crcs; /* sums written to crcs: the last one may be of a shorter block */
    uint64_t ret_high_water;
    uint64_t ret_offset;
    bool ret_found;
    /* private */
    struct chunk_store *store;
    struct sm sm;
    int (*step)(struct chunk_op *op);
    int io_status;
    bool running, woken;
    struct chunk_inode *inode;
    bool gate_exclusive, gate_held;
    struct chunk *c;
    struct {
        struct list link;
        uint32_t from, to; /* blocks */
        bool exclusive, held;
    } hold;
    struct list wait_link; /* gate, commit or batch queue */
    uint64_t wait_seq;
    void (*build)(struct chunk_op *op);
    struct chunk_fetch fetch;
    struct fio_op fio;
    struct iovec iov[3];
    struct seg_file *file;
    struct chunk_slot slot; /* that is being written */
    struct chunk_write write;
    struct chunk_cut *cut; /* TRUNCATE PUNCH DESTROY SEAL SEEK */
};

/*
 * A place for a payload that is about to come and will be written to [offset, offset + len) of a
 * chunk. False: use a buffer. The caller lets it land, submits the write with op.data = place.data,
 * and calls chunk_store_unplace() when that is done, or will not be; never while something may
 * still write into it. No place may be out when the store is closed.
 */
bool chunk_store_place(struct chunk_store *s, uint64_t ino, uint64_t chunk, uint32_t offset,
                       uint32_t len, struct chunk_place *ret_place) MUST_USE;
/* The next part of what lands there, unless it lands there by itself: copied, and its sums checked,
 * as far as they are known, while it is in the cache. What they do not agree with is found again by
 * the write. */
void chunk_store_land(struct chunk_place *p, const void *data, uint32_t len);
void chunk_store_unplace(struct chunk_place *p);

/* Is a write of so much best made durable at once? It is on a target in memory, whose commits cost
 * next to nothing: then the writer need not keep the bytes and ask for a commit. */
bool chunk_store_commits_at_once(const struct chunk_store *s, uint32_t len);

void chunk_store_submit(struct chunk_store *s, struct chunk_op *op);

/*
 * A promise of space: so many bytes of slots that only writes which name it may take. It is what it
 * was until they have to. *promise is the caller's, 0 at first, and has to stay where it is while a
 * write names it. What no account can keep from others, a disk that is shared, is not.
 */
void chunk_store_promise(struct chunk_store *s, uint64_t *promise, uint64_t more_bytes);
void chunk_store_unpromise(struct chunk_store *s, uint64_t *promise); /* all of it */

/* ---- looking at it ---- */

struct chunk_stat {
    uint64_t total_bytes, used_bytes, free_bytes; /* free: what new data can still take */
    uint64_t promised_bytes;                      /* of it, to writers */
    uint64_t chunks, dirty_bytes, log_bytes, log_max_bytes, cached_chunks;
    uint64_t errors; /* checksum and I/O errors seen */
    uint64_t commits, syncs;
    uint64_t mapped_writes; /* copied into mapped slots */
    uint64_t mapped_bytes;  /* of slots that payloads can land in; counted as used only with data */
    uint64_t mapped_looks;  /* slots looked at for what may be let go of the mapping */
    uint64_t index_reads;   /* chunks looked for in the index */
    bool failed;
};
void chunk_store_stat(struct chunk_store *s, struct chunk_stat *ret_stat);

struct chunk_list_item {
    uint64_t ino, chunk, truncate_gen;
    uint32_t len;
};
/* Committed chunks behind (ino, chunk) in order, at most max; only those of only_ino unless that is
 * 0. Returns how many, or a negative error; fewer than max: that was all. */
int chunk_store_list(struct chunk_store *s, bool first, uint64_t ino, uint64_t chunk,
                     uint64_t only_ino, struct chunk_list_item *out, uint32_t max) MUST_USE;

#endif
