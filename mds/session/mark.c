// SPDX-License-Identifier: Apache-2.0
/*
 * Which files a session may be writing, in the store: what has to be put right if this server dies
 * together with the session's client (docs/protocols.md section 7).
 *
 * Happy path: the entry that opens a file for writing for the first time puts the mark into the
 * same batch (exec_mark_writer()). It stays while the file is open for writing or under a write
 * lease, and a while longer: opening again meanwhile needs no entry. The oldest that are not needed
 * any more go many at a time, in one entry that nobody waits for. After a restart marks are read
 * from the store; those that their sessions do not reclaim stay for a lease time, because an open
 * that was committed but not answered is asked for again. Failure modes: a mark that could not be
 * taken away stays, and is tried again; all of a session's go with it.
 */
#include "mds/session/session_int.h"

#define UNMARK_MAX     4096u /* in one entry */
#define UNMARK_KEEP    1024u /* of closed files that may be written again, for so long at most: */
#define UNMARK_KEEP_NS (60 * NS_PER_S)

struct unmarking {
    struct mds_submit submit;
    struct session_module *mod;
    struct session_unmark msg;
    struct session_mark marks[];
};

bool session_mark_needed(const struct session_use *u, uint32_t open_flags)
{
    return lease_writes(open_flags) && u->mark != MARK_SET;
}

/* Not open for writing, no write lease: whatever the session wrote there has been reported. */
static bool mark_idle(const struct session_use *u)
{
    return u->n_write == 0 && u->lease.kind != MSG_LEASE_WRITE && u->told.kind != MSG_LEASE_WRITE;
}

/* Another session may write the file alone: this one had no write lease on it. */
static bool mark_shared(const struct session_use *u)
{
    const struct list *l;

    list_for_each (l, &u->f->uses) {
        const struct session_use *x = list_entry(l, const struct session_use, of_file);

        if (x != u && MAX(x->lease.kind, x->told.kind) == MSG_LEASE_WRITE && !x->held)
            return true;
    }
    return false;
}

bool session_mark_spared(const struct session_use *u, bool *ret_if_inline)
{
    bool idle = mark_idle(u);

    *ret_if_inline = !idle;
    if (u->mark == MARK_NONE)
        return false;
    if (!u->s->reclaiming)
        return idle || MAX(u->lease.kind, u->told.kind) != MSG_LEASE_WRITE;
    *ret_if_inline = true;
    return mark_shared(u);
}

static void unmark_leave(struct session_module *mod, struct session_use *u)
{
    if (list_empty(&u->unmark))
        return;
    list_remove(&u->unmark);
    mod->n_unmark--;
}

void session_mark_use(struct session_use *u)
{
    unmark_leave(u->s->mod, u);
}

void session_mark_check(struct session_module *mod, struct session_use *u)
{
    if (u->mark != MARK_SET || !mark_idle(u) || !list_empty(&u->unmark))
        return;
    u->unmark_ns = session_now_ns(mod);
    list_push_back(&mod->unmark, &u->unmark);
    mod->n_unmark++;
}

void session_mark_set(struct session_module *mod, struct session_use *u, uint64_t id)
{
    unmark_leave(mod, u);
    u->mark = MARK_SET;
    u->mark_id = id;
    u->mark_unclaimed = false;
}

void session_mark_forget(struct session_module *mod, struct session_use *u)
{
    unmark_leave(mod, u);
    u->mark = MARK_NONE;
}

/* ---- the entry ---- */

static void unmarked(struct mds_submit *submit)
{
    struct unmarking *d = container_of(submit, struct unmarking, submit);
    struct session_module *mod = d->mod;
    int rc = submit->entry.status;

    if (rc < 0)
        LOG_WARN("session", "%u marks of closed files stay, to be taken away later: %s", d->msg.n,
                 err_name(rc));
    for (uint32_t i = 0; i < d->msg.n; i++) {
        const struct session_mark *m = &d->marks[i];
        struct session *s = session_find(mod, m->session);
        struct session_use *u = s ? session_use_find(mod, s, m->ino) : NULL;

        if (!u || u->mark != MARK_DROPPING || u->mark_id != m->id)
            continue; /* opened again, or gone with its session */
        u->mark = rc < 0 ? MARK_SET : MARK_NONE;
        session_use_put(mod, u);
    }
    mds_submit_fini(submit);
    mem_free(d);
    mod->unmarking = false;
    if (rc == 0 && mod->n_unmark >= UNMARK_KEEP + UNMARK_MAX)
        session_mark_tick(mod, session_now_ns(mod));
    session_end(mod);
}

/* What is to go now, oldest first, up to a bound; what is in use again leaves the list. */
static void unmark_collect(struct session_module *mod, struct unmarking *d, uint64_t now_ns)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &mod->unmark) {
        struct session_use *u = list_entry(l, struct session_use, unmark);

        if (d->msg.n == UNMARK_MAX ||
            (mod->n_unmark <= UNMARK_KEEP && now_ns < u->unmark_ns + UNMARK_KEEP_NS))
            return;
        if (u->s->phase == PHASE_LIVE && u->mark_unclaimed &&
            (u->s->reclaiming || now_ns < u->s->marks_until_ns))
            continue;
        unmark_leave(mod, u);
        if (u->s->phase != PHASE_LIVE || u->mark != MARK_SET || !mark_idle(u))
            continue;
        u->mark = MARK_DROPPING;
        d->marks[d->msg.n++] =
            (struct session_mark){.session = u->s->id, .ino = u->f->ino, .id = u->mark_id};
    }
}

void session_mark_tick(struct session_module *mod, uint64_t now_ns)
{
    struct unmarking *d;

    if (mod->n_unmark == 0 || mod->unmarking || mod->stopping)
        return;
    d = mem_alloc(sizeof *d + MIN(mod->n_unmark, UNMARK_MAX) * sizeof d->marks[0]);
    if (!d)
        return; /* the next tick comes */
    d->mod = mod;
    d->msg = (struct session_unmark){.marks = d->marks};
    unmark_collect(mod, d, now_ns);
    if (d->msg.n == 0) {
        mem_free(d);
        return;
    }
    mod->unmarking = true;
    session_begin(mod);
    mds_submit(mod->mds, &d->submit, mod->mds->shards[0], SHARD_OP_SESSION_UNMARK, &d->msg,
               SHARD_E_FREES, unmarked);
}

/* ---- after a restart ---- */

int session_mark_load(struct session_module *mod, uint64_t session, uint64_t ino, const void *value,
                      size_t len)
{
    struct session *s = session_find(mod, session);
    struct writer_rec rec;
    struct session_use *u;
    int rc;

    if (len < 2 || len != sizeof rec)
        return -AIFS_ECORRUPT;
    memcpy(&rec, value, sizeof rec);
    if (le16toh(rec.version) != WRITER_REC_VERSION)
        return -AIFS_EFORMAT;
    if (!s || s->phase != PHASE_LIVE)
        return 0; /* an eviction takes them all with it */
    rc = session_use_get(mod, s, ino, &u);
    if (rc == -AIFS_EBUSY_SERVER)
        return 0; /* too many: the store still has it for an eviction */
    if (rc < 0)
        return rc;
    session_mark_set(mod, u, le64toh(rec.id));
    u->mark_unclaimed = true;
    session_mark_check(mod, u);
    return 0;
}
