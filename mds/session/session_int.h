/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the session module.
 *
 *   table.c    sessions, files, uses (what one session does with one file), opens
 *   prepare.c  freezing, waiting, deciding; finish.c what comes of it
 *   watch.c    leases on attributes and names: who is told before a change; inval.c how
 *   alone.c    who is alone with a directory, and whose requests wait for that
 *   recall.c   leases taken back; glimpse.c sizes asked from writers
 *   serve.c    SESSION_OPEN RENEW CLOSE, CLOSE; data.c LEASE_GET LEASE_RELEASE
 *   grace.c    restart, RECLAIM, orphans; evict.c the steps of an eviction
 *   mark.c     what a session may be writing, in the store
 *   module.c   start, stop, the tick; tell.c hints to clients; waits.c who waits, for people
 *
 * Nothing here is durable but what mds/session/exec.h commits: sessions, and which files they may
 * be writing. Opens and leases live as long as this process and are reclaimed from the clients
 * after a restart.
 */
#ifndef AIFS_MDS_SESSION_SESSION_INT_H
#define AIFS_MDS_SESSION_SESSION_INT_H

#include "common/base/err.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/stat/stat.h"
#include "mds/cluster/cluster.h"
#include "mds/locks/locks.h"
#include "mds/mds.h"
#include "mds/session/exec.h"
#include "mds/session/lease.h"
#include "mds/session/session.h"
#include "mds/session/session_fmt.h"
#include "mds/submit.h"

/* Bounds; reaching one is -AIFS_EBUSY_SERVER and counted. */
#define SESSIONS_MAX      4096u
#define SESSION_OPENS_MAX 65536u
#define OPENS_MAX         (1u << 20)
#define FILES_MAX         (1u << 20)
#define WAITS_MAX         65536u
#define OPENINGS_MAX      1024u
#define GLIMPSES_MAX      4096u /* waiting, per file */

/* Watches: of one session, in all; told to forget at once when there are too many. */
#define SESSION_WATCHES_MAX (1u << 18)
#define WATCHES_MAX         (1u << 21)
#define WATCHES_SHED        4096u

/* Shared mode: begins when others had to be told so often, each time within this of the last; ends
 * when nothing has changed for as long. */
#define SHARED_CHANGES 8u
#define SHARED_NS      (1 * NS_PER_S)

struct session_file;

enum session_phase {
    PHASE_LIVE,
    PHASE_CLOSING, /* nothing held: its record is being removed */
    PHASE_ENTRY,   /* the eviction is being committed */
    PHASE_FENCE,   /* until every OSS has the fence */
    PHASE_SAFE,    /* until its client can not believe in its leases any more */
    PHASE_SEAL,    /* until the sizes of its files are known */
    PHASE_REMOVE,  /* its record is being removed */
};

/* In the session's record: it may have answered removals ahead. */
enum session_alone_mark { ALONE_UNMARKED, ALONE_MARKING, ALONE_MARKED };

struct session_slot { /* the last open through this slot, for its retry */
    uint32_t sequence;
    uint64_t open_id;
};

