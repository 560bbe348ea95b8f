/* SPDX-License-Identifier: Apache-2.0 */
/* Many files that are made ahead: their numbers. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "proto/number.h"
#include "tests/support/creating_bed.h"
#include "tests/support/suite.h"

#define SOME 89u /* of which NUMBER_WINDOW - 1 is a multiple */

static void make_start(struct bed_op *op, unsigned k)
{
    const char *name = cr_name(k);

    bed_op_init(op);
    op->q.ahead = true;
    core_create_file(rm.c, &op->q, RM_DIR, name, (uint32_t)strlen(name), 0644,
                     O_RDWR | O_CREAT | O_EXCL, NULL);
}

/* Whole; several of them share a message. */
static void make_some(unsigned from, unsigned n)
{
    for (unsigned k = from; k < from + n; k++) {
        struct bed_op op;

        make_start(&op, k);
        ck_assert(op.done);
        cr_put(op.q.out.opened.file);
        core_release(rm.c, op.q.out.opened.file);
    }
    rm_let_pass();
}

/* The server remembers so many of those that it has seen. */
START_TEST(no_number_is_given_that_is_too_far_from_one_under_way)
{
    struct bed_op op;
    unsigned k = 3;

    static_assert((NUMBER_WINDOW - 1) % SOME == 0, "whole groups");
    cr_begin();
    rm.bed.cluster.forgets = rm.bed.cluster.hold_alone = true;
    make_some(2, 1); /* it goes by itself, and is not answered */
    for (; k < NUMBER_WINDOW + 2; k += SOME)
        make_some(k, SOME);
    ck_assert_uint_eq(rm_stats().created_ahead, NUMBER_WINDOW);
    ck_assert_uint_eq(rm_stats().creations_under_way, 1);
    make_start(&op, k++);
    rm_let_pass();
    ck_assert(!op.done); /* as ever, behind what is under way */
    ck_assert_uint_eq(rm_stats().created_ahead, NUMBER_WINDOW);
    fake_release_removals(&rm.bed.cluster);
    ck_assert_int_eq(bed_wait(&rm.bed, &op), 0);
    core_release(rm.c, op.q.out.opened.file);
    ck_assert_int_eq(rm_getattr(RM_DIR), 0);
    make_some(k, 5);
    ck_assert_uint_gt(rm_stats().created_ahead, NUMBER_WINDOW);
    ck_assert_int_eq(rm_fsync(), 0);
    ck_assert_uint_eq(rm_stats().creations_refused, 0);
}
END_TEST

SUITE_MAIN("client-creating-many", cr_setup, rm_teardown,
           no_number_is_given_that_is_too_far_from_one_under_way)
