// SPDX-License-Identifier: Apache-2.0
/*
 * After a restart: sessions are read from the store, opens and leases come back from their clients.
 *
 * Happy path: each session reconnects and sends RECLAIM; with the last of them the grace period
 * ends, changes that had to wait go on, and orphans that nobody has reclaimed are destroyed.
 * Failure modes: a session that does not come back is evicted after its lease time, and the grace
 * period lasts until it is fenced. What it may have been writing is in the store (mark.c): those
 * files are put right as after any other eviction, and nobody changes them before. What a session
 * reclaims and cannot have had is not believed.
 */
#include <string.h>
#include <sys/stat.h>

#include "mds/session/session_int.h"

#define ORPHAN_PAGE  256u
#define OPEN_ID_BITS 40 /* of open ids and lease sequences: below the boot */

/* ---- what was there ---- */

struct load {
    struct session_module *mod;
    bool live;
};

static uint16_t record_flags(const void *value)
{
    struct session_rec rec;

    memcpy(&rec, value, sizeof rec); /* session_add() has looked at it */
    return le16toh(rec.flags);
}

static int load_session(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct load *load = arg;
    struct session *s;
    int rc;

    if (key_len != 9)
        return -AIFS_ECORRUPT;
    rc = session_add(load->mod, key_number_of(key), value, (uint32_t)len, &s);
    if (rc < 0) {
        LOG_ERROR("session", "%llu: its record: %s", (unsigned long long)key_number_of(key),
                  err_name(rc));
        return rc;
    }
    if (s->phase == PHASE_LIVE && record_flags(value) & SESSION_REC_ALONE)
        session_alone_load(load->mod, s);
    /* the client of one that is evicted may believe for a lease time, in what nobody knows now */
    s->reclaiming = s->phase == PHASE_LIVE || !(record_flags(value) & SESSION_REC_SAFE);
    if (!s->reclaiming)
        s->renewed_ns = 0;
    load->live |= s->reclaiming;
    return 0;
}

static int hold(struct session_module *mod, struct session *s, enum key_type queue, uint64_t ino)
{
    struct session_use *u;
    int rc = session_use_get(mod, s, ino, &u);

    if (rc < 0)
        return rc;
    session_use_hold(u, queue);
    session_lease_set(mod, u, MSG_LEASE_WRITE, 0);
    u->told = u->lease;
    return 0;
}

/* The item does not say whose file it is, and is never done: each dead session holds the file,
 * until that is removed. */
static int hold_unreadable(struct session_module *mod, const uint8_t *key, size_t key_len, int why)
{
    struct hmap_node *n, *next;
    size_t pos;
    int rc = 0;

    if (key_len != 9)
        return 0; /* of no file; mds/gc says it */
    LOG_ERROR("session",
              "inode %llu: its item in queue %#x cannot be read, dead sessions keep it: %s",
              (unsigned long long)key_number_of(key), key[0], err_name(why));
    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        if (s->phase != PHASE_LIVE && rc == 0)
            rc = hold(mod, s, (enum key_type)key[0], key_number_of(key));
    }
    return rc;
}

/* What a dead writer holds, as long as its file is not put right. */
static int load_recovery(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct load *load = arg;
    enum key_type queue = (enum key_type)((const uint8_t *)key)[0];
    struct mds_queue_item item;
    struct session *s;
    int rc = key_len == 9 ? rec_queue_decode(value, len, &item) : -AIFS_ECORRUPT;

    if (rc < 0)
        return hold_unreadable(load->mod, key, key_len, rc);
    s = session_find(load->mod, item.session);
    if (!s || s->phase == PHASE_LIVE)
        return 0;
    return hold(load->mod, s, queue, key_number_of(key));
}

/* A file that has a lock of this dead session. It may have been queued for it first, and for
 * another one since: the item names the last. The lock stays until what was sent under it is kept
 * out. */
static int load_lock(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct session *s = arg;
    struct session_file *f;
    struct list *l;

    (void)value;
    (void)len;
    if (key_len != KEY_LOCK_SESSION_BYTES)
        return -AIFS_ECORRUPT;
    f = session_file_find(s->mod, be64_load((const uint8_t *)key + 9));
    if (!f)
        return 0;
    list_for_each (l, &f->uses) {
        const struct session_use *u = list_entry(l, struct session_use, of_file);

        if (u->held)
            return hold(s->mod, s, u->held, f->ino);
    }
    return 0;
}

static int load_locks(struct session_module *mod, struct view *v)
{
    struct hmap_node *n, *next;
    struct key k;
    size_t pos;
    int rc = 0;

    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        key_number(&k, KEY_LOCK_SESSION, s->id);
        if (s->phase != PHASE_LIVE && rc == 0)
            rc = view_scan(v, &k, NULL, load_lock, s);
    }
    return rc;
}

