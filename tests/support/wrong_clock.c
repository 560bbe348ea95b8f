/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program, its wall clock is wrong by AIFS_WRONG_CLOCK seconds; the clocks that
 * measure how long something takes are right.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t wrong_by(void)
{
    const char *s = getenv("AIFS_WRONG_CLOCK");

    return s ? (time_t)strtol(s, NULL, 10) : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_TAI))
        ret->tv_sec += wrong_by();
    return rc;
}

int gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec t;

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}
