/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong: messages (wires.c), and every now and then a node dies, two cannot reach each
 * other, or a client is stopped.
 */
#include <string.h>

#include "oss/oss.h"
#include "tests/sim/faults.h"
#include "tests/sim/known.h"
#include "tests/sim/losses.h"
#include "tests/sim/resent.h"
#include "tests/sim/scene.h"
#include "tests/sim/sim.h"
#include "tests/sim/states.h"
#include "tests/sim/wires.h"
#include "tests/sim/work_int.h"

#define EVENTS_MAX 8u

struct faults {
    unsigned left;    /* events to come */
    unsigned changes; /* so many at once, to be hindered */
    uint64_t next_ns;
    uint64_t slow_disk_until_ns, slow_disk_ns;
    bool hinder_dirty;       /* the next client that has something to write */
    bool hinder_changing;    /* the next one that waits for the answer to changes */
    bool hinder_removing;    /* the next one that has answered a removal ahead */
    bool hinder_locked;      /* the next one that has a lock */
    bool crash_uncommitted;  /* the next storage server that has data not committed */
    struct sim_node *doomed; /* it, found; it crashes at doomed_ns, if it still has some */
    uint64_t doomed_ns;
    bool hinder_writing;      /* the next one with a write of several pieces under way */
    bool hinder_offered;      /* the next one that has waited for one */
    bool hinder_reporting;    /* the next one that tells a size */
    bool hinder_asking;       /* the next one that asks for one */
    bool restart_dirty;       /* the metadata server, when the next client has something to write */
    struct sim_node *opening; /* it restarts when this one's new session is made */
    uint64_t opened_ns;       /* then */
};

static struct faults faults;

uint64_t sim_disk_ns(void)
{
    bool slow = sim_now() < faults.slow_disk_until_ns;

    return sim_between(20 * NS_PER_US, slow ? faults.slow_disk_ns : 200 * NS_PER_US);
}

/* ---- events ---- */

static uint64_t draw_length(void)
{
    static const uint64_t longest_ms[] = {50, 500, 3000, 9000, 14000};

    return sim_between(NS_PER_MS, longest_ms[sim_below(ARRAY_LEN(longest_ms))] * NS_PER_MS);
}

void sim_fault_crash(struct sim_node *n)
{
    static const enum sim_cover kinds[] = {SIM_FAULT_CRASH_MDS, SIM_FAULT_CRASH_OSS,
                                           SIM_FAULT_CRASH_CLIENT};
    bool silent = sim_chance(300);

    if (!n->up)
        return;
    sim_hit(kinds[n->kind]);
    if (silent)
        sim_hit(SIM_FAULT_CRASH_SILENT);
    sim_node_crash(n, silent);
    n->restart_ns = sim_now() + draw_length();
}

static void pause_client(struct sim_node *n)
{
    uint64_t length = draw_length();

    if (!n->up)
        return;
    n->resume_ns = sim_now() + length;
    sim_hit(length > SIM_LEASE ? SIM_FAULT_PAUSE_LONG : SIM_FAULT_PAUSE);
    sim_say("%s is stopped for %u ms", n->name, (unsigned)(length / NS_PER_MS));
}

static void partition(unsigned a, unsigned b, bool both)
{
    uint64_t until = sim_now() + draw_length();

    if (a == b)
        return;
    wires_cut(a, b, until);
    if (both)
        wires_cut(b, a, until);
    sim_hit(SIM_FAULT_PARTITION);
    sim_say("%s %s %s cut for %u ms", sim.node[a].name, both ? "and" : "to", sim.node[b].name,
            (unsigned)((until - sim_now()) / NS_PER_MS));
}

static void cut(unsigned a, unsigned b, uint64_t until_ns)
{
    wires_cut(a, b, until_ns);
    wires_cut(b, a, until_ns);
}

static void slow_disks(uint64_t length_ns)
{
    faults.slow_disk_until_ns = sim_now() + length_ns;
    faults.slow_disk_ns = sim_chance(700) ? 300 * NS_PER_MS : 4 * NS_PER_S;
    sim_hit(SIM_FAULT_SLOW_DISK);
}

/* The storage servers are away when it is evicted, and know of it only when they register again. */
static void absent_storage(void)
{
    for (unsigned i = 0; i < SIM_OSS; i++)
        cut(0, 1 + i, sim_now() + SIM_LEASE + NS_PER_S / 2);
    sim_hit(SIM_FAULT_ABSENT);
}

/* It loses its session, and can write before it can hear of that; or its writes take so long that
 * they are under way when it is fenced. */
