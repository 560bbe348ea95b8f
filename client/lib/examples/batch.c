/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch SOURCE KEY_FILE PATH: writes 16 MiB with eight requests under way, makes them durable, and
 * reads them back the same way, from poll(2).
 */
#include <aifs.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define PIECE  (256 * 1024)
#define PIECES 64
#define DEPTH  8

static struct aifs_io ios[DEPTH];

/* Keeps DEPTH requests going until all pieces are done. */
static int run(struct aifs_queue *q, struct aifs_file *f, int op)
{
    struct pollfd wait = {.fd = aifs_queue_fd(q), .events = POLLIN};
    int started = 0, ended = 0, n;

    while (ended < PIECES) {
        struct aifs_io *done[DEPTH];

        for (; started < PIECES && started - ended < DEPTH; started++) {
            struct aifs_io *io = started < DEPTH ? &ios[started] : NULL;

            for (int k = 0; !io; k++) /* one that is not under way */
                io = ios[k].result ? &ios[k] : NULL;
            if (op == AIFS_WRITE)
                memset(io->buf, started, PIECE);
            io->file = f;
            io->op = op;
            io->len = PIECE;
            io->offset = (off_t)started * PIECE;
            io->result = 0;
            if (aifs_submit(q, &io, 1))
                return -1;
        }
        if (poll(&wait, 1, -1) < 0)
            return -1;
        n = aifs_wait(q, done, 1, DEPTH, 0);
        for (int k = 0; k < n; k++) {
            const unsigned char *bytes = done[k]->buf;

            if (done[k]->result != PIECE ||
                (op == AIFS_READ && bytes[PIECE - 1] != done[k]->offset / PIECE % 256)) {
                fprintf(stderr, "at %lld: %zd\n", (long long)done[k]->offset, done[k]->result);
                return -1;
            }
        }
        ended += n;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct aifs_buffer *buffers[DEPTH];
    struct aifs_queue *q;
    struct aifs_file *f;
    struct aifs *fs;
    char options[512];
    int failed = 1;

    if (argc != 4) {
        fprintf(stderr, "usage: batch SOURCE KEY_FILE PATH\n");
        return 2;
    }
    snprintf(options, sizeof options, "key_file=%s", argv[2]);
    if (aifs_mount(argv[1], options, &fs)) {
        fprintf(stderr, "%s\n", aifs_mount_error());
        return 1;
    }
    q = aifs_queue_create(fs);
    f = aifs_open(fs, argv[3], O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int k = 0; k < DEPTH; k++) {
        buffers[k] = aifs_buffer_get(fs, PIECE, AIFS_MEMORY_HOST);
        ios[k].buf = buffers[k] ? aifs_buffer_data(buffers[k]) : NULL;
    }
    if (q && f && !run(q, f, AIFS_WRITE) && !aifs_fsync(f) && !run(q, f, AIFS_READ))
        failed = 0;
    else
        fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
    for (int k = 0; k < DEPTH; k++)
        aifs_buffer_put(buffers[k]);
    if (f)
        failed |= aifs_close(f) != 0;
    if (q)
        aifs_queue_destroy(q);
    return aifs_unmount(fs) || failed;
}
