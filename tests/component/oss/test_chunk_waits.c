// SPDX-License-Identifier: Apache-2.0
/* Operations of the chunk store that wait for each other, for buffers and for commits: whatever is
 * submitted ends. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "oss/chunk/store_int.h"
#include "tests/component/oss/target_bed.h"
#include "tests/support/suite_cases.h"

#define STORM_READ (200u * KIB)
#define STALL_S    20u /* nothing has ended for so long: nothing ever will */

static void wait_all(struct rig_op *ops, unsigned n)
{
    uint64_t quiet_since = reactor_now_ns(rig.reactor);

    for (unsigned i = 0; i < n; quiet_since = reactor_now_ns(rig.reactor), i++)
        while (!ops[i].done) {
            reactor_run_once(rig.reactor, NS_PER_S);
            ck_assert_msg(reactor_now_ns(rig.reactor) - quiet_since < STALL_S * NS_PER_S,
                          "operation %u of %u never ends", i, n);
        }
}

/* n stable writes of len bytes, step apart, from `skew` on, all at once into one chunk. */
static void write_at_once(struct rig_op *ops, unsigned n, uint32_t skew, uint32_t step,
                          uint32_t len)
{
    for (unsigned i = 0; i < n; i++) {
        ops[i] = (struct rig_op){.op = {.kind = CHUNK_WRITE,
                                        .ino = 5,
                                        .offset = skew + i * step,
                                        .len = len,
                                        .data = data + skew + i * step,
                                        .stable = true}};
        rig_submit(&rig, &ops[i]);
    }
    wait_all(ops, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(ops[i].status, 0);
}

START_TEST(stable_writes_of_parts_of_blocks_share_a_chunk)
{
    static struct rig_op ops[250]; /* more than there are buffers to merge blocks in */

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + 1, CB, _i), 0);
    write_at_once(ops, ARRAY_LEN(ops), 100, 4096, 300);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        uint32_t at = 100 + i * 4096;

        ck_assert_int_eq(rig_read(&rig, 5, 0, 0, at - 100, got, 1000), 0);
        ck_assert_int_eq(memcmp(got, data + 1 + at - 100, 100), 0);
        ck_assert_int_eq(memcmp(got + 100, data + at, 300), 0);
        ck_assert_int_eq(memcmp(got + 400, data + 1 + at + 300, 600), 0);
    }
}
END_TEST

START_TEST(stable_writes_from_unaligned_memory_share_a_chunk)
{
    static struct rig_op ops[32]; /* more than there are buffers to align data in */

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data + 1, CB, _i), 0);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        ops[i] = (struct rig_op){.op = {.kind = CHUNK_WRITE,
                                        .ino = 5,
                                        .offset = i * 32768,
                                        .len = 32768,
                                        .data = data + 77 + i * 32768,
                                        .stable = true}};
        rig_submit(&rig, &ops[i]);
    }
    wait_all(ops, ARRAY_LEN(ops));
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, CB), 0);
    ck_assert_int_eq(memcmp(got, data + 77, CB), 0);
}
END_TEST

START_TEST(a_chunk_that_grows_by_stable_writes_moves_without_waiting_for_itself)
{
    static struct rig_op ops[100];

    rig_open(&rig);
    write_at_once(ops, ARRAY_LEN(ops), 0, 10000, 10000);
    ck_assert_int_eq(rig_read(&rig, 5, 0, 0, 0, got, 1000000), 0);
    ck_assert_int_eq(memcmp(got, data, 1000000), 0);
}
END_TEST

/* room: for what it reads. */
static void storm_op(struct chunk_op *op, uint8_t *room, uint64_t *seed)
{
    uint64_t r = rig_rand(seed);
    unsigned kind = (unsigned)(r % 100);
    uint32_t at = (uint32_t)(r >> 8) % (CB - 1), len = (uint32_t)(r >> 32) % 200000 + 1;

    *op = (struct chunk_op){
        .ino = 5 + (r >> 56) % 2, .chunk = (r >> 58) % 3, .truncate_gen = 0, .chunk_bytes = CB};
    if (kind < 70) {
        op->kind = CHUNK_WRITE;
        op->offset = at;
        op->len = MIN(kind < 35 ? len : len % 9000 + 1, CB - at);
        op->data = data + (r >> 20) % CB;
        op->len = MIN(op->len, 2 * CB - (uint32_t)((uint8_t *)op->data - data));
        op->stable = kind % 3 != 0;
    } else if (kind < 88) {
        op->kind = CHUNK_READ;
        op->offset = at / 4096 * 4096;
        op->len = MIN(len / 4096 * 4096 + 4096, MIN(STORM_READ, CB - op->offset));
        op->data = room;
    } else if (kind < 93) {
        op->kind = CHUNK_COMMIT;
        op->ino = kind < 90 ? 0 : op->ino;
    } else if (kind < 96) {
        op->kind = CHUNK_VERIFY;
    } else {
        op->kind = kind < 99 ? CHUNK_PUNCH : CHUNK_SEAL;
        op->start = op->chunk * CB + at;
        op->end = op->start + len;
    }
}