struct session {
    struct hmap_node by_id, by_client;
    struct session_module *mod;
    uint64_t id;
    uint32_t generation;
    struct uuid client, node;
    char host[SESSION_TEXT_BYTES], job[SESSION_TEXT_BYTES], mount[SESSION_PATH_BYTES];
    uint32_t pid;
    bool read_only;
    enum session_phase phase;
    bool reclaiming;         /* known from before the restart, has not said all it had; or, evicted,
                              * may still be believed in by its client */
    uint64_t marks_until_ns; /* marks that it has not reclaimed stay until then */
    uint64_t renewed_ns;
    struct rpc_link *link; /* counted; NULL: not seen yet */
    uint32_t incarnation;
    struct list uses;
    uint32_t n_opens, n_leases;
    struct list watches; /* struct session_watch, the longest not granted again first */
    uint32_t n_watches;
    struct list alone_dirs; /* struct watch_file: directories that it is alone with, the
                             * longest not asked for again first */
    uint32_t n_alone;
    uint64_t alone_ns; /* wanted to be last */
    enum session_alone_mark alone_mark;
    uint64_t settle_ns;         /* unsettled: until then; 0: others have not all reclaimed yet */
    bool unsettled;             /* marked before a restart, and has not said that it is settled */
    struct session_slot *slots; /* n_slots of them, from the first open on */
    struct msg_server_wait *server_waits; /* as of its last renewal */
    uint32_t n_server_waits;
    uint64_t server_waits_ns;
    uint64_t pushed_epoch; /* of MAP_CHANGED */
    bool pushing;
    /* eviction */
    const char *why;
    uint64_t fence;
    uint32_t n_held;
    bool fence_failed, remove_failed; /* again with the next tick */
    bool locks_left;                  /* of files that are held */
    struct mds_submit submit;
    union {
        struct session_evict evict;
        struct session_remove remove;
    } msg;
    struct session_mark *spared; /* of the entry under way */
    const char *evict_due;       /* why; waits until others have reclaimed */
    bool evict_safe;
    bool locks_busy; /* its locks are being freed */
    struct cluster_fence_wait fenced;
    struct rpc_req *closing; /* SESSION_CLOSE to be answered */
};

/* A file that is open, leased, frozen or waited for. */
struct session_file {
    struct hmap_node by_ino;
    uint64_t ino;
    struct list uses;
    uint32_t n_open_uses, n_write_uses; /* sessions that have it open; open for writing */
    struct lease_inside inside;
    struct list queue;   /* struct session_wait: for a place inside, in order */
    uint32_t n_woken;    /* taken from the queue, about to try again: nobody passes them */
    struct list blocked; /* struct session_wait: inside, until leases are given back */
    struct session_glimpse *glimpse;
    bool orphan;    /* no name left: its last close destroys it */
    bool releasing; /* ORPHAN_RELEASE is under way */
};

enum session_mark_state {
    MARK_NONE, /* or an entry that sets it is under way */
    MARK_SET,
    MARK_DROPPING, /* the entry that takes it away is under way */
};

struct session_grant {
    enum msg_lease kind;
    uint64_t seq;
};

/* One session's use of one file. */
struct session_use {
    struct hmap_node by_key; /* hash of session and ino */
    struct list of_session, of_file;
    struct session *s;
    struct session_file *f;
    struct list opens;
    uint32_t n_opens, n_write;
    struct session_grant lease; /* what it has */
    struct session_grant told;  /* what its client has been told in an answer; more is undone
                                   without asking it */
    bool growth;                /* see lease_of_get() */
    enum key_type held;         /* of an evicted session: stays until the file's item in this
                                   queue is done; 0: it does not */
    /* in the store: the session may be writing the file */
    enum session_mark_state mark;
    bool mark_unclaimed; /* from before a restart, and its session has not said that it writes */
    uint64_t mark_id;    /* the open that has set it */
    struct list unmark;  /* on mod->unmark while it is not needed, since unmark_ns */
    uint64_t unmark_ns;
    /* recall */
    struct list recalled; /* on mod->recalled while it is */
    enum msg_lease keep;
    uint64_t recall_deadline_ns;
    bool recall_sent, recall_prolonged;
};

struct session_open {
    struct hmap_node by_id;
    struct list of_use;      /* or on mod->creating */
    struct session_use *use; /* NULL: of a file being created, or the session is gone */
    uint64_t id, session;
    uint32_t flags;
    uint32_t users; /* prepares not finished */
    bool confirmed; /* some answer says it is open */
    uint32_t slot, sequence;
    /* a file being created */
    uint64_t create_order;
    int64_t create_wall_ns;
    uint64_t lease_seq;
};

/* A prepare that waits or is inside files; p->hook. */
struct session_wait {
    struct list all; /* mod->waits while it waits */
    struct list at;  /* where it waits */
    struct mds_prepare *p;
    struct session_file *files[SHARD_RESOLVED_MAX];
    enum lease_group groups[SHARD_RESOLVED_MAX];
    bool entered[SHARD_RESOLVED_MAX];
    unsigned order[SHARD_RESOLVED_MAX]; /* touches by inode number */
    struct session_file *woken_from;
    uint64_t create_order; /* waits for creates up to this one */
    uint64_t since_ns;
    int failed; /* status to end with */
};

