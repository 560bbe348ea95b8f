/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster on machines of its own, and clients on others. The metadata server is machine 2, data
 * servers are 10 and up, clients 100 and up; only links of data servers are bounded. Clients start
 * each phase together; what they read was written by themselves, but is read anew: libaifs and the
 * mount are started again in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/lib/aifs.h"
#include "common/crypto/crypto.h"
#include "tools/admin/proc.h"
#include "tools/bench/io.h"
#include "tools/bench/scale.h"

#define SOURCE        "10.77.0.2:7600:/"
#define START_MS      120000u
#define CAPACITY      (4ull * GIB) /* of a target, so that the sum tells how many there are */
#define MOUNT_JOBS    4u
#define LIB_DEPTH_MIN 8u

/* ---- servers ---- */

static int make_keys(const char *dir)
{
    struct crypto_key key, client;
    char path[PATH_MAX];
    int rc = crypto_key_create(&key);

    snprintf(path, sizeof path, "%s/server.key", dir);
    if (rc == 0)
        rc = crypto_key_save(path, &key);
    if (rc == 0)
        rc = crypto_key_derive(&key, CRYPTO_ROLE_CLIENT, &client);
    snprintf(path, sizeof path, "%s/client.key", dir);
    if (rc == 0)
        rc = crypto_key_save(path, &client);
    if (rc < 0)
        bench_error("scale: keys in %s: %s", dir, strerror(-rc));
    return rc < 0;
}

struct server {
    const struct scale_cluster *cluster;
    unsigned number; /* 0: metadata */
};

static int server_main(void *arg)
{
    const struct server *s = arg;
    const char *dir = s->cluster->dir;
    char program[PATH_MAX], listen[64], run[PATH_MAX], data[PATH_MAX], key[PATH_MAX], log[PATH_MAX];
    const char *mds[] = {program,
                         "--config",
                         "/dev/null",
                         listen,
                         data,
                         run,
                         key,
                         "--mds.format=yes",
                         "--net.buffers=32Mi",
                         "--net.transport=tcp",
                         "--metrics.address=",
                         NULL};
    const char *oss[] = {program,
                         "--config",
                         "/dev/null",
                         listen,
                         data,
                         run,
                         key,
                         "--oss.mds=10.77.0.2:7600",
                         "--net.buffers=64Mi",
                         "--net.transport=tcp",
                         "--metrics.address=",
                         "--target.capacity=4Gi",
                         "",
                         NULL};
    char name[48];
    int fd, rc = proc_program(s->number ? "aifs-oss" : "aifs-mds", program, sizeof program);

    snprintf(log, sizeof log, "%s/%u/log", dir, s->number);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0640);
    if (rc < 0 || fd < 0) {
        bench_error("scale: a server's program or log is not there");
        return 1;
    }
    snprintf(listen, sizeof listen,
             s->number ? "--oss.listen=10.77.0.%u:7700" : "--mds.listen=10.77.0.2:7600",
             s->number + 9);
    snprintf(run, sizeof run, "--%s.run_dir=%s/%u/run", s->number ? "oss" : "mds", dir, s->number);
    snprintf(data, sizeof data, s->number ? "--oss.targets=%s/%u/t" : "--mds.dir=%s/%u/t", dir,
             s->number);
    snprintf(key, sizeof key, "--key_file=%s/server.key", dir);
    snprintf(name, sizeof name, "--oss.name=oss%u", s->number);
    oss[ARRAY_LEN(oss) - 2] = name;
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(program, (char *const *)(s->number ? oss : mds));
    return 127;
}

static void show_log(const struct scale_cluster *c, unsigned number)
{
    char path[PATH_MAX], text[1500];
    FILE *f;
    size_t n;

    snprintf(path, sizeof path, "%s/%u/log", c->dir, number);
    f = fopen(path, "re");
    if (!f)
        return;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    fprintf(stderr, "--- log of server %u:\n%s", number, text);
}

static int start_server(struct scale_cluster *c, unsigned number)
{
    struct server s = {c, number};
    char dir[PATH_MAX], sub[PATH_MAX + 8], port[32];
    static const char *const subs[] = {"", "/t", "/run"};
    pid_t pid;

    snprintf(dir, sizeof dir, "%s/%u", c->dir, number);
    for (unsigned i = 0; i < ARRAY_LEN(subs); i++) {
        snprintf(sub, sizeof sub, "%s%s", dir, subs[i]);
        if (mkdir(sub, 0750) != 0) {
            bench_error("scale: %s: %m", sub);
            return 1;
        }
    }
    pid = scale_machine_start(number ? number + 9 : 2, number ? c->link_bytes_per_s : 0,
                              server_main, &s);
    if (pid && proc_wait_file(dir, "port", pid, START_MS, port, sizeof port) == 0)
        return 0;
    bench_error("scale: server %u did not come up", number);
    show_log(c, number);
    return 1;
}

