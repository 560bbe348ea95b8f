// SPDX-License-Identifier: Apache-2.0
/*
 * For people: which session waits for which. A change that cannot enter its files yet is told with
 * everybody who holds one of them up (a lease being taken back, or a dead writer's file that is
 * being repaired), or, when it only comes after other changes, with nobody; a change that others
 * are told of before, with those who have not answered.
 */
#include <fcntl.h>
#include <string.h>

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

static void add(struct session_module *mod, struct mds_waits *out, const struct msg_wait *wait,
                uint64_t session, uint64_t since_ns, uint64_t other)
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
        add(mod, out, &wait, w->p->session, w->since_ns, u->s->id);
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
        add(mod, out, &behind, w->p->session, w->since_ns, 0);
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
            add(mod, out, &wait, v->wait->p->session, v->wait->since_ns, v->w->s->id);
    }
}
