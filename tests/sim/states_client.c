/* SPDX-License-Identifier: Apache-2.0 */
/* See states.h: a client. */
#include "client/core/core_int.h"
#include "proto/rpc/rpc_int.h"
#include "tests/sim/states.h"

static void look_at_file(const struct core_file *f)
{
    const struct core_inode *i = f->inode;

    hit_if(f->reopening, SIM_CLIENT_REOPENING);
    hit_if(f->released, SIM_CLIENT_RELEASED);
    hit_if(i->lease == MSG_LEASE_READ, SIM_CLIENT_LEASE_READ);
    hit_if(i->lease == MSG_LEASE_WRITE, SIM_CLIENT_LEASE_WRITE);
    hit_if(lease_only_to_grow(i), SIM_CLIENT_LEASE_GROWTH);
    hit_if(i->lease == MSG_LEASE_NONE && i->cuts_told, SIM_CLIENT_SIZE_TOLD);
    hit_if(i->lease == MSG_LEASE_NONE && !i->cuts_told, SIM_CLIENT_SIZE_DOUBTED);
    hit_if(i->recalling, SIM_CLIENT_RECALLED);
    hit_if(i->gate, SIM_CLIENT_GATE);
    hit_if(i->alone, SIM_CLIENT_ALONE);
    hit_if(i->in_line, SIM_CLIENT_INLINE);
    hit_if(i->need_grow, SIM_CLIENT_GROWS);
    hit_list(&i->truncations, SIM_CLIENT_TRUNCATES);
    hit_if(i->held_from != UINT64_MAX, SIM_CLIENT_HELD);
    hit_if(i->meta_busy, SIM_CLIENT_REPORTS);
    hit_list(&i->ios, SIM_CLIENT_WRITES_BACK);
    hit_list(&i->targets, SIM_CLIENT_UNCOMMITTED);
    hit_list(&i->straight, SIM_CLIENT_STRAIGHT);
    hit_list(&i->straight_waiters, SIM_CLIENT_STRAIGHT_WAITS);
    hit_if(!list_empty(&i->straight) && i->recalling, SIM_CLIENT_STRAIGHT_RECALLED);
    hit_if(i->attr.nlink == 0, SIM_CLIENT_ORPHAN);
    hit_if(f->locks_lost, SIM_CLIENT_LOCKS_LOST);
}

static void look_at_inodes(const struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &c->inodes) {
        const struct core_inode *i = container_of(n, const struct core_inode, node);

        hit_list(&i->behind.waiters, SIM_CLIENT_BEHIND);
        hit_if(i->behind.n && !i->behind.term && !list_empty(&c->invalidations),
               SIM_CLIENT_BEHIND_TOLD);
        hit_list(&i->behind.moves, SIM_CLIENT_MOVES_WAIT);
    }
}

void states_look_at_client(const struct core *c)
{
    const struct core_session *s = &c->session;
    struct list *l;

    hit_if(s->state == SESSION_OPENING, SIM_CLIENT_OPENING);
    hit_if(s->state == SESSION_RECLAIMING, SIM_CLIENT_RECLAIMING);
    hit_if(s->state == SESSION_READY && !session_believed(c), SIM_CLIENT_UNBELIEVED);
    hit_list(&s->session_waiters, SIM_CLIENT_SESSION_WAITS);
    hit_list(&s->doubters, SIM_CLIENT_DOUBTERS);
    hit_list(&c->punch_waiters, SIM_CLIENT_PUNCH_WAITS);
    hit_list(&c->lock_waiters, SIM_CLIENT_LOCK_WAITS);
    hit_if(c->commits_busy, SIM_CLIENT_COMMITS);
    hit_if(s->unsettled, SIM_CLIENT_UNSETTLED);
    if (c->behind.n)
        look_at_inodes(c);
    hit_if(c->stats.set_ahead, SIM_SET_AHEAD);
    list_for_each (l, &c->ios)
        hit_if(list_entry(l, const struct oss_io, all)->attempt, SIM_CLIENT_RETRIES_OSS);
    list_for_each (l, &c->files)
        look_at_file(list_entry(l, const struct core_file, all));
}

unsigned states_changes(const struct core *c)
{
    const struct list *l;
    unsigned n = 0;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry((struct list *)l, const struct mds_op, link);

        if (op->slot >= 0 && op->sent)
            n += op->call.op == RPC_OP_BATCH ? op->msg.batch.n_items : 1;
    }
    return n;
}