/* What sessions may have been writing. */
static int load_mark(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct load *load = arg;
    int rc;

    if (key_len != 17)
        return -AIFS_ECORRUPT;
    rc = session_mark_load(load->mod, key_number_of(key), be64_load((const uint8_t *)key + 9),
                           value, len);
    if (rc < 0)
        LOG_ERROR("session", "%llu: what it may be writing: %s",
                  (unsigned long long)key_number_of(key), err_name(rc));
    return rc;
}

static int load_boot(struct session_module *mod)
{
    const struct session_booted *rep;
    struct shard_entry e;
    int rc;

    shard_entry_init(&e, SHARD_OP_BOOT, NULL, NULL, NULL);
    e.flags = SHARD_E_FREES;
    rc = shard_run(mod->mds->shards[0], &e);
    if (rc == 0) {
        rep = e.reply;
        mod->next_id = rep->boot << OPEN_ID_BITS;
    }
    shard_entry_fini(&e);
    return rc;
}

int session_load(struct session_module *mod)
{
    struct load load = {.mod = mod};
    struct view v;
    struct key k;
    int rc = load_boot(mod);

    if (rc < 0)
        return rc;
    view_pin(mod->mds->shards[0], &v);
    key_single(&k, KEY_SESSION);
    rc = view_scan(&v, &k, NULL, load_session, &load);
    key_single(&k, KEY_RECOVER);
    if (rc == 0)
        rc = view_scan(&v, &k, NULL, load_recovery, &load);
    key_single(&k, KEY_PUNCH);
    if (rc == 0)
        rc = view_scan(&v, &k, NULL, load_recovery, &load);
    if (rc == 0)
        rc = load_locks(mod, &v);
    key_single(&k, KEY_WRITER);
    if (rc == 0)
        rc = view_scan(&v, &k, NULL, load_mark, &load);
    view_unpin(&v);
    mod->grace = load.live;
    return rc;
}

/* ---- orphans ---- */

struct session_orphans {
    struct worker_job job;
    struct session_module *mod;
    uint64_t from;
    uint32_t n;
    bool running, over;
    int error;
    uint64_t inos[ORPHAN_PAGE];
};

static int orphan_seen(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct session_orphans *o = arg;

    (void)value;
    (void)len;
    if (key_len == 9)
        o->inos[o->n++] = key_number_of(key);
    return o->n == ORPHAN_PAGE;
}

static void orphans_run(struct worker_job *j)
{
    struct session_orphans *o = container_of(j, struct session_orphans, job);
    struct key prefix, from;
    struct view v;

    o->n = 0;
    key_single(&prefix, KEY_ORPHAN);
    key_number(&from, KEY_ORPHAN, o->from);
    view_pin(o->mod->mds->shards[0], &v);
    o->error = view_scan(&v, &prefix, &from, orphan_seen, o);
    view_unpin(&v);
}

static void orphans_done(struct worker_job *j)
{
    struct session_orphans *o = container_of(j, struct session_orphans, job);
    struct session_module *mod = o->mod;

    if (o->error < 0)
        LOG_ERROR("session", "looking for orphans: %s", err_name(o->error));
    o->running = false;
    o->over = o->error < 0 || o->n < ORPHAN_PAGE || mod->stopping;
    mod->n_releasing++; /* the page counts as one until all of it is submitted */
    for (uint32_t i = 0; i < o->n && !mod->stopping; i++) {
        struct session_file *f;

        if (session_file_get(mod, o->inos[i], &f) < 0)
            continue; /* after the next start */
        /* else it comes to be known with its first open */
        if (!session_may_be_creating(mod, f, o->inos[i])) {
            f->orphan = true;
            session_orphan_check(mod, f);
        }
        session_file_put(mod, f);
    }
    if (o->n)
        o->from = o->inos[o->n - 1] + 1;
    if (--mod->n_releasing == 0)
        session_orphans_continue(mod);
    session_end(mod);
}

void session_orphans_continue(struct session_module *mod)
{
    struct session_orphans *o = mod->orphans;

    if (!o || o->running)
        return;
    if (o->over || mod->stopping) {
        mod->orphans = NULL;
        mem_free(o);
        return;
    }
    o->running = true;
    o->job.run = orphans_run;
    o->job.done = orphans_done;
    session_begin(mod);
    worker_pool_submit(mod->mds->workers, mod->mds->reactor, &o->job);
}

void session_grace_start(struct session_module *mod)
{
    mod->grace_end_ns = 0;
    if (mod->grace) {
        LOG_INFO("session", "waiting for sessions from before the restart");
        return;
    }
    mod->orphans = mem_zalloc(sizeof *mod->orphans);
    if (!mod->orphans) {
        LOG_WARN("session", "out of memory: orphans are kept until the next start");
        return;
    }
    mod->orphans->mod = mod;
    session_orphans_continue(mod);
}

