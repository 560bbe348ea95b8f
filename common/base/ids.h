/* SPDX-License-Identifier: Apache-2.0 */
/* Random 128-bit identifiers in the usual text form (RFC 4122 version 4), for clusters, nodes,
 * targets and clients. */
#ifndef AIFS_COMMON_BASE_IDS_H
#define AIFS_COMMON_BASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define UUID_TEXT_BYTES 37 /* with the NUL */

struct uuid {
    uint8_t b[16];
};

int uuid_random(struct uuid *ret_id) MUST_USE; /* -errno of getrandom */
int uuid_parse(const char *text, struct uuid *ret_id) MUST_USE;
void uuid_format(const struct uuid *id, char text[UUID_TEXT_BYTES]);
bool uuid_equal(const struct uuid *a, const struct uuid *b);
bool uuid_is_zero(const struct uuid *id);

#endif
