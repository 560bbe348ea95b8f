/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes of any length: cut into pieces of at most 1 MiB, up to 32 of them under way at
 * once, on all servers. Reads land in the caller's memory. An append is one piece, so that nobody
 * else's bytes come between its own: up to 16 MiB, and what is longer goes one after the other.
 *
 * The first error ends it when the pieces under way are done: a write that has stored what comes
 * before it is short. A short piece of a read is the end of file.
 */
#include "client/lib/lib_int.h"

#include <fcntl.h>

#define PIECE_BYTES  CORE_IO_MAX
#define APPEND_BYTES CORE_APPEND_MAX
#define LARGE_BYTES  (64u * KIB)
#define DIRECT_BYTES (2u * MIB) /* so large a read keeps all servers busy by itself */
#define FLYING_BYTES (4u * MIB) /* so do large ones with so much under way together, */
#define WRITE_BYTES  (8u * MIB) /* or one write of so much */

static void go_on(struct lib_io *io);

struct lib_io *lib_io_new(struct aifs_file *f, int op, void *buf, size_t len, uint64_t offset)
{
    unsigned n = (unsigned)MIN(len / PIECE_BYTES + 2, LIB_PIECES_MAX);
    struct lib_io *io = mem_alloc(sizeof *io + n * sizeof io->pieces[0]);
    unsigned k;

    if (!io)
        return NULL;
    *io = (struct lib_io){
        .file = f, .op = op, .buf = buf, .len = len, .offset = offset, .limit = len, .n_pieces = n};
    for (k = 0; k < n; k++) {
        io->pieces[k].used = false;
        io->pieces[k].io = io;
    }
    return io;
}

ssize_t lib_io_result(const struct lib_io *io)
{
    bool some = io->op == AIFS_WRITE && io->limit;

    return io->error && !some ? io->error : (ssize_t)io->limit;
}

static void piece_over(struct core_req *q, int status)
{
    struct lib_piece *p = q->arg;
    struct lib_io *io = p->io;
    uint32_t bytes = status ? 0 : io->op == AIFS_READ ? q->out.read.bytes : q->out.write.bytes;

    if (!status && io->op == AIFS_READ)
        core_read_done(q);
    if (status && !io->error)
        io->error = status;
    if (bytes < p->len) /* all before it is there */
        io->limit = MIN(io->limit, p->offset + bytes);
    p->used = false;
    io->pending--;
    if (!io->starting)
        go_on(io);
}

/* Does the caller keep all servers busy, with this one and what else is under way? */
static bool keeps_busy(const struct lib_io *io)
{
    uint64_t flying = atomic_load_explicit(&io->file->fs->drive.flying, memory_order_relaxed);

    if (io->op == AIFS_READ ? io->many || io->len >= DIRECT_BYTES : io->len >= WRITE_BYTES)
        return true;
    return io->len >= PIECE_BYTES && flying >= FLYING_BYTES;
}

static bool appends(const struct lib_io *io)
{
    return io->op == AIFS_WRITE && io->file->flags & O_APPEND;
}

static void piece_start(struct lib_io *io, struct lib_piece *p)
{
    struct aifs *fs = io->file->fs;
    uint64_t at = io->offset + io->next;

    p->used = true;
    p->offset = io->next;
    p->len = (uint32_t)MIN(io->len - io->next,
                           appends(io) ? APPEND_BYTES
                                       : PIECE_BYTES - at % PIECE_BYTES); /* where blocks are cut */
    io->next += p->len;
    io->pending++;
    lib_req(fs, &p->q, piece_over, p);
    p->q.direct = keeps_busy(io);
    if (io->op == AIFS_READ) {
        core_read(fs->core, &p->q, io->file->file, at, p->len, io->buf + p->offset);
        return;
    }
    p->iov = (struct iovec){io->buf + p->offset, p->len};
    core_write(fs->core, &p->q, io->file->file, at, &p->iov, 1, p->len);
}

