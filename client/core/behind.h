/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals that are answered before the server has executed them (ADR 0017): behind.c. Included by
 * core_int.h; which are, behind_rules.c.
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

#include "common/base/list.h"
#include "common/rt/reactor.h"
#include "proto/msg.h"

struct answer;
struct core;
struct core_inode;
struct mds_op;

#define BEHIND_MAX    1024u /* removals under way */
#define BEHIND_FLYING 2u    /* messages of them; with more what comes is gathered */
#define BEHIND_LINGER_NS                                                                           \
    NS_PER_MS /* it is gathered for so long in any case, unless there is a message's fill of it */
#define BEHIND_CALLERS 8u /* who has removed something lately */

struct behind_caller {
    uint32_t uid, gid, epoch; /* epoch: of the session; 0: unused */
    uint32_t removed;         /* executed, in that session */
    uint64_t groups;          /* a hash */
    uint64_t last_ns;
};

struct behind {      /* in struct core */
    uint32_t n, max; /* under way, and how many may be */
    unsigned flying, gathered;
    bool lingered; /* what is gathered has been so for long enough */
    struct reactor_timer linger;
    bool urged;              /* somebody waits for them: what is gathered goes with this turn */
    struct list together;    /* struct mds_op.wait: gathered */
    struct list room;        /* the same: removals that wait until there are fewer */
    struct list all;         /* the same: behind all of them */
    struct list invalidates; /* struct rpc_req.link: INVALIDATEs without memory, to be answered */
    struct behind_caller callers[BEHIND_CALLERS];
    uint64_t terms;       /* counts them */
    struct msg_time last; /* when the latest of them happened */
    unsigned n_errors;    /* directories with an error that nobody has been told */
};

struct behind_inode { /* in struct core_inode */
    /* Of a directory: we have been told that we are alone with it, in this term, and it has not
     * ended; 0: not so. Of what is in it: the term for which the same was said. */
    uint64_t term;
    bool own;            /* a term of its own: its own page has said so */
    bool rules_known;    /* of a directory: mode and owner are right as long as the term lasts */
    bool leaving;        /* its last name is being removed */
    struct mds_op *last; /* of a directory: its own removal, sent after those in it */
    uint32_t n;          /* removals under way in it, or of it; the inode is referenced meanwhile */
    struct list waiters; /* struct mds_op.wait: for these */
    int error;           /* of a directory: for the next fsync; it is referenced meanwhile */
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
void behind_urge(struct core *c);
int behind_take_error(struct core *c, uint64_t dir); /* once */

/* For batch.c and mds.c: messages that carry removals under way. */
void behind_gather(struct mds_op *op);
bool behind_due(const struct core *c);          /* what is gathered is to be sent */
void behind_picked(struct core *c, uint32_t n); /* so much of it */
void behind_carry(struct mds_op *carrier, const struct mds_op *first);
void behind_landed(struct mds_op *carrier);

#endif
