/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata server as a process.
 *
 * Happy path: lock the folder, open the shard, listen, start the modules, run the reactor. A signal
 * stops in the reverse order: no new requests, what is under way is answered, links are closed, the
 * writer commits what it has. Failure modes: each step that fails is logged by whoever failed, and
 * what came before it is undone. A stop that takes longer than its limit ends without waiting:
 * everything acknowledged is on the disk.
 */
#include "mds/server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/rt/notify.h"
#include "common/stat/metrics_http.h"
#include "mds/dir_key.h"
#include "mds/ops/exec.h"
#include "mds/shard/format.h"

#define TAG           "mds"
#define STOP_LIMIT_NS (10 * NS_PER_S)

struct mds_server {
    struct mds mds;
    const struct conf *conf;
    int lock_fd;
    struct buf_pool *bulk;
    struct metrics_http *metrics;
    struct reactor_watch signals;
    struct reactor_work failed_work;
    struct reactor_timer stop_timer;
    unsigned n_started; /* modules */
    bool running, stopping, node_down;
    int status;
    char advertise[160];
};

static const char *conf_text(const struct conf *c, const char *name)
{
    const char *s = conf_str(c, name);

    return s && *s ? s : NULL;
}

/* ---- start ---- */

static int load_key(const struct conf *c, struct crypto_key *ret_key)
{
    const char *file = conf_text(c, "key_file");
    char err[512];
    int rc;

    if (!file) {
        LOG_ERROR(TAG, "key_file is not set: every server has the key of its cluster");
        return -AIFS_ECONFIG;
    }
    rc = crypto_key_load(file, ret_key, err, sizeof(err));
    if (rc == 0 && ret_key->role != CRYPTO_ROLE_SERVER) {
        snprintf(err, sizeof(err), "%s: a server needs a key of role server, not %s", file,
                 crypto_role_name(ret_key->role));
        rc = -AIFS_EROLE;
    }
    if (rc < 0)
        LOG_ERROR(TAG, "%s", err);
    return rc;
}

int mds_server_format(const struct conf *c)
{
    const char *dir = conf_str(c, "mds.dir");
    struct shard_format f = {.root_mode = 0755};
    struct crypto_key key;
    int rc = load_key(c, &key); /* nothing is made that could not be served */

    explicit_bzero(&key, sizeof(key));
    if (rc == 0)
        rc = uuid_random(&f.fs);
    if (rc < 0)
        return rc;
    if (strlen(conf_str(c, "mds.fs_name")) >= sizeof(f.fs_name)) {
        LOG_ERROR(TAG, "mds.fs_name: longer than %zu bytes", sizeof(f.fs_name) - 1);
        return -AIFS_ECONFIG;
    }
    snprintf(f.fs_name, sizeof(f.fs_name), "%s", conf_str(c, "mds.fs_name"));
    rc = shard_make(dir, 0, &f, mds_exec_table);
    if (rc == -EEXIST)
        LOG_ERROR(TAG, "%s already holds a file system: start without mds.format", dir);
    else if (rc == -ENOTEMPTY)
        LOG_ERROR(TAG, "%s is not empty: a new file system is made in an empty directory only",
                  dir);
    else if (rc < 0)
        LOG_ERROR(TAG, "%s: cannot make a file system: %s", dir, err_text(rc));
    else
        dir_key_forget(dir);
    if (rc == 0)
        LOG_INFO(TAG, "%s: made file system \"%s\"", dir, f.fs_name);
    return rc;
}

static void on_failed_work(struct reactor_work *w)
{
    struct mds_server *s = container_of(w, struct mds_server, failed_work);

    s->status = -EIO;
    reactor_stop(s->mds.reactor);
}

static void on_shard_failed(void *arg)
{
    struct mds_server *s = arg;

    s->failed_work.fn = on_failed_work;
    reactor_post(s->mds.reactor, &s->failed_work);
}

