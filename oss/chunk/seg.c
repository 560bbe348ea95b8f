// SPDX-License-Identifier: Apache-2.0
/*
 * Segment files of a target. All are opened at start; one is made when the allocator backs a group
 * behind the last. Fails with the errno of the file system, logged here with the file's name;
 * ENOSPC is an expected outcome and is not logged.
 */
#include "oss/chunk/seg.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/fault/fault.h"

static uint32_t slots_per_file(unsigned class)
{
    return (uint32_t)(SEG_BYTES >> class);
}

static void seg_path(const struct seg_set *s, unsigned class, uint32_t n, char *out, size_t len)
{
    snprintf(out, len, "%s/seg/%u.%06u", s->at, class, n);
}

static int seg_file_open(struct seg_set *s, unsigned class, uint32_t n, int flags)
{
    struct seg_class *c = &s->classes[class - CHUNK_CLASS_MIN];
    char path[4096];
    struct seg_file *f;
    int rc;

    if (n >= c->n_files) {
        struct seg_file **files = mem_realloc(c->files, (n + 1) * sizeof *files);

        if (!files)
            return -ENOMEM;
        memset(files + c->n_files, 0, (n + 1 - c->n_files) * sizeof *files);
        c->files = files;
        c->n_files = n + 1;
    }
    f = mem_zalloc(sizeof *f);
    if (!f)
        return -ENOMEM;
    seg_path(s, class, n, path, sizeof path);
    rc = fio_open(path, O_RDWR | flags, 0640, s->engine, &f->file);
    if (!rc && f->file.direct && f->file.align_bytes > CHUNK_BLOCK) {
        LOG_INFO(s->tag, "%s/seg/%u.%06u wants %u byte alignment: plain I/O", s->dir, class, n,
                 f->file.align_bytes);
        fio_close(&f->file);
        rc = fio_open(path, O_RDWR | flags, 0640, "plain", &f->file);
    }
    if (rc) {
        LOG_ERROR(s->tag, "%s/seg/%u.%06u: cannot open: %s", s->dir, class, n, err_text(rc));
        mem_free(f);
        return rc;
    }
    fio_file_add(s->fio, &f->file);
    c->files[n] = f;
    s->n_open++;
    return 0;
}

static void seg_file_close(struct seg_set *s, struct seg_file *f)
{
    if (f->map)
        munmap(f->map, SEG_BYTES);
    fio_file_remove(s->fio, &f->file);
    fio_close(&f->file);
    mem_free(f);
    s->n_open--;
}

static int seg_sync_dir(const struct seg_set *s)
{
    char dir[4096];
    int rc;

    snprintf(dir, sizeof dir, "%s/seg", s->at);
    rc = FAULT("chunk.seg.sync") ? -EIO : file_sync_dir(dir);
    if (rc)
        LOG_ERROR(s->tag, "%s/seg: cannot sync the directory: %s", s->dir, err_text(rc));
    return rc;
}

/* A file that may not be there after a power cut is not used: it is made once more. */
static int seg_file_create(struct seg_set *s, unsigned class, uint32_t n)
{
    struct seg_class *c = &s->classes[class - CHUNK_CLASS_MIN];
    int rc = seg_file_open(s, class, n, O_CREAT);

    if (rc)
        return rc;
    if (fsync(c->files[n]->file.fd) < 0) {
        rc = -errno;
        LOG_ERROR(s->tag, "%s/seg/%u.%06u: fsync: %s", s->dir, class, n, err_text(rc));
    } else {
        rc = seg_sync_dir(s);
    }
    if (rc) {
        seg_file_close(s, c->files[n]);
        c->files[n] = NULL;
    }
    return rc;
}

