/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting until all of a demo serves. What the metadata server knows may be of a moment ago, before
 * a server was killed or began to hang: one that this command has started counts when it has been
 * heard of since, one that it found running when it has answered this command. A target whose
 * directory the metadata server has refused will not serve, however long one waits, nor one of a
 * server that does not answer: the rest of the demo is used without it, and it is said why.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/admin/cluster.h"
#include "tools/admin/demo.h"
#include "tools/admin/proc.h"

#define LEAST_NS (500 * NS_PER_MS) /* for each server, however long others have taken */

struct wait {
    struct admin *a;
    const struct demo *d;
    uint64_t end_ns; /* of asking those that were found */
    bool silent[DEMO_OSS_MAX + 1];
    unsigned n_silent;
};

uint64_t demo_patience_ns(const struct admin *a)
{
    return a->timeout_told ? a->timeout_ns : DEMO_START_MS * NS_PER_MS;
}

/* Of this name; d->oss: of the demo is none. */
static unsigned server_of(const struct demo *d, const char *alias, size_t len)
{
    char name[16];

    for (unsigned i = 0; i < d->oss; i++) {
        snprintf(name, sizeof name, "oss%u", i + 1);
        if (len == strlen(name) && !memcmp(alias, name, len))
            return i;
    }
    return d->oss;
}

/* What the metadata server has heard of a server before it was started now may be over. */
static bool is_current(const struct demo *d, unsigned server, uint64_t seen_ns_ago)
{
    return server == d->oss || clock_mono_ns(clock_real()) - d->started_ns[server] > seen_ns_ago;
}

static bool is_online(const struct wait *w, const struct cluster *c, const struct map_target *t)
{
    const struct msg_node_live *live = NULL;
    const struct map_node *node;
    unsigned server;

    if (strcmp(cluster_target_state(c, t), "online") != 0 || !cluster_target_live(c, t->id, &live))
        return false;
    node = map_node(c->map, live->id);
    if (!node)
        return false;
    server = server_of(w->d, node->alias, strlen(node->alias));
    return !w->silent[server] && is_current(w->d, server, live->seen_ns_ago);
}

/* What there is, which is more than what was asked for where somebody has added to it. */
static struct demo_count count_servers(const struct wait *w, const struct cluster *c)
{
    const struct demo *d = w->d;
    struct demo_count n = {0};

    for (uint32_t i = 0; i < c->status->n_refused; i++) {
        const struct msg_refused_target *r = &c->status->refused[i];
        unsigned server = server_of(d, (const char *)r->alias.data, r->alias.len);

        n.refused += !w->silent[server] && is_current(d, server, r->seen_ns_ago);
    }
    for (uint32_t i = 0; i < c->map->n_nodes; i++)
        n.oss += c->map->nodes[i].type == MAP_NODE_OSS;
    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        n.targets += !c->map->targets[i].given_up;
        n.online += is_online(w, c, &c->map->targets[i]);
    }
    return n;
}

static bool answers(const struct wait *w, unsigned server)
{
    uint64_t now = clock_mono_ns(clock_real());

    return demo_server_answers(w->a->sync, w->d->oss_port[server],
                               MAX(w->end_ns > now ? w->end_ns - now : 0, LEAST_NS));
}

/* Those that were found running. */
static void ask_servers(struct wait *w, struct out *o)
{
    const struct demo *d = w->d;

    w->end_ns = clock_mono_ns(clock_real()) + demo_patience_ns(w->a);
    for (unsigned i = 0; i < d->oss; i++) {
        char dir[PATH_MAX];
        bool well;

        if (d->started_ns[i])
            continue;
        snprintf(dir, sizeof dir, "%s/oss%u", d->dir, i + 1);
        admin_waits_for("demo: waiting for oss%u (process %d), which ran before, to answer; its "
                        "log is %s/log",
                        i + 1, (int)proc_running(dir), dir);
        well = answers(w, i);
        admin_waited();
        if (well)
            continue;
        out_warning(o, "oss%u (process %d) does not answer: see %s/log", i + 1,
                    (int)proc_running(dir), dir);
        w->silent[i] = true;
        w->n_silent++;
    }
}

static int wait_for_all(struct wait *w, struct out *o, struct demo_count *ret_count)
{
    unsigned want = w->d->oss * w->d->targets, mute;
    uint64_t end_ns = clock_mono_ns(clock_real()) + DEMO_START_MS * NS_PER_MS;
    bool asked = false;

    for (;;) {
        struct cluster c;
        bool late = clock_mono_ns(clock_real()) > end_ns;
        int rc = cluster_get(w->a, &c);

        if (rc != ADMIN_OK)
            return rc;
        if (!asked) {
            asked = true;
            cluster_put(&c);
            admin_waited();
            ask_servers(w, o);
            continue; /* asking may have taken long */
        }
        mute = w->n_silent * w->d->targets;
        *ret_count = count_servers(w, &c);
        if (!mute && ret_count->online >= want)
            rc = ADMIN_OK;
        else if (ret_count->online + ret_count->refused + mute >= want)
            rc = ADMIN_PARTIAL;
        else
            rc = late ? ADMIN_FAILED : -1;
        if (rc == ADMIN_PARTIAL || rc == ADMIN_FAILED)
            cluster_warn(o, &c);
        cluster_put(&c);
        if (rc >= 0)
            return rc;
        admin_waits_for("demo: %u of %u targets are online; the others are waited for, up to %u s; "
                        "the logs are %s/oss*/log",
                        ret_count->online, MAX(want, ret_count->targets), DEMO_START_MS / 1000,
                        w->d->dir);
        poll(NULL, 0, 50);
    }
}

int demo_wait_online(struct admin *a, const struct demo *d, struct out *o,
                     struct demo_count *ret_count)
{
    struct wait w = {.a = a, .d = d};
    char config[PATH_MAX], dir[PATH_MAX];
    int rc;

    snprintf(config, sizeof config, "%s/admin.conf", d->dir);
    a->config = config;
    a->mds = a->key_file = NULL;
    snprintf(dir, sizeof dir, "%s/mds", d->dir);
    admin_waits_for("demo: waiting for the metadata server (process %d) to answer; its log is "
                    "%s/log",
                    (int)proc_running(dir), dir);
    rc = wait_for_all(&w, o, ret_count);
    admin_waited();
    if (rc == ADMIN_UNREACHABLE)
        admin_detail("demo: the metadata server is process %d; see %s/log", (int)proc_running(dir),
                     dir);
    if (rc == ADMIN_FAILED)
        admin_error("demo: only %u of %u targets came online; see the logs in %s/oss*/log",
                    ret_count->online, d->oss * d->targets, d->dir);
    admin_disconnect(a);
    a->config = NULL;
    return rc;
}
