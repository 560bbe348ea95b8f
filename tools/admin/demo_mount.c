/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting through our own mount helper, found beside this program, so that an installed and a
 * freshly built tree behave alike. */
#include "tools/admin/demo_mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/admin/admin.h"
#include "tools/admin/proc.h"

/* Is something of ours mounted exactly there? */
static bool is_mounted(const char *path)
{
    char line[PATH_MAX * 2], at[PATH_MAX], type[64];
    bool found = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");

    while (f && !found && fgets(line, sizeof line, f)) {
        const char *dash = strstr(line, " - ");

        found = dash && sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 &&
                sscanf(dash, " - %63s", type) == 1 && !strcmp(at, path) &&
                !strncmp(type, "fuse.aifs", 9);
    }
    if (f)
        fclose(f);
    return found;
}

static int mount_one(const struct demo *d, const struct demo_mount *m, const char *options)
{
    char program[PATH_MAX], source[64], all[PATH_MAX * 2];
    const char *argv[] = {program, source, m->path, "-o", all, NULL};
    int rc = proc_program("aifs-mount", program, sizeof program);

    if (rc < 0)
        return admin_fail(rc, "demo: the program aifs-mount is not installed");
    if (mkdir(m->path, 0755) != 0 && errno != EEXIST && errno != ENOTCONN)
        return admin_fail(-errno, "demo: cannot make %s", m->path);
    snprintf(source, sizeof source, "127.0.0.1:%u:/", d->mds_port);
    snprintf(all, sizeof all, "keyfile=%s/key/client.key,net=%s,log=%s/mount%u.log%s%s", d->dir,
             d->net, d->dir, m->number, options ? "," : "", options ? options : "");
    rc = proc_run(argv, false);
    if (rc != 0) {
        admin_error("demo: mounting %s failed (%d)", m->path, rc);
        return ADMIN_FAILED;
    }
    return ADMIN_OK;
}

int demo_mount_again(struct demo *d)
{
    int rc = ADMIN_OK;

    for (unsigned i = 0; i < d->n_mounts && rc == ADMIN_OK; i++)
        if (!is_mounted(d->mounts[i].path))
            rc = mount_one(d, &d->mounts[i], NULL);
    return rc;
}

static int absolute(const char *path, char out[PATH_MAX])
{
    if (realpath(path, out))
        return ADMIN_OK;
    if (errno == ENOTCONN &&
        path[0] == '/') { /* what a dead mount leaves: cannot be resolved, can be named */
        snprintf(out, PATH_MAX, "%s", path);
        return ADMIN_OK;
    }
    return admin_fail(-errno, "demo: %s", path);
}

int demo_mount_add(struct demo *d, const char *path, const char *options)
{
    struct demo_mount *m = &d->mounts[d->n_mounts];
    int rc;

    if (mkdir(path, 0755) != 0 && errno != EEXIST && errno != ENOTCONN)
        return admin_fail(-errno, "demo: cannot make %s", path);
    if (d->n_mounts == DEMO_MOUNTS_MAX) {
        admin_error("demo: at most %d mounts", DEMO_MOUNTS_MAX);
        return ADMIN_FAILED;
    }
    rc = absolute(path, m->path);
    if (rc != ADMIN_OK)
        return rc;
    for (unsigned i = 0; i < d->n_mounts; i++)
        if (!strcmp(d->mounts[i].path, m->path))
            return is_mounted(m->path) ? ADMIN_OK : mount_one(d, &d->mounts[i], options);
    m->number = d->next_mount;
    rc = mount_one(d, m, options);
    if (rc != ADMIN_OK)
        return rc;
    d->n_mounts++;
    d->next_mount++;
    rc = demo_save(d);
    return rc < 0 ? admin_fail(rc, "demo: cannot write into %s", d->dir) : ADMIN_OK;
}

/* As umount.aifs does: also waits until the daemon has written everything back and ended. */
static int umount_path(const char *path)
{
    char program[PATH_MAX];
    const char *argv[] = {program, "--umount", path, NULL};

    if (!is_mounted(path))
        return ADMIN_OK;
    if (proc_program("aifs-mount", program, sizeof program) < 0)
        return admin_fail(-ENOENT, "demo: the program aifs-mount is not installed");
    if (proc_run(argv, false) != 0) {
        admin_error("demo: %s is in use and stays mounted", path);
        return ADMIN_CONFLICT;
    }
    return ADMIN_OK;
}

int demo_umount_one(struct demo *d, const char *path)
{
    char at[PATH_MAX];
    int rc = absolute(path, at);

    for (unsigned i = 0; rc == ADMIN_OK && i < d->n_mounts; i++) {
        if (strcmp(d->mounts[i].path, at) != 0)
            continue;
        rc = umount_path(at);
        if (rc != ADMIN_OK)
            return rc;
        d->mounts[i] = d->mounts[--d->n_mounts];
        rc = demo_save(d);
        return rc < 0 ? admin_fail(rc, "demo: cannot write into %s", d->dir) : ADMIN_OK;
    }
    if (rc == ADMIN_OK) {
        admin_error("demo: %s is not a mount of the demo in %s", at, d->dir);
        rc = ADMIN_NOT_FOUND;
    }
    return rc;
}

int demo_umount_all(const struct demo *d)
{
    int rc = ADMIN_OK;

    for (unsigned i = 0; i < d->n_mounts; i++) {
        int one = umount_path(d->mounts[i].path);

        rc = rc == ADMIN_OK ? one : rc;
    }
    return rc;
}