/* An inode that is watched, being changed, or shared. */
struct watch_file {
    struct hmap_node by_ino;
    uint64_t ino;
    struct list watches;
    uint32_t changing; /* changes inside: no watch begins */
    uint32_t heat;     /* times that others had to be told lately */
    uint64_t changer;  /* the session of all changes inside; 0: of several */
    uint64_t heat_ns, shared_until_ns;
    struct list shared; /* mod->shared_files */
    /*
     * Being alone with a directory and with inodes that a page of it has told of. alone: the
     * session, of a directory that is known by itself. An inode that has alone_id is the same
     * session's as long as the directory alone_in is known by that number.
     */
    struct session *alone;
    uint64_t alone_id, alone_in, alone_ns;
    struct list of_alone; /* on session.alone_dirs */
    struct list parked;   /* struct parked: until alone is over */
};

/* What one session believes of one inode: its attributes, and in a directory the names in it. */
struct session_watch {
    struct hmap_node by_key; /* hash of session and ino */
    struct list of_file, of_session;
    struct session *s;
    struct watch_file *f;
    struct list invals; /* struct watch_inval: not answered yet */
};

/* A change that waits until others have been told; p->watch_hook. */
struct watch_wait {
    struct list all;
    struct mds_prepare *p;
    unsigned pending; /* answers */
    uint64_t since_ns;
    bool entered; /* else it waits for the end of the grace period */
};

struct session_stats {
    struct stat_counter opened, evicted, recalls, recalls_late, recalls_prolonged, glimpses,
        glimpse_waits, waits, refused, reclaimed;
    struct stat_counter invalidations, watch_waits, shared, alone, parked;
    struct stat_gauge sessions, opens, files, watches;
};

/* A call to a client, cancelled when the module stops. */
struct session_call {
    struct list all; /* mod->calls */
    struct rpc_call rpc;
};

/* One INVALIDATE: until it is answered, or the session's leases have ended. */
struct watch_inval {
    struct session_call call;
    struct list all, of_watch;
    struct session_module *mod;
    struct session_watch *w; /* NULL: of no interest any more, the call is still under way */
    struct watch_wait *wait; /* NULL: nobody waits */
    struct rpc_link *link;
    struct msg_invalidate_req req;
    uint64_t deadline_ns;
    uint8_t prolonged; /* times */
    bool sent, busy;
    char name[];
};

struct session_module {
    struct mds *mds;
    struct hmap sessions, clients, files, uses, opens;
    uint64_t next_id; /* open ids and lease sequences: boot in the high bits */
    struct list waits, runnable, grace_waits, create_waits, recalled, creating, openings, calls;
    struct list unmark; /* struct session_use: marked, and not written any more */
    uint32_t n_waits, n_openings, n_unmark;
    bool unmarking; /* an entry for some of them is under way */
    struct hmap watch_files, watches;
    struct list watch_waits, watch_grace, watch_runnable, invals, shared_files;
    struct reactor_work watch_run;
    bool watch_run_queued;
    struct list parked, parked_unsettled, park_runnable; /* struct parked */
    struct reactor_work park_run;
    bool park_run_queued;
    uint32_t n_parked, n_alone, n_unsettled; /* requests; directories; sessions */
    uint64_t alone_ids;
    struct list glimpses; /* struct session_glimpse */
    struct reactor_work glimpse_run;
    bool glimpse_run_queued;
    uint64_t create_order;
    struct reactor_work run, stop;
    bool run_queued;
    struct reactor_timer tick;
    uint64_t tick_ns, last_tick_ns, started_ns;
    bool grace;
    uint64_t grace_end_ns;
    uint32_t outstanding; /* calls, entries and jobs under way, for stop */
    bool stopping;
    struct session_orphans *orphans; /* the scan for them, while it runs */
    uint32_t n_releasing;
    void (*stopped)(void *arg);
    void *stopped_arg;
    struct session_stats stats;
};

