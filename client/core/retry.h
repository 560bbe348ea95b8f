/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do about the error of a call: pure, so that the simulator and the client decide alike.
 * Waiting is bounded per step (back-off) and, for errors that a retry cannot be expected to cure,
 * in number.
 */
#ifndef AIFS_CLIENT_CORE_RETRY_H
#define AIFS_CLIENT_CORE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

enum retry_action {
    RETRY_FAIL,  /* give status to the caller */
    RETRY_AGAIN, /* send again after delay_ns */
    RETRY_MAP,   /* fetch the cluster map, then send again after delay_ns */
    RETRY_ATTR,  /* fetch the inode, then send again */
};

struct retry {
    enum retry_action action;
    uint64_t delay_ns;
    int status;
    bool gave_up; /* another try would be due, but there have been as many as there may be */
};

#define RETRY_CHECKSUM_MAX 3u  /* a transfer that arrives damaged so often is an error */
#define RETRY_STALE_MAX    16u /* so are attributes or a map that are never new enough */
#define RETRY_AHEAD_MAX    8u  /* so often a server may have no memory for it: 1.3 s */

/* attempt: how often this call has failed before this time. */
struct retry retry_mds(int status, unsigned attempt);
/* Of a removal that was answered ahead: nobody else is left who could try again. */
struct retry retry_ahead(int status, unsigned attempt);
struct retry retry_oss_read(int status, unsigned attempt);
struct retry retry_oss_write(int status, unsigned attempt);

#endif
