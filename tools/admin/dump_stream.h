/* SPDX-License-Identifier: Apache-2.0 */
/* All records of the metadata server as of one moment, page by page. */
#ifndef AIFS_TOOLS_ADMIN_DUMP_STREAM_H
#define AIFS_TOOLS_ADMIN_DUMP_STREAM_H

#include "tools/admin/admin.h"

/* A page holds whole records (mds/store/dump_fmt.h) with right checksums; returns enum admin_exit,
 * not ADMIN_OK ends the stream. */
typedef int dump_page_fn(void *arg, const void *page, uint32_t len);
int dump_stream(struct admin *a, dump_page_fn *page, void *arg, uint64_t *ret_records);

#endif