static inline struct session_module *session_module(struct mds *m)
{
    return m->session;
}

/* waits.c */
void session_waits_note(struct session *s, const struct msg_renew_req *req);
void session_waits_sum(const struct session *s, struct msg_session_info *info);

static inline uint64_t session_now_ns(struct session_module *mod)
{
    return reactor_now_ns(mod->mds->reactor);
}

/* The server itself is no session; a session that is going begins nothing. */
static inline bool session_may_change(const struct session *s, const struct mds_prepare *p)
{
    return p->session == 0 || (s && s->phase == PHASE_LIVE);
}

/* ---- table.c ---- */
int session_tables_init(struct session_module *mod) MUST_USE;
void session_tables_fini(struct session_module *mod); /* frees everything in them */
struct session *session_find(struct session_module *mod, uint64_t id);
struct session *session_find_client(struct session_module *mod, const struct uuid *client);
/* From its record; -ENOMEM, -AIFS_EFORMAT, -AIFS_ECORRUPT, -AIFS_EBUSY_SERVER. */
int session_add(struct session_module *mod, uint64_t id, const void *rec, uint32_t len,
                struct session **ret_session) MUST_USE;
void session_free(struct session_module *mod, struct session *s); /* has no uses */
void session_bind(struct session *s, struct rpc_link *l, uint32_t incarnation);

struct session_file *session_file_find(struct session_module *mod, uint64_t ino);
int session_file_get(struct session_module *mod, uint64_t ino,
                     struct session_file **ret_file) MUST_USE;
void session_file_put(struct session_module *mod, struct session_file *f); /* frees it if unused */

struct session_use *session_use_find(struct session_module *mod, struct session *s, uint64_t ino);
/* With its file. */
int session_use_get(struct session_module *mod, struct session *s, uint64_t ino,
                    struct session_use **ret_use) MUST_USE;
void session_use_put(struct session_module *mod, struct session_use *u);  /* frees it if unused */
void session_use_drop(struct session_module *mod, struct session_use *u); /* opens and lease too */
void session_lease_set(struct session_module *mod, struct session_use *u, enum msg_lease kind,
                       uint64_t seq);
/* With the answer that is about to leave. If another one is being taken back, this goes as well. */
void session_lease_told(struct session_use *u, struct session_grant told);

struct session_open *session_open_find(struct session_module *mod, uint64_t id);
struct session_open *session_open_new(struct session_module *mod, struct session *s, uint64_t id,
                                      uint32_t flags);
void session_open_attach(struct session_open *o, struct session_use *u);
void session_open_detach(struct session_open *o);
void session_open_free(struct session_module *mod, struct session_open *o); /* detached */
/* Closes; the session's lease goes with its last open of the file. */
void session_open_close(struct session_module *mod, struct session_open *o);
/* By this session, of this file, for writing if so asked: else NULL. */
/* Has the session of this open a write lease on its file? */
bool session_open_holds_write(struct session_module *mod, uint64_t id);
struct session_open *session_open_of(struct session_module *mod, uint64_t id, uint64_t session,
                                     uint64_t ino, bool writing);

/* ---- prepare.c, finish.c ---- */
int session_check(struct mds *m, struct rpc_req *req) MUST_USE;
void session_prepare(struct mds *m, struct mds_prepare *p);
/* The second half, when nobody else watches what changes. */
void session_prepare_files(struct session_module *mod, struct mds_prepare *p);
void session_finish(struct mds *m, struct mds_prepare *p, struct mds_outcome *o);
void session_wait_step(struct session_module *mod, struct session_wait *w);
void session_wait_fail(struct session_module *mod, struct session_wait *w, int status);
void session_fail_waits(struct session_module *mod, uint64_t session, int status); /* 0: of all */
void session_timeout_waits(struct session_module *mod, uint64_t now_ns);
void session_leave(struct session_module *mod, struct session_wait *w); /* all files it is inside */
void session_wake_blocked(struct session_module *mod, struct session_file *f);
void session_wake_queue(struct session_module *mod, struct session_file *f);
void session_wake_list(struct session_module *mod, struct list *waits);
void session_wake_creates(struct session_module *mod);
/* A file so young that an open CREATE which is not finished here may have made it. */
bool session_born_creating(struct session_module *mod, const struct session_file *f,
                           struct msg_time born);
