/* SPDX-License-Identifier: Apache-2.0 */
/* Files replaced as a whole, see file.h. Everything is done relative to the directory, opened once:
 * what is synced is where the name was changed. */
#include "common/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"

int file_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A file system that knows no such sync (EINVAL; 9p, AFS) keeps nothing back that waits for one. */
static int sync_names(int dir)
{
    return fsync(dir) < 0 && errno != EINVAL ? -errno : 0;
}

static int write_fresh(int dir, const char *name, const void *data, size_t len, mode_t mode)
{
    AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    int rc = fd < 0 ? -errno : file_write_all(fd, data, len);

    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    return rc;
}

int file_replace_at(int dir, const char *name, const void *data, size_t len, mode_t mode)
{
    char fresh[NAME_MAX + 1];
    int rc;

    if ((size_t)snprintf(fresh, sizeof fresh, "%s.new", name) >= sizeof fresh)
        return -ENAMETOOLONG;
    if (unlinkat(dir, fresh, 0) < 0 && errno != ENOENT)
        return -errno;
    rc = write_fresh(dir, fresh, data, len, mode);
    if (rc == 0 && renameat(dir, fresh, dir, name) < 0)
        rc = -errno;
    if (rc < 0) {
        (void)unlinkat(dir, fresh, 0);
        return rc;
    }
    return sync_names(dir);
}

/* Of "a/b" it is a, of "/a" it is /, of "a" where we are. */
static int open_parent(const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    char dir[PATH_MAX];
    int fd;

    if (len >= sizeof dir)
        return -ENAMETOOLONG;
    memcpy(dir, path, len);
    dir[len] = '\0';
    if (len == 0)
        strcpy(dir, slash ? "/" : ".");
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_name = slash ? slash + 1 : path;
    return fd < 0 ? -errno : fd;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode)
{
    const char *name;
    AUTO_CLOSE int dir = open_parent(path, &name);

    return dir < 0 ? dir : file_replace_at(dir, name, data, len, mode);
}

int file_sync_dir(const char *dir)
{
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? -errno : sync_names(fd);
}

int file_sync_parent(const char *path)
{
    const char *name;
    AUTO_CLOSE int dir = open_parent(path, &name);

    return dir < 0 ? dir : sync_names(dir);
}

int file_dir_in_use(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int found = 0;

    if (!d)
        return -errno;
    while (!found && (e = readdir(d)))
        found =
            strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "lost+found");
    closedir(d);
    return found;
}