static void exile(unsigned client)
{
    uint64_t until = sim_now() + SIM_LEASE + sim_between(NS_PER_S, 5 * NS_PER_S);
    bool fast = sim_chance(700);

    if (!fast)
        slow_disks(SIM_LEASE + 5 * NS_PER_S);
    else if (sim_chance(600))
        absent_storage();
    for (unsigned i = 0; i < SIM_OSS && fast; i++)
        cut(client, 1 + i, until);
    cut(client, 0, until + sim_between(NS_PER_S, 5 * NS_PER_S));
    sim_hit(SIM_FAULT_EXILE);
    sim_say("%s is cut off with data to write", sim.node[client].name);
}

static uint64_t worth_hindering(const struct sim_node *n)
{
    uint64_t ino = 0;

    if (!n->up || n->resume_ns || !n->core)
        return 0;
    if (faults.hinder_locked)
        ino = sim_work_locked(n);
    return ino || !faults.hinder_dirty ? ino : states_dirty_inode(n->core);
}

struct writing { /* of several pieces, the last ones of which the disk does not know yet */
    uint64_t session, ino;
};

static bool has_pieces_to_come(void *arg, const struct chunk_op *op)
{
    const struct oss_fan_slot *slot = op->arg;
    const struct oss_fan *f = slot->fan;
    struct writing *w = arg;

    if (f->next == f->n || !f->request->session)
        return true;
    *w = (struct writing){f->request->session->id, op->ino};
    return false;
}

/* It is fenced while its write goes on piece by piece; most often by a registration. */
static void hinder_who_writes(const struct sim_node *oss)
{
    struct writing w = {0};

    if (!oss->up)
        return;
    sim_chunks_each_write(oss->oss->targets[0].store, has_pieces_to_come, &w);
    for (unsigned i = 0; i < SIM_CLIENTS && w.session; i++) {
        const struct sim_node *n = sim_client(i);

        if (!n->up || !n->core || states_session(n->core) != w.session)
            continue;
        faults.hinder_writing = false;
        known_draw_more(w.ino);
        slow_disks(SIM_LEASE + 5 * NS_PER_S);
        faults.slow_disk_ns = 9 * NS_PER_S;
        if (sim_chance(700))
            absent_storage();
        cut((unsigned)(n - sim.node), 0,
            sim_now() + SIM_LEASE + sim_between(NS_PER_S, 5 * NS_PER_S));
        sim_hit(SIM_FAULT_EXILE_WRITING);
        sim_say("%s is cut off amid a write", n->name);
        return;
    }
}

/* It does not take the lock that it has waited for. */
static void hinder_who_is_offered(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct sim_node *n = sim_client(i);

        if (!n->up || n->resume_ns || !n->core || !states_offered(sim_mds()->mds, n->core))
            continue;
        faults.hinder_offered = false;
        n->resume_ns = sim_now() + sim_between(NS_PER_S, 8 * NS_PER_S);
        sim_hit(SIM_FAULT_PAUSE_OFFERED);
        sim_say("%s is stopped when it is offered a lock", n->name);
    }
}

/* Others may cut the file before its size is told, again. */
static void hinder_who_reports(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS && faults.hinder_reporting; i++) {
        struct sim_node *n = sim_client(i);
        uint64_t ino = n->up && !n->resume_ns && n->core ? states_reports(n->core) : 0;

        if (!ino)
            continue;
        faults.hinder_reporting = false;
        known_draw_more(ino);
        cut((unsigned)(n - sim.node), 0,
            sim_now() + sim_between(200 * NS_PER_MS, 2500 * NS_PER_MS));
        sim_hit(SIM_FAULT_CUT_REPORTING);
        sim_say("%s is cut off while it tells a size", n->name);
    }
}

/* Nor does the answer come to who asks for one; he gives up, and asks again behind his question. */
static void hinder_who_asks(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS && faults.hinder_asking; i++) {
        struct sim_node *n = sim_client(i);
        uint64_t length = sim_between(200 * NS_PER_MS, 2500 * NS_PER_MS);
        uint64_t ino = n->up && !n->resume_ns && n->core ? sim_work_asks(n, length) : 0;

        if (!ino)
            continue;
        faults.hinder_asking = false;
        known_draw_more(ino);
        cut((unsigned)(n - sim.node), 0, sim_now() + length);
        sim_hit(SIM_FAULT_CUT_ASKING);
        sim_say("%s is cut off while it asks for a lock", n->name);
    }
}

