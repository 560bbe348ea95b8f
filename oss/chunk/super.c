// SPDX-License-Identifier: Apache-2.0
/*
 * The superblock as a few "name value" lines with a checksum over the lines before it, readable
 * with cat. The first line carries the format version and is looked at before the sum, so that a
 * later format gets its own clear error. Every number is checked; nothing else is trusted.
 */
#include "oss/chunk/super.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"

#define SUPER_BYTES_MAX 1024

static int super_parse(char *text, struct super *ret_super, char *err, size_t err_len)
{
    struct super s = {0};
    unsigned version, crc;
    char target[64], cluster[64], node[64];
    char *sum = strstr(text, "checksum ");

    if (sscanf(text, "aifs-target %u\n", &version) != 1) {
        snprintf(err, err_len, "not a superblock");
        return -AIFS_ECORRUPT;
    }
    if (version != SUPER_FORMAT_VERSION) {
        snprintf(err, err_len, "format version %u, this program knows only %u", version,
                 SUPER_FORMAT_VERSION);
        return -AIFS_EFORMAT;
    }
    if (!sum || sscanf(sum, "checksum %x\n", &crc) != 1 ||
        crc != crc32c(text, (size_t)(sum - text))) {
        snprintf(err, err_len, "the superblock's checksum is wrong");
        return -AIFS_ECORRUPT;
    }
    if (sscanf(text, "aifs-target %*u\nuuid %63s\ncluster %63s\nnode %63s\nid %u\npool %63s\n",
               target, cluster, node, &s.target_id, s.pool) != 5 ||
        uuid_parse(target, &s.target) || uuid_parse(cluster, &s.cluster) ||
        uuid_parse(node, &s.node)) {
        snprintf(err, err_len, "the superblock is malformed");
        return -AIFS_ECORRUPT;
    }
    *ret_super = s;
    return 0;
}

int super_load(const char *dir, struct super *ret_super, char *err, size_t err_len)
{
    char path[4096], text[SUPER_BYTES_MAX + 1];

    snprintf(path, sizeof path, "%s/target", dir);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int rc = -errno;
        snprintf(err, err_len, "%s: %s", path, err_text(rc));
        return rc;
    }
    ssize_t n = read(fd, text, SUPER_BYTES_MAX);
    if (n < 0) {
        int rc = -errno;
        snprintf(err, err_len, "%s: %s", path, err_text(rc));
        return rc;
    }
    text[n] = 0;
    return super_parse(text, ret_super, err, err_len);
}

static int super_text(const struct super *s, char *text, size_t size)
{
    char target[UUID_TEXT_BYTES], cluster[UUID_TEXT_BYTES], node[UUID_TEXT_BYTES];
    int len;

    uuid_format(&s->target, target);
    uuid_format(&s->cluster, cluster);
    uuid_format(&s->node, node);
    len = snprintf(text, size, "aifs-target %u\nuuid %s\ncluster %s\nnode %s\nid %u\npool %s\n",
                   SUPER_FORMAT_VERSION, target, cluster, node, s->target_id, s->pool);
    return len +
           snprintf(text + len, size - (size_t)len, "checksum %08x\n", crc32c(text, (size_t)len));
}

int super_save_at(int dir_fd, const char *dir, const struct super *s)
{
    char text[SUPER_BYTES_MAX];
    int len = super_text(s, text, sizeof text);
    int rc = file_replace_at(dir_fd, "target", text, (size_t)len, 0640);

    if (rc)
        LOG_ERROR("target", "%s/target: cannot write the superblock: %s", dir, err_text(rc));
    return rc;
}

int super_save(const char *dir, const struct super *s)
{
    AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        int rc = -errno;
        LOG_ERROR("target", "%s: %m", dir);
        return rc;
    }
    return super_save_at(fd, dir, s);
}

/* Empty but for what belongs to a file system's own root, and our lock. */
static int super_check_empty(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int rc = 0;

    if (!d)
        return -errno;
    while ((e = readdir(d))) {
        const char *n = e->d_name;

        if (strcmp(n, ".") && strcmp(n, "..") && strcmp(n, "lost+found") && strcmp(n, "lock") &&
            strcmp(n, "seg") && strcmp(n, "index") && strcmp(n, "target.new"))
            rc = strcmp(n, "target") ? -ENOTEMPTY : -EEXIST;
    }
    closedir(d);
    return rc;
}

int super_check_new(const char *dir, const char *pool, char *err, size_t err_len)
{
    int rc;

    if (!*pool || strlen(pool) >= SUPER_POOL_BYTES || strpbrk(pool, " \t\n")) {
        snprintf(err, err_len, "'%s' is not a pool name", pool);
        return -EINVAL;
    }
    rc = super_check_empty(dir);
    if (!rc && access(dir, W_OK | X_OK) < 0)
        rc = -errno;
    if (rc)
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -ENOTEMPTY ? "the directory is not empty"
                 : rc == -ENOENT  ? "there is no such directory; is its disk mounted?"
                                  : err_text(rc));
    return rc;
}

static int super_make_dir(const char *dir, const char *name)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    /* Left by a format that was interrupted: empty. Anything in it is not ours to throw away. */
    if (rmdir(path) < 0 && errno != ENOENT)
        return -errno;
    return mkdir(path, 0750) < 0 ? -errno : 0;
}

int super_format(const char *dir, const struct uuid *cluster, const struct uuid *node,
                 const char *pool, char *err, size_t err_len)
{
    struct super s = {.cluster = *cluster, .node = *node};
    int rc;

    rc = super_check_new(dir, pool, err, err_len);
    if (rc)
        return rc;
    memcpy(s.pool, pool, strlen(pool));
    if ((rc = super_make_dir(dir, "seg")) || (rc = super_make_dir(dir, "index")) ||
        (rc = uuid_random(&s.target)) || (rc = super_save(dir, &s)))
        snprintf(err, err_len, "%s: %s", dir,
                 rc == -ENOTEMPTY ? "the directory is not empty" : err_text(rc));
    return rc;
}

int super_lock(const char *dir, int *ret_fd)
{
    char path[4096];
    int fd, rc;

    snprintf(path, sizeof path, "%s/lock", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        rc = -errno;
        LOG_ERROR("target", "%s: %m", path);
        return rc;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
        LOG_ERROR("target", "%s: %s", path,
                  rc == -EBUSY ? "another server has this target open" : err_text(rc));
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}
