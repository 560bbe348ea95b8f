/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GETXATTR. The kernel asks for POSIX ACLs whenever it checks group permissions, and takes any
 * error but ENODATA for a failed check. What this is a mount of is answered here, for every inode:
 * programs in containers, where the mount point and the mount's options are out of sight, get past
 * the kernel with it.
 *
 * A file without a label of SELinux says that labels are not supported: ls, cp and find ask a file
 * system that says so once, and every file of one that says "no such attribute".
 */
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const char *name = o->q->xattr.name;

    core_getxattr(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), name, (uint32_t)strlen(name));
}

static bool is_label(const struct channel_req *q)
{
    return strcmp(q->xattr.name, "security.selinux") == 0;
}

static void finish(struct op *o, int status)
{
    struct msg_bytes value = o->req.out.bytes;

    if (status == -ENODATA && is_label(o->q))
        op_fail(o, -EOPNOTSUPP);
    else if (status != 0)
        op_fail_inode(o, status);
    else
        channel_reply_xattr(op_end(o, 0), value.data, value.len);
}

void op_getxattr(struct channel_req *q)
{
    const char *mount = fs_of(q)->mount_text;

    if (strcmp(q->xattr.name, FS_XATTR_MOUNT) == 0)
        channel_reply_xattr(q, mount, (uint32_t)strlen(mount));
    else
        op_start(q, run, finish, false);
}