static int open_shard(struct mds_server *s)
{
    const struct conf *c = s->conf;
    uint64_t cache = conf_u64(c, "mds.cache");
    AUTO_FREE char *path = shard_path(conf_str(c, "mds.dir"), 0);
    struct shard_options o = {
        .dir = path,
        .store = {.cache_bytes = cache / 2, .memtable_bytes = conf_u64(c, "mds.memtable")},
        .sync = conf_bool(c, "mds.sync"),
        .queue_max = (uint32_t)conf_u64(c, "mds.queue"),
        .overlay_bytes = cache / 4,
        .view_bytes = cache / 4,
        .reserve_bytes = conf_u64(c, "mds.reserve"),
        .exec = mds_exec_table,
        .failed = on_shard_failed,
        .arg = s};
    struct mds *m = &s->mds;
    int rc;

    if (!path)
        return -ENOMEM;
    rc = shard_open(&o, &m->shards[0]);
    if (rc == -ENOENT)
        LOG_ERROR(TAG, "%s: there is no file system; a new one is made with --mds.format=yes",
                  path);
    else if (rc < 0)
        LOG_ERROR(TAG, "%s: cannot be opened: %s", path, err_text(rc));
    if (rc < 0)
        return rc;
    m->n_shards = 1;
    memcpy(m->fs.b, shard_format(m->shards[0])->fs, sizeof(m->fs.b));
    snprintf(m->conf.fs_name, sizeof(m->conf.fs_name), "%s", shard_format(m->shards[0])->fs_name);
    return 0;
}

static int open_node(struct mds_server *s)
{
    const struct conf *c = s->conf;
    struct rpc_node_options o = {.self = {.role = CRYPTO_ROLE_SERVER, .boot = s->mds.boot}};
    uint32_t n_buffers = (uint32_t)MAX(conf_u64(c, "net.buffers") / MSG_BULK_MAX, 4u);
    int rc = load_key(c, &o.key);

    if (rc < 0)
        return rc;
    dir_key_check(conf_str(c, "mds.dir"), &o.key, conf_text(c, "key_file"));
    rc = shard_dir_node(conf_str(c, "mds.dir"), &o.self.node);
    if (rc < 0)
        return rc;
    snprintf(o.self.name, sizeof(o.self.name), "%s", s->mds.conf.name);
    snprintf(o.self.version, sizeof(o.self.version), "%s", AIFS_VERSION);
    net_options_default(&o.net);
    o.net.want = (enum net_want)conf_enum(c, "net.transport");
    o.net.ping_interval_ns = conf_u64(c, "net.ping_interval");
    o.net.ping_timeout_ns = conf_u64(c, "net.ping_timeout");
    o.net.connect_timeout_ns = conf_u64(c, "net.connect_timeout");
    o.net.rndv_threshold = (uint32_t)conf_u64(c, "net.rndv_threshold");
    rc = buf_pool_create("bulk", MSG_BULK_MAX, MIN(n_buffers, 64u), &s->bulk);
    if (rc < 0)
        return rc;
    o.bulk_pool = s->bulk;
    s->mds.node_id = o.self.node;
    rc = rpc_node_create(s->mds.reactor, &o, &s->mds.node);
    explicit_bzero(&o.key, sizeof(o.key));
    return rc;
}

/* Where others find us: as configured; else the address we listen on, or the host's name for
 * "all". */
static void make_advertise(struct mds_server *s, uint16_t port)
{
    const char *given = conf_text(s->conf, "mds.advertise"), *listen = s->mds.conf.listen;
    const char *colon = strrchr(listen, ':');
    size_t host_len = colon ? (size_t)(colon - listen) : strlen(listen);
    char host[128];

    if (given) {
        snprintf(s->advertise, sizeof(s->advertise), "%s", given);
    } else {
        snprintf(host, sizeof(host), "%.*s", (int)host_len, listen);
        if (!*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "[::]") || !strcmp(host, "*"))
            if (gethostname(host, sizeof(host) - 1) < 0)
                snprintf(host, sizeof(host), "localhost");
        snprintf(s->advertise, sizeof(s->advertise), "%s:%u", host, port);
    }
    s->mds.conf.advertise = s->advertise;
}

