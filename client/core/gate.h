/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of an inode, that reads and writes pass: gate.c. */
#ifndef AIFS_CLIENT_CORE_GATE_H
#define AIFS_CLIENT_CORE_GATE_H

#include <stdbool.h>

#include "common/base/list.h"

struct core_inode;
struct core_req;

struct gate_waiter {
    struct list link;
    void (*fn)(struct gate_waiter *w);
};

bool gate_enter(struct core_req *q,
                void (*resume)(struct core_req *q)); /* false: q waits, resume comes */
void gate_leave(struct core_inode *i);
/* A read that has entered: what is written under a lease that was asked for only to grow the file
 * is seen by those without a lease when the server knows it, so nobody here sees it sooner. false:
 * q has left again and waits, resume comes. */
bool gate_wait_growth(struct core_req *q, void (*resume)(struct core_req *q));
void gate_growth_over(struct core_inode *i); /* without gate_open() */
void gate_close(struct core_inode *i);
void gate_open(struct core_inode *i);
/* Calls fn when no data request is being worked on; the gate must be closed. */
void gate_when_drained(struct core_inode *i, struct gate_waiter *w,
                       void (*fn)(struct gate_waiter *w));

/* q has entered: nobody else will, and resume comes when q is the only one. */
void gate_alone(struct core_req *q, void (*resume)(struct core_req *q));
void gate_alone_leave(struct core_req *q); /* entered or not, alone or not */

#endif