/* Small bounds everywhere, so that everything that can be waited for is waited for. */
START_TEST(everything_at_once_ends)
{
    static struct rig_op ops[400];
    uint64_t seed = 1000 + (uint64_t)_i;
    uint8_t *room = aligned_alloc(4096, ARRAY_LEN(ops) * STORM_READ);

    rig.options.log_bytes = 128 * KIB;
    rig.options.dirty_bytes = 256 * KIB;
    rig.options.commit_interval_ns = 2 * NS_PER_MS;
    rig_open(&rig);
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        memset(&ops[i], 0, sizeof ops[i]);
        storm_op(&ops[i].op, room + (size_t)i * STORM_READ, &seed);
        rig_submit(&rig, &ops[i]);
        if (rig_rand(&seed) % 16 == 0)
            reactor_run_once(rig.reactor, 0);
    }
    wait_all(ops, ARRAY_LEN(ops));
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
        ck_assert_int_eq(ops[i].status, 0);
    free(room);
}
END_TEST

/* Its chunks are listed in several turns; one of them moves to another slot, and one that had no
 * record gets one, when a commit comes between. */
START_TEST(an_inode_is_destroyed_while_what_it_has_is_committed)
{
    enum { CHUNKS = 1200 };
    struct rig_op commit = {.op = {.kind = CHUNK_COMMIT}};
    struct rig_op destroy = {.op = {.kind = CHUNK_DESTROY, .ino = 5}};

    rig.options.capacity_bytes = 256 * MIB;
    rig_open(&rig);
    for (uint64_t c = 1; c < CHUNKS; c++)
        ck_assert_int_eq(rig_write(&rig, 5, c, 0, 0, data, c == 1 ? 60000 : 100, false), 0);
    ck_assert_int_eq(rig_commit(&rig, 0), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 1, 0, 0, data + 1, 60000, false), 0);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, 100, false), 0);
    rig_submit(&rig, &commit);
    rig_submit(&rig, &destroy);
    rig_wait(&rig, &destroy.done);
    ck_assert_int_eq(destroy.status, 0);
    rig_wait(&rig, &commit.done);
    ck_assert_int_eq(commit.status, 0);
    ck_assert_uint_eq(target_stat().chunks, 0);
    ck_assert_uint_eq(target_stat().used_bytes, 0);
    rig_reopen(&rig);
    ck_assert_uint_eq(target_stat().chunks, 0);
    ck_assert_uint_eq(target_stat().used_bytes, 0);
}
END_TEST

/* In two pieces, between which the chunk grows behind what is asked for. */
START_TEST(a_read_is_as_long_as_what_it_has_read)
{
    static struct rig_op read, write;
    const uint32_t len = 20000;

    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, true), 0);
    ck_assert_int_eq(rig_truncate(&rig, 5, 1, CB, len), 0); /* its slot has room to grow */
    ck_assert_int_eq(rig_write(&rig, 5, 0, 1, 8192, data, 4096, true), 0); /* logged */
    memset(got, 0xee, CB);
    read.op = (struct chunk_op){.kind = CHUNK_READ,
                                .ino = 5,
                                .truncate_gen = 1,
                                .len = 128 * KIB,
                                .data = got,
                                .crcs = read.crcs};
    write.op = (struct chunk_op){.kind = CHUNK_WRITE,
                                 .ino = 5,
                                 .truncate_gen = 1,
                                 .offset = 300 * KIB,
                                 .len = 4096,
                                 .data = data};
    rig_submit(&rig, &read);
    rig_submit(&rig, &write);
    wait_all(&read, 1);
    wait_all(&write, 1);
    ck_assert_int_eq(read.status, 0);
    ck_assert_int_eq(write.status, 0);
    ck_assert_uint_eq(read.op.ret_crcs, crc_pieces(0, read.op.ret_len));
    ck_assert_uint_ge(read.op.ret_len, len);
    ck_assert_int_eq(memcmp(got, data, 8192), 0);
    for (uint32_t i = len; i < read.op.ret_len; i++)
        ck_assert_uint_eq(got[i], 0);
}
END_TEST

