/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations of two clients on a few files, one after the other, while servers lose
 * uncommitted data and links break: every read must give what a file in memory gives. A failure
 * prints its seed.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define FILES   3u
#define ROOM    (5u * MIB)
#define CLIENTS 2u

struct model {
    uint8_t *bytes;
    uint32_t size;
};

struct world {
    struct bed bed;
    struct core *c[CLIENTS];
    struct core_file *open[CLIENTS][FILES];
    int flags[CLIENTS][FILES];
    struct model m[FILES];
    uint8_t *tmp;
    unsigned seed, step;
};

static unsigned pick(struct world *w, unsigned n)
{
    return (unsigned)rand_r(&w->seed) % n;
}

/* With one seed chosen, every step is told. */
static void tell(const struct world *w, const char *what, unsigned c, unsigned f, uint32_t at,
                 uint32_t len)
{
    if (getenv("AIFS_SEED"))
        fprintf(stderr, "%4u client %u file %u %-8s %u + %u (size %u)\n", w->step, c, f, what, at,
                len, w->m[f].size);
}

static const char *name_of(unsigned f)
{
    static const char *const names[FILES] = {"one", "two", "three"};

    return names[f];
}

/* Lengths and offsets of all kinds: around the inline limit, blocks, chunks. */
static uint32_t pick_len(struct world *w)
{
    static const uint32_t bounds[] = {100, 5000, 17000, 140000, 1100000};

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
    w->open[c][f] = bed_open(&w->bed, w->c[c], name_of(f), w->flags[c][f], NULL);
}

static void do_write(struct world *w, unsigned c, unsigned f)
{
    struct model *m = &w->m[f];
    uint32_t len = pick_len(w), at = pick_offset(w, m);

    if (w->flags[c][f] & O_APPEND)
        at = m->size;
    if (at + len > ROOM)
        return;
    tell(w, w->flags[c][f] & O_APPEND ? "append" : "write", c, f, at, len);
    bed_pattern(w->tmp, len, at, w->step);
    ck_assert_int_eq(bed_write(&w->bed, w->c[c], w->open[c][f], at, w->tmp, len), 0);
    if (at > m->size)
        memset(m->bytes + m->size, 0, at - m->size);
    memcpy(m->bytes + at, w->tmp, len);
    m->size = MAX(m->size, at + len);
}

static void do_read(struct world *w, unsigned c, unsigned f, uint32_t at, uint32_t len)
{
    struct model *m = &w->m[f];
    uint32_t want = at < m->size ? MIN(len, m->size - at) : 0, k;

    tell(w, "read", c, f, at, len);
    ck_assert_int_eq(bed_read(&w->bed, w->c[c], w->open[c][f], at, w->tmp, len), (int)want);
    for (k = 0; k < want && w->tmp[k] == m->bytes[at + k]; k++) {
    }
    ck_assert_msg(k == want,
                  "step %u: client %u file %u byte %u of [%u, %u) size %u: %02x instead of %02x",
                  w->step, c, f, at + k, at, at + len, m->size, w->tmp[k], m->bytes[at + k]);
}

static void do_truncate(struct world *w, unsigned c, unsigned f)
{
    struct model *m = &w->m[f];
    uint32_t size = pick(w, 3) ? pick(w, m->size + 1) : pick(w, m->size + 100000);

    if (size > ROOM)
        return;
    tell(w, "truncate", c, f, size, 0);
    ck_assert_int_eq(bed_truncate(&w->bed, w->c[c], w->open[c][f], size), 0);
    if (size > m->size)
        memset(m->bytes + m->size, 0, size - m->size);
    m->size = size;
}

static void do_close(struct world *w, unsigned c, unsigned f)
{
    tell(w, "close", c, f, 0, 0);
    ck_assert_int_eq(bed_flush(&w->bed, w->c[c], w->open[c][f]), 0);
    core_release(w->c[c], w->open[c][f]);
    w->open[c][f] = NULL;
}

static void do_fault(struct world *w)
{
    tell(w, "fault", 0, 0, 0, 0);
    if (pick(w, 3))
        fake_oss_restart(&w->bed.cluster.oss[pick(w, w->bed.cluster.n_oss)]);
    else
        fake_mds_break_links(&w->bed.cluster);
}

static void step(struct world *w)
{
    unsigned c = pick(w, CLIENTS), f = pick(w, FILES), what = pick(w, 100);
    uint64_t size;

    ensure_open(w, c, f);
    if (what < 40) {
        do_write(w, c, f);
    } else if (what < 70) {
        do_read(w, c, f, pick_offset(w, &w->m[f]), pick_len(w));
    } else if (what < 76) {
        do_truncate(w, c, f);
    } else if (what < 82) {
        tell(w, "fsync", c, f, 0, 0);
        ck_assert_int_eq(bed_fsync(&w->bed, w->c[c], w->open[c][f]), 0);
    } else if (what < 90) {
        do_close(w, c, f);
    } else if (what < 94) {
        ck_assert_int_eq(bed_size(&w->bed, w->c[c], core_file_ino(w->open[c][f]), &size), 0);
        if (w->open[0][f] == NULL || w->open[1][f] == NULL || c == 0)
            ck_assert_uint_le(size, ROOM);
    } else if (what < 97) {
        do_fault(w);
    } else {
        bed_spin(&w->bed, pick(w, 3) * 10 * NS_PER_MS);
    }
}

static void world_end(struct world *w)
{
    unsigned c, f;

    for (f = 0; f < FILES; f++) {
        for (c = 0; c < CLIENTS; c++) {
            ensure_open(w, c, f);
            do_read(w, c, f, 0, ROOM);
            do_close(w, c, f);
        }
    }
    for (c = 0; c < CLIENTS; c++)
        bed_unmount(&w->bed, w->c[c], false, 0);
    for (f = 0; f < FILES; f++) {
        struct fake_inode *i = fake_inode(&w->bed.cluster, name_of(f));

        ck_assert_uint_eq(i->attr.size, w->m[f].size);
        fake_contents(&w->bed.cluster, i, 0, w->tmp, w->m[f].size, true);
        ck_assert_int_eq(memcmp(w->tmp, w->m[f].bytes, w->m[f].size), 0);
        free(w->m[f].bytes);
    }
    bed_teardown(&w->bed);
    free(w->tmp);
}

static void run_world(unsigned seed)
{
    struct world *w = calloc(1, sizeof *w);
    unsigned c, f;

    printf("seed %u\n", seed);
    fflush(stdout);
    w->seed = seed;
    bed_setup(&w->bed, 3);
    w->tmp = malloc(ROOM + MIB);
    for (c = 0; c < CLIENTS; c++)
        w->c[c] = bed_mount(&w->bed, NULL);
    for (f = 0; f < FILES; f++) {
        w->m[f].bytes = calloc(1, ROOM + MIB);
        w->open[0][f] = bed_create(&w->bed, w->c[0], name_of(f));
    }
    for (w->step = 1; w->step <= 250; w->step++)
        step(w);
    world_end(w);
    free(w);
}

START_TEST(a_file_system_in_memory_agrees)
{
    const char *only = getenv("AIFS_SEED");

    run_world(only ? (unsigned)atoi(only) : (unsigned)_i + 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("client-random");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_file_system_in_memory_agrees, 0,
                        getenv("AIFS_SEED")    ? 1
                        : getenv("AIFS_SEEDS") ? atoi(getenv("AIFS_SEEDS"))
                                               : 12);
    return suite_run_case("client-random", tc);
}
