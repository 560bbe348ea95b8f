/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that go through a mount wait in the kernel for as long as the mount waits for its
 * servers, and no signal that is handled wakes them. So a thread looks at the clock and ends the
 * program, which the kernel allows.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tools/admin/admin.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;
    const char *path; /* what is asked now; NULL: nothing */
    struct timespec end;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *watch_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&watch.lock);
    for (;;) {
        struct timespec now;

        if (!watch.path) {
            pthread_cond_wait(&watch.changed, &watch.lock);
            continue;
        }
        pthread_cond_timedwait(&watch.changed, &watch.lock, &watch.end);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (watch.path && (now.tv_sec > watch.end.tv_sec ||
                           (now.tv_sec == watch.end.tv_sec && now.tv_nsec >= watch.end.tv_nsec))) {
            admin_error("%s: the mount does not answer: it waits for its servers", watch.path);
            _exit(admin_end(ADMIN_UNREACHABLE));
        }
    }
    return NULL;
}

bool admin_clock_start(pthread_cond_t *changed, void *(*run)(void *arg))
{
    pthread_condattr_t attr;
    pthread_t thread;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &attr);
    pthread_condattr_destroy(&attr);
    return pthread_create(&thread, NULL, run, NULL) == 0 && pthread_detach(thread) == 0;
}

void admin_watch(const struct admin *a, const char *path)
{
    uint64_t end = clock_mono_ns(clock_real()) + a->timeout_ns;

    pthread_mutex_lock(&watch.lock);
    watch.path = path;
    watch.end =
        (struct timespec){.tv_sec = (time_t)(end / NS_PER_S), .tv_nsec = (long)(end % NS_PER_S)};
    if (!watch.started)
        watch.started = admin_clock_start(
            &watch.changed, watch_main); /* without it the command waits like every program */
    if (watch.started)
        pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.lock);
}
