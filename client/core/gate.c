/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate of an inode: reads and writes pass it, truncation and the end of a lease close it, wait
 * until all who passed are done, do their work and open it. Several may hold it closed at once;
 * requests that wait run in order when the last one opens it. A request that has passed may close
 * it behind itself and wait until it is the only one: who changes ranges of a file without data.
 */
#include "client/core/core_int.h"

bool gate_enter(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct core_inode *i = q->p.inode;

    if (i->gate) {
        q->p.resume = resume;
        list_push_back(&i->gate_queue, &q->p.wait);
        req_wait(q, "waits for a truncate or the end of a lease", req_finish);
        return false;
    }
    q->p.entered = true;
    i->active++;
    return true;
}

static void run_drained(struct core_inode *i)
{
    struct list *l;

    inode_ref(i);
    while (!i->active && (l = list_pop_front(&i->drain_queue)) != NULL) {
        struct gate_waiter *w = list_entry(l, struct gate_waiter, link);

        w->fn(w);
    }
    inode_put(i);
}

void gate_leave(struct core_inode *i)
{
    ASSERT(i->active > 0);
    i->active--;
    if (i->alone_waits && i->active == 1) {
        i->alone_waits = false;
        i->alone->p.cancel = NULL;
        i->alone->p.resume(i->alone);
        return;
    }
    run_drained(i);
}

bool gate_wait_growth(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct core_inode *i = q->p.inode;

    /* the kernel may hold the pages of a read that it is asked to drop: that one goes on */
    if (!lease_only_to_grow(i) || i->inval_busy)
        return true;
    q->p.entered = false;
    q->p.resume = resume;
    list_push_back(&i->gate_queue, &q->p.wait);
    req_wait(q, "waits until the file has grown", req_finish);
    gate_leave(i);
    return false;
}

void gate_growth_over(struct core_inode *i)
{
    if (i->gate == 0)
        req_resume_list(&i->gate_queue);
}

void gate_close(struct core_inode *i)
{
    i->gate++;
}

void gate_open(struct core_inode *i)
{
    ASSERT(i->gate > 0);
    if (--i->gate == 0)
        req_resume_list(&i->gate_queue);
}

void gate_when_drained(struct core_inode *i, struct gate_waiter *w,
                       void (*fn)(struct gate_waiter *w))
{
    w->fn = fn;
    list_push_back(&i->drain_queue, &w->link);
    run_drained(i);
}

void gate_alone(struct core_req *q, void (*resume)(struct core_req *q))
{
    struct core_inode *i = q->p.inode;

    ASSERT(!i->alone);
    i->alone = q;
    gate_close(i);
    if (i->active == 1) {
        resume(q);
        return;
    }
    i->alone_waits = true;
    q->p.resume = resume;
    req_wait(q, "waits for reads and writes of the file", req_finish);
}

void gate_alone_leave(struct core_req *q)
{
    struct core_inode *i = q->p.inode;
    bool alone = i->alone == q;

    if (alone) {
        i->alone = NULL;
        i->alone_waits = false;
    }
    if (q->p.entered)
        gate_leave(i);
    if (alone)
        gate_open(i);
}
