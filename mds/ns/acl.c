/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX ACLs: checking, evaluating, inheriting.
 *
 * Failure modes: what comes from a client is refused with the errno that Linux gives; a list from
 * the store that is damaged grants nothing.
 */
#include "mds/ns/acl.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/bytes.h"
#include "common/base/compiler.h"
#include "mds/ns/ns.h"

#define HEAD_BYTES  4u
#define ENTRY_BYTES 8u

struct entry {
    uint16_t tag, perm;
    uint32_t id;
};

static uint32_t n_entries(const struct msg_bytes *acl)
{
    return acl->len < HEAD_BYTES ? 0 : (acl->len - HEAD_BYTES) / ENTRY_BYTES;
}

static struct entry entry_at(const struct msg_bytes *acl, uint32_t i)
{
    const uint8_t *p = (const uint8_t *)acl->data + HEAD_BYTES + (size_t)i * ENTRY_BYTES;

    return (struct entry){le16_load(p), le16_load(p + 2), le32_load(p + 4)};
}

static void entry_store(void *to, uint32_t i, struct entry e)
{
    uint8_t *p = (uint8_t *)to + HEAD_BYTES + (size_t)i * ENTRY_BYTES;

    le16_store(p, e.tag);
    le16_store(p + 2, e.perm);
    le32_store(p + 4, e.id);
}

bool ns_acl_is_empty(const struct msg_bytes *acl)
{
    return acl->len == 0 || acl->len == HEAD_BYTES;
}

/* owner, users, group, groups, mask, others: in this order, users and groups any number. */
static int check_entries(const struct msg_bytes *acl)
{
    static const uint16_t order[] = {ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ,
                                     ACL_GROUP,    ACL_MASK, ACL_OTHER};
    unsigned seen = 0, at = 0;

    for (uint32_t i = 0; i < n_entries(acl); i++) {
        struct entry e = entry_at(acl, i);
        bool named = e.tag == ACL_USER || e.tag == ACL_GROUP;

        while (at < ARRAY_LEN(order) && order[at] != e.tag)
            at++;
        if (at == ARRAY_LEN(order) || e.perm > 7 || (!named && (seen & e.tag)))
            return -EINVAL;
        if (named && e.id == (uint32_t)ACL_UNDEFINED_ID)
            return -EINVAL;
        seen |= e.tag;
    }
    if ((seen & (ACL_USER | ACL_GROUP)) && !(seen & ACL_MASK))
        return -EINVAL;
    return (seen & ACL_USER_OBJ) && (seen & ACL_GROUP_OBJ) && (seen & ACL_OTHER) ? 0 : -EINVAL;
}

int ns_acl_check(const struct msg_bytes *acl)
{
    if (acl->len == 0)
        return 0;
    if (acl->len < HEAD_BYTES || (acl->len - HEAD_BYTES) % ENTRY_BYTES)
        return -EINVAL;
    if (le32_load(acl->data) != POSIX_ACL_XATTR_VERSION)
        return -EOPNOTSUPP;
    if (acl->len > NS_ACL_BYTES_MAX)
        return -E2BIG;
    return acl->len == HEAD_BYTES ? 0 : check_entries(acl);
}

bool ns_acl_mode(const struct msg_bytes *acl, uint32_t *ret_mode)
{
    uint32_t owner = 0, group = 0, others = 0;
    bool all = true;

    for (uint32_t i = 0; i < n_entries(acl); i++) {
        struct entry e = entry_at(acl, i);

        if (e.tag == ACL_USER_OBJ)
            owner = e.perm;
        else if (e.tag == ACL_OTHER)
            others = e.perm;
        else if (e.tag == ACL_MASK || (e.tag == ACL_GROUP_OBJ && all))
            group = e.perm;
        all = all && e.tag != ACL_MASK;
    }
    *ret_mode = (owner & 7) << 6 | (group & 7) << 3 | (others & 7);
    return all;
}

void ns_acl_copy(const struct msg_bytes *acl, void *to)
{
    memcpy(to, acl->data, acl->len);
    for (uint32_t i = 0; i < n_entries(acl); i++) {
        struct entry e = entry_at(acl, i);

        if (e.tag != ACL_USER && e.tag != ACL_GROUP)
            e.id = (uint32_t)ACL_UNDEFINED_ID;
        entry_store(to, i, e);
    }
}

void ns_acl_show(const struct msg_bytes *acl, uint32_t mode, void *to)
{
    ns_acl_copy(acl, to);
    for (uint32_t i = 0; i < n_entries(acl); i++) {
        struct entry e = entry_at(&(struct msg_bytes){to, acl->len}, i);

        if (e.tag == ACL_USER_OBJ)
            e.perm = mode >> 6 & 7;
        else if (e.tag == ACL_MASK)
            e.perm = mode >> 3 & 7;
        else if (e.tag == ACL_OTHER)
            e.perm = mode & 7;
        entry_store(to, i, e);
    }
}

bool ns_acl_inherit(const struct msg_bytes *acl, uint32_t *mode)
{
    uint32_t bits;
    bool all = ns_acl_mode(acl, &bits);

    *mode &= bits | ~0777u;
    return !all;
}

/* 1: it is about the caller. */
static bool entry_matches(struct entry e, const struct mds_inode *in, const struct msg_cred *c)
{
    switch (e.tag) {
    case ACL_USER:
        return e.id == c->uid;
    case ACL_GROUP_OBJ:
        return ns_in_group(c, in->gid);
    case ACL_GROUP:
        return ns_in_group(c, e.id);
    default:
        return false;
    }
}

int ns_acl_access(const struct mds_inode *in, const struct msg_cred *c, unsigned want)
{
    unsigned mask = in->mode >> 3 & 7;
    bool found = in->acl.len == 0;

    for (uint32_t i = 0; i < n_entries(&in->acl); i++) {
        struct entry e = entry_at(&in->acl, i);

        if (!entry_matches(e, in, c))
            continue;
        /* a user's own entry decides; of all groups one that grants everything is enough */
        if (e.tag == ACL_USER || (e.perm & want) == want)
            return (e.perm & mask & want) == want ? 0 : -EACCES;
        found = true;
    }
    return !found && (in->mode & want) == want ? 0 : -EACCES;
}
