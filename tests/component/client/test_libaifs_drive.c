/* SPDX-License-Identifier: Apache-2.0 */
/* Whose thread turns the reactor of libaifs: small reads by those who wait for them, everything
 * else, and everybody at once. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/base/compiler.h"
#include "tests/support/cluster.h"

#define BYTES  (4u * MIB)
#define BLOCK  4096u
#define BLOCKS (BYTES / BLOCK)
#define DEPTH  16u

static struct cluster cluster;
static struct aifs *fs;
static uint8_t *data;

static void setup(void)
{
    struct aifs_file *f;

    memset(&cluster, 0, sizeof cluster);
    ck_assert(cluster_start(&cluster, 2));
    ck_assert_msg(aifs_mount(cluster.source, cluster.options, &fs) == 0, "%s", aifs_mount_error());
    data = malloc(BYTES);
    for (size_t k = 0; k < BYTES; k++)
        data[k] = (uint8_t)(k * 2654435761u >> 9 ^ k);
    f = aifs_open(fs, "/f", O_RDWR | O_CREAT, 0644);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(aifs_pwrite(f, data, BYTES, 0), BYTES);
    ck_assert_int_eq(aifs_close(f), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(aifs_unmount(fs), 0);
    free(data);
    cluster_stop(&cluster);
}

struct reader {
    pthread_t thread;
    struct aifs_file *file;
    struct aifs_queue *queue;
    unsigned seed, left, wrong, n_free;
    struct aifs_io ios[DEPTH];
    struct aifs_io *free[DEPTH];
    uint8_t bytes[DEPTH][BLOCK];
};

static struct reader *reader_new(unsigned seed, unsigned reads)
{
    struct reader *r = calloc(1, sizeof *r);

    ck_assert_ptr_nonnull(r);
    r->file = aifs_open(fs, "/f", O_RDONLY, 0);
    r->queue = aifs_queue_create(fs);
    ck_assert(r->file && r->queue);
    r->seed = seed;
    r->left = reads;
    for (; r->n_free < DEPTH; r->n_free++)
        r->free[r->n_free] = &r->ios[r->n_free];
    return r;
}

static void reader_free(struct reader *r)
{
    ck_assert_int_eq(aifs_queue_destroy(r->queue), 0);
    ck_assert_int_eq(aifs_close(r->file), 0);
    free(r);
}

static void submit_all(struct reader *r)
{
    struct aifs_io *begun[DEPTH];
    unsigned n = 0;

    while (r->n_free && r->left) {
        struct aifs_io *io = r->free[--r->n_free];

        *io = (struct aifs_io){.file = r->file,
                               .op = AIFS_READ,
                               .buf = r->bytes[io - r->ios],
                               .len = BLOCK,
                               .offset = (off_t)(rand_r(&r->seed) % BLOCKS) * BLOCK};
        begun[n++] = io;
        r->left--;
    }
    ck_assert_int_eq(aifs_submit(r->queue, begun, n), 0);
}

static unsigned in_flight(const struct reader *r)
{
    return DEPTH - r->n_free;
}

static void collect(struct reader *r, unsigned min, int timeout_ms)
{
    struct aifs_io *done[DEPTH];
    int n = aifs_wait(r->queue, done, min, DEPTH, timeout_ms);

    ck_assert_int_ge(n, 0);
    for (int k = 0; k < n; k++) {
        r->wrong +=
            done[k]->result != BLOCK || memcmp(done[k]->buf, data + done[k]->offset, BLOCK) != 0;
        r->free[r->n_free++] = done[k];
    }
}

static void read_rounds(struct reader *r)
{
    while (r->left) {
        submit_all(r);
        collect(r, in_flight(r) / 2, -1);
    }
    collect(r, in_flight(r), -1);
}

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    struct stat st;

    while (r->left) {
        submit_all(r);
        r->wrong += aifs_stat(fs, "/f", &st) != 0 || st.st_size != (off_t)BYTES;
        while (in_flight(r))
            collect(r, 1, 1000);
    }
    return NULL;
}

START_TEST(what_one_thread_submits_it_gets)
{
    struct reader *r = reader_new(1, 20000);

    read_rounds(r);
    ck_assert_uint_eq(r->wrong, 0);
    reader_free(r);
}
END_TEST

START_TEST(many_threads_get_what_is_theirs_with_other_calls_in_between)
{
    struct reader *r[5];

    for (unsigned k = 0; k < ARRAY_LEN(r); k++) {
        r[k] = reader_new(k, 2000);
        ck_assert_int_eq(pthread_create(&r[k]->thread, NULL, reader_main, r[k]), 0);
    }
    for (unsigned k = 0; k < ARRAY_LEN(r); k++) {
        pthread_join(r[k]->thread, NULL);
        ck_assert_uint_eq(r[k]->wrong, 0);
        reader_free(r[k]);
    }
}
END_TEST

START_TEST(who_only_looks_or_polls_the_descriptor_gets_it_too)
{
    struct reader *r = reader_new(3, 10 * DEPTH);
    struct pollfd p = {.events = POLLIN};

    while (r->left > 5 * DEPTH) {
        submit_all(r);
        while (in_flight(r))
            collect(r, 0, 0); /* never waits */
    }
    p.fd = aifs_queue_fd(r->queue);
    while (r->left) {
        submit_all(r);
        while (in_flight(r)) {
            ck_assert_int_eq(poll(&p, 1, -1), 1); /* nobody is in the library */
            collect(r, 1, 0);
        }
    }
    ck_assert_uint_eq(r->wrong, 0);
    reader_free(r);
}
END_TEST

