// SPDX-License-Identifier: Apache-2.0
/*
 * aifs-oss: configuration, start, stop.
 *
 * Start: options -> key -> reactor -> targets -> rpc -> listening -> cluster; the files pid, port
 * and metrics in the run directory say that it serves. SIGTERM or SIGINT: no new requests, those in
 * flight end, everything is committed, exit 0. What keeps it from starting is one line on standard
 * error.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/standard.h"
#include "common/fault/fault.h"
#include "common/net/device.h"
#include "common/rt/notify.h"
#include "common/stat/metrics_http.h"
#include "oss/options.h"
#include "oss/oss.h"

#define FIO_DEPTH    256u
#define DEFAULT_FILE "/etc/aifs/oss.conf"

struct server {
    struct oss oss;
    struct reactor_watch signals;
    struct metrics_http *metrics;
    char err[4096 + 512];
};

/* ---- configuration ---- */

static int limit_devices(struct server *v)
{
    char why[400];
    int rc = net_limit_devices(conf_str(v->oss.conf, "net.devices"), why, sizeof why);

    if (rc)
        snprintf(v->err, sizeof v->err, "net.devices: %s", why);
    if (!rc && conf_enum(v->oss.conf, "net.transport") == NET_WANT_RDMA) {
        rc = net_need_rdma(why, sizeof why);
        if (rc)
            snprintf(v->err, sizeof v->err, "net.transport = rdma: %s", why);
    }
    return rc;
}

static int check_capacity(struct server *v)
{
    uint64_t bytes = conf_u64(v->oss.conf, "target.capacity");

    if (!bytes || bytes >= OSS_CAPACITY_MIN)
        return 0;
    snprintf(v->err, sizeof v->err, "%s: target.capacity is at least %u MiB, or 0",
             conf_source(v->oss.conf, "target.capacity"), OSS_CAPACITY_MIN / MIB);
    return -AIFS_ECONFIG;
}

static int load_conf(struct server *v, int argc, char **argv)
{
    static const struct conf_option *const tables[] = {oss_options, conf_common_options, NULL};
    int rc = conf_create(tables, &v->oss.conf);

    if (rc)
        return rc;
    if (conf_is_asked(argc, argv, "--help")) {
        printf("Usage: aifs-oss [--config FILE] [--OPTION=VALUE ...]\n"
               "An object storage server of an aifs file system. Its configuration file, unless "
               "told, is\n" DEFAULT_FILE ", which need not exist.\n\n");
        conf_print_help(v->oss.conf, stdout);
        exit(standard_end("aifs-oss"));
    }
    if (conf_is_asked(argc, argv, "--version")) {
        printf("aifs-oss %s\n", AIFS_VERSION);
        exit(standard_end("aifs-oss"));
    }
    rc = conf_load_daemon(v->oss.conf, DEFAULT_FILE, argc, argv, v->err, sizeof v->err);
    if (!rc)
        rc = check_capacity(v);
    return rc ? rc : limit_devices(v);
}

static int start_log(struct server *v)
{
    const struct conf *c = v->oss.conf;
    const char *file = conf_str(c, "log.file");
    int rc = 0;

    log_set_program("aifs-oss");
    log_set_level((enum log_level)conf_enum(c, "log.level"));
    if (conf_bool(c, "log.syslog"))
        log_open_syslog();
    else if (file && *file && (rc = log_open_file(file)))
        snprintf(v->err, sizeof v->err, "%s: %s", file, err_text(rc));
    return rc;
}

/* ---- start ---- */

static int write_run_file(struct server *v, const char *name, const char *text)
{
    char path[4096], line[160];
    int rc, len = snprintf(line, sizeof line, "%s\n", text);

    if (!v->oss.run_dir)
        return 0;
    snprintf(path, sizeof path, "%s/%s", v->oss.run_dir, name);
    rc = len < (int)sizeof line ? file_replace(path, line, (size_t)len, 0644) : -ENAMETOOLONG;
    if (rc)
        snprintf(v->err, sizeof v->err, "%s: %s", path, err_text(rc));
    return rc;
}

static void remove_run_file(struct server *v, const char *name)
{
    char path[4096];

    if (!v->oss.run_dir)
        return;
    snprintf(path, sizeof path, "%s/%s", v->oss.run_dir, name);
    unlink(path);
}

