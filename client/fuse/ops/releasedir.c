/* SPDX-License-Identifier: Apache-2.0 */
/* RELEASEDIR. */
#include "client/fuse/fs.h"
#include "common/base/mem.h"

void fs_dir_free(struct fs_dir *d)
{
    if (d->has_page)
        core_readdir_done(&d->page);
    mem_free(d);
}

void op_releasedir(struct channel_req *q)
{
    fs_dir_free(fs_dir_of(q->file.fh));
    channel_reply_err(q, 0);
}
