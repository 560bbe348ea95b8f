/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records between memory and bytes.
 *
 * Happy path: field by field, little-endian whatever the machine. Failure modes: a version from the
 * future is -AIFS_EFORMAT; a wrong length or a field that cannot be is -AIFS_ECORRUPT.
 */
#include "mds/store/rec.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"

static struct time_rec time_encode(struct msg_time t)
{
    return (struct time_rec){.sec = (int64_t)htole64((uint64_t)t.sec), .nsec = htole32(t.nsec)};
}

static struct msg_time time_decode(struct time_rec t)
{
    return (struct msg_time){.sec = (int64_t)le64toh((uint64_t)t.sec), .nsec = le32toh(t.nsec)};
}

static void layout_encode(const struct msg_layout *l, struct layout_rec *r)
{
    r->pool = htole32(l->pool);
    r->copies = htole32(l->copies);
    r->table_len = htole32(l->table_len);
    r->chunk_bytes = htole32(l->chunk_bytes);
    r->stripe_count = htole32(l->stripe_count);
    r->start = htole32(l->start);
    r->generation = htole32(l->generation);
}

static void layout_decode(const struct layout_rec *r, struct msg_layout *l)
{
    l->pool = le32toh(r->pool);
    l->copies = le32toh(r->copies);
    l->table_len = le32toh(r->table_len);
    l->chunk_bytes = le32toh(r->chunk_bytes);
    l->stripe_count = le32toh(r->stripe_count);
    l->start = le32toh(r->start);
    l->generation = le32toh(r->generation);
}

/* The fixed part of a record, which begins with its version; at most so much more is behind it. */
static inline int take_fixed(const void *data, size_t len, size_t more, void *ret_rec, size_t size)
{
    uint16_t version;

    if (len < size)
        return -AIFS_ECORRUPT;
    memcpy(&version, data, sizeof(version));
    if (le16toh(version) != REC_VERSION)
        return -AIFS_EFORMAT;
    if (len > size + more)
        return -AIFS_ECORRUPT;
    memcpy(ret_rec, data, size);
    return 0;
}

void rec_inode_encode(const struct mds_inode *in, struct inode_rec *r)
{
    memset(r, 0, sizeof(*r));
    r->version = htole16(REC_VERSION);
    r->mode = htole32(in->mode);
    r->nlink = htole32(in->nlink);
    r->uid = htole32(in->uid);
    r->gid = htole32(in->gid);
    r->rdev = htole32(in->rdev);
    r->flags = htole32(in->flags);
    r->n_xattrs = htole32(in->n_xattrs);
    r->size = htole64(in->size);
    r->change = htole64(in->change);
    r->truncate_gen = htole64(in->truncate_gen);
    r->atime = time_encode(in->atime);
    r->mtime = time_encode(in->mtime);
    r->ctime = time_encode(in->ctime);
    r->btime = time_encode(in->btime);
    struct layout_rec layout;

    layout_encode(&in->layout, &layout);
    r->layout = layout;
    r->run_left = htole32(in->run_left);
    r->run_next = htole64(in->run_next);
    r->entries = htole64(in->entries);
    r->stripe = (struct stripe_rec){.flags = htole32(in->stripe.flags),
                                    .pool = htole32(in->stripe.pool),
                                    .chunk_bytes = htole32(in->stripe.chunk_bytes),
                                    .stripe_count = htole32(in->stripe.stripe_count),
                                    .copies = htole32(in->stripe.copies),
                                    .start = htole32(in->stripe.start)};
    r->run_size = htole32(in->run_size);
}

int rec_inode_decode(uint64_t ino, const void *data, size_t len, struct mds_inode *in)
{
    struct inode_rec r;
    struct layout_rec layout;
    int rc = take_fixed(data, len, 0, &r, sizeof(r));

    if (rc < 0)
        return rc;
    *in = (struct mds_inode){
        .ino = ino,
        .mode = le32toh(r.mode),
        .nlink = le32toh(r.nlink),
        .uid = le32toh(r.uid),
        .gid = le32toh(r.gid),
        .rdev = le32toh(r.rdev),
        .flags = le32toh(r.flags),
        .n_xattrs = le32toh(r.n_xattrs),
        .size = le64toh(r.size),
        .change = le64toh(r.change),
        .truncate_gen = le64toh(r.truncate_gen),
        .atime = time_decode(r.atime),
        .mtime = time_decode(r.mtime),
        .ctime = time_decode(r.ctime),
        .btime = time_decode(r.btime),
        .run_left = le32toh(r.run_left),
        .run_next = le64toh(r.run_next),
        .entries = le64toh(r.entries),
        .run_size = le32toh(r.run_size),
        .stripe = {.flags = le32toh(r.stripe.flags),
                   .pool = le32toh(r.stripe.pool),
                   .chunk_bytes = le32toh(r.stripe.chunk_bytes),
                   .stripe_count = le32toh(r.stripe.stripe_count),
                   .copies = le32toh(r.stripe.copies),
                   .start = le32toh(r.stripe.start)},
    };
    layout = r.layout;
    layout_decode(&layout, &in->layout);
    switch (in->mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        return 0;
    default:
        return -AIFS_ECORRUPT;
    }
}

