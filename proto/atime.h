/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When reading a file moves its time of last access, as mount(8) says of relatime: when that is not
 * after the last change, or is a day old. Client and server use the same rule: the one so that it
 * tells of a read at most once, the other so that of many readers one costs a commit.
 */
#ifndef AIFS_PROTO_ATIME_H
#define AIFS_PROTO_ATIME_H

#include "proto/msg.h"

#define ATIME_OLD_S (24 * 3600)

static inline bool atime_is_before(struct msg_time a, struct msg_time b)
{
    return a.sec < b.sec || (a.sec == b.sec && a.nsec < b.nsec);
}

/* Is a read at now to be noted in an inode with these times? Never turns atime back. */
static inline bool atime_is_due(struct msg_time atime, struct msg_time mtime, struct msg_time ctime,
                                struct msg_time now)
{
    if (!atime_is_before(atime, now))
        return false;
    return !atime_is_before(mtime, atime) || !atime_is_before(ctime, atime) ||
           (atime.sec < INT64_MAX - ATIME_OLD_S && now.sec >= atime.sec + ATIME_OLD_S);
}

#endif
