// SPDX-License-Identifier: Apache-2.0
/*
 * One file, random calls, and after each the contents as they must be.
 *
 *     fsx [-s SEED] [-n CALLS] [-l BYTES] [-o read,write,...] PATH [PATH_ON_ANOTHER_MOUNT...]
 *
 * Reads, writes and truncates through descriptors with and without O_DIRECT, at odd and at even
 * places, through shared mappings, with pwritev, appends; fallocate in all its forms,
 * copy_file_range inside the file, SEEK_DATA and SEEK_HOLE. What the file holds is kept in memory
 * too, every read is compared with it, and in the end all of it. With several paths (the same file
 * on several mounts) the calls wander between them: before one goes on, what the other did is
 * synced.
 *
 * The first difference ends it, with the last calls and the seed, which repeats them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PATHS_MAX 4
#define LOG_LINES 64
#define PAGE      4096u

static struct {
    const char *path[PATHS_MAX];
    int fd[PATHS_MAX], direct[PATHS_MAX];
    unsigned n_paths, at;
    uint64_t seed, random, n;
    uint64_t size, max;
    uint8_t *model, *buf;
    char log[LOG_LINES][120];
} x;

static uint64_t rnd(uint64_t below)
{
    uint64_t z = x.random += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return below ? (z ^ z >> 31) % below : 0;
}

static void __attribute__((format(printf, 1, 2))) note(const char *text, ...)
{
    char *line = x.log[x.n % LOG_LINES];
    va_list va;
    int n = snprintf(line, sizeof x.log[0], "%6llu mount %u size %8llu: ", (unsigned long long)x.n,
                     x.at, (unsigned long long)x.size);

    va_start(va, text);
    vsnprintf(line + n, sizeof x.log[0] - (size_t)n, text, va);
    va_end(va);
}

static void __attribute__((noreturn, format(printf, 1, 2))) wrong(const char *text, ...)
{
    uint64_t from = x.n > LOG_LINES ? x.n - LOG_LINES + 1 : 0;
    va_list va;

    for (uint64_t k = from; k <= x.n; k++)
        printf("%s\n", x.log[k % LOG_LINES]);
    printf("fsx: ");
    va_start(va, text);
    vprintf(text, va);
    va_end(va);
    printf("; call %llu, seed %llu\n", (unsigned long long)x.n, (unsigned long long)x.seed);
    exit(1);
}

static void must(bool good, const char *what)
{
    if (!good)
        wrong("%s: %s", what, strerror(errno));
}

/* ---- where ---- */

static void range(uint64_t limit, uint64_t *off, uint64_t *len)
{
    static const uint64_t borders[] = {1, 1, 512, PAGE, PAGE, 65536, 1 << 20};
    uint64_t unit = borders[rnd(7)];

    *off = rnd(limit) / unit * unit;
    *len = 1 + rnd(rnd(3) ? 70000 : 300000);
    if (rnd(2))
        *len = (*len + unit - 1) / unit * unit;
    if (*off + *len > limit)
        *len = limit - *off;
    if (!*len)
        *len = 1, *off = limit - 1;
}

static int fd_for(uint64_t off, uint64_t len, const uint8_t *mem)
{
    bool aligned = off % 512 == 0 && len % 512 == 0 && (uintptr_t)mem % 512 == 0;

    return rnd(4) == 0 && (aligned || rnd(2)) ? x.direct[x.at] : x.fd[x.at];
}

static void fill(uint64_t len)
{
    uint64_t word = 0;

    for (uint64_t k = 0; k < len; k++) {
        if (k % 8 == 0)
            word = rnd(0) | x.random;
        x.buf[k] = (uint8_t)(word >> k % 8 * 8) | 1;
    }
}

static void grown(uint64_t end)
{
    if (end > x.size)
        x.size = end;
}

static void zeros(uint64_t off, uint64_t end)
{
    if (off < end)
        memset(x.model + off, 0, end - off);
}

