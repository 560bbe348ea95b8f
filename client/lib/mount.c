/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounting and unmounting: options, the key, the reactor and its thread.
 *
 * Happy path: parse → key → core on a new reactor → thread → core_mount() → done. Failure: a
 * sentence that says what is wrong, in aifs_mount_error(), and everything taken down again.
 */
#include "client/lib/lib_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/net/device.h"
#include "common/rt/thread.h"

#define KEY_FILE     "/etc/aifs/client.key"
#define SPIN_AWAY_NS (NS_PER_S / 2) /* a program is often one of many that try */
#define CONNECT_MAX  16u            /* storage servers: 1 MiB for each that is on this machine */

struct mount_args {
    struct core_options core;
    char servers[CORE_MDS_MAX][256];
    char subdir[LIB_PATH_MAX + 1];
    char text[1024];
    const char *key_file;
    const char *devices;
    uint64_t timeout_ns, umount_ns, spin_ns;
    bool shy; /* drive=own */
};

static _Thread_local char error[512];

/* The program's standard error belongs to the program: only what is wrong is said there. */
__attribute__((constructor)) static void be_quiet(void)
{
    log_set_level(LOG_LEVEL_WARN);
}

static int fail(int err, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int fail(int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, sizeof error, fmt, ap);
    va_end(ap);
    return err;
}

const char *aifs_mount_error(void)
{
    return error;
}

const char *aifs_version(void)
{
    return AIFS_VERSION;
}

/* ---- arguments ---- */

static int parse_source(struct mount_args *m, const char *source)
{
    const char *colon = source ? strstr(source, ":/") : NULL, *at = source;

    if (!source)
        return fail(-EFAULT, "no source");
    if (!colon || strlen(colon + 1) > LIB_PATH_MAX)
        return fail(-EINVAL, "source \"%s\": expected host[:port][,host2...]:/[subdir]", source);
    memcpy(m->subdir, colon + 1, strlen(colon + 1) + 1);
    while (at < colon) {
        size_t n = strcspn(at, ",");

        n = MIN(n, (size_t)(colon - at));
        if (!n || n >= sizeof m->servers[0] || m->core.n_mds == CORE_MDS_MAX)
            return fail(-EINVAL, "source \"%s\": bad list of servers", source);
        memcpy(m->servers[m->core.n_mds], at, n);
        m->servers[m->core.n_mds][n] = 0;
        m->core.mds[m->core.n_mds] = m->servers[m->core.n_mds];
        m->core.n_mds++;
        at += n + 1;
    }
    m->core.subdir = m->subdir;
    return m->core.n_mds ? 0 : fail(-EINVAL, "source \"%s\": no server in it", source);
}

static int parse_net(struct mount_args *m, const char *value)
{
    static const char *const names[] = {"auto", "tcp", "shm", "rdma"};
    unsigned k;

    for (k = 0; k < ARRAY_LEN(names); k++) {
        if (strcmp(value, names[k]) == 0) {
            m->core.net.want = (enum net_want)k;
            return 0;
        }
    }
    return -EINVAL;
}

static int parse_rails(struct mount_args *m, const char *value)
{
    uint64_t n;
    int rc = text_parse_u64(value, &n);

    if (rc || n < 1 || n > NET_RAILS_MAX)
        return -EINVAL;
    m->core.net.rails = (unsigned)n;
    return 0;
}

static int parse_drive(struct mount_args *m, const char *value)
{
    m->shy = strcmp(value, "own") == 0;
    return m->shy || strcmp(value, "caller") == 0 ? 0 : -EINVAL;
}

