/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing directories: one READDIR is one page, which arrives in a buffer of its own and is walked
 * in place. With attributes (plus) the walk also fills the inode and name caches. A malformed page
 * ends the walk with -AIFS_EPROTO; nothing behind the malformed record is read.
 */
#include "client/core/core_int.h"
#include "common/base/bytes.h"
#include "proto/dirent_fmt.h"

#define KEPT_MAX_BYTES (16u * MIB)
#define LISTED_LEFT_NS (1 * NS_PER_S) /* who lists now looks at the files a moment later */

void dir_page_set(struct core_req *q, struct buf *b, uint32_t len, const struct answer *a)
{
    q->p.n1 = a->event;
    q->p.n2 = a->kept;
    q->p.list_from = q->p.offset;
    q->p.pins[0] = b;
    q->p.n_pins = 1;
    q->p.len = len;
    q->p.progress = 0;
}

void dir_page_take(struct core_req *q, struct mds_op *op)
{
    const struct msg_readdir_rep *rep = op->call.rep;
    struct answer a = answer_of(op);
    struct core_inode *dir = rep->alone ? inode_get(op->core, op->msg.readdir.ino) : NULL;

    if (dir) {
        behind_told_dir(dir, &a);
        inode_put(dir);
    }
    dir_page_set(q, op->buf, op->call.bulk_in_len, &a);
    op->buf = NULL;
    q->out.dir.parent = rep->parent;
    q->out.dir.eof = rep->eof;
}

/* q has its page. */
static void page_listed(struct core_req *q)
{
    struct core_inode *dir = inode_find(q->p.core, q->p.ino);

    if (dir)
        atime_read(dir);
    req_finish(q, 0);
}

static void page_here(struct mds_op *op, int status)
{
    const struct msg_readdir_rep *rep = op->call.rep;
    struct core_req *q = op->q;

    if (!q)
        return;
    if (status) {
        req_finish(q, status);
        return;
    }
    dir_page_take(q, op);
    if (rep->alone) {
        struct answer a = answer_of(op);

        relist_keep(q, &a);
    }
    page_listed(q);
}

static void page_get(struct core_req *q)
{
    struct core *c = q->p.core;
    struct buf *b = mem_get(c, q->p.len, MEM_GROW);
    struct mds_op *op;
    bool alone;

    if (!b) {
        req_wait(q, "waits for memory", req_finish);
        mem_wait(c, q, page_get);
        return;
    }
    alone = behind_wishes(c, &q->cred);
    if (alone) /* with attributes, wanted or not: it spares the calls that would look each name up
                */
        q->p.flags = DIR_PLUS;
    if (alone && relist_take(q, b)) {
        page_listed(q);
        return;
    }
    op = mds_op_new(c, RPC_OP_READDIR, q, page_here);
    if (!op) {
        mem_put(c, b);
        req_finish(q, -ENOMEM);
        return;
    }
    op->buf = b;
    op->iov = (struct iovec){b->data, b->size_bytes};
    op->call.bulk_in = &op->iov;
    op->call.n_bulk_in = 1;
    op->msg.readdir = (struct msg_readdir_req){
        .ino = q->p.ino,
        .cookie = q->p.offset,
        .max_bytes = q->p.len,
        .plus = q->p.flags != 0,
        .alone = alone,
    };
    mds_op_cred(op, &op->msg.readdir.cred, &q->cred);
    req_call(q, op, "waits for the metadata server: READDIR");
}

void core_readdir(struct core *c, struct core_req *q, uint64_t ino, uint64_t cookie,
                  uint32_t max_bytes, bool plus)
{
    req_begin(c, q, "readdir", ino);
    if (!core_usable(c, q))
        return;
    q->p.offset = cookie;
    q->p.len = MIN(MAX(max_bytes, 1024u), CORE_IO_MAX);
    q->p.flags = plus ? DIR_PLUS : 0;
    page_get(q);
}

