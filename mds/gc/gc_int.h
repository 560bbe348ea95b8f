/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the gc module.
 *
 *   scan.c     reads a queue page by page, on a worker, and starts what can be done
 *   item.c     one item of the punch or recovery queue: its targets, then its entry
 *   destroy.c  a page of the destroy queue: one call per target, then the entries
 *   trash.c    directories of removed trees: their names go, page by page
 *   rmtree.c   RMTREE: a tree loses its name
 *   wait.c     those who wait for a punch; module.c start, stop, kicks, timer
 */
#ifndef AIFS_MDS_GC_GC_INT_H
#define AIFS_MDS_GC_GC_INT_H

#include "common/base/err.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/stat/stat.h"
#include "mds/cluster/cluster.h"
#include "mds/gc/gc.h"
#include "mds/mds.h"
#include "mds/session/session.h"
#include "mds/submit.h"
#include "proto/layout.h"

#define GC_PAGE        256u
#define GC_TRASH_SLOTS 4u    /* directories of removed trees at a time */
#define GC_ACTIVE_MAX  64u   /* items of one queue under way */
#define GC_RESTING_MAX 4096u /* failed ones that are remembered */
#define GC_DAMAGED_MAX 256u  /* those that cannot be read, of one queue, that are told of */
#define GC_CALLS_MAX   16u   /* of one item or page under way */
#define GC_CALL_NS     (5 * NS_PER_S)
#define GC_REST_NS     (5 * NS_PER_S)
/* Destruction begins after a pause in the removals, a while after the first, or with so many. */
#define GC_GATHER_NS   (50 * NS_PER_MS)
#define GC_PATIENCE_NS NS_PER_S
#define GC_GATHER_MAX  16384u
#define GC_IDLE_NS     (5 * NS_PER_S) /* queue is looked at again: at first, doubling up to */
#define GC_IDLE_MAX_NS (60 * NS_PER_S)

struct gc_seen { /* an item as it is in the store */
    uint64_t ino;
    struct mds_queue_item item;
};

/* The targets of a layout, each once; not those that are given up, which confirm everything. */
struct gc_targets {
    uint32_t n;
    uint32_t *ids;
};

struct gc_queue {
    struct gc *gc;
    enum key_type type;
    struct worker_job job;
    bool scanning, again; /* again: kicked meanwhile */
    bool stalled;         /* enough under way: goes on at from when there is room */
    bool more;            /* behind the page that was read last */
    bool skipped;         /* something could not be done now */
    bool progress;        /* something was done since the last look */
    uint64_t from;
    uint64_t asked;            /* the next start is there: kicks came for no smaller inode */
    struct reactor_timer soon; /* kicks are gathered until it fires: KEY_DESTROY */
    uint64_t kicked_ns;        /* when the last start was for a kick */
    uint64_t due_ns, heard_ns; /* of those gathered: the start at the latest; the last kick */
    uint32_t n_gathered;
    uint64_t next_ns, idle_ns; /* when it is looked at without being asked */
    int error;
    uint32_t n_seen;
    struct gc_seen seen[GC_PAGE];
    struct gc_seen over[GC_ACTIVE_MAX]; /* items that were done while a page was being read: it may
                                           show them still */
    uint32_t n_over;
    struct hmap items; /* struct gc_item: under way or resting */
    uint32_t n_active;
    struct gc_batch *batch; /* KEY_DESTROY */
    uint32_t n_damaged;     /* told of so far: more than GC_DAMAGED_MAX when that was said too */
    uint64_t damaged[GC_DAMAGED_MAX]; /* begins of their keys, behind the type */
    struct stat_counter done, failed, unreadable;
};

struct gc_trash_slot;
struct gc_trash {
    struct gc *gc;
    struct worker_job job; /* reads which directories there are */
    bool scanning;
    bool again;    /* there may be new ones */
    bool more;     /* behind the page that was read */
    uint64_t from; /* where the next page begins */
    int error;
    uint32_t n, next; /* of the page; taken from it so far */
    uint64_t dirs[GC_PAGE];
    struct gc_trash_slot *slots[GC_TRASH_SLOTS]; /* NULL: not in use */
    uint64_t rest_until_ns;                      /* something has failed */
    struct stat_counter removed, failed;
};

struct gc_call { /* on gc->calls while under way */
    struct list all;
    struct rpc_call rpc;
};

struct gc {
    struct mds *mds;
    struct gc_queue destroy, punch, recover;
    struct gc_trash trash;
    struct list waits; /* struct mds_punch_wait; timeout_ns is the deadline */
    struct list calls;
    struct reactor_work wait_work;
    bool wait_queued;
    struct reactor_timer timer;
    uint32_t outstanding;
    bool stopping;
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct reactor_work stop;
};

static inline struct gc *gc_of(struct mds *m)
{
    return m->gc;
}

void gc_begin(struct gc *gc);
void gc_end(struct gc *gc);
/* The call goes to the OSS of the target; -AIFS_EDOWN, -ENOMEM: nothing happens. */
int gc_call(struct gc *gc, uint32_t target, struct gc_call *c) MUST_USE;
void gc_call_end(struct gc *gc, struct gc_call *c); /* in its done() */
struct gc_queue *gc_queue(struct gc *gc, enum key_type type);
/* There is something to destroy, of inodes not below ino, and nothing is lost when that begins
 * patience_ns later. */
void gc_destroy_kick(struct gc *gc, uint64_t ino, uint64_t patience_ns);

/* scan.c */
/* From inode ino on, now or after what is under way. What is deleted stays in the way of a scan for
 * a while, so those who know begin behind it. */
void gc_scan(struct gc_queue *q, uint64_t ino);
void gc_scan_resume(struct gc_queue *q); /* there is room again */
/* -ENOMEM; -AIFS_ESTALE_MAP: the layout names a chain that the map does not have. */
int gc_targets(struct gc *gc, const struct msg_layout *l, struct gc_targets *ret_targets) MUST_USE;
bool gc_targets_up(struct gc *gc, const struct gc_targets *t);

/* item.c */
void gc_item_start(struct gc_queue *q, const struct gc_seen *seen);
void gc_items_rested(struct gc_queue *q, uint64_t now_ns); /* UINT64_MAX: all of them */
void gc_items_fini(struct gc_queue *q);

/* destroy.c */
void gc_destroy_page(struct gc_queue *q); /* what q has seen; scanning goes on when it is done */

/* trash.c */
void gc_trash_init(struct gc *gc);
void gc_trash_fini(struct gc *gc);
void gc_trash_kick(struct gc_trash *t); /* there are new directories */
void gc_trash_tick(struct gc_trash *t, uint64_t now_ns);

/* rmtree.c */
void gc_serve_rmtree(struct rpc_req *req);

/* wait.c */
void gc_punch_wait(struct mds *m, struct mds_punch_wait *w);
void gc_wait_check(struct gc *gc); /* some punch is done, or time has passed */
void gc_waits_fail(struct gc *gc);

#endif
