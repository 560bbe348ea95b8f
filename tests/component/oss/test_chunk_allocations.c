// SPDX-License-Identifier: Apache-2.0
/*
 * A target that runs out of memory: each allocation of a round of operations fails in turn. The
 * operation that it hits ends in ENOMEM and works when it is asked for again; nothing is lost, no
 * slot leaks, and the store still opens.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/rig.h"
#include "tests/support/suite.h"

#define CHUNK_BYTES (256u * KIB)
#define CHUNKS      2u
#define FILE_BYTES  (CHUNKS * CHUNK_BYTES)
#define INO         7u
#define SWEEP_MAX   4000u /* no round makes so many allocations */

static struct rig rig;
static uint8_t *model, *got, *data;
static uint64_t gen;

/* The second time there is memory: only one allocation of a round fails. */
#define TWICE(call)                                                                                \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
                                                                                                   \
        ck_assert_msg(rc_ == 0 || rc_ == -ENOMEM, "%s: %s", #call, err_name(rc_));                 \
        if (rc_)                                                                                   \
            ck_assert_int_eq((call), 0);                                                           \
    } while (0)

static void write_both(uint64_t chunk, uint32_t offset, uint32_t len, bool stable)
{
    TWICE(rig_write(&rig, INO, chunk, gen, offset, data, len, stable));
    memcpy(model + chunk * CHUNK_BYTES + offset, data, len);
}

static void read_both(void)
{
    for (uint32_t c = 0; c < CHUNKS; c++)
        TWICE(rig_read(&rig, INO, c, gen, 0, got + c * CHUNK_BYTES, CHUNK_BYTES));
    ck_assert_int_eq(memcmp(got, model, FILE_BYTES), 0);
}

static void truncate_both(uint64_t start)
{
    gen++;
    TWICE(rig_truncate(&rig, INO, gen, CHUNK_BYTES, start));
    memset(model + start, 0, FILE_BYTES - start);
}

static void punch_both(uint64_t start, uint64_t end)
{
    TWICE(rig_punch(&rig, INO, gen, CHUNK_BYTES, start, end));
    memset(model + start, 0, end - start);
}

static void round_of_operations(void)
{
    uint64_t high;

    write_both(0, 100, 5000, true);            /* goes into the log */
    write_both(0, 50 * KIB, 100 * KIB, false); /* takes a new slot */
    write_both(1, 0, CHUNK_BYTES, false);      /* a whole chunk */
    write_both(1, 8 * KIB, 4 * KIB, false);    /* one block of it */
    TWICE(rig_commit(&rig, INO));
    read_both();
    punch_both(3000, 60 * KIB);
    truncate_both(CHUNK_BYTES + 5000);
    write_both(1, 6000, 300, true);
    TWICE(rig_seal(&rig, INO, gen, CHUNK_BYTES, &high));
    ck_assert_uint_eq(high, CHUNK_BYTES + 6300);
    TWICE(rig_verify(&rig, INO, 0));
    TWICE(rig_write(&rig, INO + 1, 0, 0, 0, data, 100, true));
    TWICE(rig_destroy_ino(&rig, INO + 1));
    TWICE(rig_commit(&rig, 0));
}

/* A store that could not be opened can be opened again. */
static void reopen(void)
{
    int rc;

    rig_close(&rig);
    rc = rig_try_open(&rig);
    ck_assert_msg(rc == 0 || rc == -ENOMEM, "%s", err_name(rc));
    if (rc)
        ck_assert_int_eq(rig_try_open(&rig), 0);
}

static void one_round(unsigned n, unsigned *ret_seen)
{
    struct chunk_stat st;
    char spec[64];

    memset(model, 0, FILE_BYTES);
    gen = 0;
    rig_make_dir(&rig);
    rig_open(&rig);
    write_both(0, 0, CHUNK_BYTES, true);
    snprintf(spec, sizeof spec, "mem.alloc=error@%u", n);
    ck_assert_int_eq(fault_arm(spec), 0);
    round_of_operations();
    reopen();
    *ret_seen = fault_count("mem.alloc");
    fault_disarm_all();
    read_both();
    ck_assert_int_eq(rig_destroy_ino(&rig, INO), 0);
    chunk_store_stat(rig.store, &st);
    ck_assert_uint_eq(st.used_bytes, 0); /* no slot was lost */
    ck_assert_uint_eq(st.log_bytes, 0);
    ck_assert_uint_eq(st.errors, 0);
    rig_destroy(&rig);
}

