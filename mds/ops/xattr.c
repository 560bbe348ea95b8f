/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XATTR_GET, XATTR_LIST: extended attributes from the committed view.
 *
 * Happy path: one record, or all of an inode. An inode without any says so itself, and costs no
 * read. Failure modes: the errnos of getxattr(2); -E2BIG when the list is longer than a caller may
 * get.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "mds/ns/acl.h"
#include "mds/ns/ns.h"
#include "mds/ops/op.h"

#define XATTR_LIST_MAX_BYTES 65536u

static int get_plain(struct view *v, struct rpc_req *r, const struct mds_inode *in,
                     struct msg_bytes *ret_value)
{
    const struct msg_xattr_req *req = r->msg;
    const void *value;
    uint32_t len;
    struct key k;
    int rc;

    if (in->n_xattrs == 0)
        return -ENODATA;
    key_xattr(&k, in->ino, req->name.data, req->name.len);
    rc = view_record(v, &k, &r->arena, &value, &len);
    if (rc < 0)
        return rc == -ENOENT ? -ENODATA : rc;
    *ret_value = (struct msg_bytes){.data = value, .len = len};
    return 0;
}

static int get_acl(struct view *v, struct rpc_req *r, const struct mds_inode *in,
                   struct msg_bytes *ret_value)
{
    struct msg_bytes acl;
    int rc = get_plain(v, r, in, &acl);
    void *shown = rc == 0 ? arena_alloc(&r->arena, acl.len) : NULL;

    if (!shown)
        return rc < 0 ? rc : -ENOMEM;
    ns_acl_show(&acl, in->mode, shown);
    *ret_value = (struct msg_bytes){shown, acl.len};
    return 0;
}

static int get_value(struct view *v, struct rpc_req *r, enum ns_xattr kind,
                     const struct mds_inode *in, struct msg_bytes *ret_value)
{
    switch (kind) {
    case NS_XATTR_PLAIN:
    case NS_XATTR_IS_DEFAULT_ACL:
        return get_plain(v, r, in, ret_value);
    case NS_XATTR_IS_ACL:
        return get_acl(v, r, in, ret_value);
    default: /* made up, without the view */
        return 0;
    }
}

void op_xattr_get(struct mds *m, struct rpc_req *r)
{
    const struct msg_xattr_req *req = r->msg;
    struct mds_op *o = op_begin_at(m, r, req->ino);
    struct msg_bytes_rep rep = {0};
    enum ns_xattr kind;
    struct mds_inode in;
    char text[256];
    struct view v;
    int rc;

    if (!o)
        return;
    view_begin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0)
        rc = op_acl(&v, &r->arena, &in);
    if (rc == 0)
        rc = ns_xattr_check(&in, &req->cred, &req->name, false, &kind);
    if (rc == 0)
        rc = get_value(&v, r, kind, &in, &rep.value);
    view_end(&v);
    if (rc == 0 && kind == NS_XATTR_IS_FID) {
        rep.value.len = (uint32_t)snprintf(text, sizeof(text), "0x%llx:%u",
                                           (unsigned long long)in.ino, in.layout.generation);
        rep.value.data = text;
    } else if (rc == 0 && kind == NS_XATTR_IS_FS) {
        uuid_format(&m->fs, text);
        rep.value.len = UUID_TEXT_BYTES - 1;
        rep.value.data = text;
    } else if (rc == 0 && kind == NS_XATTR_IS_DATA) {
        rep.value.len = (uint32_t)snprintf(text, sizeof(text), "%s",
                                           in.flags & INODE_INLINE ? "inline" : "striped");
        rep.value.data = text;
    } else if (rc == 0 && kind == NS_XATTR_IS_LAYOUT) {
        rc = op_layout_print(m, &in, text, sizeof(text), &rep.value.len);
        rep.value.data = text;
    }
    op_reply(o, rc, rc == 0 ? &rep : NULL);
}

struct xattr_list {
    const struct msg_cred *cred;
    struct strbuf names;
};

static int list_one(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct xattr_list *l = arg;
    const char *name = (const char *)key + 9;

    (void)value;
    (void)len;
    if (key_len <= 9 || !ns_xattr_listed(l->cred, name, (uint32_t)(key_len - 9)))
        return 0;
    if (l->names.len + (key_len - 9) + 1 > XATTR_LIST_MAX_BYTES)
        return -E2BIG;
    strbuf_append(&l->names, name, key_len - 9);
    strbuf_append(&l->names, "", 1);
    return strbuf_failed(&l->names) ? -ENOMEM : 0;
}

void op_xattr_list(struct mds *m, struct rpc_req *r)
{
    const struct msg_ino_req *req = r->msg;
    struct mds_op *o = op_begin_at(m, r, req->ino);
    struct xattr_list l = {.cred = &req->cred};
    struct msg_bytes_rep rep = {0};
    struct mds_inode in;
    struct view v;
    struct key k;
    int rc;

    if (!o)
        return;
    strbuf_init(&l.names);
    view_pin(o->shard, &v);
    rc = view_inode(&v, req->ino, &in);
    if (rc == 0 && in.n_xattrs) {
        key_number(&k, KEY_XATTR, req->ino);
        rc = view_scan(&v, &k, NULL, list_one, &l);
    }
    view_unpin(&v);
    rep.value =
        (struct msg_bytes){.data = l.names.len ? l.names.data : "", .len = (uint32_t)l.names.len};
    op_reply(o, rc, rc == 0 ? &rep : NULL);
    strbuf_fini(&l.names);
}
