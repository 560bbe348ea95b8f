/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of one inode as a list of values: what is in the way of a lock, and what the list is
 * after one has been set or released. Pure: no memory, no clock, no state.
 *
 * The rules are those of fcntl(2) and flock(2): locks of one owner never conflict; the two kinds do
 * not see each other; readers share. A new lock replaces what its owner had in its range, which may
 * split an older one in two or join several to one. In a list, locks of one owner and kind do not
 * overlap, those of one type do not touch, and all are in the order of their starts.
 *
 * An owner is a number that its client has chosen (a process, or an open file), within a session.
 */
#ifndef AIFS_MDS_LOCKS_LIST_H
#define AIFS_MDS_LOCKS_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/msg.h"

/* Bounds; reaching one is -ENOLCK. */
#define LOCKS_INODE_MAX   4096u
#define LOCKS_SESSION_MAX 65536u

struct lock {
    uint64_t start, end; /* inclusive; MSG_LOCK_END: to the end of the file */
    uint64_t session, owner;
    int64_t since_ns; /* wall clock of the server */
    uint32_t pid;
    uint8_t kind, type; /* MSG_LOCK_RECORD or _FLOCK; MSG_LOCK_READ, _WRITE, of a change _UNLOCK */
};

/* As a client asks for it; a flock is always of the whole file. */
struct lock lock_of_msg(const struct msg_lock *m, uint64_t session);
void lock_to_msg(const struct lock *l, struct msg_lock *ret_msg);

bool lock_same_owner(const struct lock *a, const struct lock *b);
bool lock_overlaps(const struct lock *a, const struct lock *b);
/* Can the two not be held at once? */
bool lock_conflicts(const struct lock *a, const struct lock *b);

/* The first of the list that is in the way; NULL: none. */
const struct lock *lock_list_conflict(const struct lock *list, uint32_t n, const struct lock *want);
/* What change (a lock, or an unlock) makes of list; out has room for n + 2 and is not list. Returns
 * how many. */
uint32_t lock_list_apply(const struct lock *list, uint32_t n, const struct lock *change,
                         struct lock *out);
/* Only those of other sessions stay, in place. */
uint32_t lock_list_drop_session(struct lock *list, uint32_t n, uint64_t session);
uint32_t lock_list_count(const struct lock *list, uint32_t n, uint64_t session);
/* Has the owner of who anything of that kind in the list? */
bool lock_list_owns(const struct lock *list, uint32_t n, const struct lock *who);

#endif
