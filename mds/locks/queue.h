/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for a lock, in what order they are served, and whether somebody would wait for ever. In
 * the leader's memory: after a restart the clients ask again.
 *
 * A wait belongs to one request of a client and is named by (session, id). Waits of a file are
 * served in the order of their arrival: one that nothing is in the way of any more is *offered* its
 * lock, which means that its client is told to ask again and that meanwhile nobody else gets what
 * would conflict. A request that comes later and would conflict with a wait stays behind it, with
 * one exception: when that wait itself waits for the newcomer, however indirectly (somebody who
 * reads and wants to read more must not be kept out by a writer whom he keeps out).
 *
 * Deadlocks are looked for among record locks only, as Linux does: an owner that would wait for
 * somebody who waits for it is refused (-EDEADLK). A flock that waits for ever can be interrupted.
 *
 * Who holds what is asked of the owner of the queue, through holders(). No I/O, no clock here.
 */
#ifndef AIFS_MDS_LOCKS_QUEUE_H
#define AIFS_MDS_LOCKS_QUEUE_H

#include "common/base/compiler.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "mds/locks/list.h"

/* Bounds; reaching one is -ENOLCK. */
#define LOCK_WAITS_MAX 65536u

enum lock_wait_state {
    LOCK_BLOCKED,
    LOCK_OFFERED, /* its turn: reserved until offer_end_ns */
    LOCK_LAPSED,  /* did not take what it was offered: delays nobody until it asks again */
};

struct lock_file {
    struct hmap_node by_ino;
    uint64_t ino;
    struct list waits; /* struct lock_wait, in order of arrival */
    uint32_t busy;     /* changes of its locks under way: what is committed may be old */
};

struct lock_wait {
    struct list of_file;
    struct list all;
    struct hmap_node by_id, by_owner;
    struct lock_file *file;
    uint64_t id;
    struct lock want; /* since_ns: when it began to wait */
    enum lock_wait_state state;
    uint64_t offer_end_ns;
    uint64_t mark; /* of the search that has seen it */
    struct lock_wait *todo;
};

struct lock_queue {
    struct hmap files, waits, owners;
    struct list all; /* struct lock_wait, in order of arrival */
    uint64_t mark;
    /* The locks held of an inode, valid until the next call; returns how many. */
    uint32_t (*holders)(void *arg, uint64_t ino, const struct lock **ret_list);
    void *arg;
};

int lock_queue_init(struct lock_queue *q) MUST_USE;
void lock_queue_fini(struct lock_queue *q); /* frees all waits */

struct lock_file *lock_file_find(struct lock_queue *q, uint64_t ino);
struct lock_file *lock_file_get(struct lock_queue *q, uint64_t ino); /* NULL: no memory */
void lock_file_put(struct lock_queue *q, struct lock_file *f); /* frees it when it is of no use */

struct lock_wait *lock_wait_find(struct lock_queue *q, uint64_t session, uint64_t id);
/* At the end of the file's line. -ENOLCK, -ENOMEM. */
int lock_wait_add(struct lock_queue *q, uint64_t ino, const struct lock *want, uint64_t id,
                  struct lock_wait **ret_wait) MUST_USE;
void lock_wait_remove(struct lock_queue *q, struct lock_wait *w); /* and frees it */

/* Would want, which is in conflict with locks held of ino, wait for somebody who waits for it? */
bool lock_deadlocks(struct lock_queue *q, uint64_t ino, const struct lock *want);
/*
 * A wait that is to be served before want; NULL: none. self: want's own wait, or NULL: it comes
 * last. waits: want is ready to wait itself; one that is not stays behind those only that were
 * offered what it asks for.
 */
const struct lock_wait *lock_wait_ahead(struct lock_queue *q, struct lock_file *f,
                                        const struct lock *want, const struct lock_wait *self,
                                        bool waits);
/* The next blocked wait of f that nothing is in the way of; NULL: none. */
struct lock_wait *lock_wait_next(struct lock_queue *q, struct lock_file *f);

#endif
