/* SPDX-License-Identifier: Apache-2.0 */
/* TMPFILE: makes and opens a regular file without a name in a directory. LINK may give it one; the
 * kernel refuses that after O_EXCL, and so does the server. */
#include <fcntl.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.masked = q->make.masked;
    core_create_file(o->fs->core, &o->req, fs_ino(o->fs, q->node), "unnamed", 7, q->make.mode,
                     (int)q->make.flags | O_TMPFILE, NULL);
}

void op_tmpfile(struct channel_req *q)
{
    op_start(q, run, op_finish_create, false);
}
