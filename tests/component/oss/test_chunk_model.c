// SPDX-License-Identifier: Apache-2.0
/*
 * The chunk store against an array in memory: thousands of seeded random operations, several in
 * flight, with commits, folds and reopening in between. A failure prints its seed; AIFS_TEST_SEED
 * replays it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "tests/component/oss/rig.h"
#include "tests/support/suite.h"

#define INOS        3
#define CHUNKS      3
#define CHUNK_BYTES (256u * KIB)
#define FILE_BYTES  (CHUNKS * CHUNK_BYTES)
#define FLIGHT      6

struct model {
    struct rig rig;
    uint64_t seed;
    struct {
        uint64_t ino, gen;
        uint8_t *data;
        uint32_t lens[CHUNKS]; /* as far as each chunk was written */
    } files[INOS];
    uint64_t next_ino;
    unsigned placed;
    struct rig_op *ops[FLIGHT];
    uint8_t *bufs[FLIGHT];
};

static uint32_t below(struct model *m, uint32_t n)
{
    return (uint32_t)(rig_rand(&m->seed) % n);
}

static void model_check_file(struct model *m, unsigned f)
{
    static uint8_t got[CHUNK_BYTES];

    for (uint32_t c = 0; c < CHUNKS; c++) {
        ck_assert_int_eq(
            rig_read(&m->rig, m->files[f].ino, c, m->files[f].gen, 0, got, CHUNK_BYTES), 0);
        for (uint32_t i = 0; i < CHUNK_BYTES; i++)
            if (got[i] != m->files[f].data[c * CHUNK_BYTES + i])
                ck_abort_msg("ino %u chunk %u byte %u (block %u): %02x, not %02x",
                             (unsigned)m->files[f].ino, c, i, i / 4096, got[i],
                             m->files[f].data[c * CHUNK_BYTES + i]);
    }
}

static uint32_t random_len(struct model *m)
{
    switch (below(m, 4)) {
    case 0:
        return 1 + below(m, 300);
    case 1:
        return 1 + below(m, 16 * KIB);
    case 2:
        return (1 + below(m, 8)) * CHUNK_BLOCK;
    default:
        return 1 + below(m, CHUNK_BYTES);
    }
}

/* Several writes at once; the model applies them in the order of submission. */
static void model_writes(struct model *m)
{
    unsigned n = 1 + below(m, FLIGHT);

    for (unsigned i = 0; i < n; i++) {
        unsigned f = below(m, INOS);
        uint32_t len = random_len(m), chunk = below(m, CHUNKS), offset = below(m, CHUNK_BYTES);
        struct rig_op *o = m->ops[i];

        if (below(m, 3) == 0)
            offset = offset / CHUNK_BLOCK * CHUNK_BLOCK;
        if (below(m, 6) == 0) { /* what may land in a slot */
            offset = 0;
            len = (1 + below(m, CHUNK_BYTES / CHUNK_BLOCK)) * CHUNK_BLOCK;
        }
        len = MIN(len, CHUNK_BYTES - offset);
        memset(o, 0, sizeof *o);
        rig_fill(m->bufs[i], len, rig_rand(&m->seed));
        o->op = (struct chunk_op){.kind = CHUNK_WRITE,
                                  .ino = m->files[f].ino,
                                  .chunk = chunk,
                                  .truncate_gen = m->files[f].gen,
                                  .offset = offset,
                                  .len = len,
                                  .data = m->bufs[i],
                                  .crcs = o->crcs,
                                  .stable = below(m, 4) == 0};
        crc32c_blocks(offset, m->bufs[i], len, o->crcs);
        memcpy(m->files[f].data + chunk * CHUNK_BYTES + offset, m->bufs[i], len);
        m->files[f].lens[chunk] = MAX(m->files[f].lens[chunk], offset + len);
        m->placed += below(m, 4) && rig_place(&m->rig, o);
        rig_submit(&m->rig, o);
    }
    for (unsigned i = 0; i < n; i++) {
        rig_wait(&m->rig, &m->ops[i]->done);
        ck_assert_int_eq(m->ops[i]->status, 0);
    }
}

static void model_truncate(struct model *m, unsigned f)
{
    uint64_t start = below(m, FILE_BYTES + 1);

    m->files[f].gen++;
    ck_assert_int_eq(rig_truncate(&m->rig, m->files[f].ino, m->files[f].gen, CHUNK_BYTES, start),
                     0);
    memset(m->files[f].data + start, 0, FILE_BYTES - start);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        uint64_t base = c * CHUNK_BYTES, keep = start > base ? start - base : 0;

        m->files[f].lens[c] = (uint32_t)MIN(m->files[f].lens[c], keep);
    }
}

