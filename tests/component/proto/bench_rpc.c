// SPDX-License-Identifier: Apache-2.0
/*
 * What a small call costs: a server process and this one, PING and LOOKUP at several queue depths.
 *
 *   bench-rpc [tcp|auto] [seconds]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "proto/rpc.h"

#define DEPTH_MAX 64

struct load {
    struct rpc_peer *peer;
    struct rpc_call calls[DEPTH_MAX];
    unsigned op;
    uint64_t done, end_ns;
    unsigned running;
    bool failed;
};

static const struct msg_name_req lookup = {
    .cred = {.uid = 1000, .gid = 1000}, .parent = 1234567, .name = {"shard-00042.tar", 15}};

static void on_lookup(struct rpc_req *req)
{
    struct msg_inode_rep rep = {
        .inode.attr =
            {.ino = 7, .mode = 0100644, .nlink = 1, .uid = 1000, .gid = 1000, .size = 123456},
        .inode.layout = {1, 1, 4, 1u << 20, 4, 2, 0}};

    rep.inode.attr.mtime = rep.inode.attr.ctime = rep.inode.attr.atime = rep.inode.attr.btime =
        (struct msg_time){1700000000, 123456789};
    rpc_reply(req, 0, &rep);
}

static void options(struct rpc_node_options *o, const struct crypto_key *key, enum net_want want)
{
    memset(o, 0, sizeof *o);
    o->key = *key;
    o->self.role = key->role;
    snprintf(o->self.name, sizeof o->self.name, "bench");
    if (uuid_random(&o->self.node) || uuid_random(&o->self.boot))
        exit(1);
    net_options_default(&o->net);
    o->net.want = want;
}

static struct rpc_node *node(struct reactor **ret_reactor, const struct crypto_key *key,
                             enum net_want want)
{
    struct reactor_options ro = {.name = "bench"};
    struct rpc_node_options o;
    struct rpc_node *n;

    options(&o, key, want);
    if (reactor_create(&ro, ret_reactor) || rpc_node_create(*ret_reactor, &o, &n))
        exit(1);
    return n;
}

static void serve(const struct crypto_key *key, enum net_want want, int port_fd)
{
    struct reactor *r;
    struct rpc_node *n = node(&r, key, want);
    struct net_addr addr;
    char err[64];
    uint16_t port;

    rpc_node_handle(n, RPC_OP_LOOKUP, on_lookup, NULL);
    if (net_addr_resolve("127.0.0.1:0", 0, &addr, err, sizeof err) ||
        rpc_node_listen(n, &addr, &port))
        exit(1);
    if (write(port_fd, &port, sizeof port) != sizeof port)
        exit(1);
    reactor_run(r);
}

static void start(struct load *l, struct rpc_call *c);

static void on_done(struct rpc_call *c, int status)
{
    struct load *l = c->arg;

    rpc_call_fini(c);
    l->done++;
    l->failed |= status != 0;
    if (l->failed || clock_mono_ns(clock_real()) >= l->end_ns)
        l->running--;
    else
        start(l, c);
}

static void start(struct load *l, struct rpc_call *c)
{
    rpc_call_init(c, l->op, l->op == RPC_OP_LOOKUP ? &lookup : NULL, on_done, l);
    c->session = 1;
    c->timeout_ns = 5 * NS_PER_S;
    rpc_peer_call(l->peer, c);
}

static double cpu_us(int who)
{
    struct rusage u;

    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void measure(struct reactor *r, struct load *l, unsigned op, unsigned depth,
                    uint64_t seconds)
{
    uint64_t begin = clock_mono_ns(clock_real());
    double cpu = cpu_us(RUSAGE_SELF), us;

    l->op = op;
    l->done = 0;
    l->end_ns = begin + seconds * NS_PER_S;
    l->running = depth;
    for (unsigned i = 0; i < depth; i++)
        start(l, &l->calls[i]);
    while (l->running)
        reactor_run_once(r, NS_PER_S);
    us = (double)(clock_mono_ns(clock_real()) - begin) / 1e3;
    cpu = cpu_us(RUSAGE_SELF) - cpu;
    printf("%-7s depth %2u: %9.0f calls/s, %7.2f us each%s, %5.2f us of client CPU\n",
           rpc_op_name(op), depth, (double)l->done / us * 1e6, us * depth / (double)l->done,
           l->failed ? " (FAILED)" : "", cpu / (double)l->done);
}

int main(int argc, char **argv)
{
    enum net_want want = argc > 1 && strcmp(argv[1], "auto") == 0 ? NET_WANT_AUTO : NET_WANT_TCP;
    uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 3;
    static const unsigned depths[] = {1, 8, 32};
    struct crypto_key key;
    struct reactor *r;
    struct rpc_node *n;
    struct load l = {0};
    char address[64];
    const char *addresses[1] = {address};
    int fds[2];
    uint16_t port = 0;
    pid_t pid;

    log_set_level(LOG_LEVEL_INFO);
    if (crypto_key_create(&key) || pipe(fds))
        return 1;
    pid = fork();
    if (pid == 0)
        serve(&key, want, fds[1]);
    if (read(fds[0], &port, sizeof port) != sizeof port)
        return 1;
    n = node(&r, &key, want);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    if (rpc_peer_create(n, addresses, 1, NULL, NULL, &l.peer))
        return 1;
    while (!rpc_peer_is_up(l.peer))
        reactor_run_once(r, NS_PER_S);
    for (unsigned i = 0; i < ARRAY_LEN(depths); i++) {
        measure(r, &l, RPC_OP_PING, depths[i], seconds);
        measure(r, &l, RPC_OP_LOOKUP, depths[i], seconds);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return 0;
}