/* Empty: none is wanted. */
static int make_run_dir(struct server *v)
{
    const char *dir = conf_str(v->oss.conf, "oss.run_dir");
    int rc;

    if (!dir || !*dir)
        return 0;
    v->oss.run_dir = dir;
    if (mkdir(dir, 0755) == 0 || errno == EEXIST)
        return 0;
    rc = -errno;
    snprintf(v->err, sizeof v->err, "oss.run_dir = %s: %s", dir, strerror(-rc));
    return rc;
}

static int load_key(struct server *v)
{
    const char *path = conf_str(v->oss.conf, "key_file");
    int rc;

    if (!path) {
        snprintf(v->err, sizeof v->err, "key_file is not set");
        return -AIFS_ECONFIG;
    }
    rc = crypto_key_load(path, &v->oss.key, v->err, sizeof v->err);
    if (!rc && v->oss.key.role != CRYPTO_ROLE_SERVER) {
        snprintf(v->err, sizeof v->err, "%s: a server needs a key of role server, not %s", path,
                 crypto_role_name(v->oss.key.role));
        rc = -AIFS_EROLE;
    }
    return rc;
}

static void raise_limit(int which)
{
    struct rlimit r;

    if (!getrlimit((__rlimit_resource_t)which, &r) && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)!setrlimit((__rlimit_resource_t)which, &r);
    }
}

static int start_reactor(struct server *v)
{
    struct oss *o = &v->oss;
    struct reactor_options ro = {.name = "oss", .spin_ns = conf_u64(o->conf, "reactor.spin")};
    uint64_t half = conf_u64(o->conf, "net.buffers") / MSG_BULK_MAX / 2;
    int rc = reactor_create(&ro, &o->reactor);

    if (!rc)
        rc = fio_create(o->reactor, FIO_DEPTH, &o->fio);
    if (!rc)
        rc = buf_pool_create("requests", MSG_BULK_MAX, (uint32_t)half, &o->in);
    if (!rc)
        rc = buf_pool_create("replies", MSG_BULK_MAX, (uint32_t)half, &o->out);
    if (!rc) {
        fio_memory_add(o->fio, buf_pool_memory(o->in));
        fio_memory_add(o->fio, buf_pool_memory(o->out));
    }
    if (!rc)
        rc = uuid_random(&o->boot);
    o->started_ns = rc ? 0 : clock_mono_ns(reactor_clock(o->reactor));
    return rc;
}

static int start_rpc(struct server *v)
{
    struct oss *o = &v->oss;
    struct rpc_node_options no = {.key = o->key, .bulk_pool = o->in};
    struct net_addr addr;
    int rc;

    net_options_default(&no.net);
    no.net.want = (enum net_want)conf_enum(o->conf, "net.transport");
    no.net.ping_interval_ns = conf_u64(o->conf, "net.ping_interval");
    no.net.ping_timeout_ns = conf_u64(o->conf, "net.ping_timeout");
    no.net.connect_timeout_ns = conf_u64(o->conf, "net.connect_timeout");
    no.net.rndv_threshold = (uint32_t)conf_u64(o->conf, "net.rndv_threshold");
    no.self.node = o->node;
    no.self.boot = o->boot;
    no.self.role = CRYPTO_ROLE_SERVER;
    snprintf(no.self.name, sizeof no.self.name, "%s", o->name);
    snprintf(no.self.version, sizeof no.self.version, "%s", AIFS_VERSION);
    rc = net_addr_resolve(conf_str(o->conf, "oss.listen"), RPC_PORT_DEFAULT + 1, &addr, v->err,
                          sizeof v->err);
    if (!rc)
        rc = rpc_node_create(o->reactor, &no, &o->rpc);
    if (!rc)
        rc = oss_dispatch_start(o);
    if (rc)
        return rc;
    rc = rpc_node_listen(o->rpc, &addr, &o->port);
    if (rc)
        snprintf(v->err, sizeof v->err, "cannot listen on %s: %s", conf_str(o->conf, "oss.listen"),
                 err_text(rc));
    return rc;
}

static bool is_ready(void *arg)
{
    return ((struct oss *)arg)->ready;
}

static int start_metrics(struct server *v)
{
    const char *address = conf_str(v->oss.conf, "metrics.address");
    char text[128];
    int rc;

    if (!address || !*address)
        return 0;
    net_register_stats();
    rc = metrics_http_start(address, is_ready, &v->oss, &v->metrics);
    if (rc) {
        snprintf(v->err, sizeof v->err, "cannot serve metrics on %s: %s", address, err_text(rc));
        return rc;
    }
    snprintf(text, sizeof text, "%.*s:%u", (int)(strrchr(address, ':') - address), address,
             metrics_http_port(v->metrics));
    return write_run_file(v, "metrics", text);
}