START_TEST(each_allocation_of_a_target_may_fail)
{
    unsigned n, seen = 0;

    log_set_level(LOG_LEVEL_ERROR);
    model = malloc(FILE_BYTES);
    got = malloc(FILE_BYTES);
    data = aligned_alloc(4096, CHUNK_BYTES);
    rig_fill(data, CHUNK_BYTES, 1);
    for (n = 1; n <= SWEEP_MAX; n++) {
        one_round(n, &seen);
        if (seen < n)
            break;
    }
    ck_assert_uint_le(n, SWEEP_MAX);
    ck_assert_uint_gt(n, 10); /* there are allocations at all */
    free(model);
    free(got);
    free(data);
}
END_TEST

/* Blocks 0 to 15 are committed, 16 to 31 acknowledged; the write covers one of each kind. */
static int straddling_write(void)
{
    struct rig_op o = {.op = {.kind = CHUNK_WRITE,
                              .ino = INO,
                              .offset = 15 * CHUNK_BLOCK,
                              .len = 2 * CHUNK_BLOCK,
                              .data = data + CHUNK_BYTES / 2,
                              .op_id = 77,
                              .stable = true}};

    return rig_run(&rig, &o);
}

static bool one_straddling_write(unsigned n)
{
    char spec[64];
    bool failed;
    int rc;

    rig_make_dir(&rig);
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, INO, 0, 0, CHUNK_BYTES - 1, data, 1, true), 0);
    ck_assert_int_eq(rig_write(&rig, INO, 0, 0, 0, data, 16 * CHUNK_BLOCK, true), 0);
    ck_assert_int_eq(
        rig_write(&rig, INO, 0, 0, 16 * CHUNK_BLOCK, data + 64 * KIB, 16 * CHUNK_BLOCK, false), 0);
    memcpy(model, data, 32 * CHUNK_BLOCK);
    snprintf(spec, sizeof spec, "mem.alloc=error@%u", n);
    ck_assert_int_eq(fault_arm(spec), 0);
    rc = straddling_write();
    failed = fault_count("mem.alloc") >= n;
    fault_disarm_all();
    ck_assert_int_eq(rc, failed ? -ENOMEM : 0);
    ck_assert_int_eq(rig_read(&rig, INO, 0, 0, 0, got, 32 * CHUNK_BLOCK), 0);
    if (failed)
        ck_assert_int_eq(memcmp(got, model, 32 * CHUNK_BLOCK), 0);
    ck_assert_int_eq(straddling_write(), 0); /* sent again, or done already */
    memcpy(model + 15 * CHUNK_BLOCK, data + CHUNK_BYTES / 2, 2 * CHUNK_BLOCK);
    rig_reopen(&rig);
    ck_assert_int_eq(rig_read(&rig, INO, 0, 0, 0, got, 32 * CHUNK_BLOCK), 0);
    ck_assert_int_eq(memcmp(got, model, 32 * CHUNK_BLOCK), 0);
    rig_destroy(&rig);
    return failed;
}

START_TEST(a_write_that_finds_no_memory_changes_nothing_and_is_not_taken_for_done)
{
    unsigned n = 1;

    log_set_level(LOG_LEVEL_ERROR);
    model = malloc(FILE_BYTES);
    got = malloc(FILE_BYTES);
    data = aligned_alloc(4096, CHUNK_BYTES);
    rig_fill(data, CHUNK_BYTES, 1);
    while (one_straddling_write(n))
        n++;
    ck_assert_uint_gt(n, 1); /* something was allocated at all */
    free(model);
    free(got);
    free(data);
}
END_TEST

SUITE_MAIN("chunk-allocations", NULL, NULL, each_allocation_of_a_target_may_fail,
           a_write_that_finds_no_memory_changes_nothing_and_is_not_taken_for_done)
