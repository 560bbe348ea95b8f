// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of the server itself.
 *
 * Happy path: shard_submit(), done() after the commit. A refusal that may pass (queue full, disk
 * full) is tried again after a moment; any other is the outcome, told from a timer so that the
 * caller is never called back from inside.
 */
#include "mds/submit.h"

#include "common/base/err.h"

#define SUBMIT_RETRY_NS (20 * NS_PER_MS)

static void submit_done(struct shard_entry *e)
{
    struct mds_submit *s = container_of(e, struct mds_submit, entry);

    s->done(s);
}

static void submit_try(struct mds_submit *s)
{
    uint64_t now_ns = reactor_now_ns(s->mds->reactor);
    int rc = shard_submit(s->shard, &s->entry);

    if (rc == 0)
        return;
    s->entry.status = rc;
    if (rc == -AIFS_EBUSY_SERVER || rc == -ENOSPC)
        now_ns += SUBMIT_RETRY_NS;
    reactor_timer_start(s->mds->reactor, &s->timer, now_ns);
}

static void submit_again(struct reactor_timer *t)
{
    struct mds_submit *s = container_of(t, struct mds_submit, timer);

    if (s->entry.status == -AIFS_EBUSY_SERVER || s->entry.status == -ENOSPC) {
        s->entry.status = 0;
        submit_try(s);
    } else {
        s->done(s);
    }
}

void mds_submit(struct mds *m, struct mds_submit *s, struct shard *shard, unsigned op,
                const void *msg, uint32_t flags, void (*done)(struct mds_submit *s))
{
    shard_entry_init(&s->entry, op, msg, m->reactor, submit_done);
    s->entry.flags = flags;
    s->mds = m;
    s->shard = shard;
    s->done = done;
    reactor_timer_init(&s->timer, submit_again);
    submit_try(s);
}

void mds_submit_fini(struct mds_submit *s)
{
    shard_entry_fini(&s->entry);
}