/* It does not know whether its changes were made, and asks again after others have gone on; or it
 * loses its session over it. */
static void hinder_who_changes(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct sim_node *n = sim_client(i);
        uint64_t length = sim_between(200 * NS_PER_MS, 2500 * NS_PER_MS);

        if (!n->up || n->resume_ns || !n->core || states_changes(n->core) < faults.changes)
            continue;
        faults.hinder_changing = false;
        if (sim_chance(500))
            length += SIM_LEASE + NS_PER_S;
        cut((unsigned)(n - sim.node), 0, sim_now() + length);
        sim_hit(SIM_FAULT_CUT_CHANGING);
        sim_say("%s is cut off while it changes something", n->name);
        return;
    }
}

static void crash_mds(struct sim_node *late, bool is_late);

/* What it has told its programs and the server does not know yet: after the server's restart it has
 * to say that it is not settled; without it, or its session, the names are there again. */
static void hinder_who_removes(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct sim_node *n = sim_client(i);

        if (!n->up || n->resume_ns || !n->core || !states_removals(n->core) || !sim_chance(100))
            continue;
        faults.hinder_removing = work_removals_makes() && sim_chance(300);
        sim_hit(SIM_FAULT_REMOVING);
        if (sim_chance(400) && sim_mds()->up)
            crash_mds(n, sim_chance(300));
        else if (sim_chance(400))
            sim_fault_crash(n);
        else
            cut((unsigned)(n - sim.node), 0, sim_now() + SIM_LEASE + sim_between(0, 3 * NS_PER_S));
        return;
    }
}

/* Whoever has something to write, or a lock, is kept from it for longer than its lease, so that
 * somebody else may have the file by then. */
static void hinder(void)
{
    if (faults.hinder_changing)
        hinder_who_changes();
    if (faults.hinder_removing)
        hinder_who_removes();
    if (faults.hinder_offered && sim_mds()->up)
        hinder_who_is_offered();
    if (faults.hinder_reporting)
        hinder_who_reports();
    if (faults.hinder_asking)
        hinder_who_asks();
    for (unsigned i = 0; i < SIM_OSS && faults.hinder_writing; i++)
        hinder_who_writes(sim_oss(i));
    for (unsigned i = 0; i < SIM_CLIENTS && (faults.hinder_dirty || faults.hinder_locked); i++) {
        struct sim_node *n = sim_client(i);
        uint64_t ino = worth_hindering(n);

        if (!ino)
            continue;
        faults.hinder_dirty = faults.hinder_locked = false;
        known_draw_more(ino);
        if (sim_chance(700)) {
            exile((unsigned)(n - sim.node));
            continue;
        }
        n->resume_ns = sim_now() + SIM_LEASE + sim_between(NS_PER_S, 8 * NS_PER_S);
        sim_hit(SIM_FAULT_PAUSE_DIRTY);
        sim_say("%s is stopped with data to write", n->name);
    }
}

/* Somebody comes late to its restart: the others are there when he has not reclaimed. */
static void crash_mds(struct sim_node *late, bool is_late)
{
    uint64_t believed = late->up && late->core ? states_believed(late->core) : 0;

    sim_fault_crash(sim_mds());
    if (believed && sim_chance(500)) /* what it believes others come to change */
        known_draw_more(believed);
    if (!sim_mds()->restart_ns || !late->up || !is_late)
        return;
    if (states_dirty_inode(late->core))
        known_draw_more(states_dirty_inode(late->core));
    cut((unsigned)(late - sim.node), 0,
        sim_mds()->restart_ns + sim_between(200 * NS_PER_MS, 3 * NS_PER_S));
    sim_hit(SIM_FAULT_LATE);
}

/* What a client has written nobody else knows, and the server does not know that it may. */
static void restart_when_dirty(void)
{
    for (unsigned i = 0; i < SIM_CLIENTS && faults.restart_dirty; i++) {
        struct sim_node *n = sim_client(i);

        if (!n->up || n->resume_ns || !n->core || !states_dirty_inode(n->core) || !sim_mds()->up)
            continue;
        faults.restart_dirty = false;
        crash_mds(n, true);
        sim_mds()->restart_ns = sim_now() + sim_between(NS_PER_MS, 2 * NS_PER_S);
    }
}

