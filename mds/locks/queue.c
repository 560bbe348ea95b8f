// SPDX-License-Identifier: Apache-2.0
/*
 * Waits for locks, and the search for circles among them; see the header.
 *
 * The search goes from wait to wait: a wait leads to those who hold what is in its way, an owner to
 * its own waits. Each wait is looked at once, so a search costs at most what all waits' files hold.
 */
#include "mds/locks/queue.h"

#include <errno.h>

#include "common/base/mem.h"

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return hash_u64(a ^ hash_u64(b));
}

int lock_queue_init(struct lock_queue *q)
{
    int rc = hmap_init(&q->files, 64);

    list_init(&q->all);
    if (rc == 0)
        rc = hmap_init(&q->waits, 64);
    if (rc == 0)
        rc = hmap_init(&q->owners, 64);
    if (rc < 0)
        lock_queue_fini(q);
    return rc;
}

void lock_queue_fini(struct lock_queue *q)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &q->waits)
        mem_free(container_of(n, struct lock_wait, by_id));
    hmap_for_each (n, next, pos, &q->files)
        mem_free(container_of(n, struct lock_file, by_ino));
    hmap_fini(&q->files);
    hmap_fini(&q->waits);
    hmap_fini(&q->owners);
}

/* ---- files ---- */

struct lock_file *lock_file_find(struct lock_queue *q, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&q->files, hash_u64(ino)); n; n = hmap_next(n)) {
        struct lock_file *f = container_of(n, struct lock_file, by_ino);

        if (f->ino == ino)
            return f;
    }
    return NULL;
}

struct lock_file *lock_file_get(struct lock_queue *q, uint64_t ino)
{
    struct lock_file *f = lock_file_find(q, ino);

    if (f)
        return f;
    f = mem_zalloc(sizeof *f);
    if (!f)
        return NULL;
    f->ino = ino;
    list_init(&f->waits);
    hmap_insert(&q->files, &f->by_ino, hash_u64(ino));
    return f;
}

void lock_file_put(struct lock_queue *q, struct lock_file *f)
{
    if (f->busy || !list_empty(&f->waits))
        return;
    hmap_remove(&q->files, &f->by_ino);
    mem_free(f);
}

/* ---- waits ---- */

struct lock_wait *lock_wait_find(struct lock_queue *q, uint64_t session, uint64_t id)
{
    for (struct hmap_node *n = hmap_first(&q->waits, hash_pair(session, id)); n; n = hmap_next(n)) {
        struct lock_wait *w = container_of(n, struct lock_wait, by_id);

        if (w->want.session == session && w->id == id)
            return w;
    }
    return NULL;
}

int lock_wait_add(struct lock_queue *q, uint64_t ino, const struct lock *want, uint64_t id,
                  struct lock_wait **ret_wait)
{
    struct lock_file *f;
    struct lock_wait *w;

    if (q->waits.count >= LOCK_WAITS_MAX)
        return -ENOLCK;
    f = lock_file_get(q, ino);
    w = f ? mem_zalloc(sizeof *w) : NULL;
    if (!w) {
        if (f)
            lock_file_put(q, f);
        return -ENOMEM;
    }
    w->file = f;
    w->id = id;
    w->want = *want;
    list_push_back(&f->waits, &w->of_file);
    list_push_back(&q->all, &w->all);
    hmap_insert(&q->waits, &w->by_id, hash_pair(want->session, id));
    hmap_insert(&q->owners, &w->by_owner, hash_pair(want->session, want->owner));
    *ret_wait = w;
    return 0;
}

void lock_wait_remove(struct lock_queue *q, struct lock_wait *w)
{
    struct lock_file *f = w->file;

    list_remove(&w->of_file);
    list_remove(&w->all);
    hmap_remove(&q->waits, &w->by_id);
    hmap_remove(&q->owners, &w->by_owner);
    mem_free(w);
    lock_file_put(q, f);
}

/* ---- circles ---- */

