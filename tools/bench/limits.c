/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `limits`: what this machine can do without a file system: memory, checksums, raw RPC, FUSE with
 * nothing behind it, a file under a target. With --mount a mount is held against them.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/bench/limits.h"
#include "tools/bench/rpc_load.h"

static struct {
    const char *net, *dir, *mount, *only;
    double seconds;
} opt = {.net = "all", .dir = "/dev/shm", .only = "memory,rpc,target,fuse", .seconds = 1};

static const struct bench_option options[] = {
    {"net", BENCH_TEXT, &opt.net, "tcp, shm, auto, or all: tcp and shm (all)"},
    {"dir", BENCH_TEXT, &opt.dir, "where targets would be (/dev/shm)"},
    {"mount", BENCH_TEXT, &opt.mount, "a mount to hold against FUSE alone"},
    {"only", BENCH_TEXT, &opt.only, "which of memory rpc target fuse (all)"},
    {"seconds", BENCH_SECONDS, &opt.seconds, "time of each row (1)"},
};

static int limit_rpc(struct bench *b, unsigned want, double seconds)
{
    const struct rpc_load loads[] = {
        {RPC_LOAD_PING, want, 4096, 1, seconds},  {RPC_LOAD_READ, want, 4096, 1, seconds},
        {RPC_LOAD_READ, want, 4096, 32, seconds}, {RPC_LOAD_READ, want, MIB, 1, seconds},
        {RPC_LOAD_READ, want, MIB, 8, seconds},   {RPC_LOAD_WRITE, want, MIB, 8, seconds},
    };
    int rc = 0;

    for (unsigned i = 0; i < ARRAY_LEN(loads) && rc == 0; i++)
        rc = rpc_load_measure(b, &loads[i], "rpc", NULL);
    return rc;
}

static int limit_rpcs(struct bench *b)
{
    unsigned tcp, shm;
    int rc;

    if (strcmp(opt.net, "all") != 0) {
        if (rpc_load_want(opt.net, &tcp) == 0)
            return limit_rpc(b, tcp, opt.seconds);
        bench_error("limits: --net is tcp, shm, auto or all");
        return 2;
    }
    if (rpc_load_want("tcp", &tcp) < 0 || rpc_load_want("shm", &shm) < 0)
        return 1;
    rc = limit_rpc(b, tcp, opt.seconds);
    return rc ? rc : limit_rpc(b, shm, opt.seconds);
}

static int run(struct bench *b, int argc, char **argv)
{
    int rc = 0;

    (void)argv;
    if (argc != 0 || opt.seconds <= 0) {
        bench_error("limits: takes no path, and more than 0 seconds");
        return 2;
    }
    if (strstr(opt.only, "memory"))
        rc = limit_memory(b, opt.seconds);
    if (rc == 0 && strstr(opt.only, "rpc"))
        rc = limit_rpcs(b);
    if (rc == 0 && strstr(opt.only, "target"))
        rc = limit_target(b, opt.dir, opt.seconds);
    if (rc == 0 && strstr(opt.only, "fuse"))
        rc = limit_null_fuse(b, opt.seconds);
    if (rc == 0 && opt.mount)
        rc = limit_mount(b, opt.mount, opt.seconds);
    return rc;
}

const struct bench_scenario bench_limits = {
    "limits", "[options]",        "what this machine can do without a file system",
    options,  ARRAY_LEN(options), run};
