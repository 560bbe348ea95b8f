/* SPDX-License-Identifier: Apache-2.0 */
/* READ: the answer is sent from where the core has the data (its cache, or transport buffers): one
 * copy, by the kernel. Where the channel names memory of its own, the core brings the data there:
 * from the network straight, from its cache by a copy. */
#include "client/fuse/fs.h"

static void run(struct op *o)
{
    struct channel_req *q = o->q;

    core_read(o->fs->core, &o->req, fs_file_of(q->io.fh)->file, q->io.offset, q->io.len,
              channel_reply_room(q));
}

static void sent(struct channel_req *q)
{
    struct op *o = (struct op *)(void *)q->priv;

    core_read_done(&o->req);
}

static void finish(struct op *o, int status)
{
    if (status != 0)
        op_fail(o, status);
    else
        channel_reply_data(op_end(o, 0), o->req.out.read.iov, (int)o->req.out.read.n_iov, sent);
}

void op_read(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
