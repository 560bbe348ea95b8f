/* SPDX-License-Identifier: Apache-2.0 */
/* LOOKUP: a name in a directory. A name that does not exist is remembered by the kernel too, for as
 * long as the core promises. */
#include <string.h>

#include "client/fuse/fs.h"

static void run(struct op *o)
{
    const char *name = o->q->name.name;

    o->req.want_negative = true;
    core_lookup(o->fs->core, &o->req, fs_ino(o->fs, o->q->node), name, (uint32_t)strlen(name));
}

static void finish(struct op *o, int status)
{
    uint64_t valid_ns = o->req.entry.entry_valid_ns;

    if (status != 0)
        op_fail(o, status);
    else if (o->req.entry.ino == 0)
        channel_reply_no_entry(op_end(o, 0), valid_ns);
    else
        op_reply_entry(o);
}

void op_lookup(struct channel_req *q)
{
    op_start(q, run, finish, false);
}