/* The file of that number may be one, or nobody knows. */
bool session_may_be_creating(struct session_module *mod, const struct session_file *f,
                             uint64_t ino);
void session_file_changed(struct session_module *mod, struct session_file *f); /* leases or opens
                                                                                  are fewer */
void session_users(struct session_use *u, struct lease_users *ret_users);
/* Takes the lease that an open or LEASE_GET may have. One that it may not have any more is taken
 * back, and held, and told with the answer, until its client has given it back. */
void session_grant(struct session_module *mod, struct session_use *u, unsigned access,
                   uint32_t wanted);
void session_orphan_check(struct session_module *mod, struct session_file *f);

/* ---- watch.c ---- */
int session_watch_init(struct session_module *mod) MUST_USE;
void session_watch_fini(struct session_module *mod);
bool session_watch(struct mds *m, uint64_t session, uint64_t ino, const struct msg_time *born,
                   bool own); /* mds_session_ops.watch */
bool session_told_of_cuts(struct mds *m, uint64_t session, uint64_t ino);
/* 0: go on. -EAGAIN: session_prepare_files() or p->ready() comes later. Else it failed. */
int session_watch_enter(struct session_module *mod, struct mds_prepare *p) MUST_USE;
void session_watch_leave(struct session_module *mod, struct mds_prepare *p);
void session_watch_drop(struct session_module *mod, struct session *s); /* its leases have ended */
void session_watch_free(struct session_module *mod, struct session_watch *w);
void session_watch_told(struct session_module *mod, struct watch_wait *ww); /* all have answered */
void session_watch_fail(struct session_module *mod, uint64_t session, int status); /* 0: of all */
void session_watch_resend(struct session *s); /* it has a new link */
void session_watch_grace_over(struct session_module *mod);
void session_watch_tick(struct session_module *mod, uint64_t now_ns);

struct watch_file *session_watch_file(struct session_module *mod, uint64_t ino);
struct session_watch *session_watch_find(struct session_module *mod, const struct session *s,
                                         uint64_t ino);

/* ---- alone.c ---- */
/* mds_session_ops: alone_dir, alone_entry, alone_elsewhere, park */
bool session_alone_dir(struct mds *m, uint64_t session, uint64_t ino);
bool session_alone_entry(struct mds *m, uint64_t session, uint64_t dir, uint64_t ino);
bool session_alone_elsewhere(struct mds *m, uint64_t session, uint64_t ino);
bool session_park(struct mds *m, struct rpc_req *req, uint64_t ino,
                  void (*again)(struct rpc_req *req));
void session_alone_over(struct session_module *mod, struct watch_file *dir);
void session_alone_load(struct session_module *mod, struct session *s); /* marked in its record */
void session_settled(struct session_module *mod, struct session *s);
void session_alone_tick(struct session_module *mod, struct session *s, uint64_t now_ns);
void session_parked_tick(struct session_module *mod, uint64_t now_ns);
void session_parked_fail(struct session_module *mod, uint64_t session, int status); /* 0: of all */
void session_parked_waits(struct session_module *mod, struct mds_waits *out);

/* ---- waits.c ---- */
void session_waits_add(struct session_module *mod, struct mds_waits *out,
                       const struct msg_wait *wait, uint64_t session, uint64_t since_ns,
                       uint64_t other); /* 0: nobody in particular */

/* ---- inval.c ---- */
/* c: NULL, no name and nothing in particular; ww: who waits for the answer, or NULL. */
int session_inval_new(struct session_module *mod, struct session_watch *w, bool whole,
                      const struct mds_change *c, struct watch_wait *ww) MUST_USE;
