/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations of two mounts through libaifs on real daemons, which are killed and started
 * again in between: every read must give what a file in memory gives. A failure prints its seed;
 * AIFS_SEED runs one, AIFS_SEEDS so many.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define FILES  3u
#define MOUNTS 2u
#define ROOM   (6u * MIB)
#define STEPS  120u

struct model {
    uint8_t *bytes;
    uint32_t size;
};

struct world {
    struct cluster cluster;
    struct aifs *fs[MOUNTS];
    struct aifs_file *open[MOUNTS][FILES];
    int flags[MOUNTS][FILES];
    struct model m[FILES];
    uint8_t *tmp;
    unsigned seed, step;
};

static unsigned pick(struct world *w, unsigned n)
{
    return (unsigned)rand_r(&w->seed) % n;
}

static void tell(const struct world *w, const char *what, unsigned c, unsigned f, uint32_t at,
                 uint32_t len)
{
    if (getenv("AIFS_SEED"))
        fprintf(stderr, "%4u mount %u file %u %-8s %u + %u (size %u)\n", w->step, c, f, what, at,
                len, w->m[f].size);
}

static const char *path_of(unsigned f)
{
    static const char *const paths[FILES] = {"/one", "/two", "/three"};

    return paths[f];
}

static uint32_t pick_len(struct world *w)
{
    static const uint32_t bounds[] = {100, 5000, 17000, 140000, 2500000};

    return 1 + pick(w, bounds[pick(w, ARRAY_LEN(bounds))]);
}

static uint32_t pick_offset(struct world *w, const struct model *m)
{
    switch (pick(w, 4)) {
    case 0:
        return 0;
    case 1:
        return m->size;
    case 2:
        return pick(w, 20000);
    default:
        return pick(w, m->size + 50000);
    }
}

static void ensure_open(struct world *w, unsigned c, unsigned f)
{
    static const int kinds[] = {O_RDWR, O_RDWR, O_RDWR, O_RDWR | O_APPEND, O_RDWR | O_SYNC};

    if (w->open[c][f])
        return;
    w->flags[c][f] = kinds[pick(w, ARRAY_LEN(kinds))];
    tell(w, "open", c, f, (uint32_t)w->flags[c][f], 0);
    w->open[c][f] = aifs_open(w->fs[c], path_of(f), w->flags[c][f] | O_CREAT, 0644);
    ck_assert_msg(w->open[c][f] != NULL, "%s", strerror(errno));
}

static void do_write(struct world *w, unsigned c, unsigned f)
{
    struct model *m = &w->m[f];
    uint32_t len = pick_len(w), at = pick_offset(w, m), k;
    ssize_t n;

    if (w->flags[c][f] & O_APPEND)
        at = m->size;
    if (at + len > ROOM)
        return;
    for (k = 0; k < len; k++)
        w->tmp[k] = (uint8_t)((at + k) * 2654435761u >> 8 ^ w->step);
    tell(w, w->flags[c][f] & O_APPEND ? "append" : "write", c, f, at, len);
    n = aifs_pwrite(w->open[c][f], w->tmp, len, at);
    ck_assert_msg(n == (ssize_t)len, "step %u: write gave %zd: %s", w->step, n, strerror(errno));
    if (at > m->size)
        memset(m->bytes + m->size, 0, at - m->size);
    memcpy(m->bytes + at, w->tmp, len);
    m->size = MAX(m->size, at + len);
}

static void do_read(struct world *w, unsigned c, unsigned f, uint32_t at, uint32_t len)
{
    struct model *m = &w->m[f];
    uint32_t want = at < m->size ? MIN(len, m->size - at) : 0, k;
    ssize_t n;

    tell(w, "read", c, f, at, len);
    n = aifs_pread(w->open[c][f], w->tmp, len, at);
    ck_assert_msg(n == (ssize_t)want,
                  "step %u: mount %u file %u read of [%u, %u) size %u gave %zd: %s", w->step, c, f,
                  at, at + len, m->size, n, strerror(errno));
    for (k = 0; k < want && w->tmp[k] == m->bytes[at + k]; k++) {
    }
    ck_assert_msg(k == want,
                  "step %u: mount %u file %u byte %u of [%u, %u) size %u: %02x instead of %02x",
                  w->step, c, f, at + k, at, at + len, m->size, w->tmp[k], m->bytes[at + k]);
}

