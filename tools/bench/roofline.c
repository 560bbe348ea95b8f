/* SPDX-License-Identifier: Apache-2.0 */
/* Where the limit of a place is measured: another place of the same kind, or raw RPC. */
#include "tools/bench/roofline.h"

#include <string.h>
#include <sys/statfs.h>

#include "tools/bench/null_mount.h"
#include "tools/bench/rpc_load.h"

#define FUSE_MAGIC  0x65735546
#define MEMORY      "/dev/shm"
#define RPC_SECONDS 0.5
#define RPC_DEPTH   8u

/* The run again, elsewhere: its rows become the limits of those of the same name, and go. */
static int again(struct bench *b, const struct bench_scenario *s, char *where,
                 const char *limit_name)
{
    unsigned n = b->n_results, n_notes = b->n_notes;
    int rc;

    b->blind = true;
    rc = s->run(b, 1, &where);
    b->blind = false;
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = n; k < b->n_results; k++)
            if (!strcmp(b->results[i].name, b->results[k].name) && b->results[k].value > 0 &&
                strcmp(b->results[i].unit, "s") != 0) {
                b->results[i].limit = b->results[k].value;
                b->results[i].limit_name = limit_name;
            }
    b->n_results = n;
    b->n_notes = n_notes;
    return rc;
}

static int on_null_fuse(struct bench *b, const struct bench_scenario *s)
{
    struct null_mount m;
    unsigned want;
    int rc;

    if (rpc_load_want("auto", &want) < 0 || !null_mount_start(&m, CHANNEL_KIND_AUTO, true, want))
        return 0; /* it has said why */
    rc = again(b, s, m.dir, "null FUSE over RPC");
    null_mount_stop(&m);
    return rc;
}

static bool is_write(const char *name)
{
    return strstr(name, "write") || strstr(name, "put") || strstr(name, "create") ||
           strstr(name, "prepare");
}

static int raw_calls(struct bench *b)
{
    unsigned n = b->n_results, want;
    int rc = rpc_load_want("auto", &want);

    for (unsigned i = 0; i < n && rc == 0; i++) {
        struct bench_result *r = &b->results[i], *raw;
        uint64_t each = r->operations ? r->bytes / r->operations : 0;
        struct rpc_load l = {.op = is_write(r->name) ? RPC_LOAD_WRITE : RPC_LOAD_READ,
                             .want = want,
                             .bs = (uint32_t)(MIN(each + 4095, MIB) & ~4095ull),
                             .depth = each < 64 * KIB ? 4 * RPC_DEPTH : RPC_DEPTH,
                             .seconds = RPC_SECONDS};

        if (each == 0)
            continue;
        rc = rpc_load_measure(b, &l, "limit", &raw);
        if (rc)
            break;
        r->limit =
            (double)raw->bytes / raw->seconds / (strcmp(r->unit, "MB/s") ? (double)each : 1e6);
        r->limit_name = "raw RPC";
        b->n_results--;
    }
    return rc;
}

int roofline_measure(struct bench *b, const struct bench_scenario *s, int argc, char **argv)
{
    static char memory[] = MEMORY;
    struct statfs st;

    if (argc != 1)
        return 0; /* no place: the scenario has limits of its own, or is one */
    if (!strncmp(argv[0], "aifs:", 5))
        return raw_calls(b);
    if (statfs(argv[0], &st) == 0 && st.f_type == FUSE_MAGIC)
        return on_null_fuse(b, s);
    return again(b, s, memory, "memory (" MEMORY ")");
}
