/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon behind a mount: one reactor that speaks to the servers and to the kernel.
 *
 * Happy path: session with the servers (core_mount) -> mount (channel_open) -> the kernel says
 * hello (report success) -> serve -> the kernel says good-bye (umount, or SIGTERM, which unmounts)
 * -> write back and close the session (core_unmount) -> end.
 *
 * Fails: key, configuration, servers that refuse or do not answer within mount_timeout, the mount
 * itself: each is reported as one sentence and ends with exit code 32, and the session, if there is
 * one, is closed. What cannot be written back within umount_timeout is given up, and logged.
 */
#include "client/mount/daemon.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/fuse/mountinfo.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/crypto/crypto.h"
#include "common/net/device.h"
#include "common/rt/notify.h"
#include "proto/rpc.h"

#define TAG             "mount"
#define WARM_BYTES      (16 * MIB)
#define HEAP_WARM_BYTES (3 * MIB)
#define HEAP_STEP_BYTES (256 * KIB)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define SPIN_AHEAD_NS (15 * NS_PER_US)
#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

/* ---- the end ---- */

static void on_core_unmounted(struct core_req *q, int status)
{
    struct mount_daemon *d = q->arg;

    if (status != 0) {
        LOG_ERROR(TAG, "%s: not everything was written back: %s", d->m->dir, err_text(status));
        mount_umount_tell(&d->umount, "not everything was written back (see its log)");
    }
    d->core_mounted = false;
    reactor_stop(d->fs.reactor);
}

/* What has been written and is not stored; what is under way may be what no write has returned for
 * (its process was killed), or be stored after all. */
static void on_umount_timeout(struct reactor_timer *t)
{
    struct mount_daemon *d = container_of(t, struct mount_daemon, timer);
    uint64_t lost, under_way = core_bytes_under_way(d->fs.core);
    struct core_stats s;
    char text[128];

    core_get_stats(d->fs.core, &s);
    lost = s.dirty_bytes + s.uncommitted_bytes;
    if (lost)
        snprintf(text, sizeof(text), "gave up writing back; %llu bytes are lost",
                 (unsigned long long)lost);
    else if (under_way)
        snprintf(text, sizeof(text), "gave up writing back; %llu bytes were under way",
                 (unsigned long long)under_way);
    else if (s.removals_under_way)
        snprintf(text, sizeof(text),
                 "gave up waiting for servers; %llu removed files may still be there",
                 (unsigned long long)s.removals_under_way);
    else
        snprintf(text, sizeof(text), "gave up waiting for servers; %s",
                 core_holds_changes(d->fs.core) ? "sizes or times of files are lost"
                                                : "nothing that was written is lost");
    if (lost)
        LOG_ERROR(TAG, "%s: %s", d->m->dir, text);
    else
        LOG_WARN(TAG, "%s: %s", d->m->dir, text);
    if (lost || core_holds_changes(d->fs.core))
        mount_umount_tell(&d->umount, text);
    reactor_stop(d->fs.reactor);
}

/* Writes back and stops the reactor. */
static void finish(struct mount_daemon *d, bool force)
{
    uint64_t limit_ns = conf_u64(d->m->conf, "umount_timeout");

    if (d->state == MOUNT_STATE_ENDING)
        return;
    d->state = MOUNT_STATE_ENDING;
    reactor_timer_cancel(d->fs.reactor, &d->timer);
    d->timer.fn = on_umount_timeout;
    if (limit_ns)
        reactor_timer_start(d->fs.reactor, &d->timer, reactor_now_ns(d->fs.reactor) + limit_ns);
    memset(&d->req, 0, sizeof(d->req));
    d->req.done = on_core_unmounted;
    d->req.arg = d;
    core_unmount(d->fs.core, &d->req, force);
}

static void fail(struct mount_daemon *d, const char *text, bool force)
{
    d->exit_code = MOUNT_FAILED;
    mount_report(d->report, MOUNT_FAILED, text);
    finish(d, force);
}

static void on_gone(struct fs *fs)
{
    struct mount_daemon *d = container_of(fs, struct mount_daemon, fs);

    mount_umount_gone(&d->umount);
    LOG_INFO(TAG, "%s is not served any more, writing back", d->m->dir);
    finish(d, false);
}

/* ---- mounting ---- */

static void on_ready(struct fs *fs)
{
    struct mount_daemon *d = container_of(fs, struct mount_daemon, fs);

    atomic_store(&d->ready, true);
    LOG_INFO(TAG, "%s is mounted on %s", d->m->source_text, d->m->dir);
    mount_report(d->report, MOUNT_OK, NULL);
    notify_ready("mounted");
}

