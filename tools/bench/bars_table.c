/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>

#include "common/base/compiler.h"
#include "tools/bench/bars.h"

const struct bar bars[] = {
    {"bar.lib.read", "libaifs, sequential read, 1 MiB, 8 in flight", "raw RPC", BAR_SHARE, 0.70},
    {"bar.lib.write", "libaifs, sequential write, 1 MiB, 8 in flight", "raw RPC", BAR_SHARE, 0.50},
    {"bar.lib.randread", "libaifs, random read, 4 KiB, 32 in flight", "raw RPC", BAR_SHARE, 0.60},
    {"bar.mount.read", "mount, sequential read, 4 jobs, 1 MiB", "null FUSE over RPC", BAR_SHARE,
     0.60},
    {"bar.mount.write", "mount, sequential write, 4 jobs, 1 MiB", "null FUSE over RPC", BAR_SHARE,
     0.45},
    {"bar.mount.randread", "mount, random read, 4 KiB, 8 jobs", "null FUSE over RPC", BAR_SHARE,
     0.60},
    {"bar.mount.reread", "mount, read again from the page cache", "a local file system", BAR_SHARE,
     0.90},
    {"bar.mount.reread.tmpfs", "the same", "tmpfs", BAR_SHARE, 0.90},
    {"bar.small.read", "small files, random order, cold, 8 readers", "null FUSE over RPC",
     BAR_SHARE, 0.50},
    {"bar.overwrite", "4 KiB random overwrite and fsync: bytes written per byte", "", BAR_AT_MOST,
     3},
    {"bar.ckpt", "checkpoint, 4 ranks, fsync", "what a target accepts locally", BAR_SHARE, 0.80},
    {"scale.lib.read.factor.s8.c1", "8 servers against 1, read, libaifs", "", BAR_AT_LEAST, 7.6},
    {"scale.lib.write.factor.s8.c1", "8 servers against 1, write, libaifs", "", BAR_AT_LEAST, 7.6},
    {"scale.mount.read.factor.s8.c1", "8 servers against 1, read, mount", "", BAR_AT_LEAST, 7.2},
    {"scale.mount.write.factor.s8.c1", "8 servers against 1, write, mount", "", BAR_AT_LEAST, 7.2},
    {"scale.lib.read.s8.c4", "4 clients, 8 servers, read", "the servers' links", BAR_SHARE, 0.95},
    {"scale.lib.write.s8.c4", "4 clients, 8 servers, write", "the servers' links", BAR_SHARE, 0.95},
    {"scale.lib.read.s8.c4.spread", "4 clients, 8 servers, read: slowest behind fastest", "",
     BAR_AT_MOST, 10},
    {"scale.lib.write.s8.c4.spread", "4 clients, 8 servers, write: slowest behind fastest", "",
     BAR_AT_MOST, 10},
    {"train.unet3d.*.au", "training unet3d: accelerator utilisation", "", BAR_AT_LEAST, 95},
    {"train.resnet50.*.au", "training resnet50: accelerator utilisation", "", BAR_AT_LEAST, 95},
};
const size_t n_bars = ARRAY_LEN(bars);

const struct bar *bar_of(const char *row)
{
    for (size_t i = 0; i < n_bars; i++)
        if (fnmatch(bars[i].row, row, 0) == 0)
            return &bars[i];
    return NULL;
}

double bar_figure(const struct bar *bar, double value, double limit)
{
    if (bar->kind != BAR_SHARE)
        return value;
    return limit > 0 ? value / limit : 0;
}

bool bar_holds(const struct bar *bar, double value, double limit)
{
    double figure = bar_figure(bar, value, limit);

    return bar->kind == BAR_AT_MOST ? figure <= bar->need : figure >= bar->need;
}

void bar_text(const struct bar *bar, double figure, char *out, size_t len)
{
    bool percent = bar->need >= 10;

    if (bar->kind == BAR_SHARE)
        snprintf(out, len, "%.0f %%", 100 * figure);
    else
        snprintf(out, len, percent ? "%.1f %%" : "%.2f x", figure);
}
