/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a path to an inode, on the reactor: one lookup per component (cached ones cost nothing),
 * symbolic links spliced in, ".." by remembering the way.
 *
 * A slash behind the last name says that it is a directory, as to Linux: a link is followed there,
 * unless the name itself is to be made, removed or moved.
 *
 * Failure: what the lookups say; ELOOP after 40 links, ENAMETOOLONG when a path or a directory
 * chain is too long for us. A way that leads above the mount's root stays at the root.
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void step(struct lib_walk *w);

struct lib_walk *lib_walk_alloc(struct aifs *fs)
{
    struct lib_walk *w = mem_alloc(sizeof *w);

    if (w)
        w->fs = fs;
    return w;
}

int lib_walk_set(struct lib_walk *w, const char *path, unsigned flags)
{
    size_t len = path ? strlen(path) : 0;

    if (!len || len > LIB_PATH_MAX)
        return !path ? -EFAULT : !len ? -ENOENT : -ENAMETOOLONG;
    w->flags = flags;
    w->links = 0;
    w->dots = 0;
    w->at = 0;
    memcpy(w->path, path, len + 1);
    return 0;
}

struct lib_walk *lib_walk_new(struct aifs *fs, const char *path, unsigned flags, int *ret_err)
{
    struct lib_walk *w = lib_walk_alloc(fs);

    *ret_err = w ? lib_walk_set(w, path, flags) : -ENOMEM;
    if (*ret_err) {
        mem_free(w);
        return NULL;
    }
    return w;
}

static uint64_t here(const struct lib_walk *w)
{
    return w->dirs[w->depth - 1];
}

/* rest of the path behind [at, at + len), without slashes in front */
static const char *rest(const struct lib_walk *w, size_t len)
{
    const char *r = w->path + w->at + len;

    return r + strspn(r, "/");
}

/* Has the name that we are at a slash behind it? Then it is to be a directory. */
static bool has_slash(const struct lib_walk *w)
{
    return w->path[w->at + w->name_len] == '/';
}

static void follow(struct lib_walk *w, const struct msg_bytes *target)
{
    const char *tail = rest(w, w->name_len);
    size_t n = target->len, t = strlen(tail);

    if (!n || n + 1 + t > LIB_PATH_MAX) {
        w->done(w, n ? -ENAMETOOLONG : -ENOENT);
        return;
    }
    memcpy(w->target, target->data, n);
    w->target[n] = '/';
    memcpy(w->target + n + 1, tail, t + 1);
    if (!has_slash(w))
        w->target[n] = 0;
    memcpy(w->path, w->target, sizeof w->path);
    w->at = 0;
    if (w->path[0] == '/')
        w->depth = 1;
    step(w);
}

static void linked(struct core_req *q, int status)
{
    struct lib_walk *w = container_of(q, struct lib_walk, q);

    if (status)
        w->done(w, status);
    else
        follow(w, &q->out.bytes);
}

/* Where it leads came with the look-up: it may have been replaced since. */
static void follow_found(struct lib_walk *w)
{
    struct msg_bytes target = core_link_target(w->fs->core, w->entry.ino);

    if (target.len) {
        follow(w, &target);
        return;
    }
    lib_req(w->fs, &w->q, linked, w->q.arg);
    core_readlink(w->fs->core, &w->q, w->entry.ino);
}