static void mount_now(struct mount_daemon *d)
{
    char err[MOUNT_ERROR_BYTES];
    struct strbuf words;
    struct channel_options o = {.reactor = d->fs.reactor,
                                .kind = (enum channel_kind)conf_enum(d->m->conf, "channel"),
                                .ops = &fs_channel_ops,
                                .user = &d->fs,
                                .source = d->m->source_text,
                                .mountpoint = d->m->dir,
                                .read_ahead_bytes =
                                    (uint32_t)conf_u64(d->m->conf, "kernel_read_ahead"),
                                .posix_acl = true,
                                .debug = d->m->debug};
    struct mountinfo info;
    int rc = -ENOMEM;

    d->fs.root = core_root(d->fs.core);
    strbuf_init(&words);
    mount_kernel_words(d->m, geteuid() == 0, &words);
    o.mount_flags = words.data;
    snprintf(err, sizeof(err), "out of memory");
    if (!strbuf_failed(&words))
        rc = channel_open(&o, &d->fs.channel, err, sizeof(err));
    strbuf_fini(&words);
    if (rc != 0) {
        fail(d, err, false); /* nothing was written; the session is closed */
        return;
    }
    d->state = MOUNT_STATE_SERVING;
    if (mountinfo_find(d->m->dir, &info) == 1)
        mount_umount_listen(&d->umount, info.major, info.minor);
}

static void on_core_mounted(struct core_req *q, int status)
{
    struct mount_daemon *d = q->arg;
    char text[MOUNT_ERROR_BYTES];

    reactor_timer_cancel(d->fs.reactor, &d->timer);
    if (status == 0) {
        mount_now(d);
        return;
    }
    mount_explain(d, status, text, sizeof(text));
    fail(d, text, true);
}

static void on_mount_timeout(struct reactor_timer *t)
{
    struct mount_daemon *d = container_of(t, struct mount_daemon, timer);

    if (d->m->background) {
        mount_report(d->report, MOUNT_OK,
                     "the servers do not answer yet; goes on in the background");
        return;
    }
    d->timed_out = true;
    core_cancel(&d->req);
}

static void start(struct mount_daemon *d)
{
    uint64_t now = reactor_now_ns(d->fs.reactor);

    d->wait_ns = MAX(conf_u64(d->m->conf, "mount_timeout"), conf_u64(d->m->conf, "retry"));
    reactor_timer_init(&d->timer, on_mount_timeout);
    reactor_timer_start(d->fs.reactor, &d->timer, now + d->wait_ns);
    d->req.done = on_core_mounted;
    d->req.arg = d;
    core_mount(d->fs.core, &d->req);
}

/* ---- set up ---- */

static int logging(const struct mount_request *m, char *err, size_t err_len)
{
    const char *file = conf_str(m->conf, "log.file");

    log_set_level((enum log_level)conf_enum(m->conf, "log.level"));
    if (file && *file) {
        int rc = log_open_file(file);

        if (rc != 0)
            snprintf(err, err_len, "log file %s: %s", file, err_text(rc));
        return rc;
    }
    if (!m->foreground || conf_bool(m->conf, "log.syslog"))
        log_open_syslog();
    return 0;
}

static void net_options_from(const struct conf *c, struct net_options *o)
{
    o->want = (enum net_want)conf_enum(c, "net.transport");
    o->ping_interval_ns = conf_u64(c, "net.ping_interval");
    o->ping_timeout_ns = conf_u64(c, "net.ping_timeout");
    o->connect_timeout_ns = conf_u64(c, "net.connect_timeout");
    o->rndv_threshold = (uint32_t)conf_u64(c, "net.rndv_threshold");
    o->rails = (unsigned)conf_u64(c, "rails");
}

static int limit_devices(const struct conf *c, char *err, size_t err_len)
{
    char why[400];
    int rc = net_limit_devices(conf_str(c, "net.devices"), why, sizeof(why));

    if (rc != 0)
        snprintf(err, err_len, "net.devices: %s", why);
    if (rc == 0 && conf_enum(c, "net.transport") == NET_WANT_RDMA) {
        rc = net_need_rdma(why, sizeof(why));
        if (rc != 0)
            snprintf(err, err_len, "net=rdma: %s", why);
    }
    return rc;
}

