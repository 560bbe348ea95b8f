/* SPDX-License-Identifier: Apache-2.0 */
/* RELEASE: the last reference to an open file is gone. Nobody waits for it. */
#include "client/fuse/fs.h"
#include "common/base/mem.h"

void op_release(struct channel_req *q)
{
    struct fs_file *f = fs_file_of(q->file.fh);

    core_release(fs_of(q)->core, f->file);
    mem_free(f);
    channel_reply_err(q, 0);
}
