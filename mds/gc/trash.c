// SPDX-License-Identifier: Apache-2.0
/*
 * Directories of removed trees lose their content, and go.
 *
 * Happy path: a worker reads which directories there are (KEY_TRASH); a few at a time are worked
 * on: a worker reads a page of names; each file is frozen, so that nobody opens it meanwhile; one
 * entry takes the whole page away, and the directory with its last name. Directories that were in
 * it are in the queue then. Who stands in such a tree sees it go, and is told nothing of names that
 * his leases still show; a file with other names, outside perhaps, is removed only after those who
 * keep its attributes were told. Failure modes: nothing is forgotten: what fails rests a while and
 * is tried again.
 */
#include <dirent.h>

#include "common/fault/fault.h"
#include "mds/gc/gc_int.h"
#include "mds/ops/trash.h"

#define NAMES_MAX 256u /* of one page: what the writer does in about 2 ms */

struct trash_item {
    struct gc_trash_slot *slot;
    struct mds_prepare prepare;
    bool prepared;
};

struct gc_trash_slot {
    struct gc_trash *t;
    uint64_t dir;
    uint64_t hash; /* of the last name seen: the next page begins there */
    bool end;      /* this page is the last */
    bool left;     /* something could not be removed now */
    int error;
    uint32_t pending; /* prepares that are not ready */
    struct worker_job job;
    struct mds_submit submit;
    struct trash_names msg;
    struct trash_name names[NAMES_MAX]; /* ino 0: nothing to do with it any more */
    uint8_t types[NAMES_MAX];
    struct trash_item items[NAMES_MAX];
    uint32_t text_len;
    char text[NAMES_MAX * MSG_NAME_MAX];
};

static void trash_step(struct gc_trash *t);
static void slot_scan(struct gc_trash_slot *s);
static void slot_prepare(struct gc_trash_slot *s);

/* ---- one directory ---- */

static void slot_over(struct gc_trash_slot *s, int status)
{
    struct gc_trash *t = s->t;
    struct gc *gc = t->gc;

    if (status < 0) {
        stat_inc(&t->failed);
        t->again = true;
        t->rest_until_ns = reactor_now_ns(gc->mds->reactor) + GC_REST_NS;
        if (!gc->stopping && status != -EAGAIN)
            LOG_WARN("gc", "content of removed directory %llu: %s", (unsigned long long)s->dir,
                     err_name(status));
    }
    for (unsigned i = 0; i < GC_TRASH_SLOTS; i++) {
        if (t->slots[i] == s)
            t->slots[i] = NULL;
    }
    mem_free(s);
    trash_step(t);
    gc_end(gc);
}

static void slot_finish(struct gc_trash_slot *s, uint32_t i, int status, uint8_t what)
{
    struct mds *m = s->t->gc->mds;
    struct mds_outcome out = {.status = status, .ino = s->names[i].ino};

    if (what == TRASH_DESTROYED)
        out.result = SHARD_R_DESTROY;
    else if (what == TRASH_ORPHANED)
        out.result = SHARD_R_ORPHANED;
    if (!s->items[i].prepared)
        return;
    s->items[i].prepared = false;
    m->session_ops->finish(m, &s->items[i].prepare, &out);
}

/* What is left of the page: files whose watchers have to be told first. */
static bool slot_outcome(struct gc_trash_slot *s, const struct trash_names_rep *rep)
{
    bool shared = false;

    for (uint32_t i = 0; i < s->msg.n; i++) {
        uint8_t what = rep ? rep->outcome[i] : (uint8_t)TRASH_ABSENT;

        slot_finish(s, i, s->submit.entry.status, what);
        if (what == TRASH_SHARED && !s->names[i].told) {
            s->names[i].told = shared = true;
            continue;
        }
        if (what != TRASH_ABSENT)
            stat_inc(&s->t->removed);
        s->names[i].ino = 0;
    }
    return shared;
}

