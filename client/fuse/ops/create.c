/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE: makes a regular file, or opens the one that somebody else has just made, in one go. */
#include <errno.h>
#include <string.h>

#include "client/fuse/fs.h"
#include "common/base/mem.h"

static void run(struct op *o)
{
    const struct channel_req *q = o->q;

    o->req.masked = q->make.masked;
    o->req.ahead = true;
    core_create_file(o->fs->core, &o->req, fs_ino(o->fs, q->node), q->make.name,
                     (uint32_t)strlen(q->make.name), q->make.mode, (int)q->make.flags, NULL);
}

void op_finish_create(struct op *o, int status)
{
    struct core_opened opened = o->req.out.opened;
    struct core_entry in = o->req.entry;
    struct channel_entry e = {&in.attr, in.entry_valid_ns, in.attr_valid_ns};
    struct fs_file *f;
    uint32_t flags;

    if (status != 0) {
        op_fail(o, status);
        return;
    }
    f = mem_zalloc(sizeof(*f));
    if (!f) {
        core_release(o->fs->core, opened.file);
        op_fail(o, -ENOMEM);
        return;
    }
    f->file = opened.file;
    flags = fs_open_flags(&opened, o->q->make.flags);
    channel_reply_create(op_end(o, 0), &e, (uintptr_t)f, flags);
}

void op_create(struct channel_req *q)
{
    op_start(q, run, op_finish_create, false);
}
