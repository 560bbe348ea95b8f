/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. A daemon is up when its run directory has a port file, a storage server when it
 * has also registered its targets; children die with the test
 * (PR_SET_PDEATHSIG). */
#include <errno.h>
#include <libgen.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/base/err.h"
#include "common/crypto/crypto.h"
#include "tests/support/cluster.h"

#define ARGS_MAX  24
#define ARG_BYTES 700

struct command {
    char text[ARGS_MAX][ARG_BYTES];
    unsigned n;
};

static void arg(struct command *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void arg(struct command *c, const char *fmt, ...)
{
    va_list ap;

    ck_assert_uint_lt(c->n, ARGS_MAX - 1);
    va_start(ap, fmt);
    vsnprintf(c->text[c->n++], ARG_BYTES, fmt, ap);
    va_end(ap);
}

static pid_t spawn(struct cluster *c, const struct command *cmd, const char *name)
{
    char *argv[ARGS_MAX];
    char log[PATH_MAX];
    unsigned k;
    pid_t pid;

    for (k = 0; k < cmd->n; k++)
        argv[k] = (char *)cmd->text[k];
    argv[k] = NULL;
    snprintf(log, sizeof log, "%s/%s.log", c->tmp.dir, name);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!freopen(log, "a", stderr) || !freopen(log, "a", stdout))
        _exit(126);
    execv(argv[0], argv);
    _exit(127);
}

static bool read_port(const char *dir, uint16_t *ret_port)
{
    char path[PATH_MAX + 16];
    unsigned port;
    FILE *f;
    bool ok;

    snprintf(path, sizeof path, "%s/port", dir);
    f = fopen(path, "r");
    if (!f)
        return false;
    ok = fscanf(f, "%u", &port) == 1;
    fclose(f);
    *ret_port = (uint16_t)port;
    return ok;
}

static void show_log(struct cluster *c, const char *name)
{
    char path[PATH_MAX], line[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.log", c->tmp.dir, name);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        fprintf(stderr, "%s: %s", name, line);
    if (f)
        fclose(f);
}

static bool log_says(const struct cluster *c, const char *name, const char *what)
{
    char path[PATH_MAX], line[512];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s.log", c->tmp.dir, name);
    f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, what) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* The port was free a moment ago, and somebody else has it now. */
static bool port_is_lost(const struct cluster *c, const char *name)
{
    char path[PATH_MAX];

    if (!log_says(c, name, "Address already in use"))
        return false;
    snprintf(path, sizeof path, "%s/%s.log", c->tmp.dir, name);
    return unlink(path) == 0;
}

/* False: it is to be started once more, with another port; only if any will do. */
static bool wait_port(struct cluster *c, pid_t pid, const char *dir, const char *name, bool any,
                      uint16_t *ret_port)
{
    int fd = inotify_init1(IN_CLOEXEC);
    char events[4096];
    int status;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(inotify_add_watch(fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE), 0);
    while (!read_port(dir, ret_port)) {
        struct timeval tv = {.tv_sec = 0, .tv_usec = 200000};
        fd_set set;

        FD_ZERO(&set);
        FD_SET(fd, &set);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            if (any && port_is_lost(c, name)) {
                close(fd);
                return false;
            }
            show_log(c, name);
            ck_abort_msg("%s ended before it served", name);
        }
        if (select(fd + 1, &set, NULL, NULL, &tv) > 0)
            (void)!read(fd, events, sizeof events);
    }
    close(fd);
    return true;
}

/* A file made before that has fewer stripes than the test expects, or nowhere to go. */
static void wait_registered(struct cluster *c, unsigned k)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    char name[16], events[4096];

    snprintf(name, sizeof name, "oss%u", k + 1);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(inotify_add_watch(fd, c->tmp.dir, IN_MODIFY), 0);
    while (!log_says(c, name, "registered as node")) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (waitpid(c->oss[k], NULL, WNOHANG) == c->oss[k]) {
            show_log(c, name);
            ck_abort_msg("%s ended before it was registered", name);
        }
        (void)poll(&p, 1, 1000);
        while (read(fd, events, sizeof events) > 0) {
        }
    }
    close(fd);
}

static void make_dir(char *out, size_t len, struct cluster *c, const char *name)
{
    snprintf(out, len, "%s/%s", c->tmp.dir, name);
    if (mkdir(out, 0700))
        ck_assert_int_eq(errno, EEXIST);
}

static void drop_port(const char *run)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/port", run);
    (void)unlink(path);
}

static void common_args(struct cluster *c, struct command *cmd)
{
    arg(cmd, "--config=/dev/null");
    arg(cmd, "--key_file=%s", c->key);
    arg(cmd, "--net.transport=%s", c->net ? c->net : "auto");
    arg(cmd, "--net.buffers=32Mi");
}

/* One that nobody takes while its server is down: not of those that the kernel hands out. */
static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint16_t random;
    int fd, rc;

    do {
        ck_assert_int_eq(getrandom(&random, sizeof random, 0), sizeof random);
        at.sin_port = htons((uint16_t)(10240 + random % 22528));
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        rc = bind(fd, (const struct sockaddr *)&at, sizeof at);
        close(fd);
    } while (rc);
    return ntohs(at.sin_port);
}