static int write_run_file(const char *dir, const char *name, unsigned long value)
{
    AUTO_FREE char *path = mem_printf("%s/%s", dir, name);
    char text[24];
    int rc, len = snprintf(text, sizeof(text), "%lu\n", value);

    if (!path)
        return -ENOMEM;
    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        rc = -errno;
        LOG_ERROR(TAG, "%s: %m", dir);
        return rc;
    }
    rc = file_replace(path, text, (size_t)len, 0644);
    if (rc < 0)
        LOG_ERROR(TAG, "%s: %s", path, strerror(-rc));
    return rc;
}

static void remove_run_files(const char *dir)
{
    static const char *const names[] = {"port", "pid", "metrics"};

    for (unsigned i = 0; dir && i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = mem_printf("%s/%s", dir, names[i]);

        if (path)
            unlink(path);
    }
}

static int listen_node(struct mds_server *s, uint16_t *ret_port)
{
    struct net_addr addr;
    char err[256];
    int rc = net_addr_resolve(s->mds.conf.listen, RPC_PORT_DEFAULT, &addr, err, sizeof(err));

    if (rc < 0) {
        LOG_ERROR(TAG, "mds.listen = %s: %s", s->mds.conf.listen, err);
        return rc;
    }
    rc = rpc_node_listen(s->mds.node, &addr, ret_port);
    if (rc < 0)
        LOG_ERROR(TAG, "mds.listen = %s: %s", s->mds.conf.listen, err_text(rc));
    return rc;
}

static int start_modules(struct mds_server *s)
{
    for (; mds_modules[s->n_started]; s->n_started++) {
        int rc = mds_modules[s->n_started]->start(&s->mds);

        if (rc < 0) {
            LOG_ERROR(TAG, "%s does not start: %s", mds_modules[s->n_started]->name, err_text(rc));
            return rc;
        }
    }
    return 0;
}

static bool is_ready(void *arg)
{
    return __atomic_load_n(&((struct mds_server *)arg)->running, __ATOMIC_ACQUIRE);
}

static void fill_conf(struct mds_server *s)
{
    struct mds_config *m = &s->mds.conf;
    const struct conf *c = s->conf;

    m->dir = conf_str(c, "mds.dir");
    m->name = conf_str(c, "mds.name");
    m->listen = conf_str(c, "mds.listen");
    m->run_dir = conf_text(c, "mds.run_dir");
    m->inline_max = (uint32_t)conf_u64(c, "mds.inline_max");
    m->lease_ns = conf_u64(c, "mds.lease");
    m->slots = (uint32_t)conf_u64(c, "mds.slots");
    m->sync = conf_bool(c, "mds.sync");
}

/* ---- stop ---- */

static void on_node_down(void *arg)
{
    struct mds_server *s = arg;

    s->node_down = true;
    reactor_stop(s->mds.reactor);
}

static void stop_next(void *arg)
{
    struct mds_server *s = arg;

    if (s->n_started == 0) {
        rpc_node_shutdown(s->mds.node, on_node_down, s);
        return;
    }
    s->n_started--;
    mds_modules[s->n_started]->stop(&s->mds, stop_next, s);
}

static void on_stop_limit(struct reactor_timer *t)
{
    struct mds_server *s = container_of(t, struct mds_server, stop_timer);

    LOG_WARN(TAG, "not everything has stopped within %llu s: ending anyway",
             STOP_LIMIT_NS / NS_PER_S);
    reactor_stop(s->mds.reactor);
}

