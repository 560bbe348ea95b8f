// SPDX-License-Identifier: Apache-2.0
/*
 * From rpc to an operation and back: finds the operation, keeps clients out until the fences are
 * known, lets the session decide when it runs, counts it and measures how long it took.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"

static const struct oss_op op_table[] = {
    {RPC_OP_OSS_READ, OSS_OP_DATA, oss_op_read},
    {RPC_OP_OSS_WRITE, OSS_OP_DATA, oss_op_write, oss_place_write},
    {RPC_OP_OSS_COMMIT, OSS_OP_DATA, oss_op_commit},
    {RPC_OP_OSS_PUNCH, OSS_OP_DATA, oss_op_punch},
    {RPC_OP_OSS_SEEK, OSS_OP_DATA, oss_op_seek},
    {RPC_OP_OSS_TRUNCATE, 0, oss_op_truncate},
    {RPC_OP_OSS_DESTROY, 0, oss_op_destroy},
    {RPC_OP_OSS_SEAL, 0, oss_op_seal},
    {RPC_OP_OSS_FENCE, 0, oss_op_fence},
    {RPC_OP_OSS_CHUNK_LIST, 0, oss_op_chunk_list},
    {RPC_OP_OSS_STAT, 0, oss_op_stat},
    {RPC_OP_OSS_TARGET_ADD, 0, oss_op_target_add},
    {RPC_OP_MAP_CHANGED, 0, oss_op_map_changed},
};

struct op_stat {
    char labels[32];
    struct stat_histogram latency;
    struct stat_counter errors, bytes;
};

struct oss_dispatch {
    struct oss *oss;
    struct op_stat stats[ARRAY_LEN(op_table)];
    struct op_slot {
        struct oss *oss;
        unsigned index;
    } slots[ARRAY_LEN(op_table)];
};

static void dispatch(struct rpc_req *req)
{
    const struct op_slot *slot = req->handler_arg;
    struct oss_request *r = arena_zalloc(&req->arena, sizeof *r);
    int rc = 0;

    if (!r) {
        rpc_reply(req, -ENOMEM, NULL);
        return;
    }
    r->oss = slot->oss;
    r->rpc = req;
    r->op = &op_table[slot->index];
    r->msg = req->msg;
    r->started_ns = clock_mono_ns(reactor_clock(r->oss->reactor));
    list_init(&r->link);
    if (r->oss->stopping)
        rc = -AIFS_EDOWN;
    else if (!(r->op->flags & OSS_OP_DATA))
        r->op->run(r);
    else if (!r->oss->ready)
        rc = -AIFS_ERETRY; /* who is fenced is not known yet */
    else
        rc = oss_session_enter(r);
    if (rc)
        oss_reply(r, rc, NULL);
}

static bool dispatch_place(struct rpc_req *req)
{
    const struct op_slot *slot = req->handler_arg;

    return !slot->oss->stopping && op_table[slot->index].place(slot->oss, req);
}

static void request_end(struct oss_request *r, int status, uint64_t bytes)
{
    struct op_stat *st = &r->oss->dispatch->stats[r->op - op_table];

    stat_record(&st->latency, clock_mono_ns(reactor_clock(r->oss->reactor)) - r->started_ns);
    stat_add(&st->errors, status != 0);
    stat_add(&st->bytes, status ? 0 : bytes + r->rpc->header.bulk_len);
    if (status)
        LOG_DEBUG("oss", "%s from %s: %s", rpc_op_name(r->op->number),
                  rpc_link_describe(r->rpc->from), err_text(status));
}

void oss_reply(struct oss_request *r, int status, const void *msg)
{
    request_end(r, status, 0);
    oss_session_leave(r); /* may start what waited for it */
    rpc_reply(r->rpc, status, msg);
}

void oss_reply_bulk(struct oss_request *r, const void *msg, const struct iovec *iov, unsigned n_iov,
                    void (*released)(void *arg), void *arg)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < n_iov; i++)
        bytes += iov[i].iov_len;
    request_end(r, 0, bytes);
    oss_session_leave(r);
    rpc_reply_bulk(r->rpc, 0, msg, iov, n_iov, released, arg);
}

void *oss_alloc(struct oss_request *r, size_t size)
{
    void *p = arena_zalloc(&r->rpc->arena, size);

    if (!p)
        oss_reply(r, -ENOMEM, NULL);
    return p;
}

struct oss_target *oss_request_target(struct oss_request *r, uint32_t id)
{
    r->target = oss_target_find(r->oss, id);
    if (!r->target)
        oss_reply(r, -AIFS_ENOTARGET, NULL);
    return r->target;
}

int oss_dispatch_start(struct oss *o)
{
    struct oss_dispatch *d = mem_zalloc(sizeof *d);

    if (!d)
        return -ENOMEM;
    d->oss = o;
    o->dispatch = d;
    stat_counter_register(&o->repeated, "aifs_oss_repeated_total", NULL,
                          "writes and punches that were sent again and had been done");
    for (unsigned i = 0; i < ARRAY_LEN(op_table); i++) {
        struct op_stat *st = &d->stats[i];
        char name[32];

        snprintf(name, sizeof name, "%s", rpc_op_name(op_table[i].number));
        for (char *c = name; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        snprintf(st->labels, sizeof st->labels, "op=\"%.24s\"", name);
        stat_histogram_register(&st->latency, "aifs_oss_request_seconds", st->labels,
                                "time from receipt of a request to its reply");
        stat_counter_register(&st->errors, "aifs_oss_request_errors_total", st->labels,
                              "requests answered with an error");
        stat_counter_register(&st->bytes, "aifs_oss_bytes_total", st->labels,
                              "payload received or sent");
        d->slots[i] = (struct op_slot){o, i};
        rpc_node_handle(o->rpc, op_table[i].number, dispatch, &d->slots[i]);
        if (op_table[i].place)
            rpc_node_place(o->rpc, op_table[i].number, dispatch_place);
    }
    return 0;
}

void oss_dispatch_stop(struct oss *o)
{
    if (!o->dispatch)
        return;
    stat_unregister(&o->repeated.stat);
    for (unsigned i = 0; i < ARRAY_LEN(op_table); i++) {
        stat_unregister(&o->dispatch->stats[i].latency.stat);
        stat_unregister(&o->dispatch->stats[i].errors.stat);
        stat_unregister(&o->dispatch->stats[i].bytes.stat);
    }
    mem_free(o->dispatch);
    o->dispatch = NULL;
}
