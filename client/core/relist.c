/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that is listed twice. rm(1) looks whether each is empty before it lists it, so each
 * would be asked for twice, and waited for twice.
 *
 * Happy path: the page that holds all of a small directory is kept, the latest one only, when it
 * has said that this client is alone with the directory (behind.h): nobody else changes anything
 * there before we have been told. The same caller gets it again as long as that holds, we have
 * asked for no change ourselves (removals that are answered ahead in other directories aside), and
 * it is not older than RELIST_NS. The copy is walked like the page: what its entries say is
 * compared with what is known by then.
 *
 * Failure: without memory nothing is kept, and the server is asked.
 */
#include "client/core/core_int.h"

#define RELIST_BYTES (16u * KIB)
#define RELIST_NS    (200 * NS_PER_MS)

struct relist {
    uint64_t ino; /* 0: none */
    uint64_t term, parent, since_ns;
    struct answer answer;
    uint32_t uid, gid, len;
    uint8_t data[RELIST_BYTES];
};

void relist_keep(const struct core_req *q, const struct answer *a)
{
    struct core *c = q->p.core;
    const struct core_inode *dir = inode_find(c, q->p.ino);
    struct relist *r = c->behind.relist;

    if (!dir || !dir->behind.own || !(a->kept & RPC_FLAG_KEPT_DIR) || q->p.offset ||
        !q->out.dir.eof || q->p.len > RELIST_BYTES || q->cred.n_groups || q->cred.caps ||
        a->event < c->behind.relist_event) /* a change has overtaken it */
        return;
    if (!r)
        r = c->behind.relist = mem_alloc(sizeof *r);
    if (!r)
        return;
    r->ino = dir->ino;
    r->term = dir->behind.term;
    r->parent = q->out.dir.parent;
    r->since_ns = reactor_now_ns(c->reactor);
    r->answer = *a;
    r->uid = q->cred.uid;
    r->gid = q->cred.gid;
    r->len = q->p.len;
    memcpy(r->data, q->p.pins[0]->data, r->len);
}

static bool is_good(const struct relist *r, const struct core_req *q)
{
    struct core *c = q->p.core;
    const struct core_inode *dir = inode_find(c, q->p.ino);

    return r && r->ino == q->p.ino && !q->p.offset && q->cred.uid == r->uid &&
           q->cred.gid == r->gid && !q->cred.n_groups && !q->cred.caps && r->len <= q->p.len &&
           dir && dir->behind.own && dir->behind.term == r->term && session_believed(c) &&
           answer_current(c, &r->answer) && r->answer.event >= dir->names_event &&
           reactor_now_ns(c->reactor) - r->since_ns <= RELIST_NS;
}

bool relist_take(struct core_req *q, struct buf *b)
{
    struct core *c = q->p.core;
    const struct relist *r = c->behind.relist;

    if (!is_good(r, q))
        return false;
    memcpy(b->data, r->data, r->len);
    dir_page_set(q, b, r->len, &r->answer);
    q->out.dir.parent = r->parent;
    q->out.dir.eof = true;
    c->stats.relists++;
    return true;
}

void relist_forget(struct core *c, uint64_t dir)
{
    c->behind.relist_event = ++c->events_seen;
    if (c->behind.relist && (!dir || c->behind.relist->ino == dir))
        c->behind.relist->ino = 0;
}

void relist_fini(struct core *c)
{
    mem_free(c->behind.relist);
    c->behind.relist = NULL;
}
