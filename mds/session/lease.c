// SPDX-License-Identifier: Apache-2.0
/* Decisions about data leases: docs/protocols.md section 3. Nothing here can fail. */
#include "mds/session/lease.h"

#include <fcntl.h>

bool lease_writes(uint32_t open_flags)
{
    return (open_flags & O_ACCMODE) != O_RDONLY;
}

enum lease_group lease_group(unsigned access, uint32_t open_flags)
{
    switch (access) {
    case MDS_ACCESS_OPEN:
        return open_flags & O_TRUNC ? LEASE_SOLE : LEASE_TAKE;
    case LEASE_ACCESS_GET:
        return LEASE_TAKE;
    case MDS_ACCESS_TIMES:
    case MDS_ACCESS_UNLINK:
    case MDS_ACCESS_CUT:
    case MDS_ACCESS_WRITE:
        return LEASE_BREAK;
    default:
        return LEASE_FREE;
    }
}

bool lease_may_enter(const struct lease_inside *in, enum lease_group g)
{
    switch (g) {
    case LEASE_TAKE:
        return !in->breaks && !in->sole;
    case LEASE_BREAK:
        return !in->take && !in->sole;
    case LEASE_SOLE:
        return !in->take && !in->breaks && !in->sole;
    default:
        return true;
    }
}

bool lease_conflicts(unsigned access, uint32_t open_flags, enum msg_lease held)
{
    if (held == MSG_LEASE_NONE)
        return false;
    switch (access) {
    case MDS_ACCESS_OPEN:
        return held == MSG_LEASE_WRITE || lease_writes(open_flags) || (open_flags & O_TRUNC);
    case LEASE_ACCESS_GET:
        return held == MSG_LEASE_WRITE || open_flags == MSG_LEASE_WRITE;
    case MDS_ACCESS_TIMES:
        return held == MSG_LEASE_WRITE;
    case MDS_ACCESS_CUT:
    case MDS_ACCESS_WRITE:
        return true;
    default:
        return false;
    }
}

enum msg_lease lease_of_open(const struct lease_users *u)
{
    if (u->held == MSG_LEASE_WRITE) /* nobody else has one, or it would have been recalled */
        return MSG_LEASE_WRITE;
    if (!u->others)
        return u->mine_write ? MSG_LEASE_WRITE : MSG_LEASE_READ;
    return u->others_write || u->mine_write ? MSG_LEASE_NONE : MSG_LEASE_READ;
}

enum msg_lease lease_of_get(const struct lease_users *u, enum msg_lease want, bool *ret_growth)
{
    *ret_growth = false;
    if (u->held >= want)
        return u->held;
    if (want == MSG_LEASE_WRITE && u->mine_write) {
        *ret_growth = u->others;
        return MSG_LEASE_WRITE;
    }
    if (want == MSG_LEASE_NONE || u->others_write || (u->others && u->mine_write))
        return u->held;
    return MSG_LEASE_READ;
}
