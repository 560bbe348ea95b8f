/* SPDX-License-Identifier: Apache-2.0 */
/* Retry decisions; see the header. */
#include "client/core/retry.h"

#include "common/base/compiler.h"
#include "common/base/err.h"

#define BACKOFF_FIRST_NS (5 * NS_PER_MS)
#define BACKOFF_MAX_NS   (1 * NS_PER_S)

static uint64_t backoff(unsigned attempt)
{
    return attempt >= 8 ? BACKOFF_MAX_NS : MIN(BACKOFF_FIRST_NS << attempt, BACKOFF_MAX_NS);
}

static struct retry fail(int status)
{
    return (struct retry){RETRY_FAIL, 0, status, false};
}

static struct retry again(enum retry_action action, unsigned attempt, unsigned max, int status)
{
    if (max && attempt >= max)
        return (struct retry){RETRY_FAIL, 0, status, true};
    return (struct retry){action, backoff(attempt), status, false};
}

struct retry retry_mds(int status, unsigned attempt)
{
    switch (status) {
    case -AIFS_ERETRY:
    case -AIFS_EBUSY_SERVER:
    case -AIFS_ECONN: /* the link broke; the session and the slot make it safe to ask again */
    case -AIFS_EDOWN:
        return again(RETRY_AGAIN, attempt, 0, status);
    default:
        return fail(status);
    }
}

struct retry retry_ahead(int status, unsigned attempt)
{
    return status == -ENOMEM ? again(RETRY_AGAIN, attempt, RETRY_AHEAD_MAX, status)
                             : retry_mds(status, attempt);
}

static struct retry retry_oss(int status, unsigned attempt)
{
    switch (status) {
    case -AIFS_ECONN:
    case -AIFS_EBUSY_SERVER:
    case -AIFS_ERETRY:
        return again(RETRY_AGAIN, attempt, 0, status);
    case -AIFS_EDOWN:
    case -AIFS_ENOTARGET: /* its disk is away: as if the server were */
        return again(RETRY_MAP, attempt, 0,
                     status); /* another address, or another member of the chain */
    case -AIFS_ESTALE_MAP:
        return again(RETRY_MAP, attempt, RETRY_STALE_MAX, status);
    case -AIFS_ESTALE_TRUNC:
    case -AIFS_ESTALE_LAYOUT:
        return again(RETRY_ATTR, attempt, RETRY_STALE_MAX, status);
    case -AIFS_ECHECKSUM:
        return again(RETRY_AGAIN, attempt, RETRY_CHECKSUM_MAX, -EIO);
    default:
        return fail(status);
    }
}

struct retry retry_oss_read(int status, unsigned attempt)
{
    if (status == -AIFS_ECORRUPT)
        return again(RETRY_AGAIN, attempt, 1, -EIO);
    return retry_oss(status, attempt);
}

struct retry retry_oss_write(int status, unsigned attempt)
{
    return retry_oss(status, attempt);
}
