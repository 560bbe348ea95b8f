/* SPDX-License-Identifier: Apache-2.0 */
/* One client on a cluster in memory, bytes to write and room to read them into: where most tests of
 * what a client does with files begin. A test program has one of each. */
#ifndef AIFS_TESTS_SUPPORT_FILE_BED_H
#define AIFS_TESTS_SUPPORT_FILE_BED_H

#include "tests/support/client_bed.h"

extern struct bed bed;
extern struct core *c;       /* NULL: the test has unmounted it */
extern uint8_t *data, *back; /* of the room that was asked for; data has a pattern */

void file_bed_setup(unsigned n_oss, size_t room);
void file_bed_teardown(void);
void file_bed_remount(const struct core_options *o); /* nothing is cached; o: NULL, or options */

struct core_file *stored_file(const char *name, uint32_t len); /* the first bytes of data, synced */
void expect_read(struct core_file *f, uint64_t offset, const uint8_t *want, uint32_t len);
void read_later(struct bed_op *op, struct core_file *f, uint64_t offset, uint32_t len);
void fsync_later(struct bed_op *op, struct core_file *f);

#endif
