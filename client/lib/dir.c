/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory streams: pages with attributes, decoded on the reactor into the stream's own array,
 * handed out one by one. The right to read is asked for with the first page, which comes with the
 * opening; whoever has a stream reads on with it, whatever becomes of the directory's mode.
 */
#include "client/lib/lib_int.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#define PAGE_BYTES   (64u * 1024u)
#define PAGE_ENTRIES 1024u

struct aifs_dir {
    struct aifs *fs;
    uint64_t ino, parent, cookie;
    unsigned n, at; /* entries in the page; the next one */
    unsigned dots;  /* of "." and ".." how many were given */
    bool eof, opened;
    struct aifs_dirent *page, dot;
};

static void fill_dot(struct aifs_dirent *e, const char *name, uint64_t ino)
{
    memset(e, 0, offsetof(struct aifs_dirent, name));
    e->ino = ino;
    e->type = DT_DIR;
    memcpy(e->name, name, strlen(name) + 1);
}

static int decode(struct aifs_dir *d, struct core_req *q)
{
    struct core_dirent e;
    int rc = 0;

    d->n = 0;
    while (d->n < PAGE_ENTRIES && (rc = core_dirent_next(q, &e)) == 1) {
        struct aifs_dirent *out = &d->page[d->n];

        out->ino = e.ino;
        out->type = e.type;
        out->has_stat = e.has_entry;
        if (e.has_entry)
            lib_stat_fill(&out->st, &e.entry.attr);
        memcpy(out->name, e.name, e.name_len);
        out->name[e.name_len] = 0;
        d->cookie = e.cookie;
        d->n++;
    }
    d->eof = rc == 0 && q->out.dir.eof;
    return rc < 0 ? rc : 0;
}

static void page_done(struct core_req *q, int status)
{
    struct lib_call *c = q->arg;
    struct aifs_dir *d = c->out;

    if (!status) {
        d->parent = q->out.dir.parent;
        status = decode(d, q);
        core_readdir_done(q);
    }
    lib_call_done(c, status);
}

static void page_begin(struct lib_call *c)
{
    static const struct msg_cred root; /* the servers believe us: the opener was asked */
    struct aifs_dir *d = c->out;

    if (d->opened)
        c->q.cred = root;
    core_readdir(c->fs->core, &c->q, d->ino, d->cookie, PAGE_BYTES, true);
}

static int page_read(struct aifs_dir *d)
{
    struct lib_call c;

    lib_call_init(&c, d->fs, page_begin);
    c.q.done = page_done;
    c.out = d;
    d->at = d->n = 0;
    return lib_call_run(&c);
}

static void dir_walked(struct lib_call *c)
{
    struct aifs_dir *d = c->out;

    d->ino = c->walk->entry.ino;
    lib_call_done(c, S_ISDIR(c->walk->entry.attr.mode) ? 0 : -ENOTDIR);
}

struct aifs_dir *aifs_opendir(struct aifs *fs, const char *path)
{
    struct aifs_dir *d = mem_zalloc(sizeof *d);
    struct lib_call c;
    int err = -ENOMEM;

    if (d)
        d->page = mem_array(PAGE_ENTRIES, sizeof *d->page);
    if (d && d->page) {
        d->fs = fs;
        lib_call_init(&c, fs, NULL);
        c.out = d;
        err = lib_path_call(fs, path, LIB_FOLLOW, dir_walked, &c);
        err = err ? err : page_read(d); /* also the permission to read it */
    }
    if (!err) {
        d->opened = true;
        return d;
    }
    if (d)
        mem_free(d->page);
    mem_free(d);
    (void)lib_errno(err);
    return NULL;
}

const struct aifs_dirent *aifs_readdir(struct aifs_dir *d)
{
    int err, saved = errno; /* which tells an error from the end */

    if (d->dots < 2) {
        fill_dot(&d->dot, d->dots ? ".." : ".", d->dots && d->parent ? d->parent : d->ino);
        d->dots++;
        return &d->dot;
    }
    while (d->at == d->n) {
        if (d->eof)
            return NULL;
        err = page_read(d);
        if (err) {
            (void)lib_errno(err);
            return NULL;
        }
        errno = saved;
    }
    return &d->page[d->at++];
}

void aifs_rewinddir(struct aifs_dir *d)
{
    d->cookie = 0;
    d->n = d->at = d->dots = 0;
    d->eof = false;
}

int aifs_closedir(struct aifs_dir *d)
{
    mem_free(d->page);
    mem_free(d);
    return 0;
}
