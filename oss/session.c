// SPDX-License-Identifier: Apache-2.0
/*
 * What the server knows of a client's session: up to which generation it is fenced, which
 * connection (incarnation) is the newest, what is in flight, and how much space it was promised.
 *
 * A request of a newer incarnation waits until everything of older ones has ended; one of an older
 * incarnation is refused. So when something is sent again because its answer was lost with the
 * connection, it is known whether it was done: then it is not done again, because somebody else may
 * have written there since, and been answered. Sessions come into being with their first request;
 * idle ones are forgotten, oldest first, beyond SESSIONS_MAX, but for fences.
 */
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "oss/oss.h"

#define SESSIONS_MAX  65536u
#define GRANT_MAX     (64ull * MIB)   /* of a session on one target */
#define GRANT_IDLE_NS (60 * NS_PER_S) /* MSG_GRANT_NS and time to send what relies on it */
#define GRANT_PART    8u              /* all promises together: an eighth of what is free */

int oss_sessions_init(struct oss *o)
{
    list_init(&o->idle);
    list_init(&o->promised);
    list_init(&o->fencing);
    return hmap_init(&o->sessions, 64);
}

static void session_free(struct oss_session *s)
{
    mem_free(s->once);
    mem_free(s);
}

void oss_sessions_fini(struct oss *o)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (!o->sessions.buckets)
        return;
    hmap_for_each (n, next, pos, &o->sessions)
        session_free(container_of(n, struct oss_session, node));
    hmap_fini(&o->sessions);
}

static struct oss_session *session_find(struct oss *o, uint64_t id)
{
    for (struct hmap_node *n = hmap_first(&o->sessions, hash_u64(id)); n; n = hmap_next(n))
        if (container_of(n, struct oss_session, node)->id == id)
            return container_of(n, struct oss_session, node);
    return NULL;
}

static void session_drop_grants(struct oss *o, struct oss_session *s)
{
    for (uint32_t i = 0; i < o->n_targets; i++)
        chunk_store_unpromise(o->targets[i].store, &s->grants[i]);
    list_remove(&s->promised_link);
}

/* Forgets the session that has been idle longest, if it is not a fence. */
static void sessions_shrink(struct oss *o)
{
    struct oss_session *s;

    while (o->sessions.count > SESSIONS_MAX && !list_empty(&o->idle)) {
        s = list_entry(list_pop_front(&o->idle), struct oss_session, idle_link);
        session_drop_grants(o, s);
        hmap_remove(&o->sessions, &s->node);
        session_free(s);
    }
}

static struct oss_session *session_get(struct oss *o, uint64_t id)
{
    struct oss_session *s = session_find(o, id);

    if (s)
        return s;
    sessions_shrink(o);
    s = mem_zalloc(sizeof *s);
    if (!s)
        return NULL;
    s->id = id;
    list_init(&s->waiting);
    list_init(&s->idle_link);
    list_init(&s->promised_link);
    hmap_insert(&o->sessions, &s->node, hash_u64(id));
    return s;
}

static bool session_refuses(const struct oss_session *s, uint32_t generation)
{
    return s->is_fenced && generation <= s->fenced;
}

static void session_new_incarnation(struct oss_session *s, uint32_t incarnation)
{
    struct list dropped, *e;

    list_init(&dropped);
    list_splice(&dropped, &s->waiting); /* they came by a connection that is gone */
    s->incarnation = incarnation;
    s->older = s->in_flight;
    while ((e = list_pop_front(&dropped))) {
        struct oss_request *r = list_entry(e, struct oss_request, link);

        r->session = NULL;
        oss_reply(r, -AIFS_ECONN, NULL);
    }
}

int oss_session_enter(struct oss_request *r)
{
    const struct rpc_header *h = &r->rpc->header;
    struct oss *o = r->oss;
    struct oss_session *s;

    if (!h->session) {
        r->op->run(r);
        return 0;
    }
    s = session_get(o, h->session);
    if (!s)
        return -ENOMEM;
    if (session_refuses(s, h->generation))
        return -AIFS_EFENCED;
    if (h->incarnation < s->incarnation)
        return -AIFS_ECONN;
    list_remove(&s->idle_link);
    r->session = s;
    if (h->incarnation > s->incarnation)
        session_new_incarnation(s, h->incarnation);
    if (s->older) {
        list_push_back(&s->waiting, &r->link);
        return 0;
    }
    s->in_flight++;
    r->entered = true;
    r->op->run(r);
    return 0;
}

