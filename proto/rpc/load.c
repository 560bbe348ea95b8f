// SPDX-License-Identifier: Apache-2.0
/*
 * LOAD: how busy a server is, and for whom. Counted by link: a few additions to memory that the
 * request is about to touch anyway, nothing to look up, nothing that grows. What a link has counted
 * goes with it; whoever asks twice takes a link that was not there before as new.
 */
#include <errno.h>
#include <string.h>

#include "proto/rpc/rpc_int.h"

/* Not those that idle clients and servers send all the time, nor the asking itself. */
static bool is_load(unsigned op)
{
    return op != RPC_OP_PING && op != RPC_OP_LOAD && op != RPC_OP_SESSION_RENEW &&
           op != RPC_OP_HEARTBEAT;
}

void load_begin(struct req *r)
{
    struct link_load *load = &r->pub.from->load;
    const struct rpc_header *h = &r->pub.header;

    if (!is_load(h->op))
        return;
    list_push_back(&load->serving, &r->serving);
    load->n_serving++;
    if (h->session) {
        load->session = h->session;
        load->job = h->job;
    }
}

void load_count(struct req *r, uint32_t reply_bulk_len)
{
    struct rpc_link *l = r->pub.from;
    uint64_t now;

    if (list_empty(&r->serving))
        return;
    now = clock_mono_ns(reactor_clock(l->node->reactor));
    l->load.operations++;
    l->load.read_bytes += reply_bulk_len;
    l->load.written_bytes += r->pub.header.bulk_len;
    l->load.busy_ns += now > r->pub.received_ns ? now - r->pub.received_ns : 0;
}

void load_end(struct req *r)
{
    if (list_empty(&r->serving))
        return;
    list_remove(&r->serving);
    r->pub.from->load.n_serving--;
}

static void load_of_link(const struct rpc_link *l, uint64_t now_ns, struct msg_load *ret_load)
{
    const struct link_load *load = &l->load;

    *ret_load = (struct msg_load){.link = load->id,
                                  .session = load->session,
                                  .job = load->job,
                                  .role = l->identity.role,
                                  .name = {l->identity.name, (uint32_t)strlen(l->identity.name)},
                                  .operations = load->operations,
                                  .read_bytes = load->read_bytes,
                                  .written_bytes = load->written_bytes,
                                  .busy_ns = load->busy_ns,
                                  .waiting = load->n_serving};
    if (!list_empty(&load->serving)) {
        const struct req *r = list_entry(load->serving.next, struct req, serving);

        ret_load->oldest_op = r->pub.header.op;
        ret_load->oldest_ns = now_ns > r->pub.received_ns ? now_ns - r->pub.received_ns : 0;
    }
}

void load_serve(struct rpc_req *req)
{
    struct rpc_node *n = req->from->node;
    struct msg_load_rep rep = {.boot = n->options.self.boot,
                               .now_ns = clock_mono_ns(reactor_clock(n->reactor))};
    struct msg_load *links;
    uint32_t used = 0;
    struct list *e;

    list_for_each (e, &n->links) {
        const struct rpc_link *l = list_entry(e, struct rpc_link, link);

        used += l->load.operations || l->load.n_serving;
    }
    rep.more = used > MSG_ITEMS_MAX;
    used = MIN(used, MSG_ITEMS_MAX);
    links = arena_alloc(&req->arena, (used + 1) * sizeof *links);
    if (!links) {
        rpc_reply(req, -ENOMEM, NULL);
        return;
    }
    list_for_each (e, &n->links) {
        const struct rpc_link *l = list_entry(e, struct rpc_link, link);

        if (rep.n_links < used && (l->load.operations || l->load.n_serving))
            load_of_link(l, rep.now_ns, &links[rep.n_links++]);
    }
    rep.links = links;
    rpc_reply(req, 0, &rep);
}
