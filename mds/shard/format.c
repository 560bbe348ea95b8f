/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a new file system, and the folder it is in.
 *
 * Happy path: the shard is made under another name, its first entry committed, then renamed:
 * whoever crashes before leaves nothing that looks like a file system. Failure modes: a folder with
 * anything else in it is left alone.
 */
#include "mds/shard/format.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"

char *shard_path(const char *dir, uint32_t id)
{
    return mem_printf("%s/shard%u", dir, id);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* 0: nothing in it but what an interrupted attempt and the lock may have left. */
static int dir_is_free(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return -errno;
    while (rc == 0 && (e = readdir(d))) {
        const char *n = e->d_name;
        size_t len = strlen(n);

        if (!strcmp(n, ".") || !strcmp(n, "..") || !strcmp(n, "lock") || !strcmp(n, "node") ||
            !strcmp(n, "key.id") || !strcmp(n, "lost+found") ||
            (len > 4 && !strcmp(n + len - 4, ".new")))
            continue;
        rc = strncmp(n, "shard", 5) ? -ENOTEMPTY : -EEXIST;
    }
    closedir(d);
    return rc;
}

static int node_write(const char *dir)
{
    AUTO_FREE char *path = mem_printf("%s/node", dir);
    char text[UUID_TEXT_BYTES];
    struct uuid id;
    int rc = path ? uuid_random(&id) : -ENOMEM;

    if (rc < 0)
        return rc;
    uuid_format(&id, text);
    text[UUID_TEXT_BYTES - 1] = '\n';
    return file_replace(path, text, UUID_TEXT_BYTES, 0640);
}

static int format_shard(const char *path, uint32_t id, const struct shard_format *f,
                        shard_exec_fn *const *exec)
{
    struct shard_options o = {
        .dir = path, .id = id, .store = {.create = true}, .sync = true, .exec = exec};
    struct shard_entry e;
    struct shard *s;
    int rc = shard_open(&o, &s);

    if (rc < 0)
        return rc;
    shard_entry_init(&e, SHARD_OP_FORMAT, f, NULL, NULL);
    rc = shard_run(s, &e);
    shard_entry_fini(&e);
    shard_close(s);
    return rc;
}

int shard_make(const char *dir, uint32_t id, const struct shard_format *f,
               shard_exec_fn *const *exec)
{
    AUTO_FREE char *path = shard_path(dir, id);
    AUTO_FREE char *fresh = mem_printf("%s/shard%u.new", dir, id);
    int rc;

    if (!path || !fresh)
        return -ENOMEM;
    if (mkdir(dir, 0750) < 0 && errno != EEXIST) {
        LOG_ERROR("format", "%s: %m", dir);
        return -errno;
    }
    rc = dir_is_free(dir);
    if (rc < 0)
        return rc;
    (void)nftw(fresh, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    rc = node_write(dir);
    if (rc == 0)
        rc = format_shard(fresh, id, f, exec);
    if (rc == 0 && rename(fresh, path) < 0)
        rc = -errno;
    return rc < 0 ? rc : file_sync_dir(dir);
}

int shard_dir_lock(const char *dir, int *ret_fd)
{
    AUTO_FREE char *path = mem_printf("%s/lock", dir);
    char pid[24] = "";
    ssize_t n;
    int fd;

    if (!path)
        return -ENOMEM;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        int rc = -errno;

        if (rc == -ENOENT)
            LOG_ERROR("format",
                      "%s: no such directory; a new file system is made with --mds.format=yes",
                      dir);
        else
            LOG_ERROR("format", "%s: %m", path);
        return rc;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        n = pread(fd, pid, sizeof(pid) - 1, 0);
        LOG_ERROR("format", "%s is in use by another process%s%.*s", dir, n > 0 ? ", " : "",
                  n > 0 ? (int)strcspn(pid, "\n") : 0, pid);
        close(fd);
        return -EBUSY;
    }
    n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) < 0)
        LOG_WARN("format", "%s: %m", path);
    *ret_fd = fd;
    return 0;
}

int shard_dir_node(const char *dir, struct uuid *ret_node)
{
    AUTO_FREE char *path = mem_printf("%s/node", dir);
    char text[UUID_TEXT_BYTES] = "";
    int rc;

    if (!path)
        return -ENOMEM;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT) { /* a folder that was loaded from a dump: a server of its own */
        rc = node_write(dir);
        return rc < 0 ? rc : shard_dir_node(dir, ret_node);
    }
    if (fd < 0 || read(fd, text, UUID_TEXT_BYTES - 1) < 0) {
        rc = -errno;
        LOG_ERROR("format", "%s: cannot read it: %m", path);
        return rc;
    }
    rc = uuid_parse(text, ret_node);
    if (rc < 0)
        LOG_ERROR("format", "%s: not an identity", path);
    return rc;
}
