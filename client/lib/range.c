/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of files: fallocate, where data and holes are, copying, advice. A blocking call each. */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct fallocate_args {
    struct aifs_file *file;
    int mode;
    uint64_t offset, len;
};

static void fallocate_begin(struct lib_call *c)
{
    const struct fallocate_args *a = c->arg;

    core_fallocate(c->fs->core, &c->q, a->file->file, a->mode, a->offset, a->len);
}

int aifs_fallocate(struct aifs_file *f, int mode, off_t offset, off_t len)
{
    struct fallocate_args a = {f, mode, (uint64_t)offset, (uint64_t)len};
    struct lib_call c;

    if (offset < 0 || len <= 0)
        return lib_errno(-EINVAL);
    lib_file_call_init(&c, f, fallocate_begin);
    c.arg = &a;
    return lib_errno(lib_call_run(&c));
}

struct advise_args {
    struct aifs_file *file;
    uint64_t offset, len;
    enum core_advice advice;
};

static void advise_begin(struct lib_call *c)
{
    const struct advise_args *a = c->arg;

    core_advise(a->file->file, a->offset, a->len, a->advice);
    lib_call_done(c, 0);
}

int aifs_advise(struct aifs_file *f, off_t offset, off_t len, int advice)
{
    static const enum core_advice known[] = {
        [POSIX_FADV_NORMAL] = CORE_ADVICE_NORMAL,
        [POSIX_FADV_RANDOM] = CORE_ADVICE_RANDOM,
        [POSIX_FADV_SEQUENTIAL] = CORE_ADVICE_SEQUENTIAL,
        [POSIX_FADV_WILLNEED] = CORE_ADVICE_WILLNEED,
        [POSIX_FADV_DONTNEED] = CORE_ADVICE_DONTNEED,
        [POSIX_FADV_NOREUSE] = CORE_ADVICE_NORMAL,
    };
    struct advise_args a = {.file = f, .offset = (uint64_t)offset, .len = (uint64_t)len};
    struct lib_call c;

    if (offset < 0 || len < 0 || advice < 0 || (size_t)advice >= ARRAY_LEN(known))
        return lib_errno(-EINVAL);
    a.advice = known[advice];
    lib_file_call_init(&c, f, advise_begin);
    c.arg = &a;
    return lib_errno(lib_call_run(&c));
}

static void seek_begin(struct lib_call *c)
{
    const struct aifs_file *f = c->arg;

    core_seek(c->fs->core, &c->q, f->file, c->n1, c->n2 != 0);
}

off_t aifs_seek(struct aifs_file *f, off_t offset, int whence)
{
    struct lib_call c;
    int err;

    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return lib_errno(-EINVAL);
    if (offset < 0)
        return lib_errno(-ENXIO);
    lib_file_call_init(&c, f, seek_begin);
    c.arg = f;
    c.n1 = (uint64_t)offset;
    c.n2 = whence == SEEK_HOLE;
    err = lib_call_run(&c);
    return err ? lib_errno(err) : (off_t)c.q.out.offset;
}

struct copy_args {
    struct aifs_file *from, *to;
    uint64_t from_offset, to_offset, len;
};

static void copy_begin(struct lib_call *c)
{
    const struct copy_args *a = c->arg;

    core_copy(c->fs->core, &c->q, a->from->file, a->from_offset, a->to->file, a->to_offset, a->len);
}

static int copy_once(struct copy_args *a, uint64_t *ret_copied)
{
    struct lib_call c;
    int err = lib_file_usable(a->to);

    *ret_copied = 0;
    if (err)
        return err;
    lib_file_call_init(&c, a->from, copy_begin);
    c.arg = a;
    err = lib_call_run(&c);
    *ret_copied = err ? 0 : c.q.out.copied;
    return err;
}

static bool overlaps(const struct copy_args *a)
{
    return a->from->ino == a->to->ino && a->from_offset < a->to_offset + a->len &&
           a->to_offset < a->from_offset + a->len;
}

/* len may be more than there is, as large as it gets: who copies all the rest says so. What is
 * behind the end overlaps with nothing. */
static int copy_bound(struct copy_args *a)
{
    uint64_t most = SSIZE_MAX - MAX(a->from_offset, a->to_offset);
    struct stat st;

    if (most)
        a->len = MIN(a->len, most);
    if (!overlaps(a))
        return 0;
    if (aifs_fstat(a->from, &st))
        return -1;
    a->len = MIN(a->len, (uint64_t)st.st_size - MIN((uint64_t)st.st_size, a->from_offset));
    return 0;
}

ssize_t aifs_copy_file_range(struct aifs_file *from, off_t from_offset, struct aifs_file *to,
                             off_t to_offset, size_t len)
{
    struct copy_args a = {from, to, (uint64_t)from_offset, (uint64_t)to_offset, len};
    uint64_t n = 0, sum = 0;
    int err;

    if (from_offset < 0 || to_offset < 0 || from->fs != to->fs)
        return lib_errno(from->fs != to->fs ? -EXDEV : -EINVAL);
    if (copy_bound(&a))
        return -1;
    do {
        err = copy_once(&a, &n);
        sum += n;
        a.from_offset += n;
        a.to_offset += n;
        a.len -= n;
    } while (!err && n && a.len);
    return err && !sum ? lib_errno(err) : (ssize_t)sum;
}