static void slot_committed(struct mds_submit *sub)
{
    struct gc_trash_slot *s = container_of(sub, struct gc_trash_slot, submit);
    const struct trash_names_rep *rep = sub->entry.status == 0 ? sub->entry.reply : NULL;
    struct gc *gc = s->t->gc;
    int status = sub->entry.status;
    bool gone = rep && rep->dir_gone, shared;

    if (sub->entry.result & SHARD_R_DESTROY)
        gc_destroy_kick(gc, sub->entry.result_ino, GC_GATHER_NS); /* nobody waits for the MDS */
    if (sub->entry.result & SHARD_R_TRASH)
        s->t->again = true;
    shared = slot_outcome(s, rep);
    mds_submit_fini(sub);
    if (status < 0 || gone || gc->stopping) {
        slot_over(s, status);
    } else if (shared) {
        slot_prepare(s);
    } else if (s->left && s->end) {
        slot_over(s, -EAGAIN);
    } else {
        if (s->end) /* something was added before it lost its name */
            s->hash = 0;
        slot_scan(s);
    }
}

static void slot_submit(struct gc_trash_slot *s)
{
    struct mds *m = s->t->gc->mds;

    FAULT_CRASH("mds.gc.trash.before_names");
    s->msg.dir = s->dir;
    s->msg.last = s->end;
    s->msg.names = s->names;
    for (uint32_t i = 0; i < s->msg.n; i++)
        s->names[i].is_open = s->items[i].prepared && s->items[i].prepare.touch[0].is_open;
    mds_submit(m, &s->submit, mds_shard_of(m, s->dir), SHARD_OP_TRASH_NAMES, &s->msg, SHARD_E_FREES,
               slot_committed);
}

static void slot_ready(struct mds_prepare *p, int status)
{
    struct trash_item *it = container_of(p, struct trash_item, prepare);
    struct gc_trash_slot *s = it->slot;

    it->prepared = status == 0;
    if (status < 0) {
        s->names[it - s->items].ino = 0;
        s->left = true;
    }
    if (--s->pending == 0)
        slot_submit(s);
}

static void slot_prepare(struct gc_trash_slot *s)
{
    struct mds *m = s->t->gc->mds;

    s->pending = 1;
    for (uint32_t i = 0; i < s->msg.n; i++) {
        struct trash_item *it = &s->items[i];
        const struct trash_name *n = &s->names[i];

        it->prepared = false;
        if (!n->ino || (s->types[i] != DT_REG && !n->told))
            continue;
        it->slot = s;
        memset(&it->prepare, 0, offsetof(struct mds_prepare, touch));
        it->prepare.mds = m;
        it->prepare.ready = slot_ready;
        it->prepare.n_touch = s->types[i] == DT_REG;
        it->prepare.touch[0] = (struct mds_touch){.ino = n->ino, .access = MDS_ACCESS_UNLINK};
        it->prepare.n_changes = n->told;
        it->prepare.changes[0] = (struct mds_change){.ino = n->ino};
        s->pending++;
        m->session_ops->prepare(m, &it->prepare);
    }
    if (--s->pending == 0)
        slot_submit(s);
}

static int see_name(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct gc_trash_slot *s = arg;
    struct trash_name *n = &s->names[s->msg.n];
    const uint8_t *k = key;
    struct mds_dirent d;
    int rc = key_len > 15 ? rec_dirent_decode(value, len, &d) : -AIFS_ECORRUPT;

    if (rc < 0)
        return rc;
    *n = (struct trash_name){.ino = d.ino,
                             .name = {s->text + s->text_len, (uint32_t)(key_len - 15)}};
    memcpy(s->text + s->text_len, k + 15, key_len - 15);
    s->text_len += n->name.len;
    s->types[s->msg.n] = d.type;
    s->hash = (uint64_t)be16_load(k + 9) << 32 | be32_load(k + 11);
    return ++s->msg.n == NAMES_MAX;
}

static void slot_run(struct worker_job *j)
{
    struct gc_trash_slot *s = container_of(j, struct gc_trash_slot, job);
    struct key prefix, from;
    struct view v;

    s->msg.n = s->text_len = 0;
    key_number(&prefix, KEY_DIRENT, s->dir);
    key_dirent_hash(&from, s->dir, s->hash);
    view_pin(mds_shard_of(s->t->gc->mds, s->dir), &v);
    s->error = view_scan(&v, &prefix, &from, see_name, s);
    view_unpin(&v);
    s->end = s->msg.n < NAMES_MAX;
}

static void slot_ran(struct worker_job *j)
{
    struct gc_trash_slot *s = container_of(j, struct gc_trash_slot, job);

    if (s->error < 0 || s->t->gc->stopping)
        slot_over(s, MIN(s->error, 0));
    else
        slot_prepare(s);
}

