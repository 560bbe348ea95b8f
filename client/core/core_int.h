/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of client/core share. One reactor owns all of it.
 *
 *   req.c       life of a struct core_req: begin, end, cancel, hung_log, soft
 *   mds.c       calls to the metadata server: slots, retries, waiting for the session; batch.c many
 *               changes of names in one
 *   session.c   open, renew, reclaim, loss
 *   cmap.c      cluster map; nodes and targets of object storage
 *   oss.c       one transfer to one target: queue, retries; oss_message.c what it asks for and is
 *               answered: checksums, verifiers
 *   room.c      what targets promise room for; through.c writes without such a promise
 *   commit.c    COMMIT per target, replay when a target has forgotten
 *   inode.c     inode cache, attributes, leases as told by replies
 *   names.c     name cache
 *   prelist.c   names that are about to be looked up, or removed
 *   behind.c    changes answered before the server has them: behind.h
 *   invalidate.c  what the server says is about to change
 *   mem.c       the memory budget: slabs of buffers, eviction, waiting
 *   block.c     data cache: blocks of files, filling them; block_send.c sending them; scatter.c
 *               those that are written to here and there
 *   preread.c   files that are about to be read
 *   atime.c     reads that move atime
 *   span.c      one request to the target of each stripe of a range
 *
 * and, by their names, the operations and mechanisms: read.c write.c straight.c direct.c inlined.c
 * flush.c truncate.c allocate.c seek.c copy.c lease.c lock.c file.c open.c ns.c dir.c xattr.c
 */
#ifndef AIFS_CLIENT_CORE_CORE_INT_H
#define AIFS_CLIENT_CORE_CORE_INT_H

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/core/behind.h"
#include "client/core/block_int.h"
#include "client/core/core.h"
#include "client/core/extents.h"
#include "client/core/gate.h"
#include "client/core/lock_int.h"
#include "client/core/mds_int.h"
#include "client/core/mem_int.h"
#include "client/core/names_int.h"
#include "client/core/oss_int.h"
#include "client/core/readahead.h"
#include "client/core/retry.h"
#include "client/core/scatter.h"
#include "client/core/straight.h"
#include "client/core/stripe.h"
#include "common/base/assert.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/hmap.h"
#include "common/rt/thread.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"
#include "common/net/buf.h"
#include "proto/header_fmt.h"
#include "proto/rpc.h"

#define CORE_SLOTS_MAX 64u
#define CORE_TICK_NS   (200 * NS_PER_MS)
#define CORE_FLUSH_AGE_NS                                                                          \
    (500 * NS_PER_MS)               /* dirty data older than this is written and committed */
#define CORE_GOODBYE_NS    NS_PER_S /* for a session that nobody wants to wait for */
#define CORE_CLOSE_BATCH   256u
#define CORE_EARLY_RECALLS 64u
#define CORE_INTERRUPT_NS  (1 * NS_PER_S)
#define CORE_SMALL_BYTES   (64u * 1024u)

struct core_file;

/* Where tests let memory run out; the allocator's own point is all the process's. */
static inline bool core_no_memory(void)
{
    return FAULT("client.memory");
}

/* ---- session ---- */

enum session_state { SESSION_NONE, SESSION_OPENING, SESSION_RECLAIMING, SESSION_READY };

struct core_session {
    struct rpc_peer *peer;
    enum session_state state;
    uint64_t id;
    uint32_t generation, incarnation, epoch; /* epoch: counts sessions, ours */
    uint64_t lease_ns, valid_until_ns, renew_at_ns, sent_ns;
    uint64_t root;
    uint32_t inline_max, n_slots;
    struct rpc_call call; /* open, reclaim or renew: one at a time */
    bool call_busy, closing;
    void (*closed)(struct core *c);
    struct rpc_link *up_link; /* arrived while the call was busy */
    bool up_rebooted;
    bool unsettled; /* the server has been told so, and not yet that it is over */
    struct msg_session_open_req open_req;
    struct msg_reclaim_req reclaim_req;
    struct msg_reclaim_item *items;
    uint32_t n_items, sent_items;
    struct msg_renew_req renew_req;
    struct msg_server_wait waits[MSG_SERVER_WAITS_MAX]; /* of renew_req */
    bool told_waits;                                    /* the last renewal had some */
    struct msg_empty empty;
    struct {
        uint32_t sequence;
        bool busy;
    } slots[CORE_SLOTS_MAX];
    struct list slot_waiters, session_waiters; /* struct mds_op.wait */
    struct list doubters; /* struct core_req.p.wait: what is cached may not be believed now */
};

