/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions about data leases, as functions from values to values: no tables, no clock, no I/O.
 *
 * Freezing. Whoever changes a file enters it as a member of a group. Members of one group may be
 * inside together, members of different groups not:
 *   TAKE   may be given a lease (open)
 *   BREAK  ends leases of others, or depends on who has the file open; no lease may begin while it
 *          is inside
 *   SOLE   both (open and truncate)
 *   FREE   enters nothing
 * Who has to wait is served in order, so that neither group starves the other.
 */
#ifndef AIFS_MDS_SESSION_LEASE_H
#define AIFS_MDS_SESSION_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "mds/mds.h"

enum lease_group { LEASE_FREE, LEASE_TAKE, LEASE_BREAK, LEASE_SOLE };

/* Beside enum mds_access: LEASE_GET; open_flags is enum msg_lease, what is wanted. */
#define LEASE_ACCESS_GET 100

enum lease_group lease_group(unsigned access, uint32_t open_flags);

/* Members inside a file. */
struct lease_inside {
    uint32_t take, breaks, sole;
};
bool lease_may_enter(const struct lease_inside *in, enum lease_group g);

/* Must the lease that another session holds be recalled before this access? */
bool lease_conflicts(unsigned access, uint32_t open_flags, enum msg_lease held);
bool lease_writes(uint32_t open_flags); /* O_ACCMODE allows writing */

/* Everybody who has the file open when a lease is decided, the new open included in mine. */
struct lease_users {
    bool others;       /* another session has it open */
    bool others_write; /* another session has it open for writing */
    bool mine_write;
    enum msg_lease held; /* by me */
};
/* After an open. */
enum msg_lease lease_of_open(const struct lease_users *u);
/* After LEASE_GET. ret_growth: others have the file open without leases, so it is to be taken back
 * as soon as it has served. */
enum msg_lease lease_of_get(const struct lease_users *u, enum msg_lease want, bool *ret_growth);

#endif