static int set_option(struct mount_args *m, const char *name, const char *value)
{
    struct {
        const char *name;
        uint64_t *dst;
        int (*parse)(const char *s, uint64_t *ret_value);
    } numbers[] = {
        {"memory_limit", &m->core.memory_limit, text_parse_size},
        {"read_ahead", &m->core.readahead_bytes, text_parse_size},
        {"timeo", &m->core.timeo_ns, text_parse_duration},
        {"attr_timeout", &m->core.attr_ns, text_parse_duration},
        {"entry_timeout", &m->core.entry_ns, text_parse_duration},
        {"negative_timeout", &m->core.negative_ns, text_parse_duration},
        {"hung_log", &m->core.hung_log_ns, text_parse_duration},
        {"mount_timeout", &m->timeout_ns, text_parse_duration},
        {"umount_timeout", &m->umount_ns, text_parse_duration},
        {"spin", &m->spin_ns, text_parse_duration},
    };
    unsigned k;

    if (!value) {
        m->core.soft |= strcmp(name, "soft") == 0;
        m->core.read_only |= strcmp(name, "ro") == 0;
        m->core.relatime |= strcmp(name, "relatime") == 0;
        return strcmp(name, "soft") && strcmp(name, "ro") && strcmp(name, "rw") &&
                       strcmp(name, "hard") && strcmp(name, "relatime")
                   ? -ENOENT
                   : 0;
    }
    for (k = 0; k < ARRAY_LEN(numbers); k++)
        if (strcmp(name, numbers[k].name) == 0)
            return numbers[k].parse(value, numbers[k].dst);
    if (strcmp(name, "rails") == 0)
        return parse_rails(m, value);
    if (strcmp(name, "drive") == 0)
        return parse_drive(m, value);
    if (strcmp(name, "key_file") == 0 || strcmp(name, "keyfile") == 0)
        m->key_file = value;
    else if (strcmp(name, "job") == 0)
        m->core.job = value;
    else if (strcmp(name, "net") == 0)
        return parse_net(m, value);
    else if (strcmp(name, "net.devices") == 0)
        m->devices = value;
    else
        return -ENOENT;
    return 0;
}

