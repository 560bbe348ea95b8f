// SPDX-License-Identifier: Apache-2.0
/*
 * The chunk store killed at random moments. A worker process (this program again) writes, cuts and
 * commits, and notes in shared memory what it started, what was acknowledged and what is durable;
 * the test kills it after a random number of steps, opens the store and compares block by block:
 * what was durable, or anything started since, in its order; nothing else, and never a block that
 * cannot be read.
 *
 * Three ways to die: kill -9 (the page cache survives), a crash at a step of the commit, and a
 * power cut (powercut.so: only what was synced survives, and some of the rest at random). The last
 * one with syncs left out must be noticed.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/fault/fault.h"
#include "tests/component/oss/rig.h"
#include "tests/support/suite.h"

#define INO         7
#define CHUNKS      4u
#define CHUNK_BYTES (256u * KIB)
#define FILE_BYTES  (CHUNKS * CHUNK_BYTES)
#define BLOCKS      (FILE_BYTES / CHUNK_BLOCK)
#define OPS_MAX     4000u
#define FLIGHT      4u

enum { K_WRITE, K_TRUNCATE, K_PUNCH };

struct note {
    uint32_t kind;
    uint32_t start, len; /* in the file */
    uint64_t seed;
};

/* Shared with the worker. */
struct journal {
    _Atomic uint32_t started;
    _Atomic uint32_t durable; /* notes before this one are durable */
    uint64_t gen;             /* truncate generation at the start of the round */
    _Atomic uint64_t gen_now; /* of the newest truncate started */
    struct note notes[OPS_MAX];
};

static struct journal *journal;

/* ---- the worker ---- */

struct worker {
    struct rig rig;
    uint64_t seed, gen;
    int pipe;
    struct rig_op ops[FLIGHT];
    uint32_t index[FLIGHT]; /* note of each */
    bool used[FLIGHT];
    uint8_t *bufs[FLIGHT];
};

static uint32_t below(struct worker *w, uint32_t n)
{
    return (uint32_t)(rig_rand(&w->seed) % n);
}

static struct note *note_new(uint32_t kind, uint32_t start, uint32_t len, uint64_t seed)
{
    struct note *n = &journal->notes[journal->started];

    *n = (struct note){kind, start, len, seed};
    journal->started++;
    return n;
}

static void tell(struct worker *w)
{
    if (write(w->pipe, "", 1) != 1 || journal->started + FLIGHT + 2 > OPS_MAX)
        _exit(3);
}

static void work_drain(struct worker *w)
{
    for (unsigned i = 0; i < FLIGHT; i++) {
        if (!w->used[i])
            continue;
        rig_wait(&w->rig, &w->ops[i].done);
        if (w->ops[i].status)
            _exit(4);
        w->used[i] = false;
    }
}

static void work_write(struct worker *w, unsigned i)
{
    uint32_t sizes[] = {200, 4096, 16384, 65536, 200000};
    uint32_t max = sizes[below(w, 5)], chunk = below(w, CHUNKS), offset = below(w, CHUNK_BYTES);
    uint32_t want = 1 + below(w, max), len = MIN(want, CHUNK_BYTES - offset);
    bool whole = below(w, 4) == 0; /* may land in a slot */
    struct rig_op *o = &w->ops[i];
    struct note *n;

    if (whole) {
        offset = 0;
        len = CHUNK_BYTES - CHUNK_BLOCK * below(w, 3);
    }
    n = note_new(K_WRITE, chunk * CHUNK_BYTES + offset, len, rig_rand(&w->seed));
    memset(o, 0, sizeof *o);
    rig_fill(w->bufs[i], len, n->seed);
    o->op = (struct chunk_op){.kind = CHUNK_WRITE,
                              .ino = INO,
                              .chunk = chunk,
                              .truncate_gen = w->gen,
                              .offset = offset,
                              .len = len,
                              .data = w->bufs[i],
                              .stable = below(w, 3) == 0};
    w->used[i] = true;
    (void)(whole && rig_place(&w->rig, o));
    rig_submit(&w->rig, o);
}

/* Everything before is acknowledged, then committed: now it is durable. */
static void work_commit(struct worker *w)
{
    uint32_t upto;

    work_drain(w);
    upto = journal->started;
    if (rig_commit(&w->rig, below(w, 2) ? INO : 0))
        _exit(5);
    journal->durable = upto;
}

