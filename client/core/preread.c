/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are about to be read. What a directory's files are used for is learned from those that
 * were opened before: read whole, or opened for something else.
 *
 * Happy path: a small file of a directory whose files are read whole is asked for when its OPEN has
 * been answered, while the kernel wakes the reader and the reader asks; its READ then finds the
 * data here or on its way. It counts as read ahead until the reader has come, and for no longer
 * than the file is open. Of a file that the kernel has nothing of, and that nobody else has open
 * here, the data may go along with the answer to the open, and no READ comes (client/fuse/give.c);
 * of what was not seen to be read so nothing is learned, but for one of PREREAD_LOOK.
 *
 * Not done: for large files (read-ahead sees to them, from their first read on), where the kernel
 * may still have the pages, in programs that use libaifs (they say what they want), and while what
 * all files together have in advance is more than its share of the memory.
 */
#include "client/core/core_int.h"

#define PREREAD_BYTES CORE_LARGE_BYTES /* larger files are not */
#define PREREAD_SURE  2                /* so many more were read whole than not */
#define PREREAD_MOST  8
#define PREREAD_LOOK  8 /* one of so many is not given to the kernel, so that its reads are seen */

static struct core_inode *directory_of(const struct core_inode *i)
{
    return i->parent ? inode_find(i->core, i->parent) : NULL;
}

void preread_opened(struct core_file *f, struct core_opened *opened)
{
    const struct core_inode *i = f->inode;
    struct core *c = i->core;
    const struct core_inode *dir = directory_of(i);
    uint64_t size = i->attr.size;

    if (!c->o.readers_cache || !dir || opened->keep_cache || i->lease == MSG_LEASE_NONE ||
        i->in_line || (f->flags & O_ACCMODE) != O_RDONLY || f->flags & O_DIRECT || !size ||
        size > PREREAD_BYTES)
        return;
    f->judged = true;
    if (dir->read_whole < PREREAD_SURE || c->ahead_bytes + size > c->max_ahead)
        return;
    c->stats.prereads++;
    read_will_need(f, 0, size);
    if (opened->fresh && c->stats.prereads % PREREAD_LOOK)
        opened->whole = (uint32_t)size;
}

static bool is_sole(const struct core_file *f)
{
    const struct list *all = &f->inode->files;

    return all->next == &f->link && all->prev == &f->link;
}

bool core_give_whole(struct core_file *f)
{
    f->judged = false; /* nobody can see what is read of it */
    /* recalling: the kernel may have dropped its pages for that already */
    return is_sole(f) && f->inode->lease != MSG_LEASE_NONE && !f->inode->recalling &&
           f->bytes_read >= f->inode->attr.size;
}

void preread_released(const struct core_file *f)
{
    struct core_inode *dir = f->judged ? directory_of(f->inode) : NULL;

    if (!dir)
        return;
    if (f->bytes_read >= f->inode->attr.size)
        dir->read_whole = (int8_t)MIN(dir->read_whole + 1, PREREAD_MOST);
    else
        dir->read_whole = (int8_t)MAX(dir->read_whole - 2, -PREREAD_MOST);
}