void rec_dirent_encode(const struct mds_dirent *d, struct dirent_rec *r)
{
    *r = (struct dirent_rec){.version = REC_VERSION,
                             .type = d->type,
                             .flags = d->flags,
                             .ordinal = htole16(d->ordinal),
                             .ino = htole64(d->ino)};
}

int rec_dirent_decode(const void *data, size_t len, struct mds_dirent *d)
{
    struct dirent_rec r;

    if (len < sizeof(r))
        return -AIFS_ECORRUPT;
    memcpy(&r, data, sizeof(r));
    if (r.version != REC_VERSION)
        return -AIFS_EFORMAT;
    if (len != sizeof(r) || r.ino == 0 || r.ordinal == 0)
        return -AIFS_ECORRUPT;
    *d = (struct mds_dirent){
        .ino = le64toh(r.ino), .ordinal = le16toh(r.ordinal), .type = r.type, .flags = r.flags};
    return 0;
}

void rec_queue_encode(const struct mds_queue_item *q, struct queue_rec *r)
{
    memset(r, 0, sizeof(*r));
    r->version = htole16(REC_VERSION);
    layout_encode(&q->layout, &r->layout);
    r->size = htole64(q->size);
    r->truncate_gen = htole64(q->truncate_gen);
    r->session = htole64(q->session);
    r->index = htole64(q->index);
}

int rec_queue_decode(const void *data, size_t len, struct mds_queue_item *q)
{
    struct queue_rec r;
    int rc = take_fixed(data, len, 0, &r, sizeof(r));

    if (rc < 0)
        return rc;
    layout_decode(&r.layout, &q->layout);
    q->size = le64toh(r.size);
    q->truncate_gen = le64toh(r.truncate_gen);
    q->session = le64toh(r.session);
    q->index = le64toh(r.index);
    return 0;
}

void rec_inode_attr(const struct mds_inode *in, struct msg_attr *a)
{
    *a = (struct msg_attr){.ino = in->ino,
                           .mode = in->mode,
                           .nlink = in->nlink,
                           .uid = in->uid,
                           .gid = in->gid,
                           .rdev = in->rdev,
                           .flags = INODE_FLAGS_TOLD(in),
                           .size = in->size,
                           .atime = in->atime,
                           .mtime = in->mtime,
                           .ctime = in->ctime,
                           .btime = in->btime,
                           .change = in->change,
                           .truncate_gen = in->truncate_gen};
}

void rec_trash_encode(uint64_t tree, struct trash_rec *r)
{
    *r = (struct trash_rec){.version = htole16(REC_VERSION), .tree = htole64(tree)};
}

int rec_trash_decode(const void *data, size_t len, uint64_t *ret_tree)
{
    struct trash_rec r;
    int rc = take_fixed(data, len, 0, &r, sizeof(r));

    if (rc < 0)
        return rc;
    *ret_tree = le64toh(r.tree);
    return 0;
}

uint32_t rec_trash_tree_encode(const struct mds_trash_tree *t, void *out)
{
    struct trash_tree_rec r = {.version = htole16(REC_VERSION),
                               .started_ns = (int64_t)htole64((uint64_t)t->started_ns),
                               .directories = htole64(t->directories),
                               .objects = htole64(t->objects),
                               .removed = htole64(t->removed)};

    memcpy(out, &r, sizeof(r));
    memcpy((uint8_t *)out + sizeof(r), t->name, t->name_len);
    return (uint32_t)sizeof(r) + t->name_len;
}

int rec_trash_tree_decode(const void *data, size_t len, struct mds_trash_tree *t)
{
    struct trash_tree_rec r;
    int rc = take_fixed(data, len, REC_TRASH_TREE_MAX - sizeof(r), &r, sizeof(r));

    if (rc < 0)
        return rc;
    *t = (struct mds_trash_tree){.started_ns = (int64_t)le64toh((uint64_t)r.started_ns),
                                 .directories = le64toh(r.directories),
                                 .objects = le64toh(r.objects),
                                 .removed = le64toh(r.removed),
                                 .name_len = (uint32_t)(len - sizeof(r))};
    memcpy(t->name, (const uint8_t *)data + sizeof(r), t->name_len);
    return 0;
}