/* A client that never hears of its session opens another one while others have yet to reclaim. */
static void restart_when_opening(void)
{
    struct sim_node *n = faults.opening;
    unsigned other = (unsigned)(n - sim_client(0) + 1) % SIM_CLIENTS;

    if (!n->up || !n->core || !sim_mds()->up)
        return;
    if (!faults.opened_ns && states_opens(sim_mds()->mds, n->core)) { /* its answer is lost */
        faults.opened_ns = sim_now() + sim_between(NS_PER_MS, 1500 * NS_PER_MS);
        wires_cut(0, (unsigned)(n - sim.node), faults.opened_ns);
    }
    if (!faults.opened_ns || sim_now() < faults.opened_ns)
        return;
    faults.opening = NULL;
    if (!states_unheard(sim_mds()->mds, n->core))
        return;
    sim_hit(SIM_FAULT_OPENING);
    sim_say("%s does not know of its session", n->name);
    crash_mds(sim_client(other), true);
    sim_mds()->restart_ns = sim_now() + sim_between(NS_PER_MS, 2 * NS_PER_S);
}

static uint64_t uncommitted(const struct sim_node *n)
{
    return n->up ? sim_chunks_uncommitted(n->oss->targets[0].store) : 0;
}

/* At once, its answer is lost with it and the client writes again; a while later the client may
 * believe that all is well. */
static void doom_who_has_uncommitted(void)
{
    for (unsigned i = 0; i < SIM_OSS && faults.crash_uncommitted; i++) {
        if (!uncommitted(sim_oss(i)))
            continue;
        faults.crash_uncommitted = false;
        faults.doomed = sim_oss(i);
        faults.doomed_ns = sim_now();
        if (sim_chance(750))
            faults.doomed_ns += sim_between(NS_PER_MS, 400 * NS_PER_MS);
    }
}

static void crash_the_doomed(void)
{
    struct sim_node *n = faults.doomed;
    uint64_t ino = uncommitted(n);

    faults.doomed = NULL;
    faults.crash_uncommitted = !ino;
    if (!ino)
        return;
    known_draw_more(ino);
    sim_fault_crash(n);
}

enum event {
    EVENT_CRASH_MDS,
    EVENT_CRASH_OSS,
    EVENT_CRASH_CLIENT,
    EVENT_PAUSE,
    EVENT_HINDER_WRITING,
    EVENT_HINDER_DIRTY,
    EVENT_HINDER_LOCKED,
    EVENT_HINDER_OFFERED,
    EVENT_HINDER_ASKING,
    EVENT_CRASH_UNCOMMITTED,
    EVENT_HINDER_CHANGING,
    EVENT_HINDER_REMOVING,
    EVENT_HINDER_REPORTING,
    EVENT_HINDER_STORING,
    EVENT_RESTART_DIRTY,
    EVENT_PART_CLIENT_MDS, /* cannot renew, but can write */
    EVENT_PART_OSS_MDS,
    EVENT_PART_CLIENT_OSS,
    EVENT_SLOW_DISKS,
    EVENTS
};

static enum event draw_event(void)
{
    static const uint8_t weights[SCENE_KINDS][EVENTS] = {
        [SCENE_ALL] = {12, 12, 8, 5, 3, 14, 3, 2, 1, 8, 4, 1, 3, 2, 2, 5, 9, 8, 4},
        [SCENE_FILES] = {12, 12, 8, 5, 3, 14, 3, 2, 1, 9, 4, 0, 3, 2, 2, 5, 9, 8, 4},
        [SCENE_DUEL] = {4, 4, 3, 4, 6, 32, 0, 0, 0, 8, 2, 0, 12, 0, 22, 3, 3, 3, 4},
        [SCENE_NAMES] = {14, 3, 10, 6, 0, 4, 0, 0, 0, 2, 24, 4, 0, 0, 4, 14, 4, 4, 4},
        [SCENE_LOCKS] = {14, 4, 8, 6, 0, 4, 16, 8, 28, 0, 6, 0, 0, 0, 2, 6, 4, 2, 4},
        [SCENE_BESIDE] = {4, 4, 2, 2, 2, 4, 0, 0, 0, 2, 0, 0, 10, 44, 4, 4, 4, 6, 4},
    };
    const uint8_t *weight = weights[scene.kind];
    unsigned sum = 0, what, event = 0;

    for (unsigned i = 0; i < EVENTS; i++)
        sum += weight[i];
    what = sim_below(sum);
    while (what >= weight[event])
        what -= weight[event++];
    return (enum event)event;
}

