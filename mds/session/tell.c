// SPDX-License-Identifier: Apache-2.0
/*
 * Hints to clients: sent once, over the connection that is there, and nobody waits for the answer.
 * Who gets none asks by itself.
 */
#include <string.h>

#include "mds/session/session_int.h"

#define TELL_TIMEOUT_NS (5 * NS_PER_S)

struct tell {
    struct session_call call;
    struct session_module *mod;
    struct rpc_link *link;
    uint64_t msg[]; /* aligned for any message */
};

static void told(struct rpc_call *c, int status)
{
    struct tell *t = container_of(c, struct tell, call.rpc);

    (void)status;
    rpc_link_unref(t->link);
    session_call_end(t->mod, &t->call);
    mem_free(t);
}

void session_tell(struct mds *m, uint64_t session, unsigned op, const void *msg, size_t msg_bytes)
{
    struct session_module *mod = session_module(m);
    struct session *s = session_find(mod, session);
    struct tell *t;

    if (!s || s->phase != PHASE_LIVE || !s->link || !rpc_link_alive(s->link) || mod->stopping)
        return;
    t = mem_zalloc(sizeof *t + msg_bytes);
    if (!t)
        return;
    t->mod = mod;
    t->link = rpc_link_ref(s->link);
    memcpy(t->msg, msg, msg_bytes);
    rpc_call_init(&t->call.rpc, op, t->msg, told, t);
    t->call.rpc.timeout_ns = TELL_TIMEOUT_NS;
    session_call(mod, s, t->link, &t->call);
}

bool session_has_open(struct mds *m, uint64_t session, uint64_t ino, uint64_t open_id)
{
    return session_open_of(session_module(m), open_id, session, ino, false) != NULL;
}

bool session_who(struct mds *m, uint64_t session, struct msg_bytes *ret_host,
                 struct msg_bytes *ret_mount)
{
    const struct session *s = session_find(session_module(m), session);

    if (!s)
        return false;
    *ret_host = (struct msg_bytes){s->host, (uint32_t)strlen(s->host)};
    *ret_mount = (struct msg_bytes){s->mount, (uint32_t)strlen(s->mount)};
    return true;
}
