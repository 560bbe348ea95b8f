/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit that FUSE sets: the null file system in a process of its own, mounted on a new
 * directory, under the same measurements as a real mount. Twice: without the page cache, and with
 * it (cold, where the caches may be dropped). And without the cache but with the bytes fetched by
 * raw RPC from another process: what a networked file system without any work of its own would
 * reach.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/io.h"
#include "tools/bench/limits.h"
#include "tools/bench/null_mount.h"

/* ---- the measurements ---- */

static int measure_io(struct bench *b, const char *prefix, const char *dir, double seconds,
                      bool cached)
{
    struct io_options o = IO_OPTIONS_DEFAULT;
    static const unsigned jobs[] = {1, 4};
    int rc = 0;

    o.cold = cached && geteuid() == 0;
    o.direct = !cached;
    for (unsigned i = 0; i < ARRAY_LEN(jobs) && rc == 0; i++) {
        o.jobs = jobs[i];
        /* what was read once is hot: a cold run goes once through its files */
        o.size = cached ? 512 * MIB / o.jobs : 64 * MIB;
        o.seconds = cached ? 0 : seconds;
        o.rw = "write,read";
        rc = io_measure(b, &o, prefix, dir);
    }
    if (rc || cached)
        return rc;
    o.jobs = 8;
    o.bs = 4096;
    o.size = 16 * MIB;
    o.rw = "randread";
    return io_measure(b, &o, prefix, dir);
}

static int measure_md(struct bench *b, const char *prefix, const char *dir, double seconds)
{
    struct md_options o = MD_OPTIONS_DEFAULT;

    o.phases = "create,stat,unlink";
    o.seconds = seconds;
    o.files = 20000;
    return md_measure(b, &o, prefix, dir);
}

static int with_null_fs(struct bench *b, enum channel_kind kind, const char *prefix, double seconds,
                        bool cached, unsigned want)
{
    struct null_mount m;
    int rc;

    if (!null_mount_start(&m, kind, cached, want))
        return 0;
    rc = measure_io(b, prefix, m.dir, seconds, cached);
    if (rc == 0 && !cached && want == NULL_MOUNT_NO_RPC)
        rc = measure_md(b, prefix, m.dir, seconds);
    null_mount_stop(&m);
    return rc;
}

int limit_null_fuse(struct bench *b, enum channel_kind kind, double seconds)
{
    int rc = with_null_fs(b, kind, "fuse", seconds, false, NULL_MOUNT_NO_RPC);

    return rc ? rc : with_null_fs(b, kind, "fuse-cached", seconds, true, NULL_MOUNT_NO_RPC);
}

int limit_rpc_fuse(struct bench *b, enum channel_kind kind, unsigned want, const char *net,
                   double seconds)
{
    char prefix[32];

    snprintf(prefix, sizeof prefix, "fuse-rpc-%s", net);
    return with_null_fs(b, kind, prefix, seconds, false, want);
}

int limit_mount(struct bench *b, const char *dir, double seconds)
{
    unsigned before = b->n_results;
    int rc = measure_io(b, "mount", dir, seconds, false);

    if (rc == 0)
        rc = measure_md(b, "mount", dir, seconds);
    if (rc == 0)
        rc = measure_io(b, "mount-cached", dir, seconds, true);
    for (unsigned i = 0; i < before; i++) /* "fuse.x" limits "mount.x" */
        for (unsigned k = before; k < b->n_results; k++)
            if (!strncmp(b->results[i].name, "fuse", 4) &&
                !strcmp(b->results[i].name + 4, b->results[k].name + 5)) {
                b->results[k].limit = b->results[i].value;
                b->results[k].limit_name = b->results[i].name;
            }
    return rc;
}
