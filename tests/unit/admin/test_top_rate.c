// SPDX-License-Identifier: Apache-2.0
/* Rates from two answers, what is added up, and the order of the rows. */
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "tests/support/suite.h"
#include "tools/admin/top_rate.h"

#define SEC NS_PER_S

static struct top_sample before, after;
static struct top_table table;

static void setup(void)
{
}

static void teardown(void)
{
    top_sample_drop(&before);
    top_sample_drop(&after);
    top_drop(&table);
}

static struct msg_load row(uint64_t link, uint64_t session, uint64_t job, uint64_t operations)
{
    return (struct msg_load){.link = link,
                             .session = session,
                             .job = job,
                             .role = 2,
                             .name = {"gpu1", 4},
                             .operations = operations};
}

static void take(struct top_sample *s, uint8_t boot, uint64_t now_ns, const struct msg_load *links,
                 uint32_t n)
{
    struct msg_load_rep rep = {.boot = {{boot}}, .now_ns = now_ns, .n_links = n, .links = links};

    top_sample_take(s, &rep);
}

START_TEST(a_rate_is_the_difference_by_the_servers_own_clock)
{
    struct msg_load was = row(1, 7, 0, 100), is = row(1, 7, 0, 600);

    is.read_bytes = 10 << 20;
    is.written_bytes = 5 << 20;
    was.busy_ns = SEC;
    is.busy_ns = 2 * SEC;
    is.waiting = 3;
    is.oldest_op = 9;
    is.oldest_ns = 4 * SEC;
    take(&before, 1, 10 * SEC, &was, 1);
    take(&after, 1, 15 * SEC, &is, 1);
    top_add(&table, TOP_BY_CLIENT, 0, &before, &after);
    top_finish(&table, TOP_BY_CLIENT);
    ck_assert_uint_eq(table.n, 1);
    ck_assert_uint_eq(top_whole(table.rows[0].operations), 100);
    ck_assert_uint_eq(top_whole(table.rows[0].read_bytes), 2 << 20);
    ck_assert_uint_eq(top_whole(table.rows[0].written_bytes), 1 << 20);
    ck_assert_uint_eq(top_latency_ns(&table.rows[0]), 2 * NS_PER_MS);
    ck_assert_uint_eq(table.rows[0].waiting, 3);
    ck_assert_uint_eq(table.rows[0].oldest_op, 9);
    ck_assert_str_eq(table.rows[0].name, "gpu1");
}
END_TEST

/* The operations of one link in the second answer, when the first is as given. */
static double operations(uint8_t boot, uint64_t was_link, uint64_t was, uint64_t is, bool more)
{
    struct msg_load first = row(was_link, 7, 0, was), second = row(5, 7, 0, is);
    double rate;

    second.waiting = 1; /* shown whatever its rate */
    take(&before, boot, SEC, &first, 1);
    before.more = more;
    take(&after, 1, 2 * SEC, &second, 1);
    top_add(&table, TOP_BY_CLIENT, 0, &before, &after);
    top_finish(&table, TOP_BY_CLIENT);
    ck_assert_uint_eq(table.n, 1);
    rate = table.rows[0].operations;
    teardown();
    return rate;
}

START_TEST(a_new_link_counts_from_nothing_unless_that_is_not_known)
{
    ck_assert_double_eq(operations(1, 5, 100, 130, false), 30);
    ck_assert_double_eq(operations(1, 4, 100, 130, false), 130);
    ck_assert_double_eq(operations(1, 4, 100, 130, true), 0);
    ck_assert_double_eq(operations(2, 5, 100, 130, false), 0); /* it has started anew */
    ck_assert_double_eq(operations(1, 5, 130, 100, false), 0); /* and this is nonsense */
}
END_TEST

START_TEST(without_a_first_answer_there_are_no_rates)
{
    struct msg_load is = row(1, 7, 0, 600);

    take(&after, 0, 2 * SEC, &is, 1);
    top_add(&table, TOP_BY_CLIENT, 0, &before, &after);
    top_finish(&table, TOP_BY_CLIENT);
    ck_assert_uint_eq(table.n, 0);
    top_add(&table, TOP_BY_CLIENT, 0, &after, &before); /* nor without a second */
    ck_assert_uint_eq(table.n, 0);
}
END_TEST