static void compare(uint64_t off, const uint8_t *got, uint64_t len)
{
    for (uint64_t k = 0; k < len; k++)
        if (got[k] != x.model[off + k])
            wrong("byte %llu is %#x and must be %#x", (unsigned long long)(off + k), got[k],
                  x.model[off + k]);
}

/* ---- the calls ---- */

static void do_read(void)
{
    uint64_t off, len, want;
    ssize_t got;
    int fd;

    range(x.max, &off, &len);
    fd = fd_for(off, len, x.buf);
    note("read %#llx + %#llx%s", (unsigned long long)off, (unsigned long long)len,
         fd == x.direct[x.at] ? " direct" : "");
    want = off < x.size ? (len < x.size - off ? len : x.size - off) : 0;
    got = pread(fd, x.buf, len, (off_t)off);
    must(got >= 0, "read");
    if ((uint64_t)got != want)
        wrong("read returned %zd instead of %llu", got, (unsigned long long)want);
    compare(off, x.buf, want);
}

static void do_write(void)
{
    uint64_t off, len, half;
    struct iovec iov[2];
    ssize_t got;
    int fd;

    range(x.max, &off, &len);
    fill(len);
    half = rnd(len);
    fd = fd_for(off, len, x.buf);
    note("write %#llx + %#llx%s", (unsigned long long)off, (unsigned long long)len,
         fd == x.direct[x.at] ? " direct" : "");
    iov[0] = (struct iovec){x.buf, half};
    iov[1] = (struct iovec){x.buf + half, len - half};
    got = rnd(3) ? pwrite(fd, x.buf, len, (off_t)off) : pwritev(fd, iov, 2, (off_t)off);
    must(got == (ssize_t)len, "write");
    memcpy(x.model + off, x.buf, len);
    grown(off + len);
}

static void do_append(void)
{
    uint64_t len = 1 + rnd(9000);
    int fd;

    if (x.size + len > x.max)
        return;
    fill(len);
    note("append %#llx", (unsigned long long)len);
    fd = open(x.path[x.at], O_WRONLY | O_APPEND);
    must(fd >= 0, "open to append");
    must(write(fd, x.buf, len) == (ssize_t)len, "append");
    must(close(fd) == 0, "close");
    memcpy(x.model + x.size, x.buf, len);
    x.size += len;
}

static void do_truncate(void)
{
    uint64_t size = rnd(4) ? rnd(x.max) : rnd(x.max) / PAGE * PAGE;

    if (rnd(8) == 0)
        size = 0;
    note("truncate to %#llx", (unsigned long long)size);
    must((rnd(2) ? ftruncate(x.fd[x.at], (off_t)size) : truncate(x.path[x.at], (off_t)size)) == 0,
         "truncate");
    zeros(size, x.size);
    x.size = size;
}

