/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rmtree`: a directory and everything below it is removed by the metadata server: its name at
 * once, the rest in the background. Inode numbers come through the mount; what removes is the
 * administrator's key. Without --yes it says what would go.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "tools/admin/admin.h"

#define POLL_NS 50000000L
#define SETTLES 20 /* looks: by then a server has let go of a call that is in time-out */

struct tree {
    const char *path; /* as given */
    char real[PATH_MAX];
    char *name; /* in real, cut from its parent */
    uint64_t parent, ino;
};

static const struct out_column columns[] = {
    {"TREE", OUT_TEXT, NULL},
    {"INODE", OUT_COUNT, NULL},
    {"STATE", OUT_TEXT, NULL},
    {"REMOVED", OUT_COUNT, NULL},
    {"DIRECTORIES", OUT_COUNT, "directories_left"},
    {"OBJECTS", OUT_COUNT, "objects_left"},
    {"AGE", OUT_AGE, "age_ns"},
};

static void row(struct out *o, const char *name, uint64_t ino, const char *state,
                const struct msg_trash_tree *t)
{
    out_text(o, name);
    out_number(o, ino);
    out_text(o, state);
    t ? out_number(o, t->removed) : out_none(o);
    t ? out_number(o, t->directories) : out_none(o);
    t ? out_number(o, t->objects) : out_none(o);
    t ? out_number(o, t->started_ns_ago) : out_none(o);
}

static int list(struct admin *a)
{
    static const struct msg_empty none;
    const struct msg_status_rep *rep;
    const void *answer;
    struct out *o;
    int rc = admin_connect(a);

    if (rc == ADMIN_OK)
        rc = admin_call_mds(a, RPC_OP_STATUS, &none, &answer);
    if (rc != ADMIN_OK)
        return rc;
    rep = answer;
    o = out_table(a, "aifs.rmtree/1", columns, ARRAY_LEN(columns));
    for (uint32_t i = 0; i < rep->n_trees; i++) {
        char name[MSG_NAME_MAX + 1];

        snprintf(name, sizeof name, "%.*s", (int)rep->trees[i].name.len,
                 (const char *)rep->trees[i].name.data);
        row(o, name, rep->trees[i].ino, "removing", &rep->trees[i]);
    }
    out_print(o);
    return ADMIN_OK;
}

/* ---- which directory ---- */

static int find_inode(const char *path, struct stat *ret_st)
{
    if (lstat(path, ret_st) != 0)
        return admin_fail(-errno, "%s", path);
    if (getxattr(path, "aifs.fid", NULL, 0) < 0)
        return admin_fail_path(-errno, path);
    return ADMIN_OK;
}

/* As rm(1): where one stands, what is above it, and what a link leads to are not removed by these
 * names, which say more than was meant as easily as not. */
static int check_name(const char *path)
{
    char name[PATH_MAX];
    const char *last;
    size_t len = strnlen(path, sizeof name), all = len;
    struct stat st;

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof name)
        return admin_fail(-ENAMETOOLONG, "%s", path);
    memcpy(name, path, len);
    name[len] = '\0';
    last = strrchr(name, '/');
    last = last ? last + 1 : name;
    if (!strcmp(last, ".") || !strcmp(last, "..")) {
        admin_error("%s: a directory is not removed as \".\" or \"..\": say its name", path);
        return ADMIN_USAGE;
    }
    if (len == all || lstat(name, &st) != 0 || !S_ISLNK(st.st_mode))
        return ADMIN_OK;
    admin_error("%s: %s is a symbolic link: say the name of the directory, or use rm to remove the "
                "link",
                path, name);
    return ADMIN_USAGE;
}

static int find_tree(const char *path, struct tree *t)
{
    struct stat st, parent;
    int rc = check_name(path);

    if (rc != ADMIN_OK)
        return rc;
    t->path = path;
    if (lstat(path, &st) != 0)
        return admin_fail(-errno, "%s", path);
    if (!S_ISDIR(st.st_mode)) {
        admin_error("%s is not a directory: use rm", path);
        return ADMIN_USAGE;
    }
    if (!realpath(path, t->real))
        return admin_fail(-errno, "%s", path);
    t->name = strrchr(t->real, '/');
    rc = find_inode(t->real, &st);
    if (rc != ADMIN_OK)
        return rc;
    *t->name++ = '\0';
    if (stat(*t->real ? t->real : "/", &parent) != 0)
        return admin_fail(-errno, "%s", t->real);
    if (!*t->name || parent.st_dev != st.st_dev) {
        admin_error("%s is where a file system is mounted", path);
        return ADMIN_USAGE;
    }
    t->parent = parent.st_ino;
    t->ino = st.st_ino;
    return ADMIN_OK;
}

/* ---- removing ---- */

static void show_progress(const struct admin *a, const struct tree *t,
                          const struct msg_trash_tree *now)
{
    if (a->quiet || a->json || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s: %llu removed, %llu directories and %llu objects left ", t->path,
            (unsigned long long)now->removed, (unsigned long long)now->directories,
            (unsigned long long)now->objects);
}

static volatile sig_atomic_t interrupted; /* the signal */

static void interrupt(int signal)
{
    interrupted = signal;
}

static void say_goes_on(const struct tree *t)
{
    admin_error("%s: its name is gone, and the metadata server goes on removing what was in it; "
                "aifs-admin rmtree --list shows how far it is",
                t->path);
}

/* The program ends as the signal would have ended it, but says first what goes on. */
static void end_interrupted(struct admin *a, const struct tree *t)
{
    if (!a->quiet && !a->json && isatty(STDERR_FILENO))
        fputc('\n', stderr);
    say_goes_on(t);
    admin_disconnect(a);
    admin_end(ADMIN_PARTIAL);
    signal(interrupted, SIG_DFL);
    raise(interrupted);
}

/* Is the tree still there? last: how it was seen last. */
static int look(struct admin *a, const struct tree *t, struct msg_trash_tree *last, bool *ret_there)
{
    static const struct msg_empty none;
    const struct msg_status_rep *rep;
    const void *answer;
    int rc = admin_call_mds(a, RPC_OP_STATUS, &none, &answer);

    if (rc != ADMIN_OK)
        return rc;
    rep = answer;
    *ret_there = rep->n_trees == MSG_TREES_MAX; /* it may be among those not shown */
    for (uint32_t i = 0; i < rep->n_trees; i++) {
        if (rep->trees[i].ino != t->ino)
            continue;
        *ret_there = true;
        *last = rep->trees[i];
        show_progress(a, t, last);
    }
    return ADMIN_OK;
}

/* Until the tree is gone and every target has confirmed. */
static int wait_for(struct admin *a, const struct tree *t, struct msg_trash_tree *last)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = interrupt};
    const struct timespec pause = {0, POLL_NS};
    bool there = true;

    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaction(signals[i], &action, NULL);
    for (;;) {
        int rc = look(a, t, last, &there);

        if (interrupted)
            end_interrupted(a, t);
        if (rc != ADMIN_OK)
            say_goes_on(t);
        if (rc != ADMIN_OK || !there)
            break;
        nanosleep(&pause, NULL);
    }
    if (!a->quiet && !a->json && isatty(STDERR_FILENO))
        fprintf(stderr, "\n");
    return there ? ADMIN_UNREACHABLE : ADMIN_OK;
}

/* What it was when it was seen last, if nothing but data was left then: now that is gone, too. */
static void gone_row(struct out *o, const struct tree *t, const struct msg_trash_tree *last,
                     uint64_t ns)
{
    bool counted = last->ino == t->ino && last->directories == 0;

    out_text(o, t->path);
    out_number(o, t->ino);
    out_text(o, "gone");
    counted ? out_number(o, last->removed) : out_none(o);
    out_number(o, 0);
    out_number(o, 0);
    out_number(o, ns);
}

/* 1, 0, or -errno: its mount does not say. */
static int is_there(const struct admin *a, const struct tree *t)
{
    struct stat st;
    int rc;

    admin_watch(a, t->path);
    rc = lstat(t->path, &st) == 0 ? st.st_ino == t->ino : -errno;
    admin_watch(a, NULL);
    return rc == -ENOENT ? 0 : rc;
}

/* The call was not answered in time. */
static void say_what_became(struct admin *a, const struct tree *t)
{
    const struct timespec pause = {0, POLL_NS};
    struct msg_trash_tree last = {0};
    bool known = true, removing = false;
    int there = 1;

    for (unsigned i = 0; i < SETTLES && known && there > 0 && !removing; i++) {
        nanosleep(&pause, NULL);
        known = look(a, t, &last, &removing) == ADMIN_OK && (!removing || last.ino == t->ino);
        if (known && !removing)
            there = is_there(a, t);
        known = known && there >= 0;
    }
    if (!known)
        admin_error("%s: it may be on its way all the same; see aifs-admin rmtree --list", t->path);
    else if (removing)
        say_goes_on(t);
    else if (there)
        admin_error("%s is still there: a client that knows its name did not answer in time (one "
                    "that has died is waited for as long as its lease lasts); try again, or with a "
                    "longer --timeout",
                    t->path);
    else
        admin_error("%s is gone", t->path);
}

static int remove_tree(struct admin *a, const struct tree *t, bool wait)
{
    struct msg_rmtree_req req = {
        .parent = t->parent, .ino = t->ino, .name = {t->name, (uint32_t)strlen(t->name)}};
    uint64_t began_ns = clock_mono_ns(clock_real());
    struct msg_trash_tree last = {0};
    const void *answer;
    struct out *o;
    int rc = admin_call_mds(a, RPC_OP_RMTREE, &req, &answer);

    if (rc == ADMIN_UNREACHABLE)
        say_what_became(a, t);
    if (rc == ADMIN_OK && wait)
        rc = wait_for(a, t, &last);
    if (rc != ADMIN_OK)
        return rc;
    o = out_table(a, "aifs.rmtree/1", columns, ARRAY_LEN(columns));
    if (wait)
        gone_row(o, t, &last, clock_mono_ns(clock_real()) - began_ns);
    else
        row(o, t->path, t->ino, "removing", NULL);
    out_print(o);
    return ADMIN_OK;
}

int cmd_rmtree(struct admin *a, int argc, char **argv)
{
    bool wait = false, show = false;
    const struct admin_option options[] = {{"wait", 0, NULL, &wait}, {"list", 0, NULL, &show}};
    struct tree *t;
    struct out *o;
    int rc;

    argc = admin_options(options, ARRAY_LEN(options), argc, argv);
    if (argc < 0)
        return ADMIN_USAGE;
    if (show && argc == 0)
        return list(a);
    if (show || argc != 1)
        return admin_usage("rmtree", NULL, "say which directory");
    t = calloc(1, sizeof *t);
    if (!t)
        return admin_fail(-ENOMEM, "%s", argv[0]);
    admin_watch(a, argv[0]);
    rc = find_tree(argv[0], t);
    admin_watch(a, NULL);
    if (rc == ADMIN_OK && !a->yes) {
        o = out_table(a, "aifs.rmtree/1", columns, ARRAY_LEN(columns));
        row(o, t->path, t->ino, "would go", NULL);
        out_warning(o, "nothing was removed: add --yes");
        out_print(o);
        rc = ADMIN_CONFIRM;
    } else if (rc == ADMIN_OK) {
        admin_connect_by(a, argv[0]);
        rc = admin_connect(a);
        if (rc == ADMIN_OK)
            rc = admin_check_mount(a, argv[0]);
        if (rc == ADMIN_OK)
            rc = remove_tree(a, t, wait);
    }
    free(t);
    return rc;
}
