/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls over the reactor: post, and turn it until it is done, or sleep on a semaphore
 * while another does. Failure: in the child of a fork() the mount or the file may not come back to
 * life (fork.c).
 */
#include "client/lib/lib_int.h"

#include <errno.h>

int lib_errno(int err)
{
    if (err >= 0)
        return err;
    errno = err_to_errno(err);
    return -1;
}

void lib_req(struct aifs *fs, struct core_req *q, core_done_fn *done, void *arg)
{
    q->cred = fs->cred;
    q->done = done;
    q->arg = arg;
    q->want_negative = q->direct = q->in_place = q->at_end = q->ahead = false;
    q->pid = fs->pid;
    q->masked = 0; /* the umask is not applied: aifs.h */
}

static void begin(struct reactor_work *w)
{
    struct lib_call *c = container_of(w, struct lib_call, work);

    c->begin(c);
}

void lib_call_init(struct lib_call *c, struct aifs *fs, void (*fn)(struct lib_call *c))
{
    memset(c, 0, offsetof(struct lib_call, q));
    memset((char *)c + offsetof(struct lib_call, begin), 0,
           sizeof *c - offsetof(struct lib_call, begin));
    c->fs = fs;
    c->begin = fn;
    c->work.fn = begin;
    lib_req(fs, &c->q, lib_core_done, c);
    sem_init(&c->sem, 0, 0);
}

void lib_file_call_init(struct lib_call *c, struct aifs_file *f, void (*fn)(struct lib_call *c))
{
    lib_call_init(c, f->fs, fn);
    c->file = f;
}

int lib_call_run(struct lib_call *c)
{
    int err = c->file ? lib_file_usable(c->file) : lib_usable(c->fs);

    if (!err)
        return lib_call_begin(c);
    sem_destroy(&c->sem);
    return err;
}

int lib_call_begin(struct lib_call *c)
{
    if (!c->large && lib_drive_begin(c->fs)) {
        reactor_post(c->fs->reactor, &c->work);
        while (sem_trywait(&c->sem))
            lib_drive_turn(c->fs, NS_PER_S);
        lib_drive_end(c->fs);
    } else {
        int cancel_state = lib_wait_begin(c->fs);

        lib_post(c->fs, &c->work);
        while (sem_wait(&c->sem) && errno == EINTR) {
        }
        lib_wait_end(c->fs, cancel_state);
    }
    sem_destroy(&c->sem);
    return c->status;
}

void lib_call_done(struct lib_call *c, int status)
{
    c->status = status;
    sem_post(&c->sem); /* c is on the stack of a thread that may go on now */
}

void lib_core_done(struct core_req *q, int status)
{
    lib_call_done(q->arg, status);
}

static void walked(struct lib_walk *w, int status)
{
    struct lib_call *c = w->q.arg;

    if (status)
        lib_call_done(c, status);
    else
        c->then(c);
}

static void walk_begin(struct lib_call *c)
{
    c->walk->q.arg = c;
    lib_walk_start(c->walk, walked);
}

int lib_path_call(struct aifs *fs, const char *path, unsigned walk_flags,
                  void (*then)(struct lib_call *c), struct lib_call *c)
{
    int err;

    c->begin = walk_begin;
    c->then = then;
    c->walk = lib_walk_new(fs, path, walk_flags, &err);
    if (!c->walk) {
        sem_destroy(&c->sem);
        return err;
    }
    err = lib_call_run(c);
    mem_free(c->walk);
    c->walk = NULL;
    return err;
}