static void work_cut(struct worker *w)
{
    uint32_t start = below(w, FILE_BYTES), len = below(w, FILE_BYTES - start);

    work_commit(w);
    if (below(w, 2)) {
        note_new(K_TRUNCATE, start, FILE_BYTES - start, 0);
        journal->gen_now = ++w->gen;
        if (rig_truncate(&w->rig, INO, w->gen, CHUNK_BYTES, start))
            _exit(6);
    } else {
        note_new(K_PUNCH, start, len, 0);
        if (rig_punch(&w->rig, INO, w->gen, CHUNK_BYTES, start, start + len))
            _exit(7);
    }
    journal->durable = journal->started;
}

static int worker_main(char **argv)
{
    struct worker w = {.seed = strtoull(argv[3], NULL, 0), .pipe = atoi(argv[4])};
    int fd = open(argv[2], O_RDWR);

    journal = mmap(NULL, sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (journal == MAP_FAILED || fault_arm_from_env())
        return 2;
    log_set_level(LOG_LEVEL_ERROR);
    chunk_store_options_default(&w.rig.options);
    snprintf(w.rig.dir, sizeof w.rig.dir, "%s", argv[1]);
    w.rig.options.path = w.rig.dir;
    w.rig.options.engine = "plain";
    w.rig.options.capacity_bytes = 64 * MIB;
    w.rig.options.log_bytes = 256 * KIB;
    w.rig.options.commit_interval_ns = 3 * NS_PER_MS;
    w.gen = journal->gen;
    if (rig_try_open(&w.rig))
        return 2;
    for (unsigned i = 0; i < FLIGHT; i++)
        w.bufs[i] = aligned_alloc(4096, CHUNK_BYTES);
    for (unsigned i = 0;; i = (i + 1) % FLIGHT) {
        if (w.used[i]) {
            rig_wait(&w.rig, &w.ops[i].done);
            if (w.ops[i].status)
                return 4;
            w.used[i] = false;
        }
        switch (below(&w, 16)) {
        case 0:
            work_cut(&w);
            break;
        case 1:
        case 2:
            work_commit(&w);
            break;
        default:
            work_write(&w, i);
        }
        tell(&w);
    }
}

/* ---- the judge ---- */

struct judge {
    struct rig rig;
    char shared[300], shadow[300], self[512], tools[512];
    uint64_t seed;
    uint8_t *known; /* what the file held at the start of the round */
    uint8_t *now;
    bool power; /* cut the power instead of killing */
};

static void note_apply(const struct note *n, uint8_t *data)
{
    if (n->kind == K_WRITE)
        rig_fill(data + n->start, n->len, n->seed);
    else
        memset(data + n->start, 0, n->len);
}

static bool note_touches(const struct note *n, uint32_t block)
{
    return n->len && n->start < (block + 1) * CHUNK_BLOCK &&
           n->start + n->len > block * CHUNK_BLOCK;
}

/* Marks the blocks whose content is what some history allows. Returns the first that is not, or
 * BLOCKS. */
static uint32_t judge_blocks(struct judge *j)
{
    uint8_t *model = malloc(FILE_BYTES + 8);
    static bool ok[BLOCKS];

    memcpy(model, j->known, FILE_BYTES);
    for (uint32_t i = 0; i < journal->durable; i++)
        note_apply(&journal->notes[i], model);
    for (uint32_t b = 0; b < BLOCKS; b++)
        ok[b] = !memcmp(model + b * CHUNK_BLOCK, j->now + b * CHUNK_BLOCK, CHUNK_BLOCK);
    for (uint32_t i = journal->durable; i < journal->started; i++) {
        note_apply(&journal->notes[i], model);
        for (uint32_t b = 0; b < BLOCKS; b++)
            if (!ok[b] && note_touches(&journal->notes[i], b))
                ok[b] = !memcmp(model + b * CHUNK_BLOCK, j->now + b * CHUNK_BLOCK, CHUNK_BLOCK);
    }
    free(model);
    for (uint32_t b = 0; b < BLOCKS; b++)
        if (!ok[b])
            return b;
    return BLOCKS;
}

/* The sanitizer's run time insists on coming first in the library list, and this one comes before
 * it. */
static void preload_under_sanitizer(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char all[512];

    snprintf(all, sizeof all, "%s%sverify_asan_link_order=0", options ? options : "",
             options ? ":" : "");
    setenv("ASAN_OPTIONS", all, 1);
}

static pid_t worker_start(struct judge *j, int *ret_pipe, const char *fault, bool drop_sync)
{
    char seed[32], fd[16], preload[600], root[300], shadow[320];
    int p[2];
    pid_t pid;

    ck_assert_int_eq(pipe(p), 0);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)rig_rand(&j->seed));
    snprintf(fd, sizeof fd, "%d", p[1]);
    pid = fork();
    if (!pid) {
        close(p[0]);
        if (fault)
            setenv("AIFS_FAULT", fault, 1);
        if (j->power) {
            snprintf(preload, sizeof preload, "%s/powercut.so", j->tools);
            snprintf(root, sizeof root, "%s", j->rig.dir);
            snprintf(shadow, sizeof shadow, "%s", j->shadow);
            setenv("LD_PRELOAD", preload, 1);
            preload_under_sanitizer();
            setenv("POWERCUT_ROOT", root, 1);
            setenv("POWERCUT_SHADOW", shadow, 1);
            if (drop_sync)
                setenv("POWERCUT_DROP_SYNC", "1", 1);
        }
        execl(j->self, j->self, "worker", j->rig.dir, j->shared, seed, fd, NULL);
        _exit(127);
    }
    close(p[1]);
    *ret_pipe = p[0];
    return pid;
}

