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

/* n slots of 1 MiB that were written and are free; of a file that is destroyed, whose number it
 * returns. */
uint64_t target_warm(unsigned n);
void target_write_init(struct rig_op *o, uint64_t ino, const uint8_t *from, uint32_t len);
/* Into a place, which must be had. */
int target_write_placed(uint64_t ino, const uint8_t *from, uint32_t len);
uint64_t target_mapped(void);
void target_wait_until_mapped(uint64_t bytes);
/* Opens it, and waits until so much is ready for writes. */
void target_open_ready(uint64_t capacity_bytes, uint64_t ready_bytes);

#endif
