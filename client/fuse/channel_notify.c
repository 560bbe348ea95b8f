/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications to the kernel, on threads of their own ("notify" for contents, "notify-names"): one
 * at a time on each, in the order asked. What is finished is handed to the reactor in one post,
 * where the done functions run.
 *
 * Fails: a full queue is -EAGAIN, and the asker waits for a done. After the channel has ended every
 * notification finishes with -ENODEV.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/fuse/channel_int.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/rt/thread.h"

#define STORE_PIECES 20
#define JOIN_NS      (10 * (long)NS_PER_MS)

static int notice_write(const struct channel *c, int32_t code, struct iovec *iov, int n)
{
    struct wire_out_header h = {.len = sizeof(h), .error = code};

    for (int i = 1; i < n; i++)
        h.len += (uint32_t)iov[i].iov_len;
    iov[0] = (struct iovec){&h, sizeof(h)};
    return writev(c->watch.fd, iov, n) < 0 ? -errno : 0;
}

/* Expired: looked up again at its next use, and forgotten only if it has changed, so that what is
 * mounted below it or has it as working directory stays. Kernels before 6.2 forget it. */
static int inval_entry(const struct channel *c, uint64_t parent, const char *name)
{
    struct wire_inval_entry_out out = {.parent = parent,
                                       .namelen = (uint32_t)strlen(name),
                                       .flags = c->expire_only ? WIRE_EXPIRE_ONLY : 0};
    struct iovec iov[3] = {
        [1] = {&out, sizeof(out)}, [2] = {(void *)(uintptr_t)name, strlen(name) + 1}};

    return notice_write(c, WIRE_NOTIFY_INVAL_ENTRY, iov, 3);
}

static int inval_inode(const struct channel *c, uint64_t node, int64_t offset, int64_t len)
{
    struct wire_inval_inode_out out = {.ino = node, .off = offset, .len = len};
    struct iovec iov[2] = {[1] = {&out, sizeof(out)}};

    return notice_write(c, WIRE_NOTIFY_INVAL_INODE, iov, 2);
}

static int notice_send(struct channel *c, const struct channel_notice *n)
{
    if (n->kind == NOTICE_ENTRY)
        return inval_entry(c, n->node, n->name);
    return inval_inode(c, n->node, n->offset, n->len);
}

