/* SPDX-License-Identifier: Apache-2.0 */
/* The extended attribute "aifs.layout" as numbers. */
#ifndef AIFS_TOOLS_ADMIN_LAYOUT_TEXT_H
#define AIFS_TOOLS_ADMIN_LAYOUT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "proto/map.h"

#define LAYOUT_TEXT_CHUNK_MIN (64u << 10)
#define LAYOUT_TEXT_CHUNK_MAX (64u << 20)

struct layout_text {
    char pool[MAP_NAME_BYTES];
    uint64_t chunk_bytes, count, copies, start, table;
    bool no_targets; /* of a directory: nothing can be made there now */
};

int layout_text_parse(const char *text, struct layout_text *ret_layout) MUST_USE; /* -EINVAL */
int layout_text_get(const char *path, struct layout_text *ret_layout) MUST_USE;   /* -errno */

#endif
