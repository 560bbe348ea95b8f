/* SPDX-License-Identifier: Apache-2.0 */
/* The file `key.id`: one line of cluster and fingerprint. */
#include "mds/dir_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#define TAG        "mds"
#define LINE_BYTES (UUID_TEXT_BYTES + CRYPTO_FINGERPRINT_BYTES)

static void line_of(const struct crypto_key *key, char line[LINE_BYTES])
{
    char cluster[UUID_TEXT_BYTES], print[CRYPTO_FINGERPRINT_BYTES];

    uuid_format(&key->cluster, cluster);
    crypto_key_fingerprint(key, print);
    snprintf(line, LINE_BYTES, "%s %s", cluster, print);
}

/* 0, -ENOENT, or why it cannot be read; what is damaged is another line. */
static int line_read(const char *path, char line[LINE_BYTES])
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_BYTES - 1);

    if (n < 0)
        return -errno;
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

static int line_write(const char *path, const char *line)
{
    char text[LINE_BYTES + 1];
    int len = snprintf(text, sizeof(text), "%s\n", line);

    return file_replace(path, text, (size_t)len, 0640);
}

void dir_key_check(const char *dir, const struct crypto_key *key, const char *key_file)
{
    AUTO_FREE char *path = mem_printf("%s/key.id", dir);
    char now[LINE_BYTES], first[LINE_BYTES];
    int rc = path ? line_read(path, first) : -ENOMEM;

    line_of(key, now);
    if (rc == -ENOENT)
        rc = line_write(path, now);
    else if (rc == 0 && strcmp(first, now) != 0)
        LOG_WARN(TAG,
                 "%s was served with another key (cluster and fingerprint %s) before than %s "
                 "(%s): storage servers, mounts and commands that have the other one are refused. "
                 "If that is meant: remove %s",
                 dir, first, key_file, now, path);
    if (rc < 0)
        LOG_WARN(TAG, "%s/key.id: with which key it is served is not noted: %s", dir,
                 strerror(-rc));
}

void dir_key_forget(const char *dir)
{
    AUTO_FREE char *path = mem_printf("%s/key.id", dir);

    if (path && unlink(path) < 0 && errno != ENOENT)
        LOG_WARN(TAG, "%s: %m", path);
}
