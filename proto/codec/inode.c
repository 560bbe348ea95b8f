// SPDX-License-Identifier: Apache-2.0
/* The name space: inodes, names, opens, leases. */
#include <sys/stat.h>

#include "proto/codec/codec_int.h"
#include "proto/layout.h"
#include "proto/schema/inode.pb-c.h"

/* ---- parts ---- */

#define CRED(F)                                                                                    \
    F(num, uid)                                                                                    \
    F(num, gid)                                                                                    \
    F(u32s, groups, MSG_GROUPS_MAX)                                                                \
    F(num, caps)                                                                                   \
    F(flag, mapped)                                                                                \
    F(u32s, uids, MSG_ID_RANGES_MAX * 2)                                                           \
    F(u32s, gids, MSG_ID_RANGES_MAX * 2)
CODEC_MSG(cred, Cred, CRED)

#define ATTR(F)                                                                                    \
    F(num, ino)                                                                                    \
    F(num, mode)                                                                                   \
    F(num, nlink)                                                                                  \
    F(num, uid)                                                                                    \
    F(num, gid)                                                                                    \
    F(num, rdev)                                                                                   \
    F(num, flags)                                                                                  \
    F(num, size)                                                                                   \
    F(time, atime)                                                                                 \
    F(time, mtime)                                                                                 \
    F(time, ctime)                                                                                 \
    F(time, btime)                                                                                 \
    F(num, change)                                                                                 \
    F(num, truncate_gen)
CODEC_MSG(attr, Attr, ATTR)

#define LAYOUT(F)                                                                                  \
    F(num, pool)                                                                                   \
    F(num, copies)                                                                                 \
    F(num, table_len)                                                                              \
    F(num, chunk_bytes)                                                                            \
    F(num, stripe_count)                                                                           \
    F(num, start)                                                                                  \
    F(num, generation)
CODEC_MSG(layout, Layout, LAYOUT)

#define STRIPE(F)                                                                                  \
    F(text, pool, MSG_NAME_MAX)                                                                    \
    F(num, chunk_bytes)                                                                            \
    F(num, stripe_count)                                                                           \
    F(flag, all)                                                                                   \
    F(num, copies)                                                                                 \
    F(flag, has_start)                                                                             \
    F(num, start)                                                                                  \
    F(flag, inherit)
CODEC_MSG(stripe, Stripe, STRIPE)

/* ---- replies ---- */

/* By hand: the message is flat where the struct is not, and most inodes have no layout. */
static bool inode_rep_enc(struct enc *e, const void *msg, void *pb)
{
    const struct msg_inode_rep *r = msg;
    const struct msg_inode *m = &r->inode;
    Aifs__InodeRep *p = pb;
    bool ok = true;

    ENC_sub(attr, attr) if (m->layout.chunk_bytes){ENC_sub(layout, layout)} p->has_data =
        m->has_data;
    if (m->has_data) {
        ENC_bytes(data, 0)
    }
    ENC_lease(lease) p->lease_seq = m->lease_seq;
    p->open_id = r->open_id;
    p->created = r->created;
    if (r->has_dir)
        p->dir = enc_sub(e, &codec_attr, &r->dir, &ok);
    if (r->has_dir2)
        p->dir2 = enc_sub(e, &codec_attr, &r->dir2, &ok);
    if (r->has_victim)
        p->victim = enc_sub(e, &codec_attr, &r->victim, &ok);
    return ok;
}

static bool inode_rep_dec(struct dec *d, const void *pb, void *msg)
{
    const Aifs__InodeRep *p = pb;
    struct msg_inode_rep *r = msg;
    struct msg_inode *m = &r->inode;
    bool ok = true;

    DEC_sub(attr, attr) if (p->layout)
    {
        DEC_sub(layout, layout) /* a directory's is a wish and may leave things open */
            ok = ok && (S_ISDIR(m->attr.mode) || layout_check(&m->layout) == 0);
    }
    DEC_flag(has_data) DEC_bytes(data, MSG_INLINE_MAX) DEC_lease(lease) DEC_num(lease_seq)
        r->open_id = p->open_id;
    r->created = p->created != 0;
    r->has_dir = p->dir != NULL;
    if (p->dir)
        ok = ok && dec_sub(d, &codec_attr, p->dir, &r->dir);
    r->has_dir2 = p->dir2 != NULL;
    if (p->dir2)
        ok = ok && dec_sub(d, &codec_attr, p->dir2, &r->dir2);
    r->has_victim = p->victim != NULL;
    if (p->victim)
        ok = ok && dec_sub(d, &codec_attr, p->victim, &r->victim);
    return ok;
}
const struct codec codec_inode_rep = {&aifs__inode_rep__descriptor, sizeof(struct msg_inode_rep),
                                      inode_rep_enc, inode_rep_dec};