static void model_punch(struct model *m, unsigned f)
{
    uint64_t start = below(m, FILE_BYTES),
             end = start + below(m, (uint32_t)(FILE_BYTES - start + 1));

    ck_assert_int_eq(rig_punch(&m->rig, m->files[f].ino, m->files[f].gen, CHUNK_BYTES, start, end),
                     0);
    memset(m->files[f].data + start, 0, end - start);
}

static void model_new_file(struct model *m, unsigned f)
{
    uint8_t byte = 1;

    if (m->files[f].ino) {
        ck_assert_int_eq(rig_destroy_ino(&m->rig, m->files[f].ino), 0);
        ck_assert_int_eq(
            rig_write(&m->rig, m->files[f].ino, 0, m->files[f].gen, 0, &byte, 1, false), -ENOENT);
    }
    m->files[f].ino = ++m->next_ino;
    m->files[f].gen = 0;
    memset(m->files[f].lens, 0, sizeof m->files[f].lens);
    memset(m->files[f].data, 0, FILE_BYTES);
}

static void model_seal(struct model *m, unsigned f)
{
    uint64_t high, want = 0;

    for (uint32_t c = 0; c < CHUNKS; c++)
        if (m->files[f].lens[c])
            want = c * CHUNK_BYTES + m->files[f].lens[c];
    ck_assert_int_eq(rig_seal(&m->rig, m->files[f].ino, m->files[f].gen, CHUNK_BYTES, &high), 0);
    ck_assert_uint_eq(high, want);
}

static void model_reopen(struct model *m)
{
    rig_reopen(&m->rig);
    for (unsigned f = 0; f < INOS; f++)
        model_check_file(m, f);
}

static void model_step(struct model *m)
{
    unsigned f = below(m, INOS), what = below(m, 100);

    if (what < 60)
        model_writes(m);
    else if (what < 75)
        model_check_file(m, f);
    else if (what < 82)
        ck_assert_int_eq(rig_commit(&m->rig, below(m, 2) ? m->files[f].ino : 0), 0);
    else if (what < 88)
        model_truncate(m, f);
    else if (what < 94)
        model_punch(m, f);
    else if (what < 96)
        model_seal(m, f);
    else if (what < 98)
        model_new_file(m, f);
    else
        model_reopen(m);
}

static void model_run(uint64_t seed, unsigned steps, uint64_t log_bytes)
{
    struct model m = {.seed = seed};
    struct chunk_stat st;

    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    rig_make_dir(&m.rig);
    m.rig.options.log_bytes = log_bytes;
    m.rig.options.cache_bytes = 8 * KIB; /* almost nothing stays */
    rig_open(&m.rig);
    for (unsigned i = 0; i < FLIGHT; i++) {
        m.ops[i] = malloc(sizeof *m.ops[i]);
        m.bufs[i] = aligned_alloc(4096, CHUNK_BYTES);
    }
    for (unsigned f = 0; f < INOS; f++) {
        m.files[f].data = malloc(FILE_BYTES);
        model_new_file(&m, f);
    }
    for (unsigned i = 0; i < steps; i++)
        model_step(&m);
    model_reopen(&m);
    for (unsigned f = 0; f < INOS; f++)
        ck_assert_int_eq(rig_destroy_ino(&m.rig, m.files[f].ino), 0);
    chunk_store_stat(m.rig.store, &st);
    ck_assert_uint_eq(st.used_bytes, 0); /* no slot was lost */
    ck_assert_uint_eq(st.chunks, 0);
    ck_assert_uint_eq(st.log_bytes, 0);
    ck_assert_uint_eq(st.errors, 0);
    if (!rig_on_disk)
        ck_assert_uint_gt(m.placed, 5);
    rig_destroy(&m.rig);
    for (unsigned i = 0; i < FLIGHT; i++) {
        free(m.ops[i]);
        free(m.bufs[i]);
    }
    for (unsigned f = 0; f < INOS; f++)
        free(m.files[f].data);
}

static uint64_t seed_or(uint64_t seed)
{
    return getenv("AIFS_TEST_SEED") ? strtoull(getenv("AIFS_TEST_SEED"), NULL, 0) : seed;
}

START_TEST(random_operations_agree_with_the_model_in_memory)
{
    model_run(seed_or(1000 + (uint64_t)_i), 400, 1 * MIB);
}
END_TEST

START_TEST(random_operations_agree_when_the_log_is_tiny)
{
    model_run(seed_or(2000 + (uint64_t)_i), 400, 64 * KIB);
}
END_TEST

START_TEST(random_operations_agree_on_a_disk)
{
    rig_on_disk = true;
    model_run(seed_or(3000 + (uint64_t)_i), 300, 1 * MIB);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("chunk model");

    log_set_level(LOG_LEVEL_WARN);
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, random_operations_agree_with_the_model_in_memory, 0, 4);
    tcase_add_loop_test(t, random_operations_agree_when_the_log_is_tiny, 0, 4);
    tcase_add_loop_test(t, random_operations_agree_on_a_disk, 0, 2);
    return suite_run_case("chunk model", t);
}
