/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR and READDIRPLUS. The kernel asks for a few KiB at a time; one page from the server is
 * much larger and stays with the open directory until the kernel has taken all of it in order.
 * While it does, the page behind it is already under way. A seek or rewinddir(3) drops both.
 * Cookies: the server's are 48 bits of hash and 16 of ordinal; the kernel's must be positive, so
 * the ordinal is squeezed to 15 bits (never more than a few in use). "." and ".." have the cookies
 * 1 and 2.
 *
 * Failure modes: a page asked for in advance that fails, or has become old, is forgotten, and asked
 * for again when the kernel wants it.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

#define PAGE_BYTES    (256u * KIB)
#define AHEAD_NS      (200 * NS_PER_MS) /* older pages are not begun */
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

static struct fs_dir_page *current_page(struct fs_dir *d)
{
    return &d->pages[d->current];
}

static struct fs_dir_page *other_page(struct fs_dir *d)
{
    return &d->pages[!d->current];
}

static void page_drop(struct fs_dir_page *p)
{
    if (p->state == FS_PAGE_ASKED) {
        p->state = FS_PAGE_STALE;
    } else if (p->state == FS_PAGE_HERE) {
        core_readdir_done(&p->req);
        p->state = FS_PAGE_NONE;
    }
}

static void dir_free_unused(struct fs_dir *d)
{
    if (d->closed && !d->asked)
        mem_free(d);
}

void fs_dir_free(struct fs_dir *d)
{
    d->closed = true;
    d->asked++; /* not before the end of this function */
    for (unsigned i = 0; i < ARRAY_LEN(d->pages); i++) {
        page_drop(&d->pages[i]);
        if (d->pages[i].state == FS_PAGE_STALE)
            core_cancel(&d->pages[i].req);
    }
    d->asked--;
    dir_free_unused(d);
}

/* The page outlives the request, so it is asked for with a core request of its own. */
static void on_page(struct core_req *req, int status)
{
    struct fs_dir_page *p = req->arg;
    struct fs_dir *d = p->dir;
    struct op *o = p->op;

    d->asked--;
    if (status != 0) {
        p->state = FS_PAGE_NONE;
    } else if (p->state == FS_PAGE_STALE) {
        core_readdir_done(req);
        p->state = FS_PAGE_NONE;
    } else {
        p->state = FS_PAGE_HERE;
    }
    p->op = NULL;
    if (o)
        o->req.done(&o->req, status);
    else
        dir_free_unused(d);
}

static void page_ask(struct fs_dir *d, struct fs_dir_page *p, const struct channel_req *q,
                     uint64_t cookie, const struct msg_cred *cred)
{
    struct fs *fs = fs_of(q);

    p->dir = d;
    p->state = FS_PAGE_ASKED;
    p->cookie = cookie;
    p->asked_ns = clock_mono_ns(reactor_clock(fs->reactor));
    p->req.cred = *cred;
    p->req.done = on_page;
    p->req.arg = p;
    d->asked++;
    core_readdir(fs->core, &p->req, fs_ino(fs, q->node), to_server(cookie), PAGE_BYTES, q->io.plus);
}

/* Not with the first reply: only then it is known which of the two kinds the kernel goes on with.
 */
static void page_ask_ahead(const struct channel_req *q, struct fs_dir *d)
{
    const struct msg_cred cred = {.uid = q->uid, .gid = q->gid};
    const struct core_req *page = &current_page(d)->req;
    uint64_t last;

    if (d->no_ahead || q->io.offset <= COOKIE_DOTDOT || page->out.dir.eof ||
        other_page(d)->state != FS_PAGE_NONE)
        return;
    last = core_readdir_last(page);
    if (last)
        page_ask(d, other_page(d), q, to_kernel(last), &cred);
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
            rc = core_dirent_next(&current_page(d)->req, &d->next);
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
    struct fs_dir_page *p = current_page(d);
    int rc;

    page_ask_ahead(q, d);
    channel_dir_begin(q);
    if (q->io.offset < COOKIE_DOTDOT) {
        add_dots(q, d); /* a reply has room for these two at least */
        d->next_cookie = COOKIE_DOTDOT;
    }
    rc = fill(q, d);
    if (rc < 0) {
        page_drop(p);
        d->has_next = false;
        channel_reply_err(q, rc);
        return;
    }
    if (rc == 0 && !p->req.out.dir.eof)
        page_drop(p); /* the next READDIR asks for more; at the end the empty page says so */
    channel_reply_dir(q);
}

static void run(struct op *o)
{
    const struct channel_req *q = o->q;
    struct fs_dir *d = fs_dir_of(q->io.fh);
    struct fs_dir_page *p = current_page(d);

    d->no_ahead |= o->has_groups;
    p->op = o;
    o->waiting = &p->req;
    if (p->state == FS_PAGE_NONE)
        page_ask(d, p, q, q->io.offset, &o->req.cred);
}

static void page_begin(struct fs_dir *d)
{
    d->has_next = false;
    d->parent = current_page(d)->req.out.dir.parent;
}

static void finish(struct op *o, int status)
{
    struct fs_dir *d = fs_dir_of(o->q->io.fh);

    d->busy = false;
    if (status != 0) {
        op_fail(o, status);
        return;
    }
    page_begin(d);
    reply_from_page(op_end(o, 0), d);
}

/* The page behind the current one becomes the current one. False: another one is asked for, or it
 * is not fresh any more. */
static bool page_turn(const struct channel_req *q, struct fs_dir *d)
{
    struct fs_dir_page *p = other_page(d);
    uint64_t now_ns = clock_mono_ns(reactor_clock(fs_of(q)->reactor));

    if ((p->state != FS_PAGE_ASKED && p->state != FS_PAGE_HERE) || p->cookie != q->io.offset ||
        now_ns > p->asked_ns + AHEAD_NS)
        return false;
    d->current = !d->current;
    return true;
}

void op_readdir(struct channel_req *q)
{
    struct fs_dir *d = fs_dir_of(q->io.fh);

    if (d->busy) { /* the kernel reads a directory one request at a time */
        channel_reply_err(q, -EBUSY);
        return;
    }
    if (current_page(d)->state == FS_PAGE_HERE && q->io.offset == d->next_cookie) {
        reply_from_page(q, d);
        return;
    }
    page_drop(current_page(d));
    d->next_cookie = q->io.offset;
    if (!page_turn(q, d)) {
        page_drop(other_page(d));
    } else if (current_page(d)->state == FS_PAGE_HERE) {
        page_begin(d);
        reply_from_page(q, d);
        return;
    }
    d->has_next = false;
    d->busy = true;
    op_start(q, run, finish, false);
}