#define GLIMPSE_REP(F) F(flag, held) F(num, size) F(time, mtime)
CODEC_MSG(glimpse_rep, GlimpseRep, GLIMPSE_REP)

#define APPEND_REP(F) F(num, offset) F(sub, attr, attr)
CODEC_MSG(append_rep, AppendRep, APPEND_REP)

#define READDIR_REP(F) F(num, count) F(flag, eof) F(num, parent) F(flag, alone)
CODEC_MSG(readdir_rep, ReaddirRep, READDIR_REP)

#define BYTES_REP(F) F(bytes, value, MSG_XATTR_MAX)
CODEC_MSG(bytes_rep, BytesRep, BYTES_REP)

#define STATFS_REP(F)                                                                              \
    F(num, total_bytes) F(num, free_bytes) F(num, avail_bytes) F(num, files) F(num, files_free)
CODEC_MSG(statfs_rep, StatfsRep, STATFS_REP)

/* ---- requests ---- */

#define NAME_REQ(F) F(sub, cred, cred) F(num, parent) F(name, name) F(num, when_ns)
CODEC_MSG(name_req, NameReq, NAME_REQ)

#define INO_REQ(F) F(sub, cred, cred) F(num, ino) F(num, flags) F(num, open_id)
CODEC_MSG(ino_req, InoReq, INO_REQ)

#define SETATTR_REQ(F)                                                                             \
    F(sub, cred, cred)                                                                             \
    F(num, ino)                                                                                    \
    F(num, set)                                                                                    \
    F(num, mode)                                                                                   \
    F(num, uid)                                                                                    \
    F(num, gid)                                                                                    \
    F(num, size)                                                                                   \
    F(time, atime)                                                                                 \
    F(time, mtime)                                                                                 \
    F(num, open_id)                                                                                \
    F(num, when_ns)
CODEC_MSG(setattr_req, SetattrReq, SETATTR_REQ)

#define SET_SINCE(F)                                                                               \
    F(num, set)                                                                                    \
    F(num, mode) F(num, uid) F(num, gid) F(time, atime) F(time, mtime) F(num, when_ns)
CODEC_MSG(set_since, SetSince, SET_SINCE)

#define CREATE_REQ(F)                                                                              \
    F(sub, cred, cred)                                                                             \
    F(num, parent)                                                                                 \
    F(name, name)                                                                                  \
    F(num, mode)                                                                                   \
    F(num, rdev)                                                                                   \
    F(num, flags)                                                                                  \
    F(num, open_flags)                                                                             \
    F(bytes, target, MSG_PATH_MAX - 1)                                                             \
    F(opt, stripe, stripe)                                                                         \
    F(num, masked)                                                                                 \
    F(num, ino)                                                                                    \
    F(num, when_ns)                                                                                \
    F(num, wrote_ns)                                                                               \
    F(bytes, data, MSG_INLINE_MAX) F(opt, set_since, since) F(flag, alone)
CODEC_MSG(create_req, CreateReq, CREATE_REQ)

#define BATCH_ITEM(F)                                                                              \
    F(num, op)                                                                                     \
    F(num, parent)                                                                                 \
    F(name, name)                                                                                  \
    F(num, mode)                                                                                   \
    F(num, masked)                                                                                 \
    F(num, rdev)                                                                                   \
    F(num, when_ns)                                                                                \
    F(num, ino)                                                                                    \
    F(num, wrote_ns)                                                                               \
    F(bytes, data, MSG_INLINE_MAX)                                                                 \
    F(opt, set_since, since) F(flag, alone) F(bytes, new_name, MSG_NAME_MAX) F(num, flags)
CODEC_MSG(batch_item, BatchItem, BATCH_ITEM)

