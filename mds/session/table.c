// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of the session module. Objects point to each other and are freed from the leaves up:
 * an open hangs on a use, a use on a session and a file; a file goes when nobody uses, freezes or
 * waits for it.
 *
 * Failure modes: out of memory or a bound reached, before anything was linked.
 */
#include <string.h>

#include "mds/session/session_int.h"

int session_tables_init(struct session_module *mod)
{
    struct hmap *maps[] = {&mod->sessions, &mod->clients, &mod->files, &mod->uses, &mod->opens};
    struct list *lists[] = {&mod->waits,    &mod->runnable, &mod->grace_waits, &mod->create_waits,
                            &mod->recalled, &mod->glimpses, &mod->creating,    &mod->openings,
                            &mod->calls,    &mod->unmark};
    unsigned i;

    for (i = 0; i < ARRAY_LEN(lists); i++)
        list_init(lists[i]);
    for (i = 0; i < ARRAY_LEN(maps); i++) {
        if (hmap_init(maps[i], 64) < 0) {
            while (i-- > 0)
                hmap_fini(maps[i]);
            return -ENOMEM;
        }
    }
    return 0;
}

void session_tables_fini(struct session_module *mod)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &mod->opens)
        mem_free(container_of(n, struct session_open, by_id));
    hmap_for_each (n, next, pos, &mod->uses)
        mem_free(container_of(n, struct session_use, by_key));
    hmap_for_each (n, next, pos, &mod->files)
        mem_free(container_of(n, struct session_file, by_ino));
    hmap_for_each (n, next, pos, &mod->sessions) {
        struct session *s = container_of(n, struct session, by_id);

        if (s->link)
            rpc_link_unref(s->link);
        mem_free(s->slots);
        mem_free(s->server_waits);
        mem_free(s->spared);
        mem_free(s);
    }
    hmap_fini(&mod->opens);
    hmap_fini(&mod->uses);
    hmap_fini(&mod->files);
    hmap_fini(&mod->clients);
    hmap_fini(&mod->sessions);
}

/* ---- sessions ---- */

struct session *session_find(struct session_module *mod, uint64_t id)
{
    for (struct hmap_node *n = hmap_first(&mod->sessions, hash_u64(id)); n; n = hmap_next(n)) {
        struct session *s = container_of(n, struct session, by_id);

        if (s->id == id)
            return s;
    }
    return NULL;
}

struct session *session_find_client(struct session_module *mod, const struct uuid *client)
{
    struct hmap_node *n = hmap_first(&mod->clients, hash_bytes(client->b, 16, 0));
    struct session *newest = NULL;

    for (; n; n = hmap_next(n)) {
        struct session *s = container_of(n, struct session, by_client);

        if (uuid_equal(&s->client, client) && (!newest || s->id > newest->id))
            newest = s;
    }
    return newest;
}

static void copy_text(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    to[size - 1] = '\0';
}

static void session_from_record(struct session *s, const struct session_rec *rec)
{
    memcpy(s->client.b, rec->client, 16);
    memcpy(s->node.b, rec->node, 16);
    copy_text(s->host, rec->host, sizeof s->host);
    copy_text(s->job, rec->job, sizeof s->job);
    copy_text(s->mount, rec->mount, sizeof s->mount);
    s->pid = le32toh(rec->pid);
    s->generation = le32toh(rec->generation);
    s->read_only = le16toh(rec->flags) & SESSION_REC_READ_ONLY;
    s->fence = le64toh(rec->fence);
    s->phase = rec->state == SESSION_EVICTED ? PHASE_FENCE : PHASE_LIVE;
}

int session_add(struct session_module *mod, uint64_t id, const void *data, uint32_t len,
                struct session **ret_session)
{
    struct session_rec rec;
    struct session *s;

    if (len < 2 || ((const uint8_t *)data)[1] != SESSION_REC_VERSION)
        return len < 2 ? -AIFS_ECORRUPT : -AIFS_EFORMAT;
    if (len != sizeof rec)
        return -AIFS_ECORRUPT;
    memcpy(&rec, data, sizeof rec);
    if (rec.state != SESSION_OPEN && rec.state != SESSION_EVICTED)
        return -AIFS_ECORRUPT;
    s = mem_zalloc(sizeof *s);
    if (!s)
        return -ENOMEM;
    s->mod = mod;
    s->id = id;
    session_from_record(s, &rec);
    s->renewed_ns = session_now_ns(mod);
    list_init(&s->uses);
    list_init(&s->watches);
    list_init(&s->alone_dirs);
    hmap_insert(&mod->sessions, &s->by_id, hash_u64(id));
    hmap_insert(&mod->clients, &s->by_client, hash_bytes(s->client.b, 16, 0));
    stat_gauge_add(&mod->stats.sessions, 1);
    *ret_session = s;
    return 0;
}

