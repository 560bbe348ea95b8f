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
#include <stdatomic.h>
#include <stdio.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/fault/fault.h"
#include "oss/oss.h"

#define LOOKERS 4u
#define HUNG_NS (10 * NS_PER_S)
#define END_NS  (2 * NS_PER_S) /* for looks under way when the server stops */

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
    else if (t->instead_of)
        LOG_WARN("oss",
                 "%s: something else is there now than the new target that was refused. If it is "
                 "the disk of target %u: start this server again, which serves it then",
                 chunk_store_path(t->store), t->instead_of);
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

    atomic_store(&t->look.begun, true);
    (void)FAULT("oss.look");
    t->look.found_away = chunk_store_is_away(t->store);
}

/* ---- stopping ---- */

struct look_end {
    struct oss *oss;
    struct reactor_timer timer;
    void (*done)(void *arg);
    void *arg;
};

static bool is_looking(const struct oss *o)
{
    bool busy = false;

    for (uint32_t i = 0; i < o->n_targets; i++)
        busy = busy || o->targets[i].look.busy;
    return busy;
}

static void look_stopped(struct oss *o)
{
    struct look_end *e = o->look_end;

    o->look_end = NULL;
    reactor_timer_cancel(o->reactor, &e->timer);
    if (!is_looking(o))
        worker_pool_destroy(o->lookers); /* else its threads are left to the end of the program */
    o->lookers = NULL;
    e->done(e->arg);
    mem_free(e);
}

static void look_late(struct reactor_timer *t)
{
    look_stopped(container_of(t, struct look_end, timer)->oss);
}

static void look_ended(struct oss *o)
{
    if (o->look_end && !is_looking(o))
        look_stopped(o);
}

void oss_targets_look_stop(struct oss *o, void (*done)(void *arg), void *arg)
{
    struct look_end *e = o->lookers ? mem_alloc(sizeof *e) : NULL;

    if (!e) {
        done(arg);
        return;
    }
    *e = (struct look_end){.oss = o, .done = done, .arg = arg};
    o->look_end = e;
    reactor_timer_init(&e->timer, look_late);
    reactor_timer_start(o->reactor, &e->timer, reactor_now_ns(o->reactor) + END_NS);
    look_ended(o);
}

/* ---- looking ---- */

static void look_done(struct worker_job *j)
{
    struct oss_target *t = container_of(j, struct oss_target, look.job);
    char name[32];

    t->look.busy = false;
    t->look.away = t->look.found_away;
    if (t->oss->stopping) {
        look_ended(t->oss);
        return;
    }
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

    if (t->look.hung || !atomic_load(&t->look.begun))
        return;
    if (!t->look.since_ns)
        t->look.since_ns = now;
    if (now - t->look.since_ns < HUNG_NS)
        return;
    t->look.hung = true;
    LOG_WARN("oss", "%s: its directory %s has not answered for %llu s: does its disk hang?",
             name_of(t, name), chunk_store_path(t->store), HUNG_NS / NS_PER_S);
}

int oss_targets_look_start(struct oss *o)
{
    return worker_pool_create("look", LOOKERS, &o->lookers);
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
        t->look.since_ns = 0;
        atomic_store(&t->look.begun, false);
        t->look.job = (struct worker_job){.run = look_run, .done = look_done};
        worker_pool_submit(o->lookers, o->reactor, &t->look.job);
    }
}
