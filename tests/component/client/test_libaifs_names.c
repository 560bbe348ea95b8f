/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random changes of names and attributes by two mounts through libaifs on real daemons, one call at
 * a time, the metadata server killed and started again in between. After each change both mounts
 * must see what a tree in memory says: which names are there, and the same attributes, whatever
 * each has cached. A failure prints its seed; AIFS_SEED runs one, AIFS_SEEDS so many, AIFS_STEPS
 * steps each.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define MOUNTS 2u
#define NAMES  4u
#define DEPTH  3u
#define STEPS  500u
#define NODES  4096u

struct node {
    char kind; /* 'f', 'd', 'l' */
    unsigned nlink, mode, users;
    uint32_t size;
    int64_t mtime; /* set explicitly; 0: not known */
    unsigned xattr;
    struct node *child[NAMES], *parent;
};

struct place { /* a path: the last name's directory */
    char path[64];
    struct node *dir;
    unsigned name;
};

struct world {
    struct cluster cluster;
    struct aifs *fs[MOUNTS];
    struct aifs_file *held[MOUNTS]; /* a file kept open for writing */
    struct node *held_node[MOUNTS];
    struct node root, nodes[NODES];
    unsigned n_nodes, seed, step;
    struct place touched[2];
    unsigned n_touched;
    bool verbose;
};

static unsigned pick(struct world *w, unsigned n)
{
    return (unsigned)rand_r(&w->seed) % n;
}

static struct node *node_new(struct world *w, char kind, struct node *parent, unsigned mode)
{
    struct node *n = &w->nodes[w->n_nodes++];

    ck_assert_uint_lt(w->n_nodes, NODES);
    *n = (struct node){.kind = kind, .nlink = kind == 'd' ? 2 : 1, .mode = mode, .parent = parent};
    return n;
}

static void pick_place(struct world *w, struct place *p)
{
    struct node *dir = &w->root;
    size_t len = 0;

    for (unsigned depth = 1;; depth++) {
        struct node *n;

        p->dir = dir;
        p->name = pick(w, NAMES);
        len += (size_t)snprintf(p->path + len, sizeof p->path - len, "/%c", 'a' + p->name);
        n = dir->child[p->name];
        if (!n || n->kind != 'd' || depth == DEPTH || pick(w, 3) == 0)
            return;
        dir = n;
    }
}

static struct node *at(const struct place *p)
{
    return p->dir->child[p->name];
}

static void tell(const struct world *w, unsigned c, const char *what, const char *one,
                 const char *two, bool ok)
{
    if (w->verbose)
        fprintf(stderr, "%4u mount %u %s %s %s: %s\n", w->step, c, what, one, two,
                ok ? "ok" : "refused");
}

/* The call must have succeeded just when the model allows it. */
static bool done(const struct world *w, unsigned c, const char *what, const char *one,
                 const char *two, int rc, bool allowed)
{
    tell(w, c, what, one, two, allowed);
    ck_assert_msg((rc == 0) == allowed, "step %u: mount %u: %s %s %s: %s, which is wrong", w->step,
                  c, what, one, two, rc == 0 ? "done" : strerror(errno));
    return allowed;
}

static bool is_below(const struct node *n, const struct node *top)
{
    for (; n; n = n->parent)
        if (n == top)
            return true;
    return false;
}

static bool is_empty(const struct node *d)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (d->child[i])
            return false;
    return true;
}

static void drop(struct place *p)
{
    struct node *n = at(p);

    p->dir->child[p->name] = NULL;
    if (n->kind == 'd') {
        p->dir->nlink--;
        n->nlink = 0;
    } else {
        n->nlink--;
    }
}

static void add(struct place *p, struct node *n)
{
    p->dir->child[p->name] = n;
    if (n->kind == 'd') {
        p->dir->nlink++;
        n->parent = p->dir;
    }
}

/* ---- changes ---- */