static void do_truncate(struct world *w, unsigned c, unsigned f)
{
    struct model *m = &w->m[f];
    uint32_t size = pick(w, 3) ? pick(w, m->size + 1) : pick(w, m->size + 100000);

    if (size > ROOM)
        return;
    tell(w, "truncate", c, f, size, 0);
    ck_assert_msg(aifs_ftruncate(w->open[c][f], size) == 0, "step %u: truncate: %s", w->step,
                  strerror(errno));
    if (size > m->size)
        memset(m->bytes + m->size, 0, size - m->size);
    m->size = size;
}

static void do_close(struct world *w, unsigned c, unsigned f)
{
    tell(w, "close", c, f, 0, 0);
    ck_assert_msg(aifs_close(w->open[c][f]) == 0, "step %u: close: %s", w->step, strerror(errno));
    w->open[c][f] = NULL;
}

static void do_stat(struct world *w, unsigned c, unsigned f)
{
    struct stat st;

    tell(w, "stat", c, f, 0, 0);
    ck_assert_int_eq(aifs_fstat(w->open[c][f], &st), 0);
    ck_assert_msg(st.st_size == (off_t)w->m[f].size,
                  "step %u: mount %u file %u: size %lld instead of %u", w->step, c, f,
                  (long long)st.st_size, w->m[f].size);
}

static void do_kill(struct world *w)
{
    unsigned k = pick(w, w->cluster.n_oss + 1);

    tell(w, "kill", k, 0, 0, 0);
    if (k == w->cluster.n_oss) {
        cluster_kill_mds(&w->cluster, SIGKILL);
        cluster_start_mds(&w->cluster);
    } else {
        cluster_kill_oss(&w->cluster, k, SIGKILL);
        cluster_start_oss(&w->cluster, k);
    }
}

static void step(struct world *w)
{
    unsigned c = pick(w, MOUNTS), f = pick(w, FILES), what = pick(w, 100);

    ensure_open(w, c, f);
    if (what < 42)
        do_write(w, c, f);
    else if (what < 70)
        do_read(w, c, f, pick_offset(w, &w->m[f]), pick_len(w));
    else if (what < 77)
        do_truncate(w, c, f);
    else if (what < 82)
        ck_assert_msg(aifs_fsync(w->open[c][f]) == 0, "step %u: fsync: %s", w->step,
                      strerror(errno));
    else if (what < 91)
        do_close(w, c, f);
    else if (what < 97)
        do_stat(w, c, f);
    else
        do_kill(w);
}

static void world_start(struct world *w, unsigned seed)
{
    unsigned c, f;

    printf("seed %u\n", seed);
    fflush(stdout);
    w->seed = seed;
    ck_assert(cluster_start(&w->cluster, 3));
    w->tmp = malloc(ROOM + MIB);
    for (c = 0; c < MOUNTS; c++)
        ck_assert_msg(aifs_mount(w->cluster.source, w->cluster.options, &w->fs[c]) == 0, "%s",
                      aifs_mount_error());
    for (f = 0; f < FILES; f++)
        w->m[f].bytes = calloc(1, ROOM + MIB);
}

static void world_end(struct world *w)
{
    unsigned c, f;

    for (f = 0; f < FILES; f++) {
        for (c = 0; c < MOUNTS; c++) {
            ensure_open(w, c, f);
            do_read(w, c, f, 0, ROOM);
            do_stat(w, c, f);
            do_close(w, c, f);
        }
        free(w->m[f].bytes);
    }
    for (c = 0; c < MOUNTS; c++)
        ck_assert_int_eq(aifs_unmount(w->fs[c]), 0);
    cluster_stop(&w->cluster);
    free(w->tmp);
}

START_TEST(a_file_system_in_memory_agrees)
{
    const char *only = getenv("AIFS_SEED");
    struct world *w = calloc(1, sizeof *w);

    world_start(w, only ? (unsigned)atoi(only) : (unsigned)_i + 1);
    for (w->step = 1; w->step <= STEPS; w->step++)
        step(w);
    world_end(w);
    free(w);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("libaifs-random");

    if (!cluster_built())
        return 77;
    tcase_set_timeout(tc, 100);
    tcase_add_loop_test(tc, a_file_system_in_memory_agrees, 0,
                        getenv("AIFS_SEED") ? 1 : (int)cluster_number("AIFS_SEEDS", 3));
    return suite_run_case("libaifs-random", tc);
}
