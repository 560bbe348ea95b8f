/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of last access, on mounts with relatime.
 *
 * Happy path: a read that counts (proto/atime.h: the first after a change or after a day) is noted
 * at its inode, and whoever asks here is told that time. The note goes to the server with the next
 * CLOSE: when nobody has the inode open any more, when it is 5 s old, or when there are many. The
 * CLOSE's answer ends it. Nobody waits for any of this, and no other client is told.
 *
 * Failure: notes are lost with a session, a crash, or when memory for the message is short at the
 * end. A time that is set by request after the read wins.
 */
#include "client/core/core_int.h"
#include "proto/atime.h"

#define READS_MAX    16384u /* inodes noted; beyond it reads do not count */
#define READS_OLD_NS (5 * NS_PER_S)
#define READS_UNKNOWN_NS                                                                           \
    (30 * NS_PER_S) /* as long may somebody else's first read of a file not be known here */

static bool is_same(struct msg_time a, struct msg_time b)
{
    return a.sec == b.sec && a.nsec == b.nsec;
}

struct msg_time atime_told(const struct core_inode *i)
{
    return i->read.noted ? time_later(i->attr.atime, i->read.at) : i->attr.atime;
}

static void forget(struct core_inode *i)
{
    list_remove(&i->read.link);
    i->read.noted = i->read.sent = false;
    i->core->n_reads--;
    inode_put(i);
}

/* Now, and behind last, which was before: what is known of the server's clock changes a little. */
static struct msg_time now_behind(const struct core *c, struct msg_time last)
{
    struct msg_time now = core_now(c);

    if (atime_is_before(last, now) || last.sec > now.sec + 1)
        return now;
    return time_next(last);
}

static struct msg_time read_time(const struct core_inode *i)
{
    return now_behind(i->core, time_later(i->attr.mtime, i->attr.ctime));
}

struct msg_time atime_write_time(const struct core_inode *i)
{
    return i->core->o.relatime ? now_behind(i->core, atime_told(i)) : core_now(i->core);
}

static bool counts(const struct core_inode *i, struct msg_time now)
{
    return atime_is_due(atime_told(i), i->attr.mtime, i->attr.ctime, now);
}

static bool wanted(const struct core_inode *i)
{
    const struct core_options *o = &i->core->o;

    return o->relatime && !o->read_only && i->attr_known &&
           !(o->no_dir_time && S_ISDIR(i->attr.mode));
}

uint64_t atime_trust_ns(const struct core_inode *i)
{
    uint64_t age;

    if (!wanted(i) || atime_is_before(time_later(i->attr.mtime, i->attr.ctime), atime_told(i)))
        return UINT64_MAX;
    age = reactor_now_ns(i->core->reactor) - i->attr_kept_ns;
    return READS_UNKNOWN_NS - MIN(age, READS_UNKNOWN_NS);
}

bool atime_awaits_read(const struct core_inode *i)
{
    struct msg_time now = wanted(i) ? read_time(i) : i->attr.atime;

    /* what will be changed in the future awaits one for ever */
    return counts(i, now) && !atime_is_before(now, time_later(i->attr.mtime, i->attr.ctime));
}

void atime_read(struct core_inode *i)
{
    struct core *c = i->core;
    struct msg_time now;

    if (!wanted(i))
        return;
    now = read_time(i);
    if (!counts(i, now) || (!i->read.noted && c->n_reads >= READS_MAX))
        return;
    if (!i->read.noted) {
        inode_ref(i);
        c->n_reads++;
    }
    i->read.was = i->read.sent ? i->read.at : i->attr.atime;
    i->read.noted = true;
    i->read.sent = false;
    i->read.at = now;
    i->read.since_ns = reactor_now_ns(c->reactor);
    list_remove(&i->read.link);
    list_push_back(&c->reads, &i->read.link);
    if (list_empty(&i->files))
        atime_report(i); /* a directory or a link: nobody will close it */
    else if (c->n_reads >= READS_MAX / 2)
        atime_report(list_entry(c->reads.next, struct core_inode, read.link));
}

void atime_report(struct core_inode *i)
{
    struct core *c = i->core;

    if (!i->read.noted || i->read.sent || c->forced)
        return;
    list_remove(&i->read.link);
    list_push_back(&c->reads_due, &i->read.link);
    file_close_soon(c);
}

void atime_report_all(struct core *c)
{
    while (!list_empty(&c->reads))
        atime_report(list_entry(c->reads.next, struct core_inode, read.link));
}

void atime_tick(struct core *c, uint64_t now)
{
    while (!list_empty(&c->reads)) {
        struct core_inode *i = list_entry(c->reads.next, struct core_inode, read.link);

        if (now < i->read.since_ns + READS_OLD_NS)
            return;
        atime_report(i);
    }
}

void atime_forget_all(struct core *c)
{
    struct core_inode *i;
    struct list inodes;

    inodes_collect(c, &inodes);
    while ((i = inodes_next(&inodes)) != NULL) {
        if (i->read.noted)
            forget(i);
        inode_put(i);
    }
}

void atime_merged(struct core_inode *i, const struct msg_attr *was)
{
    if (i->attr.change == was->change)
        i->attr.atime = time_later(was->atime, i->attr.atime); /* answers overtake each other */
    else if (i->read.noted && !is_same(was->atime, i->attr.atime) &&
             !atime_is_before(i->attr.ctime, i->read.at))
        forget(i);
}

void atime_set(struct core_inode *i, uint64_t asked_ns)
{
    if (i->read.noted && i->read.since_ns <= asked_ns)
        forget(i);
}

/* ---- with a CLOSE ---- */

int atime_take(struct core *c, struct mds_op *op)
{
    uint32_t n = 0;
    struct msg_read_item *items;
    struct list *l;

    if (list_empty(&c->reads_due))
        return 0;
    items = core_no_memory() ? NULL : arena_alloc(&op->arena, CORE_CLOSE_BATCH * sizeof *items);
    if (!items)
        return -ENOMEM;
    while (n < CORE_CLOSE_BATCH && (l = list_pop_front(&c->reads_due)) != NULL) {
        struct core_inode *i = list_entry(l, struct core_inode, read.link);

        items[n++] = (struct msg_read_item){i->ino, i->read.at, i->read.was};
        i->read.sent = true;
    }
    op->msg.close.n_reads = n;
    op->msg.close.reads = items;
    return 0;
}

void atime_answered(const struct mds_op *op, int status)
{
    const struct msg_close_req *m = &op->msg.close;

    for (uint32_t k = 0; k < m->n_reads; k++) {
        struct core_inode *i = inode_find(op->core, m->reads[k].ino);

        if (!i || !i->read.sent || !is_same(i->read.at, m->reads[k].atime))
            continue; /* read again meanwhile, or set */
        if (!status)
            i->attr.atime = time_later(i->attr.atime, i->read.at);
        forget(i);
    }
}