void session_inval_send(struct session_module *mod, struct watch_inval *v); /* unless it is sent */
void session_inval_end(struct session_module *mod, struct watch_inval *v);
/* It could not be answered in time, because this server is busy with what has to come first. */
bool session_inval_prolong(struct session_module *mod, struct watch_inval *v, uint64_t now_ns);

/* ---- recall.c, glimpse.c ---- */
/* Is there a lease of somebody else in the way? Sees to it that it goes. */
bool session_recall_conflicts(struct session_module *mod, struct session_file *f, uint64_t session,
                              unsigned access, uint32_t open_flags);
void session_recall(struct session_module *mod, struct session_use *u, enum msg_lease keep);
/* What its client has not been told of goes at once, the rest with a recall. */
void session_take_back(struct session_module *mod, struct session_use *u, enum msg_lease keep);
void session_recall_end(struct session_use *u);
void session_recall_resend(struct session *s); /* it has a new link */
void session_recall_tick(struct session_module *mod, uint64_t now_ns);
int session_glimpse(struct mds *m, struct mds_glimpse *g); /* mds_session_ops.glimpse */
/* Who waits at this file for a size looks again, from the reactor's next turn on. */
void session_glimpse_wake(struct session_module *mod, struct session_file *f);
void session_glimpse_connected(struct session *s); /* it has a new link */
void session_glimpse_tick(struct session_module *mod, uint64_t now_ns);
void session_glimpse_fail(struct session_module *mod, int status);
void session_glimpse_waits(struct session_module *mod, struct mds_waits *out);

/* ---- serve.c, data.c ---- */
void session_serve_start(struct session_module *mod);
void session_serve_opening(struct session_module *mod, const struct uuid *client);
/* Its old session could not be evicted. */
void session_refuse_opening(struct session_module *mod, const struct uuid *client);
void session_serve_stop(struct session_module *mod);
void session_data_start(struct session_module *mod);

/* ---- close.c ---- */
void session_close_start(struct session_module *mod);

/* ---- grace.c ---- */
int session_load(struct session_module *mod) MUST_USE; /* at start: what was there */
void session_use_hold(struct session_use *u, enum key_type queue);
bool session_is_writing(struct mds *m, uint64_t session, uint64_t ino);
void session_grace_start(struct session_module *mod);
void session_grace_check(struct session_module *mod);
void session_reclaim(struct rpc_req *req);
void session_orphans_continue(struct session_module *mod); /* no release is under way */

/* ---- mark.c ---- */
bool session_mark_needed(const struct session_use *u, uint32_t open_flags);
/* Marked, but known not to be in need of repair: closed, and all it wrote is reported. if_inline:
 * open still, but it cannot have been growing. */
bool session_mark_spared(const struct session_use *u, bool *ret_if_inline);
void session_mark_set(struct session_module *mod, struct session_use *u, uint64_t id);
void session_mark_check(struct session_module *mod, struct session_use *u); /* still needed? */
void session_mark_use(struct session_use *u); /* it is being opened for writing */
void session_mark_forget(struct session_module *mod, struct session_use *u);
void session_mark_tick(struct session_module *mod, uint64_t now_ns);
int session_mark_load(struct session_module *mod, uint64_t session, uint64_t ino, const void *value,
                      size_t len) MUST_USE;

/* ---- evict.c ---- */
void session_evict(struct session_module *mod, struct session *s, const char *why, bool safe);
void session_answer_close(struct session *s, int status); /* the parked SESSION_CLOSE, if any */
void session_evict_created(struct session_module *mod, struct session *s, uint64_t ino);
void session_evict_resume(struct session_module *mod, struct session *s);
void session_evict_tick(struct session_module *mod, struct session *s, uint64_t now_ns);
void session_remove(struct session_module *mod, struct session *s);

/* ---- module.c ---- */
void session_begin(struct session_module *mod); /* something outstanding */
void session_end(struct session_module *mod);
void session_call(struct session_module *mod, struct session *s, struct rpc_link *l,
                  struct session_call *c); /* c->rpc is initialised */
void session_call_end(struct session_module *mod, struct session_call *c); /* last in its done() */

#endif
