/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the workload: work.c draws what is done and takes the answers, calls.c makes the calls. */
#ifndef AIFS_TESTS_SIM_WORK_INT_H
#define AIFS_TESTS_SIM_WORK_INT_H

#include "client/core/core.h"
#include "tests/sim/sim.h"

#define FDS 2u

struct fd {
    struct core_file *file;
    uint64_t ino;
    int flags;
};

struct proc {
    struct sim_node *client;
    unsigned index;               /* of all */
    bool busy, unread, forgotten; /* unread: core_read_done() is due */
    struct core_req q;
    struct op *op;
    struct fd fd[FDS], *on;
    bool closing;
    uint32_t ghost; /* APPEND: a number of the sequence, for the place that it had to give up */
    uint64_t next_ns;
    uint8_t data[SIM_CELL_BYTES];
    struct iovec iov;
    char name, name2;
    char xattr[8];
};

/* ---- work.c ---- */
struct op *work_record(unsigned client, enum op_kind kind);
/* Is another process of the client changing its attributes? */
bool work_is_changing(const struct proc *by, uint64_t ino);
void work_finish(struct core_req *q, int status);

/* ---- calls.c ---- */
void work_calls_start(void);
void work_call_name(struct proc *p, enum op_kind kind);
void work_call_setattr(struct proc *p, enum op_kind kind, uint64_t ino, struct core_file *f);
void work_call_object(struct proc *p, enum op_kind kind, uint64_t ino);
void work_call_open(struct proc *p, struct fd *fd, uint64_t ino, int flags);
void work_call_data(struct proc *p, enum op_kind kind, struct fd *fd, unsigned cell);
void work_close_fd(struct proc *p, struct fd *fd);

#endif