bool session_grace_over(struct mds *m)
{
    return !session_module(m)->grace;
}

void session_grace_check(struct session_module *mod)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (!mod->grace)
        return;
    hmap_for_each (n, next, pos, &mod->sessions) {
        if (container_of(n, struct session, by_id)->reclaiming)
            return;
    }
    LOG_INFO("session", "every session from before the restart is back or evicted");
    mod->grace = false;
    session_wake_list(mod, &mod->grace_waits);
    session_watch_grace_over(mod);
    session_grace_start(mod);
}

/* ---- RECLAIM ---- */

/* Leases were granted without conflict before; only a client that is wrong brings one here. */
static void reclaim_lease(struct session_module *mod, struct session_use *u,
                          const struct msg_reclaim_item *item)
{
    struct lease_users users;

    if (item->lease == MSG_LEASE_NONE || u->told.kind != MSG_LEASE_NONE)
        return;
    if (item->lease == MSG_LEASE_WRITE && u->mark == MARK_NONE)
        return; /* never open for writing */
    session_lease_set(mod, u, item->lease, item->lease_seq);
    u->told = u->lease;
    session_users(u, &users);
    if (users.others && (item->lease == MSG_LEASE_WRITE || users.others_write))
        session_recall(mod, u, MSG_LEASE_NONE);
}

/* Only of an earlier boot; one of this boot was closed. What was open for writing is marked. */
static bool reclaim_believed(struct session_module *mod, struct session *s,
                             const struct msg_reclaim_item *item)
{
    const struct session_use *u = session_use_find(mod, s, item->ino);

    if (item->open_id >> OPEN_ID_BITS >= mod->next_id >> OPEN_ID_BITS)
        return false;
    if (!lease_writes(item->open_flags) || (u && u->mark != MARK_NONE))
        return true;
    LOG_WARN("session", "%llu reclaims inode %llu, which it did not have open for writing",
             (unsigned long long)s->id, (unsigned long long)item->ino);
    return false;
}

static int reclaim_open(struct session_module *mod, struct session *s,
                        const struct msg_reclaim_item *item, uint32_t inode_flags)
{
    struct session_open *o = session_open_find(mod, item->open_id);
    struct session_use *u;
    int rc;

    if (o && (o->session != s->id || !o->use || o->use->f->ino != item->ino))
        return -AIFS_EPROTO;
    if (!s->reclaiming || (!o && !reclaim_believed(mod, s, item)))
        return 0; /* it has said all it had; its operations will say so */
    rc = session_use_get(mod, s, item->ino, &u);
    if (rc < 0)
        return rc;
    if (!o) {
        o = session_open_new(mod, s, item->open_id, item->open_flags);
        rc = o ? 0 : -AIFS_EBUSY_SERVER;
    }
    if (o && !o->use) {
        o->confirmed = true;
        session_open_attach(o, u);
        u->mark_unclaimed &= !lease_writes(o->flags);
        stat_inc(&mod->stats.reclaimed);
    }
    u->f->orphan |= (inode_flags & INODE_ORPHAN) != 0;
    if (rc == 0)
        reclaim_lease(mod, u, item);
    session_use_put(mod, u);
    return rc;
}

static int reclaim_item(struct session_module *mod, struct session *s,
                        const struct msg_reclaim_item *item)
{
    struct shard *shard = mds_shard_of(mod->mds, item->ino);
    struct mds_inode in;
    struct view v;
    int rc;

    if (!shard || item->open_id == 0)
        return -AIFS_EPROTO;
    view_begin(shard, &v);
    rc = view_inode(&v, item->ino, &in);
    view_end(&v);
    if (rc == -ENOENT)
        return 0; /* its operations will say so */
    return rc < 0 ? rc : reclaim_open(mod, s, item, in.flags);
}

void session_reclaim(struct rpc_req *req)
{
    struct mds *m = req->handler_arg;
    struct session_module *mod = session_module(m);
    const struct msg_reclaim_req *msg = req->msg;
    struct session *s = session_find(mod, req->header.session);
    int rc = session_check(m, req);

    for (uint32_t i = 0; rc == 0 && i < msg->n_items; i++)
        rc = reclaim_item(mod, s, &msg->items[i]);
    if (rc == 0 && msg->last && s->reclaiming) {
        s->reclaiming = false;
        s->marks_until_ns = session_now_ns(mod) + m->conf.lease_ns;
        if (!s->closing) /* it goes, whatever it says */
            s->evict_due = NULL;
        session_serve_opening(mod, &s->client);
        session_grace_check(mod);
    }
    if (rc == 0 && msg->last && !msg->unsettled)
        session_settled(mod, s);
    rpc_reply(req, rc, NULL);
}
