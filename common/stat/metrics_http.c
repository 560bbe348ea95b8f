// SPDX-License-Identifier: Apache-2.0
/*
 * /metrics, /healthz and /readyz. libmicrohttpd parses; one thread of ours waits for its epoll
 * descriptor or for the order to stop, and runs it. Connections, their memory and their idle time
 * are bounded. What can fail is the start (address, port, thread); a request that finds no memory
 * is answered by closing its connection.
 */
#include "common/stat/metrics_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/stat/stat.h"

#define TAG              "metrics"
#define CONNECTIONS_MAX  32u
#define CONNECTION_BYTES (16u * KIB)
#define IDLE_SECONDS     10u
#define BACKLOG          16
#define HOST_BYTES       64

struct metrics_http {
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int epoll_fd, stop_fd;
    uint16_t port;
    bool (*ready)(void *arg);
    void *arg;
};

/* "host:port" or "[v6]:port", numeric, to a socket address. */
static int parse_address(const char *address, struct addrinfo **ret_info)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(address, ':');
    char host[HOST_BYTES];
    uint64_t port;
    size_t len;

    /* getaddrinfo() would cut a larger port down to 16 bits. */
    if (!colon || text_parse_u64(colon + 1, &port) || port > UINT16_MAX)
        return -EINVAL;
    len = (size_t)(colon - address);
    if (len >= 2 && address[0] == '[' && colon[-1] == ']') {
        address++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof host)
        return -EINVAL;
    memcpy(host, address, len);
    host[len] = '\0';
    return getaddrinfo(host, colon + 1, &hints, ret_info) ? -EINVAL : 0;
}

static int port_of(int fd, uint16_t *ret_port)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return -errno;
    *ret_port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                              : ((struct sockaddr_in *)&a)->sin_port);
    return 0;
}

/* A listening socket, or -errno. */
static int listen_on(const char *address, uint16_t *ret_port)
{
    struct addrinfo *info;
    int one = 1, fd, rc;

    rc = parse_address(address, &info);
    if (rc)
        return rc;
    fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        rc = -errno;
        goto err_info;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        rc = -errno;
        goto err_socket;
    }
    rc = port_of(fd, ret_port);
    if (rc)
        goto err_socket;
    freeaddrinfo(info);
    return fd;

err_socket:
    close(fd);
err_info:
    freeaddrinfo(info);
    return rc;
}

/* Queues text, which the library copies or frees as mode says. */
static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type,
                             char *text, size_t len, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
    enum MHD_Result ok;

    if (!r) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            mem_free(text);
        return MHD_NO;
    }
    ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (ok == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        ok = MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (ok == MHD_YES)
        ok = MHD_queue_response(connection, status, r);
    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned status,
                                  const char *text)
{
    return reply(connection, status, "text/plain; charset=utf-8", (char *)(uintptr_t)text,
                 strlen(text), MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result reply_metrics(struct MHD_Connection *connection)
{
    struct strbuf text;

    strbuf_init(&text);
    strbuf_append(&text, "", 0);
    stat_print_prometheus(&text);
    if (strbuf_failed(&text))
        return reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    return reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text.data,
                 text.len, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version UNUSED,
                                  const char *body UNUSED, size_t *body_len UNUSED,
                                  void **request UNUSED)
{
    struct metrics_http *s = arg;

    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return reply_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (strcmp(url, "/metrics") == 0)
        return reply_metrics(connection);
    if (strcmp(url, "/healthz") == 0)
        return reply_text(connection, MHD_HTTP_OK, "ok\n");
    if (strcmp(url, "/readyz") != 0)
        return reply_text(connection, MHD_HTTP_NOT_FOUND, "try /metrics, /healthz or /readyz\n");
    if (s->ready && !s->ready(s->arg))
        return reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready\n");
    return reply_text(connection, MHD_HTTP_OK, "ready\n");
}

static void *serve(void *arg)
{
    struct metrics_http *s = arg;
    struct pollfd fds[2] = {{s->stop_fd, POLLIN, 0}, {s->epoll_fd, POLLIN, 0}};
    unsigned long long left_ms;

    while (!(fds[0].revents & POLLIN)) {
        int wait_ms = -1;

        if (MHD_get_timeout(s->daemon, &left_ms) == MHD_YES)
            wait_ms = (int)MIN(left_ms, 1000ull * IDLE_SECONDS);
        if (poll(fds, 2, wait_ms) < 0) {
            if (errno == EINTR)
                continue;
            LOG_ERROR(TAG, "poll: %m; no more metrics");
            break;
        }
        MHD_run(s->daemon);
    }
    return NULL;
}

static int start_daemon(struct metrics_http *s, int listen_fd)
{
    const union MHD_DaemonInfo *info;

    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
    if (!s->daemon)
        return -ENOMEM;
    info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    s->epoll_fd = info ? info->epoll_fd : -1;
    if (s->epoll_fd >= 0)
        return 0;
    MHD_quiesce_daemon(s->daemon); /* leaves the socket to the caller */
    MHD_stop_daemon(s->daemon);
    return -EIO;
}

/* Signals belong to the other threads of the process. */
static int start_thread(struct metrics_http *s)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = -pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rc)
        pthread_setname_np(s->thread, "metrics");
    return rc;
}

int metrics_http_start(const char *address, bool (*ready)(void *arg), void *arg,
                       struct metrics_http **ret_server)
{
    struct metrics_http *s = mem_zalloc(sizeof *s);
    int listen_fd, rc;

    if (!s)
        return -ENOMEM;
    s->ready = ready;
    s->arg = arg;
    rc = listen_fd = listen_on(address, &s->port);
    if (rc < 0)
        goto err_alloc;
    s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->stop_fd < 0) {
        rc = -errno;
        goto err_listen;
    }
    rc = start_daemon(s, listen_fd);
    if (rc)
        goto err_stop_fd;
    rc = start_thread(s);
    if (rc)
        goto err_daemon;
    *ret_server = s;
    return 0;

err_daemon:
    MHD_stop_daemon(s->daemon); /* closes listen_fd */
    listen_fd = -1;
err_stop_fd:
    close(s->stop_fd);
err_listen:
    if (listen_fd >= 0)
        close(listen_fd);
err_alloc:
    mem_free(s);
    errno = -rc;
    LOG_ERROR(TAG, "cannot serve metrics on \"%s\": %m", address);
    return rc;
}

uint16_t metrics_http_port(const struct metrics_http *s)
{
    return s->port;
}

void metrics_http_stop(struct metrics_http *s)
{
    uint64_t one = 1;

    if (!s)
        return;
    while (write(s->stop_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(s->thread, NULL);
    MHD_stop_daemon(s->daemon);
    close(s->stop_fd);
    mem_free(s);
}
