/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check itself. Inodes are kept in a hash by number with what the record says (mode, nlink,
 * entries, layout) and what is counted (names seen, names in it); after the last record the two
 * must agree, and every inode must be reachable from the root through parents without a loop.
 * Chunks are then held against the inode's size and layout.
 */
#include "tools/fsck/fsck.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/err.h"
#include "common/base/hmap.h"
#include "common/base/mem.h"
#include "mds/ns/acl.h"
#include "mds/session/given.h"
#include "mds/store/key_fmt.h"
#include "mds/store/rec.h"
#include "proto/layout.h"
#include "proto/number.h"

struct node {
    struct hmap_node by_ino;
    uint64_t ino, size, entries, parent;
    struct msg_layout layout;
    uint32_t mode, nlink, flags, n_xattrs;
    uint32_t names, subdirs, xattrs; /* counted */
    uint64_t names_in;
    uint64_t in_dir; /* the first name seen of it is there */
    char *name;      /* NULL: none seen, or it could not be kept */
    bool known, orphan, has_inline, queued;
    uint32_t acls; /* INODE_ACL, INODE_DEFAULT_ACL: lists there are */
    bool removed;  /* a directory whose name was taken away with all that is in it */
    bool reachable;
};

/* A session, which gives numbers to its files itself (proto/number.h). */
struct giver {
    struct hmap_node by_session;
    uint64_t session;
    struct given_rec used; /* all zero: none */
};

struct fsck {
    const struct cluster_map *map;
    fsck_report_fn *report;
    void *arg;
    struct hmap nodes, givers;
    uint64_t highest;  /* of the server's own numbers */
    uint64_t sessions; /* the latest one's number */
    struct fsck_counts counts;
};

int fsck_create(const struct cluster_map *map, fsck_report_fn *report, void *arg,
                struct fsck **ret_fsck)
{
    struct fsck *f = mem_zalloc(sizeof *f);

    if (!f)
        return -ENOMEM;
    f->map = map;
    f->report = report;
    f->arg = arg;
    if (hmap_init(&f->nodes, 1024) < 0) {
        mem_free(f);
        return -ENOMEM;
    }
    if (hmap_init(&f->givers, 64) < 0) {
        hmap_fini(&f->nodes);
        mem_free(f);
        return -ENOMEM;
    }
    *ret_fsck = f;
    return 0;
}

static void givers_free(struct fsck *f)
{
    struct hmap_node *n, *next;
    size_t pos;

    hmap_for_each (n, next, pos, &f->givers) {
        hmap_remove(&f->givers, n);
        mem_free(container_of(n, struct giver, by_session));
    }
    hmap_fini(&f->givers);
}

void fsck_destroy(struct fsck *f)
{
    struct hmap_node *n, *next;
    size_t pos;

    if (!f)
        return;
    hmap_for_each (n, next, pos, &f->nodes) {
        struct node *node = container_of(n, struct node, by_ino);

        hmap_remove(&f->nodes, n);
        mem_free(node->name);
        mem_free(node);
    }
    hmap_fini(&f->nodes);
    givers_free(f);
    mem_free(f);
}

static struct node *find(struct fsck *f, uint64_t ino)
{
    for (struct hmap_node *n = hmap_first(&f->nodes, hash_u64(ino)); n; n = hmap_next(n)) {
        struct node *node = container_of(n, struct node, by_ino);

        if (node->ino == ino)
            return node;
    }
    return NULL;
}

/* From the end of buf to its front, which also ends a walk through a loop. NULL: not known up to
 * the root, or longer than what fits. */
static const char *path_of(struct fsck *f, uint64_t ino, char *buf, size_t size)
{
    size_t at = size - 1;

    buf[at] = '\0';
    while (ino != KEY_ROOT_INO) {
        const struct node *n = find(f, ino);
        size_t len = n && n->name ? strlen(n->name) : 0;

        if (len == 0 || len + 1 > at)
            return NULL;
        at -= len + 1;
        buf[at] = '/';
        memcpy(buf + at + 1, n->name, len);
        ino = n->in_dir;
    }
    return buf[at] ? buf + at : "/";
}