static void do_create(struct world *w, unsigned c, struct place *p, bool excl)
{
    struct node *n = at(p);
    bool allowed = !n || (!excl && n->kind == 'f');
    struct aifs_file *f;

    if (n && n->kind == 'l')
        return;
    f = aifs_open(w->fs[c], p->path, O_WRONLY | O_CREAT | (excl ? O_EXCL : 0), 0640);
    if (!done(w, c, "create", p->path, excl ? "excl" : "", f ? 0 : -1, allowed))
        return;
    if (!n)
        add(p, node_new(w, 'f', NULL, 0640));
    ck_assert_int_eq(aifs_close(f), 0);
}

static void do_write(struct world *w, unsigned c, struct place *p)
{
    static const char data[40000];
    struct node *n = at(p);
    int flags = O_WRONLY | (pick(w, 3) ? 0 : O_TRUNC);
    uint32_t len = 1 + pick(w, pick(w, 4) ? 500 : sizeof data), from;
    struct aifs_file *f;

    if (!n || n->kind != 'f')
        return;
    from = flags & O_TRUNC ? 0 : pick(w, n->size + 1);
    f = aifs_open(w->fs[c], p->path, flags, 0);
    (void)done(w, c, "write", p->path, flags & O_TRUNC ? "trunc" : "", f ? 0 : -1, true);
    ck_assert_int_eq(aifs_pwrite(f, data, len, from), (ssize_t)len);
    ck_assert_int_eq(aifs_close(f), 0);
    n->size = flags & O_TRUNC ? len : MAX(n->size, from + len);
    n->mtime = 0;
}

static void do_hold(struct world *w, unsigned c, struct place *p)
{
    static const char data[700];
    struct node *n = w->held_node[c];

    if (!n) {
        n = at(p);
        if (!n || n->kind != 'f')
            return;
        w->held[c] = aifs_open(w->fs[c], p->path, O_RDWR, 0);
        (void)done(w, c, "hold", p->path, "", w->held[c] ? 0 : -1, true);
        w->held_node[c] = n;
        n->users++;
    } else if (pick(w, 3)) {
        tell(w, c, "write", "what it holds", "", true);
        ck_assert_int_eq(aifs_pwrite(w->held[c], data, sizeof data, n->size), sizeof data);
        n->size += (uint32_t)sizeof data;
        n->mtime = 0;
    } else {
        tell(w, c, "close", "what it holds", "", true);
        ck_assert_int_eq(aifs_close(w->held[c]), 0);
        w->held_node[c] = NULL;
        n->users--;
    }
}

static void do_make(struct world *w, unsigned c, struct place *p)
{
    bool allowed = !at(p);

    if (pick(w, 4)) {
        if (done(w, c, "mkdir", p->path, "", aifs_mkdir(w->fs[c], p->path, 0750), allowed))
            add(p, node_new(w, 'd', p->dir, 0750));
    } else if (done(w, c, "symlink", p->path, "", aifs_symlink(w->fs[c], "nowhere", p->path),
                    allowed)) {
        add(p, node_new(w, 'l', NULL, 0777));
    }
}

static void do_remove(struct world *w, unsigned c, struct place *p)
{
    struct node *n = at(p);

    if (n && n->kind == 'd' ? pick(w, 8) : !pick(w, 8)) {
        if (done(w, c, "rmdir", p->path, "", aifs_rmdir(w->fs[c], p->path),
                 n && n->kind == 'd' && is_empty(n)))
            drop(p);
    } else if (done(w, c, "unlink", p->path, "", aifs_unlink(w->fs[c], p->path),
                    n && n->kind != 'd')) {
        drop(p);
    }
}

static bool may_rename(const struct place *p, const struct place *q, unsigned flags)
{
    struct node *n = at(p), *old = at(q);

    if (!n || (flags == RENAME_NOREPLACE && old) || (flags == RENAME_EXCHANGE && !old))
        return false;
    if (n == old)
        return true;
    if (is_below(q->dir, n) || (flags == RENAME_EXCHANGE && is_below(p->dir, old)))
        return false;
    if (!old || flags == RENAME_EXCHANGE)
        return true;
    return n->kind == 'd' ? old->kind == 'd' && is_empty(old) : old->kind != 'd';
}

