/* SPDX-License-Identifier: Apache-2.0 */
/* Data leases: client and server never differ in who holds one. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/net.h"
#include "tests/support/client_bed.h"
#include "tests/support/suite.h"

static struct bed bed;
static struct core *a, *b;
static uint8_t data[1000], back[1000];

static void setup(void)
{
    bed_setup(&bed, 3);
    a = bed_mount(&bed, NULL);
    b = bed_mount(&bed, NULL);
    bed_pattern(data, sizeof data, 0, 1);
}

static void teardown(void)
{
    bed_unmount(&bed, a, false, 0);
    bed_unmount(&bed, b, false, 0);
    bed_teardown(&bed);
}

/* What the server answers the first release with comes late. */
static void released_late(void *arg, const struct reactor *from, const struct reactor *to,
                          enum net_loop_parcel kind, struct net_loop_fate *f)
{
    bool *late = arg;

    (void)from;
    (void)to;
    if (kind != NET_LOOP_MESSAGE || *late || bed.cluster.calls[RPC_OP_LEASE_RELEASE] != 1)
        return;
    *late = true;
    f->reorder = true;
    f->delay_ns = 300 * NS_PER_MS;
}

START_TEST(what_is_granted_anew_while_it_is_given_back_goes_back_too)
{
    struct core_file *w = bed_create(&bed, a, "anew"), *again, *r;
    struct fake_inode *i = fake_inode(&bed.cluster, "anew");
    bool late = false;

    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, sizeof data), 0);
    net_loop_set_policy(released_late, &late);
    r = bed_open(&bed, b, "anew", O_RDWR, NULL);
    core_release(b, r);
    net_loop_set_policy(NULL, NULL);
    bed_spin(&bed, 50 * NS_PER_MS);
    again = bed_open(&bed, a, "anew", O_RDWR, NULL);
    ck_assert_uint_eq(bed.cluster.calls[RPC_OP_LEASE_RELEASE], 1);
    bed_spin(&bed, 500 * NS_PER_MS);
    for (unsigned k = 0; k < FAKE_HOLDERS; k++)
        ck_assert_int_eq(i->leases[k].lease, MSG_LEASE_NONE);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, sizeof data), 0);
    ck_assert_int_eq(bed_read(&bed, a, again, 0, back, sizeof back), (int)sizeof back);
    ck_assert_int_eq(memcmp(back, data, sizeof data), 0);
    core_release(a, w);
    core_release(a, again);
    bed_spin(&bed, 100 * NS_PER_MS);
}
END_TEST

/* Zeros would stand where the file has been written since, and the next report would be these. */
START_TEST(an_open_that_a_report_overtakes_brings_no_old_contents)
{
    struct core_file *w = bed_create(&bed, a, "late"), *again;
    struct bed_op open;
    struct bed_late late;

    bed_op_init(&open);
    bed_answer_late(&late, 300 * NS_PER_MS);
    core_open(a, &open.q, core_file_ino(w), O_RDWR);
    bed_spin(&bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, data, 300), 0);
    ck_assert_int_eq(bed_flush(&bed, a, w), 0);
    core_release(a, w);
    ck_assert(!open.done);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    again = open.q.out.opened.file;
    ck_assert_int_eq(bed_read(&bed, a, again, 0, back, 300), 300);
    ck_assert_mem_eq(back, data, 300);
    ck_assert_int_eq(bed_write(&bed, a, again, 300, data + 300, 100), 0);
    core_release(a, again);
    again = bed_open(&bed, b, "late", O_RDONLY, NULL);
    ck_assert_int_eq(bed_read(&bed, b, again, 0, back, 400), 400);
    ck_assert_mem_eq(back, data, 400);
    core_release(b, again);
}
END_TEST

