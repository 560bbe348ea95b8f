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
 * Failure: a page that does not come, or of which nothing may be kept, is the last one of its
 * directory while this client remembers it. Nobody waits for a page.
 */
#include "client/core/core_int.h"

#define PRELIST_FIRST  4u
#define PRELIST_NEXT   32u
#define PRELIST_ROUNDS 8u /* each round needs twice as much reason as the one before */
#define PRELIST_BYTES  (32u * KIB)
#define PRELISTS_MAX   8u /* at once */

/* The number of entries that may be believed, or an error of the page. */
static int take_page(struct mds_op *op)
{
    struct prelist *p = &op->inode->prelist;
    struct core_req walk = {.p = {.core = op->core,
                                  .ino = op->inode->ino,
                                  .offset = p->cookie,
                                  .flags = DIR_PLUS | DIR_QUIET}};
    struct core_dirent e;
    int rc, kept = 0;

    dir_page_take(&walk, op);
    while ((rc = core_dirent_next(&walk, &e)) > 0) {
        kept += e.has_entry && e.entry.entry_valid_ns;
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
    struct prelist *p = &op->inode->prelist;

    p->busy = false;
    op->core->n_prelists--;
    if (status || take_page(op) <= 0)
        p->useless = true;
}

static void fetch(struct core_inode *dir, const struct msg_cred *cred)
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
        .cookie = dir->prelist.cookie,
        .max_bytes = PRELIST_BYTES,
        .plus = true,
    };
    mds_op_cred(op, &op->msg.readdir.cred, cred);
    dir->prelist.busy = true;
    c->n_prelists++;
    c->stats.prelists++;
    mds_op_start(op);
}

void prelist_missed(struct core *c, uint64_t ino, const struct msg_cred *cred)
{
    struct core_inode *dir = inode_find(c, ino);
    struct prelist *p = dir ? &dir->prelist : NULL;

    if (!p || dir->complete || p->busy || p->useless || c->state != CORE_MOUNTED)
        return;
    p->missed = (uint16_t)MIN(p->missed + 1u, (unsigned)UINT16_MAX);
    if (p->missed < (p->cookie ? PRELIST_NEXT : PRELIST_FIRST << p->rounds) ||
        c->n_prelists == PRELISTS_MAX)
        return;
    p->missed = 0;
    fetch(dir, cred);
}
