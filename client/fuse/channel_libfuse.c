/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel on libfuse's low-level API: where the own one cannot be had, that is for whoever is
 * not root and mounts with the help of fusermount3.
 *
 * libfuse's own loops are not used. Reads and writes of its descriptor go through functions of
 * ours, for two reasons: messages are received into buffers laid out for us, and the answer to INIT
 * gets the flags that libfuse 3.14 does not know (HANDLE_KILLPRIV_V2, without which the kernel asks
 * for an extended attribute before every write). Replies are sent as bytes (channel_reply.c), since
 * libfuse 3.14 has no field for parallel direct writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/fuse/libfuse_int.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"

static ssize_t io_read(int fd, void *buf, size_t len, void *user UNUSED)
{
    return read(fd, buf, len);
}

/* Answers to INIT pass here with flags added; everything else as it is. */
static ssize_t io_writev(int fd, struct iovec *iov, int count, void *user)
{
    struct channel *c = user;
    struct wire_init_out out;
    struct iovec patched[2];

    if (LIKELY(!c->init_reply) || count != 2 || iov[1].iov_len > sizeof(out))
        return writev(fd, iov, count);
    c->init_reply = false;
    memset(&out, 0, sizeof(out));
    memcpy(&out, iov[1].iov_base, iov[1].iov_len);
    if (c->killpriv) {
        out.flags |= (uint32_t)WIRE_HANDLE_KILLPRIV_V2;
        out.flags &= ~(uint32_t)WIRE_HANDLE_KILLPRIV;
    }
    if (c->direct_mmap) {
        out.flags |= (uint32_t)WIRE_INIT_EXT;
        out.flags2 |= (uint32_t)(WIRE_DIRECT_IO_ALLOW_MMAP >> 32);
    }
    patched[0] = iov[0];
    patched[1].iov_base = &out;
    patched[1].iov_len = iov[1].iov_len;
    return writev(fd, patched, 2);
}

static int session_mount(struct channel *c, char *err, size_t err_len)
{
    const struct fuse_custom_io io = {.read = io_read, .writev = io_writev};
    int fd, rc;

    if (fuse_session_mount(c->session, c->mountpoint) != 0) {
        snprintf(err, err_len, "cannot mount %s: %s", c->mountpoint,
                 errno ? err_text(-errno) : "the kernel refused (see above)");
        return -EIO;
    }
    fd = fuse_session_fd(c->session);
    rc = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ? -errno : 0;
    if (rc == 0)
        rc = fuse_session_custom_io(c->session, &io, fd);
    c->watch.fd = fd;
    if (rc != 0) {
        snprintf(err, err_len, "/dev/fuse: %s", err_text(rc));
        fuse_session_unmount(c->session);
    }
    return rc;
}

/* A comma or backslash in a mount option's value is written with a backslash. */
static char *escaped(const char *value)
{
    char *out = mem_alloc(2 * strlen(value) + 1), *o = out;

    for (; out && *value; value++) {
        if (*value == ',' || *value == '\\')
            *o++ = '\\';
        *o++ = *value;
    }
    if (out)
        *o = '\0';
    return out;
}

static int session_create(struct channel *c, char *err, size_t err_len)
{
    AUTO_FREE char *source = escaped(c->o.source);
    char *text = source ? mem_printf("fsname=%s,subtype=aifs,default_permissions,max_read=%u%s%s%s",
                                     source, CHANNEL_IO_MAX, geteuid() == 0 ? ",allow_other" : "",
                                     c->o.mount_flags && *c->o.mount_flags ? "," : "",
                                     c->o.mount_flags ? c->o.mount_flags : "")
                        : NULL;
    char *argv[] = {(char *)"aifs-mount", (char *)"-o", text, (char *)"-d", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(c->o.debug ? 4 : 3, argv);

    if (text)
        c->session = fuse_session_new(&args, &channel_libfuse_ops, sizeof(channel_libfuse_ops), c);
    fuse_opt_free_args(&args);
    mem_free(text);
    if (c->session)
        return 0;
    snprintf(err, err_len, "libfuse does not accept the mount options");
    return text ? -EINVAL : -ENOMEM;
}

static int libfuse_open(struct channel *c, char *err, size_t err_len)
{
    int rc = session_create(c, err, err_len);

    return rc == 0 ? session_mount(c, err, err_len) : rc;
}

static int libfuse_receive(struct channel *c)
{
    struct fuse_buf message = {.mem = channel_buf_message(c->message_buf)};
    int n = fuse_session_receive_buf(c->session, &message);

    if (n <= 0)
        return n == 0 ? -ENODEV : n;
    message.size = (size_t)n;
    c->message = message.mem;
    fuse_session_process_buf(c->session, &message);
    return n;
}

static int libfuse_send(struct channel_req *q, int error, const struct iovec *iov, int n)
{
    return error ? fuse_reply_err(q->raw, error) : fuse_reply_iov(q->raw, iov, n);
}

static void libfuse_close(struct channel *c)
{
    if (!c->session)
        return;
    if (c->mounted)
        fuse_session_unmount(c->session);
    fuse_session_destroy(c->session);
}

const struct channel_transport channel_libfuse = {.name = "libfuse",
                                                  .open = libfuse_open,
                                                  .receive = libfuse_receive,
                                                  .send = libfuse_send,
                                                  .on_interrupt = libfuse_on_interrupt,
                                                  .close = libfuse_close};