static void do_rename(struct world *w, unsigned c, struct place *p, struct place *q)
{
    static const unsigned kinds[] = {0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
    static const char *const words[] = {"rename", "rename-noreplace", "exchange"};
    unsigned flags = kinds[pick(w, ARRAY_LEN(kinds))];
    struct node *n = at(p), *old = at(q);
    int rc = aifs_renameat2(w->fs[c], p->path, q->path, flags);

    if (!done(w, c, words[flags], p->path, q->path, rc, may_rename(p, q, flags)) || n == old)
        return;
    p->dir->child[p->name] = NULL;
    p->dir->nlink -= n->kind == 'd';
    if (flags == RENAME_EXCHANGE) {
        q->dir->nlink -= old->kind == 'd';
        add(p, old);
    } else if (old) {
        drop(q);
    }
    add(q, n);
}

static void do_link(struct world *w, unsigned c, struct place *p, struct place *q)
{
    struct node *n = at(p);

    if (n && n->kind == 'l')
        return;
    if (done(w, c, "link", p->path, q->path, aifs_link(w->fs[c], p->path, q->path),
             n && n->kind == 'f' && !at(q))) {
        add(q, n);
        n->nlink++;
    }
}

static void do_attributes(struct world *w, unsigned c, struct place *p)
{
    struct node *n = at(p);
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000 + w->step}};
    unsigned mode = 0700 + pick(w, 64), value = 1 + pick(w, 1000);

    if (!n || n->kind == 'l')
        return;
    switch (pick(w, 4)) {
    case 0:
        (void)done(w, c, "chmod", p->path, "", aifs_chmod(w->fs[c], p->path, mode), true);
        n->mode = mode;
        break;
    case 1:
        if (n->users)
            break;
        (void)done(w, c, "utimens", p->path, "", aifs_utimens(w->fs[c], p->path, times), true);
        n->mtime = n->kind == 'd' ? 0 : times[1].tv_sec;
        break;
    case 2:
        (void)done(w, c, "setxattr", p->path, "",
                   aifs_setxattr(w->fs[c], p->path, "user.x", &value, sizeof value, 0), true);
        n->xattr = value;
        break;
    default:
        if (n->kind == 'd')
            break;
        (void)done(w, c, "truncate", p->path, "", aifs_truncate(w->fs[c], p->path, value), true);
        n->size = value;
        n->mtime = 0;
    }
}

/* ---- what is seen ---- */

static void check_stat(struct world *w, unsigned c, const char *path, const struct node *n,
                       const struct stat *st)
{
    unsigned type = n->kind == 'f' ? S_IFREG : n->kind == 'd' ? S_IFDIR : S_IFLNK;

    ck_assert_msg((st->st_mode & S_IFMT) == type && (st->st_mode & 07777) == n->mode,
                  "step %u: mount %u: %s: mode %o", w->step, c, path, st->st_mode);
    ck_assert_msg(st->st_nlink == n->nlink, "step %u: mount %u: %s: %u links instead of %u",
                  w->step, c, path, (unsigned)st->st_nlink, n->nlink);
    ck_assert_msg(n->kind != 'f' || st->st_size == n->size,
                  "step %u: mount %u: %s: size %lld instead of %u", w->step, c, path,
                  (long long)st->st_size, n->size);
    ck_assert_msg(!n->mtime || st->st_mtim.tv_sec == n->mtime,
                  "step %u: mount %u: %s: mtime %lld instead of %lld", w->step, c, path,
                  (long long)st->st_mtim.tv_sec, (long long)n->mtime);
}

static bool seen(struct world *w, unsigned c, const struct place *p, struct stat *st)
{
    struct node *n = at(p);
    unsigned value = 0;
    int rc = aifs_lstat(w->fs[c], p->path, st);

    ck_assert_msg((rc == 0) == (n != NULL), "step %u: mount %u: %s: %s", w->step, c, p->path,
                  rc == 0 ? "is there" : strerror(errno));
    if (!n)
        return false;
    check_stat(w, c, p->path, n, st);
    if (n->kind != 'l' && n->xattr && pick(w, 4) == 0) {
        ck_assert_int_eq(aifs_getxattr(w->fs[c], p->path, "user.x", &value, sizeof value),
                         sizeof value);
        ck_assert_msg(value == n->xattr, "step %u: mount %u: %s: xattr", w->step, c, p->path);
    }
    return true;
}

