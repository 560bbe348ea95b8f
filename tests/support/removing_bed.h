/* SPDX-License-Identifier: Apache-2.0 */
/* A client that removes the files of one directory, at a server that says that it is alone there.
 */
#ifndef AIFS_TESTS_SUPPORT_REMOVING_BED_H
#define AIFS_TESTS_SUPPORT_REMOVING_BED_H

#include "client/core/core_int.h"
#include "tests/support/client_bed.h"

#define RM_FILES 40u
#define RM_DIR   2u /* the inode of the directory "dir" */

struct removing_bed {
    struct bed bed;
    struct core *c;
};
extern struct removing_bed rm;

void rm_setup(void);
void rm_teardown(void);
uint64_t rm_make(uint64_t parent, const char *name, uint32_t mode);
const char *rm_name(unsigned k);        /* of the k-th file; valid for a while */
struct fake_inode *rm_file(unsigned k); /* NULL: removed */
/* Two files are removed as ever, the others are listed: from now on the client knows. */
void rm_begin(void);
void rm_start(struct bed_op *op, const char *name);
int rm_wait(unsigned k);
bool rm_at_once(unsigned k); /* removes it; was that over before anything could have been sent? */
int rm_getattr(uint64_t ino);
int rm_lookup(const char *name);
unsigned rm_list(uint64_t ino); /* how many names it has */
int rm_fsync(void);
struct core_stats rm_stats(void);
void rm_let_pass(void); /* time for whatever may go on */

#endif
