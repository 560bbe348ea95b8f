/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSIX access control lists as pure rules: POSIX.1e draft 17 as Linux does it, acl(5).
 *
 * A list is bytes in the form the kernel hands over (linux/posix_acl_xattr.h, little-endian), in
 * messages and in the store. What an access list says of the owner, the mask and all others is in
 * the inode's mode and only there: chmod(2) changes it without touching the list, and
 * ns_acl_show() puts it back for whoever reads the list. A list that says no more than a mode is
 * not kept at all. Default lists are kept as they are.
 */
#ifndef AIFS_MDS_NS_ACL_H
#define AIFS_MDS_NS_ACL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "mds/store/rec.h"

#define NS_ACL_ACCESS      "system.posix_acl_access"
#define NS_ACL_DEFAULT     "system.posix_acl_default"
#define NS_ACL_ENTRIES_MAX 511u /* the kernel takes no list that is longer than a page */
#define NS_ACL_BYTES_MAX   (4u + 8u * NS_ACL_ENTRIES_MAX)

/* Is it a list at all? The order and number of its entries, permissions, a mask where named users
 * or groups need one. -EINVAL, -E2BIG, -EOPNOTSUPP (another version). No entries: 0. */
int ns_acl_check(const struct msg_bytes *acl) MUST_USE;
bool ns_acl_is_empty(const struct msg_bytes *acl); /* setting it removes what there is */
/* The permission bits that show it; false: they do not say all. Of a list that was checked. */
bool ns_acl_mode(const struct msg_bytes *acl, uint32_t *ret_mode);
/* The list with the owner's, mask's and others' permissions of mode, and the ids of entries that
 * have none in the one form. to: acl->len bytes. */
void ns_acl_show(const struct msg_bytes *acl, uint32_t mode, void *to);
/* The list with ids in the one form and else as it is. to: acl->len bytes. */
void ns_acl_copy(const struct msg_bytes *acl, void *to);
/* What a directory's default list makes of the mode of something new in it, umask not applied.
 * true: the list itself becomes its access list. */
bool ns_acl_inherit(const struct msg_bytes *acl, uint32_t *mode);
/* May somebody who is neither root nor the owner? in->acl: the access list, or nothing: then not.
 * -EACCES. */
int ns_acl_access(const struct mds_inode *in, const struct msg_cred *c, unsigned want) MUST_USE;

#endif
