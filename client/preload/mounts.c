/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libaifs, and the mounts that programs read from, by what they say of themselves. libaifs is
 * loaded, and mounted, with the first file of a mount. What fails is tried again after a while;
 * meanwhile the kernel serves. The table is full: the kernel serves, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/preload/preload_int.h"

/* drive=own: handlers of signals read, too. */
#define OPTIONS   "%s,ro,soft,timeo=%us,mount_timeout=%us,memory_limit=256Mi,drive=own"
#define TIMEOUT_S 5
#define RETRY_S   10

struct mounted {
    char text[PRELOAD_TEXT_MAX]; /* "SOURCE\nOPTIONS", as its files say */
    struct aifs *fs;             /* NULL: not now */
    time_t retry;
};

struct preload_lib preload_lib;

static struct mounted mounts[PRELOAD_MOUNTS];
static unsigned n_mounts;

static time_t now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

static bool find(void *library, const char *name, void *ret_function)
{
    void *f = dlsym(library, name);

    if (f)
        memcpy(ret_function, &f, sizeof f);
    return f != NULL;
}

static bool load(void)
{
    void *library;

    if (preload_lib.close)
        return true;
    library = dlopen("libaifs.so.0", RTLD_NOW | RTLD_LOCAL);
    return library && find(library, "aifs_mount", &preload_lib.mount) &&
           find(library, "aifs_unmount", &preload_lib.unmount) &&
           find(library, "aifs_open_inode", &preload_lib.open_inode) &&
           find(library, "aifs_pread", &preload_lib.pread) &&
           find(library, "aifs_close", &preload_lib.close);
}

static unsigned timeout_s(void)
{
    const char *value = getenv("AIFS_PRELOAD_TIMEOUT");
    unsigned long s = value ? strtoul(value, NULL, 10) : 0;

    return s >= 1 && s <= 3600 ? (unsigned)s : TIMEOUT_S;
}

/* Handlers of exit(3) run last in, first out: ours before those of what libaifs has loaded and
 * begun, but not before this library's end, which comes after theirs. */
static void end_early(void)
{
    static bool registered;

    if (!registered)
        registered = atexit(preload_end) == 0;
}

static struct aifs *mount_by(const char *text)
{
    char source[PRELOAD_TEXT_MAX], options[PRELOAD_TEXT_MAX + 200];
    const char *newline = strchr(text, '\n');
    unsigned s = timeout_s();
    struct aifs *fs = NULL;

    if (!newline)
        return NULL;
    snprintf(source, sizeof source, "%.*s", (int)(newline - text), text);
    snprintf(options, sizeof options, OPTIONS, newline + 1, s, s);
    if (!load() || preload_lib.mount(source, options, &fs))
        return NULL;
    end_early();
    return fs;
}

/* A place in the table: a new one, or that of a mount that we have not got. */
static struct mounted *mount_place(void)
{
    for (unsigned k = 0; k < n_mounts; k++)
        if (!mounts[k].fs)
            return &mounts[k];
    return n_mounts < PRELOAD_MOUNTS ? &mounts[n_mounts++] : NULL;
}

struct aifs *preload_mount_of(const char *text)
{
    struct mounted *m = NULL;

    for (unsigned k = 0; k < n_mounts && !m; k++)
        if (strcmp(mounts[k].text, text) == 0)
            m = &mounts[k];
    if (m && (m->fs || now_s() < m->retry))
        return m->fs;
    m = m ? m : mount_place();
    if (!m)
        return NULL;
    memcpy(m->text, text, strlen(text) + 1);
    m->fs = mount_by(text);
    m->retry = now_s() + RETRY_S;
    return m->fs;
}

bool preload_mounted(void)
{
    return n_mounts > 0;
}

void preload_mounts_forget(void)
{
    n_mounts = 0;
}

struct ending { /* of mounts: who waits for it may be gone before it */
    struct aifs *fs[PRELOAD_MOUNTS];
    unsigned n;
    sem_t done;
};

static void *unmount_all(void *arg)
{
    struct ending *e = arg;

    while (e->n)
        preload_lib.unmount(e->fs[--e->n]);
    sem_post(&e->done);
    return NULL;
}

bool preload_mounts_end(const struct timespec *until)
{
    struct ending *e = calloc(1, sizeof *e);
    pthread_t thread;
    bool done;

    for (unsigned k = 0; e && k < n_mounts; k++)
        if (mounts[k].fs)
            e->fs[e->n++] = mounts[k].fs;
    n_mounts = 0;
    if (!e)
        return false;
    sem_init(&e->done, 0, 0);
    if (pthread_create(&thread, NULL, unmount_all, e) != 0) {
        free(e);
        return false;
    }
    done = sem_clockwait(&e->done, CLOCK_MONOTONIC, until) == 0;
    if (!done) {
        pthread_detach(thread);
        return false;
    }
    pthread_join(thread, NULL);
    sem_destroy(&e->done);
    free(e);
    return true;
}