/* One server's name at least must have an address. */
static int check_servers(const struct mount_source *source, char *err, size_t err_len)
{
    struct net_addr a;
    int rc = -EINVAL;

    for (unsigned i = 0; i < source->n_servers && rc != 0; i++)
        rc = net_addr_resolve(source->servers[i], RPC_PORT_DEFAULT, &a, err, err_len);
    return rc;
}

/* What libaifs needs to reach what we have mounted; nothing when it does not fit. */
static void tell_how(struct mount_daemon *d, const char *key_file)
{
    const struct mount_request *m = d->m;
    const char *devices = conf_str(m->conf, "net.devices");
    AUTO_FREE char *absolute = realpath(key_file, NULL);
    struct strbuf text;

    strbuf_init(&text);
    for (unsigned k = 0; k < m->source.n_servers; k++)
        strbuf_printf(&text, "%s%s", k ? "," : "", m->source.servers[k]);
    strbuf_printf(&text, ":%s\nkey_file=%s,net=%s", m->source.subdir,
                  absolute ? absolute : key_file, mount_net_name(m->conf));
    if (devices && *devices)
        strbuf_printf(&text, ",net.devices=");
    for (; devices && *devices; devices++)
        strbuf_printf(&text, "%c", *devices == ',' ? '+' : *devices);
    if (!strbuf_failed(&text) && text.len < sizeof(d->fs.mount_text))
        memcpy(d->fs.mount_text, text.data, text.len + 1);
    strbuf_fini(&text);
}

static int core_create_from(struct mount_daemon *d, char *err, size_t err_len)
{
    const struct mount_request *m = d->m;
    const char *key_file = conf_str(m->conf, "key_file");
    struct core_options o;
    struct crypto_key key;
    int rc;

    core_options_default(&o);
    key_file = key_file ? key_file : MOUNT_KEY_FILE;
    rc = crypto_key_load(key_file, &key, err, err_len);
    if (rc == -ENOENT && !strcmp(key_file, MOUNT_KEY_FILE))
        snprintf(err, err_len, "no key: there is no %s; say where it is: -o keyfile=FILE",
                 key_file);
    if (rc != 0)
        return rc;
    if (key.role == CRYPTO_ROLE_SERVER)
        LOG_WARN(TAG,
                 "%s is a server key: whoever gets it from this machine is the whole cluster. "
                 "A mount needs no more than: aifs-admin key derive %s client FILE",
                 key_file, key_file);
    rc = crypto_key_derive(&key, CRYPTO_ROLE_CLIENT, &o.key);
    explicit_bzero(&key, sizeof(key));
    if (rc != 0) {
        snprintf(err, err_len, "key file %s is no client key: %s", key_file, err_text(rc));
        return rc;
    }
    for (o.n_mds = 0; o.n_mds < m->source.n_servers; o.n_mds++)
        o.mds[o.n_mds] = m->source.servers[o.n_mds];
    o.subdir = m->source.subdir;
    net_options_from(m->conf, &o.net);
    o.mount = m->dir;
    o.job = conf_str(m->conf, "job");
    o.memory_limit = conf_u64(m->conf, "memory_limit");
    o.warm_bytes = WARM_BYTES;
    o.memory_threads = 1;
    o.attr_ns = conf_u64(m->conf, "attr_timeout");
    o.entry_ns = conf_u64(m->conf, "entry_timeout");
    o.negative_ns = conf_u64(m->conf, "negative_timeout");
    o.soft = conf_bool(m->conf, "soft");
    o.ahead = conf_bool(m->conf, "remove_ahead");
    o.create_ahead = conf_bool(m->conf, "create_ahead");
    o.timeo_ns = conf_u64(m->conf, "timeo");
    o.hung_log_ns = conf_u64(m->conf, "hung_log");
    o.readahead_bytes = conf_u64(m->conf, "read_ahead");
    o.read_only = m->read_only;
    o.relatime = conf_bool(m->conf, "relatime");
    o.no_dir_time = m->no_dir_time;
    o.readers_cache = true;
    fs_events(&d->fs, &o.events);
    rc = check_servers(&m->source, err, err_len);
    if (rc == 0)
        rc = limit_devices(m->conf, err, err_len);
    tell_how(d, key_file);
    if (rc == 0) {
        rc = core_create(d->fs.reactor, &o, &d->fs.core);
        if (rc != 0)
            snprintf(err, err_len, "cannot set up the client for %s: %s", m->source_text,
                     err_text(rc));
    }
    explicit_bzero(&o.key, sizeof(o.key));
    return rc;
}

static bool is_ready(void *arg)
{
    struct mount_daemon *d = arg;

    return atomic_load(&d->ready);
}

