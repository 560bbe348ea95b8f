/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of names that are begun in one turn: a server that does not take them together, and
 * answers that come in another order. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/core/core_int.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

#define NAMES 5u

static struct bed bed;
static struct core *c;

static void setup(void)
{
    fake_mds_features |= RPC_FEATURE_BATCH;
    bed_setup(&bed, 3);
    c = bed_mount(&bed, NULL);
}

static void teardown(void)
{
    bed_unmount(&bed, c, false, 0);
    bed_teardown(&bed);
}

START_TEST(what_an_older_server_does_not_take_together_goes_alone)
{
    struct bed_op ops[NAMES];
    struct core_stats stats;
    char name[16];
    unsigned k;

    for (k = 0; k < NAMES; k++) {
        snprintf(name, sizeof name, "d%u", k);
        bed_op_init(&ops[k]);
        core_mkdir(c, &ops[k].q, 1, name, (uint32_t)strlen(name), 0755, NULL);
    }
    for (k = 0; k < NAMES; k++)
        ck_assert_int_eq(bed_wait(&bed, &ops[k]), 0);
    core_get_stats(c, &stats);
    ck_assert_uint_eq(stats.mds_batched, NAMES);
    ck_assert_uint_eq(bed.cluster.executed[RPC_OP_MKDIR], NAMES);
}
END_TEST

static int look_up(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_lookup(c, &op.q, 1, name, (uint32_t)strlen(name));
    return bed_wait(&bed, &op);
}

static struct core_file *find_or_create(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_create_file(c, &op.q, 1, name, (uint32_t)strlen(name), 0644, O_RDWR | O_CREAT, NULL);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    return op.q.out.opened.file;
}

/* Which of the two was made first their answers do not say. */
START_TEST(of_two_changes_of_a_name_at_a_time_the_later_answer_is_not_believed)
{
    struct core_file *made = bed_create(&bed, c, "f"), *found;
    struct bed_op op;
    unsigned asked;

    bed.cluster.mds_hold = true;
    bed_op_init(&op);
    core_unlink(c, &op.q, 1, "f", 1);
    bed_spin(&bed, 10 * NS_PER_MS);
    bed.cluster.mds_hold = false;
    found = find_or_create("f");
    asked = bed.cluster.calls[RPC_OP_LOOKUP];
    ck_assert_int_eq(look_up("f"), 0);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LOOKUP], asked); /* it is known */
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    ck_assert_int_eq(look_up("f"), -ENOENT);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LOOKUP], asked + 1);
    core_release(c, found);
    core_release(c, made);
}
END_TEST

/* A third one has failed, and its name was forgotten over it. */
START_TEST(nor_when_what_the_earlier_one_said_is_forgotten)
{
    struct core_file *made = bed_create(&bed, c, "f"), *found;
    struct bed_op op, third;
    unsigned asked;

    bed.cluster.mds_hold = true;
    bed_op_init(&op);
    core_unlink(c, &op.q, 1, "f", 1);
    bed_spin(&bed, 10 * NS_PER_MS);
    bed.cluster.mds_hold = false;
    found = find_or_create("f");
    bed_op_init(&third);
    core_mkdir(c, &third.q, 1, "f", 1, 0755, NULL);
    ck_assert_int_eq(bed_wait(&bed, &third), -EEXIST);
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    asked = bed.cluster.calls[RPC_OP_LOOKUP];
    ck_assert_int_eq(look_up("f"), -ENOENT);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LOOKUP], asked + 1);
    core_release(c, found);
    core_release(c, made);
}
END_TEST

static void list_all(unsigned expected)
{
    struct core_dirent e;
    struct bed_op op;
    unsigned n = 0;

    bed_op_init(&op);
    core_readdir(c, &op.q, 1, 0, 65536, true);
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    while (core_dirent_next(&op.q, &e) > 0)
        n++;
    core_readdir_done(&op.q);
    ck_assert_uint_eq(n, expected);
}

static struct core_stats stats_now(void)
{
    struct core_stats stats;

    core_get_stats(c, &stats);
    return stats;
}

static unsigned n_names(void)
{
    return (unsigned)stats_now().names;
}

static void make_names(void)
{
    char name[16];

    for (unsigned k = 0; k < NAMES; k++) {
        snprintf(name, sizeof name, "n%u", k);
        fake_make(&bed.cluster, 1, &(struct msg_bytes){name, 2}, S_IFREG | 0644);
    }
}

START_TEST(names_that_were_listed_and_never_asked_for_are_forgotten_with_their_directory)
{
    make_names();
    list_all(NAMES);
    ck_assert_uint_eq(n_names(), NAMES);
    invalidate_doubt_dir(c, inode_find(c, 1));
    ck_assert_uint_eq(n_names(), 0);
    list_all(NAMES);
    ck_assert_uint_eq(n_names(), NAMES);
}
END_TEST

START_TEST(names_that_were_listed_are_known_whether_they_are_there_or_not)
{
    uint64_t calls;

    make_names();
    list_all(NAMES);
    calls = stats_now().mds_calls;
    ck_assert_int_eq(look_up("n3"), 0);
    ck_assert_int_eq(look_up("n0"), 0);
    ck_assert_int_eq(look_up("other"), -ENOENT);
    ck_assert_uint_eq(stats_now().mds_calls, calls);
}
END_TEST