int session_start(struct core *c) MUST_USE;
void session_tick(struct core *c, uint64_t now);
static inline bool session_is_over(int status) /* a server has said so */
{
    return status == -AIFS_ESESSION || status == -AIFS_EFENCED;
}
void session_lost(struct core *c, uint32_t epoch, int status); /* no-op for an older session */
void session_close(struct core *c, void (*done)(struct core *c));
/* Has the server promised within the lease time that our leases hold? Nothing is served else. */
bool session_believed(const struct core *c);
uint64_t session_trust_ns(const struct core *c, uint64_t ns); /* ns, but not beyond that promise */
/* q goes on with resume() when the session is believed again, or a file was opened again in it. */
void session_wait(struct core_req *q, void (*resume)(struct core_req *q));
void session_resume(struct core *c);
void session_settle(struct core *c); /* no removals are under way: says so, if that is due */

/* ---- cluster map ---- */

/* Fetches a newer one. */
void cmap_refresh(struct core *c);
void cmap_fini(struct core *c);

/* ---- inodes ---- */

struct flush_wait {
    struct list link; /* core_inode.flushers */
    uint64_t io_seq, meta_seq, ticket;
    uint64_t size;    /* that the server must know when it is over */
    unsigned reports; /* how often a size was reported for its sake alone */
    bool commit, data_done, commit_asked;
    bool below;      /* a truncation's own: content with what that keeps */
    bool prompt;     /* somebody waits until it is durable: a little goes as stable writes */
    bool tell_ahead; /* the size may go beside them */
    bool all_sent;   /* what was dirty is under way or done, up to io_seq */
    unsigned rounds; /* how often what is dirty is sent before it is left to the next flush */
    struct core_inode *inode;
    struct core_req *q; /* NULL: not a request's */
    void (*done)(struct flush_wait *w);
};

