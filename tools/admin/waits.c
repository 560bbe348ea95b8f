/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command waits for. A thread looks at the clock, for who waits does so in many ways: for a
 * process, a server, the kernel. When the thread had no turn in time, who has waited says it late.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "common/base/clock.h"
#include "tools/admin/admin.h"

#define SAID_AFTER_NS (2 * NS_PER_S)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, waiting, said;
    char text[1024];
    uint64_t due_ns;
} waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say_if_due(void)
{
    if (!waits.waiting || waits.said || clock_mono_ns(clock_real()) < waits.due_ns)
        return;
    waits.said = true;
    fflush(stdout);
    fprintf(stderr, "aifs-admin: %s\n", waits.text);
}

static void *waits_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&waits.lock);
    for (;;) {
        struct timespec due = {.tv_sec = (time_t)(waits.due_ns / NS_PER_S),
                               .tv_nsec = (long)(waits.due_ns % NS_PER_S)};

        if (waits.waiting && !waits.said)
            pthread_cond_timedwait(&waits.changed, &waits.lock, &due);
        else
            pthread_cond_wait(&waits.changed, &waits.lock);
        say_if_due();
    }
    return NULL;
}

void admin_waits_for(const char *fmt, ...)
{
    va_list ap;

    if (admin_says_json() || admin_says_little())
        return;
    pthread_mutex_lock(&waits.lock);
    va_start(ap, fmt);
    vsnprintf(waits.text, sizeof waits.text, fmt, ap);
    va_end(ap);
    if (!waits.waiting) {
        waits.waiting = true;
        waits.said = false;
        waits.due_ns = clock_mono_ns(clock_real()) + SAID_AFTER_NS;
    }
    if (!waits.started)
        waits.started = admin_clock_start(&waits.changed,
                                          waits_main); /* without it that is said when it is over */
    if (waits.started)
        pthread_cond_signal(&waits.changed);
    pthread_mutex_unlock(&waits.lock);
}

void admin_waited(void)
{
    pthread_mutex_lock(&waits.lock);
    say_if_due();
    waits.waiting = false;
    pthread_mutex_unlock(&waits.lock);
}