static void on_signal(struct reactor_watch *w, uint32_t events)
{
    struct mds_server *s = container_of(w, struct mds_server, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(w->fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    LOG_INFO(TAG, "signal %u from process %u: %s", info.ssi_signo, info.ssi_pid,
             s->stopping ? "ending at once" : "stopping");
    if (s->stopping) {
        reactor_stop(s->mds.reactor);
        return;
    }
    s->stopping = true;
    notify_stopping();
    reactor_timer_start(s->mds.reactor, &s->stop_timer,
                        reactor_now_ns(s->mds.reactor) + STOP_LIMIT_NS);
    stop_next(s);
}

static int watch_signals(struct mds_server *s)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    s->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->signals.events = EPOLLIN;
    s->signals.fn = on_signal;
    return s->signals.fd < 0 ? -errno : reactor_watch_add(s->mds.reactor, &s->signals);
}

/* ---- the whole ---- */

static int server_open(struct mds_server *s)
{
    struct mds *m = &s->mds;
    struct reactor_options ro = {.name = "mds", .spin_ns = conf_u64(s->conf, "reactor.spin")};
    int rc = reactor_create(&ro, &m->reactor);

    if (rc < 0)
        return rc;
    reactor_timer_init(&s->stop_timer, on_stop_limit);
    m->started_ns = clock_mono_ns(reactor_clock(m->reactor));
    rc = watch_signals(s);
    if (rc == 0)
        rc = uuid_random(&m->boot);
    if (rc == 0)
        rc = shard_dir_lock(m->conf.dir, &s->lock_fd);
    if (rc == 0)
        rc = open_shard(s);
    if (rc == 0)
        rc = worker_pool_create("mds-work", 1, &m->workers);
    if (rc == 0)
        rc = open_node(s);
    return rc;
}

static int server_start(struct mds_server *s)
{
    const char *metrics = conf_text(s->conf, "metrics.address");
    const char *run_dir = s->mds.conf.run_dir;
    uint16_t port = 0, metrics_port = 0;
    int rc = run_dir ? write_run_file(run_dir, "pid", (unsigned long)getpid()) : 0;

    if (rc == 0)
        rc = listen_node(s, &port);
    if (rc < 0)
        return rc;
    make_advertise(s, port);
    rc = start_modules(s);
    if (rc == 0 && metrics) {
        net_register_stats();
        rc = metrics_http_start(metrics, is_ready, s, &s->metrics);
        if (rc < 0)
            LOG_ERROR(TAG, "metrics.address = %s: %s", metrics, err_text(rc));
        else
            metrics_port = metrics_http_port(s->metrics);
    }
    if (rc == 0 && run_dir && s->metrics)
        rc = write_run_file(run_dir, "metrics", metrics_port);
    if (rc == 0 && run_dir)
        rc = write_run_file(run_dir, "port", port);
    if (rc == 0)
        LOG_INFO(TAG, "serving \"%s\" from %s at %s, metrics on port %u", s->mds.conf.fs_name,
                 s->mds.conf.dir, s->advertise, metrics_port);
    return rc;
}

int mds_server_create(const struct conf *c, struct mds_server **ret_server)
{
    struct mds_server *s = mem_zalloc(sizeof(*s));
    int rc;

    if (!s)
        return -ENOMEM;
    s->conf = c;
    s->lock_fd = s->signals.fd = -1;
    fill_conf(s);
    rc = server_open(s);
    if (rc == 0)
        rc = server_start(s);
    if (rc < 0) {
        mds_server_destroy(s);
        return rc;
    }
    *ret_server = s;
    return 0;
}

int mds_server_run(struct mds_server *s)
{
    __atomic_store_n(&s->running, true, __ATOMIC_RELEASE);
    notify_ready("serving");
    reactor_run(s->mds.reactor);
    __atomic_store_n(&s->running, false, __ATOMIC_RELEASE);
    return s->status;
}

static void free_modules(struct mds_server *s)
{
    unsigned n = 0;

    while (mds_modules[n])
        n++;
    while (n-- > 0) {
        if (mds_modules[n]->free)
            mds_modules[n]->free(&s->mds);
    }
}

void mds_server_destroy(struct mds_server *s)
{
    struct mds *m = &s->mds;

    metrics_http_stop(s->metrics);
    remove_run_files(m->conf.run_dir);
    for (uint32_t i = 0; i < m->n_shards; i++)
        shard_close(m->shards[i]);
    if (m->node && !s->node_down)
        return; /* did not stop as it should: its memory may be in use; the process ends now */
    if (m->workers)
        worker_pool_destroy(m->workers);
    while (m->reactor && reactor_run_once(m->reactor, 0)) /* what they have posted */
        ;
    free_modules(s);
    if (m->node)
        rpc_node_destroy(m->node);
    if (s->bulk)
        buf_pool_destroy(s->bulk);
    if (m->reactor) {
        reactor_timer_cancel(m->reactor, &s->stop_timer);
        if (s->signals.added)
            reactor_watch_remove(m->reactor, &s->signals);
        reactor_destroy(m->reactor);
    }
    if (s->signals.fd >= 0)
        close(s->signals.fd);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    mem_free(s);
}