static void attr_from_wire(const struct dirent_attr_wire *w, uint64_t ino, struct msg_attr *a)
{
    *a = (struct msg_attr){
        .ino = ino,
        .mode = le32toh(w->mode),
        .nlink = le32toh(w->nlink),
        .uid = le32toh(w->uid),
        .gid = le32toh(w->gid),
        .rdev = le32toh(w->rdev),
        .flags = le32toh(w->flags),
        .size = le64toh(w->size),
        .atime = {(int64_t)le64toh((uint64_t)w->atime_sec), le32toh(w->atime_nsec)},
        .mtime = {(int64_t)le64toh((uint64_t)w->mtime_sec), le32toh(w->mtime_nsec)},
        .ctime = {(int64_t)le64toh((uint64_t)w->ctime_sec), le32toh(w->ctime_nsec)},
        .btime = {(int64_t)le64toh((uint64_t)w->btime_sec), le32toh(w->btime_nsec)},
        .change = le64toh(w->change),
        .truncate_gen = le64toh(w->truncate_gen),
    };
}

/* Does the kernel believe what it was told of i by a listing before this one? If it does not after
 * all (it may forget names whenever it likes), it asks. */
static bool kernel_knows(const struct core_inode *i)
{
    const struct core *c = i->core;
    struct msg_time atime = atime_told(i);

    return i->listed_until_ns > reactor_now_ns(c->reactor) + LISTED_LEFT_NS &&
           i->listed_void == c->told_void && (i->attr.nlink == 1 || S_ISDIR(i->attr.mode)) &&
           i->told_change == i->attr.change && i->told_atime.sec == atime.sec &&
           i->told_atime.nsec == atime.nsec && inode_attr_fresh(i);
}

/* What the kernel is told of i with this page, as an entry of dir, unless it knows. */
static void entry_told(struct core_inode *i, uint64_t dir, struct core_dirent *e)
{
    const struct core *c = i->core;
    bool knows = i->parent == dir && kernel_knows(i);

    inode_entry(i, &e->entry);
    i->parent = dir;
    e->known = knows;
    if (knows)
        return;
    i->listed_until_ns =
        reactor_now_ns(c->reactor) + MIN(e->entry.attr_valid_ns, core_name_valid_ns(c, true));
    i->listed_void = c->told_void;
}

/* For how long it may believe the name; if not at all it asks for the attributes with that. */
static void entry_valid(const struct core *c, struct core_dirent *e, bool believed)
{
    struct core_inode *i = believed ? NULL : inode_find(c, e->ino);

    e->entry.entry_valid_ns = core_name_valid_ns(c, believed);
    e->known = e->known && believed;
    if (i)
        i->listed_until_ns = 0;
}

static void entry_with_attr(struct core_req *q, struct core_dirent *e,
                            const struct dirent_attr_wire *w, const struct answer *page)
{
    struct core *c = q->p.core;
    struct core_inode *i = inode_get(c, e->ino);
    struct answer answer = *page;
    struct msg_attr a;
    bool alone;

    attr_from_wire(w, e->ino, &a);
    alone = (a.flags & MSG_ATTR_ALONE) && (a.flags & MSG_ATTR_KEPT);
    e->has_entry = true;
    if (!i) {
        e->entry = (struct core_entry){.ino = e->ino, .attr = a};
        return;
    }
    answer.kept = a.flags & MSG_ATTR_KEPT ? RPC_FLAG_KEPT_INODE : 0;
    a.flags &= ~(MSG_ATTR_KEPT | MSG_ATTR_ALONE);
    inode_merge_attr(i, &a);
    inode_keep(i, &answer, RPC_FLAG_KEPT_INODE, &a);
    if (alone)
        behind_told_entry(i, q->p.ino, &answer);
    if (q->p.flags & DIR_QUIET)
        i->parent = q->p.ino;
    else
        entry_told(i, q->p.ino, e);
    inode_put(i);
}