static void slot_scan(struct gc_trash_slot *s)
{
    struct mds *m = s->t->gc->mds;

    s->job.run = slot_run;
    s->job.done = slot_ran;
    worker_pool_submit(m->workers, m->reactor, &s->job);
}

static bool slot_start(struct gc_trash *t, unsigned i, uint64_t dir)
{
    struct gc_trash_slot *s = mem_alloc(sizeof *s);

    if (!s)
        return false;
    s->t = t;
    s->dir = dir;
    s->hash = 0;
    s->left = false;
    t->slots[i] = s;
    gc_begin(t->gc);
    slot_scan(s);
    return true;
}

/* ---- the queue ---- */

static int see_directory(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct gc_trash *t = arg;

    (void)value;
    (void)len;
    if (key_len != 9)
        return -AIFS_ECORRUPT;
    t->dirs[t->n] = key_number_of(key);
    return ++t->n == GC_PAGE;
}

static void trash_run(struct worker_job *j)
{
    struct gc_trash *t = container_of(j, struct gc_trash, job);
    struct key prefix, from;
    struct view v;

    t->n = t->next = 0;
    key_single(&prefix, KEY_TRASH);
    key_number(&from, KEY_TRASH, t->from);
    view_pin(t->gc->mds->shards[0], &v);
    t->error = view_scan(&v, &prefix, &from, see_directory, t);
    view_unpin(&v);
}

static void trash_ran(struct worker_job *j)
{
    struct gc_trash *t = container_of(j, struct gc_trash, job);
    struct gc *gc = t->gc;

    t->scanning = false;
    if (t->error < 0) {
        LOG_ERROR("gc", "queue %#x: %s", KEY_TRASH, err_name(t->error));
        t->n = 0;
        t->again = true;
        t->rest_until_ns = reactor_now_ns(gc->mds->reactor) + GC_REST_NS;
    }
    t->more = t->n == GC_PAGE;
    if (t->more)
        t->from = t->dirs[t->n - 1] + 1;
    trash_step(t);
    gc_end(gc);
}

static void trash_scan(struct gc_trash *t)
{
    t->scanning = true;
    t->job.run = trash_run;
    t->job.done = trash_ran;
    gc_begin(t->gc);
    worker_pool_submit(t->gc->mds->workers, t->gc->mds->reactor, &t->job);
}

static bool is_under_way(const struct gc_trash *t, uint64_t dir)
{
    for (unsigned i = 0; i < GC_TRASH_SLOTS; i++) {
        if (t->slots[i] && t->slots[i]->dir == dir)
            return true;
    }
    return false;
}

/* Free places take what was read; when all of it is taken, the next page is read. */
static void trash_step(struct gc_trash *t)
{
    if (t->scanning || t->gc->stopping || t->rest_until_ns)
        return;
    for (unsigned i = 0; i < GC_TRASH_SLOTS; i++) {
        while (t->next < t->n && is_under_way(t, t->dirs[t->next]))
            t->next++;
        if (t->slots[i] || t->next == t->n)
            continue;
        if (!slot_start(t, i, t->dirs[t->next])) {
            t->rest_until_ns = reactor_now_ns(t->gc->mds->reactor) + GC_REST_NS;
            return;
        }
        t->next++;
    }
    if (t->next < t->n || (!t->more && !t->again))
        return;
    if (!t->more) {
        t->again = false;
        t->from = 0;
    }
    trash_scan(t);
}

void gc_trash_kick(struct gc_trash *t)
{
    t->again = true;
    trash_step(t);
}

void gc_trash_tick(struct gc_trash *t, uint64_t now_ns)
{
    if (!t->rest_until_ns || now_ns < t->rest_until_ns)
        return;
    t->rest_until_ns = 0;
    trash_step(t);
}

void gc_trash_init(struct gc *gc)
{
    struct gc_trash *t = &gc->trash;

    t->gc = gc;
    stat_counter_register(&t->removed, "aifs_mds_rmtree_removed_total", NULL,
                          "names of removed trees that are gone");
    stat_counter_register(&t->failed, "aifs_mds_rmtree_failures_total", NULL,
                          "directories of removed trees that have to be tried again");
}

void gc_trash_fini(struct gc *gc)
{
    stat_unregister(&gc->trash.removed.stat);
    stat_unregister(&gc->trash.failed.stat);
}