struct core_inode {
    struct hmap_node node;
    struct list lru; /* core.inode_lru when nobody refers to it */
    struct core *core;
    uint64_t ino;
    uint32_t refs;
    bool attr_known, layout_known;
    bool attr_kept; /* under a lease: right until the server says otherwise, but for atime */
    uint64_t attr_kept_ns;
    bool cuts_told; /* without a data lease: no shorter than attr says until it does */
    /* core.events_seen at the last: INVALIDATE; own change whose attributes are not known; own
     * change of a name that is not cached, or eviction of one; reason to doubt the size */
    uint64_t inval_event, attr_event, names_event, cuts_event;
    uint64_t forgot_event; /* the latest of what the names that are not cached any more said */
    struct list names;     /* struct name_entry.of_dir */
    bool complete;         /* all its names are cached */
    bool kernel_has_more;  /* it may have names of this directory that are not cached */
    uint64_t list_event, list_next; /* a listing under way: its first page, its next cookie; */
    bool list_alone;                /* all names here are its own, and it meets each once */
    struct prelist prelist, wished; /* of this directory; wished: as what is removed needs it */
    struct behind_inode behind;
    int8_t read_whole;    /* its files: preread.c */
    uint64_t parent;      /* where it was seen last; 0: not known */
    uint64_t told_change; /* of the attributes that inode_entry() has told last */
    struct msg_time told_atime;
    uint64_t listed_until_ns; /* the kernel believes its name and attributes from a listing so long,
                                 unless core.told_void is another since; 0: not */
    uint64_t listed_void;
    struct msg_attr attr; /* as the server last said; under a write lease size and mtime ours */
    struct msg_layout layout;
    struct msg_bytes target; /* of a symbolic link: never another. Owned; none: not known */
    /* lease */
    enum msg_lease lease;
    uint64_t lease_seq, given_seq;   /* given: back, as far as given_keep says */
    bool recalling, lease_temporary; /* temporary: asked for only to grow the file */
    bool lease_unused;               /* no request has gone on since a session was lost */
    enum msg_lease recall_keep, given_keep;
    struct core_inval inval;
    bool inval_busy, inval_again, inval_again_data; /* again: once more while the kernel is at it */
    struct list inval_waits;
    bool locks_seen; /* record locks were asked for here */
    struct flush_wait recall_wait;
    struct gate_waiter recall_gate;
    bool recall_gated;    /* the recall holds the gate closed */
    struct {              /* a lease we have dropped, and the server has not heard of it */
        struct list link; /* core.releases, with a reference */
        uint64_t seq, at_ns;
        enum msg_lease keep;
        uint32_t epoch; /* of the session */
        unsigned tries;
        bool busy;
    } release;
    struct list walk;     /* of inodes_collect() */
    struct {              /* a read that the server is to hear of: atime.c */
        struct list link; /* core.reads, then core.reads_due */
        struct msg_time at, was;
        uint64_t since_ns;
        bool noted; /* holds a reference */
        bool sent;  /* with a CLOSE that is under way */
    } read;
    /* contents */
    bool in_line;   /* contents are at the metadata server, block 0 holds all of them when cached */
    bool need_grow; /* contents outgrew the server's inline record: GROW is due */
    uint8_t giving_up; /* its tries + 1, until the server has heard that it does not: growth.c */
    bool server_has_inline;      /* that record is not empty: commit before GROW */
    uint32_t grow_error_seq;     /* error_seq when need_grow was set */
    uint32_t gave_up;            /* how often it was given up to grow */
    struct core_req *grow_trial; /* it grows for this one first: errors of that lose nothing */
    uint64_t data_change;        /* attr.change for which the cached blocks are right; 0: none */
    uint64_t acked_size;         /* end of the furthest byte that a target has acknowledged */
    struct list blocks;
    uint32_t n_blocks;
    uint64_t dirty_bytes, dirty_since_ns; /* since: 0 when there is nothing to write or commit */
    struct list dirty_link;               /* core.dirty_inodes */
    struct list ios;                      /* writes in flight, by seq */
    uint64_t io_seq;
    struct list targets; /* struct inode_target: uncommitted data */
    struct list flushers;
    struct msg_time wrote_at; /* what is reported as mtime */
    /* in the call under way; as the server has confirmed; as it has said last */
    uint64_t reported_size, known_size, server_size;
    unsigned meta_stale;
    uint64_t meta_seq, meta_done; /* size, mtime, inline data: changed here, known to the server */
    struct buf *meta_buf;         /* of inline data on its way: not to be changed */
    uint64_t held_from; /* bytes from here on are not sent: a truncation may be about to cut them */
    struct list truncations; /* one after the other; the first is under way */
    bool meta_busy, flushing, stepping, step_again, background_busy;
    /* ctime was changed here, and nothing else: the next flush tells the server */
    bool ctime_due, ctime_busy, mtime_due; /* mtime_due: with it mtime, as written */
    /* attr.change behind the last answered report, and behind the last setting of mtime: which came
     * last, whatever the order of their answers */
    uint64_t report_change, mtime_change;
    struct msg_time report_mtime;
    struct flush_wait background;
    /* open files, gate */
    struct list files, opens_held;  /* struct core_req.p.wait: answered, and opens_cutting > 0 */
    unsigned n_closed;              /* of them, by the loss of the session, to be opened again */
    unsigned active, opens_cutting; /* data requests being worked on; OPEN with O_TRUNC sent */
    unsigned gate;                  /* > 0: new ones wait */
    struct list gate_queue;         /* struct core_req.p.wait */
    struct list drain_queue;        /* struct gate_waiter */
    struct core_req *alone;         /* has closed the gate behind itself */
    bool alone_waits;               /* until it is the only one active */
    struct core_req *appender;      /* appends go one after the other */
    struct list append_queue, straight, straight_waiters; /* struct core_req.p.wait */
    int error;
    uint32_t error_seq;
};

struct core_file {
    struct list link; /* core_inode.files */
    struct list all;
    struct core_inode *inode;
    uint64_t open_id;
    uint32_t session_epoch;
    int flags;
    uint32_t error_seen;
    struct readahead ra;
    struct list streaming; /* core.streams, since streamed_ns */
    uint64_t streamed_ns;
    struct msg_cred cred;           /* its arrays are behind the struct */
    unsigned busy;                  /* requests */
    bool released, wrote, creating; /* creating: the server has not heard of it */
    bool closed, reopening;         /* closed: counted in its inode's n_closed */
    bool judged;                    /* whether it is read whole tells of its neighbours */
    bool made;                      /* by its opener: how large it is when closed does the same */
    uint64_t bytes_read, wrote_to;  /* wrote_to: the end of its last write */
    struct list lock_holders;
    bool locks_lost; /* they went with an earlier session: this file is of no use any more */
};

