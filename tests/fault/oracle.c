/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The durability oracle: does random file operations below a directory and writes down, before and
 * after each, what must, may and must not be there after a crash; later checks what is there.
 *
 *   oracle work  DIR STATE SEED MS [N [ahead]]  work for MS milliseconds (or until killed: that is
 *                                       the point); says so when it begins with the N-th operation
 *   oracle check DIR STATE              exit 1 and a sentence for the first thing that is wrong
 *
 * STATE is a mapped file outside the file system under test: what was stored in it before a kill is
 * there after it.
 *
 * Every file has an identity and every 4 KiB block written carries (identity, block, version) in
 * each of its 32-byte words, versions counting up over the whole run. For each block we keep the
 * version that an fsync has promised (low) and the newest begun (high): what is read must be
 * uniform and a version in between. Zeros are allowed only where no fsync covers. The size must be
 * between the promised one and the newest. Creating, renaming over, unlinking and truncating are
 * promised when the call returns; the one call in progress at the kill may have happened or not.
 * With "ahead" (create_ahead=yes) a file that was made is promised when it was synced, or anything
 * else was done with its name; before that it may be gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS  24u
#define BLOCKS 160u /* 640 KiB at most */
#define BLOCK  4096u

struct file {
    uint64_t id;     /* 0: does not exist */
    uint32_t unsure; /* made ahead: may not exist */
    uint32_t size_low, size_high;
    uint64_t low[BLOCKS], high[BLOCKS];
    uint32_t part[BLOCKS]; /* not 0: a crash left so many bytes of version low, zeros behind */
};

struct state {
    uint64_t magic, next_id, next_version, operations, rounds, lost; /* lost: of those unsure */
    struct file files[SLOTS];
    /* The call in progress: slots that it changes, and what they will be. */
    volatile uint32_t n_pending;
    uint32_t slot[2];
    struct file after[2];
};

static struct state *S;
static const char *dir;
static uint64_t seed;
static bool ahead;

static void die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

static uint32_t rnd(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 32) % below);
}

static const char *path_of(uint32_t slot)
{
    static char path[2][4096];
    static int which;

    which ^= 1;
    snprintf(path[which], sizeof path[which], "%s/d%u/f%02u", dir, slot % 3, slot);
    return path[which];
}

/* ---- blocks that say what they are ---- */

static void block_fill(uint8_t *b, uint64_t id, uint64_t block, uint64_t version)
{
    for (uint32_t i = 0; i < BLOCK; i += 32) {
        uint64_t w[4] = {id, block, version, id * 31 + block * 17 + version * 13 + i};

        memcpy(b + i, w, sizeof w);
    }
}

/*
 * The version of a block of which len bytes are there, and how many of them carry it: all, or those
 * in front of zeros (the end of a file that grew without the new data having been promised). 0:
 * zeros; UINT64_MAX: neither.
 */
static uint64_t block_version(const uint8_t *b, uint32_t len, uint64_t id, uint64_t block,
                              uint32_t *ret_valid)
{
    uint8_t want[BLOCK];
    uint64_t w[4] = {0};
    uint32_t valid = 0, zeros;

    for (zeros = len; zeros > 0 && b[zeros - 1] == 0; zeros--)
        ;
    *ret_valid = 0;
    if (zeros == 0)
        return 0;
    if (len < 32)
        return UINT64_MAX; /* never written so short, see pick_size() */
    memcpy(w, b, sizeof w);
    block_fill(want, id, block, w[2]);
    if (w[0] != id)
        return UINT64_MAX;
    while (valid < len && b[valid] == want[valid])
        valid++;
    *ret_valid = valid;
    return valid >= zeros ? w[2] : UINT64_MAX;
}

/* ---- work ---- */