/* The other mount first, or the one that has changed it; the same for both. */
static void look(struct world *w, const struct place *p)
{
    struct stat st[MOUNTS];
    unsigned c = pick(w, MOUNTS);

    if (pick(w, 4) == 0) {
        (void)seen(w, c, p, &st[c]);
        return;
    }
    for (unsigned i = 0; i < MOUNTS; i++)
        if (!seen(w, (c + i) % MOUNTS, p, &st[(c + i) % MOUNTS]))
            return;
    if (p->dir->child[p->name]->users)
        return;
    ck_assert_msg(st[0].st_ino == st[1].st_ino && st[0].st_ctim.tv_sec == st[1].st_ctim.tv_sec &&
                      st[0].st_ctim.tv_nsec == st[1].st_ctim.tv_nsec &&
                      st[0].st_mtim.tv_sec == st[1].st_mtim.tv_sec &&
                      st[0].st_mtim.tv_nsec == st[1].st_mtim.tv_nsec,
                  "step %u: %s: the mounts disagree about its times or number: %lld.%09ld and "
                  "%lld.%09ld changed",
                  w->step, p->path, (long long)st[0].st_ctim.tv_sec, st[0].st_ctim.tv_nsec,
                  (long long)st[1].st_ctim.tv_sec, st[1].st_ctim.tv_nsec);
}

static void list(struct world *w, unsigned c, const char *path, const struct node *d)
{
    struct aifs_dir *dir = aifs_opendir(w->fs[c], path);
    const struct aifs_dirent *e;
    unsigned found = 0;

    ck_assert_msg(dir != NULL, "step %u: mount %u: %s: %s", w->step, c, path, strerror(errno));
    while ((e = aifs_readdir(dir))) {
        unsigned name = (unsigned)(e->name[0] - 'a');

        if (e->name[0] == '.')
            continue;
        ck_assert_msg(name < NAMES && d->child[name], "step %u: mount %u: %s/%s is listed", w->step,
                      c, path, e->name);
        if (e->has_stat)
            check_stat(w, c, path, d->child[name], &e->st);
        found |= 1u << name;
    }
    aifs_closedir(dir);
    for (unsigned i = 0; i < NAMES; i++)
        ck_assert_msg(!d->child[i] == !(found & 1u << i), "step %u: mount %u: %s/%c is not listed",
                      w->step, c, path, 'a' + i);
}

static void look_around(struct world *w)
{
    struct place p;

    for (unsigned i = 0; i < w->n_touched; i++)
        if (pick(w, 4))
            look(w, &w->touched[i]);
    for (unsigned i = pick(w, 4); i > 0; i--) {
        pick_place(w, &p);
        look(w, &p);
    }
    pick_place(w, &p);
    if (pick(w, 2) == 0)
        list(w, pick(w, MOUNTS), "/", &w->root);
    else if (at(&p) && at(&p)->kind == 'd')
        list(w, pick(w, MOUNTS), p.path, at(&p));
}

static void step(struct world *w)
{
    unsigned c = pick(w, MOUNTS), what = pick(w, 1000);
    struct place *p = &w->touched[0], *q = &w->touched[1];

    pick_place(w, p);
    pick_place(w, q);
    w->n_touched = 2;
    if (what < 170)
        do_create(w, c, p, pick(w, 2));
    else if (what < 270)
        do_write(w, c, p);
    else if (what < 350)
        do_hold(w, c, p);
    else if (what < 500)
        do_make(w, c, p);
    else if (what < 640)
        do_remove(w, c, p);
    else if (what < 800)
        do_rename(w, c, p, q);
    else if (what < 860)
        do_link(w, c, p, q);
    else if (what < 994)
        do_attributes(w, c, p);
    else {
        tell(w, 0, "kill", "the server", "", true);
        cluster_kill_mds(&w->cluster, SIGKILL);
        cluster_start_mds(&w->cluster);
    }
    look_around(w);
}

