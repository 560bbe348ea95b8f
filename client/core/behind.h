/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals (behind.c), creations (creating.c) and renames (moving.c) that are answered before the
 * server has executed them: ADR 0017, 0018, 0020. Included by core_int.h; which removals are,
 * behind_rules.c.
 *
 * Who removes names is told by the server, in pages of directories, what this client is alone with:
 * nobody else can tell when exactly such a name goes, until the server has asked (INVALIDATE) and
 * we have answered. There an unlink(2) or rmdir(2) is over at once; what is left of it is an mds_op
 * like any other that nobody waits for, but for those who name the same inodes afterwards.
 */
#ifndef AIFS_CLIENT_CORE_BEHIND_H
#define AIFS_CLIENT_CORE_BEHIND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/rt/reactor.h"
#include "proto/msg.h"

struct answer;
struct core;
struct core_file;
struct core_inode;
struct core_req;
struct mds_op;

#define BEHIND_MAX        1024u /* removals under way */
#define BEHIND_ERRORS_MAX 1024u /* directories whose next fsync is to fail */
#define BEHIND_CALLERS    8u    /* who has removed something lately */

struct behind_caller {
    uint32_t uid, gid, epoch; /* epoch: of the session; 0: unused */
    uint32_t removed;         /* executed, in that session */
    uint64_t rest;            /* cred_hash() */
    uint64_t last_ns;
};

struct behind {      /* in struct core */
    uint32_t n, max; /* under way, and how many may be */
    unsigned flying, gathered;
    bool lingered; /* what is gathered has been so for long enough */
    struct reactor_timer linger, hold;
    bool urged;              /* somebody waits for them: what is gathered goes with this turn */
    uint32_t hurried;        /* so many more of them are over before nobody does */
    struct list together;    /* struct mds_op.wait: gathered */
    struct list held;        /* the same: files that are open, what is set on directories; by
                              * mds_op.started_ns */
    struct list room;        /* the same: removals that wait until there are fewer */
    struct list all;         /* the same: behind all of them */
    struct list invalidates; /* struct rpc_req.link: INVALIDATEs without memory, to be answered */
    struct hmap moving;      /* struct moving_name: what renames under way name */
    struct behind_caller callers[BEHIND_CALLERS];
    uint32_t paid; /* removals that pages in the background allowed, less what these cost */
    /* Given to files of this session (creating.c): how many; those before that are answered. */
    uint32_t numbers_epoch, numbers, numbers_from;
    uint32_t coming;      /* directories */
    bool urge_coming;     /* somebody waits for what is in them, maybe */
    bool opens_due;       /* there was no memory for one */
    uint64_t terms;       /* counts them */
    struct msg_time last; /* when the latest of them happened */
    struct list errors;   /* struct core_inode.behind.error_link: with one that nobody was told */
    unsigned n_errors, max_errors;
    bool untold;           /* beyond that an error was let go: only unmounting tells */
    struct relist *relist; /* the page listed last: relist.c; NULL: none yet */
    uint64_t relist_event; /* what was asked for before is not kept */
};

struct behind_inode { /* in struct core_inode */
    /* Of a directory: we have been told that we are alone with it, in this term, and it has not
     * ended; 0: not so. Of what is in it: the term for which the same was said. */
    uint64_t term;
    bool own;            /* a term of its own: its own page has said so */
    bool rules_known;    /* of a directory: mode and owner are right as long as the term lasts */
    bool leaving;        /* its last name is being removed */
    struct mds_op *last; /* of a directory: its own removal, sent after those in it */
    uint32_t n;          /* changes under way in it, or of it; the inode is referenced meanwhile */
    uint32_t made;       /* of these: creations */
    uint32_t moved;      /* renames */
    struct list moves; /* struct mds_op.wait: of a file, those that wait for what is before them */
    uint32_t opens;    /* of files made in it, or of it, that follow on their creation; the same */
    bool creating;     /* a file that is here only: until its creation and such an open are over */
    bool opening;      /* that open is under way */
    bool outgrows;     /* it is to be larger than what goes along: nothing does */
    bool coming;       /* a directory that is here only: until its own creation is answered */
    bool born;         /* a directory that was made ahead, by this client */
    bool sized;        /* something is known of the files made in it: */
    uint8_t large;     /* which of the last eight became large, a bit each (sizes.c) */
    struct mds_op *setting; /* what is set on such a one, until it is answered (setdir.c) */
    bool draining; /* it was answered without saying that we are alone with it: until what is in it
                    * is answered too */
    uint64_t around;         /* the directory in which it is made */
    struct list inside;      /* struct mds_op.wait: what is made in it, as long as it is coming */
    struct mds_op *gathered; /* of such a file: its creation, as long as it has never left */
    struct list waiters;     /* struct mds_op.wait: for all these */
    struct list reqs;        /* struct core_req.p.wait: of the file, for the same */
    /* Of a directory: for the next fsync, or until the directory itself is removed. It is
     * referenced meanwhile. */
    int error;
    bool error_stays;       /* it is of a creation: only fsync and unmounting end it */
    struct list error_link; /* only while there is one */
};