/* The name of an entry, and what it adds to the knowledge of the whole directory. */
static void entry_name(struct core_req *q, struct core_dirent *e, const struct answer *page)
{
    struct core *c = q->p.core;
    struct core_inode *dir = inode_get(c, q->p.ino);
    bool believed = false;

    if (dir) {
        believed = names_listed(dir, page, q->p.list_from, e->cookie, e->name, e->name_len, e->ino);
        inode_put(dir);
    }
    if (e->has_entry)
        entry_valid(c, e, believed);
    q->p.list_from = e->cookie;
}

static int page_end(struct core_req *q, const struct answer *page)
{
    struct core_inode *dir = inode_find(q->p.core, q->p.ino);

    if (dir && q->out.dir.eof)
        names_list_end(dir, page, q->p.list_from);
    return 0;
}

int core_dirent_next(struct core_req *q, struct core_dirent *ret_entry)
{
    const uint8_t *at = q->p.pins[0]->data + q->p.progress;
    uint32_t left = q->p.len - q->p.progress, head = sizeof(struct dirent_wire), len;
    struct answer page = {.event = q->p.n1, .kept = (uint8_t)q->p.n2};
    struct dirent_attr_wire attr;
    struct dirent_wire w;

    if (!left)
        return page_end(q, &page);
    if (left < sizeof w)
        return -AIFS_EPROTO;
    memcpy(&w, at, sizeof w);
    len = le16toh(w.record_len);
    if (q->p.flags || w.has_attr) /* a page with attributes has room for them in every record */
        head += (uint32_t)sizeof attr;
    if (len > left || len % 8 || !w.name_len || len < head + w.name_len || !w.ino)
        return -AIFS_EPROTO;
    *ret_entry = (struct core_dirent){
        .ino = le64toh(w.ino),
        .cookie = le64toh(w.cookie),
        .type = w.type,
        .name_len = w.name_len,
        .name = (const char *)at + head,
    };
    if (memchr(ret_entry->name, '/', w.name_len) || memchr(ret_entry->name, 0, w.name_len))
        return -AIFS_EPROTO;
    if (w.has_attr) {
        memcpy(&attr, at + sizeof w, sizeof attr);
        entry_with_attr(q, ret_entry, &attr, &page);
    }
    entry_name(q, ret_entry, &page);
    q->p.progress += len;
    return 1;
}

void core_dirent_again(const struct core_req *q, struct core_dirent *e)
{
    struct core *c = q->p.core;
    const struct name_entry *n = e->has_entry ? names_get(c, q->p.ino, e->name, e->name_len) : NULL;
    struct core_inode *i = n && n->ino == e->ino ? inode_find(c, e->ino) : NULL;

    e->has_entry = i && inode_attr_fresh(i) && !e->known;
    if (!e->has_entry)
        return;
    inode_entry(i, &e->entry);
    e->entry.entry_valid_ns = core_name_valid_ns(c, true);
}

uint64_t core_readdir_last(const struct core_req *q)
{
    const uint8_t *page = q->p.pins[0]->data;
    uint64_t cookie = 0;
    struct dirent_wire w;

    for (uint32_t at = 0; q->p.len - at >= sizeof w; at += le16toh(w.record_len)) {
        memcpy(&w, page + at, sizeof w);
        if (le16toh(w.record_len) < sizeof w || le16toh(w.record_len) > q->p.len - at)
            return 0;
        cookie = le64toh(w.cookie);
    }
    return cookie;
}

uint32_t core_readdir_bytes(const struct core_req *q)
{
    return q->p.n_pins ? q->p.pins[0]->size_bytes : 0;
}

uint64_t core_readdir_memory(const struct core *c)
{
    return MIN(c->o.memory_limit / 16, KEPT_MAX_BYTES);
}

void core_readdir_done(struct core_req *q)
{
    if (q->p.n_pins)
        mem_put(q->p.core, q->p.pins[0]);
    q->p.n_pins = 0;
}
