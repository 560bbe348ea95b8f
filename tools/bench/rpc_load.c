/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw RPC load. The server process answers PING, OSS_READ from a buffer and OSS_WRITE by throwing
 * the payload away, on a port that it tells through a pipe; the client process keeps `depth` calls
 * in flight until the time is over and sends its counters back. Both are forked before anything of
 * a transport exists. When the client fails, it says why; the server ends with its parent.
 */
#include "tools/bench/rpc_load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/err.h"
#include "common/crypto/crypto.h"
#include "proto/rpc.h"

#define SERVED_BYTES (64u * MIB)
#define DEPTH_MAX    256u

static const char *const op_names[] = {"ping", "read", "write"};

/* ---- both ends ---- */

static int node_start(struct reactor *reactor, unsigned want, const struct crypto_key *key,
                      const char *name, unsigned bulks, struct rpc_node **ret_node)
{
    struct rpc_node_options o = {.key = *key};
    int rc = uuid_random(&o.self.node);

    net_options_default(&o.net);
    o.net.want = (enum net_want)want;
    o.self.role = key->role;
    snprintf(o.self.name, sizeof o.self.name, "%s", name);
    snprintf(o.self.version, sizeof o.self.version, "%s", AIFS_VERSION);
    if (rc == 0)
        rc = uuid_random(&o.self.boot);
    if (rc == 0 && bulks)
        rc = buf_pool_create(name, MSG_BULK_MAX, bulks, &o.bulk_pool);
    return rc ? rc : rpc_node_create(reactor, &o, ret_node);
}

static int reactor_start(const char *name, struct reactor **ret_reactor)
{
    struct reactor_options ro = {.name = name, .spin_ns = reactor_spin_default_ns()};

    return reactor_create(&ro, ret_reactor);
}

int rpc_client_start(struct reactor *reactor, unsigned want, const struct crypto_key *key,
                     uint16_t port, struct rpc_node **ret_node, struct rpc_peer **ret_peer)
{
    char text[32];
    const char *address = text;
    int rc = node_start(reactor, want, key, "bench-client", 0, ret_node);

    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    return rc ? rc : rpc_peer_create(*ret_node, &address, 1, NULL, NULL, ret_peer);
}

/* ---- server ---- */

struct server {
    struct reactor *reactor;
    uint8_t *data;
    uint64_t next;
};

static void on_ping(struct rpc_req *req)
{
    rpc_reply(req, 0, NULL);
}

static void on_read(struct rpc_req *req)
{
    struct server *s = req->handler_arg;
    const struct msg_read_req *m = req->msg;
    uint32_t len = m->n_ranges == 1 && m->ranges[0].len <= MSG_BULK_MAX ? m->ranges[0].len : 0;
    struct msg_read_rep rep = {.n_lens = 1, .lens = &len};
    struct iovec iov;

    if (s->next + len > SERVED_BYTES)
        s->next = 0;
    iov = (struct iovec){s->data + s->next, len};
    s->next += len;
    rpc_reply_bulk(req, len ? 0 : -EINVAL, &rep, &iov, len ? 1 : 0, NULL, NULL);
}

static void on_write(struct rpc_req *req)
{
    static const struct msg_write_rep rep = {.verifier = 1};

    rpc_reply(req, 0, &rep);
}

static void parent_is_gone(struct reactor_watch *w, uint32_t events)
{
    (void)w;
    (void)events;
    _exit(0);
}

