/* SPDX-License-Identifier: Apache-2.0 */
/* `md` through libaifs, in batches. */
#ifndef AIFS_TOOLS_BENCH_MD_AIFS_H
#define AIFS_TOOLS_BENCH_MD_AIFS_H

#include "tools/bench/bench.h"

/* where: "aifs:" and a source of aifs_mount(). As md_measure(). */
int md_aifs_measure(struct bench *b, const struct md_options *o, const char *prefix,
                    const char *where);

#endif
