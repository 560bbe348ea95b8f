/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inode numbers that a client gives to files before the metadata server has heard of them (ADR
 * 0018). Of each shard's numbers the upper half belongs to sessions: a session's are told by its
 * own number, which is never given twice, so nobody has to ask for any or to note who has which.
 *
 *   shard (12 bits) | 1 | session (27 bits) | counted by the session (24 bits)
 *
 * Each is taken once. The server remembers the last NUMBER_WINDOW below the highest that it has
 * seen, so they may come in another order than they were counted in; one that is further behind is
 * refused. So a client counts on only while its oldest one that is not answered yet is less than
 * NUMBER_WINDOW behind.
 */
#ifndef AIFS_PROTO_NUMBER_H
#define AIFS_PROTO_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_SHARD_BITS  52 /* below the shard */
#define NUMBER_GIVEN       ((uint64_t)1 << (NUMBER_SHARD_BITS - 1))
#define NUMBER_COUNT_BITS  24
#define NUMBER_COUNT_MAX   (((uint32_t)1 << NUMBER_COUNT_BITS) - 1)
#define NUMBER_SESSION_MAX (((uint64_t)1 << (NUMBER_SHARD_BITS - 1 - NUMBER_COUNT_BITS)) - 1)
#define NUMBER_WINDOW      2048u

/* The session's count-th number on the shard of that directory; 0: it has none. */
static inline uint64_t number_given(uint64_t dir, uint64_t session, uint32_t count)
{
    if (session == 0 || session > NUMBER_SESSION_MAX || count > NUMBER_COUNT_MAX)
        return 0;
    return dir >> NUMBER_SHARD_BITS << NUMBER_SHARD_BITS | NUMBER_GIVEN |
           session << NUMBER_COUNT_BITS | count;
}

static inline bool number_is_given(uint64_t ino)
{
    return ino & NUMBER_GIVEN;
}

static inline uint64_t number_session(uint64_t ino)
{
    return (ino & (NUMBER_GIVEN - 1)) >> NUMBER_COUNT_BITS;
}

static inline uint32_t number_count(uint64_t ino)
{
    return (uint32_t)(ino & NUMBER_COUNT_MAX);
}

static inline bool number_is_given_by(uint64_t ino, uint64_t dir, uint64_t session)
{
    return ino != 0 && number_given(dir, session, number_count(ino)) == ino;
}

#endif
