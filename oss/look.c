// SPDX-License-Identifier: Apache-2.0
/*
 * Whether the directories of the targets are still where they were, asked once a second. It is a
 * call that a disk which hangs does not answer, so it is made by threads of its own: one call per
 * target at a time, LOOKERS in all. Of a target whose call does not return nothing is known: it
 * stays as it was, the log names it, and it occupies one of the threads until its disk answers.
 *
 * Away: not served any more, and told to the metadata server as missing. There again: it is given
 * the fences that it has not been asked to remember meanwhile, and served when it has them.
 */
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "oss/oss.h"

#define LOOKERS 4u
#define HUNG_NS (10 * NS_PER_S)

/* Not t->id: one that is refused has none. */
static const char *name_of(const struct oss_target *t, char buf[32])
{
    uint32_t id = chunk_store_super(t->store)->target_id;

    if (!id)
        return "a new target";
    snprintf(buf, 32, "target %u", id);
    return buf;
}

static void came_back(void *arg, int status)
{
    struct oss_target *t = arg;
    char name[32];

    t->returns = false;
    if (status) /* and once more with the next look */
        LOG_ERROR("oss", "%s: %s is there again, but not served: its fences: %s", name_of(t, name),
                  chunk_store_path(t->store), err_text(status));
    if (status || t->look.away || t->oss->stopping)
        return;
    t->away = false;
    LOG_INFO("oss", "%s: its directory %s is there again", name_of(t, name),
             chunk_store_path(t->store));
    oss_cluster_register(t->oss);
}

static void went_away(struct oss_target *t)
{
    char name[32];

    t->away = true;
    if (t->instead_of && t->instead_of == chunk_store_super(t->store)->target_id)
        LOG_WARN(
            "oss",
            "%s, which was given up: its directory %s is elsewhere, or gone. What is there now "
            "is looked at when this server starts again",
            name_of(t, name), chunk_store_path(t->store));
    else
        LOG_ERROR("oss",
                  "%s: its directory %s was renamed or removed, or its disk is gone: it is not "
                  "served until it is there again",
                  name_of(t, name), chunk_store_path(t->store));
    oss_cluster_register(t->oss);
}

static void look_run(struct worker_job *j)
{
    struct oss_target *t = container_of(j, struct oss_target, look.job);

    (void)FAULT("oss.look");
    t->look.found_away = chunk_store_is_away(t->store);
}

static void look_done(struct worker_job *j)
{
    struct oss_target *t = container_of(j, struct oss_target, look.job);
    char name[32];

    t->look.busy = false;
    t->look.away = t->look.found_away;
    if (t->oss->stopping) /* and closed, perhaps */
        return;
    if (t->look.hung)
        LOG_INFO("oss", "%s: its directory %s answers again", name_of(t, name),
                 chunk_store_path(t->store));
    t->look.hung = false;
    if (t->look.away == t->away || t->returns)
        return;
    if (t->look.away) {
        went_away(t);
        return;
    }
    t->returns = true;
    oss_fences_restore(t, came_back);
}

static void look_hangs(struct oss_target *t, uint64_t now)
{
    char name[32];

    if (t->look.hung || now - t->look.since_ns < HUNG_NS)
        return;
    t->look.hung = true;
    LOG_WARN("oss", "%s: its directory %s has not answered for %llu s: does its disk hang?",
             name_of(t, name), chunk_store_path(t->store), HUNG_NS / NS_PER_S);
}

int oss_targets_look_start(struct oss *o)
{
    return worker_pool_create("look", LOOKERS, &o->lookers);
}

void oss_targets_look_stop(struct oss *o)
{
    worker_pool_destroy(o->lookers);
    o->lookers = NULL;
}

void oss_targets_look(struct oss *o)
{
    uint64_t now = reactor_now_ns(o->reactor);

    for (uint32_t i = 0; o->lookers && i < o->n_targets; i++) {
        struct oss_target *t = &o->targets[i];

        if (t->look.busy) {
            look_hangs(t, now);
            continue;
        }
        t->look.busy = true;
        t->look.since_ns = now;
        t->look.job = (struct worker_job){.run = look_run, .done = look_done};
        worker_pool_submit(o->lookers, o->reactor, &t->look.job);
    }
}