/* Two servers with three clients in two jobs, and one that has none. */
static void two_servers(enum top_by by)
{
    struct msg_load first[] = {row(3, 12, 8, 40), row(1, 11, 8, 10), row(2, 13, 9, 5)};
    struct msg_load second[] = {row(1, 11, 8, 50), row(4, 12, 8, 50), row(5, 0, 0, 1)};

    first[1].waiting = 1;
    first[1].oldest_op = 33;
    first[1].oldest_ns = SEC;
    second[0].waiting = 2;
    second[0].oldest_op = 34;
    second[0].oldest_ns = 2 * SEC;
    for (unsigned server = 0; server < 2; server++) {
        take(&before, 1, SEC, NULL, 0);
        take(&after, 1, 2 * SEC, server ? second : first, 3);
        if (by == TOP_BY_SERVER)
            top_add_server(&table, server);
        top_add(&table, by, server, &before, &after);
        top_sample_drop(&before);
        top_sample_drop(&after);
    }
    if (by == TOP_BY_SERVER)
        top_add_server(&table, 2);
    top_finish(&table, by);
}

START_TEST(a_client_is_added_up_over_the_servers)
{
    two_servers(TOP_BY_CLIENT);
    ck_assert_uint_eq(table.n, 4);
    ck_assert_uint_eq(table.rows[0].session, 11); /* more of it waits than of others */
    ck_assert_double_eq(table.rows[0].operations, 60);
    ck_assert_uint_eq(table.rows[0].waiting, 3);
    ck_assert_uint_eq(table.rows[0].oldest_op, 34);
    ck_assert_uint_eq(table.rows[0].oldest_ns, 2 * SEC);
    ck_assert_uint_eq(table.rows[1].session, 12);
    ck_assert_double_eq(table.rows[1].operations, 90);
    ck_assert_uint_eq(table.rows[2].session, 13);
    ck_assert_uint_eq(table.rows[3].session, 0);
}
END_TEST

START_TEST(a_job_is_added_up_over_its_clients)
{
    two_servers(TOP_BY_JOB);
    ck_assert_uint_eq(table.n, 3);
    ck_assert_uint_eq(table.rows[0].job, 8);
    ck_assert_double_eq(table.rows[0].operations, 150);
    ck_assert_uint_eq(table.rows[0].n_clients, 2);
    ck_assert_uint_eq(table.rows[1].job, 9);
    ck_assert_uint_eq(table.rows[1].n_clients, 1);
    ck_assert_uint_eq(table.rows[2].job, 0);
    ck_assert_uint_eq(table.rows[2].n_clients, 0);
}
END_TEST

START_TEST(every_server_has_a_row)
{
    two_servers(TOP_BY_SERVER);
    ck_assert_uint_eq(table.n, 3);
    ck_assert_uint_eq(table.rows[0].server, 1);
    ck_assert_double_eq(table.rows[0].operations, 101);
    ck_assert_uint_eq(table.rows[0].n_clients, 2);
    ck_assert_uint_eq(table.rows[1].server, 0);
    ck_assert_uint_eq(table.rows[1].n_clients, 3);
    ck_assert_uint_eq(table.rows[2].server, 2);
    ck_assert_double_eq(table.rows[2].operations, 0);
}
END_TEST

START_TEST(the_busiest_is_first_and_the_idle_are_left_out)
{
    struct msg_load is[] = {row(1, 11, 0, 1000), row(2, 12, 0, 10), row(3, 13, 0, 0)};

    is[0].busy_ns = NS_PER_MS;
    is[1].busy_ns = SEC;
    take(&before, 1, SEC, &is[2], 1);
    take(&after, 1, 2 * SEC, is, 3);
    top_add(&table, TOP_BY_CLIENT, 0, &before, &after);
    top_finish(&table, TOP_BY_CLIENT);
    ck_assert_uint_eq(table.n, 2);
    ck_assert_uint_eq(table.rows[0].session, 12);
    ck_assert_uint_eq(table.rows[1].session, 11);
}
END_TEST

START_TEST(a_little_is_not_nothing)
{
    ck_assert_uint_eq(top_whole(0), 0);
    ck_assert_uint_eq(top_whole(0.01), 1);
    ck_assert_uint_eq(top_whole(1.4), 1);
    ck_assert_uint_eq(top_whole(1.6), 2);
}
END_TEST

SUITE_MAIN("top", setup, teardown, a_rate_is_the_difference_by_the_servers_own_clock,
           a_new_link_counts_from_nothing_unless_that_is_not_known,
           without_a_first_answer_there_are_no_rates, a_client_is_added_up_over_the_servers,
           a_job_is_added_up_over_its_clients, every_server_has_a_row,
           the_busiest_is_first_and_the_idle_are_left_out, a_little_is_not_nothing)