static void go_on(struct lib_io *io)
{
    unsigned at_once = appends(io) ? 1 : io->n_pieces;
    unsigned k;

    io->starting = true; /* pieces that end at once do not come back here */
    for (k = 0; k < io->n_pieces; k++) {
        while (!io->pieces[k].used && io->pending < at_once && !io->error && io->next < io->limit)
            piece_start(io, &io->pieces[k]);
    }
    io->starting = false;
    if (!io->pending)
        io->over(io);
}

void lib_io_start(struct lib_io *io)
{
    go_on(io);
}

/* ---- blocking ---- */

static void blocking_over(struct lib_io *io)
{
    lib_call_done((struct lib_call *)(uintptr_t)io->cookie, 0);
}

static void blocking_begin(struct lib_call *c)
{
    lib_io_start(c->out);
}

int lib_io_check(const struct aifs_file *f, int op, const void *buf, size_t len, off_t offset)
{
    int refused = op == AIFS_READ ? O_WRONLY : O_RDONLY;

    if ((f->flags & O_ACCMODE) == refused)
        return -EBADF;
    if (offset < 0 || len > SSIZE_MAX)
        return -EINVAL;
    return len && !buf ? -EFAULT : 0;
}

static ssize_t blocking(struct aifs_file *f, int op, void *buf, size_t len, off_t offset)
{
    struct lib_call c;
    struct lib_io *io;
    ssize_t n;
    int err = lib_io_check(f, op, buf, len, offset);

    if (err)
        return lib_errno(err);
    io = lib_io_new(f, op, buf, len, (uint64_t)offset);
    if (!io)
        return lib_errno(-ENOMEM);
    lib_file_call_init(&c, f, blocking_begin);
    io->over = blocking_over;
    io->cookie = (uint64_t)(uintptr_t)&c;
    c.large = len >= LARGE_BYTES;
    c.out = io;
    err = lib_call_run(&c);
    n = err ? err : lib_io_result(io);
    mem_free(io);
    if (n >= 0)
        return n;
    return lib_errno((int)n);
}

ssize_t aifs_pread(struct aifs_file *f, void *buf, size_t len, off_t offset)
{
    return blocking(f, AIFS_READ, buf, len, offset);
}

ssize_t aifs_pwrite(struct aifs_file *f, const void *buf, size_t len, off_t offset)
{
    return blocking(f, AIFS_WRITE, (void *)(uintptr_t)buf, len, offset);
}

/* An append has one place for all of it. */
static ssize_t append_gathered(struct aifs_file *f, const struct iovec *iov, int n_iov, size_t len)
{
    uint8_t *all = mem_alloc(MAX(len, (size_t)1)), *at = all;
    ssize_t n;

    if (!all)
        return lib_errno(-ENOMEM);
    for (int k = 0; k < n_iov; k++) {
        if (iov[k].iov_len)
            memcpy(at, iov[k].iov_base, iov[k].iov_len);
        at += iov[k].iov_len;
    }
    n = aifs_pwrite(f, all, len, 0);
    mem_free(all);
    return n;
}

ssize_t aifs_pwritev(struct aifs_file *f, const struct iovec *iov, int n_iov, off_t offset)
{
    ssize_t sum = 0;
    size_t len = 0;
    int k;

    if (n_iov < 0 || n_iov > IOV_MAX)
        return lib_errno(-EINVAL);
    if (n_iov && !iov)
        return lib_errno(-EFAULT);
    for (k = 0; k < n_iov; k++) {
        int err = lib_io_check(f, AIFS_WRITE, iov[k].iov_base, iov[k].iov_len, offset);

        if (err || iov[k].iov_len > SSIZE_MAX - len)
            return lib_errno(err ? err : -EINVAL);
        len += iov[k].iov_len;
    }
    if (n_iov > 1 && f->flags & O_APPEND)
        return append_gathered(f, iov, n_iov, len);
    for (k = 0; k < n_iov; k++) {
        ssize_t n = aifs_pwrite(f, iov[k].iov_base, iov[k].iov_len, offset + sum);

        if (n < 0)
            return sum ? sum : n;
        sum += n;
        if ((size_t)n < iov[k].iov_len)
            break;
    }
    return sum;
}
