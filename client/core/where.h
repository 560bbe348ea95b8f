/* SPDX-License-Identifier: Apache-2.0 */
/* What a line of the log says of a file and a target besides their numbers. */
#ifndef AIFS_CLIENT_CORE_WHERE_H
#define AIFS_CLIENT_CORE_WHERE_H

#include "client/core/core_int.h"

struct where_text {
    char text[320];
};

/* " (/dir/name)" below the root of this mount as far as the names in the cache tell, of more than
 * 256 bytes the end; "" when they do not. It may have other names. */
const char *where_inode(const struct core_inode *i, struct where_text *buf);
/* " on oss1, target 3"; "" of NULL. */
const char *where_target(const struct oss_target *t, struct where_text *buf);

#endif
