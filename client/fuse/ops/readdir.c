/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR and READDIRPLUS. A page from the server stays with the open directory until the kernel
 * has taken all of it in order. While it does, the pages behind it are already under way: one, or
 * several when only names are wanted, so that the server never waits for a quick reader. A seek or
 * rewinddir(3) drops them all.
 * Cookies: the server's are 48 bits of hash and 16 of ordinal; the kernel's must be positive, so
 * the ordinal is squeezed to 15 bits (never more than a few in use). "." and ".." have the cookies
 * 1 and 2.
 *
 * The kernel's first request wants attributes, whatever the application does, and each costs the
 * server, us and the kernel ten times what a name does. The page for it is no longer than the
 * reply: those who list first and look at the files afterwards get all of a directory of ordinary
 * size with attributes (the server cuts it short where the directory is large). The page behind it
 * is short and without: a reader who goes on with attributes throws it away.
 *
 * Many directories that are read in part and stay open would hold all memory there is: beyond what
 * the core grants for that, those that have not been read for longest lose their pages.
 *
 * Who has opened a directory may list it, whatever has become of the process since (it has dropped
 * root, or handed the descriptor on): the server is asked in the name of the opener. Supplementary
 * groups, where the server refuses without, are those of who reads.
 *
 * The kernel takes up the names of a reply some time after it has come, as of then: that all names
 * are old, which it may have been told in between, does not hold for them. So it is told once more,
 * when the next request about that open directory shows that it has taken them up, and at the
 * latest after LISTING_NS.
 *
 * Failure modes: a page asked for in advance that fails, or has become old, is forgotten, and asked
 * for again when the kernel wants it.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

#define PAGE_BYTES       (256u * KIB)      /* of attributes */
#define PAGE_NAMES_BYTES (128u * KIB)      /* sooner here, so the next is asked for sooner */
#define PAGE_FIRST_BYTES (32u * KIB)       /* at least */
#define PAGE_GUESS_BYTES (64u * KIB)       /* while it is not known what the reader wants */
#define DOTS_BYTES       320u              /* "." and ".." in the kernel's reply */
#define AHEAD_NS         (200 * NS_PER_MS) /* older pages are not begun */
#define LISTING_NS       (100 * NS_PER_MS)
#define COOKIE_DOT       1u
#define COOKIE_DOTDOT    2u

static uint64_t to_kernel(uint64_t cookie)
{
    return (cookie >> 16) << 15 | (cookie & 0x7fffu);
}

static uint64_t to_server(uint64_t cookie)
{
    return cookie <= COOKIE_DOTDOT ? 0 : (cookie >> 15) << 16 | (cookie & 0x7fffu);
}

/* The n-th page behind the current one. */
static struct fs_dir_page *page_behind(struct fs_dir *d, unsigned n)
{
    return &d->pages[(d->current + n) % FS_DIR_PAGES];
}

static struct fs_dir_page *current_page(struct fs_dir *d)
{
    return page_behind(d, 0);
}

static void page_gone(struct fs_dir_page *p)
{
    p->state = FS_PAGE_NONE;
    p->dir->fs->dir_pages--;
}

static void page_hold(struct fs_dir_page *p)
{
    struct fs_dir *d = p->dir;

    p->state = FS_PAGE_HERE;
    d->held++;
    d->fs->dir_bytes += core_readdir_bytes(&p->req);
    list_remove(&d->link);
    list_push_back(&d->fs->dirs, &d->link);
}

static void page_let_go(struct fs_dir_page *p)
{
    struct fs_dir *d = p->dir;

    d->fs->dir_bytes -= core_readdir_bytes(&p->req);
    if (!--d->held)
        list_remove(&d->link);
    core_readdir_done(&p->req);
    page_gone(p);
}

static void page_drop(struct fs_dir_page *p)
{
    if (p->state == FS_PAGE_ASKED) {
        p->state = FS_PAGE_STALE;
    } else if (p->state == FS_PAGE_HERE) {
        page_let_go(p);
    } else if (p->state == FS_PAGE_END) {
        p->state = FS_PAGE_NONE;
    }
}

/* Its memory goes: a directory may stay open for long after it was listed. */
static void page_used_up(struct fs_dir_page *p)
{
    bool eof = p->req.out.dir.eof;

    page_drop(p);
    if (eof)
        p->state = FS_PAGE_END;
}

static void pages_drop(struct fs_dir *d, unsigned first)
{
    for (unsigned n = first; n < FS_DIR_PAGES; n++)
        page_drop(page_behind(d, n));
}

/* Those that have not been read for longest give their pages back, until the rest may stay: who
 * goes on with one of them asks again, from its cookie. Not while a request waits for one. */
