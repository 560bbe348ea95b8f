// SPDX-License-Identifier: Apache-2.0
/*
 * OSS_FENCE: these generations of sessions are refused from now on. The reply promises that none of
 * their requests is in flight any more and that every target remembers the fence across a restart.
 *
 * In force in memory -> committed on the targets -> what was in flight has ended -> fence_seq says
 * so -> reply. A target that cannot be written is not waited for: one whose directory is away is
 * given the fences when it is back and before it is served (oss_fences_restore()), one whose store
 * has failed is not written before the server restarts, and then the registration brings them.
 * The same way for the fences that come with a registration or a heartbeat: there
 * whoever took them goes on when they are committed, and fence_seq, which the next heartbeat tells,
 * stays behind until the end. Out of memory, or not stored: fence_seq stays, and they come again.
 */
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"

struct fencing {
    struct list link; /* oss->fencing, once committed */
    struct oss *oss;
    struct oss_request *request; /* NULL: not from OSS_FENCE */
    uint64_t seq;                /* all fences up to this one are among them, or known */
    struct chunk_fence *fences;
    uint32_t n;
    uint32_t running;
    int status;
    void (*stored)(void *arg, int status); /* NULL: nobody goes on before the end */
    void *arg;
    struct chunk_op ops[]; /* of the target with the same index */
};

static void fencing_end(struct fencing *f)
{
    if (!f->status)
        f->oss->fence_seq = MAX(f->oss->fence_seq, f->seq);
    if (f->request)
        oss_reply(f->request, f->status, NULL);
    mem_free(f->fences);
    mem_free(f);
}

static bool fencing_drained(struct fencing *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (!oss_session_drained(f->oss, f->fences[i].session))
            return false;
    return true;
}

void oss_fence_poll(struct oss *o)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &o->fencing) {
        struct fencing *f = list_entry(l, struct fencing, link);

        if (!fencing_drained(f))
            continue;
        list_remove(&f->link);
        fencing_end(f);
    }
}

bool oss_fences_drain(const struct oss *o, uint64_t seq)
{
    const struct list *l;

    for (l = o->fencing.next; l != &o->fencing; l = l->next)
        if (container_of(l, const struct fencing, link)->seq == seq)
            return true;
    return false;
}

static void fencing_committed(struct fencing *f)
{
    void (*stored)(void *arg, int status) = f->stored;
    void *arg = f->arg;
    int status = f->status;

    if (!status && !fencing_drained(f))
        list_push_back(&f->oss->fencing, &f->link);
    else
        fencing_end(f);
    if (stored)
        stored(arg, status);
}

static bool store_has_failed(const struct oss_target *t)
{
    struct chunk_stat st;

    chunk_store_stat(t->store, &st);
    return st.failed;
}

static bool target_remembers(const struct oss_target *t)
{
    return (!t->away || t->returns) && !store_has_failed(t);
}

static void fence_stored(struct chunk_op *op, int status)
{
    struct fencing *f = op->arg;

    if (status && !f->status && target_remembers(&f->oss->targets[op - f->ops]))
        f->status = status;
    if (--f->running == 0)
        fencing_committed(f);
}

static struct fencing *fencing_create(struct oss *o, const struct msg_fence *fences, uint32_t n,
                                      uint64_t seq)
{
    struct fencing *f = mem_zalloc(sizeof *f + o->n_targets * sizeof f->ops[0]);

    if (!f)
        return NULL;
    f->fences = mem_array(n + 1ul, sizeof *f->fences);
    if (!f->fences) {
        mem_free(f);
        return NULL;
    }
    f->oss = o;
    f->seq = seq;
    f->n = n;
    for (uint32_t i = 0; i < n; i++)
        f->fences[i] = (struct chunk_fence){fences[i].session, fences[i].generation};
    return f;
}

static void fencing_run(struct fencing *f)
{
    struct oss *o = f->oss;

    for (uint32_t i = 0; i < f->n && !f->status; i++)
        f->status = oss_session_fence(o, f->fences[i].session, f->fences[i].generation);
    f->running = 1;
    for (uint32_t i = 0; i < o->n_targets && f->n && !f->status; i++) {
        if (!target_remembers(&o->targets[i]))
            continue;
        f->running++;
        f->ops[i] = (struct chunk_op){.kind = CHUNK_FENCE,
                                      .fences = f->fences,
                                      .n_fences = f->n,
                                      .done = fence_stored,
                                      .arg = f};
        chunk_store_submit(o->targets[i].store, &f->ops[i]);
    }
    if (--f->running == 0)
        fencing_committed(f);
}

void oss_fences_take(struct oss *o, const struct msg_fence *fences, uint32_t n, uint64_t seq,
                     void (*stored)(void *arg, int status), void *arg)
{
    struct fencing *f = fencing_create(o, fences, n, seq);

    if (!f) {
        stored(arg, -ENOMEM);
        return;
    }
    f->stored = stored;
    f->arg = arg;
    fencing_run(f);
}

void oss_op_fence(struct oss_request *r)
{
    const struct msg_fence_req *m = r->msg;
    struct fencing *f = fencing_create(r->oss, m->fences, m->n_fences, m->fence_seq);

    if (!f) {
        oss_reply(r, -ENOMEM, NULL);
        return;
    }
    f->request = r;
    fencing_run(f);
}

/* ---- for one that was away ---- */

struct restoring {
    struct chunk_op op;
    struct oss_target *target;
    void (*stored)(void *arg, int status);
    struct chunk_fence fences[];
};

static void restored(struct chunk_op *op, int status)
{
    struct restoring *r = op->arg;

    r->stored(r->target, status);
    mem_free(r);
}

void oss_fences_restore(struct oss_target *t, void (*stored)(void *arg, int status))
{
    uint32_t n = store_has_failed(t) ? 0 : oss_sessions_fenced(t->oss, NULL, 0);
    struct restoring *r = mem_zalloc(sizeof *r + n * sizeof r->fences[0]);

    if (!r || !n) {
        mem_free(r);
        stored(t, n ? -ENOMEM : 0);
        return;
    }
    r->target = t;
    r->stored = stored;
    (void)oss_sessions_fenced(t->oss, r->fences, n);
    r->op = (struct chunk_op){
        .kind = CHUNK_FENCE, .fences = r->fences, .n_fences = n, .done = restored, .arg = r};
    chunk_store_submit(t->store, &r->op);
}
