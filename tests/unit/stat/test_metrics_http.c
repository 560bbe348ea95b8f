// SPDX-License-Identifier: Apache-2.0
/* The metrics server over a real socket: its three pages, what it refuses, garbage, and its end. */
#include "common/stat/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/stat/stat.h"
#include "tests/support/suite.h"

static struct metrics_http *server;
static atomic_bool is_ready;
static char answer[1 << 16];

static bool ready(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

static void setup(void)
{
    ck_assert_int_eq(metrics_http_start("127.0.0.1:0", ready, &is_ready, &server), 0);
}

static void teardown(void)
{
    metrics_http_stop(server);
}

static int dial(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Sends text, reads until the server closes. */
static const char *talk(const char *text, size_t len)
{
    int fd = dial(metrics_http_port(server));
    size_t got = 0;
    ssize_t n;

    ck_assert_int_eq(send(fd, text, len, MSG_NOSIGNAL), (ssize_t)len);
    while ((n = recv(fd, answer + got, sizeof answer - 1 - got, 0)) > 0)
        got += (size_t)n;
    answer[got] = '\0';
    close(fd);
    return answer;
}

static const char *request(const char *method, const char *path)
{
    char text[256];

    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method,
             path);
    return talk(text, strlen(text));
}

static void expect(const char *method, const char *path, const char *status, const char *body)
{
    const char *all = request(method, path);

    ck_assert_msg(strncmp(all + 9, status, 3) == 0, "%s %s: %.60s", method, path, all);
    if (body)
        ck_assert_str_eq(strstr(all, "\r\n\r\n") + 4, body);
}

START_TEST(metrics_are_served_as_prometheus_text)
{
    static struct stat_counter c;

    stat_counter_register(&c, "aifs_test_total", NULL, "Test.");
    stat_add(&c, 7);
    expect("GET", "/metrics", "200", NULL);
    ck_assert_ptr_nonnull(strstr(answer, "\naifs_test_total 7\n"));
    ck_assert_ptr_nonnull(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
    stat_unregister(&c.stat);
}
END_TEST

START_TEST(metrics_of_nothing_are_an_empty_page)
{
    expect("GET", "/metrics", "200", "");
    expect("HEAD", "/metrics", "200", "");
}
END_TEST

START_TEST(healthy_at_once_ready_when_told)
{
    expect("GET", "/healthz", "200", "ok\n");
    expect("GET", "/readyz", "503", "not ready\n");
    atomic_store(&is_ready, true);
    expect("GET", "/readyz", "200", "ready\n");
}
END_TEST

START_TEST(other_paths_and_methods_are_refused)
{
    expect("GET", "/", "404", NULL);
    expect("GET", "/metricsx", "404", NULL);
    expect("DELETE", "/metrics", "405", NULL);
    ck_assert_ptr_nonnull(strstr(answer, "Allow: GET, HEAD"));
}
END_TEST

START_TEST(garbage_does_not_harm_the_next_request)
{
    char junk[4096];

    memset(junk, 0xff, sizeof junk);
    junk[sizeof junk - 2] = '\r';
    junk[sizeof junk - 1] = '\n';
    for (int i = 0; i < 10; i++) {
        int fd = dial(metrics_http_port(server));

        ck_assert_int_gt(send(fd, junk, sizeof junk, MSG_NOSIGNAL), 0);
        close(fd);
    }
    expect("GET", "/healthz", "200", "ok\n");
}
END_TEST

START_TEST(a_taken_port_is_an_error_at_the_start)
{
    struct metrics_http *second = NULL;
    char address[32];

    snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)metrics_http_port(server));
    ck_assert_int_eq(metrics_http_start(address, NULL, NULL, &second), -EADDRINUSE);
    ck_assert_ptr_null(second);
}
END_TEST

START_TEST(addresses_are_checked)
{
    static const char *const wrong[] = {
        "", "127.0.0.1", ":80", "localhost:x", "127.0.0.1:99999", "[::1:80", "1.2.3:4:5"};
    struct metrics_http *s = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(metrics_http_start(wrong[i], NULL, NULL, &s) == -EINVAL, "\"%s\"", wrong[i]);
}
END_TEST

START_TEST(stopping_with_an_open_connection_does_not_hang)
{
    int fd = dial(metrics_http_port(server));

    ck_assert_int_eq(send(fd, "GET /me", 7, MSG_NOSIGNAL), 7);
    metrics_http_stop(server);
    server = NULL;
    ck_assert_int_le(recv(fd, answer, sizeof answer, 0), 0);
    close(fd);
}
END_TEST

SUITE_MAIN("metrics-http", setup, teardown, metrics_are_served_as_prometheus_text,
           metrics_of_nothing_are_an_empty_page, healthy_at_once_ready_when_told,
           other_paths_and_methods_are_refused, garbage_does_not_harm_the_next_request,
           a_taken_port_is_an_error_at_the_start, addresses_are_checked,
           stopping_with_an_open_connection_does_not_hang)
