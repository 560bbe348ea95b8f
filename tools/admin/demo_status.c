/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `demo status`: what there is of a demo, asked one by one. A process that is there may hang, so
 * each has to answer; all together have --timeout for it, and the last ones half a second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/admin/admin.h"
#include "tools/admin/demo.h"
#include "tools/admin/demo_mount.h"
#include "tools/admin/proc.h"

#define LEAST_NS (500 * NS_PER_MS)

struct look {
    const struct demo *d;
    struct out *o;
    struct rpc_sync *sync; /* NULL: servers cannot be asked */
    uint64_t end_ns;
    bool all_well;
};

static uint64_t patience_ns(const struct look *l)
{
    uint64_t now = clock_mono_ns(clock_real());

    return MAX(l->end_ns > now ? l->end_ns - now : 0, LEAST_NS);
}

bool demo_server_answers(struct rpc_sync *sync, uint16_t port, uint64_t limit_ns)
{
    static const struct msg_empty none;
    char address[32];
    struct rpc_peer *peer;
    const void *rep;

    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    return rpc_sync_connect(sync, address, limit_ns, &peer) == 0 &&
           rpc_sync_call(sync, peer, RPC_OP_PING, &none, limit_ns, &rep) == 0;
}

/* Of one that runs: what it has written, for `demo up` may have ended before it learned of it. 0:
 * it does not serve yet. */
static uint16_t port_of(const char *dir)
{
    char path[PATH_MAX + 16];
    unsigned port = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/run/port", dir);
    f = fopen(path, "re");
    if (f && (fscanf(f, "%5u", &port) != 1 || port > UINT16_MAX))
        port = 0;
    if (f)
        fclose(f);
    return (uint16_t)port;
}

static const char *server_state(const struct look *l, pid_t pid, uint16_t port)
{
    if (!pid)
        return "stopped";
    if (!port)
        return "starting";
    return !l->sync || demo_server_answers(l->sync, port, patience_ns(l)) ? "running" : "silent";
}

static void server_row(struct look *l, unsigned i)
{
    const struct demo *d = l->d;
    char name[32], path[PATH_MAX], log[PATH_MAX + 8];
    const char *state;
    uint16_t port;
    pid_t pid;

    snprintf(name, sizeof name, i ? "oss%u" : "mds", i);
    snprintf(path, sizeof path, "%s/%s", d->dir, name);
    snprintf(log, sizeof log, "%s/log", path);
    pid = proc_running(path);
    port = pid ? port_of(path) : 0;
    admin_waits_for("demo: waiting for %s (process %d) to answer", name, (int)pid);
    state = server_state(l, pid, port);
    admin_waited();
    l->all_well = l->all_well && !strcmp(state, "running");
    port = port ? port : i ? d->oss_port[i - 1] : d->mds_port;
    out_text(l->o, name);
    out_text(l->o, state);
    pid ? out_number(l->o, (uint64_t)pid) : out_none(l->o);
    port ? out_number(l->o, port) : out_none(l->o);
    out_text(l->o, path);
    out_text(l->o, log);
}

static void mount_row(struct look *l, const struct demo_mount *m)
{
    static const char *const words[] = {"unmounted", "mounted", "silent", "dead"};
    char name[32], log[PATH_MAX + 8];
    enum demo_mount_state state;
    pid_t pid;

    snprintf(name, sizeof name, "mount%u", m->number);
    snprintf(log, sizeof log, "%s/mount%u.log", l->d->dir, m->number);
    admin_waits_for("demo: waiting for the mount %s to answer", m->path);
    state = demo_mount_state(m->path, patience_ns(l));
    admin_waited();
    l->all_well = l->all_well && state == DEMO_MOUNTED;
    pid = state == DEMO_MOUNTED || state == DEMO_SILENT ? demo_mount_pid(m->path) : 0;
    out_text(l->o, name);
    out_text(l->o, words[state]);
    pid ? out_number(l->o, (uint64_t)pid) : out_none(l->o);
    out_none(l->o);
    out_text(l->o, m->path);
    out_text(l->o, log);
}

/* Is everything there, and answers? */
static bool status_rows(const struct admin *a, const struct demo *d, struct out *o)
{
    struct look l = {
        .d = d, .o = o, .end_ns = clock_mono_ns(clock_real()) + a->timeout_ns, .all_well = true};
    struct crypto_key key;
    char path[PATH_MAX], err[512];

    snprintf(path, sizeof path, "%s/key/admin.key", d->dir);
    if (crypto_key_load(path, &key, err, sizeof err) < 0 ||
        rpc_sync_create(&key, "aifs-admin", &l.sync) < 0)
        l.sync = NULL;
    for (unsigned i = 0; i <= d->oss; i++)
        server_row(&l, i);
    for (unsigned i = 0; i < d->n_mounts; i++)
        mount_row(&l, &d->mounts[i]);
    if (l.sync)
        rpc_sync_destroy(l.sync);
    return l.all_well;
}

int cmd_demo_status(struct admin *a, int argc, char **argv)
{
    static const struct out_column columns[] = {
        {"DAEMON", OUT_TEXT, NULL}, {"STATE", OUT_TEXT, NULL}, {"PID", OUT_COUNT, NULL},
        {"PORT", OUT_COUNT, NULL},  {"PATH", OUT_TEXT, NULL},  {"LOG", OUT_TEXT, NULL}};
    const char *dir = NULL;
    const struct admin_option options[] = {{"dir", 0, &dir, NULL}};
    struct demo *d = calloc(1, sizeof *d);
    int rc, n = admin_options(options, ARRAY_LEN(options), argc, argv);

    if (!d || n != 0) {
        free(d);
        return n > 0 ? admin_usage("demo", "status", "unexpected argument %s", argv[0])
                     : ADMIN_USAGE;
    }
    rc = demo_open(d, dir);
    if (rc == ADMIN_OK) {
        struct out *o = out_table(a, "aifs.demo.status/1", columns, ARRAY_LEN(columns));

        rc = status_rows(a, d, o) ? ADMIN_OK : ADMIN_PARTIAL;
        out_print(o);
    }
    free(d);
    return rc;
}
