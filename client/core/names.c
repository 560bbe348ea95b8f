/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name cache: (parent, name) → inode or "does not exist", kept under the lease on the directory:
 * until the server says that the name changes, or the session ends. Bounded, oldest first out. A
 * directory whose every name is here is complete: a name that is not here does not exist.
 *
 * Every entry remembers what was the latest event when it was learned (core.events_seen), so that
 * an answer that was overtaken by a change, of ours or of others, is not believed. Nothing here can
 * fail for the caller: what does not fit is not cached.
 *
 * What a listing brings gets its place in the table of all names when a name is asked for, or goes:
 * many who list a directory never do.
 */
#include "client/core/core_int.h"

/* A few milliseconds for who asks for the first name after them. */
#define NAMES_LISTED_MAX 32768u

int names_init(struct core *c)
{
    c->max_names = (uint32_t)MIN(c->o.memory_limit / 16 / 160, 1u << 20);
    return hmap_init(&c->names, 1024);
}

/* Those that were listed and not asked for since get their places in the table. */
static void index_listed(struct core *c)
{
    while (c->listed.first) {
        struct hmap_node *n = c->listed.first;
        struct name_entry *e = container_of(n, struct name_entry, node);

        c->listed.first = n->next;
        hmap_insert(&c->names, n, hash_bytes(e->name, e->len, e->dir->ino));
    }
    c->listed.n = 0;
}

static void entry_free(struct core *c, struct name_entry *e)
{
    index_listed(c);
    e->dir->forgot_event = MAX(e->dir->forgot_event, e->event);
    hmap_remove(&c->names, &e->node);
    list_remove(&e->lru);
    list_remove(&e->of_dir);
    c->n_names--;
    mem_free(e);
}

void names_clear(struct core *c)
{
    while (!list_empty(&c->name_lru)) {
        struct name_entry *e = list_entry(c->name_lru.next, struct name_entry, lru);

        e->dir->complete = false;
        entry_free(c, e);
    }
}

void names_drop_dir(struct core_inode *dir)
{
    relist_forget(dir->core, dir->ino);
    dir->complete = false;
    while (!list_empty(&dir->names))
        entry_free(dir->core, list_entry(dir->names.next, struct name_entry, of_dir));
}

void names_fini(struct core *c)
{
    names_clear(c);
    relist_fini(c);
    hmap_fini(&c->names);
}

static struct name_entry *find_hash(struct core *c, uint64_t parent, const char *name, uint32_t len,
                                    uint64_t hash)
{
    struct hmap_node *n;

    index_listed(c);
    for (n = hmap_first(&c->names, hash); n; n = hmap_next(n)) {
        struct name_entry *e = container_of(n, struct name_entry, node);

        if (e->dir->ino == parent && e->len == len && memcmp(e->name, name, len) == 0)
            return e;
    }
    return NULL;
}

static struct name_entry *find(struct core *c, uint64_t parent, const char *name, uint32_t len)
{
    return find_hash(c, parent, name, len, hash_bytes(name, len, parent));
}

/* No answer from before now is believed about this directory, and it has names that are not here.
 */
static void forget_some(struct core_inode *dir)
{
    dir->complete = false;
    dir->names_event = ++dir->core->events_seen;
}

void names_drop(struct core *c, uint64_t parent, const char *name, uint32_t len, bool told)
{
    struct core_inode *dir = inode_find(c, parent), *i;
    struct name_entry *e = find(c, parent, name, len);

    relist_forget(c, parent);
    if (dir)
        forget_some(dir);
    if (!e)
        return;
    i = inode_find(c, e->ino);
    if (i)
        i->listed_until_ns = 0;
    e->dir->kernel_has_more |= !told;
    entry_free(c, e);
}

/* The kernel may go on believing it, and will be told when it changes: the server does not know
 * that we have forgotten. */
static void evict_oldest(struct core *c)
{
    struct name_entry *e = list_entry(c->name_lru.next, struct name_entry, lru);

    c->names_forgotten = true;
    forget_some(e->dir);
    entry_free(c, e);
}

/* A name that is not here yet, and not in the table either. */
static struct name_entry *make(struct core *c, struct core_inode *dir, const char *name,
                               uint32_t len, uint64_t ino)
{
    struct name_entry *e;

    if (c->n_names >= c->max_names)
        evict_oldest(c);
    e = len <= MSG_NAME_MAX ? mem_alloc(sizeof *e + len) : NULL;
    if (!e) {
        forget_some(dir);
        return NULL;
    }
    e->dir = dir;
    e->ino = ino;
    e->event = c->events_seen;
    e->len = (uint16_t)len;
    memcpy(e->name, name, len);
    list_push_back(&c->name_lru, &e->lru);
    list_push_back(&dir->names, &e->of_dir);
    c->n_names++;
    return e;
}

static bool add(struct core *c, struct core_inode *dir, const char *name, uint32_t len,
                uint64_t hash, uint64_t ino)
{
    struct name_entry *e = make(c, dir, name, len, ino);

    if (e)
        hmap_insert(&c->names, &e->node, hash);
    return e != NULL;
}

/* Who lists a large directory may never ask for one of its names. */
static bool add_listed(struct core *c, struct core_inode *dir, const char *name, uint32_t len,
                       uint64_t ino)
{
    struct name_entry *e;

    if (c->listed.n >= NAMES_LISTED_MAX)
        return add(c, dir, name, len, hash_bytes(name, len, dir->ino), ino);
    e = make(c, dir, name, len, ino);
    if (!e)
        return false;
    e->node.next = c->listed.first;
    c->listed.first = &e->node;
    c->listed.n++;
    return true;
}