struct search {
    struct lock_queue *q;
    const struct lock *target; /* is its owner waited for? */
    bool order;                /* waits behind waits count too, and flocks */
    struct lock_wait *todo;
    bool found;
};

static void search_wait(struct search *s, struct lock_wait *w)
{
    if (w->mark == s->q->mark || (!s->order && w->want.kind != MSG_LOCK_RECORD))
        return;
    w->mark = s->q->mark;
    w->todo = s->todo;
    s->todo = w;
}

/* Somebody waits for this owner: what does it wait for? */
static void search_owner(struct search *s, const struct lock *who)
{
    uint64_t hash = hash_pair(who->session, who->owner);

    if (lock_same_owner(who, s->target))
        s->found = true;
    for (struct hmap_node *n = hmap_first(&s->q->owners, hash); n && !s->found; n = hmap_next(n)) {
        struct lock_wait *w = container_of(n, struct lock_wait, by_owner);

        if (lock_same_owner(&w->want, who))
            search_wait(s, w);
    }
}

static void search_holders(struct search *s, uint64_t ino, const struct lock *want)
{
    const struct lock *list;
    uint32_t n = s->q->holders(s->q->arg, ino, &list);

    for (uint32_t i = 0; i < n && !s->found; i++) {
        if (lock_conflicts(&list[i], want))
            search_owner(s, &list[i]);
    }
}

static void search_earlier(struct search *s, const struct lock_wait *w)
{
    const struct list *l;

    list_for_each (l, &w->file->waits) {
        struct lock_wait *v = list_entry((struct list *)l, struct lock_wait, of_file);

        if (v == w || s->found)
            return;
        if (v->state == LOCK_LAPSED || !lock_conflicts(&v->want, &w->want))
            continue;
        if (lock_same_owner(&v->want, s->target))
            s->found = true;
        search_wait(s, v);
    }
}

static bool search_run(struct search *s)
{
    while (s->todo && !s->found) {
        struct lock_wait *w = s->todo;

        s->todo = w->todo;
        search_holders(s, w->file->ino, &w->want);
        if (s->order && !s->found)
            search_earlier(s, w);
    }
    return s->found;
}

bool lock_deadlocks(struct lock_queue *q, uint64_t ino, const struct lock *want)
{
    struct search s = {.q = q, .target = want};

    if (want->kind != MSG_LOCK_RECORD)
        return false;
    q->mark++;
    search_holders(&s, ino, want);
    return search_run(&s);
}

static bool waits_for(struct lock_queue *q, struct lock_wait *w, const struct lock *target)
{
    struct search s = {.q = q, .target = target, .order = true};

    q->mark++;
    search_wait(&s, w);
    return search_run(&s);
}

/* ---- order ---- */

const struct lock_wait *lock_wait_ahead(struct lock_queue *q, struct lock_file *f,
                                        const struct lock *want, const struct lock_wait *self,
                                        bool waits)
{
    const struct list *l;
    bool earlier = true;

    list_for_each (l, &f->waits) {
        struct lock_wait *v = list_entry((struct list *)l, struct lock_wait, of_file);

        if (v == self)
            earlier = false;
        if (v == self || v->state == LOCK_LAPSED || !lock_conflicts(&v->want, want))
            continue;
        if (v->state == LOCK_OFFERED || (waits && earlier && !waits_for(q, v, want)))
            return v;
    }
    return NULL;
}

struct lock_wait *lock_wait_next(struct lock_queue *q, struct lock_file *f)
{
    struct list *l;

    list_for_each (l, &f->waits) {
        struct lock_wait *w = list_entry(l, struct lock_wait, of_file);
        const struct lock *list;
        uint32_t n;

        if (w->state != LOCK_BLOCKED)
            continue;
        n = q->holders(q->arg, f->ino, &list);
        if (!lock_list_conflict(list, n, &w->want) && !lock_wait_ahead(q, f, &w->want, w, true))
            return w;
    }
    return NULL;
}
