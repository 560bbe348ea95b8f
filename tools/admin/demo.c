/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aifs-admin demo`: a whole cluster on this machine. `up` is idempotent: it starts what is not
 * running, with the data that is there, and mounts what was mounted; `down` stops everything, and
 * with --purge removes the data. Ports are chosen free the first time and kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/text.h"
#include "tools/admin/admin.h"
#include "tools/admin/demo.h"
#include "tools/admin/demo_mount.h"
#include "tools/admin/proc.h"

#define STOP_PATIENCE_MS 20000u
#define CAPACITY_MIN     (32 * MIB) /* as aifs-oss wants it */
#define PORT_LOW         10240u
#define PORT_HIGH        32768u
#define PORT_TRIES       64u

static void tail_log(const char *log)
{
    char text[1500];
    ssize_t n;
    off_t size;
    int fd = open(log, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    size = lseek(fd, 0, SEEK_END);
    n = pread(fd, text, sizeof text - 1, size > (off_t)sizeof text ? size - (off_t)sizeof text : 0);
    close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    admin_detail("--- the end of %s:\n%s", log, text);
}

/* The daemon of DIR/<folder> serves: its port. */
static int learn_port(const struct demo *d, const char *folder, pid_t pid, uint16_t *port)
{
    char dir[PATH_MAX], log[PATH_MAX + 8], text[32];
    int rc;

    snprintf(dir, sizeof dir, "%s/%s", d->dir, folder);
    snprintf(log, sizeof log, "%s/log", dir);
    admin_waits_for("demo: waiting for %s (process %d) to serve, up to %u s; its log is %s", folder,
                    (int)pid, DEMO_START_MS / 1000, log);
    rc = proc_wait_file(dir, "port", pid, DEMO_START_MS, text, sizeof text);
    admin_waited();
    if (rc < 0) {
        tail_log(log);
        return admin_fail(rc, "demo: %s did not come up", folder);
    }
    *port = (uint16_t)atoi(text);
    return ADMIN_OK;
}

static int start_daemon(const struct demo *d, const char *program, const char *folder,
                        const char *conf, const char *extra, uint16_t *port)
{
    char path[PATH_MAX], dir[PATH_MAX], config[PATH_MAX + 16], log[PATH_MAX], stale[PATH_MAX + 16];
    const char *argv[] = {path, "--config", config, extra, NULL};
    pid_t pid;
    int rc;

    snprintf(dir, sizeof dir, "%s/%s", d->dir, folder);
    snprintf(config, sizeof config, "%s/%s", dir, conf);
    snprintf(log, sizeof log, "%s/%s/log", d->dir, folder);
    snprintf(stale, sizeof stale, "%s/run/port", dir);
    unlink(stale);
    rc = proc_program(program, path, sizeof path);
    if (rc < 0)
        return admin_fail(rc, "demo: the program %s is not installed", program);
    rc = proc_start(argv, dir, log, &pid);
    return rc < 0 ? admin_fail(rc, "demo: cannot start %s", folder)
                  : learn_port(d, folder, pid, port);
}

static bool port_is_free(uint16_t port)
{
    struct net_addr addr;
    char text[32], err[128];
    int fd, one = 1;
    bool free_now;

    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    if (net_addr_resolve(text, 0, &addr, err, sizeof err) < 0)
        return false;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    free_now = fd >= 0 &&
               bind(fd, (const struct sockaddr *)addr.places[0].sockaddr, addr.places[0].len) == 0;
    if (fd >= 0)
        close(fd);
    return free_now;
}

/* One that nobody takes while the server is down: below those that the kernel hands out, where it
 * can be. 0: the kernel's choice. */
static uint16_t choose_port(uint16_t before)
{
    uint16_t port = before, random;

    if (port && port_is_free(port))
        return port;
    for (unsigned i = 0; i < PORT_TRIES; i++) {
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            break;
        port = (uint16_t)(PORT_LOW + random % (PORT_HIGH - PORT_LOW));
        if (port_is_free(port))
            return port;
    }
    return 0;
}

/* One that still runs without what says so would serve the same port, or the same disks. */
static int stop_lost(const char *dir)
{
    return proc_stop(dir, STOP_PATIENCE_MS)
               ? ADMIN_OK
               : admin_fail(-ETIMEDOUT, "demo: the server that runs in %s does not stop", dir);
}

static int start_mds(struct demo *d)
{
    char dir[PATH_MAX], shard[PATH_MAX + 32];
    pid_t pid;
    int rc;

    snprintf(dir, sizeof dir, "%s/mds", d->dir);
    pid = proc_running(dir);
    if (pid)
        return learn_port(d, "mds", pid, &d->mds_port);
    rc = stop_lost(dir);
    if (rc != ADMIN_OK)
        return rc;
    d->mds_port = choose_port(d->mds_port);
    rc = demo_write_mds_conf(d);
    if (rc < 0)
        return admin_fail(rc, "demo: cannot write %s/mds.conf", dir);
    snprintf(shard, sizeof shard, "%s/data/shard0", dir); /* is there when all of it was made */
    return start_daemon(d, "aifs-mds", "mds", "mds.conf",
                        access(shard, F_OK) != 0 ? "--mds.format=yes" : NULL, &d->mds_port);
}

static int start_oss(struct demo *d, unsigned n)
{
    char folder[32], dir[PATH_MAX];
    pid_t pid;
    int rc;

    snprintf(folder, sizeof folder, "oss%u", n);
    snprintf(dir, sizeof dir, "%s/%s", d->dir, folder);
    pid = proc_running(dir);
    if (pid)
        return learn_port(d, folder, pid, &d->oss_port[n - 1]);
    rc = stop_lost(dir);
    if (rc != ADMIN_OK)
        return rc;
    d->started_ns[n - 1] = clock_mono_ns(clock_real());
    d->oss_port[n - 1] = choose_port(d->oss_port[n - 1]);
    rc = demo_write_oss_conf(d, n);
    if (rc < 0)
        return admin_fail(rc, "demo: cannot write %s/oss.conf", dir);
    return start_daemon(d, "aifs-oss", folder, "oss.conf", NULL, &d->oss_port[n - 1]);
}

static int save(const struct demo *d)
{
    int rc = demo_save(d);

    if (rc == 0)
        rc = demo_write_admin_conf(d);
    return rc < 0 ? admin_fail(rc, "demo: cannot write into %s", d->dir) : ADMIN_OK;
}

struct up_options {
    const char *oss, *targets, *dir, *mount, *net, *capacity, *targets_dir;
    char mount_path[PATH_MAX], targets_path[DEMO_PATH_BYTES]; /* absolute, what the two point to */
};

static int number(const char *text, const char *what, unsigned fallback, unsigned max,
                  unsigned *ret)
{
    uint64_t v = fallback;

    if (text && (text_parse_u64(text, &v) < 0 || v < 1 || v > max)) {
        admin_error("demo: %s must be a number from 1 to %u, not \"%s\"", what, max, text);
        return ADMIN_USAGE;
    }
    *ret = (unsigned)v;
    return ADMIN_OK;
}

/* d->dir is there by now: they may be in it. */
static int absolute_paths(struct demo *d, struct up_options *o)
{
    int rc = ADMIN_OK;

    if (o->mount) {
        rc = demo_path_new(o->mount, o->mount_path, sizeof o->mount_path);
        o->mount = o->mount_path;
    }
    if (rc == ADMIN_OK && o->targets_dir && o->targets_dir[0]) {
        rc = demo_path_new(o->targets_dir, d->targets_dir, sizeof d->targets_dir);
        snprintf(o->targets_path, sizeof o->targets_path, "%s", d->targets_dir);
        o->targets_dir = o->targets_path;
    }
    return rc;
}

/* Checks what was asked for before anything is made. */
static int new_demo(struct demo *d, const struct up_options *o)
{
    uint64_t bytes;
    int rc = number(o->oss, "--oss", 4, DEMO_OSS_MAX, &d->oss);

    if (rc == ADMIN_OK)
        rc = number(o->targets, "--targets", 1, 16, &d->targets);
    if (rc != ADMIN_OK)
        return rc;
    if (o->net && strcmp(o->net, "auto") && strcmp(o->net, "tcp") && strcmp(o->net, "shm")) {
        admin_error("demo: --net is auto, tcp or shm, not \"%s\"", o->net);
        return ADMIN_USAGE;
    }
    if (o->capacity && text_parse_size(o->capacity, &bytes) < 0) {
        admin_error("demo: --capacity \"%s\" is not a size", o->capacity);
        return ADMIN_USAGE;
    }
    if (o->capacity && bytes < CAPACITY_MIN) {
        admin_error("demo: --capacity is at least %uMi for each target, not \"%s\"",
                    CAPACITY_MIN / MIB, o->capacity);
        return ADMIN_USAGE;
    }
    snprintf(d->net, sizeof d->net, "%s", o->net ? o->net : "auto");
    snprintf(d->capacity, sizeof d->capacity, "%s", o->capacity ? o->capacity : "");
    d->next_mount = 1;
    return ADMIN_OK;
}

/* A demo that is there keeps its shape: asking for another one is a conflict, not a silent
 * change. */
static int same_shape(const struct demo *d, const struct up_options *o)
{
    char oss[16], targets[16];

    snprintf(oss, sizeof oss, "%u", d->oss);
    snprintf(targets, sizeof targets, "%u", d->targets);
    if ((o->oss && strcmp(o->oss, oss)) || (o->targets && strcmp(o->targets, targets)) ||
        (o->net && strcmp(o->net, d->net)) || (o->capacity && strcmp(o->capacity, d->capacity)) ||
        (o->targets_dir && strcmp(o->targets_dir, d->targets_dir))) {
        admin_error("demo: the one in %s has --oss %s --targets %s --net %s%s%s%s%s; purge it "
                    "first (aifs-admin demo down --purge --dir %s)",
                    d->dir, oss, targets, d->net, d->capacity[0] ? " --capacity " : "", d->capacity,
                    d->targets_dir[0] ? " --targets-dir " : "", d->targets_dir, d->dir);
        return ADMIN_CONFLICT;
    }
    return ADMIN_OK;
}

static int check_claim(struct demo *d, const struct up_options *o, bool *ret_new)
{
    int rc = ADMIN_OK, err = demo_load(d);

    if (err != 0 && err != -ENOENT)
        return demo_say_damaged(d, err);
    *ret_new = err == -ENOENT;
    if (!*ret_new)
        rc = same_shape(d, o);
    if (rc == ADMIN_OK && o->mount)
        rc = demo_mount_check(d, o->mount, NULL);
    if (rc != ADMIN_OK || !*ret_new)
        return rc;
    err = demo_save(d);
    return err < 0 ? admin_fail(err, "demo: cannot write into %s", d->dir) : ADMIN_OK;
}

/* The folder is locked, and holds a demo of this shape or nothing. A new demo is on record before
 * anything else is made; what is refused leaves nothing. */
static int claim_dir(struct demo *d, struct up_options *o, bool *ret_new)
{
    bool made_dir = false, made_lock = false;
    int rc = demo_resolve(d, o->dir, &made_dir);
    char path[PATH_MAX];

    if (rc != ADMIN_OK)
        return rc;
    if (demo_check_empty(d) == -EEXIST) {
        admin_error("demo: %s holds other files; take an empty directory, or a new one", d->dir);
        return ADMIN_CONFLICT;
    }
    rc = absolute_paths(d, o);
    if (rc == ADMIN_OK)
        rc = demo_lock(d, &made_lock);
    if (rc == ADMIN_OK)
        rc = check_claim(d, o, ret_new);
    if (rc == ADMIN_OK)
        return rc;
    snprintf(path, sizeof path, "%s/lock", d->dir);
    if (made_lock)
        unlink(path);
    if (made_dir)
        rmdir(d->dir);
    return rc;
}

/* After a failure: servers may run, and nothing that was made goes by itself. */
static void say_what_stays(const struct demo *d, bool is_new)
{
    if (is_new)
        admin_detail("demo: what was made until then stays in %s%s%s, and servers that have "
                     "started go on running: aifs-admin demo up --dir %s tries the rest again, "
                     "aifs-admin demo down --purge --dir %s removes it",
                     d->dir, d->targets_dir[0] ? " and " : "", d->targets_dir, d->dir, d->dir);
    else
        admin_detail("demo: servers that have started go on running: aifs-admin demo status --dir "
                     "%s shows them, aifs-admin demo down --dir %s stops them; the data stays",
                     d->dir, d->dir);
}

static int bring_up(struct admin *a, struct demo *d, const char *mount, struct out *o,
                    struct demo_count *ret_count)
{
    int rc = demo_prepare(d);
    bool partial;

    rc = rc < 0 ? admin_fail(rc, "demo: cannot prepare %s", d->dir) : save(d);
    if (rc == ADMIN_OK)
        rc = start_mds(d);
    for (unsigned n = 1; rc == ADMIN_OK && n <= d->oss; n++)
        rc = start_oss(d, n);
    if (rc == ADMIN_OK)
        rc = save(d);
    if (rc == ADMIN_OK)
        rc = demo_wait_online(a, d, o, ret_count);
    partial = rc == ADMIN_PARTIAL;
    if (rc != ADMIN_OK && !partial)
        return rc;
    demo_publish(d);
    rc = demo_mount_again(d);
    if (rc == ADMIN_OK && mount)
        rc = demo_mount_add(d, mount, NULL);
    if (rc == ADMIN_OK)
        rc = demo_mounts_answer(d, o, demo_patience_ns(a));
    return rc == ADMIN_OK && partial ? ADMIN_PARTIAL : rc;
}

/* With --json: where it is, and what was mounted or unmounted, if that is what it was about. */
static void tell(const struct admin *a, const char *verb, const struct demo *d, const char *mount)
{
    char schema[48];

    snprintf(schema, sizeof schema, "aifs.demo.%s/1", verb);
    out_fields(a, schema,
               (struct out_field[]){{"dir", d->dir, 0}, {"mount", mount ? mount : "", 0}},
               mount ? 2 : 1);
}

/* o: with what there was to warn of; is freed. */
static void describe(const struct admin *a, struct out *o, const struct demo *d,
                     const struct demo_count *n)
{
    out_text(o, d->dir);
    out_text(o, "");
    if (a->json) {
        out_print(o);
        return;
    }
    out_drop(o);
    if (a->quiet)
        return;
    printf("demo        %s: 1 MDS, %u OSS, ", d->dir, n->oss);
    if (n->online < n->targets)
        printf("%u of ", n->online);
    printf("%u target%s\n", n->targets, n->targets == 1 ? "" : "s");
    for (unsigned i = 0; i < d->n_mounts; i++)
        printf("mounted     %s\n", d->mounts[i].path);
    printf("next        aifs-admin --config %s/admin.conf status\n", d->dir);
}

int cmd_demo_up(struct admin *a, int argc, char **argv)
{
    struct up_options o = {0};
    static const struct out_column columns[] = {{"DIR", OUT_TEXT, NULL}, {"MOUNT", OUT_TEXT, NULL}};
    struct demo_count count = {0};
    const struct admin_option options[] = {
        {"oss", 0, &o.oss, NULL},
        {"targets", 0, &o.targets, NULL},
        {"dir", 0, &o.dir, NULL},
        {"mount", 0, &o.mount, NULL},
        {"net", 0, &o.net, NULL},
        {"capacity", 0, &o.capacity, NULL},
        {"targets-dir", 0, &o.targets_dir, NULL},
    };
    struct demo *d = calloc(1, sizeof *d);
    struct out *out;
    bool claimed, is_new = false;
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (!d || n != 0) {
        free(d);
        return n > 0 ? admin_usage("demo", "up", "unexpected argument %s", argv[0]) : ADMIN_USAGE;
    }
    rc = new_demo(d, &o);
    if (rc == ADMIN_OK)
        rc = claim_dir(d, &o, &is_new);
    claimed = rc == ADMIN_OK;
    out = out_table(a, "aifs.demo.up/1", columns, ARRAY_LEN(columns));
    if (claimed)
        rc = bring_up(a, d, o.mount, out, &count);
    if (rc == ADMIN_OK || rc == ADMIN_PARTIAL)
        describe(a, out, d, &count);
    else
        out_drop(out);
    if (claimed && rc != ADMIN_OK && rc != ADMIN_PARTIAL)
        say_what_stays(d, is_new);
    free(d);
    return rc;
}

static int stop_server(const struct demo *d, const char *name)
{
    char dir[PATH_MAX];
    bool gone;

    snprintf(dir, sizeof dir, "%s/%s", d->dir, name);
    admin_waits_for("demo: waiting for %s (process %d) to stop; it is killed after %u s", name,
                    (int)proc_running(dir), STOP_PATIENCE_MS / 1000);
    gone = proc_stop(dir, STOP_PATIENCE_MS);
    admin_waited();
    return gone ? ADMIN_OK : admin_fail(-ETIMEDOUT, "demo: %s does not stop", name);
}

static int stop_servers(const struct demo *d)
{
    int rc = ADMIN_OK, one;

    for (unsigned n = 1; n <= d->oss; n++) {
        char name[16];

        snprintf(name, sizeof name, "oss%u", n);
        one = stop_server(d, name);
        rc = rc == ADMIN_OK ? one : rc;
    }
    one = stop_server(d, "mds");
    return rc == ADMIN_OK ? one : rc;
}

int cmd_demo_down(struct admin *a, int argc, char **argv)
{
    const char *dir = NULL;
    bool purge = false, lost = false;
    const struct admin_option options[] = {{"dir", 0, &dir, NULL}, {"purge", 0, NULL, &purge}};
    struct demo *d = calloc(1, sizeof *d);
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (!d || n != 0) {
        free(d);
        return n > 0 ? admin_usage("demo", "down", "unexpected argument %s", argv[0]) : ADMIN_USAGE;
    }
    rc = demo_open(d, dir);
    if (rc == ADMIN_OK) {
        int unmounted;

        demo_say_stopped(a, d);
        unmounted = demo_umount_all(d);
        rc = unmounted;
        if (rc == ADMIN_OK || rc == ADMIN_PARTIAL)
            rc = stop_servers(d);
        if (rc == ADMIN_OK && unmounted == ADMIN_PARTIAL)
            lost = true;
    }
    if (rc == ADMIN_OK)
        rc = demo_end(a, d, purge);
    free(d);
    return rc == ADMIN_OK && lost ? ADMIN_PARTIAL : rc;
}

int cmd_demo_mount(struct admin *a, int argc, char **argv)
{
    const char *dir = NULL, *extra = NULL;
    const struct admin_option options[] = {{"dir", 0, &dir, NULL}, {"options", 'o', &extra, NULL}};
    struct demo *d = calloc(1, sizeof *d);
    char at[PATH_MAX];
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (!d || n != 1) {
        free(d);
        return n < 0 ? ADMIN_USAGE : admin_usage("demo", "mount", "say where: one directory");
    }
    rc = demo_path_new(argv[0], at, sizeof at);
    if (rc == ADMIN_OK)
        rc = demo_open(d, dir);
    if (rc == ADMIN_OK)
        rc = demo_mount_add(d, at, extra);
    if (rc == ADMIN_OK && !a->quiet && !a->json)
        printf("mounted     %s\n", argv[0]);
    if (rc == ADMIN_OK)
        tell(a, "mount", d, argv[0]);
    free(d);
    return rc;
}

int cmd_demo_umount(struct admin *a, int argc, char **argv)
{
    const char *dir = NULL;
    const struct admin_option options[] = {{"dir", 0, &dir, NULL}};
    struct demo *d = calloc(1, sizeof *d);
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (!d || n != 1) {
        free(d);
        return n < 0 ? ADMIN_USAGE : admin_usage("demo", "umount", "say what: one directory");
    }
    rc = demo_open(d, dir);
    if (rc == ADMIN_OK)
        rc = demo_umount_one(d, argv[0]);
    if (rc == ADMIN_OK)
        tell(a, "umount", d, argv[0]);
    free(d);
    return rc;
}
