/* SPDX-License-Identifier: Apache-2.0 */
/* See states.h: the metadata server. */
#include "mds/cluster/cluster_int.h"
#include "mds/gc/gc_int.h"
#include "mds/locks/locks_int.h"
#include "mds/session/session_int.h"
#include "tests/sim/states.h"

static void look_at_use(const struct session_use *u)
{
    const struct session_file *f = u->f;

    hit_if(u->lease.kind == MSG_LEASE_READ, SIM_MDS_LEASE_READ);
    hit_if(u->lease.kind == MSG_LEASE_WRITE, SIM_MDS_LEASE_WRITE);
    hit_if(u->n_opens && u->lease.kind == MSG_LEASE_NONE, SIM_MDS_LEASE_NONE);
    hit_if(u->growth, SIM_MDS_LEASE_GROWTH);
    hit_if(u->recall_sent, SIM_MDS_RECALL);
    hit_if(u->held == KEY_RECOVER, SIM_MDS_HELD_RECOVER);
    hit_if(u->held == KEY_PUNCH, SIM_MDS_HELD_PUNCH);
    hit_if(u->mark == MARK_SET, SIM_MDS_MARK);
    hit_if(u->mark == MARK_DROPPING, SIM_MDS_MARK_DROPPING);
    hit_if(u->mark_unclaimed, SIM_MDS_MARK_UNCLAIMED);
    hit_if(f->inside.take, SIM_MDS_INSIDE_TAKE);
    hit_if(f->inside.breaks, SIM_MDS_INSIDE_BREAK);
    hit_if(f->inside.sole, SIM_MDS_INSIDE_SOLE);
    hit_list(&f->queue, SIM_MDS_FROZEN_QUEUE);
    hit_list(&f->blocked, SIM_MDS_BLOCKED);
    hit_if(f->glimpse, SIM_MDS_GLIMPSE);
    hit_if(f->orphan, SIM_MDS_ORPHAN);
}

static void look_at_session(const struct session *s)
{
    static const int phases[] = {[PHASE_LIVE] = -1,
                                 [PHASE_CLOSING] = -1,
                                 [PHASE_ENTRY] = SIM_MDS_EVICT_ENTRY,
                                 [PHASE_FENCE] = SIM_MDS_EVICT_FENCE,
                                 [PHASE_SAFE] = SIM_MDS_EVICT_SAFE,
                                 [PHASE_SEAL] = SIM_MDS_EVICT_SEAL,
                                 [PHASE_REMOVE] = SIM_MDS_EVICT_REMOVE};
    struct list *l;

    if (phases[s->phase] >= 0)
        sim_hit((enum sim_cover)phases[s->phase]);
    hit_if(s->reclaiming, SIM_MDS_RECLAIMING);
    hit_if(s->evict_due, SIM_MDS_EVICT_DUE);
    hit_if(s->phase == PHASE_LIVE && !s->link, SIM_MDS_SESSION_UNSEEN);
    list_for_each (l, &s->uses)
        look_at_use(list_entry(l, const struct session_use, of_session));
}

static void look_at_sessions(const struct session_module *mod)
{
    struct hmap_node *n, *next;
    size_t pos;

    hit_if(mod->grace, SIM_MDS_GRACE);
    hit_list(&mod->grace_waits, SIM_MDS_GRACE_WAITS);
    hit_list(&mod->watch_grace, SIM_MDS_GRACE_WAITS);
    hit_list(&mod->creating, SIM_MDS_CREATING);
    hit_list(&mod->openings, SIM_MDS_OPENING);
    hit_list(&mod->invals, SIM_MDS_INVALIDATE);
    hit_list(&mod->watch_waits, SIM_MDS_WATCH_WAITS);
    hit_list(&mod->shared_files, SIM_MDS_SHARED);
    hit_list(&mod->unmark, SIM_MDS_UNMARK);
    hit_if(mod->orphans, SIM_MDS_ORPHAN_SCAN);
    hmap_for_each (n, next, pos, &mod->sessions)
        look_at_session(container_of(n, const struct session, by_id));
}

static void look_at_locks(const struct lock_queue *q)
{
    static const enum sim_cover states[] = {[LOCK_BLOCKED] = SIM_MDS_LOCK_BLOCKED,
                                            [LOCK_OFFERED] = SIM_MDS_LOCK_OFFERED,
                                            [LOCK_LAPSED] = SIM_MDS_LOCK_LAPSED};
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &q->waits)
        sim_hit(states[container_of(n, const struct lock_wait, by_id)->state]);
    hmap_for_each (n, next, pos, &q->files)
        hit_if(container_of(n, const struct lock_file, by_ino)->busy, SIM_MDS_LOCK_BUSY);
}

bool states_offered(const struct mds *m, const struct core *c)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (!m->locks)
        return false;
    hmap_for_each (n, next, pos, &locks_module((struct mds *)m)->queue.waits) {
        const struct lock_wait *w = container_of(n, const struct lock_wait, by_id);

        if (w->state == LOCK_OFFERED && w->want.session == states_session(c))
            return true;
    }
    return false;
}

bool states_opens(const struct mds *m, const struct core *c)
{
    return ((const struct session_module *)m->session)->n_openings && !states_session(c);
}

bool states_unheard(const struct mds *m, const struct core *c)
{
    const struct session *s = session_find_client(m->session, states_client_id(c));

    return s && s->phase == PHASE_LIVE && s->id != states_session(c);
}

void states_look_at_mds(const struct mds *m)
{
    const struct cluster *c = cluster_of((struct mds *)m);
    const struct gc *gc = gc_of((struct mds *)m);
    struct list *l;

    look_at_sessions(m->session);
    if (m->locks)
        look_at_locks(&locks_module((struct mds *)m)->queue);
    hit_if(gc->punch.n_active, SIM_MDS_PUNCH);
    hit_if(gc->punch.items.count > gc->punch.n_active, SIM_MDS_PUNCH_RESTS);
    hit_list(&gc->waits, SIM_MDS_PUNCH_WAITED);
    hit_if(gc->recover.n_active, SIM_MDS_RECOVER);
    hit_if(gc->recover.skipped, SIM_MDS_RECOVER_WAITS);
    hit_if(gc->destroy.batch, SIM_MDS_DESTROY);
    hit_list(&c->fence_waits, SIM_MDS_FENCE_WAITS);
    list_for_each (l, &c->node_list)
        hit_if(!list_entry(l, const struct cluster_node, all)->up, SIM_MDS_OSS_DOWN);
}