PRINTF_LIKE(5, 6)
static void finding(struct fsck *f, enum fsck_level level, const char *code, uint64_t ino,
                    const char *fmt, ...)
{
    char text[512], path[MSG_PATH_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (level == FSCK_DAMAGE)
        f->counts.damage++;
    else
        f->counts.notes++;
    f->report(f->arg, level, code, ino, path_of(f, ino, path, sizeof path), text);
}

/* Records of one inode come in any order relative to its own: the first mention makes the node. */
static struct node *get(struct fsck *f, uint64_t ino)
{
    struct node *node = find(f, ino);

    if (node)
        return node;
    node = mem_zalloc(sizeof *node);
    if (!node)
        return NULL;
    node->ino = ino;
    hmap_insert(&f->nodes, &node->by_ino, hash_u64(ino));
    return node;
}

static int see_inode(struct fsck *f, uint64_t ino, const void *value, size_t len)
{
    struct node *node = get(f, ino);
    struct mds_inode in;

    if (!node)
        return -ENOMEM;
    if (rec_inode_decode(ino, value, len, &in) < 0) {
        finding(f, FSCK_DAMAGE, "inode-unreadable", ino,
                "the record of inode %llu cannot be decoded", (unsigned long long)ino);
        return 0;
    }
    node->known = true;
    node->mode = in.mode;
    node->nlink = in.nlink;
    node->flags = in.flags;
    node->size = in.size;
    node->entries = in.entries;
    node->n_xattrs = in.n_xattrs;
    node->layout = in.layout;
    if (!number_is_given(ino))
        f->highest = MAX(f->highest, ino);
    f->counts.inodes++;
    if (S_ISDIR(in.mode))
        f->counts.directories++;
    else if (S_ISREG(in.mode))
        f->counts.files++;
    else if (S_ISLNK(in.mode))
        f->counts.symlinks++;
    else
        f->counts.others++;
    f->counts.inline_files += S_ISREG(in.mode) && (in.flags & INODE_INLINE);
    return 0;
}

static void node_name(struct node *node, uint64_t dir, const void *name, size_t len)
{
    if (node->name || !(node->name = mem_zalloc(len + 1)))
        return;
    memcpy(node->name, name, len);
    node->in_dir = dir;
}

static int see_name(struct fsck *f, const uint8_t *key, size_t key_len, const void *value,
                    size_t len)
{
    uint64_t parent = be64_load(key + 1);
    struct mds_dirent d;
    struct node *dir, *node;

    if (key_len <= 15 || rec_dirent_decode(value, len, &d) < 0) {
        finding(f, FSCK_DAMAGE, "dirent-unreadable", parent,
                "an entry of directory %llu cannot be decoded", (unsigned long long)parent);
        return 0;
    }
    dir = get(f, parent);
    node = get(f, d.ino);
    if (!dir || !node)
        return -ENOMEM;
    node_name(node, parent, key + 15, key_len - 15);
    f->counts.names++;
    dir->names_in++;
    node->names++;
    if (d.type == 4 /* DT_DIR */)
        dir->subdirs++;
    return 0;
}

static void see_acl(struct fsck *f, struct node *node, const uint8_t *key, size_t key_len,
                    const struct msg_bytes *acl)
{
    static const char *const names[] = {NS_ACL_ACCESS, NS_ACL_DEFAULT};
    static const uint32_t flags[] = {INODE_ACL, INODE_DEFAULT_ACL};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if (key_len - 9 != strlen(names[i]) || memcmp(key + 9, names[i], key_len - 9) != 0)
            continue;
        node->acls |= flags[i];
        if (ns_acl_check(acl) < 0 || ns_acl_is_empty(acl))
            finding(f, FSCK_DAMAGE, "acl-unreadable", node->ino, "inode %llu has a %s that is none",
                    (unsigned long long)node->ino, names[i]);
    }
}

