/* SPDX-License-Identifier: Apache-2.0 */
/* Records of sessions and fences, little-endian. Byte 0 of a session's record is enum
 * session_state (rec_fmt.h). */
#ifndef AIFS_MDS_SESSION_SESSION_FMT_H
#define AIFS_MDS_SESSION_SESSION_FMT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/number.h"

#define SESSION_REC_VERSION   1u
#define WRITER_REC_VERSION    1u
#define SESSION_REC_READ_ONLY 0x1u
#define SESSION_REC_ALONE     0x2u /* may have answered removals ahead */
#define SESSION_REC_SAFE      0x4u /* evicted: its client believed in its leases no more by then */
#define SESSION_TEXT_BYTES    64
#define SESSION_PATH_BYTES    128

struct session_rec { /* KEY_SESSION */
    uint8_t state;   /* enum session_state */
    uint8_t version;
    uint16_t flags; /* SESSION_REC_* */
    uint32_t generation;
    uint8_t client[16]; /* uuid of the mount or library instance */
    uint8_t node[16];   /* uuid it proved in hello */
    int64_t created_ns;
    uint64_t fence; /* number of its fence once evicted */
    uint32_t pid;
    uint32_t zero;
    char host[SESSION_TEXT_BYTES]; /* texts end with a NUL */
    char job[SESSION_TEXT_BYTES];
    char mount[SESSION_PATH_BYTES];
};
static_assert(sizeof(struct session_rec) == 320, "session record");
static_assert(offsetof(struct session_rec, created_ns) == 40, "session record");

struct writer_rec { /* KEY_WRITER */
    uint16_t version;
    uint16_t zero;
    uint32_t zero2;
    uint64_t id; /* of the open that has put it there: a later one is not taken away by mistake */
};
static_assert(sizeof(struct writer_rec) == 16, "writer record");

#define GIVEN_REC_VERSION 1u
#define GIVEN_REC_BYTES   (NUMBER_WINDOW / 8)

/* Of the numbers that the session gives to its files (proto/number.h), by their counts: bit n %
 * NUMBER_WINDOW of used is that of n, for the last NUMBER_WINDOW below next. */
struct given_rec { /* KEY_GIVEN */
    uint16_t version;
    uint16_t zero;
    uint32_t next; /* behind the highest that was used */
    uint8_t used[GIVEN_REC_BYTES];
};
static_assert(sizeof(struct given_rec) == 264, "record of given numbers");

struct fence_rec { /* KEY_FENCE */
    uint64_t session;
    uint32_t generation;
    uint32_t zero;
};
static_assert(sizeof(struct fence_rec) == 16, "fence record");

#endif
