/* SPDX-License-Identifier: Apache-2.0 */
/* OPENDIR: no request to a server; the handle keeps the page that READDIR reads from. */
#include <errno.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

void op_opendir(struct channel_req *q)
{
    struct fs_dir *d = mem_zalloc(sizeof(*d));

    if (!d) {
        channel_reply_err(q, -ENOMEM);
        return;
    }
    d->uid = q->uid;
    d->gid = q->gid;
    list_init(&d->link);
    list_init(&d->listing);
    channel_reply_open(q, (uintptr_t)d, 0);
}
