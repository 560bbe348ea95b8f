/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast is one shard? Creates through shard_submit() with 1, 8, 64 and 512 outstanding, lookups
 * and directory pages through views. Run by hand: bench-mds-shard [FILES]; TMPDIR says on which
 * disk. Not a test: prints, checks only that all succeeds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "mds/ops/readdir.h"
#include "tests/component/mds/bed.h"

static struct bed bed;
static uint64_t dir;

struct call {
    struct shard_entry e;
    struct msg_create_req req;
    char name[24];
    bool used;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned outstanding, failed, limit;
static struct call *idle[1024];
static unsigned n_idle;

static double now_s(void)
{
    return (double)clock_mono_ns(clock_real()) / 1e9;
}

static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void create_done(struct shard_entry *e)
{
    struct call *c = container_of(e, struct call, e);

    pthread_mutex_lock(&lock);
    outstanding--;
    failed += e->status != 0;
    idle[n_idle++] = c;
    if (n_idle >= (limit + 1) / 2)
        pthread_cond_signal(&cond);
    pthread_mutex_unlock(&lock);
}

static void create_one(unsigned n)
{
    struct call *c;

    pthread_mutex_lock(&lock);
    while (n_idle == 0)
        pthread_cond_wait(&cond, &lock);
    c = idle[--n_idle];
    outstanding++;
    pthread_mutex_unlock(&lock);
    if (c->used)
        shard_entry_fini(&c->e);
    shard_entry_init(&c->e, RPC_OP_CREATE, &c->req, NULL, create_done);
    c->used = true;
    snprintf(c->name, sizeof(c->name), "file-%u", n);
    c->req = (struct msg_create_req){
        .parent = dir, .name = str(c->name), .mode = 0644, .flags = MSG_CREATE_EXCL};
    c->e.has_layout = true;
    c->e.session = bed.session;
    ck_ok(shard_submit(bed.shard, &c->e));
}

static void bench_create(unsigned depth, unsigned first, unsigned n)
{
    struct call *calls = calloc(depth, sizeof(*calls));
    struct shard_stats a, b;
    double t, cpu;

    limit = depth;
    n_idle = 0;
    for (unsigned i = 0; i < depth; i++)
        idle[n_idle++] = &calls[i];
    shard_get_stats(bed.shard, &a);
    t = now_s();
    cpu = cpu_s();
    for (unsigned i = 0; i < n; i++)
        create_one(first + i);
    pthread_mutex_lock(&lock);
    while (outstanding)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    t = now_s() - t;
    cpu = cpu_s() - cpu;
    shard_get_stats(bed.shard, &b);
    printf("create, %3u outstanding: %8.0f/s; writer: execute %.1f us, commit %.1f us each, "
           "%.1f per commit, commit %.0f us; CPU of all threads %.1f us each; failed %u\n",
           depth, n / t, (double)(b.exec_ns - a.exec_ns) / 1e3 / n,
           (double)(b.commit_ns - a.commit_ns) / 1e3 / n,
           (double)n / (double)(b.commits - a.commits),
           (double)(b.commit_ns - a.commit_ns) / 1e3 / (double)(b.commits - a.commits),
           cpu * 1e6 / n, failed);
    for (unsigned i = 0; i < depth; i++)
        if (calls[i].used)
            shard_entry_fini(&calls[i].e);
    free(calls);
}

static void bench_lookup(unsigned files, unsigned n, const char *what)
{
    unsigned seed = 1, misses = 0;
    double t = now_s();

    for (unsigned i = 0; i < n; i++) {
        struct mds_dirent d;
        struct mds_inode in;
        struct view v;
        char name[24];
        int len = snprintf(name, sizeof(name), "file-%u", (unsigned)rand_r(&seed) % files);

        view_begin(bed.shard, &v);
        if (view_dirent(&v, dir, name, (uint32_t)len, &d) < 0 || view_inode(&v, d.ino, &in) < 0)
            misses++;
        view_end(&v);
    }
    t = now_s() - t;
    printf("lookup, %s: %.0f/s (%.2f us), missing %u\n", what, n / t, t * 1e6 / n, misses);
}

static void bench_readdir(bool plus, const char *what)
{
    uint64_t cookie = 0;
    unsigned n = 0, pages = 0;
    double t = cpu_s(); /* others may want the processor too */
    bool more = true;

    while (more) {
        struct readdir_page p = {.cookie = cookie, .max = 1u << 20, .plus = plus};
        struct view v;

        view_pin(bed.shard, &v);
        ck_ok(readdir_page_fill(&p, &v, dir));
        view_unpin(&v);
        n += p.count;
        pages++;
        more = p.full;
        for (uint32_t at = 0; at < p.len; at += le16_load(p.data + at + 16))
            cookie = le64_load(p.data + at + 8);
        readdir_page_fini(&p);
    }
    t = cpu_s() - t;
    printf("readdir, %s: %.0f entries per second of CPU, %u entries in %u pages\n", what, n / t, n,
           pages);
}

static unsigned files = 100000;

START_TEST(figures)
{
    static const unsigned depths[] = {1, 8, 64, 512};
    unsigned at = 0;

    bed_open(&bed);
    dir = bed_dir(&bed, KEY_ROOT_INO, "d");
    for (unsigned i = 0; i < ARRAY_LEN(depths); i++) {
        unsigned n = depths[i] == 1 ? files / 50 : depths[i] == 8 ? files / 10 : files;

        bench_create(depths[i], at, n);
        at += n;
    }
    bench_lookup(at, 1000000, "cached");
    ck_assert(shard_is_idle(bed.shard));
    bench_readdir(false, "in memory");
    bed_stop(&bed);
    bed_start(&bed);
    bench_lookup(at, at, "after a restart");
    bench_lookup(at, 1000000, "again");
    bench_readdir(false, "names");
    bench_readdir(true, "with attributes");
    bed_close(&bed);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("figures");
    TCase *t = tcase_create("figures");
    SRunner *r = srunner_create(s);
    int bad;

    if (argc > 1)
        files = (unsigned)atoi(argv[1]);
    tcase_add_test(t, figures);
    suite_add_tcase(s, t);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_SILENT);
    bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad ? 1 : 0;
}