static uint32_t pick_size(void)
{
    static const uint32_t upto[] = {200, 4096, 16384, 20000, 70000, BLOCKS * BLOCK};
    uint32_t size = 32 + rnd(upto[rnd(6)] - 32);

    return size % BLOCK && size % BLOCK < 32 ? size - size % BLOCK + 32 : size;
}

static void begin(uint32_t n, uint32_t slot_a, const struct file *a, uint32_t slot_b,
                  const struct file *b)
{
    S->slot[0] = slot_a;
    S->after[0] = *a;
    if (n > 1) {
        S->slot[1] = slot_b;
        S->after[1] = *b;
    }
    __sync_synchronize();
    S->n_pending = n;
    __sync_synchronize();
}

static void acknowledged(void)
{
    for (uint32_t i = 0; i < S->n_pending; i++)
        S->files[S->slot[i]] = S->after[i];
    __sync_synchronize();
    S->n_pending = 0;
    S->operations++;
}

/* Writes blocks [first, first+n) with a new version, size permitting; nothing is promised yet. */
static void write_blocks(int fd, uint32_t slot, uint32_t first, uint32_t n, uint32_t end)
{
    static uint8_t buf[BLOCKS * BLOCK];
    struct file *f = &S->files[slot];
    uint64_t version = ++S->next_version;
    uint32_t len = (first + n) * BLOCK;

    len = (len > end ? end : len) - first * BLOCK;
    for (uint32_t i = 0; i < n; i++) {
        block_fill(buf + i * BLOCK, f->id, first + i, version);
        f->high[first + i] = version;
    }
    if (end > f->size_high)
        f->size_high = end;
    __sync_synchronize();
    if (pwrite(fd, buf, len, (off_t)first * BLOCK) != (ssize_t)len)
        die("write to %s: %s", path_of(slot), strerror(errno));
}

static void promise(uint32_t slot)
{
    struct file *f = &S->files[slot];

    for (uint32_t b = 0; b < BLOCKS; b++) {
        if (f->low[b] != f->high[b])
            f->part[b] = 0;
        f->low[b] = f->high[b];
    }
    f->size_low = f->size_high;
    f->unsure = 0;
}

static void sync_file(int fd, uint32_t slot)
{
    if (fsync(fd) != 0)
        die("fsync of %s: %s", path_of(slot), strerror(errno));
    promise(slot);
    S->operations++;
}

static void op_create(uint32_t slot)
{
    static struct file made;
    uint32_t size = pick_size();
    int fd;

    memset(&made, 0, sizeof made);
    made.id = ++S->next_id;
    made.unsure = ahead;
    begin(1, slot, &made, 0, NULL);
    fd = open(path_of(slot), O_RDWR | O_CREAT | O_EXCL, 0644);
    if (fd < 0)
        die("create %s: %s", path_of(slot), strerror(errno));
    acknowledged();
    write_blocks(fd, slot, 0, (size + BLOCK - 1) / BLOCK, size);
    if (rnd(3))
        sync_file(fd, slot);
    if (close(fd) != 0)
        die("close %s: %s", path_of(slot), strerror(errno));
}

static void op_overwrite(uint32_t slot)
{
    struct file *f = &S->files[slot];
    uint32_t blocks = (f->size_high + BLOCK - 1) / BLOCK, first, n, end;
    int fd = open(path_of(slot), O_RDWR);

    if (fd < 0)
        die("open %s: %s", path_of(slot), strerror(errno));
    f->unsure = 0;
    for (uint32_t i = 0; i < 1 + rnd(4); i++) {
        if (rnd(3) == 0 && blocks < BLOCKS) { /* append whole blocks */
            end = f->size_high;
            first = end / BLOCK;
            n = 1 + rnd(BLOCKS - first > 40 ? 40 : BLOCKS - first);
            end = (first + n) * BLOCK;
        } else {
            first = blocks ? rnd(blocks) : 0;
            n = 1 + rnd(blocks - first > 0 ? blocks - first : 1);
            end = (first + n) * BLOCK > f->size_high ? f->size_high : (first + n) * BLOCK;
            if (end <= first * BLOCK)
                end = (first + n) * BLOCK;
        }
        write_blocks(fd, slot, first, n, end);
        blocks = (f->size_high + BLOCK - 1) / BLOCK;
    }
    if (rnd(2))
        sync_file(fd, slot);
    if (close(fd) != 0)
        die("close %s: %s", path_of(slot), strerror(errno));
}