static struct rig_op committed[2];

static void commit_other(struct chunk_op *op, int status)
{
    *(int *)op->arg = status;
    committed[1].op = (struct chunk_op){.kind = CHUNK_COMMIT, .ino = 5};
    rig_submit(&rig, &committed[1]);
}

/* A writer that a commit has kept out goes on before that is posted, and makes a segment file: the
 * room for descriptors was taken before that, and there is none to spare. */
START_TEST(a_commit_syncs_what_it_names_whatever_files_are_made_meanwhile)
{
    static struct rig_op grow;
    struct chunk_slot slot;
    struct chunk_op more;
    int written = 1;
    uint64_t at;

    if (target_in_memory())
        return;
    rig.options.commit_interval_ns = 3600 * NS_PER_S;
    rig_open(&rig);
    ck_assert_int_eq(rig_write(&rig, 6, 0, 0, 0, data, 60000, true), 0); /* file 16 */
    ck_assert_int_eq(rig_write(&rig, 5, 0, 0, 0, data, CB, false), 0);   /* file 20 */
    ck_assert_int_eq(rig_write(&rig, 6, 0, 0, 0, data, 4096, false), 0); /* logged */
    rig.store->batch.cap_fds = rig.store->seg.n_open;
    ck_assert_uint_eq(rig.store->seg.n_open, 2);
    ck_assert_int_eq(fault_arm("fio.enter=error"), 0); /* what follows stays under way */
    more = (struct chunk_op){.kind = CHUNK_WRITE,
                             .ino = 6,
                             .offset = 61440,
                             .len = 4096,
                             .data = data,
                             .done = commit_other,
                             .arg = &written};
    chunk_store_submit(rig.store, &more);
    grow = (struct rig_op){.op = {.kind = CHUNK_WRITE,
                                  .ino = 6,
                                  .offset = 61440,
                                  .len = 100000,
                                  .data = data}}; /* into file 18 */
    rig_submit(&rig, &grow);
    committed[0] = (struct rig_op){.op = {.kind = CHUNK_COMMIT, .ino = 6}};
    rig_submit(&rig, &committed[0]);
    for (unsigned i = 0; i < 3; i++)
        reactor_run_once(rig.reactor, NS_PER_MS);
    ck_assert_int_eq(written, 1);
    fault_disarm_all();
    wait_all(committed + 1, 1);
    ck_assert_int_eq(written, 0);
    ck_assert_int_eq(committed[1].status, 0);
    slot = chunk_find(rig.store, 5, 0)->disk_slot;
    ck_assert_uint_eq(slot.class, 20);
    ck_assert(!seg_of_slot(&rig.store->seg, slot, &at)->dirty);
    wait_all(committed, 1);
    wait_all(&grow, 1);
    ck_assert_int_eq(grow.status, 0);
    ck_assert_uint_eq(rig.store->seg.n_open, 3);
}
END_TEST

static TCase *waits(const char *name, void (*before)(void))
{
    TCase *t = tcase_create(name);

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, before, target_teardown);
    tcase_add_loop_test(t, stable_writes_of_parts_of_blocks_share_a_chunk, 0, 2);
    tcase_add_loop_test(t, stable_writes_from_unaligned_memory_share_a_chunk, 0, 2);
    tcase_add_test(t, a_chunk_that_grows_by_stable_writes_moves_without_waiting_for_itself);
    tcase_add_loop_test(t, everything_at_once_ends, 0, 10);
    tcase_add_test(t, a_read_is_as_long_as_what_it_has_read);
    tcase_add_test(t, an_inode_is_destroyed_while_what_it_has_is_committed);
    tcase_add_test(t, a_commit_syncs_what_it_names_whatever_files_are_made_meanwhile);
    return t;
}

int main(void)
{
    TCase *const cases[] = {waits("memory", target_setup), waits("disk", target_setup_on_disk)};

    log_set_level(LOG_LEVEL_ERROR);
    return suite_run_cases("waiting in the chunk store", cases, ARRAY_LEN(cases));
}
