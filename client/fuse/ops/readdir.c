/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR and READDIRPLUS. The kernel asks for a few KiB at a time; one page from the server is
 * much larger and stays with the open directory until the kernel has taken all of it in order. A
 * seek or rewinddir(3) drops it. Cookies: the server's are 48 bits of hash and 16 of ordinal; the
 * kernel's must be positive, so the ordinal is squeezed to 15 bits (never more than a few in use).
 * "." and ".." have the cookies 1 and 2.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

#define PAGE_BYTES    (256u * KIB)
#define COOKIE_DOT    1u
#define COOKIE_DOTDOT 2u

static uint64_t to_kernel(uint64_t cookie)
{
    return (cookie >> 16) << 15 | (cookie & 0x7fffu);
}

static uint64_t to_server(uint64_t cookie)
{
    return cookie <= COOKIE_DOTDOT ? 0 : (cookie >> 15) << 16 | (cookie & 0x7fffu);
}

static void page_drop(struct fs_dir *d)
{
    if (d->has_page)
        core_readdir_done(&d->page);
    d->has_page = d->has_next = false;
}

/* False when the reply is full: e stays for the next one. */
static bool add_entry(struct channel_req *q, const struct core_dirent *e)
{
    char name[MSG_NAME_MAX + 1];
    struct channel_entry entry = {&e->entry.attr, e->entry.entry_valid_ns, e->entry.attr_valid_ns};

    memcpy(name, e->name, e->name_len);
    name[e->name_len] = '\0';
    return channel_dir_add(q, name, e->ino, e->type, to_kernel(e->cookie),
                           q->io.plus && e->has_entry ? &entry : NULL);
}

static bool add_dots(struct channel_req *q, const struct fs_dir *d)
{
    if (q->io.offset < COOKIE_DOT &&
        !channel_dir_add(q, ".", fs_ino(fs_of(q), q->node), DT_DIR, COOKIE_DOT, NULL))
        return false;
    return q->io.offset >= COOKIE_DOTDOT ||
           channel_dir_add(q, "..", d->parent ? d->parent : fs_of(q)->root, DT_DIR, COOKIE_DOTDOT,
                           NULL);
}

/* Moves entries from the page into the reply. 1: reply full, 0: page used up, or -errno. */
static int fill(struct channel_req *q, struct fs_dir *d)
{
    int rc;

    for (;;) {
        if (!d->has_next) {
            rc = core_dirent_next(&d->page, &d->next);
            if (rc <= 0)
                return rc;
            d->has_next = true;
        }
        if (!add_entry(q, &d->next))
            return 1;
        d->next_cookie = to_kernel(d->next.cookie);
        d->has_next = false;
    }
}

static void reply_from_page(struct channel_req *q, struct fs_dir *d)
{
    int rc;

    channel_dir_begin(q);
    if (q->io.offset < COOKIE_DOTDOT) {
        add_dots(q, d); /* a reply has room for these two at least */
        d->next_cookie = COOKIE_DOTDOT;
    }
    rc = fill(q, d);
    if (rc < 0) {
        page_drop(d);
        channel_reply_err(q, rc);
        return;
    }
    channel_reply_dir(q);
    if (rc == 0 && !d->page_eof)
        page_drop(d); /* the next READDIR asks for more; at the end the empty page says so */
}

/* The page outlives the request, so it is asked for with a core request of its own. */
static void on_page(struct core_req *page, int status)
{
    struct op *o = page->arg;

    o->req.done(&o->req, status);
}

static void run(struct op *o)
{
    const struct channel_req *q = o->q;
    struct fs_dir *d = fs_dir_of(q->io.fh);

    d->page.cred = o->req.cred;
    d->page.done = on_page;
    d->page.arg = o;
    o->waiting = &d->page;
    core_readdir(o->fs->core, &d->page, fs_ino(o->fs, q->node), to_server(q->io.offset), PAGE_BYTES,
                 q->io.plus);
}

static void finish(struct op *o, int status)
{
    struct fs_dir *d = fs_dir_of(o->q->io.fh);
    struct channel_req *q;

    d->busy = false;
    if (status != 0) {
        op_fail_inode(o, status);
        return;
    }
    d->has_page = true;
    d->page_eof = d->page.out.dir.eof;
    d->parent = d->page.out.dir.parent;
    q = op_end(o, 0);
    reply_from_page(q, d);
}

void op_readdir(struct channel_req *q)
{
    struct fs_dir *d = fs_dir_of(q->io.fh);

    if (d->busy) { /* the kernel reads a directory one request at a time */
        channel_reply_err(q, -EBUSY);
        return;
    }
    if (d->has_page && q->io.offset == d->next_cookie) {
        reply_from_page(q, d);
        return;
    }
    page_drop(d);
    d->next_cookie = q->io.offset;
    d->busy = true;
    op_start(q, run, finish, false);
}