static struct giver *giver_find(struct fsck *f, uint64_t session)
{
    for (struct hmap_node *n = hmap_first(&f->givers, hash_u64(session)); n; n = hmap_next(n)) {
        struct giver *g = container_of(n, struct giver, by_session);

        if (g->session == session)
            return g;
    }
    return NULL;
}

/* What its record, or that of its numbers, says. */
static int see_session(struct fsck *f, const uint8_t *key, size_t key_len, const void *value,
                       size_t value_len)
{
    uint64_t session = key_len == 9 ? be64_load(key + 1) : 0;
    struct giver *g = giver_find(f, session);
    struct given_rec rec;

    if (!g) {
        g = mem_zalloc(sizeof *g);
        if (!g)
            return -ENOMEM;
        g->session = session;
        hmap_insert(&f->givers, &g->by_session, hash_u64(session));
    }
    if (key[0] != KEY_GIVEN)
        return 0;
    if (value_len > UINT32_MAX || given_decode(value, (uint32_t)value_len, &rec) < 0)
        finding(f, FSCK_DAMAGE, "numbers-unreadable", 0,
                "the record of the numbers that session %llu has used cannot be decoded",
                (unsigned long long)session);
    else
        g->used = rec;
    return 0;
}

/* The number was given to a file after the snapshot: none in it is as high of the server's own, or
 * the session had not used it, though it may have used higher ones. */
static bool is_later(struct fsck *f, uint64_t ino)
{
    const struct giver *g;

    if (!number_is_given(ino))
        return ino > f->highest;
    g = giver_find(f, number_session(ino));
    return g ? !given_is_used(&g->used, number_count(ino)) : number_session(ino) > f->sessions;
}

/* What the metadata server cannot work on either: it leaves the item where it is. */
static void see_item(struct fsck *f, const uint8_t *key, size_t key_len, const void *value,
                     size_t value_len)
{
    struct mds_queue_item item;
    uint64_t ino = key_len >= 9 ? be64_load(key + 1) : 0;

    if (key_len != 9 || rec_queue_decode(value, value_len, &item) < 0)
        finding(f, FSCK_DAMAGE, "queue-unreadable", ino,
                "the item of inode %llu in queue %#x cannot be decoded", (unsigned long long)ino,
                key[0]);
}

int fsck_record(struct fsck *f, const void *key_data, size_t key_len, const void *value,
                size_t value_len)
{
    const uint8_t *key = key_data;
    struct node *node = NULL;

    if (key_len == 0)
        return 0;
    if (key[0] == KEY_DIRENT)
        return see_name(f, key, key_len, value, value_len);
    if (key[0] == KEY_SESSION || key[0] == KEY_GIVEN)
        return see_session(f, key, key_len, value, value_len);
    if (key[0] == KEY_COUNTER && key_len == 2 && key[1] == COUNTER_SESSION && value_len == 8)
        f->sessions = le64_load(value);
    if (key[0] == KEY_DESTROY || key[0] == KEY_PUNCH || key[0] == KEY_RECOVER)
        see_item(f, key, key_len, value, value_len);
    if (key[0] < KEY_INODE ||
        (key[0] > KEY_ORPHAN && key[0] != KEY_DESTROY && key[0] != KEY_PUNCH &&
         key[0] != KEY_TRASH) ||
        key_len < 9)
        return 0;
    if (key[0] == KEY_INODE)
        return see_inode(f, be64_load(key + 1), value, value_len);
    node = get(f, be64_load(key + 1));
    if (!node)
        return -ENOMEM;
    switch (key[0]) {
    case KEY_PARENT:
        if (value_len >= 8)
            node->parent = le64_load(value);
        break;
    case KEY_INLINE:
        node->has_inline = true;
        break;
    case KEY_XATTR:
        node->xattrs++;
        see_acl(f, node, key, key_len, &(struct msg_bytes){value, (uint32_t)value_len});
        f->counts.xattrs++;
        break;
    case KEY_ORPHAN:
        node->orphan = true;
        f->counts.orphans++;
        break;
    case KEY_DESTROY:
        node->queued = true;
        f->counts.destroy_queue++;
        break;
    case KEY_PUNCH:
        f->counts.punch_queue++;
        break;
    case KEY_TRASH:
        node->removed = true;
        break;
    default:
        break;
    }
    return 0;
}