void behind_init(struct core *c);
/* A removal with may_ahead that has not been sent. True: its request is over, or will be. */
bool behind_try(struct mds_op *op);
/* Something else. True: it goes on when the removals that it must not overtake are answered. */
bool behind_holds(struct mds_op *op);
/* op's answer tells of an inode with removals under way: true if it is asked for once more. */
bool behind_overtaken(struct mds_op *op);
/* A removal has been executed for its caller. */
void behind_executed(const struct mds_op *op);
/* Is this caller removing names, so that listings should say what we are alone with? */
bool behind_wishes(const struct core *c, const struct msg_cred *cred);
/* A page says that we are alone with its directory; with an entry of it. */
void behind_told_dir(struct core_inode *dir, const struct answer *a);
void behind_told_entry(struct core_inode *i, uint64_t dir, const struct answer *a);
void behind_end(struct core_inode *i); /* we are not, or it is not certain */
bool behind_alone(const struct core_inode *dir, const struct core_inode *i);
/* Has this caller removed something in this session? */
bool behind_removes(const struct core *c, const struct msg_cred *cred);
/* Nobody else can tell, it will not be refused, nothing of it is under way or open here, and nobody
 * waits who would be kept waiting by it. */
bool behind_allows(const struct mds_op *op, const struct core_inode *dir,
                   const struct core_inode *victim);
/* A file or directory of which the last name is being removed. */
bool behind_leaving(struct core *c, uint64_t ino);
void behind_urge(struct core *c);                    /* somebody waits */
void behind_hurry(struct core *c);                   /* what follows on that has been gathered */
int behind_take_error(struct core *c, uint64_t dir); /* once */
/* It was empty, so the removals that were refused in it have happened after all. */
void behind_dir_removed(struct core_inode *dir);
/* Is there one that nobody has been told and nobody can ask for any more? */
bool behind_left_error(const struct core *c);

/* ---- what removals and creations (creating.c) have in common ---- */

bool behind_changes_now(const struct mds_op *op, uint64_t ino, uint64_t other);
/* May this caller add names to the directory, as the server would decide it, for certain? */
bool behind_may_change(const struct msg_attr *dir, const struct msg_cred *cred);
bool behind_name_fits(const struct msg_bytes *name); /* the server would take it */
/* The directory as the server will have it; when that was. */
struct msg_time behind_dir_changed(struct core_inode *dir);
/* A change of the directory and of what its name stands for: is under way, is answered. */
void behind_begin(struct mds_op *op, struct core_inode *dir, struct core_inode *i);
void behind_answered(struct core_inode *dir, struct core_inode *i);
void behind_over(struct core *c, struct core_inode *dir, struct core_inode *i);
void behind_take_dir(const struct mds_op *op, struct core_inode *dir);
void behind_refused(struct mds_op *op, struct core_inode *dir, int status);
void behind_keep_error(struct core_inode *dir, int status); /* for its next fsync */
void behind_mistaken(struct core_inode *dir);               /* it has not changed as was foreseen */
/* That is what has become of it; was: what the kernel has been told. */
void behind_compare(struct core_inode *dir, const struct msg_attr *was);
bool behind_busy(const struct core_inode *i); /* some of them are under way */
/* One more inode that such a change is about; behind_also_over() may let go of it. */
void behind_also(struct core_inode *i);
void behind_also_over(struct core_inode *i);
/* As behind_may_change(), of a name that is to go. */
bool behind_may_delete(const struct msg_attr *dir, const struct msg_attr *victim,
                       const struct msg_cred *cred);

/* ---- creations (creating.c) ---- */