static int parse_options(struct mount_args *m, const char *options)
{
    char *save = NULL, *word;

    if (!options)
        return 0;
    if (strlen(options) >= sizeof m->text)
        return fail(-EINVAL, "options are longer than %zu bytes", sizeof m->text - 1);
    memcpy(m->text, options, strlen(options) + 1);
    for (word = strtok_r(m->text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');
        int err;

        if (value)
            *value++ = 0;
        err = set_option(m, word, value);
        if (err == -ENOENT)
            return fail(-EINVAL, "unknown option \"%s\"", word);
        if (err)
            return fail(-EINVAL, "option %s: \"%s\" is not a value for it", word, value);
    }
    if (m->core.memory_limit < 32 * MIB)
        return fail(-EINVAL, "memory_limit must be at least 32Mi");
    return 0;
}

/* ---- the thread ---- */

static int take_rights(struct aifs *fs)
{
    int n = getgroups(0, NULL);

    fs->pid = (uint32_t)getpid();
    fs->cred.uid = geteuid();
    fs->cred.gid = getegid();
    if (n <= 0)
        return 0;
    fs->groups = mem_array((size_t)n, sizeof *fs->groups);
    if (!fs->groups)
        return -ENOMEM;
    static_assert(sizeof(gid_t) == sizeof(uint32_t), "group ids");
    n = getgroups(n, fs->groups);
    fs->cred.n_groups = n > 0 ? (uint32_t)n : 0;
    fs->cred.groups = fs->groups;
    return 0;
}

struct mount_call {
    struct lib_call call;
    struct reactor_timer timer;
};

static void mount_over(struct core_req *q, int status)
{
    struct mount_call *m = container_of(q, struct mount_call, call.q);

    reactor_timer_cancel(m->call.fs->reactor, &m->timer);
    lib_call_done(&m->call, status == -EINTR ? -ETIMEDOUT : status);
}

static void mount_timer(struct reactor_timer *t)
{
    core_cancel(&container_of(t, struct mount_call, timer)->call.q);
}

static void mount_begin(struct lib_call *c)
{
    struct mount_call *m = container_of(c, struct mount_call, call);

    reactor_timer_init(&m->timer, mount_timer);
    reactor_timer_start(c->fs->reactor, &m->timer,
                        reactor_now_ns(c->fs->reactor) + c->fs->mount_timeout_ns);
    core_mount(c->fs->core, &c->q); /* which may end at once, and m with it */
}

/* It writes back for so long. Where nothing was left to be written, but only to be told, it is no
 * error that the servers did not hear it. */
struct unmount_call {
    struct lib_call call;
    struct reactor_timer timer;
    bool force, in_vain;
};

static void unmount_over(struct core_req *q, int status)
{
    struct unmount_call *u = container_of(q, struct unmount_call, call.q);

    reactor_timer_cancel(u->call.fs->reactor, &u->timer);
    lib_call_done(&u->call, u->in_vain ? 0 : status);
}

static void unmount_timer(struct reactor_timer *t)
{
    struct unmount_call *u = container_of(t, struct unmount_call, timer);
    const struct core *c = u->call.fs->core;

    u->in_vain = !core_holds_writes(c) && !core_holds_changes(c) && !core_bytes_under_way(c);
    core_give_up(&u->call.q);
}

static void unmount_begin(struct lib_call *c)
{
    struct unmount_call *u = container_of(c, struct unmount_call, call);

    reactor_timer_init(&u->timer, unmount_timer);
    if (c->fs->umount_timeout_ns)
        reactor_timer_start(c->fs->reactor, &u->timer,
                            reactor_now_ns(c->fs->reactor) + c->fs->umount_timeout_ns);
    core_unmount(c->fs->core, &c->q, u->force); /* and so may this */
}

static void engine_free(struct aifs *fs)
{
    lib_drive_fini(fs);
    if (fs->core)
        core_destroy(fs->core);
    if (fs->reactor)
        reactor_destroy(fs->reactor);
    fs->core = NULL;
    fs->reactor = NULL;
}

static void fs_free(struct aifs *fs)
{
    lib_forget(fs);
    lib_buffers_destroy(fs->buffers);
    pthread_mutex_destroy(&fs->reviving);
    sem_destroy(&fs->parked);
    sem_destroy(&fs->resume);
    mem_free(fs->source);
    mem_free(fs->options);
    mem_free(fs->groups);
    mem_free(fs);
}

/* The core is taken down on its thread, which then ends. */
static int take_down(struct aifs *fs, bool force)
{
    struct unmount_call u = {.force = force};
    struct lib_fork_hold hold;
    int err;

    lib_call_init(&u.call, fs, unmount_begin);
    u.call.q.done = unmount_over;
    err = lib_call_begin(&u.call);
    lib_fork_hold(&hold);
    lib_drive_stop(fs);
    pthread_join(fs->thread, NULL);
    engine_free(fs);
    fs->live = false;
    lib_fork_release(&hold);
    return err;
}

/* Reactor, core and thread. When it fails nothing is left of them. */
static int engine_create(struct aifs *fs, const struct mount_args *m)
{
    struct reactor_options ro = {.name = "aifs-lib",
                                 .spin_ns = m->spin_ns,
                                 .spin_away_ns = SPIN_AWAY_NS,
                                 .spin_for_ns = lib_drive_spin_for_ns,
                                 .spin_for_arg = fs};
    int err;

    fs->drive.shy |= m->shy;
    err = lib_drive_init(fs);
    if (err)
        return err;
    err = reactor_create(&ro, &fs->reactor);
    err = err ? err : core_create(fs->reactor, &m->core, &fs->core);
    err = err ? err : thread_start(&fs->thread, "aifs-lib", lib_drive_main, fs);
    if (err)
        engine_free(fs);
    fs->live = !err;
    return err;
}

/* The same, connected. Nobody else uses it before it is. */
static int engine_start(struct aifs *fs, struct mount_args *m)
{
    struct mount_call call = {0};
    struct lib_fork_hold hold;
    int err;

    lib_fork_hold(&hold);
    err = engine_create(fs, m);
    lib_fork_release(&hold);
    if (err)
        return fail(err, "cannot start: %s", err_text(err));
    fs->mount_timeout_ns = m->timeout_ns;
    fs->umount_timeout_ns = m->umount_ns;
    lib_call_init(&call.call, fs, mount_begin);
    call.call.q.done = mount_over;
    err = lib_call_begin(&call.call);
    if (!err) {
        atomic_store_explicit(&fs->generation, lib_generation(), memory_order_release);
        return 0;
    }
    (void)take_down(fs, true);
    return fail(err, "cannot mount from %s: %s", m->core.mds[0], err_text(err));
}

static int args_prepare(struct mount_args *m, const char *source, const char *options)
{
    char why[256] = "";
    int err;

    core_options_default(&m->core);
    m->key_file = KEY_FILE;
    m->timeout_ns = 30 * NS_PER_S;
    m->umount_ns = 120 * NS_PER_S;
    m->spin_ns = reactor_spin_watches_ns();
    m->core.mount = "libaifs";
    m->core.memory_threads = 1;
    m->core.connect_max = CONNECT_MAX;
    err = parse_source(m, source);
    err = err ? err : parse_options(m, options);
    if (err)
        return err;
    err = net_limit_devices(m->devices, why, sizeof why);
    if (err)
        return fail(err, "option net.devices: %s", why);
    err = m->core.net.want == NET_WANT_RDMA ? net_need_rdma(why, sizeof why) : 0;
    if (err)
        return fail(err, "option net=rdma: %s", why);
    err = crypto_key_load(m->key_file, &m->core.key, why, sizeof why);
    return err ? fail(err, "%s", why) : 0;
}

static int mount(struct mount_args *m, const char *source, const char *options,
                 struct aifs **ret_fs)
{
    int err = args_prepare(m, source, options);
    struct aifs *fs;

    if (err)
        return err;
    fs = mem_zalloc(sizeof *fs);
    if (!fs)
        return fail(-ENOMEM, "out of memory");
    list_init(&fs->link);
    pthread_mutex_init(&fs->reviving, NULL);
    sem_init(&fs->parked, 0, 0);
    sem_init(&fs->resume, 0, 0);
    fs->source = mem_strdup(source);
    fs->options = options ? mem_strdup(options) : NULL;
    err = fs->source && !fs->options == !options ? take_rights(fs) : -ENOMEM;
    err = err ? err : lib_buffers_create(m->core.memory_limit / 2, &fs->buffers);
    if (err) {
        (void)fail(err, "cannot start: %s", err_text(err));
    } else {
        lib_known(fs);
        err = engine_start(fs, m);
    }
    if (err)
        fs_free(fs);
    else
        *ret_fs = fs;
    return err;
}

/* What the parent had stays as it is: its thread may have been anywhere in it. */
int lib_mount_again(struct aifs *fs)
{
    struct mount_args *m = mem_zalloc(sizeof *m);
    int err;

    if (!m)
        return -ENOMEM;
    fs->core = NULL;
    fs->reactor = NULL;
    sem_init(&fs->parked, 0, 0);
    sem_init(&fs->resume, 0, 0);
    err = args_prepare(m, fs->source, fs->options);
    err = err ? err : engine_start(fs, m);
    explicit_bzero(m, sizeof *m);
    mem_free(m);
    return err;
}

int aifs_mount(const char *source, const char *options, struct aifs **ret_fs)
{
    struct mount_args *m = mem_zalloc(sizeof *m);
    int err;

    if (!m)
        return lib_errno(fail(-ENOMEM, "out of memory"));
    err = mount(m, source, options, ret_fs);
    explicit_bzero(m, sizeof *m);
    mem_free(m);
    return lib_errno(err);
}

int aifs_unmount(struct aifs *fs)
{
    int err;

    if (lib_is_parents(fs)) /* and never used here: nothing to write back */
        return 0;
    err = take_down(fs, false);
    fs_free(fs);
    return lib_errno(err);
}

static void statfs_begin(struct lib_call *c)
{
    core_statfs(c->fs->core, &c->q, core_root(c->fs->core));
}

int aifs_statvfs(struct aifs *fs, struct statvfs *st)
{
    struct lib_call c;
    int err;

    if (!st)
        return lib_errno(-EFAULT);
    lib_call_init(&c, fs, statfs_begin);
    err = lib_call_run(&c);
    if (err)
        return lib_errno(err);
    memset(st, 0, sizeof *st);
    st->f_bsize = st->f_frsize = 4096;
    st->f_blocks = c.q.out.statfs.total_bytes / 4096;
    st->f_bfree = c.q.out.statfs.free_bytes / 4096;
    st->f_bavail = c.q.out.statfs.avail_bytes / 4096;
    st->f_files = c.q.out.statfs.files;
    st->f_ffree = st->f_favail = c.q.out.statfs.files_free;
    st->f_namemax = MSG_NAME_MAX;
    return 0;
}