/* The first mount holds a lease and the last to drive it is gone: the second one waits for it. */
START_TEST(a_recall_is_answered_by_a_program_that_is_not_in_the_library)
{
    struct reader *r = reader_new(4, 1000);
    struct aifs *other;
    struct aifs_file *f;
    char byte = 'x';

    read_rounds(r);
    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    f = aifs_open(other, "/f", O_RDWR, 0);
    ck_assert_ptr_nonnull(f);
    for (unsigned k = 0; k < 20; k++) {
        ck_assert_int_eq(aifs_pwrite(f, &byte, 1, (off_t)k * 70000), 1);
        ck_assert_int_eq(aifs_fsync(f), 0);
        data[k * 70000] = (uint8_t)byte;
        r->left = DEPTH;
        read_rounds(r);
        ck_assert_uint_eq(r->wrong, 0);
    }
    ck_assert_int_eq(aifs_close(f), 0);
    ck_assert_int_eq(aifs_unmount(other), 0);
    reader_free(r);
}
END_TEST

static void child(void)
{
    struct aifs_file *f = aifs_open(fs, "/f", O_RDONLY, 0);
    uint8_t bytes[BLOCK];
    bool ok = f && aifs_pread(f, bytes, BLOCK, 77 * BLOCK) == BLOCK &&
              memcmp(bytes, data + (size_t)77 * BLOCK, BLOCK) == 0;

    _exit(ok && aifs_close(f) == 0 ? 0 : 1);
}

