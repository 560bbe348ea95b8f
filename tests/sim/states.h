/* SPDX-License-Identifier: Apache-2.0 */
/* Which states of the protocols a node is in, counted after each of its turns. It only looks. */
#ifndef AIFS_TESTS_SIM_STATES_H
#define AIFS_TESTS_SIM_STATES_H

#include "common/base/list.h"
#include "tests/sim/cover.h"

struct mds;
struct oss;
struct core;
struct core_req;

void states_look_at_mds(const struct mds *m);
void states_look_at_oss(const struct oss *o);
void states_look_at_client(const struct core *c);
uint64_t states_dirty_inode(const struct core *c);  /* that has something to write; 0: none */
uint64_t states_dirty_chunks(const struct core *c); /* the same, to a target */

/* Is a lock kept for this client, which has waited for it? */
bool states_offered(const struct mds *m, const struct core *c);
bool states_opens(const struct mds *m, const struct core *c);   /* a session */
bool states_unheard(const struct mds *m, const struct core *c); /* its session is made */
unsigned states_changes(const struct core *c);                  /* how many are under way */
/* The inode of which a removal (made: a creation) that was answered ahead is under way; 0: there is
 * none. */
uint64_t states_removal(const struct core *c, bool made, uint64_t dir, char name);
/* The latest rename of this name to the other one that is under way so, or the one that this has
 * told (which): a number of its own. 0: there is none. */
uint64_t states_rename(const struct core *c, uint64_t dir, char name, char name2, uint64_t which,
                       uint64_t *ret_ino, uint64_t *ret_replaced);
bool states_makes(const struct core *c, uint64_t ino); /* ahead; it is under way */
/* What was set on a directory is under way, answered ahead (client/core/setdir.c). */
bool states_sets(const struct core *c, uint64_t dir);
uint32_t states_mode(const struct core *c, uint64_t ino); /* as it is cached; 0: it is not */
uint32_t states_removals(const struct core *c);           /* how many */
uint64_t states_reports(const struct core *c); /* the size of which inode is on its way; 0: none */
/* A write without a lease that a target has been sent; NULL: none. */
const struct core_req *states_stores(const struct core *c, uint32_t *ret_target);
/* An inode of which it believes the attributes; 0: none. */
uint64_t states_believed(const struct core *c);
/* How often each inode could not store what it had taken (core_inode.error_seq). */
void states_each_error(const struct core *c, void (*fn)(void *arg, uint64_t ino, uint32_t errors),
                       void *arg);
/* Does this place of a file lie on a target that was given up? */
bool states_is_lost(const struct core *c, uint64_t ino, uint64_t offset);
uint64_t states_session(const struct core *c);
const struct uuid *states_client_id(const struct core *c);
bool states_believes(const struct core *c); /* in its session */

static inline void hit_if(bool is, enum sim_cover what)
{
    if (is)
        sim_hit(what);
}

static inline void hit_list(const struct list *l, enum sim_cover what)
{
    hit_if(!list_empty(l), what);
}

#endif
