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
    const char *net, *dir, *mount, *only, *channel;
    double seconds;
    enum channel_kind kind;
} opt = {.net = "all",
         .channel = "auto",
         .dir = "/dev/shm",
         .only = "memory,rpc,target,fuse,fuse-rpc",
         .seconds = 1};

static const struct bench_option options[] = {
    {"net", BENCH_TEXT, &opt.net, "tcp, shm, auto, or all: tcp and shm (all)"},
    {"dir", BENCH_TEXT, &opt.dir, "where targets would be (/dev/shm)"},
    {"channel", BENCH_TEXT, &opt.channel,
     "of FUSE alone: auto, fuse, libfuse or io_uring, as of mounts (auto)"},
    {"mount", BENCH_TEXT, &opt.mount, "a mount to hold against FUSE alone"},
    {"only", BENCH_TEXT, &opt.only, "which of memory rpc target fuse fuse-rpc (all)"},
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

static int limit_both(struct bench *b, unsigned want, const char *net)
{
    int rc = 0;

    if (bench_listed(opt.only, "rpc"))
        rc = limit_rpc(b, want, opt.seconds);
    if (rc == 0 && bench_listed(opt.only, "fuse-rpc"))
        rc = limit_rpc_fuse(b, opt.kind, want, net, opt.seconds);
    return rc;
}

/* Raw RPC and FUSE over it, by the transports asked for. */
static int limit_rpcs(struct bench *b)
{
    static const char *const nets[] = {"tcp", "shm"};
    unsigned want;
    int rc = 0;

    if (strcmp(opt.net, "all") != 0) {
        if (rpc_load_want(opt.net, &want) == 0)
            return limit_both(b, want, opt.net);
        bench_error("limits: --net is tcp, shm, auto or all");
        return 2;
    }
    for (unsigned i = 0; i < ARRAY_LEN(nets) && rc == 0; i++)
        rc = rpc_load_want(nets[i], &want) < 0 ? 1 : limit_both(b, want, nets[i]);
    return rc;
}

static bool channel_of(const char *name, enum channel_kind *ret_kind)
{
    static const char *const names[] = {[CHANNEL_KIND_AUTO] = "auto",
                                        [CHANNEL_KIND_FUSE] = "fuse",
                                        [CHANNEL_KIND_LIBFUSE] = "libfuse",
                                        [CHANNEL_KIND_IO_URING] = "io_uring"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_kind = (enum channel_kind)i;
            return true;
        }
    }
    bench_error("limits: --channel is auto, fuse, libfuse or io_uring");
    return false;
}

static int run(struct bench *b, int argc, char **argv)
{
    int rc = 0;

    (void)argv;
    if (argc != 0 || opt.seconds <= 0) {
        bench_error("limits: takes no path, and more than 0 seconds");
        return 2;
    }
    if (!channel_of(opt.channel, &opt.kind))
        return 2;
    if (bench_listed(opt.only, "memory"))
        rc = limit_memory(b, opt.seconds);
    if (rc == 0)
        rc = limit_rpcs(b);
    if (rc == 0 && bench_listed(opt.only, "target"))
        rc = limit_target(b, opt.dir, opt.seconds);
    if (rc == 0 && bench_listed(opt.only, "fuse"))
        rc = limit_null_fuse(b, opt.kind, opt.seconds);
    if (rc == 0 && opt.mount)
        rc = limit_mount(b, opt.mount, opt.seconds);
    return rc;
}

const struct bench_scenario bench_limits = {
    "limits", "[options]",        "what this machine can do without a file system",
    options,  ARRAY_LEN(options), run};
