/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are about to be looked up. Who asks for some names of a directory will ask for more of
 * them: a loader of a data set, a compiler, an interpreter that imports.
 *
 * Happy path: when PRELIST_FIRST names of a directory had to be asked for, a page of it comes in
 * the background, with attributes, into the caches of names and inodes; after each PRELIST_NEXT
 * more the page behind it. A directory of some hundred files is known after one call, and names
 * that do not exist are then known as well. In a large directory of which few names are wanted the
 * pages cost about as much as the lookups that paid for them.
 *
 * Who removes names gets pages that also tell what this client is alone with (behind.h): after the
 * first removals in a directory that had to wait for the server (after one, while such pages of
 * other directories are being used), and then, while what has come is used up, the pages behind.
 *
 * Failure: a page that does not come, or of which nothing may be kept, is the last one of its
 * directory while this client remembers it. Nobody waits for a page.
 */
#include "client/core/core_int.h"

#define PRELIST_FIRST  4u
#define PRELIST_NEXT   32u
#define PRELIST_ROUNDS 8u /* each round needs twice as much reason as the one before */
#define PRELIST_BYTES  (32u * KIB)
#define PRELISTS_MAX   8u /* at once */
#define WISHED_FIRST   2u
#define WISHED_NEXT    8u
#define WISHED_COSTS   4u   /* removals answered ahead that make up for a page */
#define WISHED_PAID    64u  /* no more of them are remembered */
#define WISHED_LEFT    128u /* with fewer of which it is known, the next page is asked for */

static struct prelist *list_of(const struct mds_op *op)
{
    return op->msg.readdir.alone ? &op->inode->wished : &op->inode->prelist;
}

static bool is_of_use(const struct mds_op *op, const struct core_dirent *e)
{
    const struct core_inode *i;

    if (!op->msg.readdir.alone)
        return e->has_entry && e->entry.entry_valid_ns;
    i = e->has_entry ? inode_find(op->core, e->ino) : NULL;
    return i && behind_alone(op->inode, i);
}

/* The number of entries that are of use, or an error of the page. */
static int take_page(struct mds_op *op)
{
    struct prelist *p = list_of(op);
    struct core_req walk = {.p = {.core = op->core,
                                  .ino = op->inode->ino,
                                  .offset = p->cookie,
                                  .flags = DIR_PLUS | DIR_QUIET}};
    struct core_dirent e;
    int rc, kept = 0;

    dir_page_take(&walk, op);
    while ((rc = core_dirent_next(&walk, &e)) > 0) {
        kept += is_of_use(op, &e);
        p->cookie = e.cookie;
    }
    core_readdir_done(&walk);
    if (walk.out.dir.eof) {
        p->cookie = 0;
        p->rounds = (uint8_t)MIN(p->rounds + 1u, PRELIST_ROUNDS);
    }
    return rc < 0 ? rc : kept;
}

static void page_here(struct mds_op *op, int status)
{
    struct prelist *p = list_of(op);
    int n;

    p->busy = false;
    op->core->n_prelists--;
    n = status ? status : take_page(op);
    if (n > 0)
        p->left = (uint16_t)MIN(p->left + (unsigned)n, (unsigned)UINT16_MAX);
    else if (n == 0 && op->msg.readdir.alone) /* others are there, and may go */
        p->rounds = (uint8_t)MIN(p->rounds + 1u, PRELIST_ROUNDS);
    else
        p->useless = true;
}

static void fetch(struct core_inode *dir, struct prelist *p, const struct msg_cred *cred)
{
    struct core *c = dir->core;
    struct buf *b = mem_get(c, PRELIST_BYTES, MEM_GROW);
    struct mds_op *op = b ? mds_op_new(c, RPC_OP_READDIR, NULL, page_here) : NULL;

    if (!op) {
        if (b)
            mem_put(c, b);
        return;
    }
    op->inode = inode_ref(dir);
    op->buf = b;
    op->iov = (struct iovec){b->data, b->size_bytes};
    op->call.bulk_in = &op->iov;
    op->call.n_bulk_in = 1;
    op->msg.readdir = (struct msg_readdir_req){
        .ino = dir->ino,
        .cookie = p->cookie,
        .max_bytes = PRELIST_BYTES,
        .plus = true,
        .alone = p == &dir->wished,
    };
    mds_op_cred(op, &op->msg.readdir.cred, cred);
    if (p == &dir->wished)
        c->behind.paid -= MIN(c->behind.paid, WISHED_COSTS);
    p->missed = 0;
    p->busy = true;
    c->n_prelists++;
    c->stats.prelists++;
    mds_op_start(op);
}

void prelist_missed(struct core *c, uint64_t ino, const struct msg_cred *cred)
{
    struct core_inode *dir = inode_find(c, ino);
    struct prelist *p = dir ? &dir->prelist : NULL;

    if (dir && behind_wishes(c, cred)) {
        prelist_removed(dir, cred, false); /* it is looked up to be removed */
        return;
    }
    if (!p || dir->complete || p->busy || p->useless || c->state != CORE_MOUNTED)
        return;
    p->missed = (uint16_t)MIN(p->missed + 1u, (unsigned)UINT16_MAX);
    if (p->missed < (p->cookie ? PRELIST_NEXT : PRELIST_FIRST << p->rounds) ||
        c->n_prelists == PRELISTS_MAX)
        return;
    fetch(dir, p, cred);
}

void prelist_removed(struct core_inode *dir, const struct msg_cred *cred, bool ahead)
{
    struct core *c = dir->core;
    struct prelist *p = &dir->wished;
    unsigned first = c->behind.paid ? 1 : WISHED_FIRST;
    bool due;

    if (ahead && p->left) {
        p->left--;
        c->behind.paid = MIN(c->behind.paid + 1, WISHED_PAID);
    }
    if (p->busy || p->useless || c->state != CORE_MOUNTED || !behind_wishes(c, cred))
        return;
    if (!ahead)
        p->missed = (uint16_t)MIN(p->missed + 1u, (unsigned)UINT16_MAX);
    due = p->missed >= (p->cookie ? WISHED_NEXT : first << p->rounds) ||
          (p->cookie && p->left < WISHED_LEFT && p->rounds == 0);
    if (due && c->n_prelists < PRELISTS_MAX)
        fetch(dir, p, cred);
}
