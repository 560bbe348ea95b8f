/* SPDX-License-Identifier: Apache-2.0 */
/* The other process of a net test: this program executed again; and what a test asks the kernel
 * about itself. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/component/net/harness.h"

#define CHILD_CONNS 8

struct served {
    struct end ends[CHILD_CONNS];
    unsigned n;
    struct child_options options;
};

static void on_accepted(void *arg, struct net_conn *c)
{
    struct served *s = arg;
    struct end *e = &s->ends[0];

    for (unsigned i = 0; i < CHILD_CONNS; i++)
        if (s->ends[i].closed)
            e = &s->ends[i];
    if (!e->closed) {
        net_conn_close(c, 0);
        net_conn_free(c);
        return;
    }
    end_adopt(e, c);
}

static void serve(struct served *s)
{
    struct net_listener *l;
    struct net_options o;
    struct net_addr a;
    char err[200];

    net_options_default(&o);
    o.want = s->options.want;
    if (s->options.rndv_threshold)
        o.rndv_threshold = s->options.rndv_threshold;
    if (s->options.ping_ms)
        o.ping_interval_ns = s->options.ping_ms * NS_PER_MS;
    if (s->options.timeout_ms)
        o.ping_timeout_ns = s->options.timeout_ms * NS_PER_MS;
    end_init(&s->ends[0], &o, s->options.mode, s->options.buf_bytes, s->options.n_bufs);
    if (s->options.share)
        end_share(&s->ends[0], s->options.buf_bytes, s->options.n_bufs);
    for (unsigned i = 1; i < CHILD_CONNS; i++) {
        end_init(&s->ends[i], &o, s->options.mode, 4096, 1);
        /* one reactor and one pool for all */
        buf_pool_destroy(s->ends[i].pool);
        reactor_destroy(s->ends[i].reactor);
        s->ends[i].pool = s->ends[0].pool;
        s->ends[i].reactor = s->ends[0].reactor;
    }
    for (unsigned i = 0; i < CHILD_CONNS; i++) {
        s->ends[i].closed = true;
        if (!s->options.load)
            continue;
        s->ends[i].mode = END_LOAD;
        s->ends[i].pump_after_hello = true;
        s->ends[i].share_buf = true;
        s->ends[i].to_send = UINT64_MAX;
        s->ends[i].depth = 64;
        s->ends[i].max_bulk = s->options.buf_bytes;
        s->ends[i].fixed_bulk = s->options.buf_bytes;
    }
    if (net_addr_resolve(s->options.ipv6 ? "[::1]:0" : "127.0.0.1:0", 0, &a, err, sizeof err) < 0 ||
        net_listen(s->ends[0].reactor, &a, &o, on_accepted, s, &l) < 0) {
        printf("0\n");
        fflush(stdout);
        _exit(1);
    }
    printf("%u\n", net_listener_port(l));
    fflush(stdout);
    for (;;)
        reactor_run_once(s->ends[0].reactor, 100 * NS_PER_MS);
}

int child_main(int argc, char **argv)
{
    struct served *s;
    struct child_options *o;

    if (argc != 12 || strcmp(argv[1], "--serve") != 0)
        return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_level(LOG_LEVEL_ERROR);
    s = calloc(1, sizeof *s);
    o = &s->options;
    o->mode = (enum end_mode)atoi(argv[2]);
    o->want = (enum net_want)atoi(argv[3]);
    o->n_bufs = (uint32_t)atoi(argv[4]);
    o->buf_bytes = (uint32_t)atoi(argv[5]);
    o->ping_ms = (unsigned)atoi(argv[6]);
    o->timeout_ms = (unsigned)atoi(argv[7]);
    o->ipv6 = atoi(argv[8]);
    o->load = atoi(argv[9]);
    o->rndv_threshold = (uint32_t)atoi(argv[10]);
    o->share = atoi(argv[11]);
    serve(s);
    return 0;
}

struct child child_start(const struct child_options *o)
{
    struct child c = {0};
    char a[10][16];
    char line[16] = "";
    int p[2];

    snprintf(a[0], 16, "%d", o->mode);
    snprintf(a[1], 16, "%d", o->want);
    snprintf(a[2], 16, "%u", o->n_bufs ? o->n_bufs : 32);
    snprintf(a[3], 16, "%u", o->buf_bytes ? o->buf_bytes : NET_BULK_MAX);
    snprintf(a[4], 16, "%u", o->ping_ms);
    snprintf(a[5], 16, "%u", o->timeout_ms);
    snprintf(a[6], 16, "%d", o->ipv6);
    snprintf(a[7], 16, "%d", o->load);
    snprintf(a[8], 16, "%u", o->rndv_threshold);
    snprintf(a[9], 16, "%d", o->share);
    MUST(pipe2(p, O_CLOEXEC) == 0);
    c.pid = fork();
    MUST(c.pid >= 0);
    if (c.pid == 0) {
        dup2(p[1], STDOUT_FILENO);
        execl("/proc/self/exe", "net-peer", "--serve", a[0], a[1], a[2], a[3], a[4], a[5], a[6],
              a[7], a[8], a[9], (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    c.out = p[0];
    MUST(read(c.out, line, sizeof line - 1) > 0);
    c.port = (uint16_t)atoi(line);
    MUST(c.port != 0);
    return c;
}

void child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->out);
}

unsigned count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", "..", the directory itself */
}

uint64_t rss_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size = 0;
    unsigned long rss = 0;

    MUST(fscanf(f, "%lu %lu", &size, &rss) == 2);
    fclose(f);
    return rss * 4096;
}
