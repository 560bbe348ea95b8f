/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server says is about to change: an inode's attributes, a name, all names of a directory.
 *
 * Happy path: what is cached here is dropped, the kernel is told, and when it has dropped it too
 * the server gets its answer; only then does the change happen.
 *
 * The kernel takes the directory's lock to forget a name, and holds that lock during every change
 * of our own in it, which may itself be waiting for the server. So the answer does not wait for the
 * kernel while such a change is under way, nor longer than INVALIDATE_WAIT_NS, because the
 * notification may stand behind one that does. The kernel is told then that all names are old,
 * which takes no lock, if it may have been promised this one; an older kernel cannot be told
 * (docs/adr: the window that remains).
 *
 * Removals that were answered ahead in or of the inode are another matter: until they have been
 * executed there is no answer, whatever else is to be said (behind.h).
 *
 * Failure: memory short: answered at once, the kernel is told to ask again for everything.
 */
#include "client/core/core_int.h"

#define INVALIDATE_WAIT_NS (100 * NS_PER_MS)
#define INVALIDATE_NAMES   256u  /* told one by one; more: all of them */
#define INVALIDATE_LOOKS   1024u /* names of a directory, for the one of an inode */

struct invalidation {
    struct list link;    /* core.invalidations */
    struct rpc_req *req; /* NULL: answered */
    uint64_t ino, since_ns;
    uint64_t dir;  /* whose lock the kernel takes */
    unsigned left; /* notifications the kernel has not confirmed */
    bool believed; /* it may have been promised what they are about */
    bool due;      /* to be answered when the removals under way have been */
};

static void kernel_forgets_names(struct core *c)
{
    c->told_void++;
    if (c->o.events.inval_all)
        c->o.events.inval_all(c->o.events.arg);
}

static bool removals_under_way(const struct core *c, uint64_t ino)
{
    const struct core_inode *i = c->behind.n ? inode_find(c, ino) : NULL;

    return i && behind_busy(i);
}

static void answer(struct core *c, struct invalidation *v)
{
    struct rpc_req *req = v->req;

    v->due = req && removals_under_way(c, v->ino);
    if (v->due)
        return;
    v->req = NULL;
    if (req)
        rpc_reply(req, 0, &(struct msg_empty){0});
}

static void answer_early(struct core *c, struct invalidation *v)
{
    if (v->believed && v->left)
        kernel_forgets_names(c);
    v->believed = false;
    answer(c, v);
}

static void end_if_over(struct invalidation *v)
{
    if (v->left || v->req)
        return;
    list_remove(&v->link);
    mem_free(v);
}

static void put(struct core *c, struct invalidation *v)
{
    if (--v->left)
        return;
    answer(c, v);
    end_if_over(v);
}

void invalidate_drained(struct core *c, uint64_t ino)
{
    struct list *l, *next;

    list_for_each_safe (l, next, &c->invalidations) {
        struct invalidation *v = list_entry(l, struct invalidation, link);

        if (v->ino != ino || !v->due)
            continue;
        answer(c, v);
        end_if_over(v);
    }
    list_for_each_safe (l, next, &c->behind.invalidates) {
        struct rpc_req *req = list_entry(l, struct rpc_req, link);

        if (((const struct msg_invalidate_req *)req->msg)->ino != ino)
            continue;
        list_remove(&req->link);
        rpc_reply(req, 0, &(struct msg_empty){0});
    }
}

void core_inval_entry_done(struct core *c, void *token)
{
    if (token)
        put(c, token);
}

static void kernel_forgets_name(struct core *c, struct invalidation *v, const char *name,
                                uint32_t len)
{
    v->left++;
    if (c->o.events.inval_entry(c->o.events.arg, v->dir, name, len, v))
        return;
    v->left--;
    kernel_forgets_names(c);
}

/* Names that were cached here and are not any more may still be cached by the kernel. */
static void forget_dir(struct core *c, struct core_inode *dir, struct invalidation *v)
{
    struct list *l;
    unsigned n = 0;
    bool has_more = !dir || c->names_forgotten || dir->kernel_has_more;

    if (!has_more)
        list_for_each (l, &dir->names)
            n++;
    if (has_more || n > INVALIDATE_NAMES) {
        kernel_forgets_names(c);
    } else if (c->o.events.inval_entry) {
        list_for_each (l, &dir->names) {
            const struct name_entry *e = list_entry(l, struct name_entry, of_dir);

            kernel_forgets_name(c, v, e->name, e->len);
        }
    }
    if (dir) {
        names_drop_dir(dir);
        dir->kernel_has_more = false;
    }
}

static bool is_changing(const struct core *c, uint64_t dir)
{
    struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry(l, const struct mds_op, link);

        if (op->ahead) /* nobody in the kernel waits for it */
            continue;
        if (op->dirs[0] == dir || op->dirs[1] == dir)
            return true;
    }
    return false;
}

void invalidate_begin_change(struct core *c, uint64_t dir)
{
    struct list *l;

    list_for_each (l, &c->invalidations) {
        struct invalidation *v = list_entry(l, struct invalidation, link);

        if (v->dir == dir)
            answer_early(c, v);
    }
}

