/* SPDX-License-Identifier: Apache-2.0 */
/* A client that makes files in the directory of removing_bed.h, where it is alone. */
#ifndef AIFS_TESTS_SUPPORT_CREATING_BED_H
#define AIFS_TESTS_SUPPORT_CREATING_BED_H

#include "tests/support/removing_bed.h"

#define CR_LEN 3000u

extern uint8_t cr_bytes[CR_LEN];

void cr_setup(void);
void cr_setup_with(uint64_t without, const struct core_options *o); /* o: NULL: the default */
/* Two files are made as ever, the directory is listed: from now on the client knows. */
void cr_begin(void);
/* Makes it; was that over before anything could have been sent? */
struct core_file *cr_make(const char *name, bool *ret_at_once);
struct core_file *cr_make_ahead(const char *name);
void cr_put(struct core_file *f);               /* CR_LEN bytes */
const char *cr_name(unsigned k);                /* valid until the next one */
void cr_whole(unsigned from, unsigned to);      /* made, written and closed */
struct fake_inode *cr_stored(const char *name); /* at the server; NULL: it is not */
void cr_expect_whole(const char *name);
/* The same in any directory, flushed and closed; was it made at once? */
bool cr_file_in(uint64_t dir, const char *name, const void *data, uint32_t len);
uint64_t cr_dir_in(uint64_t dir, const char *name, bool *ret_at_once);

#endif
