/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READDIR: a page of a directory, with attributes if asked for.
 *
 * Happy path: one scan of the directory's entries from the cookie on, in the order of their hashes,
 * without the store where only names are wanted and the writer has all of them in memory; then the
 * inodes in one sorted multi-get, because a directory's inodes are neighbours. Names with
 * one hash (rare) come in the order of their ordinals, so that every cookie is a place to go on
 * from, whatever happened to the entry it was taken from. Failure modes: -ENOTDIR, -EACCES; -EINVAL
 * when not even one entry fits. An entry whose inode is missing or whose attributes somebody else
 * is changing under a lease comes without attributes.
 *
 * Attributes cost us, the client and its kernel ten times what a name does, and the kernel asks for
 * them first, whoever reads. So the first page of a large directory with attributes is short: who
 * goes on with them loses one round trip, who reads names has them sooner.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "mds/ns/ns.h"
#include "mds/ops/readdir.h"
#include "proto/dirent_fmt.h"

#define READDIR_MIN_BYTES   512u
#define READDIR_NAME_BYTES  40u         /* of an ordinary name in a page */
#define READDIR_LARGE       4096u       /* entries of a directory, from which on its first page */
#define READDIR_FIRST_BYTES (16u * KIB) /* of attributes is no longer than this */

struct group_name {
    struct mds_dirent d;
    uint8_t len;
    char name[MSG_NAME_MAX];
};

static uint32_t record_len(uint32_t name_len, bool plus)
{
    uint32_t len = (uint32_t)sizeof(struct dirent_wire) + name_len;

    if (plus)
        len += (uint32_t)sizeof(struct dirent_attr_wire);
    return (len + 7) & ~7u;
}

/* 1: the page is full. */
static int page_add(struct readdir_page *p, uint64_t hash, const struct mds_dirent *d,
                    const void *name, uint8_t name_len)
{
    const uint64_t cookie = rec_dirent_cookie(hash, d->ordinal);
    uint32_t len = record_len(name_len, p->plus), head = sizeof(struct dirent_wire);
    uint8_t *at = p->data + p->len;

    if (cookie <= p->cookie)
        return 0;
    if (p->len + len > p->max || p->count == p->max_count) {
        p->full = true;
        return 1;
    }
    memset(at + len - 8, 0, 8); /* the padding is there */
    if (p->plus) {
        memset(at + head, 0, sizeof(struct dirent_attr_wire));
        head += (uint32_t)sizeof(struct dirent_attr_wire);
        p->entries[p->count] = (struct readdir_entry){.ino = d->ino, .offset = p->len};
    }
    memcpy(at,
           &(struct dirent_wire){.ino = htole64(d->ino),
                                 .cookie = htole64(cookie),
                                 .record_len = htole16((uint16_t)len),
                                 .type = d->type,
                                 .name_len = name_len},
           sizeof(struct dirent_wire));
    memcpy(at + head, name, name_len);
    p->len += len;
    p->count++;
    return 0;
}

static int by_ordinal(const void *a, const void *b)
{
    const struct group_name *x = a, *y = b;

    return (int)x->d.ordinal - (int)y->d.ordinal;
}

static int group_flush(struct readdir_page *p)
{
    int rc = 0;

    if (p->n_group > 1)
        qsort(p->group, p->n_group, sizeof(*p->group), by_ordinal);
    for (uint32_t i = 0; i < p->n_group && rc == 0; i++)
        rc = page_add(p, p->hash, &p->group[i].d, p->group[i].name, p->group[i].len);
    p->n_group = 0;
    return rc;
}

static int group_add(struct readdir_page *p, const struct mds_dirent *d, const void *name,
                     uint8_t len)
{
    struct group_name *g;

    if (p->n_group == p->group_cap) {
        g = mem_realloc(p->group, (p->group_cap * 2 + 4) * sizeof(*g));
        if (!g)
            return -ENOMEM;
        p->group = g;
        p->group_cap = p->group_cap * 2 + 4;
    }
    g = &p->group[p->n_group++];
    g->d = *d;
    g->len = len;
    memcpy(g->name, name, len);
    return 0;
}

/* Another name has the hash of the last one, which leaves the page again, if it is there: their
 * ordinals are not in the order of the names. */
static int group_begin(struct readdir_page *p)
{
    const uint8_t *at = p->data + p->hash_at;
    struct dirent_wire w;
    struct mds_dirent d;

    if (p->len == p->hash_at)
        return 0;
    memcpy(&w, at, sizeof(w));
    d = (struct mds_dirent){
        .ino = le64toh(w.ino), .ordinal = (uint16_t)le64toh(w.cookie), .type = w.type};
    p->len = p->hash_at;
    p->count--;
    return group_add(p, &d, at + record_len(0, p->plus), w.name_len);
}

