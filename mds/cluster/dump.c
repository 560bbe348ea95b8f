// SPDX-License-Identifier: Apache-2.0
/*
 * DUMP: all records of a consistent snapshot, page by page.
 *
 * Happy path: the first request pins a view; each page is filled on a worker, behind the last key
 * the caller has seen, and sent as bulk; the last request gives the view back. A page can be asked
 * for again. Failure modes: a caller that goes away: the view is given back after a minute of
 * silence; more than DUMPS_MAX at once are refused.
 */
#include <string.h>

#include "mds/cluster/cluster_int.h"
#include "mds/store/dump_fmt.h"

#define DUMPS_MAX    4u
#define DUMP_IDLE_NS (60 * NS_PER_S)

struct dump {
    struct worker_job job;
    struct list link;
    struct cluster *c;
    uint64_t id, used_ns;
    struct view view;
    struct rpc_req *req; /* the page being made */
    bool sending;        /* the page belongs to the transport */
    void *page;
    size_t len;
    struct msg_dump_rep rep;
    int error;
};

static struct dump *dump_find(struct cluster *c, uint64_t id)
{
    struct list *l;

    list_for_each (l, &c->dumps) {
        struct dump *d = list_entry(l, struct dump, link);

        if (d->id == id)
            return d;
    }
    return NULL;
}

static void dump_free(struct dump *d)
{
    d->c->n_dumps--;
    list_remove(&d->link);
    view_unpin(&d->view);
    mem_free(d->page);
    mem_free(d);
}

static int dump_begin(struct cluster *c, struct dump **ret_dump)
{
    struct dump *d;

    if (c->n_dumps >= DUMPS_MAX || c->stopping)
        return -AIFS_EBUSY_SERVER;
    d = mem_zalloc(sizeof *d);
    if (!d)
        return -ENOMEM;
    d->page = mem_alloc(MSG_BULK_MAX);
    if (!d->page) {
        mem_free(d);
        return -ENOMEM;
    }
    d->c = c;
    d->id = ++c->next_dump;
    view_pin(c->mds->shards[0], &d->view);
    list_push_back(&c->dumps, &d->link);
    c->n_dumps++;
    stat_inc(&c->stats.dumps);
    *ret_dump = d;
    return 0;
}

static int dump_record(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct dump *d = arg;
    const struct msg_dump_req *msg = d->req->msg;
    int rc;

    if (msg->after.len == key_len && !memcmp(msg->after.data, key, key_len))
        return 0;
    rc = dump_append(d->page, MSG_BULK_MAX, &d->len, key, key_len, value, len);
    if (rc == -ENOSPC) {
        d->rep.eof = false;
        return 1;
    }
    d->rep.records += rc == 0;
    return rc;
}

static void dump_run(struct worker_job *j)
{
    struct dump *d = container_of(j, struct dump, job);
    const struct msg_dump_req *msg = d->req->msg;
    struct key all = {0}, from;

    d->len = 0;
    d->rep = (struct msg_dump_rep){.dump = d->id, .eof = true};
    from.len = (uint16_t)msg->after.len;
    memcpy(from.b, msg->after.len ? msg->after.data : "", msg->after.len);
    d->error = view_scan(&d->view, &all, msg->after.len ? &from : NULL, dump_record, d);
}

static void dump_sent(void *arg)
{
    struct dump *d = arg;
    struct cluster *c = d->c;

    d->sending = false;
    d->used_ns = cluster_now_ns(c);
    if (c->stopping)
        dump_free(d);
    cluster_end(c);
}

static void dump_done(struct worker_job *j)
{
    struct dump *d = container_of(j, struct dump, job);
    struct iovec iov = {.iov_base = d->page, .iov_len = d->len};
    struct rpc_req *req = d->req;

    d->req = NULL;
    if (d->error < 0) {
        struct cluster *c = d->c;

        LOG_ERROR("cluster", "dump %llu: %s", (unsigned long long)d->id, err_name(d->error));
        rpc_reply(req, d->error, NULL);
        dump_free(d);
        cluster_end(c);
        return;
    }
    d->sending = true;
    rpc_reply_bulk(req, 0, &d->rep, &iov, d->len ? 1 : 0, dump_sent, d);
}

void cluster_serve_dump(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct cluster *c = cluster_of(m);
    const struct msg_dump_req *msg = req->msg;
    struct msg_dump_rep over = {.dump = msg->dump, .eof = true};
    struct dump *d = msg->dump ? dump_find(c, msg->dump) : NULL;
    int rc = 0;

    if (msg->after.len > KEY_MAX_BYTES)
        rc = -EINVAL;
    else if (msg->dump && !d)
        rc = msg->end ? 0 : -ENOENT;
    else if (d && (d->req || d->sending))
        rc = -EBUSY;
    else if (!d && !msg->end)
        rc = dump_begin(c, &d);
    if (rc < 0 || msg->end) {
        if (rc == 0 && d)
            dump_free(d);
        rpc_reply(req, rc, rc ? NULL : &over);
        return;
    }
    d->req = req;
    d->job.run = dump_run;
    d->job.done = dump_done;
    cluster_begin(c);
    worker_pool_submit(m->workers, m->reactor, &d->job);
}

void cluster_dump_tick(struct cluster *c, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &c->dumps) {
        struct dump *d = list_entry(l, struct dump, link);

        if (!d->req && !d->sending && now_ns > d->used_ns + DUMP_IDLE_NS)
            dump_free(d);
    }
}

void cluster_dumps_stop(struct cluster *c)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &c->dumps) {
        struct dump *d = list_entry(l, struct dump, link);

        if (!d->req && !d->sending)
            dump_free(d);
    }
}