bool creating_try(struct mds_op *op);      /* as behind_try() */
bool creating_known(const struct core *c); /* to the server: all that it needs */
/* One was executed that has had to wait. */
void creating_executed(const struct mds_op *op);
/* It may be gathered, for the first time: true, while more may come that goes with it. */
bool creating_gathers(struct mds_op *op);
void creating_outgrown(struct core_inode *i);     /* more waits to be written than can go with it */
uint32_t creating_bytes(const struct mds_op *op); /* what is to go with it */
void creating_load(struct mds_op *op);            /* puts that into its message */
bool creating_makes(const struct mds_op *op);     /* ahead */
bool creating_is(const struct mds_op *op, uint64_t parent, const struct msg_bytes *name);
bool creating_serves(const struct core_file *f); /* reads and writes of it, for now */
/* A regular file: of one that is here only, or was until its session ended, no layout is known. */
bool creating_is_file(const struct core_file *f);
void creating_wait(struct core_req *q, void (*resume)(struct core_req *q));
void creating_tick(struct core *c);
struct core_file *creating_file(const struct core_inode *i); /* its maker's, or NULL */
bool creating_opens(uint32_t mode, unsigned flags);          /* may its owner open it so? */
/* Somebody has closed it: it need not wait here any longer for what may come. */
void creating_closed(struct core_inode *i);
uint32_t creating_in(const struct core_inode *dir); /* under way in it, opens left out; its own */
/* since.c: a change of attributes. True: it goes along with the creation, q is over. */
bool creating_set(struct core_inode *i, struct core_req *q, const struct msg_setattr_req *m);
void creating_since(struct mds_op *op, const struct core_inode *i); /* it is about to leave */

bool since_allows(const struct core_inode *i, const struct core_req *q,
                  const struct msg_setattr_req *m);
/* Adds what has been set, as the attributes are now. */
void since_add(struct msg_set_since *s, const struct msg_attr *a, uint32_t set);
void since_set_here(struct core_inode *i, const struct msg_setattr_req *m, struct msg_time now);
/* An access list that says no more than a mode, in the bytes of system.posix_acl_access. */
bool since_acl_mode(const void *value, uint32_t len, uint32_t *ret_mode);

/* The end of a creation and of what follows on it. */
void creating_over(struct core_inode *dir, struct core_inode *i);

/* ---- renames (moving.c) ---- */

bool moving_try(struct mds_op *op); /* as behind_try() */
/* Is one under way that gives or takes this name, of another file than this one? */
bool moving_concerns(const struct core *c, uint64_t dir, const struct msg_bytes *name,
                     uint64_t but);
void moving_step(struct core_inode *i);             /* something of it is over: the next may go */
void moving_fail(struct core_inode *i, int status); /* those that wait have nothing to rename */

/* ---- directories (newdir.c) ---- */

void newdir_fill(struct core_inode *i, const struct core_inode *around);
/* Something is made in dir. True: it leaves when dir has been made. */
bool newdir_holds(struct mds_op *op, struct core_inode *dir);
/* That we are alone with those that are here only is not certain any more. */
void newdir_end_all(struct core *c);
void newdir_answered(const struct mds_op *op, struct core_inode *around, struct core_inode *i,
                     int status);
void newdir_step(struct core_inode *i); /* something in it is over */

/* ---- how large files become (sizes.c) ---- */

/* Nearly all files that were made lately in this directory, or around it, became too large for the
 * metadata server to keep. */
bool sizes_large(struct core_inode *dir);
void sizes_closed(struct core_file *f);

/* ---- what is set on them (setdir.c) ---- */

/* A change of attributes. True: it is over, and the server will hear of it. */
bool setdir_try(struct core_inode *i, struct core_req *q, const struct msg_setattr_req *m);
void setdir_go(struct mds_op *op);        /* it is not held any longer */
void setdir_step(struct core_inode *dir); /* something in it is over */

/* ---- messages that carry them (gather.c), for batch.c and mds.c ---- */

void behind_gather_init(struct core *c);
void behind_gather(struct mds_op *op);
void behind_hold(struct mds_op *op);            /* for a moment, or until somebody waits */
bool behind_due(const struct core *c);          /* what is gathered is to be sent */
void behind_picked(struct core *c, uint32_t n); /* so much of it */
void behind_carry(struct mds_op *carrier, const struct mds_op *first);
void behind_landed(struct mds_op *carrier);

#endif