static void *notifier_main(void *arg)
{
    struct channel_notifier *t = arg;
    struct channel *c = t->channel;

    pthread_mutex_lock(&t->lock);
    for (;;) {
        struct channel_notice *n;

        while (list_empty(&t->queue) && !t->stop)
            pthread_cond_wait(&t->wake, &t->lock);
        if (list_empty(&t->queue))
            break;
        n = list_entry(list_pop_front(&t->queue), struct channel_notice, link);
        pthread_mutex_unlock(&t->lock);
        n->err = notice_send(c, n);
        if (n->err != 0 && n->err != -ENOENT && n->err != -ENODEV && n->err != -ENOTCONN)
            LOG_WARN("fuse", "the kernel could not drop its cache of inode %llu: %s",
                     (unsigned long long)n->node, strerror(-n->err));
        pthread_mutex_lock(&t->lock);
        list_push_back(&t->finished, &n->link);
        if (!t->posted && !t->stop) {
            t->posted = true;
            reactor_post(c->o.reactor, &t->work);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void finished_deliver(struct channel_notifier *t)
{
    struct channel *c = t->channel;
    struct list done, *l;

    list_init(&done);
    pthread_mutex_lock(&t->lock);
    t->posted = false;
    list_splice(&done, &t->finished);
    pthread_mutex_unlock(&t->lock);
    while ((l = list_pop_front(&done))) {
        struct channel_notice *n = list_entry(l, struct channel_notice, link);

        pthread_mutex_lock(&t->lock);
        t->count--;
        pthread_mutex_unlock(&t->lock);
        if (n->done)
            n->done(c->o.user, n->arg, n->err);
        mem_free(n);
    }
}

static void on_finished(struct reactor_work *w)
{
    finished_deliver(container_of(w, struct channel_notifier, work));
}

static int notice_queue(struct channel_notifier *t, struct channel_notice *n)
{
    AUTO_LOCK(&t->lock);

    if (t->stop)
        return -ENODEV;
    if (t->count >= CHANNEL_NOTICES)
        return -EAGAIN;
    t->count++;
    list_push_back(&t->queue, &n->link);
    pthread_cond_signal(&t->wake);
    return 0;
}

int channel_notify_inode(struct channel *c, uint64_t node, int64_t offset, int64_t len,
                         channel_notified_fn done, void *arg)
{
    struct channel_notice *n = mem_alloc(offsetof(struct channel_notice, name));
    int rc;

    if (!n)
        return -EAGAIN;
    n->kind = NOTICE_INODE;
    n->node = node;
    n->offset = offset;
    n->len = len;
    n->done = done;
    n->arg = arg;
    rc = notice_queue(&c->contents, n);
    if (rc != 0)
        mem_free(n);
    return rc;
}

int channel_notify_entry(struct channel *c, uint64_t parent, const char *name, uint32_t len,
                         channel_notified_fn done, void *arg)
{
    struct channel_notice *n = len <= MSG_NAME_MAX ? mem_alloc(sizeof(*n)) : NULL;
    int rc;

    if (!n)
        return len > MSG_NAME_MAX ? -ENAMETOOLONG : -EAGAIN;
    n->kind = NOTICE_ENTRY;
    n->node = parent;
    n->done = done;
    n->arg = arg;
    memcpy(n->name, name, len);
    n->name[len] = '\0';
    rc = notice_queue(&c->names, n);
    if (rc != 0)
        mem_free(n);
    return rc;
}

bool channel_can_expire_names(const struct channel *c)
{
    return c->proto_minor >= WIRE_MINOR_INC_EPOCH;
}

void channel_expire_names(struct channel *c)
{
    struct iovec iov;
    int rc = channel_can_expire_names(c) ? notice_write(c, WIRE_NOTIFY_INC_EPOCH, &iov, 1) : 0;

    if (rc != 0 && rc != -ENOTCONN && rc != -ENODEV)
        LOG_WARN("fuse", "the kernel keeps names: %s", strerror(-rc));
}

void channel_expire_attr(struct channel *c, uint64_t node)
{
    int rc = inval_inode(c, node, -1, 0);

    if (rc != 0 && rc != -ENOENT && rc != -ENODEV)
        LOG_WARN("fuse", "the kernel keeps attributes of inode %llu: %s", (unsigned long long)node,
                 strerror(-rc));
}

bool channel_can_store(const struct channel *c)
{
    return c->proto_minor >= WIRE_MINOR_STORE;
}

int channel_store(struct channel *c, uint64_t node, const struct iovec *data, int n)
{
    struct wire_store_out out = {.ino = node};
    struct iovec iov[2 + STORE_PIECES];

    if (n > STORE_PIECES)
        return -EINVAL;
    iov[1] = (struct iovec){&out, sizeof(out)};
    for (int i = 0; i < n; i++) {
        iov[2 + i] = data[i];
        out.size += (uint32_t)data[i].iov_len;
    }
    return notice_write(c, WIRE_NOTIFY_STORE, iov, 2 + n);
}

static int notifier_start(struct channel *c, struct channel_notifier *t, const char *name)
{
    int rc;

    t->channel = c;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    list_init(&t->queue);
    list_init(&t->finished);
    t->work.fn = on_finished;
    rc = thread_start(&t->thread, name, notifier_main, t);
    t->started = rc == 0;
    return rc;
}

/* A notification may wait for a lock that is held until a request has been answered. */
static void join_answering(struct channel_notifier *t)
{
    struct timespec until;

    do {
        channel_drain(t->channel);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += JOIN_NS;
        until.tv_sec += until.tv_nsec / (long)NS_PER_S;
        until.tv_nsec %= (long)NS_PER_S;
    } while (pthread_timedjoin_np(t->thread, NULL, &until) == ETIMEDOUT);
}

static void notifier_join(struct channel_notifier *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    join_answering(t);
}

/* The posted work may not run any more: what has finished is delivered here. The reactor must not
 * run work that was posted before and has not run: run it once more when it is still alive. */
static void notifier_drain(struct channel_notifier *t)
{
    while (t->posted)
        reactor_run_once(t->channel->o.reactor, 0);
    finished_deliver(t);
}

static void notifier_fini(struct channel_notifier *t)
{
    t->started = false;
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
}

int channel_notifier_start(struct channel *c)
{
    int rc = notifier_start(c, &c->contents, "notify");

    return rc == 0 ? notifier_start(c, &c->names, "notify-names") : rc;
}

/* Whatever still runs on the reactor finds both stopped, and neither gone. */
void channel_notifier_stop(struct channel *c)
{
    struct channel_notifier *all[] = {&c->names, &c->contents};

    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->started)
            notifier_join(all[i]);
    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->started)
            notifier_drain(all[i]);
    for (unsigned i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->started)
            notifier_fini(all[i]);
}