void invalidate_tick(struct core *c, uint64_t now)
{
    struct list *l;

    list_for_each (l, &c->invalidations) {
        struct invalidation *v = list_entry(l, struct invalidation, link);

        if (now - v->since_ns >= INVALIDATE_WAIT_NS)
            answer_early(c, v);
    }
}

/* May the kernel go on using what is to be forgotten, without asking here? */
static bool kernel_believes(struct core *c, const struct core_inode *dir,
                            const struct msg_invalidate_req *m)
{
    return m->whole || !dir || dir->kernel_has_more || c->names_forgotten || !session_believed(c) ||
           names_get(c, m->ino, m->name.data, m->name.len);
}

/* The name of an inode that has no other. */
static const struct name_entry *only_name(struct core *c, const struct core_inode *i)
{
    bool has_one = i && i->attr_known && (S_ISDIR(i->attr.mode) || i->attr.nlink == 1);
    const struct core_inode *dir = has_one && i->parent ? inode_find(c, i->parent) : NULL;
    unsigned left = INVALIDATE_LOOKS;
    const struct list *l;

    if (!dir)
        return NULL;
    list_for_each (l, &dir->names) {
        const struct name_entry *e = list_entry(l, const struct name_entry, of_dir);

        if (e->ino == i->ino)
            return e;
        if (!--left)
            break;
    }
    return NULL;
}

/* The kernel asks for who owns an inode when it looks a name up, not when it checks. With all names
 * goes what is mounted on one of them, so it is told of the one that matters, where it is known.
 * Kernels that believe a name for a second only unmount what is on one that they are told of. */
static void owner_changes(struct core *c, struct core_inode *i, struct invalidation *v,
                          const struct msg_invalidate_req *m)
{
    bool told = v && !m->whole && !m->name.len && !c->names_limited;
    const struct name_entry *e = told ? only_name(c, i) : NULL;

    if (!e || !c->o.events.inval_entry) {
        kernel_forgets_names(c);
        return;
    }
    v->dir = e->dir->ino;
    v->believed = true;
    kernel_forgets_name(c, v, e->name, e->len);
}

static void drop_own(struct core *c, struct core_inode *i, const struct msg_invalidate_req *m)
{
    uint64_t event = ++c->events_seen;

    if (m->name.len)
        names_drop(c, m->ino, m->name.data, m->name.len, true);
    if (!i) {
        c->unknown_event = event;
        return;
    }
    i->attr_kept = i->cuts_told = false;
    i->listed_until_ns = 0;
    i->inval_event = event;
    behind_end(i);
    newdir_end_all(c); /* one of them may be in it */
    behind_urge(c);
}

static void handle_invalidate(struct rpc_req *req)
{
    struct core *c = req->handler_arg;
    struct msg_invalidate_req m = *(const struct msg_invalidate_req *)req->msg;
    struct core_inode *i = inode_find(c, m.ino);
    struct invalidation *v = FAULT("client.invalidate.memory") ? NULL : mem_zalloc(sizeof *v);

    if (v)
        v->believed = kernel_believes(c, i, &m);
    c->stats.invalidations++;
    relist_forget(c, 0);
    drop_own(c, i, &m);
    if (c->o.events.inval_attr)
        c->o.events.inval_attr(c->o.events.arg, m.ino);
    if (!v) {
        if (i && m.whole)
            names_drop_dir(i);
        kernel_forgets_names(c);
        if (removals_under_way(c, m.ino))
            list_push_back(&c->behind.invalidates, &req->link);
        else
            rpc_reply(req, 0, &(struct msg_empty){0});
        return;
    }
    v->req = req;
    v->ino = v->dir = m.ino;
    v->since_ns = reactor_now_ns(c->reactor);
    v->left = 1;
    list_push_back(&c->invalidations, &v->link);
    if (m.owner)
        owner_changes(c, i, v, &m);
    if (m.whole)
        forget_dir(c, i, v);
    else if (m.name.len && c->o.events.inval_entry)
        kernel_forgets_name(c, v, m.name.data, m.name.len);
    if (v->left > 1 && is_changing(c, v->dir))
        answer_early(c, v);
    put(c, v);
}

void invalidate_all(struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    c->unknown_event = ++c->events_seen;
    relist_forget(c, 0);
    names_clear(c);
    kernel_forgets_names(c);
    c->names_forgotten = false;
    hmap_for_each (n, next, pos, &c->inodes) {
        struct core_inode *i = container_of(n, struct core_inode, node);

        if (i->attr_kept && c->o.events.inval_attr)
            c->o.events.inval_attr(c->o.events.arg, i->ino);
        i->attr_kept = i->cuts_told = i->complete = i->kernel_has_more =
            false; /* complete: names_clear() knows no empty ones */
        behind_end(i);
    }
}

void invalidate_doubt_dir(struct core *c, struct core_inode *dir)
{
    names_drop_dir(dir);
    dir->names_event = ++c->events_seen;
    kernel_forgets_names(c);
}

void invalidate_handlers(struct core *c)
{
    rpc_node_handle(c->node, RPC_OP_INVALIDATE, handle_invalidate, c);
}

/* The kernel confirms nothing any more. */
void invalidate_fini(struct core *c)
{
    while (!list_empty(&c->invalidations)) {
        struct invalidation *v = list_entry(c->invalidations.next, struct invalidation, link);

        v->left = 1;
        put(c, v);
    }
}