static bool put(struct core *c, struct core_inode *dir, struct name_entry *e, const char *name,
                uint32_t len, uint64_t hash, uint64_t ino)
{
    dir->list_alone = false;
    if (!e)
        return add(c, dir, name, len, hash, ino);
    e->ino = ino;
    e->event = c->events_seen;
    return true;
}

static bool is_dots(const char *name, uint32_t len)
{
    return (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
}

/* May this answer be believed about names of dir that are not here? */
static bool may_learn(const struct core_inode *dir, const struct answer *a, const char *name,
                      uint32_t len)
{
    return (a->kept & RPC_FLAG_KEPT_DIR) && !is_dots(name, len) && answer_current(dir->core, a) &&
           a->event >= dir->inval_event && a->event >= dir->names_event;
}

static bool learn(struct core_inode *dir, const struct answer *a, const char *name, uint32_t len,
                  uint64_t ino)
{
    struct core *c = dir->core;
    uint64_t hash;
    struct name_entry *e;

    if (!may_learn(dir, a, name, len) || (ino && behind_leaving(c, ino)))
        return false;
    hash = hash_bytes(name, len, dir->ino);
    e = find_hash(c, dir->ino, name, len, hash);
    if (e && e->event > a->event)
        return e->ino == ino; /* we have changed it since */
    return put(c, dir, e, name, len, hash, ino);
}

bool names_learn(struct core *c, const struct answer *a, uint64_t parent, const char *name,
                 uint32_t len, uint64_t ino)
{
    struct core_inode *dir = a->kept & RPC_FLAG_KEPT_DIR ? inode_get(c, parent) : NULL;
    bool believed;

    if (!dir)
        return false;
    believed = learn(dir, a, name, len, ino);
    inode_put(dir);
    return believed;
}

/* What we know of it, or have forgotten, may be what a change has made that was asked for as well
 * and is answered already: nobody knows which of the two was made first. */
static bool is_overtaken(const struct core_inode *dir, const struct answer *a,
                         const struct name_entry *e, uint64_t ino)
{
    return e ? e->event > a->event && e->ino != ino : dir->forgot_event > a->event;
}

bool names_changed(struct core *c, const struct answer *a, uint8_t flag, uint64_t parent,
                   const char *name, uint32_t len, uint64_t ino)
{
    struct core_inode *dir = inode_get(c, parent);
    bool believed = dir && (a->kept & flag) && answer_current(c, a) && a->event >= dir->inval_event;
    uint64_t hash = hash_bytes(name, len, parent);
    struct name_entry *e = find_hash(c, parent, name, len, hash);

    relist_forget(c, parent);
    c->events_seen++;
    if (believed && !is_overtaken(dir, a, e, ino)) {
        believed = put(c, dir, e, name, len, hash, ino);
    } else {
        believed = false;
        names_drop(c, parent, name, len, false);
    }
    if (dir)
        inode_put(dir);
    return believed;
}

void names_set(struct core_inode *dir, const char *name, uint32_t len, uint64_t ino)
{
    struct core *c = dir->core;
    uint64_t hash = hash_bytes(name, len, dir->ino);

    relist_forget(c, dir->ino);
    c->events_seen++;
    (void)put(c, dir, find_hash(c, dir->ino, name, len, hash), name, len, hash, ino);
}

const struct name_entry *names_get(struct core *c, uint64_t parent, const char *name, uint32_t len)
{
    return session_believed(c) ? find(c, parent, name, len) : NULL;
}

bool names_is_absent(struct core *c, uint64_t parent, const char *name, uint32_t len, bool keep)
{
    struct core_inode *dir = inode_find(c, parent);
    uint64_t hash;

    if (!dir || !dir->complete || !session_believed(c) || is_dots(name, len))
        return false;
    hash = hash_bytes(name, len, parent);
    if (find_hash(c, parent, name, len, hash))
        return false;
    return !keep || put(c, dir, NULL, name, len, hash, 0);
}

/* ---- directories that are complete ---- */

void names_made_empty(const struct mds_op *op, struct core_inode *dir)
{
    struct answer a = answer_of(op);

    if ((a.kept & RPC_FLAG_KEPT_INODE) && answer_current(dir->core, &a) &&
        a.event >= dir->inval_event && a.event >= dir->names_event && list_empty(&dir->names))
        dir->complete = true;
}

bool names_is_empty(const struct core_inode *dir)
{
    struct list *l;

    if (!dir->complete || !session_believed(dir->core))
        return false;
    list_for_each (l, &dir->names)
        if (list_entry(l, const struct name_entry, of_dir)->ino)
            return false;
    return true;
}

bool names_listed(struct core_inode *dir, const struct answer *a, uint64_t from, uint64_t to,
                  const char *name, uint32_t len, uint64_t ino)
{
    bool believed, leaving = behind_leaving(dir->core, ino);

    if (from == 0) {
        dir->list_event = a->event;
        dir->list_next = 0;
        dir->list_alone = list_empty(&dir->names);
    }
    /* Nothing was known of it, and cookies ascend: the name is not here yet. */
    if (dir->list_alone && from == dir->list_next && to > from)
        believed =
            !leaving && may_learn(dir, a, name, len) && add_listed(dir->core, dir, name, len, ino);
    else
        believed = learn(dir, a, name, len, ino);
    if (from != dir->list_next || (!believed && !leaving))
        dir->list_next = UINT64_MAX; /* has a gap: from the start again */
    else
        dir->list_next = to;
    return believed;
}

void names_list_end(struct core_inode *dir, const struct answer *a, uint64_t from)
{
    if (from == dir->list_next && (a->kept & RPC_FLAG_KEPT_DIR) && a->event >= dir->list_event &&
        dir->list_event >= dir->inval_event && dir->list_event >= dir->names_event &&
        dir->list_event >= dir->core->unknown_event)
        dir->complete = true;
}
