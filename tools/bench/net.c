/* SPDX-License-Identifier: Apache-2.0 */
/* `net`: raw RPC between two processes, by one transport and with one operation (rpc_load.h). */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/bench/rpc_load.h"

static struct {
    const char *net, *op;
    uint64_t bs;
    unsigned depth;
    double seconds;
} opt = {.net = "auto", .op = "all", .bs = 1u << 20, .depth = 8, .seconds = 2};

static const struct bench_option options[] = {
    {"net", BENCH_TEXT, &opt.net, "auto, tcp or shm (auto)"},
    {"op", BENCH_TEXT, &opt.op, "ping, read, write or all (all)"},
    {"bs", BENCH_SIZE, &opt.bs, "payload, 4Ki to 1Mi (1Mi)"},
    {"depth", BENCH_NUMBER, &opt.depth, "calls in flight (8)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "how long (2)"},
};

static int run(struct bench *b, int argc, char **argv)
{
    static const char *const ops[] = {"ping", "read", "write"};
    struct rpc_load l = {
        .bs = (uint32_t)MIN(opt.bs, UINT32_MAX), .depth = opt.depth, .seconds = opt.seconds};
    bool any = false;

    (void)argv;
    if (argc != 0 || rpc_load_want(opt.net, &l.want) < 0 || opt.seconds <= 0) {
        bench_error("net: takes no path, --net auto, tcp or shm, and more than 0 seconds");
        return 2;
    }
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
        if (strcmp(opt.op, "all") != 0 && strcmp(opt.op, ops[i]) != 0)
            continue;
        any = true;
        l.op = (enum rpc_load_op)i;
        if (rpc_load_measure(b, &l, "net", NULL) != 0)
            return 1;
    }
    if (!any)
        bench_error("net: --op is ping, read, write or all");
    return any ? 0 : 2;
}

const struct bench_scenario bench_net = {
    "net",   "[options]",        "raw calls between two processes of this machine",
    options, ARRAY_LEN(options), run};
