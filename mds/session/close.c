// SPDX-License-Identifier: Apache-2.0
/*
 * CLOSE: opens that end, and reads that the session tells of with them.
 *
 * Happy path: the opens are gone at once. The reads that move an atime are one entry, which enters
 * no inode, recalls nothing and waits for nobody; the answer follows its commit. Most readers of a
 * file find that another one has told already: then there is no entry. Failure modes: reads that
 * the shard has no room for are forgotten, as a crash of the client would have forgotten them.
 */
#include "mds/session/session_int.h"

#include "mds/ns/ns.h"

struct close_reads {
    struct shard_entry entry;
    struct session_module *mod;
    struct rpc_req *req;
    struct shard_reads msg;
    struct msg_read_item items[];
};

static void reads_committed(struct shard_entry *e)
{
    struct close_reads *r = container_of(e, struct close_reads, entry);
    struct session_module *mod = r->mod;

    if (e->status < 0)
        LOG_DEBUG("session", "%u reads are not told of: %s", r->msg.n, err_name(e->status));
    rpc_reply(r->req, 0, NULL);
    shard_entry_fini(e);
    mem_free(r);
    session_end(mod);
}

/* Those that the shard would act upon, as far as one can see now. */
static void reads_collect(struct close_reads *r, struct shard *shard,
                          const struct msg_close_req *msg)
{
    struct mds *m = r->mod->mds;
    int64_t ns = clock_wall_ns(reactor_clock(m->reactor));
    struct msg_time now = {ns / (int64_t)NS_PER_S, (uint32_t)(ns % (int64_t)NS_PER_S)};
    struct mds_inode in;
    struct view v;

    view_begin(shard, &v);
    for (uint32_t i = 0; i < msg->n_reads; i++) {
        const struct msg_read_item *item = &msg->reads[i];

        if (mds_shard_of(m, item->ino) == shard && view_inode(&v, item->ino, &in) == 0 &&
            ns_read_counts(&in, item, now))
            r->items[r->msg.n++] = *item;
    }
    view_end(&v);
}

/* True: the request is answered after the commit. */
static bool reads_submit(struct session_module *mod, struct rpc_req *req)
{
    const struct msg_close_req *msg = req->msg;
    struct shard *shard = mds_shard_of(mod->mds, msg->n_reads ? msg->reads[0].ino : 0);
    bool counts = shard && !session_find(mod, req->header.session)->read_only && !mod->stopping;
    struct close_reads *r =
        counts && msg->n_reads ? mem_zalloc(sizeof *r + msg->n_reads * sizeof r->items[0]) : NULL;

    if (!r)
        return false;
    r->mod = mod;
    r->req = req;
    r->msg.items = r->items;
    reads_collect(r, shard, msg);
    shard_entry_init(&r->entry, SHARD_OP_READS, &r->msg, mod->mds->reactor, reads_committed);
    if (r->msg.n == 0 || shard_submit(shard, &r->entry) < 0) {
        shard_entry_fini(&r->entry);
        mem_free(r);
        return false;
    }
    session_begin(mod);
    return true;
}

static void serve_close(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    const struct msg_close_req *msg = req->msg;
    int rc = session_check(m, req);

    for (uint32_t i = 0; rc == 0 && i < msg->n_items; i++) {
        struct session_open *o = session_open_of(mod, msg->items[i].open_id, req->header.session,
                                                 msg->items[i].ino, false);

        if (o) /* else closed by an earlier sending of this request */
            session_open_close(mod, o);
    }
    if (rc < 0 || !reads_submit(mod, req))
        rpc_reply(req, rc, NULL);
}

void session_close_start(struct session_module *mod)
{
    rpc_node_handle(mod->mds->node, RPC_OP_CLOSE, serve_close, mod->mds);
}
