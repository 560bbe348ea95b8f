/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount's own thread and those that drive beside it, on a reactor without a mount. The thread
 * is held where it has been woken and has not got a core yet.
 */
#include <check.h>
#include <dlfcn.h>
#include <poll.h>

#include "client/lib/lib_int.h"
#include "common/rt/thread.h"
#include "tests/support/suite.h"

static struct aifs fs;
static sem_t watching, go;
static atomic_bool hold;
static atomic_int found; /* descriptors that were ready when it looked */

/* In front of the C library's: what the own thread sleeps in. */
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    int (*next)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    bool held = atomic_load(&hold);
    struct timespec now = {0, 0};

    *(void **)&next = dlsym(RTLD_NEXT, "ppoll");
    if (!held)
        return next(fds, n, timeout, mask);
    sem_post(&watching);
    sem_wait(&go);
    atomic_store(&found, next(fds, n, &now, mask));
    return atomic_load(&found);
}

static void setup(void)
{
    struct reactor_options o = {.name = "drive"};

    memset(&fs, 0, sizeof fs);
    sem_init(&watching, 0, 0);
    sem_init(&go, 0, 0);
    atomic_store(&hold, true);
    atomic_store(&found, -1);
    ck_assert_int_eq(reactor_create(&o, &fs.reactor), 0);
    ck_assert_int_eq(lib_drive_init(&fs), 0);
    ck_assert_int_eq(thread_start(&fs.thread, "aifs-lib", lib_drive_main, &fs), 0);
}

static void teardown(void)
{
    atomic_store(&hold, false);
    lib_drive_stop(&fs);
    sem_post(&go);
    pthread_join(fs.thread, NULL);
    lib_drive_fini(&fs);
    reactor_destroy(fs.reactor);
}

static void wait_on(sem_t *s)
{
    while (sem_wait(s)) {
    }
}

static void drive(void)
{
    while (!lib_drive_begin(&fs)) { /* it takes over for a moment, and lets go again */
    }
    lib_drive_turn(&fs, 0);
    lib_drive_end(&fs);
}

/* What it watches is no longer armed since somebody drove: it must look, whoever drove since. */
START_TEST(a_thread_that_was_told_and_has_no_core_yet_looks_though_others_drive_meanwhile)
{
    wait_on(&watching);
    drive();
    drive();
    drive();
    sem_post(&go);
    wait_on(&watching); /* it has looked, stood by, and is back */
    ck_assert_int_gt(atomic_load(&found), 0);
}
END_TEST

static void posted(struct reactor_work *w)
{
    (void)w;
    sem_post(&fs.parked);
}

START_TEST(what_is_posted_while_nobody_drives_calls_it)
{
    struct reactor_work w = {.fn = posted};

    sem_init(&fs.parked, 0, 0);
    wait_on(&watching);
    lib_post(&fs, &w);
    sem_post(&go);
    wait_on(&fs.parked);
    wait_on(&watching);
    ck_assert_int_gt(atomic_load(&found), 0);
}
END_TEST

SUITE_MAIN("client-drive", setup, teardown,
           a_thread_that_was_told_and_has_no_core_yet_looks_though_others_drive_meanwhile,
           what_is_posted_while_nobody_drives_calls_it)
