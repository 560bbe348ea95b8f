/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for whom, for `top`: asked of the metadata server. Where a process that waits, or that
 * is waited for, runs on this machine, the path of the file is what that process calls it: found in
 * /proc, so that nothing here waits for the mount.
 */
#ifndef AIFS_TOOLS_ADMIN_TOP_WAITS_H
#define AIFS_TOOLS_ADMIN_TOP_WAITS_H

#include "tools/admin/admin.h"

/* The longest waits first, at most max of them; ret_n: how many. NULL: the server does not tell (it
 * does not answer, or does not know the question). */
struct out *top_waits(struct admin *a, uint64_t timeout_ns, uint64_t max, bool *ret_more,
                      uint32_t *ret_n);

#endif