#define BATCH_REQ(F) F(sub, cred, cred) F(subs, batch_item, items, MSG_BATCH_MAX)
CODEC_MSG(batch_req, BatchReq, BATCH_REQ)

#define BATCH_ITEM_REP(F) F(num, status) F(opt, inode_rep, rep)
CODEC_MSG(batch_item_rep, BatchItemRep, BATCH_ITEM_REP)

#define BATCH_REP(F) F(subs, batch_item_rep, items, MSG_BATCH_MAX) F(bytes, kept, MSG_BATCH_MAX)
CODEC_MSG(batch_rep, BatchRep, BATCH_REP)

#define RENAME_REQ(F)                                                                              \
    F(sub, cred, cred)                                                                             \
    F(num, parent) F(num, new_parent) F(name, name) F(name, new_name) F(num, flags) F(num, when_ns)
CODEC_MSG(rename_req, RenameReq, RENAME_REQ)

#define LINK_REQ(F) F(sub, cred, cred) F(num, ino) F(num, new_parent) F(name, new_name)
CODEC_MSG(link_req, LinkReq, LINK_REQ)

#define OPEN_REQ(F) F(sub, cred, cred) F(num, ino) F(num, flags)
CODEC_MSG(open_req, OpenReq, OPEN_REQ)

#define CLOSE_ITEM(F) F(num, ino) F(num, open_id)
CODEC_MSG(close_item, CloseItem, CLOSE_ITEM)

#define READ_ITEM(F) F(num, ino) F(time, atime) F(time, was)
CODEC_MSG(read_item, ReadItem, READ_ITEM)

#define CLOSE_REQ(F)                                                                               \
    F(subs, close_item, items, MSG_ITEMS_MAX) F(subs, read_item, reads, MSG_ITEMS_MAX)
CODEC_MSG(close_req, CloseReq, CLOSE_REQ)

#define LEASE_REQ(F)                                                                               \
    F(num, ino)                                                                                    \
    F(lease, lease)                                                                                \
    F(num, lease_seq)                                                                              \
    F(flag, has_size)                                                                              \
    F(num, size)                                                                                   \
    F(time, mtime)                                                                                 \
    F(num, truncate_gen)
CODEC_MSG(lease_req, LeaseReq, LEASE_REQ)

#define RECALL_REQ(F) F(num, ino) F(num, lease_seq) F(lease, keep)
CODEC_MSG(recall_req, RecallReq, RECALL_REQ)

#define INVALIDATE_REQ(F) F(num, ino) F(flag, whole) F(bytes, name, MSG_NAME_MAX) F(flag, owner)
CODEC_MSG(invalidate_req, InvalidateReq, INVALIDATE_REQ)

#define WRITE_INLINE_REQ(F)                                                                        \
    F(sub, cred, cred)                                                                             \
    F(num, ino)                                                                                    \
    F(num, open_id)                                                                                \
    F(num, offset)                                                                                 \
    F(flag, append)                                                                                \
    F(flag, replace)                                                                               \
    F(time, mtime)                                                                                 \
    F(num, truncate_gen)                                                                           \
    F(num, layout_generation)
CODEC_MSG(write_inline_req, WriteInlineReq, WRITE_INLINE_REQ)

#define SIZE_REQ(F)                                                                                \
    F(num, ino)                                                                                    \
    F(num, open_id)                                                                                \
    F(num, size) F(time, mtime) F(num, truncate_gen) F(num, layout_generation) F(flag, give_up)
CODEC_MSG(size_req, SizeReq, SIZE_REQ)

#define APPEND_REQ(F) F(num, ino) F(num, open_id) F(num, len) F(num, truncate_gen)
CODEC_MSG(append_req, AppendReq, APPEND_REQ)

#define READDIR_REQ(F)                                                                             \
    F(sub, cred, cred)                                                                             \
    F(num, ino) F(num, cookie) F(num, max_bytes) F(flag, plus) F(flag, alone)
CODEC_MSG(readdir_req, ReaddirReq, READDIR_REQ)

#define XATTR_REQ(F)                                                                               \
    F(sub, cred, cred) F(num, ino) F(name, name) F(bytes, value, MSG_XATTR_MAX) F(num, flags)
CODEC_MSG(xattr_req, XattrReq, XATTR_REQ)