static void dirs_trim(struct fs *fs)
{
    struct list *l, *tmp;

    list_for_each_safe (l, tmp, &fs->dirs) {
        struct fs_dir *d = list_entry(l, struct fs_dir, link);

        if (fs->dir_bytes <= core_readdir_memory(fs->core))
            return;
        if (d->busy)
            continue;
        pages_drop(d, 0);
        d->has_next = false; /* it was in the page */
        stat_inc(&fs->dir_drops);
    }
}

/* ---- names that the kernel has yet to take up ---- */

void fs_dirs_overtaken(struct fs *fs)
{
    struct list *l;

    list_for_each (l, &fs->listing) {
        list_entry(l, struct fs_dir, listing)->overtaken = true;
    }
    if (!list_empty(&fs->listing) && !fs->ended)
        reactor_timer_start(fs->reactor, &fs->listing_timer,
                            clock_mono_ns(reactor_clock(fs->reactor)) + LISTING_NS);
}

static void on_listing_timer(struct reactor_timer *t)
{
    struct fs *fs = container_of(t, struct fs, listing_timer);

    channel_expire_names(fs->channel);
}

void fs_dirs_init(struct fs *fs)
{
    list_init(&fs->dirs);
    list_init(&fs->listing);
    reactor_timer_init(&fs->listing_timer, on_listing_timer);
}

void fs_dirs_end(struct fs *fs)
{
    reactor_timer_cancel(fs->reactor, &fs->listing_timer);
}

static void names_taken_up(struct fs_dir *d)
{
    list_remove(&d->listing);
    if (d->overtaken && !d->fs->ended)
        channel_expire_names(d->fs->channel);
    d->overtaken = false;
}

static void dir_free_unused(struct fs_dir *d)
{
    if (d->closed && !d->asked)
        mem_free(d);
}

void fs_dir_free(struct fs_dir *d)
{
    d->closed = true;
    names_taken_up(d);
    d->asked++; /* not before the end of this function */
    pages_drop(d, 0);
    for (unsigned i = 0; i < FS_DIR_PAGES; i++)
        if (d->pages[i].state == FS_PAGE_STALE)
            core_cancel(&d->pages[i].req);
    d->asked--;
    dir_free_unused(d);
}

static void on_page(struct core_req *req, int status);

/* The page outlives the request, so it is asked for with a core request of its own. */
static void page_ask(struct fs_dir *d, struct fs_dir_page *p, uint64_t cookie, uint32_t bytes,
                     bool plus)
{
    p->dir = d;
    p->state = FS_PAGE_ASKED;
    p->cookie = cookie;
    p->plus = plus;
    p->asked_ns = clock_mono_ns(reactor_clock(d->fs->reactor));
    p->req.done = on_page;
    p->req.arg = p;
    d->asked++;
    d->fs->dir_pages++;
    core_readdir(d->fs->core, &p->req, d->ino, to_server(cookie), bytes, plus);
}

/* How many pages there may be behind the current one. */
static unsigned ahead_max(const struct fs_dir *d)
{
    if (d->no_ahead)
        return 0;
    return d->begun || d->plus || d->fs->dir_pages >= FS_DIR_PAGES_DEEP ? 1 : FS_DIR_PAGES - 1;
}

static uint32_t page_bytes(bool plus)
{
    return plus ? PAGE_BYTES : PAGE_NAMES_BYTES;
}

/* Behind the last page that has been asked for, once it is here and its last entry is known. */
static bool page_ask_ahead(struct fs_dir *d)
{
    unsigned n, max = ahead_max(d);
    struct fs_dir_page *p;
    uint64_t last;

    for (n = 0; n < max && page_behind(d, n + 1)->state != FS_PAGE_NONE; n++)
        ;
    p = page_behind(d, n);
    if (n == max || p->state != FS_PAGE_HERE || p->req.out.dir.eof)
        return false;
    last = core_readdir_last(&p->req);
    if (!last)
        return false;
    p = page_behind(d, n + 1);
    p->req.cred = (struct msg_cred){.uid = d->uid, .gid = d->gid};
    page_ask(d, p, to_kernel(last), d->begun ? PAGE_GUESS_BYTES : page_bytes(d->plus),
             d->plus && !d->begun);
    return true;
}

static void on_page(struct core_req *req, int status)
{
    struct fs_dir_page *p = req->arg;
    struct fs_dir *d = p->dir;
    struct op *o = p->op;

    d->asked--;
    if (status != 0) {
        page_gone(p);
    } else if (p->state == FS_PAGE_STALE) {
        core_readdir_done(req);
        page_gone(p);
    } else {
        page_hold(p);
        dirs_trim(d->fs);
    }
    p->op = NULL;
    if (o)
        o->req.done(&o->req, status);
    else if (d->closed)
        dir_free_unused(d);
    else if (status == 0)
        (void)page_ask_ahead(d);
}