void session_free(struct session_module *mod, struct session *s)
{
    hmap_remove(&mod->sessions, &s->by_id);
    hmap_remove(&mod->clients, &s->by_client);
    stat_gauge_add(&mod->stats.sessions, -1);
    if (s->link)
        rpc_link_unref(s->link);
    mem_free(s->slots);
    mem_free(s->server_waits);
    mem_free(s->spared);
    mem_free(s);
}

void session_bind(struct session *s, struct rpc_link *l, uint32_t incarnation)
{
    if (s->link == l || incarnation < s->incarnation)
        return;
    if (s->link)
        rpc_link_unref(s->link);
    s->link = rpc_link_ref(l);
    s->incarnation = incarnation;
    session_recall_resend(s);
    session_glimpse_connected(s);
    session_watch_resend(s);
}

/* ---- files ---- */

struct session_file *session_file_find(struct session_module *mod, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&mod->files, hash_near(ino, 0)); n; n = hmap_next(n)) {
        struct session_file *f = container_of(n, struct session_file, by_ino);

        if (f->ino == ino)
            return f;
    }
    return NULL;
}

int session_file_get(struct session_module *mod, uint64_t ino, struct session_file **ret_file)
{
    struct session_file *f = session_file_find(mod, ino);

    if (!f && mod->files.count >= FILES_MAX) {
        stat_inc(&mod->stats.refused);
        return -AIFS_EBUSY_SERVER;
    }
    if (!f) {
        f = mem_zalloc(sizeof *f);
        if (!f)
            return -ENOMEM;
        f->ino = ino;
        list_init(&f->uses);
        list_init(&f->queue);
        list_init(&f->blocked);
        hmap_insert(&mod->files, &f->by_ino, hash_near(ino, 0));
        stat_gauge_add(&mod->stats.files, 1);
    }
    *ret_file = f;
    return 0;
}

void session_file_put(struct session_module *mod, struct session_file *f)
{
    if (!list_empty(&f->uses) || !list_empty(&f->queue) || !list_empty(&f->blocked) || f->glimpse ||
        f->releasing || f->n_woken || f->inside.take || f->inside.breaks || f->inside.sole)
        return;
    hmap_remove(&mod->files, &f->by_ino);
    stat_gauge_add(&mod->stats.files, -1);
    mem_free(f);
}

void session_file_changed(struct session_module *mod, struct session_file *f)
{
    session_wake_blocked(mod, f);
    session_glimpse_wake(mod, f);
}

/* ---- uses ---- */

static uint64_t use_hash(uint64_t session, uint64_t ino)
{
    return hash_near(ino, hash_u64(session));
}

struct session_use *session_use_find(struct session_module *mod, struct session *s, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&mod->uses, use_hash(s->id, ino)); n; n = hmap_next(n)) {
        struct session_use *u = container_of(n, struct session_use, by_key);

        if (u->s == s && u->f->ino == ino)
            return u;
    }
    return NULL;
}

static struct session_use *use_new(struct session_module *mod, struct session *s,
                                   struct session_file *f)
{
    struct session_use *u = mem_zalloc(sizeof *u);

    if (!u)
        return NULL;
    u->s = s;
    u->f = f;
    list_init(&u->opens);
    list_init(&u->recalled);
    list_init(&u->unmark);
    list_push_back(&s->uses, &u->of_session);
    list_push_back(&f->uses, &u->of_file);
    hmap_insert(&mod->uses, &u->by_key, use_hash(s->id, f->ino));
    return u;
}

int session_use_get(struct session_module *mod, struct session *s, uint64_t ino,
                    struct session_use **ret_use)
{
    struct session_use *u = session_use_find(mod, s, ino);
    struct session_file *f;
    int rc;

    if (!u) {
        rc = session_file_get(mod, ino, &f);
        if (rc < 0)
            return rc;
        u = use_new(mod, s, f);
        if (!u) {
            session_file_put(mod, f);
            return -ENOMEM;
        }
    }
    *ret_use = u;
    return 0;
}

void session_use_put(struct session_module *mod, struct session_use *u)
{
    struct session_file *f = u->f;

    session_mark_check(mod, u);
    if (u->n_opens || u->lease.kind != MSG_LEASE_NONE || u->held || u->mark != MARK_NONE)
        return;
    session_recall_end(u);
    list_remove(&u->of_session);
    list_remove(&u->of_file);
    hmap_remove(&mod->uses, &u->by_key);
    mem_free(u);
    session_file_changed(mod, f);
    session_file_put(mod, f);
}