/*
 * Data servers at work may be on this machine, and want the core. So may the metadata server with
 * what was answered ahead; if nobody waits for anything else, who works on has the other core, and
 * the next request comes soon or not at all.
 */
static uint64_t spin_for_ns(void *arg)
{
    const struct mount_daemon *d = arg;

    if (!d->fs.core || core_moves_data(d->fs.core))
        return 0;
    if (core_is_ahead(d->fs.core) && channel_in_flight(d->fs.channel) == 0)
        return SPIN_AHEAD_NS;
    return UINT64_MAX;
}

static int set_up(struct mount_daemon *d, char *err, size_t err_len)
{
    struct reactor_options ro = {.name = "mount",
                                 .spin_ns = conf_is_set(d->m->conf, "reactor.spin")
                                                ? conf_u64(d->m->conf, "reactor.spin")
                                                : reactor_spin_watches_ns(),
                                 .spin_for_ns = spin_for_ns,
                                 .spin_for_arg = d};
    const char *metrics = conf_str(d->m->conf, "metrics.address");
    int rc = logging(d->m, err, err_len);

    if (rc != 0)
        return rc;
    snprintf(err, err_len, "out of memory or descriptors");
    rc = reactor_create(&ro, &d->fs.reactor);
    if (rc == 0)
        rc = mount_signals_start(d);
    if (rc == 0)
        rc = core_create_from(d, err, err_len);
    if (rc != 0)
        return rc;
    /* Memory reclaim that waits for this mount must not wait for itself (CAP_SYS_RESOURCE). */
    if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0)
        LOG_DEBUG(TAG, "not marked as I/O flusher: %m");
    mount_metrics_start(d);
    if (metrics && *metrics) {
        net_register_stats();
        rc = metrics_http_start(metrics, is_ready, d, &d->http);
        if (rc != 0)
            snprintf(err, err_len, "metrics at %s: %s", metrics, err_text(rc));
        else
            LOG_INFO(TAG, "metrics at port %u", metrics_http_port(d->http));
    }
    return rc;
}

/* When writing back was given up, requests may still be in flight: the end of the process ends
 * them. */
static void tear_down(struct mount_daemon *d)
{
    if (d->core_mounted)
        return;
    d->fs.ended = true; /* what has been put off answers nothing any more */
    if (d->fs.channel)
        channel_close(d->fs.channel);
    if (d->unmounting)
        pthread_join(d->unmounter, NULL);
    metrics_http_stop(d->http);
    mount_metrics_stop(d);
    if (d->fs.core)
        core_destroy(d->fs.core);
    if (d->signals.added)
        reactor_watch_remove(d->fs.reactor, &d->signals);
    if (d->signals.fd >= 0)
        close(d->signals.fd);
    /* d->umount stays as it is: who waits there waits for the end of the process. */
}

/*
 * Names and inodes of a first listing would be put into fresh memory, page by page, while somebody
 * waits for it: so there is some that has been touched (by the kernel at once, from 5.14 on). The
 * allocator does not give it back, nor what a request has needed, for the next one.
 */
static void heap_warm(void)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)sbrk(0) + page - 1) / page * page, to;

    (void)mallopt(M_MMAP_THRESHOLD, MIB);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * HEAP_WARM_BYTES);
    (void)mallopt(M_TOP_PAD, HEAP_WARM_BYTES);
    mem_free(mem_alloc(MIB / 2)); /* it grows */
    (void)mallopt(M_TOP_PAD, HEAP_STEP_BYTES);
    to = (uintptr_t)sbrk(0) / page * page;
    if (to > from)
        (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

int mount_serve(const struct mount_request *m, struct mount_report *report)
{
    struct mount_daemon *d;
    char err[MOUNT_ERROR_BYTES] = "";
    int code;

    heap_warm();
    d = mem_zalloc(sizeof(*d));
    if (!d) {
        mount_report(report, MOUNT_SYSTEM, "out of memory");
        return MOUNT_SYSTEM;
    }
    d->m = m;
    d->report = report;
    d->signals.fd = -1;
    mount_umount_init(&d->umount);
    d->fs.ready = on_ready;
    d->fs.gone = on_gone;
    if (set_up(d, err, sizeof(err)) != 0) {
        d->exit_code = MOUNT_FAILED;
        mount_report(report, MOUNT_FAILED, err);
    } else {
        d->core_mounted = true;
        start(d);
        reactor_run(d->fs.reactor);
        reactor_timer_cancel(d->fs.reactor, &d->timer);
    }
    tear_down(d);
    code = d->exit_code;
    return code;
}
