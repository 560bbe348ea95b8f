/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/stat/ only: the registry walks, the printer prints one object at a time. */
#ifndef AIFS_COMMON_STAT_STAT_INT_H
#define AIFS_COMMON_STAT_STAT_INT_H

#include <stdbool.h>
#include <stdio.h>

#include "common/stat/stat.h"

/* first_of_name: the HELP and TYPE lines come before it. Called under the registry's mutex. */
void stat_print_one(struct strbuf *out, const struct stat_item *s, bool first_of_name);

#endif