/* All that is there now counts as durable: the judge has worked on it without the library. */
static void power_begin(struct judge *j)
{
    char cmd[2048];

    snprintf(cmd, sizeof cmd, "rm -rf %s && %s/powercut-apply %s %s", j->shadow, j->tools,
             j->rig.dir, j->shadow);
    ck_assert_int_eq(system(cmd), 0);
}

static void power_apply(struct judge *j)
{
    char cmd[2048];

    snprintf(cmd, sizeof cmd, "%s/powercut-apply %s %s %llu", j->tools, j->rig.dir, j->shadow,
             (unsigned long long)rig_rand(&j->seed) | 1);
    ck_assert_int_eq(system(cmd), 0);
}

/* One life of the worker. */
static void round_run(struct judge *j, unsigned steps, const char *fault, bool drop_sync)
{
    int fd, status;
    char byte;
    pid_t pid;

    journal->started = journal->durable = 0;
    journal->gen_now = journal->gen;
    if (j->power)
        power_begin(j);
    pid = worker_start(j, &fd, fault, drop_sync);
    while (steps-- && read(fd, &byte, 1) == 1)
        ;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(fd);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 137)
        ck_abort_msg("the worker ended by itself: %d", WEXITSTATUS(status));
    if (j->power)
        power_apply(j);
}

/* What is there now. A read may carry a generation that has not come here yet. */
static int round_read(struct judge *j)
{
    int rc = 0;

    for (uint32_t c = 0; c < CHUNKS && !rc; c++)
        rc = rig_read(&j->rig, INO, c, journal->gen_now, 0, j->now + c * CHUNK_BYTES, CHUNK_BYTES);
    return rc;
}

/* 0: all is as it may be. */
static int round_judge(struct judge *j, bool print)
{
    uint32_t bad;
    int rc = rig_try_open(&j->rig);

    if (!rc)
        rc = round_read(j);
    if (rc) {
        if (print)
            printf("after the crash: error %d\n", rc);
        return rc;
    }
    bad = judge_blocks(j);
    if (bad < BLOCKS && print)
        printf("block %u holds what nobody promised (%u of %u durable)\n", bad, journal->durable,
               journal->started);
    journal->gen = journal->gen_now;
    memcpy(j->known, j->now, FILE_BYTES);
    rig_close(&j->rig);
    return bad < BLOCKS ? -EIO : 0;
}