/* told: the port goes there; until: readable when it is over. */
static int serve(unsigned want, unsigned depth, const struct crypto_key *key, int told, int until)
{
    struct server s = {0};
    struct reactor_watch watch = {.fd = until, .events = EPOLLIN, .fn = parent_is_gone};
    struct rpc_node *node;
    struct net_addr addr;
    char err[128];
    uint16_t port;
    int rc = reactor_start("bench-server", &s.reactor);

    if (rc == 0)
        rc = node_start(s.reactor, want, key, "bench-server", depth + 8, &node);
    s.data = mmap(NULL, SERVED_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (rc == 0 && s.data == MAP_FAILED)
        rc = -ENOMEM;
    if (rc == 0)
        rc = net_addr_resolve("127.0.0.1:0", 0, &addr, err, sizeof err);
    if (rc == 0) {
        rpc_node_handle(node, RPC_OP_PING, on_ping, &s);
        rpc_node_handle(node, RPC_OP_OSS_READ, on_read, &s);
        rpc_node_handle(node, RPC_OP_OSS_WRITE, on_write, &s);
        rc = rpc_node_listen(node, &addr, &port);
    }
    if (rc == 0)
        rc = reactor_watch_add(s.reactor, &watch);
    if (rc == 0 && write(told, &port, sizeof port) != sizeof port)
        rc = -EPIPE;
    if (rc == 0)
        reactor_run(s.reactor);
    return rc;
}

/* ---- client ---- */

struct outcome {
    int status;
    uint64_t operations, bytes;
    double seconds;
    char transport[16];
    struct stat_histogram latency;
};

struct slot {
    struct rpc_call call;
    struct client *client;
    struct iovec iov;
    uint64_t begun_ns;
};

struct client {
    const struct rpc_load *load;
    struct reactor *reactor;
    struct rpc_peer *peer;
    struct msg_range range;
    struct msg_read_req read;
    struct msg_write_req write;
    uint64_t begin_ns, end_ns;
    unsigned in_flight;
    struct outcome *out;
    struct slot slots[DEPTH_MAX];
};

static void slot_done(struct rpc_call *call, int status);

static void slot_begin(struct slot *s)
{
    static const unsigned ops[] = {RPC_OP_PING, RPC_OP_OSS_READ, RPC_OP_OSS_WRITE};
    struct client *c = s->client;
    const void *req = c->load->op == RPC_LOAD_READ    ? (const void *)&c->read
                      : c->load->op == RPC_LOAD_WRITE ? (const void *)&c->write
                                                      : NULL;

    rpc_call_init(&s->call, ops[c->load->op], req, slot_done, s);
    s->call.session = 1;
    s->call.timeout_ns = 10 * NS_PER_S;
    if (c->load->op == RPC_LOAD_READ) {
        s->call.bulk_in = &s->iov;
        s->call.n_bulk_in = 1;
    } else if (c->load->op == RPC_LOAD_WRITE) {
        s->call.bulk_out = &s->iov;
        s->call.n_bulk_out = 1;
    }
    s->begun_ns = bench_now_ns();
    c->in_flight++;
    rpc_peer_call(c->peer, &s->call);
}

/* Asked at the end: a link begins on its socket and moves. */
static void note_transport(struct client *c)
{
    struct rpc_link *link = rpc_peer_link(c->peer);
    const char *text = link ? rpc_link_describe(link) : "lost", *last = strrchr(text, ' ');

    snprintf(c->out->transport, sizeof c->out->transport, "%s", last ? last + 1 : text);
}

static void slot_done(struct rpc_call *call, int status)
{
    struct slot *s = call->arg;
    struct client *c = s->client;
    uint64_t now = bench_now_ns();

    if (status == 0 && c->load->op == RPC_LOAD_READ && call->bulk_in_len != c->load->bs)
        status = -EPROTO;
    rpc_call_fini(call);
    c->in_flight--;
    if (status < 0 && c->out->status == 0)
        c->out->status = status;
    if (now >= c->begin_ns && c->begin_ns) {
        stat_record(&c->out->latency, now - s->begun_ns);
        c->out->operations++;
        c->out->bytes += c->load->op == RPC_LOAD_PING ? 0 : c->load->bs;
    }
    if (c->out->status == 0 && now < c->end_ns) {
        slot_begin(s);
        return;
    }
    c->out->seconds = (double)(now - c->begin_ns) / 1e9;
    if (c->in_flight > 0)
        return;
    note_transport(c);
    reactor_stop(c->reactor);
}

/* One call before the clock starts: the link is up and its transport chosen. */
static void first_done(struct rpc_call *call, int status)
{
    struct client *c = call->arg;

    rpc_call_fini(call);
    if (status < 0) {
        c->out->status = status;
        reactor_stop(c->reactor);
        return;
    }
    c->begin_ns = bench_now_ns();
    c->end_ns = c->begin_ns + (uint64_t)(c->load->seconds * 1e9);
    for (unsigned i = 0; i < c->load->depth; i++)
        slot_begin(&c->slots[i]);
}

static int load_run(const struct rpc_load *l, const struct crypto_key *key, uint16_t port,
                    struct outcome *out)
{
    struct client *c = calloc(1, sizeof *c);
    struct rpc_call first;
    struct rpc_node *node;
    uint8_t *data;
    int rc;

    if (!c)
        return -ENOMEM;
    c->load = l;
    c->out = out;
    c->range = (struct msg_range){.len = l->bs};
    c->read = (struct msg_read_req){.target = 1, .n_ranges = 1, .ranges = &c->range};
    c->write = (struct msg_write_req){.target = 1, .n_ranges = 1, .ranges = &c->range};
    rc = reactor_start("bench-client", &c->reactor);
    data = mmap(NULL, (size_t)l->depth * MSG_BULK_MAX, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (rc == 0 && data == MAP_FAILED)
        rc = -ENOMEM;
    if (rc == 0)
        rc = rpc_client_start(c->reactor, l->want, key, port, &node, &c->peer);
    if (rc < 0)
        return rc; /* the process ends: nothing to take back */
    for (unsigned i = 0; i < l->depth; i++) {
        c->slots[i].client = c;
        c->slots[i].iov = (struct iovec){data + (size_t)i * MSG_BULK_MAX, l->bs};
    }
    rpc_call_init(&first, RPC_OP_PING, NULL, first_done, c);
    first.flags = RPC_CALL_WAIT;
    first.timeout_ns = 10 * NS_PER_S;
    rpc_peer_call(c->peer, &first);
    reactor_run(c->reactor);
    return out->status;
}

/* ---- the two processes ---- */

static void child_begins(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fflush(NULL);
}

int rpc_server_start(unsigned want, unsigned depth, struct crypto_key *ret_key, uint16_t *ret_port,
                     int *ret_until, pid_t *ret_pid)
{
    int told[2], until[2], rc;
    struct crypto_key key;
    pid_t pid;

    if (crypto_key_create(&key) < 0 || crypto_key_derive(&key, CRYPTO_ROLE_CLIENT, ret_key) < 0 ||
        pipe(told) != 0 || pipe(until) != 0) {
        bench_error("net: cannot make a key and pipes");
        return 1;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        child_begins();
        close(told[0]);
        close(until[1]);
        rc = serve(want, depth, &key, told[1], until[0]);
        bench_error("net: server: %s", err_text(rc));
        _exit(1);
    }
    close(told[1]);
    close(until[0]);
    rc = pid < 0 || read(told[0], ret_port, sizeof *ret_port) != sizeof *ret_port;
    close(told[0]);
    if (pid < 0)
        bench_error("net: fork: %m");
    *ret_until = until[1];
    *ret_pid = pid;
    return rc;
}

static void client_process(const struct rpc_load *l, const struct crypto_key *key, uint16_t port,
                           int result)
{
    struct outcome *out = calloc(1, sizeof *out);
    int rc = out ? 0 : -ENOMEM;

    child_begins();
    if (rc == 0)
        rc = load_run(l, key, port, out);
    if (rc < 0)
        bench_error("net: client: %s", err_text(rc));
    _exit(rc == 0 && write(result, out, sizeof *out) == sizeof *out ? 0 : 1);
}

static int read_outcome(int fd, struct outcome *out)
{
    size_t done = 0;
    ssize_t n;

    while (done < sizeof *out && (n = read(fd, (char *)out + done, sizeof *out - done)) > 0)
        done += (size_t)n;
    return done == sizeof *out ? 0 : -EIO;
}

static double cpu_of(pid_t pid)
{
    struct rusage u;

    if (pid <= 0 || wait4(pid, NULL, 0, &u) != pid)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int run_processes(const struct rpc_load *l, struct outcome *out, double *ret_cpu)
{
    int result[2], until = -1, rc;
    struct crypto_key key;
    pid_t server, client;
    uint16_t port;

    if (rpc_server_start(l->want, l->depth, &key, &port, &until, &server) != 0)
        return -EIO;
    if (pipe(result) != 0) {
        bench_error("net: pipe: %m");
        return -errno;
    }
    fflush(NULL);
    client = fork();
    if (client == 0) {
        close(until);
        close(result[0]);
        client_process(l, &key, port, result[1]);
    }
    if (client < 0)
        bench_error("net: fork: %m");
    close(result[1]);
    rc = read_outcome(result[0], out);
    close(result[0]);
    *ret_cpu = cpu_of(client);
    close(until); /* the server ends */
    *ret_cpu += cpu_of(server);
    return rc;
}

int rpc_load_want(const char *name, unsigned *ret_want)
{
    static const char *const names[] = {
        [NET_WANT_AUTO] = "auto", [NET_WANT_TCP] = "tcp", [NET_WANT_SHM] = "shm"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(names[i], name)) {
            *ret_want = i;
            return 0;
        }
    return -EINVAL;
}

static void row_name(const struct rpc_load *l, const char *prefix, const char *transport, char *out,
                     size_t len)
{
    char size[24] = "";

    if (l->op != RPC_LOAD_PING)
        snprintf(size, sizeof size, l->bs % MIB ? ".%uKi" : ".%uMi",
                 l->bs % MIB ? l->bs / KIB : l->bs / MIB);
    snprintf(out, len, "%s.%s%s.qd%u.%s", prefix, op_names[l->op], size, l->depth, transport);
}

int rpc_load_measure(struct bench *b, const struct rpc_load *l, const char *prefix,
                     struct bench_result **ret_row)
{
    struct outcome *out = calloc(1, sizeof *out);
    bool by_bytes = l->op != RPC_LOAD_PING && l->bs >= 64 * KIB;
    struct bench_result *r;
    char name[64];
    double cpu = 0;

    if (!out || l->depth == 0 || l->depth > DEPTH_MAX || l->bs > MSG_BULK_MAX || l->bs % 4096) {
        bench_error("net: a depth of 1 to %u, blocks of 4 KiB to 1 MiB", DEPTH_MAX);
        free(out);
        return 1;
    }
    if (run_processes(l, out, &cpu) < 0 || out->seconds <= 0) {
        free(out);
        return 1;
    }
    row_name(l, prefix, out->transport, name, sizeof name);
    r = bench_add(b, name, by_bytes ? "MB/s" : "op/s",
                  (by_bytes ? (double)out->bytes / 1e6 : (double)out->operations) / out->seconds,
                  out->seconds);
    bench_latencies(r, &out->latency);
    r->operations = out->operations;
    r->bytes = out->bytes;
    r->cpu_seconds = cpu;
    if (ret_row)
        *ret_row = r;
    free(out);
    return 0;
}