/* A machine that looks until every target is there. */
static int wait_for_targets(void *arg)
{
    const struct scale_cluster *c = arg;
    char options[PATH_MAX];
    uint64_t end = bench_now_ns() + START_MS * 1000000ull;
    struct statvfs st = {0};
    struct aifs *fs;
    int rc = 0;

    snprintf(options, sizeof options, "key_file=%s/client.key,net=tcp,mount_timeout=120s", c->dir);
    if (aifs_mount(SOURCE, options, &fs) != 0) {
        bench_error("scale: %s", aifs_mount_error());
        return 1;
    }
    while (rc == 0 && (uint64_t)st.f_blocks * st.f_frsize < c->n_servers * (CAPACITY / 10 * 9)) {
        rc = aifs_statvfs(fs, &st) != 0 || bench_now_ns() > end;
        poll(NULL, 0, 20);
    }
    if (rc)
        bench_error("scale: %u targets did not come online", c->n_servers);
    return aifs_unmount(fs) != 0 || rc;
}

static int wait_status(pid_t pid)
{
    int status;

    if (pid <= 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int scale_cluster_start(struct scale_cluster *c)
{
    static unsigned serial;
    int rc;

    snprintf(c->dir, sizeof c->dir, "%s/%u", scale_world_dir(), serial++);
    rc = mkdir(c->dir, 0755) != 0 || make_keys(c->dir);
    for (unsigned i = 0; i <= c->n_servers && rc == 0; i++)
        rc = start_server(c, i);
    return rc ? rc : wait_status(scale_machine_start(3, 0, wait_for_targets, c));
}

/* ---- clients ---- */

struct result { /* of one client and phase */
    uint64_t begin_ns, end_ns, bytes;
    double cpu_seconds;
};

struct shared {
    pthread_barrier_t start;
    struct result results[SCALE_CLIENTS_MAX][2];
};

struct client {
    const struct scale_load *load;
    struct shared *shared;
    unsigned index;
    unsigned phase; /* 0 writing, 1 reading */
    char mountpoint[PATH_MAX], mount_options[PATH_MAX], program[PATH_MAX];
};

static int client_mount(const struct client *c)
{
    const char *argv[] = {c->program, SOURCE, c->mountpoint, "-o", c->mount_options, NULL};

    return proc_run(argv, -1);
}

static int client_unmount(const struct client *c)
{
    const char *argv[] = {c->program, "--umount", c->mountpoint, NULL};

    return proc_run(argv, -1);
}

/* Before each phase: what is read must come from the servers. */
static int before_phase(void *arg, bool reads)
{
    struct client *c = arg;

    if (reads && c->load->access == SCALE_MOUNT &&
        (client_unmount(c) != 0 || client_mount(c) != 0)) {
        bench_error("scale: cannot mount again");
        return -EIO;
    }
    c->phase = reads;
    pthread_barrier_wait(&c->shared->start);
    c->shared->results[c->index][c->phase].begin_ns = bench_now_ns();
    return 0;
}

static int measure(struct client *c, struct bench *b)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    char where[PATH_MAX], options[PATH_MAX + 80];
    bool lib = c->load->access == SCALE_LIB;
    int rc;

    o.rw = "write,read";
    o.jobs = lib ? 1 : MOUNT_JOBS;
    o.depth = lib ? MAX(LIB_DEPTH_MIN, 4 * c->load->cluster->n_servers) : 1;
    o.size = MAX(c->load->bytes / c->load->n_clients / o.jobs / MIB, 1u) * MIB;
    o.fsync = true;
    o.cold = lib;
    o.before = before_phase;
    o.before_arg = c;
    snprintf(options, sizeof options,
             "key_file=%s/client.key,net=tcp,memory_limit=256Mi,mount_timeout=120s",
             c->load->cluster->dir);
    o.options = options;
    snprintf(where, sizeof where, "%s", lib ? "aifs:" SOURCE : c->mountpoint);
    rc = io_measure(b, &o, "scale", where);
    for (unsigned i = 0; i < b->n_results && i < 2; i++) {
        struct result *r = &c->shared->results[c->index][i];

        r->bytes = b->results[i].bytes;
        r->end_ns = r->begin_ns + (uint64_t)(b->results[i].seconds * 1e9);
        r->cpu_seconds = b->results[i].cpu_seconds;
    }
    return rc;
}

/* Where it mounts, and how. */
static int client_prepare(struct client *c, const char *dir)
{
    snprintf(c->mountpoint, sizeof c->mountpoint, "%s/client%u", dir, c->index);
    snprintf(c->mount_options, sizeof c->mount_options,
             "keyfile=%s/client.key,net=tcp,log=%s/client%u.log", dir, dir, c->index);
    if (proc_program("aifs-mount", c->program, sizeof c->program) == 0 &&
        (mkdir(c->mountpoint, 0755) == 0 || errno == EEXIST) && client_mount(c) == 0)
        return 0;
    bench_error("scale: client %u cannot mount", c->index);
    return 1;
}

static int client_main(void *arg)
{
    struct client *c = arg;
    struct bench *b = calloc(1, sizeof *b);
    bool mounted = c->load->access == SCALE_MOUNT;
    int rc = !b;

    bench_progress_off();
    if (rc == 0 && mounted)
        rc = client_prepare(c, c->load->cluster->dir);
    if (rc == 0)
        rc = measure(c, b);
    if (rc == 0 && mounted)
        rc = client_unmount(c);
    free(b);
    return rc;
}

static struct shared *shared_create(unsigned n_clients)
{
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attr;

    if (s == MAP_FAILED)
        return NULL;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&s->start, &attr, n_clients);
    pthread_barrierattr_destroy(&attr);
    return s;
}

