/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the workload: work.c draws what is done and takes the answers, calls.c makes the calls. */
#ifndef AIFS_TESTS_SIM_WORK_INT_H
#define AIFS_TESTS_SIM_WORK_INT_H

#include "client/core/core.h"
#include "tests/sim/sim.h"

#define FDS 2u

enum { HELD_NONE, HELD_READ, HELD_WRITE };

struct held {                        /* locks that it surely has */
    uint8_t flock, readers, writers; /* HELD_*; cells */
    unsigned starts;                 /* of the metadata server, when it was granted */
    uint64_t stamp;                  /* its own each time */
};

struct fd {
    struct core_file *file;
    uint64_t ino;
    int flags;
    uint64_t made_in; /* a directory, with this name; 0: opened */
    uint8_t made_as;
    bool unnamed;       /* made without a name, and surely open since */
    uint64_t owner;     /* of its locks */
    uint32_t owed_from; /* what was called from here on has to tell of a loss; 0: there is none */
    bool told, heard;   /* by fsync, by this or by a close of one, since it was looked for them */
    bool asked, lost;   /* for locks; it had some when its client lost its session */
    struct held held;
};

struct proc {
    struct sim_node *client;
    unsigned index;               /* of all */
    bool busy, unread, forgotten; /* unread: core_read_done() is due */
    struct core_req q;
    struct op *op;
    struct fd fd[FDS], *on;
    bool closing;
    bool again;     /* what it asked for had to be made once more */
    uint32_t ghost; /* APPEND, WRITE: a number of the sequence, for what it had to make again; the
                       one behind it for the bytes of an APPEND, or for a hole where a WRITE was */
    uint64_t next_ns;
    unsigned starts;     /* of the metadata server, when the call began */
    unsigned oss_starts; /* of all storage servers */
    uint64_t cancel_ns;  /* LOCK: gives up waiting; 0: does not */
    struct fd *gave_up;  /* LOCK: it asks for p->last again, at once */
    struct op last;
    uint64_t refused_by; /* LOCK, LOCK_TEST: stamp of what was in the way when it began */
    bool was_lost;       /* fd.lost, when the call began */
    uint8_t data[SIM_CELL_BYTES];
    struct iovec iov;
    char name, name2;
    char xattr[8], target[LINK_BYTES + 1];
};

/* ---- work.c ---- */
bool work_may_make(enum op_kind kind); /* one more; then it is made */
struct op *work_record(unsigned client, enum op_kind kind);
/* Is another process of the client changing its attributes? */
bool work_is_changing(const struct proc *by, uint64_t ino);
bool work_is_naming(const struct proc *by); /* the name that it looks up */
unsigned work_oss_starts(void);
void work_finish(struct core_req *q, int status);
struct proc *work_proc(unsigned i);
bool work_is_ready(const struct proc *p); /* for another call */
bool work_is_left(void);                  /* an operation to be made */
void work_count_one(void);                /* it is made */
/* Does the client believe in its session, and so in its locks? */
bool work_session_holds(const struct sim_node *client);

/* ---- answers.c ---- */
void work_take(struct proc *p); /* of a call that has succeeded */
/* Else it has happened, or will, or not. */
bool work_says_outcome(const struct op *o, int status);
bool work_knows_lost(const struct proc *p, uint64_t ino); /* it was told so when it wrote */
bool work_is_over(int status); /* if it does not: it has happened, or never */

/* ---- calls.c ---- */
void work_calls_start(void);
uint64_t work_draw(const struct proc *p, bool any); /* as known_draw(); no directory if not any */
uint64_t work_draw_dir(const struct proc *p);
uint64_t work_known(const struct proc *p,
                    uint64_t ino); /* if it may be known to others; else the root */
void work_begin(struct proc *p, enum op_kind kind, uint64_t ino);
void work_say_call(const struct proc *p);
void work_call_name(struct proc *p, enum op_kind kind);
void work_call_name_in(struct proc *p, enum op_kind kind, uint64_t dir, unsigned name);
void work_call_rename(struct proc *p, uint64_t dir, unsigned name, unsigned name2); /* in it */
void work_call_setattr(struct proc *p, enum op_kind kind, uint64_t ino, struct core_file *f);
void work_call_cut(struct proc *p, struct fd *fd); /* all that is written in this scene */
void work_call_object(struct proc *p, enum op_kind kind, uint64_t ino);
void work_call_open(struct proc *p, struct fd *fd, uint64_t ino, int flags);
void work_call_data(struct proc *p, enum op_kind kind, struct fd *fd, unsigned cell);
void work_close_fd(struct proc *p, struct fd *fd);

/* ---- removals.c ---- */
void work_removals_start(void);
bool work_removals_makes(void);          /* files of directories are made ahead in this seed */
bool work_removals_call(struct proc *p); /* false: it does something else */
uint64_t work_removals_rest(const struct proc *p, uint64_t think_ns);
void work_removals_answered(const struct proc *p, const struct op *o);
void work_removals_set(const struct proc *p, const struct op *o); /* a mode was set */
void work_removals_tick(unsigned client);
/* What is to have this number may be there later, if it comes to be there at all. */
bool work_removals_unsure(uint64_t ino);
void work_removals_lost(unsigned client); /* its session has ended, or it has crashed */

/* ---- together.c ---- */
void work_together_start(void);
void work_together(const struct proc *p); /* its call has begun: one of the other process with it */
bool work_together_call(struct proc *p);  /* false: it does something else */
void work_together_answered(const struct proc *p); /* the call of this one */

/* ---- spoils.c ---- */
void work_spoils_start(void);
void work_spoils_client(unsigned client); /* it has a new core */
void work_spoils_tick(unsigned client);
bool work_spoils_call(struct proc *p);                     /* false: it does something else */
void work_spoils_synced(const struct proc *p, int status); /* a call is answered */

/* ---- locks.c ---- */
void work_locks_start(void);
void work_locks_opened(struct fd *fd);
void work_locks_call(struct proc *p, struct fd *fd);
bool work_locks_call_again(struct proc *p); /* false: there is no lock to be asked for again */
void work_locks_call_last(struct proc *p, struct fd *fd,
                          bool flock); /* of all, however long it takes */
void work_locks_take(struct proc *p, int status);
void work_locks_used(const struct proc *p,
                     int status); /* another call on an open file is answered */
void work_locks_session_lost(struct proc *p);
void work_locks_tick(struct proc *p);

#endif