static void mount_all(struct world *w)
{
    ck_assert(cluster_start(&w->cluster, 1));
    for (unsigned c = 0; c < MOUNTS; c++)
        ck_assert_msg(aifs_mount(w->cluster.source, w->cluster.options, &w->fs[c]) == 0, "%s",
                      aifs_mount_error());
}

static void unmount_all(struct world *w)
{
    for (unsigned c = 0; c < MOUNTS; c++)
        ck_assert_int_eq(aifs_unmount(w->fs[c]), 0);
    cluster_stop(&w->cluster);
    free(w);
}

START_TEST(a_directory_that_was_empty_before_a_restart_may_have_names_after_it)
{
    struct world *w = calloc(1, sizeof *w);
    struct stat st;

    mount_all(w);
    ck_assert_int_eq(aifs_mkdir(w->fs[0], "/d", 0755), 0);
    ck_assert_int_eq(aifs_lstat(w->fs[0], "/d/x", &st), -1);
    cluster_kill_mds(&w->cluster, SIGKILL);
    cluster_start_mds(&w->cluster);
    ck_assert_int_eq(aifs_mkdir(w->fs[1], "/d/x", 0755), 0);
    ck_assert_int_eq(aifs_lstat(w->fs[0], "/d/x", &st), 0);
    unmount_all(w);
}
END_TEST

/* Its changer must not need to have looked at what it renames over. */
START_TEST(a_rename_over_a_name_never_looked_at_is_seen_in_the_other_name)
{
    struct world *w = calloc(1, sizeof *w);
    struct stat st;

    mount_all(w);
    ck_assert_int_eq(aifs_close(aifs_open(w->fs[1], "/one", O_CREAT | O_WRONLY, 0644)), 0);
    ck_assert_int_eq(aifs_link(w->fs[1], "/one", "/two"), 0);
    ck_assert_int_eq(aifs_lstat(w->fs[0], "/two", &st), 0);
    ck_assert_uint_eq(st.st_nlink, 2);
    ck_assert_int_eq(aifs_close(aifs_open(w->fs[0], "/new", O_CREAT | O_WRONLY, 0644)), 0);
    ck_assert_int_eq(aifs_rename(w->fs[0], "/new", "/one"), 0);
    ck_assert_int_eq(aifs_lstat(w->fs[0], "/two", &st), 0);
    ck_assert_uint_eq(st.st_nlink, 1);
    unmount_all(w);
}
END_TEST

START_TEST(both_mounts_see_what_a_tree_in_memory_says)
{
    struct world *w = calloc(1, sizeof *w);
    unsigned steps = cluster_number("AIFS_STEPS", STEPS);

    w->seed = cluster_number("AIFS_SEED", (unsigned)_i + 1);
    w->verbose = getenv("AIFS_SEED") != NULL;
    w->root.kind = 'd';
    printf("seed %u\n", w->seed);
    fflush(stdout);
    mount_all(w);
    for (w->step = 1; w->step <= steps; w->step++)
        step(w);
    for (unsigned c = 0; c < MOUNTS; c++)
        if (w->held_node[c])
            ck_assert_int_eq(aifs_close(w->held[c]), 0);
    unmount_all(w);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("libaifs-names");

    if (!cluster_built())
        return 77;
    tcase_set_timeout(tc, 100);
    tcase_add_test(tc, a_directory_that_was_empty_before_a_restart_may_have_names_after_it);
    tcase_add_test(tc, a_rename_over_a_name_never_looked_at_is_seen_in_the_other_name);
    tcase_add_loop_test(tc, both_mounts_see_what_a_tree_in_memory_says, 0,
                        getenv("AIFS_SEED") ? 1 : (int)cluster_number("AIFS_SEEDS", 1));
    return suite_run_case("libaifs-names", tc);
}
