/* SPDX-License-Identifier: Apache-2.0 */
/* One target, not opened yet, bytes to write and room to read them into: where most tests of the
 * chunk store begin. A test program has one of each. */
#ifndef AIFS_TESTS_COMPONENT_OSS_TARGET_BED_H
#define AIFS_TESTS_COMPONENT_OSS_TARGET_BED_H

#include "tests/component/oss/rig.h"

#define CB (1024u * KIB) /* of a chunk */

extern struct rig rig;
extern uint8_t *data, *got; /* four chunks, random; one chunk */

void target_setup(void);
void target_setup_on_disk(void);
void target_teardown(void);
bool target_in_memory(void); /* its directory is in a tmpfs */

struct chunk_stat target_stat(void);
uint64_t target_used(void);
/* The first len bytes of chunk 0. */
void target_expect(uint64_t ino, const uint8_t *want, uint32_t len);

#endif
