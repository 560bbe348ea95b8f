// SPDX-License-Identifier: Apache-2.0
/*
 * Key files. Loading opens without blocking (the path may name a FIFO), looks at what was opened
 * rather than at the path, reads a bounded number of bytes and parses one line of four words; every
 * way to fail ends in a sentence for people. Saving writes and syncs a new file and its directory;
 * a half-written one is removed. Copies of the secret are wiped from the stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"

#define MAGIC      "aifs-key-1"
#define LINE_BYTES 256u

/* Reads all of a regular file; its length or an error. */
static int read_regular(int fd, const char *path, char line[LINE_BYTES], mode_t *ret_mode,
                        char *err, size_t err_len)
{
    struct stat st;
    size_t len = 0;

    if (fstat(fd, &st) < 0) {
        int rc = -errno;

        snprintf(err, err_len, "key file %s: %s", path, err_text(rc));
        return rc;
    }
    if (!S_ISREG(st.st_mode)) {
        snprintf(err, err_len, "key file %s: not a regular file", path);
        return -AIFS_ECONFIG;
    }
    *ret_mode = st.st_mode & 07777;
    while (len < LINE_BYTES) {
        ssize_t n = read(fd, line + len, LINE_BYTES - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int rc = -errno;

            snprintf(err, err_len, "key file %s: read: %s", path, err_text(rc));
            return rc;
        }
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (int)len;
}

static int parse_secret(const char *hex, uint8_t secret[CRYPTO_KEY_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    if (strlen(hex) != 2 * CRYPTO_KEY_BYTES || strspn(hex, digits) != 2 * CRYPTO_KEY_BYTES)
        return -EINVAL;
    for (i = 0; i < CRYPTO_KEY_BYTES; i++)
        secret[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 |
                              (strchr(digits, hex[2 * i + 1]) - digits));
    return 0;
}

/* NULL, or what is wrong with the line; cuts it up. */
static const char *parse_line(char *line, size_t len, struct crypto_key *key)
{
    char *rest = line, *magic, *cluster, *role, *secret;

    if (len < strlen(MAGIC) || memcmp(line, MAGIC, strlen(MAGIC)) != 0) /* whatever else it is */
        return "does not start with \"" MAGIC "\"";
    if (len && line[len - 1] == '\n')
        len--;
    if (len >= LINE_BYTES - 1 || memchr(line, '\n', len) || memchr(line, '\0', len))
        return "not one line of text";
    line[len] = '\0';
    magic = strsep(&rest, " ");
    cluster = strsep(&rest, " ");
    role = strsep(&rest, " ");
    secret = strsep(&rest, " ");
    if (strcmp(magic, MAGIC) != 0)
        return "does not start with \"" MAGIC "\"";
    if (!secret || rest)
        return "not \"" MAGIC " CLUSTER-UUID ROLE SECRET\"";
    if (uuid_parse(cluster, &key->cluster))
        return "the cluster is not a UUID";
    if (crypto_role_parse(role, &key->role))
        return "the role is none of server, admin, client";
    if (parse_secret(secret, key->secret))
        return "the secret is not 64 lower-case hexadecimal digits";
    return NULL;
}

int crypto_key_load(const char *path, struct crypto_key *ret_key, char *err, size_t err_len)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char line[LINE_BYTES];
    struct crypto_key key;
    const char *wrong;
    mode_t mode = 0;
    int rc;

    if (fd < 0) {
        rc = -errno;
        snprintf(err, err_len, "key file %s: %s", path, err_text(rc));
        return rc;
    }
    rc = read_regular(fd, path, line, &mode, err, err_len);
    if (rc < 0)
        return rc;
    wrong = parse_line(line, (size_t)rc, &key);
    rc = wrong || (mode & 077) ? -AIFS_ECONFIG : 0;
    if (wrong)
        snprintf(err, err_len, "key file %s: %s", path, wrong);
    else if (rc < 0) /* of a key file only: whatever else it is may be meant to be read */
        snprintf(err, err_len, "key file %s: mode %04o lets others read it; run: chmod 600 %s",
                 path, (unsigned)mode, path);
    else
        *ret_key = key;
    OPENSSL_cleanse(line, sizeof line);
    OPENSSL_cleanse(&key, sizeof key);
    return rc;
}

static size_t format_line(const struct crypto_key *key, char line[LINE_BYTES])
{
    char cluster[UUID_TEXT_BYTES];
    size_t i, n;

    uuid_format(&key->cluster, cluster);
    n = (size_t)snprintf(line, LINE_BYTES, MAGIC " %s %s ", cluster, crypto_role_name(key->role));
    for (i = 0; i < CRYPTO_KEY_BYTES; i++)
        n += (size_t)snprintf(line + n, LINE_BYTES - n, "%02x", key->secret[i]);
    line[n++] = '\n';
    return n;
}

int crypto_key_save(const char *path, const struct crypto_key *key)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    char line[LINE_BYTES];
    int rc;

    if (fd < 0)
        return -errno;
    rc = file_write_all(fd, line, format_line(key, line));
    OPENSSL_cleanse(line, sizeof line);
    if (!rc && fsync(fd) < 0)
        rc = -errno;
    if (!rc)
        rc = file_sync_parent(path);
    if (rc) {
        errno = -rc;
        LOG_ERROR("key", "cannot write %s: %m", path);
        unlink(path);
    }
    return rc;
}