START_TEST(a_fork_beside_a_thread_that_drives_works_on_both_sides)
{
    struct reader *r = reader_new(5, 3000);
    int status;

    ck_assert_int_eq(pthread_create(&r->thread, NULL, reader_main, r), 0);
    for (unsigned k = 0; k < 5; k++) {
        pid_t pid = fork();

        if (pid == 0)
            child();
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    pthread_join(r->thread, NULL);
    ck_assert_uint_eq(r->wrong, 0);
    reader_free(r);
}
END_TEST

START_TEST(the_own_thread_does_it_all_where_it_is_asked_to)
{
    char options[sizeof cluster.options + 16];
    struct aifs *was = fs;
    struct reader *r;

    snprintf(options, sizeof options, "%s,drive=nobody", cluster.options);
    ck_assert_int_eq(aifs_mount(cluster.source, options, &fs), -1);
    snprintf(options, sizeof options, "%s,drive=own", cluster.options);
    ck_assert_int_eq(aifs_mount(cluster.source, options, &fs), 0);
    r = reader_new(6, 1000);
    read_rounds(r);
    ck_assert_uint_eq(r->wrong, 0);
    reader_free(r);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    fs = was;
}
END_TEST

START_TEST(it_works_the_same_whether_who_waits_looks_again_for_long_or_never)
{
    static const char *const spins[] = {"0", "1ms"};
    char options[sizeof cluster.options + 16];
    struct aifs *was = fs;

    for (unsigned k = 0; k < ARRAY_LEN(spins); k++) {
        struct reader *r;

        snprintf(options, sizeof options, "%s,spin=%s", cluster.options, spins[k]);
        ck_assert_int_eq(aifs_mount(cluster.source, options, &fs), 0);
        r = reader_new(7, 1000);
        read_rounds(r);
        ck_assert_uint_eq(r->wrong, 0);
        reader_free(r);
        ck_assert_int_eq(aifs_unmount(fs), 0);
    }
    fs = was;
}
END_TEST

struct collector {
    pthread_t thread;
    struct aifs_queue *queue;
    unsigned n;
};

static void *collector_main(void *arg)
{
    struct collector *k = arg;
    struct aifs_io *done[DEPTH];
    int n;

    while ((n = aifs_wait(k->queue, done, 1, DEPTH, -1)) > 0)
        k->n += (unsigned)n;
    return NULL;
}

static bool join_in_time(pthread_t thread)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

/* What one has taken the others do not wait for. */
START_TEST(two_that_wait_for_the_same_queue_both_come_back)
{
    for (unsigned round = 0; round < 50; round++) {
        struct reader *r = reader_new(round, DEPTH);
        struct collector k[2] = {{.queue = r->queue}, {.queue = r->queue}};

        submit_all(r);
        for (unsigned i = 0; i < 2; i++)
            ck_assert_int_eq(pthread_create(&k[i].thread, NULL, collector_main, &k[i]), 0);
        ck_assert(join_in_time(k[0].thread) && join_in_time(k[1].thread));
        ck_assert_uint_eq(k[0].n + k[1].n, DEPTH);
        reader_free(r);
    }
}
END_TEST

static atomic_bool has_lock;

static void *lock_main(void *arg)
{
    struct aifs_file *f = arg;
    int rc = aifs_flock(f, LOCK_EX);

    has_lock = rc == 0;
    pthread_testcancel();
    return NULL;
}

START_TEST(who_waits_for_another_thread_s_work_is_not_cancelled)
{
    char options[sizeof cluster.options + 16];
    struct aifs_file *mine, *other;
    struct aifs *was = fs;
    pthread_t thread;
    void *end;

    snprintf(options, sizeof options, "%s,drive=own", cluster.options);
    ck_assert_int_eq(aifs_mount(cluster.source, options, &fs), 0);
    mine = aifs_open(fs, "/f", O_RDWR, 0);
    other = aifs_open(fs, "/f", O_RDWR, 0);
    ck_assert(mine && other && aifs_flock(mine, LOCK_EX) == 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_main, other), 0);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    ck_assert_int_eq(aifs_flock(mine, LOCK_UN), 0);
    ck_assert_int_eq(pthread_join(thread, &end), 0);
    ck_assert(has_lock && end == PTHREAD_CANCELED);
    ck_assert_int_eq(aifs_close(mine) | aifs_close(other), 0);
    ck_assert_int_eq(aifs_unmount(fs), 0);
    fs = was;
}
END_TEST

static atomic_bool unmounted;

/* With a request to end that is taken as soon as that may be. */
static void *unmount_main(void *arg)
{
    pthread_cancel(pthread_self());
    unmounted = aifs_unmount(arg) == 0;
    pthread_testcancel();
    return NULL;
}

START_TEST(who_unmounts_is_not_cancelled_with_half_of_it_done)
{
    struct aifs *other;
    pthread_t thread;
    pid_t child;
    void *end;
    int status;

    ck_assert_int_eq(aifs_mount(cluster.source, cluster.options, &other), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, unmount_main, other), 0);
    ck_assert_int_eq(pthread_join(thread, &end), 0);
    ck_assert(unmounted && end == PTHREAD_CANCELED);
    child = fork(); /* waits for nobody */
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

CLUSTER_SUITE_MAIN("libaifs-drive", setup, teardown, what_one_thread_submits_it_gets,
                   many_threads_get_what_is_theirs_with_other_calls_in_between,
                   who_only_looks_or_polls_the_descriptor_gets_it_too,
                   a_recall_is_answered_by_a_program_that_is_not_in_the_library,
                   a_fork_beside_a_thread_that_drives_works_on_both_sides,
                   the_own_thread_does_it_all_where_it_is_asked_to,
                   it_works_the_same_whether_who_waits_looks_again_for_long_or_never,
                   two_that_wait_for_the_same_queue_both_come_back,
                   who_waits_for_another_thread_s_work_is_not_cancelled,
                   who_unmounts_is_not_cancelled_with_half_of_it_done)
