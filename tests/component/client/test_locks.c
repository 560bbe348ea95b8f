/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for locks that are interrupted: the server hears of each that it may still serve. */
#include <check.h>
#include <errno.h>

#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

static struct bed bed;
static struct core *c;
static struct core_file *f;

static void setup(void)
{
    bed_setup(&bed, 1);
    c = bed_mount(&bed, NULL);
    f = bed_create(&bed, c, "f");
    bed.cluster.locks_refused = true;
}

static void teardown(void)
{
    core_release(c, f);
    bed_unmount(&bed, c, false, 0);
    bed_spin(&bed, 10 * NS_PER_MS); /* what is under way arrives */
    bed_teardown(&bed);
}

static unsigned told(enum rpc_op op)
{
    return bed.cluster.calls[op];
}

static void wait_for_lock(struct bed_op *o, uint64_t start)
{
    struct msg_lock l = {.kind = MSG_LOCK_RECORD,
                         .type = MSG_LOCK_WRITE,
                         .owner = 7,
                         .start = start,
                         .end = start + 9};

    bed_op_init(o);
    core_lock(c, &o->q, f, &l, true);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_msg(!o->done, "it ended: %d", o->status);
}

static void interrupt(struct bed_op *o)
{
    core_cancel(&o->q);
    ck_assert_int_eq(bed_wait(&bed, o), -EINTR);
}

START_TEST(who_waited_and_is_interrupted_is_taken_out_of_the_servers_list)
{
    struct bed_op o;

    wait_for_lock(&o, 0);
    ck_assert_uint_eq(told(RPC_OP_LOCK), 1);
    interrupt(&o);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_uint_eq(told(RPC_OP_LOCK_CANCEL), 1);
}
END_TEST

/* It has waited, and asks again behind a request of its owner that nobody waits for any more. */
START_TEST(so_is_who_is_interrupted_behind_a_request_of_the_same_owner)
{
    struct bed_op first, late;

    wait_for_lock(&first, 0);
    bed_spin(&bed, 2 * NS_PER_S);
    bed.cluster.mds_hold = true;
    wait_for_lock(&late, 100);
    interrupt(&late);
    bed_spin(&bed, 4 * NS_PER_S); /* until it asks again */
    ck_assert_uint_eq(told(RPC_OP_LOCK), 1);
    interrupt(&first);
    fake_mds_release(&bed.cluster);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert_uint_eq(told(RPC_OP_LOCK), 2);
    ck_assert_uint_eq(told(RPC_OP_LOCK_CANCEL), 2); /* of each */
}
END_TEST

/* Nobody closes once more: another process may have the file open for long. */
START_TEST(who_is_interrupted_while_it_closes_keeps_no_lock)
{
    const struct msg_lock l = {
        .kind = MSG_LOCK_RECORD, .type = MSG_LOCK_WRITE, .owner = 7, .end = 9};
    struct bed_op o;

    bed.cluster.locks_refused = false;
    bed_op_init(&o);
    core_lock(c, &o.q, f, &l, false);
    ck_assert_int_eq(bed_wait(&bed, &o), 0);
    ck_assert(core_owns_locks(f, 7));
    ck_assert_uint_eq(told(RPC_OP_LOCK), 1);
    bed.cluster.mds_hold = true;
    bed_spin(&bed, 16 * NS_PER_S); /* the session is believed no more */
    bed_op_init(&o);
    core_unlock_owner(c, &o.q, f, 7);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!o.done);
    interrupt(&o);
    fake_mds_release(&bed.cluster);
    bed_spin(&bed, 5 * NS_PER_S);
    ck_assert_uint_eq(told(RPC_OP_LOCK), 2);
    ck_assert(!core_owns_locks(f, 7));
}
END_TEST

SUITE_MAIN("client-locks", setup, teardown,
           who_waited_and_is_interrupted_is_taken_out_of_the_servers_list,
           so_is_who_is_interrupted_behind_a_request_of_the_same_owner,
           who_is_interrupted_while_it_closes_keeps_no_lock)
