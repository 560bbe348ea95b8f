/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of ranges that wait for their turn. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/support/file_bed.h"
#include "tests/support/suite.h"

#define COPIES 8u
#define TIMEO  (1 * NS_PER_S)
#define LATE   (150 * NS_PER_MS) /* each way */

static void setup(void)
{
    file_bed_setup(3, 2 * MIB);
    bed.cluster.avail_bytes = GIB;
}

static void late(void *arg, const struct reactor *from, const struct reactor *to,
                 enum net_loop_parcel kind, struct net_loop_fate *f)
{
    (void)arg;
    (void)from;
    (void)to;
    if (kind == NET_LOOP_MESSAGE)
        f->delay_ns = LATE;
}

struct copying {
    struct core_file *from[COPIES], *to[COPIES];
    struct bed_op op[COPIES];
};

/* On a mount that has room for one at a time. */
static void copy_many(struct copying *y, uint64_t timeo_ns)
{
    struct core_options o;
    char name[16];

    core_options_default(&o);
    o.memory_limit = 32 * MIB;
    o.soft = true;
    o.timeo_ns = timeo_ns;
    file_bed_remount(&o);
    for (unsigned k = 0; k < COPIES; k++) {
        snprintf(name, sizeof name, "from%u", k);
        y->from[k] = stored_file(name, 2 * MIB);
        core_advise(y->from[k], 0, 0, CORE_ADVICE_DONTNEED);
        snprintf(name, sizeof name, "to%u", k);
        y->to[k] = bed_create(&bed, c, name);
        bed_op_init(&y->op[k]);
    }
}

static void copies_start(struct copying *y)
{
    for (unsigned k = 0; k < COPIES; k++)
        core_copy(c, &y->op[k].q, y->from[k], 0, y->to[k], 0, 2 * MIB);
}

static void copies_close(struct copying *y)
{
    for (unsigned k = 0; k < COPIES; k++) {
        core_release(c, y->from[k]);
        core_release(c, y->to[k]);
    }
}

START_TEST(copies_that_wait_for_each_other_do_not_time_out)
{
    struct copying y;
    uint64_t begun_ns;

    copy_many(&y, TIMEO);
    begun_ns = clock_mono_ns(&bed.clock.clock);
    net_loop_set_policy(late, NULL);
    copies_start(&y);
    for (unsigned k = 0; k < COPIES; k++) {
        ck_assert_int_eq(bed_wait(&bed, &y.op[k]), 0);
        ck_assert_uint_eq(y.op[k].q.out.copied, 2 * MIB);
    }
    net_loop_set_policy(NULL, NULL);
    ck_assert_uint_gt(clock_mono_ns(&bed.clock.clock) - begun_ns, 2 * TIMEO); /* all together */
    for (unsigned k = 0; k < COPIES; k++) {
        expect_read(y.to[k], 0, data, MIB);
        expect_read(y.to[k], MIB, data + MIB, MIB);
    }
    copies_close(&y);
}
END_TEST

START_TEST(copies_give_up_one_after_the_other_when_a_server_is_silent)
{
    struct copying y;

    copy_many(&y, NS_PER_S / 2);
    fake_targets_hold(&bed.cluster);
    copies_start(&y);
    for (unsigned k = 0; k < COPIES; k++)
        ck_assert_int_eq(bed_wait(&bed, &y.op[k]), -AIFS_ETIMEOUT);
    fake_targets_release(&bed.cluster);
    copies_close(&y);
}
END_TEST

START_TEST(a_copy_that_waits_for_its_turn_ends_at_once_when_it_is_interrupted)
{
    struct copying y;

    copy_many(&y, 30 * NS_PER_S);
    fake_targets_hold(&bed.cluster);
    copies_start(&y);
    bed_spin(&bed, NS_PER_MS);
    core_cancel(&y.op[COPIES - 1].q);
    ck_assert(y.op[COPIES - 1].done);
    ck_assert_int_eq(y.op[COPIES - 1].status, -EINTR);
    fake_targets_release(&bed.cluster);
    for (unsigned k = 0; k < COPIES - 1; k++)
        ck_assert_int_eq(bed_wait(&bed, &y.op[k]), 0);
    copies_close(&y);
}
END_TEST

SUITE_MAIN("client-copies", setup, file_bed_teardown,
           copies_that_wait_for_each_other_do_not_time_out,
           copies_give_up_one_after_the_other_when_a_server_is_silent,
           a_copy_that_waits_for_its_turn_ends_at_once_when_it_is_interrupted)
