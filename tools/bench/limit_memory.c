/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of one thread and one file: memory copy, checksum, and what the store of a target takes
 * when every block goes through a checksum. Buffers are touched before the clock starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/crc.h"
#include "tools/bench/limits.h"

#define HOT_BYTES    ((size_t)MIB)
#define STREAM_BYTES (256 * (size_t)MIB)

typedef int piece_fn(void *arg, size_t offset, size_t len); /* 0 or -errno */

/* Calls fn for pieces of len, round and round through total, until the time is over. */
static int measure(struct bench *b, const char *name, size_t total, size_t len, double seconds,
                   piece_fn *fn, void *arg)
{
    uint64_t begin, now, before, end;
    struct stat_histogram h = {0};
    uint64_t bytes = 0, n = 0;
    struct bench_result *r;
    double cpu = bench_cpu_seconds();
    int rc = 0;

    begin = before = now = bench_now_ns();
    end = begin + (uint64_t)(seconds * 1e9);
    for (size_t at = 0; now < end && rc == 0; at = at + 2 * len > total ? 0 : at + len) {
        rc = fn(arg, at, len);
        now = bench_now_ns();
        stat_record(&h, now - before);
        before = now;
        bytes += len;
        n++;
    }
    if (rc < 0) {
        bench_error("%s: %s", name, strerror(-rc));
        return 1;
    }
    r = bench_add(b, name, "MB/s", (double)bytes / 1e3 / ((double)(now - begin) / 1e6),
                  (double)(now - begin) / 1e9);
    bench_latencies(r, &h);
    r->operations = n;
    r->bytes = bytes;
    r->cpu_seconds = bench_cpu_seconds() - cpu;
    return 0;
}

struct memory {
    uint8_t *from, *to;
    volatile uint32_t sink;
};

static int copy(void *arg, size_t offset, size_t len)
{
    struct memory *m = arg;

    memcpy(m->to + offset, m->from + offset, len);
    m->sink += m->to[offset];
    return 0;
}

static int sum(void *arg, size_t offset, size_t len)
{
    struct memory *m = arg;

    m->sink += crc32c(m->from + offset, len);
    return 0;
}

static int sum_blocks(void *arg, size_t offset, size_t len)
{
    static uint32_t sums[HOT_BYTES / CRC_BLOCK_BYTES];
    struct memory *m = arg;

    crc32c_blocks(0, m->from + offset, len, sums);
    m->sink += sums[0];
    return 0;
}

static uint8_t *fresh(size_t bytes)
{
    uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (p == MAP_FAILED) {
        bench_error("limits: %zu bytes of memory: %m", bytes);
        return NULL;
    }
    return p;
}

int limit_memory(struct bench *b, double seconds)
{
    struct memory m = {.from = fresh(STREAM_BYTES)};
    int rc = 1;

    m.to = m.from ? fresh(STREAM_BYTES) : NULL;
    if (m.to) {
        bench_fill(m.from, STREAM_BYTES, 1);
        rc = measure(b, "memory.copy.hot", HOT_BYTES, HOT_BYTES, seconds, copy, &m) ||
             measure(b, "memory.copy.stream", STREAM_BYTES, HOT_BYTES, seconds, copy, &m) ||
             measure(b, "crc32c.hot", HOT_BYTES, HOT_BYTES, seconds, sum, &m) ||
             measure(b, "crc32c.stream", STREAM_BYTES, HOT_BYTES, seconds, sum, &m) ||
             measure(b, "crc32c.4Ki-blocks", HOT_BYTES, HOT_BYTES, seconds, sum_blocks, &m);
        munmap(m.to, STREAM_BYTES);
    }
    if (m.from)
        munmap(m.from, STREAM_BYTES);
    return rc;
}

/* ---- one file, as a target would use it ---- */

struct target {
    int fd;
    uint8_t *buf;
    uint32_t sums[HOT_BYTES / CRC_BLOCK_BYTES];
};

static int target_write(void *arg, size_t offset, size_t len)
{
    struct target *t = arg;

    crc32c_blocks(0, t->buf, len, t->sums);
    if (pwrite(t->fd, t->buf, len, (off_t)offset) != (ssize_t)len)
        return errno ? -errno : -EIO;
    return 0;
}

static int target_write_sync(void *arg, size_t offset, size_t len)
{
    struct target *t = arg;
    int rc = target_write(arg, offset, len);

    return rc ? rc : fdatasync(t->fd) == 0 ? 0 : -errno;
}

static int target_read(void *arg, size_t offset, size_t len)
{
    struct target *t = arg;

    if (pread(t->fd, t->buf, len, (off_t)offset) != (ssize_t)len)
        return errno ? -errno : -EIO;
    crc32c_blocks(0, t->buf, len, t->sums);
    return 0;
}

int limit_target(struct bench *b, const char *dir, double seconds)
{
    struct target t = {.fd = -1, .buf = fresh(HOT_BYTES)};
    char path[4096];
    int rc = 1;

    if (!t.buf)
        return 1;
    snprintf(path, sizeof path, "%s/bench-target.XXXXXX", dir);
    bench_fill(t.buf, HOT_BYTES, 2);
    t.fd = mkostemp(path, O_CLOEXEC);
    if (t.fd < 0) {
        bench_error("%s: %m", path);
    } else {
        for (size_t at = 0; at < STREAM_BYTES; at += HOT_BYTES) {
            rc = target_write(&t, at, HOT_BYTES);
            if (rc < 0) {
                bench_error("%s: %s", path, strerror(-rc));
                break;
            }
        }
        rc = rc < 0 ||
             measure(b, "target.write.1Mi", STREAM_BYTES, HOT_BYTES, seconds, target_write, &t) ||
             measure(b, "target.write+sync.1Mi", STREAM_BYTES, HOT_BYTES, seconds,
                     target_write_sync, &t) ||
             measure(b, "target.read.1Mi", STREAM_BYTES, HOT_BYTES, seconds, target_read, &t);
        close(t.fd);
        unlink(path);
    }
    munmap(t.buf, HOT_BYTES);
    return rc;
}