static bool is_empty(const char *dir)
{
    return rmdir(dir) == 0 && mkdir(dir, 0700) == 0;
}

static bool start_mds(struct cluster *c)
{
    char dir[PATH_MAX], run[PATH_MAX];
    struct command cmd = {.n = 0};
    bool first = c->mds_port == 0;

    make_dir(dir, sizeof dir, c, "mds");
    make_dir(run, sizeof run, c, "mds-run");
    drop_port(run);
    arg(&cmd, "%s/mds/aifs-mds", c->build);
    common_args(c, &cmd);
    arg(&cmd, "--mds.listen=127.0.0.1:%u", first ? free_port() : c->mds_port);
    arg(&cmd, "--mds.dir=%s", dir);
    arg(&cmd, "--mds.run_dir=%s", run);
    if (first && is_empty(dir))
        arg(&cmd, "--mds.format=yes");
    c->mds = spawn(c, &cmd, "mds");
    return wait_port(c, c->mds, run, "mds", first, &c->mds_port);
}

void cluster_start_mds(struct cluster *c)
{
    while (!start_mds(c))
        ;
}

static bool start_oss(struct cluster *c, unsigned k)
{
    char name[16], target[PATH_MAX], run[PATH_MAX], part[32];
    struct command cmd = {.n = 0};

    snprintf(name, sizeof name, "oss%u", k + 1);
    snprintf(part, sizeof part, "%s-data", name);
    make_dir(target, sizeof target, c, part);
    snprintf(part, sizeof part, "%s-run", name);
    make_dir(run, sizeof run, c, part);
    drop_port(run);
    arg(&cmd, "%s/oss/aifs-oss", c->build);
    common_args(c, &cmd);
    arg(&cmd, "--oss.listen=127.0.0.1:%u", c->oss_port[k] ? c->oss_port[k] : free_port());
    arg(&cmd, "--oss.name=%s", name);
    arg(&cmd, "--oss.targets=%s", target);
    arg(&cmd, "--oss.mds=127.0.0.1:%u", c->mds_port);
    arg(&cmd, "--oss.run_dir=%s", run);
    if (c->capacity)
        arg(&cmd, "--target.capacity=%llu", (unsigned long long)c->capacity);
    c->oss[k] = spawn(c, &cmd, name);
    return wait_port(c, c->oss[k], run, name, c->oss_port[k] == 0, &c->oss_port[k]);
}

void cluster_start_oss(struct cluster *c, unsigned k)
{
    while (!start_oss(c, k))
        ;
}

static void end(pid_t *pid, int signal)
{
    if (*pid <= 0)
        return;
    kill(*pid, signal);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *pid = 0;
}

void cluster_kill_oss(struct cluster *c, unsigned k, int signal)
{
    end(&c->oss[k], signal);
}

void cluster_kill_mds(struct cluster *c, int signal)
{
    end(&c->mds, signal);
}

static bool find_programs(struct cluster *c)
{
    const char *env = getenv("AIFS_BUILD");
    char self[PATH_MAX], path[PATH_MAX];
    ssize_t n;

    if (env) {
        snprintf(c->build, sizeof c->build, "%s", env);
    } else { /* BUILD/tests/component/test-... */
        n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n <= 0)
            return false;
        self[n] = 0;
        snprintf(c->build, sizeof c->build, "%s", dirname(dirname(dirname(self))));
    }
    snprintf(path, sizeof path, "%s/mds/aifs-mds", c->build);
    if (access(path, X_OK))
        return false;
    snprintf(path, sizeof path, "%s/oss/aifs-oss", c->build);
    return access(path, X_OK) == 0;
}

bool cluster_built(void)
{
    struct cluster c;
    bool built = find_programs(&c);

    if (!built)
        printf("skipped: aifs-mds and aifs-oss are not built\n");
    return built;
}

unsigned cluster_number(const char *env, unsigned otherwise)
{
    const char *value = getenv(env);

    return value ? (unsigned)atoi(value) : otherwise;
}

bool cluster_start(struct cluster *c, unsigned n_oss)
{
    struct crypto_key key;
    unsigned k;

    if (!find_programs(c))
        return false;
    c->n_oss = n_oss;
    tmp_make(&c->tmp);
    snprintf(c->key, sizeof c->key, "%s/key", c->tmp.dir);
    ck_assert_int_eq(crypto_key_create(&key), 0);
    ck_assert_int_eq(crypto_key_save(c->key, &key), 0);
    cluster_start_mds(c);
    for (k = 0; k < n_oss; k++)
        cluster_start_oss(c, k);
    for (k = 0; k < n_oss; k++)
        wait_registered(c, k);
    snprintf(c->source, sizeof c->source, "127.0.0.1:%u:/", c->mds_port);
    snprintf(c->options, sizeof c->options, "key_file=%s,memory_limit=128Mi,net=%s", c->key,
             c->net ? c->net : "auto");
    return true;
}

void cluster_stop(struct cluster *c)
{
    unsigned k;

    for (k = 0; k < c->n_oss; k++)
        end(&c->oss[k], SIGTERM);
    end(&c->mds, SIGTERM);
    if (getenv("CLUSTER_LOGS")) {
        show_log(c, "mds");
        show_log(c, "oss1");
    }
    tmp_remove(&c->tmp);
}
