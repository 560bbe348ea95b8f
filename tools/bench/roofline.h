/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can do at most with the very load that was just measured. */
#ifndef AIFS_TOOLS_BENCH_ROOFLINE_H
#define AIFS_TOOLS_BENCH_ROOFLINE_H

#include "tools/bench/bench.h"

/*
 * After s->run(b, argc, argv): measures limits and sets them in the rows that are there. Through a
 * FUSE mount: the same run on null FUSE over raw RPC. Through libaifs: raw calls that carry as many
 * bytes as the operations did on average (at most 1 MiB), 8 in flight. Elsewhere: the same run in
 * memory. Rows without bytes or counterpart stay without a limit. 0, or 1 after printing.
 */
int roofline_measure(struct bench *b, const struct bench_scenario *s, int argc,
                     char **argv) MUST_USE;

#endif