/* Marks the path to the root; false on a loop or a parent that is not there. */
static bool reach(struct fsck *f, struct node *node)
{
    struct node *at = node;

    for (size_t steps = 0; at && !at->reachable; steps++) {
        if (at->ino == KEY_ROOT_INO)
            break;
        if (steps > f->counts.directories)
            return false;
        at = at->parent ? find(f, at->parent) : NULL;
    }
    if (!at)
        return false;
    for (at = node; at && !at->reachable; at = at->ino == KEY_ROOT_INO ? NULL : find(f, at->parent))
        at->reachable = true;
    return true;
}

static void check_directory(struct fsck *f, struct node *n)
{
    unsigned long long ino = n->ino;

    if (n->entries != n->names_in)
        finding(f, FSCK_DAMAGE, "entry-count", n->ino,
                "directory %llu says %llu entries and has %llu", ino,
                (unsigned long long)n->entries, (unsigned long long)n->names_in);
    if (n->removed ? n->nlink != 0 : n->nlink != 2 + n->subdirs && !n->orphan)
        finding(f, FSCK_DAMAGE, "link-count", n->ino,
                "directory %llu says %u links and has %u sub-directories", ino, n->nlink,
                n->subdirs);
    if (n->ino != KEY_ROOT_INO && n->names != !n->removed && !n->orphan)
        finding(f, FSCK_DAMAGE, "directory-names", n->ino, "directory %llu has %u names", ino,
                n->names);
    if (!n->orphan && !reach(f, n))
        finding(f, FSCK_DAMAGE, "unreachable", n->ino,
                "directory %llu cannot be reached from the root", ino);
}

/* Chunks there may have been on targets that were given up: told once per target. */
static void check_lost(struct fsck *f, const struct node *n)
{
    const struct msg_layout *l = &n->layout;
    uint64_t chunks = (n->size + l->chunk_bytes - 1) / l->chunk_bytes;

    for (uint32_t i = 0; i < l->stripe_count && i < chunks; i++) {
        const struct map_chain *c = layout_chain(l, f->map, i);
        const struct map_target *t = c ? map_target(f->map, c->targets[0]) : NULL;

        if (t && t->given_up)
            finding(f, FSCK_DAMAGE, "lost-data", n->ino,
                    "chunk %u of file %llu, and each %u chunks further on, are lost with target %u "
                    "(%s), which was given up",
                    i, (unsigned long long)n->ino, l->stripe_count, t->id, t->alias);
    }
}

static void check_other(struct fsck *f, struct node *n)
{
    unsigned long long ino = n->ino;

    if (n->nlink != n->names)
        finding(f, FSCK_DAMAGE, "link-count", n->ino, "inode %llu says %u links and has %u names",
                ino, n->nlink, n->names);
    if (n->names == 0 && !n->orphan)
        finding(f, FSCK_DAMAGE, "lost-inode", n->ino, "inode %llu has no name and is not an orphan",
                ino);
    if (!S_ISREG(n->mode))
        return;
    if (!(n->flags & INODE_INLINE) && n->has_inline)
        finding(f, FSCK_DAMAGE, "inline-leftover", n->ino,
                "file %llu is striped and has an inline record", ino);
    if (!(n->flags & INODE_INLINE) && layout_check(&n->layout) < 0)
        finding(f, FSCK_DAMAGE, "layout", n->ino, "file %llu has a layout that cannot be", ino);
    else if (!(n->flags & INODE_INLINE) && !layout_chain(&n->layout, f->map, 0))
        finding(f, FSCK_DAMAGE, "layout", n->ino,
                "file %llu is on chains that the cluster map does not have", ino);
    else if (!(n->flags & INODE_INLINE))
        check_lost(f, n);
}

