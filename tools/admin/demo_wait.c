/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until all of a demo serves. A target whose directory the metadata server has refused will
 * not, however long one waits: the rest of the demo is used without it, and it is said why. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/admin/cluster.h"
#include "tools/admin/demo.h"

/* What the metadata server has heard of a server before it was started now may be over. */
static bool is_current(const struct demo *d, const struct msg_refused_target *r)
{
    uint64_t now = clock_mono_ns(clock_real());
    char alias[16];

    for (unsigned i = 0; i < d->oss; i++) {
        snprintf(alias, sizeof alias, "oss%u", i + 1);
        if (r->alias.len == strlen(alias) && !memcmp(r->alias.data, alias, r->alias.len))
            return now - d->started_ns[i] > r->seen_ns_ago;
    }
    return true;
}

/* What there is, which is more than what was asked for where somebody has added to it. */
static struct demo_count count_servers(const struct demo *d, const struct cluster *c)
{
    struct demo_count n = {0};

    for (uint32_t i = 0; i < c->status->n_refused; i++)
        n.refused += is_current(d, &c->status->refused[i]);
    for (uint32_t i = 0; i < c->map->n_nodes; i++)
        n.oss += c->map->nodes[i].type == MAP_NODE_OSS;
    for (uint32_t i = 0; i < c->map->n_targets; i++) {
        n.targets += !c->map->targets[i].given_up;
        n.online += c->map->targets[i].state == MAP_TARGET_ONLINE;
    }
    return n;
}

static int wait_for_all(struct admin *a, const struct demo *d, struct out *o,
                        struct demo_count *ret_count)
{
    uint64_t end = clock_mono_ns(clock_real()) + DEMO_START_MS * NS_PER_MS;
    unsigned want = d->oss * d->targets;

    for (;;) {
        struct cluster c;
        bool late = clock_mono_ns(clock_real()) > end;
        int rc = cluster_get(a, &c);

        if (rc != ADMIN_OK)
            return rc;
        *ret_count = count_servers(d, &c);
        if (ret_count->online >= want)
            rc = ADMIN_OK;
        else if (ret_count->online + ret_count->refused >= want)
            rc = ADMIN_PARTIAL;
        else
            rc = late ? ADMIN_FAILED : -1;
        if (rc == ADMIN_PARTIAL || rc == ADMIN_FAILED)
            cluster_warn(o, &c);
        cluster_put(&c);
        if (rc >= 0)
            return rc;
        poll(NULL, 0, 50);
    }
}

int demo_wait_online(struct admin *a, const struct demo *d, struct out *o,
                     struct demo_count *ret_count)
{
    char config[PATH_MAX];
    int rc;

    snprintf(config, sizeof config, "%s/admin.conf", d->dir);
    a->config = config;
    a->mds = a->key_file = NULL;
    rc = wait_for_all(a, d, o, ret_count);
    if (rc == ADMIN_FAILED)
        admin_error("demo: only %u of %u targets came online; see the logs in %s/oss*/log",
                    ret_count->online, d->oss * d->targets, d->dir);
    admin_disconnect(a);
    a->config = NULL;
    return rc;
}