static void event(void)
{
    struct sim_node *client = sim_client(sim_below(SIM_CLIENTS));
    struct sim_node *oss = sim_oss(sim_below(SIM_OSS));
    unsigned client_at = (unsigned)(client - sim.node), oss_at = (unsigned)(oss - sim.node);

    switch (draw_event()) {
    case EVENT_CRASH_MDS:
        crash_mds(sim_client(sim_below(SIM_CLIENTS)), sim_chance(500));
        break;
    case EVENT_CRASH_OSS:
        sim_fault_crash(oss);
        break;
    case EVENT_CRASH_CLIENT:
        sim_fault_crash(client);
        if (sim_chance(300)) {
            faults.opening = client;
            faults.opened_ns = 0;
        }
        break;
    case EVENT_PAUSE:
        pause_client(client);
        break;
    case EVENT_HINDER_WRITING:
        faults.hinder_writing = true;
        break;
    case EVENT_HINDER_DIRTY:
        faults.hinder_dirty = true;
        break;
    case EVENT_HINDER_LOCKED:
        faults.hinder_locked = true;
        break;
    case EVENT_HINDER_OFFERED:
        faults.hinder_offered = true;
        break;
    case EVENT_HINDER_ASKING:
        faults.hinder_asking = true;
        break;
    case EVENT_CRASH_UNCOMMITTED:
        faults.crash_uncommitted = true;
        break;
    case EVENT_HINDER_CHANGING:
        faults.hinder_changing = true;
        break;
    case EVENT_HINDER_REMOVING:
        faults.hinder_removing = true;
        break;
    case EVENT_HINDER_REPORTING:
        faults.hinder_reporting = true;
        break;
    case EVENT_HINDER_STORING:
        resent_expect();
        break;
    case EVENT_RESTART_DIRTY:
        faults.restart_dirty = true;
        break;
    case EVENT_PART_CLIENT_MDS:
        partition(client_at, 0, sim_chance(700));
        break;
    case EVENT_PART_OSS_MDS:
        partition(oss_at, 0, sim_chance(700));
        break;
    case EVENT_PART_CLIENT_OSS:
        partition(client_at, oss_at, sim_chance(700));
        break;
    default:
        slow_disks(draw_length());
    }
}

static void next_event(void)
{
    static const uint64_t gap_ms[] = {20, 300, 3000};

    faults.next_ns = sim_now() + sim_between(0, gap_ms[sim_below(ARRAY_LEN(gap_ms))] * NS_PER_MS);
}

void sim_faults_start(void)
{
    memset(&faults, 0, sizeof faults);
    wires_start();
    resent_start();
    losses_start();
    if (!sim.faults)
        return;
    faults.changes = 1 + sim_below(2);
    faults.hinder_removing = sim_chance(work_removals_makes() ? 600 : 200);
    if (sim_chance(700))
        faults.left = 1 + sim_below(EVENTS_MAX);
    wires_strain();
    if (sim_chance(50))
        slow_disks(60 * NS_PER_S);
    next_event();
}

void sim_faults_tick(void)
{
    hinder();
    resent_tick();
    losses_tick();
    if (faults.crash_uncommitted)
        doom_who_has_uncommitted();
    if (faults.restart_dirty)
        restart_when_dirty();
    if (faults.opening)
        restart_when_opening();
    if (faults.doomed && faults.doomed_ns <= sim_now())
        crash_the_doomed();
    for (unsigned i = 0; i < SIM_NODES; i++) {
        if (!sim.node[i].failed)
            continue;
        sim_node_crash(&sim.node[i], false);
        sim.node[i].failed = false;
        sim.node[i].restart_ns = sim_now() + 100 * NS_PER_MS;
    }
    for (unsigned i = 0; i < SIM_NODES; i++)
        if (sim.node[i].restart_ns && sim.node[i].restart_ns <= sim_now())
            sim_node_start(&sim.node[i]);
    while (faults.left && faults.next_ns <= sim_now()) {
        faults.left--;
        event();
        next_event();
    }
}

uint64_t sim_faults_due(void)
{
    uint64_t due = MIN(losses_due(), faults.left ? faults.next_ns : UINT64_MAX);

    if (faults.doomed)
        due = MIN(due, faults.doomed_ns);
    for (unsigned i = 0; i < SIM_NODES; i++)
        if (sim.node[i].restart_ns)
            due = MIN(due, sim.node[i].restart_ns);
    return due;
}

void sim_faults_end(void)
{
    memset(&faults, 0, sizeof faults);
    resent_start();
    losses_end();
    wires_mend();
    for (unsigned i = 0; i < SIM_NODES; i++) {
        sim.node[i].resume_ns = 0;
        if (sim.node[i].restart_ns)
            sim.node[i].restart_ns = sim_now();
    }
}