int fsck_metadata_done(struct fsck *f)
{
    struct hmap_node *h, *next;
    size_t pos;

    if (!find(f, KEY_ROOT_INO))
        finding(f, FSCK_DAMAGE, "no-root", KEY_ROOT_INO, "there is no root directory");
    hmap_for_each (h, next, pos, &f->nodes) {
        struct node *n = container_of(h, struct node, by_ino);
        unsigned long long ino = n->ino;

        if (!n->known) {
            if (n->names)
                finding(f, FSCK_DAMAGE, "name-without-inode", n->ino,
                        "inode %llu has %u names and no record", ino, n->names);
            if (n->names_in)
                finding(f, FSCK_DAMAGE, "entries-without-directory", n->ino,
                        "%llu entries belong to directory %llu, which has no record",
                        (unsigned long long)n->names_in, ino);
            if (n->has_inline || n->xattrs)
                finding(f, FSCK_DAMAGE, "records-without-inode", n->ino,
                        "inode %llu has data or attributes and no record", ino);
            continue;
        }
        if (n->xattrs != n->n_xattrs)
            finding(f, FSCK_DAMAGE, "xattr-count", n->ino,
                    "inode %llu says %u extended attributes and has %u", ino, n->n_xattrs,
                    n->xattrs);
        if (n->acls != (n->flags & (INODE_ACL | INODE_DEFAULT_ACL)))
            finding(f, FSCK_DAMAGE, "acl-flags", n->ino,
                    "inode %llu says which access lists it has, and has others", ino);
        if (S_ISDIR(n->mode))
            check_directory(f, n);
        else
            check_other(f, n);
    }
    return 0;
}

int fsck_chunk(struct fsck *f, uint32_t target, const struct msg_chunk_info *c)
{
    struct node *n = find(f, c->ino);
    unsigned long long ino = c->ino, chunk = c->chunk;
    const struct map_chain *chain;

    f->counts.chunks++;
    f->counts.chunk_bytes += c->len;
    if (c->bad)
        finding(f, FSCK_DAMAGE, "chunk-damaged", c->ino,
                "chunk %llu of inode %llu on target %u: stored checksum and data differ", chunk,
                ino, target);
    if (!n || !n->known) {
        if (n && n->queued)
            return 0; /* about to be destroyed */
        f->counts.orphan_chunks++;
        finding(f, is_later(f, c->ino) ? FSCK_NOTE : FSCK_DAMAGE, "chunk-without-inode", c->ino,
                "chunk %llu on target %u belongs to inode %llu, which does not exist", chunk,
                target, ino);
        return 0;
    }
    if (n->flags & INODE_INLINE) {
        finding(
            f, FSCK_NOTE, "chunk-of-inline", c->ino,
            "chunk %llu on target %u belongs to file %llu, which is inline (a growth not finished)",
            chunk, target, ino);
        return 0;
    }
    chain = layout_chain(&n->layout, f->map, c->chunk);
    if (!chain || chain->targets[0] != target)
        finding(f, FSCK_DAMAGE, "chunk-misplaced", c->ino,
                "chunk %llu of file %llu is on target %u, where its layout does not put it", chunk,
                ino, target);
    else if (c->chunk * n->layout.chunk_bytes + c->len > n->size)
        finding(f, FSCK_NOTE, "chunk-beyond-size", c->ino,
                "chunk %llu of file %llu ends behind the file's size %llu (being written, or a "
                "writer died)",
                chunk, ino, (unsigned long long)n->size);
    return 0;
}

void fsck_get_counts(const struct fsck *f, struct fsck_counts *ret_counts)
{
    *ret_counts = f->counts;
}
