// SPDX-License-Identifier: Apache-2.0
/*
 * For people: which session waits for which. A change that cannot enter its files yet is told with
 * everybody who holds one of them up (a lease being taken back, or a dead writer's file that is
 * being repaired), or, when it only comes after other changes, with nobody; a change that others
 * are told of before, with those who have not answered. And which waits for an object storage
 * server: that is known to clients only, who say so in SESSION_RENEW. Failure mode: out of memory,
 * and what a renewal said is not known until the next one.
 */
#include <fcntl.h>
#include <string.h>

#include "mds/cluster/cluster.h"
#include "mds/session/session_int.h"

static struct msg_bytes text(const char *s)
{
    return (struct msg_bytes){s, (uint32_t)strlen(s)};
}

void session_describe(struct mds *m, uint64_t session, struct msg_wait_end *ret_end)
{
    const struct session *s = session_find(session_module(m), session);

    *ret_end = (struct msg_wait_end){.session = session};
    if (!s)
        return;
    ret_end->host = text(s->host);
    ret_end->mount = text(s->mount);
    ret_end->job = text(s->job);
}

void session_waits_add(struct session_module *mod, struct mds_waits *out,
                       const struct msg_wait *wait, uint64_t session, uint64_t since_ns,
                       uint64_t other)
{
    struct msg_wait *w = mds_waits_add(out);
    uint64_t now_ns = session_now_ns(mod);

    if (!w)
        return;
    *w = *wait;
    session_describe(mod->mds, session, &w->who);
    w->who.age_ns = now_ns - MIN(since_ns, now_ns);
    w->has_other = other != 0;
    if (w->has_other)
        session_describe(mod->mds, other, &w->other);
}

static bool writes(const struct mds_touch *t)
{
    return t->access != MDS_ACCESS_OPEN || lease_writes(t->open_flags) || t->open_flags & O_TRUNC;
}

/* Who holds up w at the file of its i-th touch; false: nobody. */
static bool add_holders(struct session_module *mod, struct mds_waits *out,
                        const struct session_wait *w, unsigned i)
{
    const struct mds_touch *t = &w->p->touch[i];
    struct msg_wait wait = {.kind = MSG_WAIT_DATA, .ino = t->ino, .write = writes(t)};
    bool any = false;
    struct list *l;

    list_for_each (l, &w->files[i]->uses) {
        const struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->s->id == w->p->session || (!u->held && list_empty(&u->recalled)))
            continue;
        session_waits_add(mod, out, &wait, w->p->session, w->since_ns, u->s->id);
        any = true;
    }
    return any;
}

static void add_wait(struct session_module *mod, struct mds_waits *out,
                     const struct session_wait *w)
{
    struct msg_wait behind = {.kind = MSG_WAIT_DATA};
    bool any = false;

    for (unsigned i = 0; i < w->p->n_touch && !out->more; i++) {
        const struct mds_touch *t = &w->p->touch[i];

        if (w->entered[i])
            any = add_holders(mod, out, w, i) || any;
        else if (w->groups[i] != LEASE_FREE && !behind.ino)
            behind = (struct msg_wait){.kind = MSG_WAIT_DATA, .ino = t->ino, .write = writes(t)};
    }
    if (!any)
        session_waits_add(mod, out, &behind, w->p->session, w->since_ns, 0);
}

void session_waits(struct mds *m, struct mds_waits *out)
{
    struct session_module *mod = session_module(m);
    struct list *l;

    list_for_each (l, &mod->waits) {
        if (out->more)
            return;
        add_wait(mod, out, list_entry(l, struct session_wait, all));
    }
    list_for_each (l, &mod->invals) {
        const struct watch_inval *v = list_entry(l, struct watch_inval, all);
        const struct msg_wait wait = {.kind = MSG_WAIT_CACHE, .ino = v->req.ino, .write = true};

        if (out->more)
            return;
        if (v->wait && v->w)
            session_waits_add(mod, out, &wait, v->wait->p->session, v->wait->since_ns, v->w->s->id);
    }
    session_glimpse_waits(mod, out);
    session_parked_waits(mod, out);
}

/* ---- object storage servers ---- */

void session_waits_note(struct session *s, const struct msg_renew_req *req)
{
    mem_free(s->server_waits);
    s->n_server_waits = 0;
    s->server_waits = req->n_waits ? mem_dup(req->waits, req->n_waits * sizeof *req->waits) : NULL;
    if (s->server_waits)
        s->n_server_waits = req->n_waits;
    s->server_waits_ns = session_now_ns(s->mod);
}

static uint64_t age_ns(const struct session *s, const struct msg_server_wait *w)
{
    uint64_t told_ns_ago = session_now_ns(s->mod) - s->server_waits_ns;

    return w->age_ns > UINT64_MAX - told_ns_ago ? UINT64_MAX : w->age_ns + told_ns_ago;
}

static void add_server_wait(struct mds *m, struct mds_waits *out, const struct session *s,
                            const struct msg_server_wait *from)
{
    const struct cluster_map *map = m->cluster_ops->map(m);
    const struct map_target *t = map_target(map, from->target);
    const struct map_node *node = t ? map_node(map, t->node) : NULL;
    struct msg_wait *w = node ? mds_waits_add(out) : NULL;

    if (!w)
        return;
    *w = (struct msg_wait){.kind = MSG_WAIT_SERVER,
                           .write = from->write,
                           .ino = from->ino,
                           .has_other = true,
                           .target = t->id,
                           .requests = from->requests};
    session_describe(m, s->id, &w->who);
    w->who.pid = from->pid;
    w->who.age_ns = age_ns(s, from);
    w->other.host = text(node->alias);
    if (!cluster_target_up(m, t->id))
        w->server_state = cluster_server_up(m, t->node) ? MSG_SERVER_MISSING : MSG_SERVER_DOWN;
}

void session_server_waits(struct mds *m, struct mds_waits *out)
{
    struct session_module *mod = session_module(m);
    struct hmap_node *node, *next;
    size_t pos;

    hmap_for_each (node, next, pos, &mod->sessions) {
        const struct session *s = container_of(node, struct session, by_id);

        for (uint32_t i = 0; s->phase == PHASE_LIVE && i < s->n_server_waits && !out->more; i++)
            add_server_wait(m, out, s, &s->server_waits[i]);
    }
}

void session_waits_sum(const struct session *s, struct msg_session_info *info)
{
    for (uint32_t i = 0; i < s->n_server_waits; i++) {
        const struct msg_server_wait *w = &s->server_waits[i];

        info->waiting += MIN(w->requests, UINT32_MAX - info->waiting);
        if (!info->waits_target || age_ns(s, w) > info->waits_ns) {
            info->waits_target = w->target;
            info->waits_ns = age_ns(s, w);
        }
    }
}