uint64_t states_removal(const struct core *c, bool made, uint64_t dir, char name)
{
    struct msg_bytes n = {&name, 1};
    struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry(l, const struct mds_op, link);
        const struct msg_name_req *m = &op->msg.name;

        if (made && creating_is(op, dir, &n))
            return op->n1;
        if (!made && op->ahead && (op->call.op == RPC_OP_UNLINK || op->call.op == RPC_OP_RMDIR) &&
            m->parent == dir && m->name.len == 1 && *(const char *)m->name.data == name)
            return op->n1;
    }
    return 0;
}

static bool is_name(const struct msg_bytes *b, char name)
{
    return b->len == 1 && *(const char *)b->data == name;
}

uint64_t states_rename(const struct core *c, uint64_t dir, char name, char name2, uint64_t which,
                       uint64_t *ret_ino, uint64_t *ret_replaced)
{
    struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry(l, const struct mds_op, link);
        const struct msg_rename_req *m = &op->msg.rename;
        const uint64_t number = (uintptr_t)op ^ m->when_ns; /* many may be begun at one time */

        if (!op->ahead || op->call.op != RPC_OP_RENAME || m->parent != dir ||
            !is_name(&m->name, name) || !is_name(&m->new_name, name2) || (which && which != number))
            continue;
        *ret_ino = op->n1;
        *ret_replaced = op->n2;
        return number;
    }
    return 0;
}

bool states_sets(const struct core *c, uint64_t dir)
{
    const struct core_inode *i = inode_find((struct core *)(uintptr_t)c, dir);

    return i && i->behind.setting;
}

uint32_t states_mode(const struct core *c, uint64_t ino)
{
    const struct core_inode *i = inode_find((struct core *)(uintptr_t)c, ino);

    return i && i->attr_known ? i->attr.mode & 07777 : 0;
}

bool states_makes(const struct core *c, uint64_t ino)
{
    const struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry((struct list *)l, const struct mds_op, link);

        if (creating_makes(op) && op->n1 == ino)
            return true;
    }
    return false;
}

uint64_t states_reports(const struct core *c)
{
    const struct list *l;

    list_for_each (l, &c->ops) {
        const struct mds_op *op = list_entry((struct list *)l, const struct mds_op, link);

        if (op->sent && op->call.op == RPC_OP_SIZE)
            return op->msg.size.ino;
    }
    return 0;
}

const struct core_req *states_stores(const struct core *c, uint32_t *ret_target)
{
    struct list *l;

    list_for_each (l, &c->ios) {
        const struct oss_io *io = list_entry(l, const struct oss_io, all);

        if (io->kind != OSS_IO_WRITE || !io->once_id || !io->sent || !io->q || !io->target)
            continue;
        *ret_target = io->target->id;
        return io->q;
    }
    return NULL;
}

uint32_t states_removals(const struct core *c)
{
    return c->behind.n;
}

uint64_t states_believed(const struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &c->inodes) {
        const struct core_inode *i = container_of(n, const struct core_inode, node);

        if (inode_attr_fresh(i) && !S_ISLNK(i->attr.mode)) /* what the workload does to files */
            return i->ino;
    }
    return 0;
}

uint64_t states_session(const struct core *c)
{
    return c->session.id;
}

const struct uuid *states_client_id(const struct core *c)
{
    return &c->client;
}

bool states_believes(const struct core *c)
{
    return session_believed(c);
}

uint64_t states_dirty_inode(const struct core *c)
{
    struct list *l;

    list_for_each (l, &c->dirty_inodes)
        if (list_entry(l, const struct core_inode, dirty_link)->dirty_bytes)
            return list_entry(l, const struct core_inode, dirty_link)->ino;
    return 0;
}

uint64_t states_dirty_chunks(const struct core *c)
{
    struct list *l;

    list_for_each (l, &c->dirty_inodes) {
        const struct core_inode *i = list_entry(l, const struct core_inode, dirty_link);

        if (i->dirty_bytes && (!i->in_line || i->need_grow))
            return i->ino;
    }
    return 0;
}

void states_each_error(const struct core *c, void (*fn)(void *arg, uint64_t ino, uint32_t errors),
                       void *arg)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &c->inodes) {
        const struct core_inode *i = container_of(n, const struct core_inode, node);

        fn(arg, i->ino, i->error_seq);
    }
}

bool states_is_lost(const struct core *c, uint64_t ino, uint64_t offset)
{
    const struct core_inode *i = inode_find((struct core *)(uintptr_t)c, ino);
    const struct map_chain *chain;

    if (!i || !c->map || !i->layout.table_len)
        return false;
    chain = layout_chain(&i->layout, c->map, offset / i->layout.chunk_bytes);
    return chain && oss_given_up(c, chain->targets[0]);
}