int inode_cache_init(struct core *c) MUST_USE;
void inode_cache_fini(struct core *c);
struct core_inode *inode_find(const struct core *c, uint64_t ino);
struct core_inode *inode_get(struct core *c,
                             uint64_t ino); /* found or made, referenced; NULL: no memory */
struct core_inode *inode_ref(struct core_inode *i);
void inode_put(struct core_inode *i);
/* Attributes from a reply; what this client knows better (under a write lease) stays. The inode's
 * cached data is dropped when somebody else changed it. */
void inode_merge(struct core_inode *i, const struct msg_inode *m, bool with_layout);
void inode_merge_attr(struct core_inode *i, const struct msg_attr *a);
/* Takes the inode of a reply into the cache: NULL when the message is not acceptable or memory is
 * short. */
int inode_why_not(const struct msg_inode *m); /* the error that NULL stands for */
struct core_inode *inode_from_reply(const struct mds_op *op, const struct msg_inode *m);
uint64_t core_name_valid_ns(const struct core *c, bool believed);
bool inode_layout_ok(const struct msg_inode *m);
bool inode_attr_fresh(const struct core_inode *i);
/* The attributes just merged came with a lease. */
void inode_keep(struct core_inode *i, const struct answer *a, uint8_t flag,
                const struct msg_attr *attr);
void inode_expire(struct core *c, uint64_t ino); /* attributes must be asked for again */
/* The answer of an operation about a file by its number: it is in the cache. */
void inode_answered(const struct mds_op *op);
void inode_doubt_size(struct core_inode *i); /* it may be cut, or have been */
/* All inodes that are in use or have something cached, each referenced, to be taken off by
 * inodes_next() and put: what is done to one may free any other. */
void inodes_collect(struct core *c, struct list *ret_inodes);
struct core_inode *inodes_next(struct list *inodes);
/* What an operation says that has become of a directory it changed; else it must be asked for. */
void inode_take_dir(const struct mds_op *op, const struct msg_inode_rep *rep, uint64_t dir);
void inode_entry(struct core_inode *i, struct core_entry *ret_entry);
void inode_touch_data(struct core_inode *i, uint64_t end); /* a local write: size and mtime */
void inode_touch_ctime(struct core_inode *i);              /* it alone changes, as by a write */
void inode_set_error(struct core_inode *i, int status, const char *what);
void inode_set_error_at(struct core_inode *i, int status, const char *what,
                        const struct oss_target *t); /* NULL: no target's */
int inode_error_of(const struct core_file *f);       /* that no fsync of it has told */
int inode_take_error(struct core_file *f);           /* now one has */
int inode_error_since(const struct core_req *q);     /* of its inode, since q began */
void inode_mark_dirty(struct core_inode *i);
struct msg_time core_now(const struct core *c);
static inline struct msg_time time_later(struct msg_time a, struct msg_time b)
{
    return a.sec > b.sec || (a.sec == b.sec && a.nsec > b.nsec) ? a : b;
}
/* The one that comes next. */
static inline struct msg_time time_next(struct msg_time t)
{
    return t.nsec + 1 < NS_PER_S ? (struct msg_time){t.sec, t.nsec + 1}
                                 : (struct msg_time){t.sec + 1, 0};
}

/* ---- atime ---- */

void atime_read(struct core_inode *i); /* somebody has read it, and that counts */
/* Would a read count now? Then the kernel must not answer it from its pages. */
bool atime_awaits_read(const struct core_inode *i);
/* For how long what is kept may be told: reads by other clients take back no lease. */
uint64_t atime_trust_ns(const struct core_inode *i);
struct msg_time atime_write_time(const struct core_inode *i); /* of a write that is made now */
struct msg_time atime_told(const struct core_inode *i); /* with what the server has yet to hear */
void atime_report(struct core_inode *i);                /* it goes with the next CLOSE */
void atime_report_all(struct core *c);
void atime_forget_all(struct core *c);
void atime_tick(struct core *c, uint64_t now);
void atime_merged(struct core_inode *i, const struct msg_attr *was); /* newer attributes */
void atime_set(struct core_inode *i, uint64_t asked_ns); /* by a request that was made then */
/* What is to be told goes into a CLOSE; -ENOMEM. */
int atime_take(struct core *c, struct mds_op *op) MUST_USE;
void atime_answered(const struct mds_op *op, int status);

/* ---- operations' shared parts ---- */

