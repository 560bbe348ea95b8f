/* SPDX-License-Identifier: Apache-2.0 */
/* RELEASEDIR. */
#include "client/fuse/fs.h"

void op_releasedir(struct channel_req *q)
{
    fs_dir_free(fs_dir_of(q->file.fh));
    channel_reply_err(q, 0);
}
