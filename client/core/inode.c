/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inode cache: attributes kept under leases, what this client knows better (size and mtime under a
 * write lease), errors of write-back.
 *
 * An inode that nobody refers to stays in a bounded LRU list with its clean blocks. One that has
 * something to write or commit is on core.dirty_inodes, which counts as a reference.
 */
#include "client/core/core_int.h"
#include "client/core/where.h"

/* States that end without a change by any client: nobody is told. */
#define ATTR_PASSING (MSG_ATTR_UNSURE | MSG_ATTR_PUNCH_PENDING)

#define TARGET_MAX 255u /* longer ones are asked for each time */

int inode_cache_init(struct core *c)
{
    c->max_inodes =
        (uint32_t)MIN(c->o.memory_limit / 8 / (sizeof(struct core_inode) + 64), 1u << 20);
    return hmap_init(&c->inodes, 1024);
}

struct core_inode *inode_find(const struct core *c, uint64_t ino)
{
    struct hmap_node *n;

    for (n = hmap_first(&c->inodes, hash_near(ino, 0)); n; n = hmap_next(n)) {
        struct core_inode *i = container_of(n, struct core_inode, node);

        if (i->ino == ino)
            return i;
    }
    return NULL;
}

static void inode_free(struct core_inode *i)
{
    struct core *c = i->core;

    blocks_drop_all(i, true);
    c->names_forgotten |= i->kernel_has_more;
    if (!list_empty(&i->names)) {
        c->names_forgotten = true;
        names_drop_dir(i);
    }
    c->unknown_event = MAX(c->unknown_event, MAX(i->inval_event, i->cuts_event));
    c->unknown_event = MAX(c->unknown_event, MAX(i->attr_event, i->names_event));
    c->unknown_event = MAX(c->unknown_event, i->forgot_event);
    hmap_remove(&c->inodes, &i->node);
    list_remove(&i->lru);
    list_remove(&i->release.link);
    list_remove(&i->read.link);
    mem_free((void *)(uintptr_t)i->target.data);
    mem_free(i);
}

struct core_inode *inode_ref(struct core_inode *i)
{
    if (i->refs++ == 0) {
        list_remove(&i->lru);
        i->core->n_idle_inodes--;
    }
    return i;
}

static void evict_idle(struct core *c)
{
    while (c->n_idle_inodes > c->max_inodes) {
        struct core_inode *i = list_entry(c->inode_lru.next, struct core_inode, lru);

        c->n_idle_inodes--;
        inode_free(i);
    }
}

void inode_put(struct core_inode *i)
{
    struct core *c = i->core;

    ASSERT(i->refs > 0);
    if (--i->refs)
        return;
    list_push_back(&c->inode_lru, &i->lru);
    c->n_idle_inodes++;
    evict_idle(c);
}

void inodes_collect(struct core *c, struct list *ret_inodes)
{
    struct hmap_node *n, *next;
    size_t pos;

    list_init(ret_inodes);
    hmap_for_each (n, next, pos, &c->inodes) {
        struct core_inode *i = container_of(n, struct core_inode, node);

        if (!i->refs && !i->n_blocks)
            continue;
        if (list_empty(&i->walk)) /* else an outer walk has referenced it: the reference moves */
            inode_ref(i);
        list_remove(&i->walk);
        list_push_back(ret_inodes, &i->walk);
    }
}

struct core_inode *inodes_next(struct list *inodes)
{
    struct list *l = list_pop_front(inodes);

    return l ? list_entry(l, struct core_inode, walk) : NULL;
}

struct core_inode *inode_get(struct core *c, uint64_t ino)
{
    struct core_inode *i = inode_find(c, ino);

    if (i)
        return inode_ref(i);
    i = core_no_memory() ? NULL : mem_zalloc(sizeof *i);
    if (!i)
        return NULL;
    i->core = c;
    i->ino = ino;
    i->refs = 1;
    i->held_from = UINT64_MAX;
    list_init(&i->lru);
    list_init(&i->blocks);
    list_init(&i->dirty_link);
    list_init(&i->ios);
    list_init(&i->targets);
    list_init(&i->flushers);
    list_init(&i->files);
    list_init(&i->opens_held);
    list_init(&i->inval_waits);
    list_init(&i->gate_queue);
    list_init(&i->drain_queue);
    list_init(&i->append_queue);
    list_init(&i->straight);
    list_init(&i->straight_waiters);
    list_init(&i->recall_gate.link);
    list_init(&i->recall_wait.link);
    list_init(&i->walk);
    list_init(&i->names);
    list_init(&i->truncations);
    list_init(&i->release.link);
    list_init(&i->behind.waiters);
    list_init(&i->behind.reqs);
    list_init(&i->behind.inside);
    list_init(&i->behind.moves);
    list_init(&i->behind.error_link);
    list_init(&i->read.link);
    hmap_insert(&c->inodes, &i->node, hash_near(ino, 0));
    return i;
}

void inode_cache_fini(struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &c->inodes) {
        inode_free(container_of(n, struct core_inode, node));
    }
    hmap_fini(&c->inodes);
}