void session_use_drop(struct session_module *mod, struct session_use *u)
{
    struct session_file *f = u->f;

    if (u->held)
        u->s->n_held--;
    u->held = 0;
    session_lease_set(mod, u, MSG_LEASE_NONE, 0);
    while (!list_empty(&u->opens)) {
        struct session_open *o = list_entry(u->opens.next, struct session_open, of_use);

        session_open_detach(o);
        if (o->users == 0) /* else finish() frees it */
            session_open_free(mod, o);
    }
    session_mark_forget(mod, u);
    session_orphan_check(mod, f);
    session_use_put(mod, u);
}

void session_lease_set(struct session_module *mod, struct session_use *u, enum msg_lease kind,
                       uint64_t seq)
{
    bool less = kind < u->lease.kind;

    u->s->n_leases -= u->lease.kind != MSG_LEASE_NONE;
    u->s->n_leases += kind != MSG_LEASE_NONE;
    u->lease = (struct session_grant){kind, kind == MSG_LEASE_NONE ? 0 : seq};
    if (u->told.kind > kind)
        u->told = u->lease;
    if (kind != MSG_LEASE_WRITE)
        u->growth = false;
    if (less) {
        session_recall_end(u);
        session_file_changed(mod, u->f);
    }
}

void session_lease_told(struct session_use *u, struct session_grant told)
{
    if (told.seq != u->told.seq)
        u->recall_sent = false; /* with the tick */
    u->told = told;
}

/* ---- opens ---- */

struct session_open *session_open_find(struct session_module *mod, uint64_t id)
{
    for (struct hmap_node *n = hmap_first(&mod->opens, hash_near(id, 0)); n; n = hmap_next(n)) {
        struct session_open *o = container_of(n, struct session_open, by_id);

        if (o->id == id)
            return o;
    }
    return NULL;
}

struct session_open *session_open_new(struct session_module *mod, struct session *s, uint64_t id,
                                      uint32_t flags)
{
    struct session_open *o;

    if (mod->opens.count >= OPENS_MAX || s->n_opens >= SESSION_OPENS_MAX) {
        stat_inc(&mod->stats.refused);
        return NULL;
    }
    o = mem_zalloc(sizeof *o);
    if (!o)
        return NULL;
    o->id = id;
    o->session = s->id;
    o->flags = flags;
    list_init(&o->of_use);
    hmap_insert(&mod->opens, &o->by_id, hash_near(id, 0));
    stat_gauge_add(&mod->stats.opens, 1);
    return o;
}

void session_open_attach(struct session_open *o, struct session_use *u)
{
    o->use = u;
    list_push_back(&u->opens, &o->of_use);
    u->s->n_opens++;
    u->f->n_open_uses += u->n_opens++ == 0;
    if (lease_writes(o->flags)) {
        u->f->n_write_uses += u->n_write++ == 0;
        session_mark_use(u);
    }
}

void session_open_detach(struct session_open *o)
{
    struct session_use *u = o->use;

    if (!u)
        return;
    o->use = NULL;
    list_remove(&o->of_use);
    u->s->n_opens--;
    u->f->n_open_uses -= --u->n_opens == 0;
    if (lease_writes(o->flags))
        u->f->n_write_uses -= --u->n_write == 0;
}

void session_open_free(struct session_module *mod, struct session_open *o)
{
    list_remove(&o->of_use);
    hmap_remove(&mod->opens, &o->by_id);
    stat_gauge_add(&mod->stats.opens, -1);
    mem_free(o);
}

void session_open_close(struct session_module *mod, struct session_open *o)
{
    struct session_use *u = o->use;

    session_open_detach(o);
    if (o->users == 0)
        session_open_free(mod, o);
    else
        o->confirmed = false;
    if (!u)
        return;
    if (u->n_opens == 0 && !u->held) {
        session_orphan_check(mod, u->f);
        session_lease_set(mod, u, MSG_LEASE_NONE, 0);
    }
    session_use_put(mod, u);
}

struct session_open *session_open_of(struct session_module *mod, uint64_t id, uint64_t session,
                                     uint64_t ino, bool writing)
{
    struct session_open *o = session_open_find(mod, id);

    if (!o || !o->use || o->session != session || o->use->f->ino != ino)
        return NULL;
    return writing && !lease_writes(o->flags) ? NULL : o;
}

bool session_open_holds_write(struct session_module *mod, uint64_t id)
{
    const struct session_open *o = session_open_find(mod, id);

    return o && o->use && o->use->lease.kind == MSG_LEASE_WRITE;
}