static void looked_up(struct core_req *q, int status)
{
    struct lib_walk *w = container_of(q, struct lib_walk, q);
    bool last = rest(w, w->name_len)[0] == 0;
    bool slash = has_slash(w);
    uint32_t mode = status ? 0 : q->entry.attr.mode;

    if (status == -ENOENT && last && w->flags & LIB_CREATE) {
        w->entry.ino = 0;
        w->done(w, slash ? -EISDIR : 0);
        return;
    }
    if (status) {
        w->done(w, status);
        return;
    }
    w->entry = q->entry;
    if (S_ISLNK(mode) && (!last || w->flags & LIB_FOLLOW || slash)) {
        if (++w->links > LIB_LINKS_MAX) {
            w->done(w, -ELOOP);
            return;
        }
        follow_found(w);
        return;
    }
    if (last && !slash) {
        w->done(w, 0);
        return;
    }
    if (!S_ISDIR(mode) || w->depth == LIB_DEPTH_MAX) {
        w->done(w, S_ISDIR(mode) ? -ENAMETOOLONG : -ENOTDIR);
        return;
    }
    w->dirs[w->depth++] = w->entry.ino;
    w->at += w->name_len;
    step(w);
}

static void got_here(struct core_req *q, int status)
{
    struct lib_walk *w = container_of(q, struct lib_walk, q);

    w->entry = q->entry;
    w->done(w, status);
}

/* The next component that is a name. */
static bool next_name(struct lib_walk *w)
{
    for (;;) {
        const char *at = w->path + w->at;

        at += strspn(at, "/");
        w->at = (size_t)(at - w->path);
        w->name_len = (uint32_t)strcspn(at, "/");
        w->name = at;
        if (!w->name_len)
            return false;
        w->dots = w->name_len;
        if (w->name_len == 2 && memcmp(at, "..", 2) == 0)
            w->depth -= w->depth > 1;
        else if (w->name_len != 1 || at[0] != '.')
            return true;
        w->at += w->name_len;
    }
}

/* The root itself, "." or "..": nothing that has a name here. As Linux calls it. */
static int no_name(const struct lib_walk *w)
{
    if (w->flags & (LIB_UNLINK | LIB_CREATE))
        return -EISDIR;
    if (w->flags & (LIB_MKDIR | LIB_NEW))
        return -EEXIST;
    if (w->flags & LIB_RMDIR && w->dots)
        return w->dots == 1 ? -EINVAL : -ENOTEMPTY;
    return -EBUSY;
}

/* What the name with a slash behind it is, which is not followed. */
static void last_looked_up(struct core_req *q, int status)
{
    struct lib_walk *w = container_of(q, struct lib_walk, q);

    if (!status && w->flags & LIB_NEW)
        status = -EEXIST;
    else if (!status && !S_ISDIR(q->entry.attr.mode))
        status = -ENOTDIR;
    w->done(w, status);
}

/* The last name, which is not walked over. A slash behind it matters, but where a directory is to
 * be. */
static void last_name(struct lib_walk *w)
{
    bool slash = has_slash(w) || w->flags & LIB_DIR;

    if (!slash || w->flags & (LIB_MKDIR | LIB_TO)) {
        w->done(w, 0);
    } else if (w->flags & LIB_CREATE) {
        w->done(w, -EISDIR);
    } else {
        lib_req(w->fs, &w->q, last_looked_up, w->q.arg);
        core_lookup(w->fs->core, &w->q, w->parent, w->name, w->name_len);
    }
}

static void step(struct lib_walk *w)
{
    if (!next_name(w)) {
        if (w->flags & LIB_PARENT) {
            w->done(w, no_name(w));
            return;
        }
        lib_req(w->fs, &w->q, got_here, w->q.arg);
        core_getattr(w->fs->core, &w->q, here(w));
        return;
    }
    if (w->name_len > MSG_NAME_MAX) {
        w->done(w, -ENAMETOOLONG);
        return;
    }
    w->parent = here(w);
    if (w->flags & LIB_PARENT && rest(w, w->name_len)[0] == 0) {
        last_name(w);
        return;
    }
    lib_req(w->fs, &w->q, looked_up, w->q.arg);
    core_lookup(w->fs->core, &w->q, w->parent, w->name, w->name_len);
}

void lib_walk_start(struct lib_walk *w, void (*done)(struct lib_walk *w, int status))
{
    w->done = done;
    w->dirs[0] = core_root(w->fs->core);
    w->depth = 1;
    step(w);
}