START_TEST(one_listed_name_that_the_server_takes_back_is_asked_for_again)
{
    bool answered;
    uint64_t calls;

    make_names();
    list_all(NAMES);
    fake_invalidate(&bed.cluster, 1, "n2", &answered);
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_names(), NAMES - 1);
    calls = stats_now().mds_calls;
    ck_assert_int_eq(look_up("n2"), 0);
    ck_assert_uint_eq(stats_now().mds_calls, calls + 1);
}
END_TEST

/* ---- what the kernel is to forget, and cannot at once ---- */

static void *tokens[NAMES]; /* of what it has not confirmed */
static unsigned n_tokens, n_all;

static bool inval_entry(void *arg, uint64_t ino, const char *name, uint32_t len, void *token)
{
    (void)arg;
    (void)ino;
    (void)name;
    (void)len;
    ck_assert_uint_lt(n_tokens, NAMES);
    tokens[n_tokens++] = token;
    return true;
}

static void inval_all(void *arg)
{
    (void)arg;
    n_all++;
}

static void remount_as_kernel(void)
{
    struct core_options o;

    core_options_default(&o);
    o.events.inval_entry = inval_entry;
    o.events.inval_all = inval_all;
    bed_unmount(&bed, c, false, 0);
    c = bed_mount(&bed, &o);
    make_names();
    list_all(NAMES);
    n_tokens = n_all = 0;
}

static void confirm(void)
{
    while (n_tokens)
        core_inval_entry_done(c, tokens[--n_tokens]);
}

static void begin_change(struct bed_op *op)
{
    bed.cluster.mds_hold = true;
    bed_op_init(op);
    core_mkdir(c, &op->q, 1, "d", 1, 0755, NULL);
    bed_spin(&bed, 10 * NS_PER_MS);
}

static void end_change(struct bed_op *op)
{
    bed.cluster.mds_hold = false;
    fake_mds_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, op), 0);
}

/* Its change holds the lock that the kernel takes to forget a name. */
START_TEST(a_name_that_the_kernel_cannot_forget_now_is_old_with_all_others)
{
    struct bed_op op;
    bool answered;

    remount_as_kernel();
    begin_change(&op);
    fake_invalidate(&bed.cluster, 1, "other", &answered); /* it has been told of no such name */
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_all, 0);
    fake_invalidate(&bed.cluster, 1, "n2", &answered);
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_tokens, 2);
    ck_assert_uint_eq(n_all, 1);
    end_change(&op);
    confirm();
    ck_assert_uint_eq(n_all, 1);
}
END_TEST

START_TEST(so_is_one_that_it_could_not_forget_before_a_change_began)
{
    struct bed_op op;
    bool answered;

    remount_as_kernel();
    fake_invalidate(&bed.cluster, 1, "n2", &answered);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!answered);
    ck_assert_uint_eq(n_all, 0);
    begin_change(&op);
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_all, 1);
    end_change(&op);
    confirm();
}
END_TEST

START_TEST(what_the_kernel_has_forgotten_in_time_leaves_it_all_others)
{
    bool answered;

    remount_as_kernel();
    fake_invalidate(&bed.cluster, 1, "n2", &answered);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!answered);
    confirm();
    fake_run_until(&bed.cluster, &answered);
    bed_spin(&bed, NS_PER_S);
    ck_assert_uint_eq(n_all, 0);
}
END_TEST

static uint64_t look_up_ino(const char *name)
{
    struct bed_op op;

    bed_op_init(&op);
    core_lookup(c, &op.q, 1, name, (uint32_t)strlen(name));
    ck_assert_int_eq(bed_wait(&bed, &op), 0);
    return op.q.entry.ino;
}

/* What is mounted on any other stays. */
START_TEST(when_an_owner_changes_the_kernel_forgets_the_name_of_that_inode_alone)
{
    struct bed_op op;
    uint64_t ino;
    bool answered;

    remount_as_kernel();
    ino = look_up_ino("n2");
    inode_find(c, ino)->parent = 1; /* as an answer of its own would say */
    fake_invalidate_owner(&bed.cluster, ino, &answered);
    bed_spin(&bed, 10 * NS_PER_MS);
    ck_assert(!answered);
    ck_assert_uint_eq(n_tokens, 1);
    confirm();
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_all, 0);
    begin_change(&op); /* holds the lock */
    fake_invalidate_owner(&bed.cluster, ino, &answered);
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_all, 1);
    end_change(&op);
    confirm();
    inode_find(c, ino)->attr.nlink = 2;
    fake_invalidate_owner(&bed.cluster, ino, &answered);
    fake_run_until(&bed.cluster, &answered);
    ck_assert_uint_eq(n_all, 2);
    ck_assert_uint_eq(n_tokens, 0);
}
END_TEST

SUITE_MAIN("client-names", setup, teardown, what_an_older_server_does_not_take_together_goes_alone,
           of_two_changes_of_a_name_at_a_time_the_later_answer_is_not_believed,
           nor_when_what_the_earlier_one_said_is_forgotten,
           names_that_were_listed_and_never_asked_for_are_forgotten_with_their_directory,
           names_that_were_listed_are_known_whether_they_are_there_or_not,
           one_listed_name_that_the_server_takes_back_is_asked_for_again,
           a_name_that_the_kernel_cannot_forget_now_is_old_with_all_others,
           so_is_one_that_it_could_not_forget_before_a_change_began,
           what_the_kernel_has_forgotten_in_time_leaves_it_all_others,
           when_an_owner_changes_the_kernel_forgets_the_name_of_that_inode_alone)