static void session_run_waiting(struct oss_session *s)
{
    struct list ready, *e;

    list_init(&ready);
    list_splice(&ready, &s->waiting);
    list_for_each (e, &ready)
        list_entry(e, struct oss_request, link)->entered = true;
    list_for_each (e, &ready)
        s->in_flight++;
    while ((e = list_pop_front(&ready))) {
        struct oss_request *r = list_entry(e, struct oss_request, link);

        if (session_refuses(s, r->rpc->header.generation))
            oss_reply(r, -AIFS_EFENCED, NULL);
        else
            r->op->run(r);
    }
}

void oss_session_leave(struct oss_request *r)
{
    struct oss_session *s = r->session;
    struct oss *o = r->oss;

    if (!s)
        return;
    r->session = NULL;
    if (r->entered) {
        ASSERT(s->in_flight);
        s->in_flight--;
        if (r->rpc->header.incarnation < s->incarnation && --s->older == 0)
            session_run_waiting(s);
    }
    if (!s->in_flight && list_empty(&s->waiting)) {
        if (!s->is_fenced && list_empty(&s->idle_link))
            list_push_back(&o->idle, &s->idle_link);
        oss_fence_poll(o);
    }
}

int oss_session_fence(struct oss *o, uint64_t session, uint32_t generation)
{
    struct oss_session *s = session_get(o, session);

    if (!s)
        return -ENOMEM;
    list_remove(&s->idle_link);
    if (!s->is_fenced || generation > s->fenced) {
        s->is_fenced = true;
        s->fenced = generation;
        session_drop_grants(o, s);
        mem_free(s->once);
        s->once = NULL;
        LOG_INFO("oss", "session %llu fenced up to generation %u", (unsigned long long)session,
                 generation);
    }
    return 0;
}

void oss_sessions_tick(struct oss *o)
{
    uint64_t now = reactor_now_ns(o->reactor);
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &o->promised) {
        struct oss_session *s = list_entry(l, struct oss_session, promised_link);

        if (s->promised_ns + GRANT_IDLE_NS > now)
            break;
        session_drop_grants(o, s);
    }
}

static bool did(const struct oss_once *once, uint64_t id)
{
    for (uint32_t i = 0; i < OSS_ONCE_KEPT; i++)
        if (once->ids[i] == id)
            return true;
    return false;
}

bool oss_session_did(const struct oss_request *r, uint64_t id, uint32_t n)
{
    const struct oss_once *once = r->session ? r->session->once : NULL;

    if (!id || !once)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!did(once, id + i))
            return false;
    stat_inc(&r->oss->repeated);
    return true;
}

void oss_session_done(struct oss_request *r, uint64_t id, uint32_t n)
{
    struct oss_session *s = r->session;

    if (!s || !id)
        return;
    if (!s->once)
        s->once = mem_zalloc(sizeof *s->once);
    for (uint32_t i = 0; s->once && i < n; i++)
        s->once->ids[s->once->next++ % OSS_ONCE_KEPT] = id + i;
}

bool oss_session_drained(struct oss *o, uint64_t session)
{
    struct oss_session *s = session_find(o, session);

    return !s || !s->in_flight;
}

uint32_t oss_sessions_fenced(const struct oss *o, struct chunk_fence *ret_fences, uint32_t max)
{
    struct hmap_node *h, *next;
    uint32_t n = 0;
    size_t pos;

    hmap_for_each (h, next, pos, &o->sessions) {
        const struct oss_session *s = container_of(h, const struct oss_session, node);

        if (!s->is_fenced)
            continue;
        if (n < max)
            ret_fences[n] = (struct chunk_fence){s->id, s->fenced};
        n++;
    }
    return n;
}

uint64_t *oss_session_promise(struct oss_request *r, struct oss_target *t)
{
    return r->session ? &r->session->grants[t - r->oss->targets] : NULL;
}

uint64_t oss_session_grant(struct oss_request *r, struct oss_target *t, uint64_t want)
{
    struct oss_session *s = r->session;
    uint64_t *promise = oss_session_promise(r, t), room;
    struct chunk_stat st;

    if (!s || session_refuses(s, r->rpc->header.generation))
        return 0;
    want = MIN(want, GRANT_MAX);
    if (want > *promise) {
        chunk_store_stat(t->store, &st);
        room = st.free_bytes / GRANT_PART;
        room = room > st.promised_bytes ? room - st.promised_bytes : 0;
        chunk_store_promise(t->store, promise, MIN(want - *promise, room));
    }
    s->promised_ns = reactor_now_ns(r->oss->reactor);
    list_remove(&s->promised_link);
    list_push_back(&r->oss->promised, &s->promised_link);
    return *promise;
}