/* The server was short of memory for it, until it gave up waiting. */
START_TEST(a_release_of_a_session_that_is_over_ends_no_recall_of_the_next)
{
    const uint32_t len = 2 * MIB;
    uint8_t *much = malloc(2 * (size_t)len);
    struct core_file *w = bed_create(&bed, a, "over"), *r;
    struct bed_op open;
    uint64_t size;

    bed_pattern(much, len, 0, 2);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, much, len), 0);
    ck_assert_int_eq(bed_fsync(&bed, a, w), 0);
    bed.cluster.fail_release = -AIFS_EBUSY_SERVER;
    bed.cluster.fail_release_n = ~0u;
    bed_op_init(&open);
    core_open(b, &open.q, core_file_ino(w), O_RDONLY);
    bed_spin(&bed, 4 * NS_PER_S); /* by now it is made again once a second */
    fake_mds_forget_sessions(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    core_release(b, open.q.out.opened.file);
    bed.cluster.fail_release_n = 0;
    ck_assert_int_eq(bed_size(&bed, a, core_file_ino(w), &size), 0);
    bed_spin(&bed, 250 * NS_PER_MS);
    bed_pattern(much, len, 0, 3);
    ck_assert_int_eq(bed_write(&bed, a, w, 0, much, len), 0);
    fake_targets_hold(&bed.cluster);
    bed_op_init(&open);
    core_open(b, &open.q, core_file_ino(w), O_RDONLY);
    bed_spin(&bed, 2 * NS_PER_S);
    ck_assert(!open.done);
    fake_targets_release(&bed.cluster);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    r = open.q.out.opened.file;
    ck_assert_int_eq(bed_read(&bed, b, r, 0, much + len, len), (int)len);
    ck_assert_int_eq(memcmp(much, much + len, len), 0);
    core_release(b, r);
    core_release(a, w);
    free(much);
}
END_TEST

static struct core_inval *asked;

static void inval(void *arg, struct core_inval *v)
{
    (void)arg;
    asked = v;
}

/* A file with chunks that b has written and closed. */
static void make_closed(const char *name, uint8_t *much, uint32_t len)
{
    struct core_file *w = bed_create(&bed, b, name);

    bed_pattern(much, len, 0, 4);
    ck_assert_int_eq(bed_write(&bed, b, w, 0, much, len), 0);
    ck_assert_int_eq(bed_fsync(&bed, b, w), 0);
    core_release(b, w);
    bed_spin(&bed, 50 * NS_PER_MS);
}

/* The kernel drops its pages still, and may wait for this very write. */
START_TEST(what_is_written_while_a_lease_goes_back_is_written_under_the_better_one_that_has_come)
{
    static uint8_t much[101000];
    struct core_file *r, *w;
    struct core_options o;
    struct bed_op open;
    struct core *k;

    make_closed("better", much, 100000);
    core_options_default(&o);
    o.events.inval_inode = inval;
    k = bed_mount(&bed, &o);
    r = bed_open(&bed, k, "better", O_RDONLY, NULL);
    bed_op_init(&open);
    core_open(b, &open.q, core_file_ino(r), O_RDWR);
    bed_spin(&bed, 50 * NS_PER_MS);
    ck_assert(asked && !open.done);
    w = bed_open(&bed, k, "better", O_WRONLY | O_APPEND, NULL);
    ck_assert_int_eq(bed_write(&bed, k, w, 0, data, sizeof data), 0);
    ck_assert(!open.done);
    core_inval_done(k, asked);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    memset(much, 0, sizeof much);
    ck_assert_int_eq(bed_read(&bed, b, open.q.out.opened.file, 100000, much, 2000), 1000);
    ck_assert_mem_eq(much, data, sizeof data);
    core_release(k, r);
    core_release(k, w);
    core_release(b, open.q.out.opened.file);
    bed_unmount(&bed, k, false, 0);
}
END_TEST

/* The answer that told of it is late, and the server believes that the first one is gone. */
START_TEST(an_older_lease_ends_when_the_next_is_asked_for)
{
    static uint8_t much[100000];
    struct core_file *r, *w;
    struct bed_op open;
    struct bed_late late;

    make_closed("older", much, sizeof much);
    r = bed_open(&bed, a, "older", O_RDONLY, NULL);
    ck_assert_int_eq(bed_read(&bed, a, r, 0, back, sizeof back), (int)sizeof back);
    bed_op_init(&open);
    bed_answer_late(&late, 300 * NS_PER_MS);
    core_open(a, &open.q, core_file_ino(r), O_RDWR);
    bed_spin(&bed, 20 * NS_PER_MS);
    net_loop_set_policy(NULL, NULL);
    w = bed_open(&bed, b, "older", O_RDWR, NULL);
    ck_assert_int_eq(bed_write(&bed, b, w, 0, data, sizeof data), 0);
    ck_assert(!open.done);
    ck_assert_int_eq(bed_read(&bed, a, r, 0, back, sizeof back), (int)sizeof back);
    ck_assert_mem_eq(back, data, sizeof data);
    ck_assert(!open.done);
    ck_assert_int_eq(bed_wait(&bed, &open), 0);
    core_release(a, r);
    core_release(a, open.q.out.opened.file);
    core_release(b, w);
}
END_TEST

/* A client that has a file open to read, and once more to write. */
struct both_ways {
    struct core *c;
    struct core_file *reads, *writes;
    struct bed_op read;
};