static void op_unlink(uint32_t slot)
{
    static struct file none;

    begin(1, slot, &none, 0, NULL);
    if (unlink(path_of(slot)) != 0)
        die("unlink %s: %s", path_of(slot), strerror(errno));
    acknowledged();
}

static void op_rename(uint32_t from, uint32_t to)
{
    static struct file none, moved;

    moved = S->files[from];
    moved.unsure = 0;
    begin(2, to, &moved, from, &none);
    if (rename(path_of(from), path_of(to)) != 0)
        die("rename %s: %s", path_of(from), strerror(errno));
    acknowledged();
}

/* A cut is promised when it returns; what was not synced below it stays unpromised. */
static void op_truncate(uint32_t slot)
{
    static struct file after;
    uint32_t size = S->files[slot].size_high > 64 ? 32 + rnd(S->files[slot].size_high - 32) : 32;

    if (size % BLOCK && size % BLOCK < 32)
        size = size - size % BLOCK + 32;
    if (size >= S->files[slot].size_high)
        return;
    after = S->files[slot];
    after.unsure = 0;
    after.size_high = size;
    after.size_low = after.size_low > size ? size : after.size_low;
    for (uint32_t b = (size + BLOCK - 1) / BLOCK; b < BLOCKS; b++)
        after.low[b] = after.high[b] = after.part[b] = 0;
    begin(1, slot, &after, 0, NULL);
    if (truncate(path_of(slot), size) != 0)
        die("truncate %s: %s", path_of(slot), strerror(errno));
    acknowledged();
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int work(uint64_t ms, uint64_t say)
{
    uint64_t end = now_ms() + ms;

    for (uint32_t i = 0; i < 3; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/d%u", dir, i);
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            die("mkdir %s: %s", path, strerror(errno));
    }
    for (uint64_t n = 0; now_ms() < end; n++) {
        uint32_t slot = rnd(SLOTS), other = rnd(SLOTS);

        if (n == say && write(1, "now\n", 4) != 4)
            die("nobody listens");
        if (!S->files[slot].id) {
            op_create(slot);
            continue;
        }
        switch (rnd(10)) {
        case 0:
            op_unlink(slot);
            break;
        case 1:
            if (other != slot)
                op_rename(slot, other);
            break;
        case 2:
        case 3:
            op_truncate(slot);
            break;
        default:
            op_overwrite(slot);
        }
    }
    return 0;
}

/* ---- check ---- */

static char why[512];

/* Does what is at the slot agree with f? On agreement found gets what is really there. */
static bool agrees(uint32_t slot, const struct file *f, struct file *found)
{
    uint8_t buf[BLOCK];
    struct stat st;
    int fd;

    *found = (struct file){0};
    fd = open(path_of(slot), O_RDONLY);
    if (fd < 0) {
        snprintf(why, sizeof why, "%s: %s", path_of(slot), strerror(errno));
        return errno == ENOENT && (f->id == 0 || f->unsure);
    }
    if (fstat(fd, &st) != 0)
        die("fstat %s: %s", path_of(slot), strerror(errno));
    snprintf(why, sizeof why, "%s exists and should not", path_of(slot));
    if (f->id == 0)
        goto no;
    snprintf(why, sizeof why, "%s (file %llu) has size %lld, promised %u, newest %u", path_of(slot),
             (unsigned long long)f->id, (long long)st.st_size, f->size_low, f->size_high);
    if (st.st_size < f->size_low || st.st_size > f->size_high)
        goto no;
    found->id = f->id;
    found->size_low = found->size_high = (uint32_t)st.st_size;
    for (uint32_t b = 0; b * BLOCK < st.st_size; b++) {
        uint32_t want =
            (uint32_t)st.st_size - b * BLOCK < BLOCK ? (uint32_t)st.st_size - b * BLOCK : BLOCK;
        ssize_t n = pread(fd, buf, want, (off_t)b * BLOCK);
        uint32_t valid, promised = f->size_low > b * BLOCK ? f->size_low - b * BLOCK : 0;
        uint64_t v;

        if (n != (ssize_t)want) {
            snprintf(why, sizeof why, "%s block %u: read says %zd (%s)", path_of(slot), b, n,
                     n < 0 ? strerror(errno) : "short");
            goto no;
        }
        v = block_version(buf, want, f->id, b, &valid);
        if (v == UINT64_MAX) {
            snprintf(why, sizeof why, "%s (file %llu) block %u is garbage", path_of(slot),
                     (unsigned long long)f->id, b);
            goto no;
        }
        snprintf(why, sizeof why,
                 "%s (file %llu, size %lld) block %u is version %llu in %u of %u bytes, promised "
                 "%llu, newest %llu",
                 path_of(slot), (unsigned long long)f->id, (long long)st.st_size, b,
                 (unsigned long long)v, valid, want, (unsigned long long)f->low[b],
                 (unsigned long long)f->high[b]);
        if (promised > want)
            promised = want;
        if (f->part[b] && promised > f->part[b])
            promised = f->part[b];
        if (v < f->low[b] || v > f->high[b] || (v && v == f->low[b] && valid < promised))
            goto no;
        found->high[b] = found->low[b] = v;
        found->part[b] = valid < want ? valid : 0;
    }
    close(fd);
    return true;
no:
    close(fd);
    return false;
}

static int check(void)
{
    static struct file found[SLOTS], second;
    uint32_t n = S->n_pending;
    char first[512];
    bool happened = false;

    if (n) { /* all of the call, or nothing of it */
        happened = true;
        for (uint32_t i = 0; i < n && happened; i++)
            happened = agrees(S->slot[i], &S->after[i], &second);
        memcpy(first, why, sizeof first);
        for (uint32_t i = 0; i < n && !happened; i++)
            if (!agrees(S->slot[i], &S->files[S->slot[i]], &second))
                die("half a call: had it happened: %s; had it not: %s", first, why);
        for (uint32_t i = 0; i < n && happened; i++)
            S->files[S->slot[i]] = S->after[i];
        S->n_pending = 0;
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (!agrees(slot, &S->files[slot], &found[slot]))
            die("%s", why);
        S->lost += S->files[slot].id && !found[slot].id;
    }
    memcpy(S->files, found, sizeof found); /* the next round starts from what is there */
    S->rounds++;
    return 0;
}

int main(int argc, char **argv)
{
    int fd;

    if (argc < 4 || (!strcmp(argv[1], "work") && argc < 6)) {
        fprintf(stderr, "usage: oracle work DIR STATE SEED MS | check DIR STATE\n");
        return 2;
    }
    dir = argv[2];
    fd = open(argv[3], O_RDWR | O_CREAT, 0644);
    if (fd < 0 || ftruncate(fd, sizeof *S) != 0)
        die("%s: %s", argv[3], strerror(errno));
    S = mmap(NULL, sizeof *S, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (S == MAP_FAILED)
        die("%s: %s", argv[3], strerror(errno));
    if (!strcmp(argv[1], "check"))
        return check();
    ahead = argc > 7 && strcmp(argv[7], "ahead") == 0;
    seed = strtoull(argv[4], NULL, 0) * 0x9E3779B97F4A7C15ull + 1;
    return work(strtoull(argv[5], NULL, 0), argc > 6 ? strtoull(argv[6], NULL, 0) : UINT64_MAX);
}