static void sum_up(const struct shared *s, unsigned n_clients, unsigned phase,
                   struct scale_outcome *o)
{
    uint64_t begin = UINT64_MAX, end = 0;

    *o = (struct scale_outcome){0};
    for (unsigned i = 0; i < n_clients; i++) {
        const struct result *r = &s->results[i][phase];
        double rate = (double)r->bytes / 1e6 / ((double)(r->end_ns - r->begin_ns) / 1e9);

        begin = MIN(begin, r->begin_ns);
        end = MAX(end, r->end_ns);
        o->bytes += r->bytes;
        o->cpu_seconds += r->cpu_seconds;
        o->slowest = i ? MIN(o->slowest, rate) : rate;
        o->fastest = MAX(o->fastest, rate);
    }
    o->seconds = (double)(end - begin) / 1e9;
}

/* Waits for all; the others of one that failed would wait for it for ever. */
static int wait_for_clients(pid_t *pids, unsigned n)
{
    int rc = 0;

    for (unsigned left = n; left > 0 && rc == 0;) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);

        for (unsigned i = 0; i < n; i++) {
            if (pids[i] != pid)
                continue;
            left--;
            rc |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        if (pid < 0 && errno != EINTR)
            rc = 1;
    }
    return rc;
}

/* No address twice in a row: nobody remembers another machine. */
static unsigned next_number(void)
{
    static unsigned number = 100;

    number = number < 250 ? number + 1 : 101;
    return number;
}

int scale_load_run(const struct scale_load *l, struct scale_outcome *ret_write,
                   struct scale_outcome *ret_read)
{
    static struct client clients[SCALE_CLIENTS_MAX];
    struct shared *s = shared_create(l->n_clients);
    pid_t pids[SCALE_CLIENTS_MAX] = {0};
    int rc = !s;

    for (unsigned i = 0; i < l->n_clients && rc == 0; i++) {
        clients[i] = (struct client){.load = l, .shared = s, .index = i};
        pids[i] = scale_machine_start(next_number(), 0, client_main, &clients[i]);
        rc = pids[i] == 0;
    }
    if (rc == 0)
        rc = wait_for_clients(pids, l->n_clients);
    if (rc == 0) {
        sum_up(s, l->n_clients, 0, ret_write);
        sum_up(s, l->n_clients, 1, ret_read);
    }
    if (s)
        munmap(s, sizeof *s);
    return rc;
}

/* ---- one client that does something else ---- */

struct visit {
    const struct scale_cluster *cluster;
    struct bench *b; /* shared with whoever waits */
    int (*fn)(struct bench *b, const char *mountpoint, void *arg);
    void *arg;
};

static int visit_main(void *arg)
{
    static struct client c;
    struct visit *v = arg;
    int rc = client_prepare(&c, v->cluster->dir);

    if (rc)
        return rc;
    rc = v->fn(v->b, c.mountpoint, v->arg);
    return client_unmount(&c) != 0 || rc;
}

int scale_client_run(const struct scale_cluster *c, struct bench *b,
                     int (*fn)(struct bench *b, const char *mountpoint, void *arg), void *arg)
{
    struct bench *theirs =
        mmap(NULL, sizeof *theirs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct visit v = {c, theirs, fn, arg};
    int rc;

    if (theirs == MAP_FAILED) {
        bench_error("scale: %m");
        return 1;
    }
    *theirs = *b;
    rc = wait_status(scale_machine_start(next_number(), 0, visit_main, &v));
    *b = *theirs; /* the same program: its pointers to constants are ours too */
    munmap(theirs, sizeof *theirs);
    return rc;
}