static int name_one(void *arg, uint64_t hash, const struct mds_dirent *d, const void *name,
                    uint32_t name_len)
{
    struct readdir_page *p = arg;
    int rc;

    if (hash == p->hash) {
        rc = p->n_group ? 0 : group_begin(p);
        return rc < 0 ? rc : group_add(p, d, name, (uint8_t)name_len);
    }
    rc = p->n_group ? group_flush(p) : 0;
    if (rc)
        return rc;
    p->hash = hash;
    p->hash_at = p->len;
    return page_add(p, hash, d, name, (uint8_t)name_len);
}

static int scan_one(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    const uint8_t *k = key;
    struct mds_dirent d;
    int rc;

    if (key_len <= 15 || key_len > KEY_MAX_BYTES)
        return -AIFS_ECORRUPT;
    rc = rec_dirent_decode(value, len, &d);
    if (rc < 0)
        return rc;
    return name_one(arg, (uint64_t)be16_load(k + 9) << 32 | be32_load(k + 11), &d, k + 15,
                    (uint32_t)(key_len - 15));
}

/* The names that the page has room for; of those with attributes the inodes are looked for in the
 * same state, which is the view's. */
static int page_names(struct readdir_page *p, struct view *v, uint64_t dir)
{
    const uint64_t hash = p->cookie >> 16;
    struct key prefix, from;
    int rc = -ENOENT;

    if (!p->plus)
        rc = view_names(v, dir, hash, p->max / READDIR_NAME_BYTES, name_one, p);
    if (rc == -ENOENT) {
        key_number(&prefix, KEY_DIRENT, dir);
        key_dirent_hash(&from, dir, hash);
        rc = view_scan(v, &prefix, &from, scan_one, p);
    }
    return rc < 0 ? rc : 0;
}

static void attr_encode(const struct mds_inode *in, struct dirent_attr_wire *w)
{
    *w = (struct dirent_attr_wire){.size = htole64(in->size),
                                   .change = htole64(in->change),
                                   .truncate_gen = htole64(in->truncate_gen),
                                   .atime_sec = (int64_t)htole64((uint64_t)in->atime.sec),
                                   .mtime_sec = (int64_t)htole64((uint64_t)in->mtime.sec),
                                   .ctime_sec = (int64_t)htole64((uint64_t)in->ctime.sec),
                                   .btime_sec = (int64_t)htole64((uint64_t)in->btime.sec),
                                   .atime_nsec = htole32(in->atime.nsec),
                                   .mtime_nsec = htole32(in->mtime.nsec),
                                   .ctime_nsec = htole32(in->ctime.nsec),
                                   .btime_nsec = htole32(in->btime.nsec),
                                   .mode = htole32(in->mode),
                                   .nlink = htole32(in->nlink),
                                   .uid = htole32(in->uid),
                                   .gid = htole32(in->gid),
                                   .rdev = htole32(in->rdev),
                                   .flags = htole32(INODE_FLAGS_TOLD(in))};
}