struct msg_time core_now(const struct core *c)
{
    int64_t ns = clock_wall_ns(reactor_clock(c->reactor)) + c->wall_offset_ns;

    return (struct msg_time){ns / (int64_t)NS_PER_S, (uint32_t)(ns % (int64_t)NS_PER_S)};
}

/* Of a truncation under way others may see the end before it is answered here. */
bool inode_attr_fresh(const struct core_inode *i)
{
    return i->attr_known && i->attr_kept && list_empty(&i->truncations) &&
           session_believed(i->core) && atime_trust_ns(i);
}

void inode_keep(struct core_inode *i, const struct answer *a, uint8_t flag,
                const struct msg_attr *attr)
{
    if ((a->kept & flag) && answer_current(i->core, a) && a->event >= i->inval_event &&
        a->event >= i->attr_event && attr->change >= i->attr.change &&
        !(attr->flags & ATTR_PASSING) && !i->behind.n) {
        i->attr_kept = true;
        i->attr_kept_ns = reactor_now_ns(i->core->reactor);
        i->behind.rules_known = i->behind.term != 0;
    }
}

static void keep_size(struct core_inode *i, const struct answer *a)
{
    if ((a->kept & RPC_FLAG_CUTS_TOLD) && answer_current(i->core, a) &&
        a->event >= i->inval_event && a->event >= i->cuts_event)
        i->cuts_told = true;
}

void inode_doubt_size(struct core_inode *i)
{
    i->cuts_told = false;
    i->cuts_event = ++i->core->events_seen;
}

void inode_expire(struct core *c, uint64_t ino)
{
    struct core_inode *i = inode_find(c, ino);

    if (!i)
        return;
    i->attr_kept = i->behind.rules_known = false;
    i->attr_event = ++c->events_seen;
}

void inode_merge_attr(struct core_inode *i, const struct msg_attr *a)
{
    struct msg_attr was = i->attr;
    bool ours = i->attr_known && i->lease == MSG_LEASE_WRITE;

    if (i->attr_known && a->change < was.change)
        return; /* overtaken by a newer answer */
    i->attr = *a;
    i->attr_known = true;
    i->server_size = a->size;
    if (ours && a->truncate_gen > was.truncate_gen &&
        !i->giving_up) { /* a cut of ours, whose answer is to come */
        i->known_size = a->size;
        i->acked_size = MIN(i->acked_size, a->size);
        i->wrote_at = a->mtime;
    } else if (ours) { /* the lease says that nobody else can have changed these */
        i->attr.size = MAX(was.size, a->size); /* a write from before the lease may have told it */
        i->attr.mtime = was.mtime;
        i->attr.ctime = time_later(was.ctime, a->ctime); /* writes that are not reported yet */
    }
    if (i->behind.moved && !S_ISDIR(a->mode)) /* not before what was answered ahead */
        i->attr.ctime = time_later(was.ctime, i->attr.ctime);
    if (was.ino)
        atime_merged(i, &was);
    if (i->attr_known && a->truncate_gen < was.truncate_gen)
        i->attr.truncate_gen = was.truncate_gen;
    if (i->lease != MSG_LEASE_NONE)
        i->data_change = a->change;
    if (S_ISREG(a->mode) && !i->need_grow)
        i->in_line = (a->flags & MSG_ATTR_INLINE) != 0;
    if (a->flags & ATTR_PASSING)
        i->attr_kept = false;
}

void inode_take_dir(const struct mds_op *op, const struct msg_inode_rep *rep, uint64_t dir)
{
    bool second = rep->has_dir2 && rep->dir2.ino == dir;
    const struct msg_attr *a = second                                ? &rep->dir2
                               : rep->has_dir && rep->dir.ino == dir ? &rep->dir
                                                                     : NULL;
    struct core_inode *i = inode_find(op->core, dir);
    struct answer answer = answer_of(op);

    if (i && a && i->attr_known && S_ISDIR(a->mode)) {
        inode_merge_attr(i, a);
        inode_keep(i, &answer, second ? RPC_FLAG_KEPT_DIR2 : RPC_FLAG_KEPT_DIR, a);
    } else {
        inode_expire(op->core, dir);
    }
}

/* A file made while its pool had no targets has no place for chunks; it can still be a small
 * one. */
bool inode_layout_ok(const struct msg_inode *m)
{
    return !S_ISREG(m->attr.mode) || layout_check(&m->layout) == 0 ||
           (m->layout.table_len == 0 && m->attr.flags & MSG_ATTR_INLINE);
}

static void learn_target(struct core_inode *i, const struct msg_bytes *target)
{
    char *copy = core_no_memory() ? NULL : mem_dup(target->data, target->len);

    if (copy)
        i->target = (struct msg_bytes){copy, target->len};
}

