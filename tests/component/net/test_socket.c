/* SPDX-License-Identifier: Apache-2.0 */
/* The socket transport between two processes. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/net/frame_fmt.h"
#include "tests/component/net/harness.h"

static struct net_options tcp(void)
{
    struct net_options o;

    net_options_default(&o);
    o.want = NET_WANT_TCP;
    return o;
}

static void echo(struct end *e, uint64_t n)
{
    e->to_send = e->sent + n;
    e->depth = 64;
    e->max_bulk = NET_BULK_MAX;
    end_pump(e);
    ck_assert(end_turn_until(e, end_is_finished, 60000));
    ck_assert_uint_eq(e->done_failed, 0);
}

static void hang_up(struct end *e)
{
    net_conn_close(e->conn, 0);
    ck_assert(end_turn_until(e, end_is_closed, 2000));
}

START_TEST(messages_of_all_sizes_come_back_whole_at_depth_64)
{
    struct child_options co = {.mode = END_ECHO, .want = NET_WANT_TCP};
    struct child c = child_start(&co);
    struct net_options o = tcp();
    struct end e;

    end_init(&e, &o, END_LOAD, NET_BULK_MAX, 130);
    e.scatter = true;
    end_connect(&e, c.port);
    ck_assert(!e.closed);
    ck_assert_int_eq(net_conn_kind(e.conn), NET_SOCKET);
    echo(&e, 600);
    hang_up(&e);
    end_fini(&e);
    child_kill(&c);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("net-socket");
    TCase *t = tcase_create("socket");
    SRunner *r;
    int failed;

    if (child_main(argc, argv) >= 0)
        return 0;
    log_set_level(LOG_LEVEL_WARN);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, messages_of_all_sizes_come_back_whole_at_depth_64);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