static void judge_init(struct judge *j, uint64_t seed, bool power)
{
    ssize_t n;
    int fd;

    memset(j, 0, sizeof *j);
    j->seed = getenv("AIFS_TEST_SEED") ? strtoull(getenv("AIFS_TEST_SEED"), NULL, 0) : seed;
    j->power = power;
    printf("seed %llu\n", (unsigned long long)j->seed);
    fflush(stdout);
    rig_make_dir(&j->rig);
    j->rig.options.capacity_bytes = 32 * MIB;
    n = readlink("/proc/self/exe", j->self, sizeof j->self - 1);
    ck_assert_int_gt(n, 0);
    snprintf(j->tools, sizeof j->tools, "%.*s/..", (int)(strrchr(j->self, '/') - j->self), j->self);
    snprintf(j->shared, sizeof j->shared, "%s.shared", j->rig.dir);
    snprintf(j->shadow, sizeof j->shadow, "%s.shadow", j->rig.dir);
    fd = open(j->shared, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(ftruncate(fd, sizeof *journal), 0);
    journal = mmap(NULL, sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(journal, MAP_FAILED);
    close(fd);
    j->known = calloc(1, FILE_BYTES + 8);
    j->now = calloc(1, FILE_BYTES + 8);
}

static void judge_fini(struct judge *j)
{
    char cmd[700];

    rig_destroy(&j->rig);
    unlink(j->shared);
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", j->shadow);
    ck_assert_int_eq(system(cmd), 0);
    munmap(journal, sizeof *journal);
    free(j->known);
    free(j->now);
}

static const char *const faults[] = {"chunk.commit.before_sync=crash",
                                     "chunk.commit.before_index=crash",
                                     "chunk.commit.after_index=crash"};

static void rounds(struct judge *j, unsigned n, bool with_faults)
{
    struct chunk_stat st;
    char fault[64];

    for (unsigned i = 0; i < n; i++) {
        unsigned steps = 1 + (unsigned)(rig_rand(&j->seed) % 250);

        snprintf(fault, sizeof fault, "%s@%u", faults[i % 3],
                 1 + (unsigned)(rig_rand(&j->seed) % 60));
        round_run(j, steps, with_faults ? fault : NULL, false);
        if (round_judge(j, true))
            ck_abort_msg("round %u", i);
    }
    rig_open(&j->rig); /* no space was lost on the way */
    ck_assert_int_eq(rig_destroy_ino(&j->rig, INO), 0);
    chunk_store_stat(j->rig.store, &st);
    ck_assert_uint_eq(st.used_bytes, 0);
    ck_assert_uint_eq(st.errors, 0);
}

START_TEST(a_killed_store_holds_what_was_durable_and_no_garbage)
{
    struct judge j;

    judge_init(&j, 4711, false);
    rounds(&j, 25, false);
    judge_fini(&j);
}
END_TEST

START_TEST(a_crash_at_each_step_of_the_commit_is_survived)
{
    struct judge j;

    judge_init(&j, 815, false);
    rounds(&j, 24, true);
    judge_fini(&j);
}
END_TEST

static bool can_cut_power(struct judge *j)
{
    char path[600];

    snprintf(path, sizeof path, "%s/powercut.so", j->tools);
    if (!access(path, R_OK) && !strncmp(j->rig.dir, "/dev/shm", 8))
        return true;
    printf("no powercut.so, or no /dev/shm: not tested\n");
    return false;
}

START_TEST(a_power_cut_loses_nothing_that_was_durable)
{
    struct judge j;

    judge_init(&j, 42, true);
    if (can_cut_power(&j))
        rounds(&j, getenv("AIFS_TEST_LONG") ? 500 : 25, false);
    judge_fini(&j);
}
END_TEST

START_TEST(a_store_without_syncs_fails_the_power_cut_test)
{
    struct judge j;
    bool noticed = false;

    log_set_level(LOG_LEVEL_ERROR);
    judge_init(&j, 43, true);
    if (!can_cut_power(&j))
        noticed = true;
    round_run(&j, 50, NULL, false); /* a store to begin with */
    ck_assert_int_eq(round_judge(&j, true), 0);
    for (unsigned i = 0; i < 20 && !noticed; i++) {
        round_run(&j, 100, NULL, true);
        noticed = round_judge(&j, false) != 0;
    }
    ck_assert(noticed);
    judge_fini(&j);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("chunk crash");

    if (argc == 6 && !strcmp(argv[1], "worker"))
        return worker_main(argv + 1);
    log_set_level(LOG_LEVEL_WARN);
    tcase_set_timeout(t, 110);
    tcase_add_test(t, a_killed_store_holds_what_was_durable_and_no_garbage);
    tcase_add_test(t, a_crash_at_each_step_of_the_commit_is_survived);
    tcase_add_test(t, a_power_cut_loses_nothing_that_was_durable);
    tcase_add_test(t, a_store_without_syncs_fails_the_power_cut_test);
    return suite_run_case("chunk crash", t);
}