/* False when the reply is full: e stays for the next one. */
static bool add_entry(struct channel_req *q, const struct core_dirent *e)
{
    char name[MSG_NAME_MAX + 1];
    struct channel_entry entry = {&e->entry.attr, e->entry.entry_valid_ns, e->entry.attr_valid_ns};

    memcpy(name, e->name, e->name_len);
    name[e->name_len] = '\0';
    return channel_dir_add(q, name, e->ino, e->type, to_kernel(e->cookie),
                           q->io.plus && e->has_entry && !e->known ? &entry : NULL);
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

    if (d->has_next) /* it has waited here, and what it says may have been outdated */
        core_dirent_again(&current_page(d)->req, &d->next);
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

static void reply_fill(struct channel_req *q, struct fs_dir *d)
{
    struct fs_dir_page *p = current_page(d);
    int rc = channel_dir_begin(q);

    if (rc != 0) {
        channel_reply_err(q, rc);
        return;
    }
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
    if (rc == 0)
        page_used_up(p); /* the next READDIR asks for more, or hears that there is none */
    if (q->io.plus)
        list_push_back(&d->fs->listing, &d->listing);
    channel_reply_dir(q);
}

static void on_work(struct reactor_work *w)
{
    struct fs_dir *d = container_of(w, struct fs_dir, work);
    struct channel_req *q = d->reply;

    d->busy = false;
    d->asked--;
    if (d->fs->ended) { /* it has been answered, or will be with all others */
        dir_free_unused(d);
        return;
    }
    if (!d->closed) {
        reply_fill(q, d);
        return;
    }
    channel_reply_err(q, -EBADF);
    dir_free_unused(d);
}

/* Filling a reply takes as long as the server needs for a page: what was asked for ahead leaves
 * first, with the messages of this turn. */
static void reply_from_page(struct channel_req *q, struct fs_dir *d)
{
    d->busy = true; /* its pages stay */
    if (!page_ask_ahead(d)) {
        d->busy = false;
        reply_fill(q, d);
        return;
    }
    d->asked++;
    d->reply = q;
    d->work.fn = on_work;
    reactor_defer(d->fs->reactor, &d->work);
}

/* An entry with attributes is a fifth shorter here than in the kernel's reply, in which "." and
 * ".." have to have room. */
static uint32_t first_bytes(const struct channel_req *q)
{
    uint32_t len = MAX(q->io.len, DOTS_BYTES) - DOTS_BYTES;

    return MIN(MAX(len / 5 * 4, PAGE_FIRST_BYTES), PAGE_BYTES);
}

static void run(struct op *o)
{
    const struct channel_req *q = o->q;
    struct fs_dir *d = fs_dir_of(q->io.fh);
    struct fs_dir_page *p = current_page(d);

    d->no_ahead |= o->has_groups;
    p->op = o;
    o->waiting = &p->req;
    if (p->state != FS_PAGE_NONE)
        return;
    p->req.cred = o->req.cred;
    p->req.cred.uid = d->uid;
    p->req.cred.gid = d->gid;
    page_ask(d, p, q->io.offset, d->begun ? first_bytes(q) : page_bytes(q->io.plus), q->io.plus);
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
    const struct fs_dir_page *p = page_behind(d, 1);
    uint64_t now_ns = clock_mono_ns(reactor_clock(d->fs->reactor));

    if ((p->state != FS_PAGE_ASKED && p->state != FS_PAGE_HERE) || p->cookie != q->io.offset ||
        (q->io.plus && !p->plus) || now_ns > p->asked_ns + AHEAD_NS)
        return false;
    d->current = (d->current + 1) % FS_DIR_PAGES;
    return true;
}

static void dir_request(const struct channel_req *q, struct fs_dir *d)
{
    d->fs = fs_of(q);
    names_taken_up(d);
    d->ino = fs_ino(d->fs, q->node);
    d->plus = q->io.plus;
    d->begun = q->io.offset <= COOKIE_DOTDOT;
    if (d->held) {
        list_remove(&d->link);
        list_push_back(&d->fs->dirs, &d->link);
    }
}

void op_readdir(struct channel_req *q)
{
    struct fs_dir *d = fs_dir_of(q->io.fh);

    if (d->busy) { /* the kernel reads a directory one request at a time */
        channel_reply_err(q, -EBUSY);
        return;
    }
    dir_request(q, d);
    if (current_page(d)->state == FS_PAGE_HERE && q->io.offset == d->next_cookie) {
        reply_from_page(q, d);
        return;
    }
    if (current_page(d)->state == FS_PAGE_END && q->io.offset == d->next_cookie) {
        int rc = channel_dir_begin(q);

        if (rc != 0)
            channel_reply_err(q, rc);
        else
            channel_reply_dir(q);
        return;
    }
    page_drop(current_page(d));
    d->next_cookie = q->io.offset;
    if (!page_turn(q, d)) {
        pages_drop(d, 1);
    } else if (current_page(d)->state == FS_PAGE_HERE) {
        page_begin(d);
        reply_from_page(q, d);
        return;
    }
    d->has_next = false;
    d->busy = true;
    op_start(q, run, finish, false);
}
