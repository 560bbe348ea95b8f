/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of scenarios, and whole files in pieces. Fails: as the file system does. */
#include "tools/bench/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/err.h"

int place_open(struct place *p, const char *scenario, const char *where, const char *options)
{
    static unsigned serial;
    int rc;

    *p =
        (struct place){.backend = strncmp(where, "aifs:", 5) ? &io_path_backend : &io_aifs_backend};
    if (p->backend->start(where, options, &p->fs, &p->root) < 0)
        return 1;
    snprintf(p->dir, sizeof p->dir, "%s/bench-%s.%d.%u", p->root, scenario, (int)getpid(),
             serial++);
    rc = p->backend->mkdir(p->fs, p->dir);
    if (rc == 0)
        return 0;
    bench_error("%s: %s", p->dir, err_text(rc));
    p->backend->stop(p->fs);
    return 1;
}

void place_close(struct place *p, bool keep)
{
    int rc = keep ? 0 : p->backend->rmdir(p->fs, p->dir);

    if (rc < 0)
        bench_error("%s is left: %s", p->dir, err_text(rc));
    p->backend->stop(p->fs);
}

int place_io(const struct place *p, struct io_file *f, bool write, void *buf, uint32_t len,
             uint64_t offset)
{
    struct io_op op = {.offset = offset, .len = len, .write = write, .buf = buf};
    int rc = bench_stopped() ? -EINTR : p->backend->begin(f, &op);

    return rc < 0 ? rc : p->backend->finish(f)->status;
}

/* One pass over the file, in pieces. */
static int pass(const struct place *p, const struct place_file *f, struct io_file *file, bool write)
{
    int rc = 0;

    for (uint64_t at = 0; at < f->len && rc == 0; at += f->piece) {
        uint32_t len = (uint32_t)MIN(f->piece, f->len - at);

        if (write && f->verify)
            io_pattern_fill(f->memory, len, f->seed, at);
        rc = place_io(p, file, write, f->memory, len, at);
        if (rc == 0 && !write && f->verify && io_pattern_check(f->memory, len, f->seed, at) != len)
            rc = -EIO;
    }
    return rc;
}

static int open_and_pass(const struct place *p, const struct place_file *f, bool write)
{
    int flags = (write ? O_WRONLY | O_CREAT : O_RDONLY) | (f->direct ? O_DIRECT : 0);
    struct io_file *file;
    int rc = p->backend->open(p->fs, f->path, flags, 1, &file), end;

    if (rc < 0)
        return rc;
    rc = pass(p, f, file, write);
    if (rc == 0 && write && f->sync)
        rc = p->backend->sync(file);
    end = p->backend->close(file);
    return rc ? rc : end;
}

int place_write(const struct place *p, const struct place_file *f)
{
    return open_and_pass(p, f, true);
}

int place_read(const struct place *p, const struct place_file *f)
{
    return open_and_pass(p, f, false);
}

uint8_t *place_memory(const char *scenario, size_t bytes)
{
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (memory == MAP_FAILED) {
        bench_error("%s: %zu bytes of buffers: %m", scenario, bytes);
        return NULL;
    }
    bench_fill(memory, bytes, (uint64_t)getpid());
    return memory;
}

void place_memory_free(uint8_t *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

void place_failed(struct bench_job *j, int status, const char *path)
{
    if (j->status < 0)
        return;
    j->status = status;
    snprintf(j->where, sizeof j->where, "%.250s", path);
}
