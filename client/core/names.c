/* SPDX-License-Identifier: Apache-2.0 */
/* Name cache: (parent, name) → inode or "does not exist", believed for a short plain time, bounded,
 * least recently used first out. Nothing here can fail for the caller: what does not fit is not
 * cached. */
#include "client/core/core_int.h"

int names_init(struct core *c)
{
    list_init(&c->name_lru);
    c->max_names = (uint32_t)MIN(c->o.memory_limit / 16 / 160, 1u << 20);
    return hmap_init(&c->names, 1024);
}

static void entry_free(struct core *c, struct name_entry *e)
{
    hmap_remove(&c->names, &e->node);
    list_remove(&e->lru);
    c->n_names--;
    mem_free(e);
}

void names_clear(struct core *c)
{
    while (!list_empty(&c->name_lru))
        entry_free(c, list_entry(c->name_lru.next, struct name_entry, lru));
}

void names_fini(struct core *c)
{
    names_clear(c);
    hmap_fini(&c->names);
}

static struct name_entry *find(struct core *c, uint64_t parent, const char *name, uint32_t len)
{
    struct hmap_node *n;

    for (n = hmap_first(&c->names, hash_bytes(name, len, parent)); n; n = hmap_next(n)) {
        struct name_entry *e = container_of(n, struct name_entry, node);

        if (e->parent == parent && e->len == len && memcmp(e->name, name, len) == 0)
            return e;
    }
    return NULL;
}

void names_drop(struct core *c, uint64_t parent, const char *name, uint32_t len)
{
    struct name_entry *e = find(c, parent, name, len);

    if (e)
        entry_free(c, e);
}

void names_put(struct core *c, uint64_t parent, const char *name, uint32_t len, uint64_t ino)
{
    uint64_t believed = ino ? c->o.entry_ns : c->o.negative_ns;
    struct name_entry *e;

    names_drop(c, parent, name, len);
    if (!believed || len > MSG_NAME_MAX)
        return;
    if (c->n_names >= c->max_names)
        entry_free(c, list_entry(c->name_lru.next, struct name_entry, lru));
    e = mem_alloc(sizeof *e + len);
    if (!e)
        return;
    e->parent = parent;
    e->ino = ino;
    e->expire_ns = reactor_now_ns(c->reactor) + believed;
    e->len = (uint16_t)len;
    memcpy(e->name, name, len);
    hmap_insert(&c->names, &e->node, hash_bytes(name, len, parent));
    list_push_back(&c->name_lru, &e->lru);
    c->n_names++;
}

const struct name_entry *names_get(struct core *c, uint64_t parent, const char *name, uint32_t len)
{
    struct name_entry *e = find(c, parent, name, len);

    if (e && reactor_now_ns(c->reactor) >= e->expire_ns) {
        entry_free(c, e);
        return NULL;
    }
    return e;
}