static void open_both_ways(struct both_ways *w, struct core *c, const char *name)
{
    w->c = c;
    w->reads = bed_open(&bed, c, name, O_RDONLY, NULL);
    w->writes = bed_open(&bed, c, name, O_RDWR, NULL);
}

static void close_both_ways(struct both_ways *w)
{
    core_release(w->c, w->reads);
    core_release(w->c, w->writes);
}

static void read_one_way(struct both_ways *w)
{
    bed_op_init(&w->read);
    core_read(w->c, &w->read.q, w->writes, 0, sizeof back, NULL);
}

static void expect_read(struct both_ways *w)
{
    ck_assert_int_eq(bed_wait(&bed, &w->read), 0);
    ck_assert_uint_eq(w->read.q.out.read.bytes, sizeof back);
    core_read_done(&w->read.q);
}

static unsigned held_opens(void)
{
    unsigned n = 0;
    struct list *l;

    list_for_each (l, &bed.cluster.removals_held)
        n++;
    return n;
}

/* Those that read come first, whoever sends them. */
static void release_readers_first(void)
{
    struct list writers, *l, *tmp;

    list_init(&writers);
    list_for_each_safe (l, tmp, &bed.cluster.removals_held) {
        const struct msg_open_req *m = list_entry(l, struct rpc_req, link)->msg;

        if (m->flags == O_RDONLY)
            continue;
        list_remove(l);
        list_push_back(&writers, l);
    }
    list_splice(&bed.cluster.removals_held, &writers);
    fake_release_removals(&bed.cluster);
}

/* Both have lost their session, and each gets a READ lease with the first of its opens, which is in
 * the way of the second one of the other. What is read by the second ones has begun already. */
static void lose_and_open_again(struct both_ways *x, struct both_ways *y)
{
    fake_mds_forget_sessions(&bed.cluster);
    bed.cluster.hold_opens = true;
    read_one_way(x);
    read_one_way(y);
    while (held_opens() < 4)
        bed_spin(&bed, NS_PER_MS);
    release_readers_first();
}

START_TEST(who_opens_files_again_keeps_nobody_waiting_who_does_so_too)
{
    static uint8_t much[100000];
    struct both_ways x, y;

    make_closed("both", much, sizeof much);
    open_both_ways(&x, a, "both");
    open_both_ways(&y, b, "both");
    lose_and_open_again(&x, &y);
    expect_read(&x);
    expect_read(&y);
    ck_assert_int_eq(bed_write(&bed, a, x.writes, 0, data, sizeof data), 0);
    ck_assert_int_eq(bed_read(&bed, b, y.reads, 0, back, sizeof back), (int)sizeof back);
    ck_assert_mem_eq(back, data, sizeof data);
    close_both_ways(&x);
    close_both_ways(&y);
}
END_TEST

static bool kernel_waits;

static void inval_unless_it_waits(void *arg, struct core_inval *v)
{
    asked = v;
    if (!kernel_waits)
        core_inval_done(*(struct core **)arg, v);
}

/* It drops its pages when they have been read. */
START_TEST(nor_does_a_kernel_that_waits_for_what_is_read_of_a_file_that_is_opened_again)
{
    static uint8_t much[100000];
    struct core_options o;
    struct both_ways x, y;
    struct core *k;

    make_closed("both", much, sizeof much);
    core_options_default(&o);
    o.events.inval_inode = inval_unless_it_waits;
    o.events.arg = &k;
    k = bed_mount(&bed, &o);
    open_both_ways(&x, k, "both");
    open_both_ways(&y, b, "both");
    kernel_waits = true;
    lose_and_open_again(&x, &y);
    expect_read(&x);
    expect_read(&y);
    core_inval_done(k, asked);
    close_both_ways(&x);
    close_both_ways(&y);
    bed_unmount(&bed, k, false, 0);
}
END_TEST

SUITE_MAIN("client-leases", setup, teardown,
           what_is_granted_anew_while_it_is_given_back_goes_back_too,
           an_open_that_a_report_overtakes_brings_no_old_contents,
           a_release_of_a_session_that_is_over_ends_no_recall_of_the_next,
           what_is_written_while_a_lease_goes_back_is_written_under_the_better_one_that_has_come,
           an_older_lease_ends_when_the_next_is_asked_for,
           who_opens_files_again_keeps_nobody_waiting_who_does_so_too,
           nor_does_a_kernel_that_waits_for_what_is_read_of_a_file_that_is_opened_again)
