/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of a demo: absolute, also where nothing is yet, and such as go through what is made of
 * them: lines of configuration files, lists of targets and mount options, which are cut at commas,
 * and the kernel's table of mounts. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/admin/admin.h"
#include "tools/admin/demo.h"

/* What cannot be said of it; NULL: all can. */
static const char *find_unfit(const char *path)
{
    for (; *path; path++) {
        if (*path == ',')
            return "a comma";
        if (*path == '"')
            return "a quotation mark";
        if (*path == '\\')
            return "a backslash";
        if (*path == ' ')
            return "a space";
        if (iscntrl((unsigned char)*path))
            return "a control character, such as a tab or the end of a line";
    }
    return NULL;
}

/* path, whose last part may not be there, or be a mount that has died; -errno. */
static int make_absolute(const char *path, char out[PATH_MAX])
{
    char parent[PATH_MAX], *slash;
    size_t len = strlen(path), n;
    const char *last;

    if (realpath(path, out))
        return 0;
    if (len >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, path, len + 1);
    while (len > 1 && parent[len - 1] == '/')
        parent[--len] = '\0';
    slash = strrchr(parent, '/');
    last = slash ? path + (slash - parent) + 1 : path;
    n = len - (size_t)(last - path);
    if (n == 0 || (n == 1 && last[0] == '.') || (n == 2 && last[0] == '.' && last[1] == '.'))
        return -errno;
    if (slash)
        slash[slash == parent] = '\0';
    if (!realpath(slash ? parent : ".", out))
        return -errno;
    len = strlen(out);
    if (len == 1)
        len = 0; /* the root */
    if (len + 1 + n >= PATH_MAX)
        return -ENAMETOOLONG;
    out[len] = '/';
    memcpy(out + len + 1, last, n);
    out[len + 1 + n] = '\0';
    return 0;
}

int demo_path_resolve(const char *path, char *out, size_t len)
{
    char absolute[PATH_MAX];
    int rc = make_absolute(path, absolute);

    if (rc < 0)
        return admin_fail(rc, "demo: %s", path);
    if (strlen(absolute) >= len) {
        admin_error("demo: the path of %s is too long", absolute);
        return ADMIN_USAGE;
    }
    memcpy(out, absolute, strlen(absolute) + 1);
    return ADMIN_OK;
}

int demo_path_check(const char *absolute)
{
    const char *unfit = find_unfit(absolute);
    char shown[PATH_MAX];

    if (!unfit)
        return ADMIN_OK;
    snprintf(shown, sizeof shown, "%s", absolute);
    for (char *p = shown; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    admin_error("demo: the path \"%s\" has %s in it, which configuration files and mount options "
                "cannot carry: take another directory",
                shown, unfit);
    return ADMIN_USAGE;
}

int demo_path_new(const char *path, char *out, size_t len)
{
    int rc = demo_path_resolve(path, out, len);

    return rc == ADMIN_OK ? demo_path_check(out) : rc;
}