void req_begin(struct core *c, struct core_req *q, const char *what, uint64_t ino);
void req_end(struct core_req *q, int status);
/* q waits: state for people, what to do when it is cancelled (it must end q). */
void req_wait(struct core_req *q, const char *state,
              void (*cancel)(struct core_req *q, int status));
/* By the operation's own end; the cancel of requests that only sit in a queue. */
void req_finish(struct core_req *q, int status);
void req_resume(struct core_req *q, int status); /* what it waited for is there, or failed */
void req_resume_list(struct list *waiters);
void req_tick(struct core *c, uint64_t now);
bool core_servers_up(struct core *c);
/* Starts op for q, cancellable; op == NULL ends q with -ENOMEM. */
void req_call(struct core_req *q, struct mds_op *op, const char *state);
void core_kick(struct core *c); /* something ended that an unmount may wait for */
void core_mount_step(struct core *c);
bool core_usable(struct core *c, struct core_req *q); /* false: q was ended with an error */

void flush_start(struct core_inode *i, struct flush_wait *w, bool commit,
                 void (*done)(struct flush_wait *w));
void flush_cancel(struct flush_wait *w);
void flush_step(struct core_inode *i);
/* Sends a small file's contents now: its writer seems to have finished, and waits for another
 * change. */
void flush_ahead(struct core_inode *i);
/* mtime was set by an answer of the server's; a report that came behind it is made again. */
void flush_mtime_set(struct core_inode *i, const struct msg_attr *a);
void flush_background(struct core *c, uint64_t now, bool all);
void inode_settle(struct core_inode *i); /* nothing left to write or commit? then closes may go */
uint64_t inode_open_id(const struct core_inode *i);
void flush_replayed(struct core_inode *i);
void flush_unsent(struct core_inode *i);
void flush_meta_over(struct core_inode *i, uint64_t seq); /* nobody waits for a report up to seq */

void inline_load(struct core_inode *i,
                 const struct msg_inode *m); /* block 0 from a reply, when memory allows */
bool inline_cached(const struct core_inode *i);
/* The server has not taken what is here: it is forgotten, and the file is what the server has. */
void inline_not_stored(struct core_inode *i);
void inline_saved(struct core_inode *i); /* the server has all of it: its memory may be wanted */
void inline_fetch(
    struct core_req *q,
    void (*resume)(struct core_req *q)); /* then inline_cached(), unless memory is short */
void inline_read(struct core_req *q);
void inline_write_direct(struct core_req *q);
/* Asks for a write lease that lasts for this request; then resume. */
void inline_lease(struct core_req *q, void (*resume)(struct core_req *q));
void read_stream_end(struct core_file *f);                                    /* closed */
void read_will_need(const struct core_file *f, uint64_t start, uint64_t end); /* advice */
void preread_opened(struct core_file *f, struct core_opened *opened);         /* opened.whole */
void preread_released(const struct core_file *f);
void direct_read(struct core_req *q);
void direct_write(struct core_req *q);
void direct_cancel(struct core_req *q, int status); /* of requests with transfers of their own */
/* io gets bytes [skip, skip + len) of a write's; false: they are in too many pieces. */
bool direct_slice(struct oss_io *io, const struct core_req *q, uint32_t skip, uint32_t len);
void read_run(struct core_req *q);
void read_pin(struct core_req *q, struct buf *b, uint32_t offset, uint32_t len);
void read_ready(struct core_req *q); /* out.read is complete */
void write_run(struct core_req *q);
static inline bool write_appends(const struct core_req *q)
{
    return (q->at_end || q->p.file->flags & O_APPEND) && !q->in_place;
}
void write_done(struct core_req *q);                /* all bytes are taken */
void write_moved(struct core_req *q, uint32_t len); /* so many more are: its time begins anew */
/* GETATTR for a data request, then resume. */
void req_refresh(struct core_req *q, void (*resume)(struct core_req *q));
/* The same after an answer that these were not new enough; after too many q ends with status. */
void req_outdated(struct core_req *q, int status, void (*resume)(struct core_req *q));

/* What a reply says about our lease; nothing, when it is of an earlier session. */
void lease_reply(struct core_inode *i, const struct mds_op *op, const struct msg_inode *m);
void lease_handlers(struct core *c);
void lease_tick(struct core *c, uint64_t now);
void lease_lost(struct core_inode *i);         /* the session is gone */
void lease_kernel_drops(struct core_inode *i); /* what it caches of the contents */
void lease_give_up(struct core_inode *i, enum msg_lease keep);
bool lease_only_to_grow(const struct core_inode *i);

