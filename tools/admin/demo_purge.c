/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a demo leaves on the machine: the entry by which aifs-admin finds it, and its folder. It is
 * removed name by name, never as "everything that is in there": the folder, or the one of the
 * targets, may hold files of somebody else. Targets that were added in other places are named.
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "tools/admin/admin.h"
#include "tools/admin/demo.h"
#include "tools/admin/published.h"

static void published_name(const struct demo *d, char *out, size_t len)
{
    snprintf(out, len, PUBLISHED "/demo-%08x.conf", crc32c(d->dir, strlen(d->dir)));
}

void demo_publish(const struct demo *d)
{
    char name[128], target[PATH_MAX];

    if (geteuid() != 0)
        return;
    published_name(d, name, sizeof name);
    snprintf(target, sizeof target, "%s/admin.conf", d->dir);
    unlink(name);
    for (int attempt = 0; attempt < 3; attempt++) { /* another demo may remove the empty folders */
        mkdir("/run/aifs", 0750);
        mkdir(PUBLISHED, 0750);
        if (symlink(target, name) == 0)
            return;
    }
    /* a convenience only: --config always works */
}

void demo_unpublish(const struct demo *d)
{
    char name[128];

    published_name(d, name, sizeof name);
    if ((unlink(name) == 0 || errno == ENOENT) && rmdir(PUBLISHED) == 0) /* the last one */
        rmdir("/run/aifs");
}

/* A stop in the middle of the first `up` leaves these at most. */
static bool is_ours_from_the_start(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lock") ||
           !strcmp(name, "demo.json") || !strcmp(name, "demo.json.new");
}

int demo_check_empty(const struct demo *d)
{
    char path[PATH_MAX];
    struct dirent *e;
    int rc = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/demo.json", d->dir);
    if (access(path, F_OK) == 0)
        return 0;
    dir = opendir(d->dir);
    if (!dir)
        return -errno;
    while (rc == 0 && (e = readdir(dir)))
        if (!is_ours_from_the_start(e->d_name))
            rc = -EEXIST;
    closedir(dir);
    return rc;
}

/* Is path within dir/name? */
static bool is_below(const char *path, const char *dir, const char *name)
{
    char whole[PATH_MAX];
    int len = snprintf(whole, sizeof whole, "%s/%s/", dir, name);

    return !strncmp(path, whole, (size_t)len);
}

/* Targets that were added by path are in a list that the first one of their server keeps. */
static void warn_outside(const struct demo *d, struct out *o)
{
    const char *base = d->targets_dir[0] ? d->targets_dir : d->dir;
    char list[PATH_MAX], line[PATH_MAX], server[16];

    for (unsigned n = 1; n <= d->oss; n++) {
        FILE *f;

        snprintf(server, sizeof server, "oss%u", n);
        snprintf(list, sizeof list, "%s/%s/t1/added", base, server);
        f = fopen(list, "re");
        while (f && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = '\0';
            if (!is_below(line, base, server) && !is_below(line, d->dir, server))
                out_warning(o,
                            "%s, a target that was added to oss%u, is not in the demo's "
                            "directory: it stays, with its data",
                            line, n);
        }
        if (f)
            fclose(f);
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

PRINTF_LIKE(3, 4)
static int remove_tree(char ret_path[PATH_MAX], const char *dir, const char *fmt, ...)
{
    char name[64];
    struct stat st;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    snprintf(ret_path, PATH_MAX, "%s/%s", dir, name);
    if (lstat(ret_path, &st) != 0)
        return errno == ENOENT ? 0 : -errno;
    return nftw(ret_path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 ? 0 : -errno;
}

static int remove_all(const struct demo *d, char ret_path[PATH_MAX])
{
    /* The description goes last: what a failure leaves can be purged again. */
    static const char *const first[] = {"mds", "key", "admin.conf", "admin.conf.new"};
    static const char *const last[] = {"lock", "demo.json.new", "demo.json"};
    int rc = 0;

    for (unsigned n = 1; rc == 0 && n <= d->oss; n++) {
        rc = remove_tree(ret_path, d->dir, "oss%u", n);
        if (rc == 0 && d->targets_dir[0])
            rc = remove_tree(ret_path, d->targets_dir, "oss%u", n);
    }
    for (unsigned n = 1; rc == 0 && n < d->next_mount; n++)
        rc = remove_tree(ret_path, d->dir, "mount%u.log", n);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(first); i++)
        rc = remove_tree(ret_path, d->dir, "%s", first[i]);
    for (unsigned i = 0; rc == 0 && i < d->n_mounts; i++)
        if (d->mounts[i].made)
            rmdir(d->mounts[i].path); /* in use or not empty: it stays */
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(last); i++)
        rc = remove_tree(ret_path, d->dir, "%s", last[i]);
    if (rc == 0 && d->targets_dir[0])
        rmdir(d->targets_dir);
    if (rc == 0 && rmdir(d->dir) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != EBUSY) {
        snprintf(ret_path, PATH_MAX, "%s", d->dir);
        rc = -errno;
    }
    return rc;
}

int demo_end(const struct admin *a, const struct demo *d, bool purge)
{
    static const struct out_column columns[] = {{"DIR", OUT_TEXT, NULL}};
    struct out *o = out_table(a, "aifs.demo.down/1", columns, ARRAY_LEN(columns));
    char path[PATH_MAX];
    int rc = 0;

    if (purge) {
        warn_outside(d, o); /* the list goes, too */
        admin_waits_for("demo: removing its data from %s%s%s, which may take a while", d->dir,
                        d->targets_dir[0] ? " and " : "", d->targets_dir);
        rc = remove_all(d, path);
        admin_waited();
    }
    demo_unpublish(d);
    out_text(o, d->dir);
    if (rc == 0 && a->json) {
        out_print(o);
        return ADMIN_OK;
    }
    out_drop(o);
    if (rc < 0)
        return admin_fail(rc, "demo: cannot remove %s", path);
    if (!a->quiet)
        printf("demo        %s: down%s\n", d->dir, purge ? ", data removed" : "");
    return ADMIN_OK;
}
