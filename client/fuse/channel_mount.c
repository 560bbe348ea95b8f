/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounting without a helper. The descriptor of /dev/fuse is the connection; the kernel queues INIT
 * on it before mount(2) returns. As with libfuse, set-id bits and devices count only where the
 * options say so.
 *
 * Fails: no /dev/fuse, no privilege, a mount point that is none, options that the kernel refuses.
 */
#include "client/fuse/channel_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/fuse/channel.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"

#define MOUNT_DATA_MAX 4095u /* of which mount(2) takes notice: a page */

static const struct {
    const char *word;
    unsigned long flag;
    bool clear;
} words_of_mount[] = {{"rw", MS_RDONLY, true},           {"ro", MS_RDONLY, false},
                      {"suid", MS_NOSUID, true},         {"nosuid", MS_NOSUID, false},
                      {"dev", MS_NODEV, true},           {"nodev", MS_NODEV, false},
                      {"exec", MS_NOEXEC, true},         {"noexec", MS_NOEXEC, false},
                      {"async", MS_SYNCHRONOUS, true},   {"sync", MS_SYNCHRONOUS, false},
                      {"atime", MS_NOATIME, true},       {"noatime", MS_NOATIME, false},
                      {"diratime", MS_NODIRATIME, true}, {"nodiratime", MS_NODIRATIME, false},
                      {"dirsync", MS_DIRSYNC, false}};

static void add_word(const char *word, size_t len, unsigned long *flags, struct strbuf *data)
{
    for (unsigned i = 0; i < ARRAY_LEN(words_of_mount); i++) {
        if (strlen(words_of_mount[i].word) != len || memcmp(words_of_mount[i].word, word, len) != 0)
            continue;
        if (words_of_mount[i].clear)
            *flags &= ~words_of_mount[i].flag;
        else
            *flags |= words_of_mount[i].flag;
        return;
    }
    strbuf_append(data, ",", 1);
    strbuf_append(data, word, len);
}

void channel_mount_flags(const char *words, unsigned long *flags, struct strbuf *data)
{
    while (*words) {
        bool quoted = false;
        size_t len = 0;

        for (; words[len] && (quoted || words[len] != ','); len++) {
            if (words[len] == '"')
                quoted = !quoted;
        }
        if (len)
            add_word(words, len, flags, data);
        words += len + (words[len] == ',');
    }
}

int channel_mount(const char *source, const char *dir, const char *words, int *ret_fd, char *err,
                  size_t err_len)
{
    unsigned long flags = MS_NOSUID | MS_NODEV;
    struct strbuf data;
    struct stat st;
    AUTO_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;

    if (fd < 0) {
        rc = -errno;
        snprintf(err, err_len, "/dev/fuse: %s", err_text(rc));
        return rc;
    }
    if (stat(dir, &st) != 0) {
        rc = -errno;
        snprintf(err, err_len, "cannot mount %s: %s", dir, err_text(rc));
        return rc;
    }
    strbuf_init(&data);
    strbuf_printf(&data,
                  "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions,allow_other,"
                  "max_read=%u",
                  fd, st.st_mode & S_IFMT, getuid(), getgid(), CHANNEL_IO_MAX);
    channel_mount_flags(words ? words : "", &flags, &data);
    if (strbuf_failed(&data))
        rc = -ENOMEM;
    else if (data.len > MOUNT_DATA_MAX)
        rc = -E2BIG; /* it would cut them */
    else if (mount(source, dir, "fuse.aifs", flags, data.data) != 0)
        rc = -errno;
    strbuf_fini(&data);
    if (rc != 0) {
        snprintf(err, err_len, "cannot mount %s: %s", dir,
                 rc == -E2BIG ? "the options for the kernel are too long" : err_text(rc));
        return rc;
    }
    *ret_fd = fd;
    fd = -1;
    return 0;
}