void copy_next(struct reactor_work *w); /* core.mem.copy_next */
void punch_wait(struct core_req *q, void (*resume)(struct core_req *q));
void punch_tick(struct core *c);
bool file_is_current(const struct core_file *f); /* its open is one of the session's */
bool file_is_dead(const struct core_file *f);    /* gives EIO until it is closed */
struct core_file *file_new(struct core *c, struct core_req *q, struct core_inode *i,
                           uint64_t open_id, int flags);
bool inode_has_user(const struct core_inode *i); /* a file of it that is not released */
void files_reap(struct core_inode *i);
void file_close_later(struct core *c, uint64_t ino, uint64_t open_id);
void file_send_closes(struct core *c);
void file_close_soon(struct core *c); /* a CLOSE has something to carry */
void files_reopen(struct core *c);
void file_counts_closed(struct core_file *f, bool closed); /* core_inode.n_closed */
/* May q be served from what its file's lease and attributes say? false: it ends or waits. */
bool file_ready(struct core_req *q, void (*resume)(struct core_req *q));
void file_idle(struct core_file *f); /* a request on it is over */

/* ---- the core ---- */

enum core_state { CORE_NEW, CORE_MOUNTING, CORE_MOUNTED, CORE_UNMOUNTING, CORE_ENDED };

struct core {
    struct reactor *reactor;
    struct core_options o;
    char *strings[CORE_MDS_MAX + 4];
    unsigned n_strings;
    struct uuid client;
    uint64_t job;
    struct rpc_node *node;
    struct core_session session;
    enum core_state state;
    bool forced;
    bool names_limited; /* core_limit_names() */
    struct core_req *mount_q, *unmount_q;
    int unmount_status;
    struct reactor_timer tick;
    int64_t wall_offset_ns;
    uint64_t root;

    struct list in_flight; /* struct core_req */
    struct list ops, free_ops;
    unsigned n_free_ops;
    struct list together; /* struct mds_op.wait: changes of this turn, for a batch (batch.c) */
    struct reactor_work together_work;
    bool together_queued;
    struct behind behind;

    struct cluster_map *map;
    struct mds_op *map_op;
    struct reactor_timer map_timer;
    struct list punch_waiters; /* struct core_req.p.wait */
    struct list releases;      /* core_inode.release */
    struct hmap oss_nodes, oss_targets;
    struct list ios, free_ios;
    struct list free_shares; /* struct oss_share */
    unsigned n_free_ios, n_free_shares;
    uint64_t op_ids, commit_clock;
    struct list lock_waiters; /* struct core_req.p.wait */
    struct list locks_behind; /* the same: an earlier request of their owner is under way */
    uint64_t lock_waits;      /* names given so far */
    uint32_t n_lock_waits;

    struct hmap inodes, names, blocks;
    struct names_listed listed;
    uint64_t events_seen, unknown_event; /* unknown: the last about what was not cached here */
    bool names_forgotten;                /* some were evicted, the kernel may have them */
    uint64_t told_void;                  /* so often the kernel was told that all names are old */
    struct list invalidations;           /* struct invalidation: the kernel is being told */
    struct list inode_lru, name_lru, dirty_inodes, files;
    struct list block_lru[MEM_CLASSES + 1], block_spent[MEM_CLASSES + 1];
    uint32_t n_idle_inodes, max_inodes, n_names, max_names, n_prelists;
    struct core_mem mem;
    uint64_t dirty_bytes, uncommitted_bytes, max_dirty;
    uint64_t ahead_bytes, max_ahead; /* sum of block.ahead */
    struct list streams;             /* files that are read as streams now, the last one last */
    uint32_t n_streams;

    struct msg_close_item closes[CORE_CLOSE_BATCH];
    uint32_t n_closes;
    struct reactor_timer close_timer;
    struct list reads, reads_due; /* core_inode.read.link: the oldest first */
    uint32_t n_reads;             /* noted, sent ones too */
    struct {
        uint64_t ino, seq;
    } early[CORE_EARLY_RECALLS];
    unsigned early_next, commits_busy;
    size_t walked; /* of o.subdir */
    struct core_connect connect;
    struct reactor_work unmount_work;
    bool reopen_due, unmount_kicked, closing, unused;
    uint64_t goodbye_ns; /* so long it waits for a session that is unused */
    struct core_stats stats;
};

#endif
