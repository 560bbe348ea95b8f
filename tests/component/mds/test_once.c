/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly once: slots, kept replies, sessions; and undoing what fails. */
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/fault/fault.h"
#include "tests/component/mds/bed.h"
#include "tests/support/suite.h"

static struct bed bed;
#define ROOT KEY_ROOT_INO

static void setup(void)
{
    bed_open(&bed);
    bed_session(&bed, 7);
}

static void teardown(void)
{
    bed_check_tree(&bed);
    bed_close(&bed);
}

START_TEST(the_same_sequence_gets_the_same_answer_and_has_no_second_effect)
{
    struct msg_create_req req = {
        .parent = ROOT, .name = str("f"), .mode = 0644, .flags = MSG_CREATE_EXCL};
    struct mds_inode dir;
    uint64_t ino;

    ck_ok(bed_call(&bed, RPC_OP_CREATE, &req));
    ino = bed.rep->inode.attr.ino;
    ck_assert(bed.rep->created);
    for (unsigned i = 0; i < 3; i++) {
        ck_ok(bed_again(&bed, RPC_OP_CREATE, &req));
        ck_assert(bed.e.result & SHARD_R_DUPLICATE);
        ck_assert(bed.e.result & SHARD_R_CREATED);
        ck_assert_uint_eq(bed.rep->inode.attr.ino, ino);
        ck_assert_uint_eq(bed.e.result_ino, ino);
    }
    ck_ok(bed_inode(&bed, ROOT, &dir));
    ck_assert_uint_eq(dir.entries, 1);
}
END_TEST

START_TEST(a_restart_remembers)
{
    struct msg_name_req req = {.parent = ROOT, .name = str("f")};

    bed_file(&bed, ROOT, "f");
    ck_ok(bed_call(&bed, RPC_OP_UNLINK, &req));
    bed_stop(&bed);
    bed_start(&bed);
    ck_ok(bed_again(&bed, RPC_OP_UNLINK, &req));
    ck_assert(bed.e.result & SHARD_R_DUPLICATE);
    ck_assert_int_eq(bed_call(&bed, RPC_OP_UNLINK, &req), -ENOENT);
}
END_TEST

START_TEST(a_failure_is_an_answer_too)
{
    struct msg_name_req req = {.parent = ROOT, .name = str("f")};

    ck_assert_int_eq(bed_call(&bed, RPC_OP_UNLINK, &req), -ENOENT);
    bed.slot = 2; /* somebody makes it meanwhile */
    bed_file(&bed, ROOT, "f");
    bed.slot = 1;
    bed.sequence--;
    ck_assert_int_eq(bed_again(&bed, RPC_OP_UNLINK, &req), -ENOENT);
    ck_assert_uint_ne(bed_lookup(&bed, ROOT, "f"), 0);
}
END_TEST

START_TEST(an_old_sequence_or_another_operation_is_refused)
{
    struct msg_name_req req = {.parent = ROOT, .name = str("f")};

    bed_file(&bed, ROOT, "f");
    bed_file(&bed, ROOT, "g");
    bed.sequence--;
    ck_assert_int_eq(bed_again(&bed, RPC_OP_UNLINK, &req), -AIFS_EPROTO);
    bed.sequence++;
    ck_assert_int_eq(bed_again(&bed, RPC_OP_UNLINK, &req), -AIFS_EPROTO);
    ck_assert_uint_ne(bed_lookup(&bed, ROOT, "f"), 0);
}
END_TEST

START_TEST(retry_is_not_kept)
{
    uint64_t ino = bed_file(&bed, ROOT, "f");
    struct msg_name_req req = {.parent = ROOT, .name = str("f")};

    bed.check_resolved = true;
    bed.resolved[0] = ino + 1;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_UNLINK, &req), -AIFS_ERETRY);
    bed.check_resolved = true;
    bed.resolved[0] = ino;
    ck_ok(bed_again(&bed, RPC_OP_UNLINK, &req));
}
END_TEST

START_TEST(a_session_that_is_unknown_or_evicted_executes_nothing)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("f"), .mode = 0644};

    bed.session = 8;
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &req), -AIFS_ESESSION);
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "f"), 0);
    bed.session = 7;
}
END_TEST

START_TEST(slots_are_apart)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("f"), .mode = 0644};
    char name[16];

    for (unsigned i = 1; i <= 64; i++) {
        snprintf(name, sizeof(name), "f%u", i);
        req.name = str(name);
        bed.slot = i;
        bed.sequence = 1;
        ck_ok(bed_again(&bed, RPC_OP_CREATE, &req));
        ck_ok(bed_again(&bed, RPC_OP_CREATE, &req));
        ck_assert(bed.e.result & SHARD_R_DUPLICATE);
    }
    ck_assert_uint_eq(bed_count(&bed, KEY_SLOT), 64);
}
END_TEST

START_TEST(a_failed_operation_leaves_nothing_behind)
{
    struct mds_inode before, after;
    uint64_t d = bed_dir(&bed, ROOT, "d");

    bed_file(&bed, d, "x");
    ck_ok(bed_inode(&bed, ROOT, &before));
    /* each allocation of a create fails in turn */
    for (unsigned i = 1; i < 40; i++) {
        struct msg_create_req req = {
            .parent = ROOT, .name = str("new"), .mode = 0644, .flags = MSG_CREATE_EXCL};
        char spec[48];
        int rc;

        snprintf(spec, sizeof(spec), "mem.alloc=error@%u", i);
        ck_ok(fault_arm(spec));
        rc = bed_call(&bed, RPC_OP_CREATE, &req);
        fault_disarm_all();
        if (rc == 0) {
            ck_ok(bed_name(&bed, RPC_OP_UNLINK, ROOT, "new"));
            continue;
        }
        if (rc == -EIO) /* the shard has stopped: it could not publish */
            break;
        ck_assert_int_eq(rc, -ENOMEM);
        ck_assert_uint_eq(bed_lookup(&bed, ROOT, "new"), 0);
        ck_ok(bed_inode(&bed, ROOT, &after));
        ck_assert_uint_eq(after.entries, before.entries);
        bed_check_tree(&bed);
    }
    bed_stop(&bed);
    bed_start(&bed);
    bed_check_tree(&bed);
}
END_TEST

START_TEST(a_failed_commit_stops_the_shard_and_says_so)
{
    struct msg_create_req req = {.parent = ROOT, .name = str("f"), .mode = 0644};

    ck_ok(fault_arm("mds.store.commit=error"));
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &req), -EIO);
    ck_assert(bed.e.result & SHARD_R_UNKNOWN);
    fault_disarm_all();
    ck_assert_int_eq(bed_call(&bed, RPC_OP_CREATE, &req), -EIO);
    ck_assert_uint_eq(bed_lookup(&bed, ROOT, "f"), 0);
    bed_stop(&bed);
    bed_start(&bed);
    ck_ok(bed_call(&bed, RPC_OP_CREATE, &req));
}
END_TEST

SUITE_MAIN("once", setup, teardown, the_same_sequence_gets_the_same_answer_and_has_no_second_effect,
           a_restart_remembers, a_failure_is_an_answer_too,
           an_old_sequence_or_another_operation_is_refused, retry_is_not_kept,
           a_session_that_is_unknown_or_evicted_executes_nothing, slots_are_apart,
           a_failed_operation_leaves_nothing_behind, a_failed_commit_stops_the_shard_and_says_so)
