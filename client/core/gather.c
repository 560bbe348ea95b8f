/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removals and creations that were answered ahead, on their way: they are gathered for messages
 * that carry many of them (batch.c).
 *
 * Happy path: what comes within a moment leaves together, and as long as two messages are under way
 * more is gathered. A file that its maker has open is held back a little longer, so that its
 * contents and attributes go along with it and it needs no open: until it is closed, or old enough.
 * While somebody waits for any of it all leaves at once, and so does what could not leave before
 * that was answered. Nothing here can fail.
 */
#include "client/core/core_int.h"

#define FLYING_MAX 2u              /* messages; with more what comes is gathered */
#define LINGER_NS  NS_PER_MS       /* in any case, unless there is a message's fill of it */
#define REMOVED_NS (4 * NS_PER_MS) /* the same of what nobody has to see for a while */
#define HOLD_NS    (5 * NS_PER_MS) /* a file that is open */

static void send(struct mds_op *op)
{
    const bool creates = creating_makes(op);
    struct behind *b = &op->core->behind;
    uint64_t until = reactor_now_ns(op->core->reactor) + (creates ? LINGER_NS : REMOVED_NS);

    list_push_back(&b->together, &op->wait);
    if (b->gathered++ == 0)
        b->lingered = false;
    else if (!reactor_timer_running(&b->linger) || b->linger.deadline_ns <= until)
        return; /* what is gathered has lingered, or will have before */
    reactor_timer_start(op->core->reactor, &b->linger, until);
}

static void send_if_due(struct core *c)
{
    if (behind_due(c))
        batch_turn(c);
}

static void lingered(struct reactor_timer *t)
{
    struct core *c = container_of(t, struct core, behind.linger);

    c->behind.lingered = true;
    if (!list_empty(&c->behind.together))
        batch_turn(c);
}

/* ---- files that are open ---- */

/* In the order in which they were begun. */
static void let_go(struct core *c, uint64_t begun_ns)
{
    struct list *held = &c->behind.held;

    while (!list_empty(held)) {
        struct mds_op *op = list_entry(held->next, struct mds_op, wait);

        if (op->started_ns > begun_ns) {
            reactor_timer_start(c->reactor, &c->behind.hold, op->started_ns + HOLD_NS);
            return;
        }
        op->held = false;
        list_remove(&op->wait);
        if (op->call.op == RPC_OP_SETATTR)
            setdir_go(op);
        else
            send(op);
    }
}

static void held_long_enough(struct reactor_timer *t)
{
    struct core *c = container_of(t, struct core, behind.hold);

    let_go(c, reactor_now_ns(c->reactor) - HOLD_NS);
    send_if_due(c);
}

void creating_closed(struct core_inode *i)
{
    struct mds_op *op = i->behind.gathered;

    if (!op || !op->held)
        return;
    op->held = false;
    list_remove(&op->wait);
    send(op);
    send_if_due(i->core);
}

/* ---- for behind.c and batch.c ---- */

void behind_gather_init(struct core *c)
{
    reactor_timer_init(&c->behind.linger, lingered);
    reactor_timer_init(&c->behind.hold, held_long_enough);
    list_init(&c->behind.together);
    list_init(&c->behind.held);
}

void behind_urge(struct core *c)
{
    if (!c->behind.n)
        return;
    c->behind.urge_coming = c->behind.coming > 0;
    c->behind.hurried = c->behind.n;
    let_go(c, UINT64_MAX);
    behind_hurry(c);
}

void behind_hurry(struct core *c)
{
    if (!c->behind.hurried)
        return;
    c->behind.urged = !list_empty(&c->behind.together); /* until they leave */
    if (c->behind.urged)
        batch_turn(c);
}

void behind_gather(struct mds_op *op)
{
    struct core *c = op->core;

    if (creating_gathers(op) && !c->behind.urged) {
        behind_hold(op);
        return;
    }
    send(op);
    send_if_due(c);
}

void behind_hold(struct mds_op *op)
{
    struct core *c = op->core;

    op->held = true;
    list_push_back(&c->behind.held, &op->wait);
    if (!reactor_timer_running(&c->behind.hold))
        reactor_timer_start(c->reactor, &c->behind.hold, op->started_ns + HOLD_NS);
}

bool behind_due(const struct core *c)
{
    return !list_empty(&c->behind.together) &&
           (c->behind.urged || c->behind.gathered >= MSG_BATCH_MAX ||
            (c->behind.lingered && c->behind.flying < FLYING_MAX));
}

void behind_picked(struct core *c, uint32_t n)
{
    c->behind.gathered = list_empty(&c->behind.together) ? 0 : c->behind.gathered - n;
}

void behind_carry(struct mds_op *carrier, const struct mds_op *first)
{
    carrier->ahead = carrier->writes_back = carrier->flies = true;
    carrier->only_epoch = first->only_epoch;
    carrier->core->behind.flying++;
}

void behind_landed(struct mds_op *carrier)
{
    struct core *c = carrier->core;

    carrier->flies = false;
    c->behind.flying--;
    if (!list_empty(&c->behind.together))
        batch_turn(c);
}