static int by_ino(const void *a, const void *b)
{
    const struct readdir_entry *x = a, *y = b;

    return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static int page_attrs(struct readdir_page *p, struct view *v)
{
    enum { PIECE = 64 };
    struct mds_inode inodes[PIECE];
    uint64_t inos[PIECE];
    bool found[PIECE];

    qsort(p->entries, p->count, sizeof(*p->entries), by_ino);
    for (uint32_t i = 0; i < p->count; i += PIECE) {
        uint32_t n = MIN(p->count - i, (uint32_t)PIECE);
        int rc;

        for (uint32_t j = 0; j < n; j++)
            inos[j] = p->entries[i + j].ino;
        rc = view_inodes(v, n, inos, inodes, found);
        if (rc < 0)
            return rc;
        for (uint32_t j = 0; j < n; j++) {
            uint8_t *at = p->data + p->entries[i + j].offset;
            struct dirent_attr_wire w;

            if (!found[j] || (p->unsure && p->unsure(p->arg, &inodes[j])))
                continue;
            attr_encode(&inodes[j], &w);
            if (p->keep)
                w.flags |= htole32(p->keep(p->arg, &inodes[j]));
            memcpy(at + sizeof(struct dirent_wire), &w, sizeof(w));
            at[offsetof(struct dirent_wire, has_attr)] = 1;
        }
    }
    return 0;
}

int readdir_page_fill(struct readdir_page *p, struct view *v, uint64_t dir)
{
    int rc;

    p->max_count = p->max / record_len(1, p->plus) + 1;
    p->data = mem_alloc(p->max);
    p->entries = p->plus ? mem_array(p->max_count, sizeof(*p->entries)) : NULL;
    if (!p->data || (p->plus && !p->entries))
        return -ENOMEM;
    rc = page_names(p, v, dir);
    if (rc == 0 && !p->full)
        rc = group_flush(p);
    if (rc >= 0 && p->full && p->count == 0)
        rc = -EINVAL;
    if (rc >= 0 && p->plus)
        rc = page_attrs(p, v);
    return rc < 0 ? rc : 0;
}

void readdir_page_fini(struct readdir_page *p)
{
    mem_free(p->data);
    mem_free(p->entries);
    mem_free(p->group);
}

struct unsure_arg {
    struct mds *mds;
    uint64_t session;
    uint64_t dir; /* that the session is alone with; 0 */
};

static bool is_unsure(void *arg, const struct mds_inode *in)
{
    const struct unsure_arg *u = arg;

    return (S_ISREG(in->mode) && u->mds->session_ops->is_writing(u->mds, u->session, in->ino)) ||
           u->mds->session_ops->alone_elsewhere(u->mds, u->session, in->ino);
}

/* MSG_ATTR_* that come with it. */
static uint32_t may_keep(void *arg, const struct mds_inode *in)
{
    const struct mds_session_ops *s;
    const struct unsure_arg *u = arg;

    s = u->mds->session_ops;
    if (!s->watch(u->mds, u->session, in->ino, &in->btime, false))
        return 0;
    return u->dir && s->alone_entry(u->mds, u->session, u->dir, in->ino)
               ? MSG_ATTR_KEPT | MSG_ATTR_ALONE
               : MSG_ATTR_KEPT;
}

/* Before its entries: what each of them is told rests on it. */
static bool keep_alone(struct mds_op *o, const struct msg_readdir_req *req)
{
    const struct mds_session_ops *s = o->mds->session_ops;
    uint64_t session = o->req->header.session;

    return req->alone && req->plus && s->watch(o->mds, session, req->ino, NULL, false) &&
           s->alone_dir(o->mds, session, req->ino);
}

uint32_t readdir_page_bytes(const struct msg_readdir_req *req, uint64_t entries)
{
    uint32_t max = MIN(MAX(req->max_bytes, READDIR_MIN_BYTES), MSG_BULK_MAX);
    bool first = req->cookie == 0 && req->plus && !req->alone;

    return first && entries > READDIR_LARGE ? MIN(max, READDIR_FIRST_BYTES) : max;
}

static int readdir_check(struct view *v, struct rpc_req *r, uint64_t *ret_parent, uint32_t *ret_max)
{
    const struct msg_readdir_req *req = r->msg;
    struct mds_inode dir;
    int rc = view_inode(v, req->ino, &dir);

    if (rc < 0)
        return rc;
    if (!S_ISDIR(dir.mode))
        return -ENOTDIR;
    rc = op_acl(v, &r->arena, &dir);
    if (rc == 0)
        rc = ns_access(&dir, &req->cred, NS_READ);
    if (rc == 0)
        rc = view_parent(v, req->ino, ret_parent);
    if (rc == 0 && *ret_parent == 0)
        *ret_parent = req->ino;
    *ret_max = readdir_page_bytes(req, dir.entries);
    return rc;
}

static void page_released(void *arg)
{
    mem_free(arg);
}

void op_readdir(struct mds *m, struct rpc_req *r)
{
    const struct msg_readdir_req *req = r->msg;
    struct mds_op *o = op_begin_at(m, r, req->ino);
    struct unsure_arg u = {.mds = m, .session = r->header.session};
    struct readdir_page p = {
        .cookie = req->cookie, .plus = req->plus, .unsure = is_unsure, .keep = may_keep, .arg = &u};
    struct msg_readdir_rep rep = {0};
    struct iovec iov;
    struct view v;
    int rc;

    if (!o)
        return;
    view_pin(o->shard, &v);
    rc = readdir_check(&v, r, &rep.parent, &p.max);
    rep.alone = rc == 0 && keep_alone(o, req);
    u.dir = rep.alone ? req->ino : 0;
    if (rc == 0)
        rc = readdir_page_fill(&p, &v, req->ino);
    view_unpin(&v);
    if (rc == 0)
        op_keep(o, req->ino, RPC_FLAG_KEPT_DIR, NULL);
    if (rc < 0 || p.len == 0) {
        rep.eof = true;
        op_reply(o, rc, rc == 0 ? &rep : NULL);
    } else {
        rep.count = p.count;
        rep.eof = !p.full;
        iov = (struct iovec){.iov_base = p.data, .iov_len = p.len};
        op_end(o);
        rpc_reply_bulk(r, 0, &rep, &iov, 1, page_released, p.data);
        p.data = NULL;
    }
    readdir_page_fini(&p);
}