static void do_allocate(void)
{
    static const struct {
        int mode;
        const char *name;
    } modes[] = {{0, "allocate"},
                 {FALLOC_FL_KEEP_SIZE, "allocate keep"},
                 {FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch"},
                 {FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, "punch"},
                 {FALLOC_FL_ZERO_RANGE, "zero"},
                 {FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, "zero keep"}};
    unsigned k = (unsigned)rnd(6);
    int mode = modes[k].mode;
    uint64_t off, len;

    range(x.max, &off, &len);
    note("%s %#llx + %#llx", modes[k].name, (unsigned long long)off, (unsigned long long)len);
    must(fallocate(x.fd[x.at], mode, (off_t)off, (off_t)len) == 0, modes[k].name);
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        zeros(off, off + len < x.size ? off + len : x.size);
    if (!(mode & FALLOC_FL_KEEP_SIZE))
        grown(off + len);
}

/* A kernel learns of a new size by asking; page faults and copies do not ask. */
static void learn_size(void)
{
    struct stat st;

    if (x.n_paths > 1)
        must(fstat(x.fd[x.at], &st) == 0, "stat");
}

static void do_mapped(bool writes)
{
    uint64_t off, len, base;
    uint8_t *map;

    if (!x.size)
        return;
    learn_size();
    range(x.size, &off, &len);
    base = off / PAGE * PAGE;
    note("map %s %#llx + %#llx", writes ? "write" : "read", (unsigned long long)off,
         (unsigned long long)len);
    map = mmap(NULL, off - base + len, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
               x.fd[x.at], (off_t)base);
    must(map != MAP_FAILED, "mmap");
    if (writes) {
        fill(len);
        memcpy(map + (off - base), x.buf, len);
        memcpy(x.model + off, x.buf, len);
        must(msync(map, off - base + len, MS_SYNC) == 0, "msync");
    } else {
        compare(off, map + (off - base), len);
    }
    must(munmap(map, off - base + len) == 0, "munmap");
}

static void do_copy(void)
{
    uint64_t off, len, to;
    loff_t from, dest;

    if (!x.size)
        return;
    range(x.size, &off, &len);
    to = rnd(x.max - len + 1);
    if (to < off + len && off < to + len)
        return;
    note("copy %#llx + %#llx to %#llx", (unsigned long long)off, (unsigned long long)len,
         (unsigned long long)to);
    learn_size();
    from = (loff_t)off;
    dest = (loff_t)to;
    for (uint64_t done = 0; done < len;) {
        ssize_t got = copy_file_range(x.fd[x.at], &from, x.fd[x.at], &dest, len - done, 0);

        must(got > 0, "copy_file_range");
        done += (uint64_t)got;
    }
    memmove(x.model + to, x.model + off, len);
    grown(to + len);
}

/* A hole may be told as data, never data as a hole. */
static void do_seek(void)
{
    uint64_t off = rnd(x.max);
    off_t data, hole;

    note("seek from %#llx", (unsigned long long)off);
    data = lseek(x.fd[x.at], (off_t)off, SEEK_DATA);
    if (data < 0 && errno != ENXIO)
        wrong("SEEK_DATA: %s", strerror(errno));
    if (data >= 0 && ((uint64_t)data < off || (uint64_t)data >= x.size))
        wrong("SEEK_DATA says %lld", (long long)data);
    for (uint64_t k = off; k < (data < 0 ? x.size : (uint64_t)data); k++)
        if (x.model[k])
            wrong("SEEK_DATA says %lld, and byte %llu is data", (long long)data,
                  (unsigned long long)k);
    hole = lseek(x.fd[x.at], (off_t)off, SEEK_HOLE);
    if (off >= x.size ? hole >= 0 || errno != ENXIO : hole < (off_t)off || (uint64_t)hole > x.size)
        wrong("SEEK_HOLE says %lld", (long long)hole);
    if (hole >= 0 && (uint64_t)hole < x.size && x.model[hole])
        wrong("SEEK_HOLE says %lld, which is data", (long long)hole);
}

static void do_sync(void)
{
    note("fsync");
    must((rnd(2) ? fsync(x.fd[x.at]) : fdatasync(x.fd[x.at])) == 0, "fsync");
}

static void open_at(unsigned k, int more)
{
    x.fd[k] = open(x.path[k], O_RDWR | more, 0644);
    must(x.fd[k] >= 0, "open");
    x.direct[k] = open(x.path[k], O_RDWR | O_DIRECT);
    must(x.direct[k] >= 0, "open O_DIRECT");
}

static void close_at(unsigned k)
{
    must(close(x.fd[k]) == 0 && close(x.direct[k]) == 0, "close");
}

static void do_reopen(void)
{
    bool cut = rnd(16) == 0;

    note(cut ? "open again, O_TRUNC" : "open again");
    close_at(x.at);
    open_at(x.at, cut ? O_TRUNC : rnd(4) ? 0 : O_DSYNC);
    if (cut) {
        zeros(0, x.size);
        x.size = 0;
    }
}

static void do_stat(void)
{
    struct stat st;

    note("stat");
    must((rnd(2) ? fstat(x.fd[x.at], &st) : stat(x.path[x.at], &st)) == 0, "stat");
    if ((uint64_t)st.st_size != x.size)
        wrong("the size is %lld", (long long)st.st_size);
}

/* ---- */

static void map_write(void)
{
    do_mapped(true);
}

static void map_read(void)
{
    do_mapped(false);
}

static const struct {
    const char *name;
    unsigned weight;
    void (*run)(void);
} calls[] = {{"read", 20, do_read},        {"write", 20, do_write},       {"append", 3, do_append},
             {"truncate", 5, do_truncate}, {"allocate", 12, do_allocate}, {"mapread", 8, map_read},
             {"mapwrite", 8, map_write},   {"copy", 5, do_copy},          {"seek", 5, do_seek},
             {"fsync", 2, do_sync},        {"reopen", 3, do_reopen},      {"stat", 3, do_stat}};

static void step(const char *only)
{
    unsigned sum = 0, pick, k;

    if (x.n_paths > 1 && rnd(3) == 0) {
        must(fsync(x.fd[x.at]) == 0, "fsync");
        x.at = (unsigned)rnd(x.n_paths);
    }
    for (k = 0; k < sizeof calls / sizeof calls[0]; k++)
        sum += calls[k].weight;
    do {
        pick = (unsigned)rnd(sum);
        for (k = 0; pick >= calls[k].weight; k++)
            pick -= calls[k].weight;
    } while (only && !strstr(only, calls[k].name));
    calls[k].run();
}

static void check_all(void)
{
    uint64_t done = 0;

    note("the end");
    for (unsigned k = 0; k < x.n_paths; k++)
        must(fsync(x.fd[k]) == 0, "fsync");
    for (x.at = 0; x.at < x.n_paths; x.at++) {
        close_at(x.at);
        open_at(x.at, 0);
        for (done = 0; done < x.size;) {
            ssize_t got = pread(x.fd[x.at], x.buf, x.max, (off_t)done);

            must(got > 0, "read");
            compare(done, x.buf, (uint64_t)got);
            done += (uint64_t)got;
        }
        if (done != x.size)
            wrong("there are %llu bytes", (unsigned long long)done);
        close_at(x.at);
    }
}

int main(int argc, char **argv)
{
    uint64_t calls_wanted = 1000;
    const char *only = NULL;
    int o;

    x.seed = 1;
    x.max = 256 << 10;
    while ((o = getopt(argc, argv, "s:n:l:o:")) != -1) {
        if (o == 's')
            x.seed = strtoull(optarg, NULL, 10);
        else if (o == 'n')
            calls_wanted = strtoull(optarg, NULL, 10);
        else if (o == 'l')
            x.max = strtoull(optarg, NULL, 10);
        else if (o == 'o')
            only = optarg;
        else
            return 2;
    }
    if (optind == argc || argc - optind > PATHS_MAX || x.max < 2 * PAGE)
        return 2;
    x.random = x.seed;
    x.model = calloc(1, x.max + 1);
    x.buf = aligned_alloc(PAGE, (x.max + (1 << 20) + PAGE) / PAGE * PAGE);
    if (!x.model || !x.buf)
        return 2;
    for (x.n_paths = 0; x.n_paths < (unsigned)(argc - optind); x.n_paths++) {
        x.path[x.n_paths] = argv[optind + (int)x.n_paths];
        open_at(x.n_paths, x.n_paths ? 0 : O_CREAT | O_TRUNC);
    }
    for (x.n = 0; x.n < calls_wanted; x.n++)
        step(only);
    check_all();
    printf("fsx: %llu calls, seed %llu\n", (unsigned long long)calls_wanted,
           (unsigned long long)x.seed);
    return 0;
}