static int announce(struct server *v)
{
    char text[32];
    int rc;

    snprintf(text, sizeof text, "%d", getpid());
    rc = write_run_file(v, "pid", text);
    snprintf(text, sizeof text, "%u", v->oss.port);
    if (!rc)
        rc = write_run_file(v, "port", text); /* last: it says that we serve */
    if (!rc)
        notify_ready("serving");
    return rc;
}

/* ---- stop ---- */

static void targets_closed(void *arg)
{
    struct server *v = arg;

    reactor_stop(v->oss.reactor);
}

static void rpc_over(void *arg)
{
    struct server *v = arg;

    oss_targets_close(&v->oss, targets_closed, v);
}

static void stop(struct reactor_watch *w, uint32_t events)
{
    struct server *v = container_of(w, struct server, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(w->fd, &info, sizeof info) != sizeof info || v->oss.stopping)
        return;
    LOG_INFO("oss", "stopping: signal %u", info.ssi_signo);
    v->oss.stopping = true;
    v->oss.ready = false;
    notify_stopping();
    remove_run_file(v, "port");
    oss_cluster_stop(&v->oss);
    rpc_node_shutdown(v->oss.rpc, rpc_over, v);
}

static int watch_signals(struct server *v)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    v->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    v->signals.events = EPOLLIN;
    v->signals.fn = stop;
    return v->signals.fd < 0 ? -errno : reactor_watch_add(v->oss.reactor, &v->signals);
}

static void block_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* inherited by every thread; signalfd has them */
}

static void name_server(struct oss *o)
{
    const char *name = conf_str(o->conf, "oss.name");

    if (name && *name)
        snprintf(o->name, sizeof o->name, "%s", name);
    else
        gethostname(o->name, sizeof o->name - 1);
}

static int start(struct server *v)
{
    struct oss *o = &v->oss;
    int rc = start_log(v);

    if (!rc)
        rc = fault_arm_from_env();
    if (!rc)
        rc = load_key(v);
    if (rc)
        return rc;
    rc = make_run_dir(v);
    if (rc)
        return rc;
    name_server(o);
    raise_limit(RLIMIT_NOFILE);
    raise_limit(RLIMIT_MEMLOCK); /* for buffers registered with io_uring */
    rc = start_reactor(v);
    if (!rc)
        rc = watch_signals(v);
    if (!rc)
        rc = oss_sessions_init(o);
    if (!rc)
        rc = oss_targets_open(o, v->err, sizeof v->err);
    if (!rc)
        rc = oss_targets_look_start(o);
    if (!rc)
        rc = start_rpc(v);
    if (!rc)
        rc = oss_cluster_start(o);
    if (!rc)
        rc = start_metrics(v);
    return rc ? rc : announce(v);
}

static void finish(struct server *v)
{
    struct oss *o = &v->oss;

    metrics_http_stop(v->metrics);
    remove_run_file(v, "metrics");
    remove_run_file(v, "pid");
    if (o->left_open)
        _exit(0); /* somebody still uses what is freed below */
    oss_cluster_free(o);
    rpc_node_destroy(o->rpc);
    oss_dispatch_stop(o);
    oss_sessions_fini(o);
    fio_destroy(o->fio);
    buf_pool_destroy(o->in);
    buf_pool_destroy(o->out);
    reactor_watch_remove(o->reactor, &v->signals);
    close(v->signals.fd);
    reactor_destroy(o->reactor);
    conf_destroy(o->conf);
}

int main(int argc, char **argv)
{
    static struct server v;
    int rc;

    standard_open();
    block_signals();
    rc = load_conf(&v, argc, argv);
    if (rc) {
        fprintf(stderr, "aifs-oss: %s\n", v.err[0] ? v.err : err_text(rc));
        return 2;
    }
    rc = start(&v);
    if (rc) { /* nothing was promised to anybody yet: the kernel cleans up */
        fprintf(stderr, "aifs-oss: %s\n", v.err[0] ? v.err : err_text(rc));
        return 1;
    }
    reactor_run(v.oss.reactor);
    LOG_INFO("oss", "stopped");
    finish(&v);
    return 0;
}