static bool lives_on_tmpfs(const char *dir)
{
    struct statfs fs;

    return statfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

int seg_open(struct seg_set *s)
{
    char path[4096];
    struct dirent *e;
    DIR *d;
    int rc = 0;

    snprintf(path, sizeof path, "%s/seg", s->at);
    s->in_memory = lives_on_tmpfs(path);
    d = opendir(path);
    if (!d) {
        rc = -errno;
        LOG_ERROR(s->tag, "%s/seg: %m", s->dir);
        return rc;
    }
    while (!rc && (e = readdir(d))) {
        unsigned class, n;
        int end = 0;

        if (e->d_name[0] == '.')
            continue;
        if (sscanf(e->d_name, "%u.%u%n", &class, &n, &end) != 2 || e->d_name[end] ||
            class < CHUNK_CLASS_MIN || class > CHUNK_CLASS_MAX || n > 1000000) {
            LOG_WARN(s->tag, "%s/seg/%s is not a segment file: ignored", s->dir, e->d_name);
            continue;
        }
        rc = seg_file_open(s, class, n, 0);
    }
    closedir(d);
    /* A server that was killed may have made one, and have come no further. */
    return rc ? rc : seg_sync_dir(s);
}

void seg_close(struct seg_set *s)
{
    for (unsigned i = 0; i < SLOTS_CLASSES; i++) {
        struct seg_class *c = &s->classes[i];

        for (uint32_t n = 0; n < c->n_files; n++) {
            if (c->files[n])
                seg_file_close(s, c->files[n]);
        }
        mem_free(c->files);
        c->files = NULL;
        c->n_files = 0;
    }
}

struct seg_file *seg_of_slot(struct seg_set *s, struct chunk_slot slot, uint64_t *ret_offset)
{
    struct seg_class *c = &s->classes[slot.class - CHUNK_CLASS_MIN];
    uint32_t per = slots_per_file(slot.class), n = slot.number / per;

    if (n >= c->n_files || !c->files[n])
        return NULL;
    *ret_offset = (uint64_t)(slot.number % per) << slot.class;
    return c->files[n];
}

uint8_t *seg_map(struct seg_set *s, struct chunk_slot slot)
{
    uint64_t offset;
    struct seg_file *f = seg_of_slot(s, slot, &offset);
    void *map;

    if (!f || !s->in_memory)
        return NULL;
    if (!f->map) {
        map = mmap(NULL, SEG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->file.fd, 0);
        if (map == MAP_FAILED) {
            LOG_DEBUG(s->tag, "a segment file cannot be mapped: %m");
            return NULL;
        }
        f->map = map;
    }
    return f->map + offset;
}

static void unmap_pages(const struct seg_set *s, const struct seg_file *f, uint64_t offset,
                        uint64_t bytes)
{
    if (f && f->map && madvise(f->map + offset, bytes, MADV_DONTNEED) < 0)
        LOG_DEBUG(s->tag, "pages of a segment file stay mapped: %m");
}

void seg_unmap_slot(struct seg_set *s, struct chunk_slot slot)
{
    uint64_t offset = 0;
    const struct seg_file *f = seg_of_slot(s, slot, &offset);

    unmap_pages(s, f, offset, 1ull << slot.class);
}

uint32_t seg_slots_on_disk(const struct seg_set *s, unsigned class)
{
    const struct seg_class *c = &s->classes[class - CHUNK_CLASS_MIN];
    struct stat st;

    for (uint32_t n = c->n_files; n-- > 0;)
        if (c->files[n] && !fstat(c->files[n]->file.fd, &st) && st.st_size > 0)
            return n * slots_per_file(class) + (uint32_t)((uint64_t)st.st_size >> class);
    return 0;
}

static bool fs_has_room(const struct seg_set *s, int fd, uint64_t bytes)
{
    struct statvfs v;

    if (fstatvfs(fd, &v) < 0)
        return true;
    return (uint64_t)v.f_bavail * v.f_frsize >= bytes + s->fs_reserve_bytes;
}

/* For file systems without fallocate(): at least the size is there. */
static int seg_extend(int fd, uint64_t size)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    return (uint64_t)st.st_size < size && ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

static int seg_back(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    struct seg_set *s = arg;
    struct chunk_slot slot = {.number = first, .class = (uint8_t) class};
    uint64_t offset, bytes = (uint64_t)n << class;
    struct seg_file *f = seg_of_slot(s, slot, &offset);
    int rc;

    if (!f) {
        rc = seg_file_create(s, class, first / slots_per_file(class));
        if (rc)
            return rc;
        f = seg_of_slot(s, slot, &offset);
    }
    if (!fs_has_room(s, f->file.fd, bytes))
        return -ENOSPC;
    if (fallocate(f->file.fd, 0, (off_t)offset, (off_t)bytes) < 0) {
        rc = -errno;
        if (rc == -EOPNOTSUPP) /* then space is taken block by block, and writes may meet ENOSPC */
            rc = seg_extend(f->file.fd, offset + bytes);
        if (rc && rc != -ENOSPC)
            LOG_ERROR(s->tag, "cannot allocate %llu bytes in segment %u.%06u: %s",
                      (unsigned long long)bytes, class, first / slots_per_file(class),
                      err_text(rc));
        return rc;
    }
    f->dirty = true;
    return 0;
}

static void seg_unback(void *arg, unsigned class, uint32_t first, uint32_t n)
{
    struct seg_set *s = arg;
    uint32_t per = slots_per_file(class);

    while (n) {
        uint32_t part = MIN(n, per - first % per);
        struct chunk_slot slot = {.number = first, .class = (uint8_t) class};
        uint64_t offset;
        struct seg_file *f = seg_of_slot(s, slot, &offset);

        if (f && fallocate(f->file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                           (off_t)((uint64_t)part << class)) < 0)
            LOG_WARN(s->tag, "cannot give space back in segment %u.%06u: %m", class, first / per);
        first += part;
        n -= part;
    }
}

const struct slots_ops seg_slots_ops = {.back = seg_back, .unback = seg_unback};

unsigned seg_take_dirty(struct seg_set *s, int *fds, unsigned max)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SLOTS_CLASSES; i++) {
        for (uint32_t k = 0; k < s->classes[i].n_files && n < max; k++) {
            struct seg_file *f = s->classes[i].files[k];

            if (f && f->dirty) {
                f->dirty = false;
                fds[n++] = f->file.fd;
            }
        }
    }
    return n;
}