void inode_merge(struct core_inode *i, const struct msg_inode *m, bool with_layout)
{
    if (S_ISLNK(m->attr.mode) && m->has_data && m->data.len && m->data.len <= TARGET_MAX &&
        !i->target.data)
        learn_target(i, &m->data);
    /* a growth that is under way goes on where it has begun, and the server says what it thinks of
     * that */
    if (with_layout && S_ISREG(m->attr.mode) && inode_layout_ok(m) && !i->need_grow &&
        (!i->layout_known || m->layout.generation >= i->layout.generation)) {
        struct msg_layout l = m->layout;

        if (!l.table_len)
            l.chunk_bytes = CORE_LARGE_BYTES;
        if (i->layout_known && i->n_blocks &&
            stripe_block_bytes(&i->layout) != stripe_block_bytes(&l))
            blocks_drop_all(i, false);
        i->layout = l;
        i->layout_known = true;
    }
    inode_merge_attr(i, &m->attr);
}

int inode_why_not(const struct msg_inode *m)
{
    return m->attr.ino && inode_layout_ok(m) ? -ENOMEM : -AIFS_EPROTO;
}

struct core_inode *inode_from_reply(const struct mds_op *op, const struct msg_inode *m)
{
    struct answer a = answer_of(op);
    struct core_inode *i;

    if (!m->attr.ino || !inode_layout_ok(m))
        return NULL;
    i = inode_get(op->core, m->attr.ino);
    if (i) {
        inode_merge(i, m, true);
        inode_keep(i, &a, RPC_FLAG_KEPT_INODE, &m->attr);
        keep_size(i, &a);
    }
    return i;
}

void inode_answered(const struct mds_op *op)
{
    const struct msg_inode_rep *rep = op->call.rep;
    struct answer a = answer_of(op);

    inode_merge(op->inode, &rep->inode, true);
    keep_size(op->inode, &a);
}

void inode_entry(struct core_inode *i, struct core_entry *ret_entry)
{
    const struct core *c = i->core;

    i->told_change = i->attr.change;
    ret_entry->ino = i->ino;
    ret_entry->attr = i->attr;
    ret_entry->attr.atime = i->told_atime = atime_told(i);
    if (lease_only_to_grow(i))
        ret_entry->attr.size = i->server_size; /* no more than others are told: lease.c */
    ret_entry->attr_valid_ns =
        inode_attr_fresh(i) ? session_trust_ns(c, MIN(c->o.attr_ns, atime_trust_ns(i))) : 0;
    ret_entry->entry_valid_ns = 0; /* for who has learned the name to say */
}

uint64_t core_name_valid_ns(const struct core *c, bool believed)
{
    return believed ? session_trust_ns(c, c->o.entry_ns) : 0;
}

void inode_mark_dirty(struct core_inode *i)
{
    if (!i->dirty_since_ns)
        i->dirty_since_ns = reactor_now_ns(i->core->reactor);
    if (list_empty(&i->dirty_link)) {
        inode_ref(i);
        list_push_back(&i->core->dirty_inodes, &i->dirty_link);
    }
}

/* A new mtime each time, also where our idea of the server's clock is behind that of who wrote
 * before: a kernel elsewhere tells by it that its pages are old (docs/adr/0005-kernel-caches.md,
 * 3). */
void inode_touch_data(struct core_inode *i, uint64_t end)
{
    i->attr.size = MAX(i->attr.size, end);
    i->attr.mtime = i->attr.ctime = i->wrote_at =
        time_later(atime_write_time(i), time_next(i->attr.ctime));
    i->meta_seq++;
    inode_mark_dirty(i);
}

void inode_touch_ctime(struct core_inode *i)
{
    i->attr.ctime = time_later(core_now(i->core), time_next(i->attr.ctime));
    i->ctime_due = true;
    inode_mark_dirty(i);
}

void inode_set_error_at(struct core_inode *i, int status, const char *what,
                        const struct oss_target *t)
{
    struct where_text where, target;

    if (i->grow_trial) { /* its writer is told; the server has what was acknowledged */
        i->grow_trial->p.error = status;
        return;
    }
    i->error = status;
    i->error_seq++;
    LOG_ERROR("client", "%s of inode %llu%s%s failed: %s", what, (unsigned long long)i->ino,
              where_inode(i, &where), where_target(t, &target), err_text(status));
}

void inode_set_error(struct core_inode *i, int status, const char *what)
{
    inode_set_error_at(i, status, what, NULL);
}

int inode_error_of(const struct core_file *f)
{
    return f->error_seen == f->inode->error_seq ? 0 : f->inode->error;
}

int inode_take_error(struct core_file *f)
{
    int err = inode_error_of(f);

    f->error_seen = f->inode->error_seq;
    return err;
}

int inode_error_since(const struct core_req *q)
{
    return q->p.errors_before == q->p.inode->error_seq ? 0 : q->p.inode->error;
}

void core_forget(struct core *c, uint64_t ino)
{
    struct core_inode *i = inode_find(c, ino);

    if (i)
        i->listed_until_ns = 0;
    if (!i || i->refs)
        return;
    list_remove(&i->lru); /* first in line to be evicted */
    list_push_front(&c->inode_lru, &i->lru);
}
