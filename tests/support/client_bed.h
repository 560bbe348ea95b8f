/* SPDX-License-Identifier: Apache-2.0 */
/* A client core and a cluster in memory on one reactor with a virtual clock, and each operation as
 * a call that runs the reactor until it is done. Time passes only while there is nothing to do.
 * Several clients may share the cluster. */
#ifndef AIFS_TESTS_SUPPORT_CLIENT_BED_H
#define AIFS_TESTS_SUPPORT_CLIENT_BED_H

#include "client/core/core.h"
#include "tests/support/fake_cluster.h"

struct bed {
    struct clock_virtual clock;
    struct reactor *reactor;
    struct fake_cluster cluster;
};

struct bed_op {
    struct core_req q;
    bool done;
    int status;
};

void bed_setup(struct bed *b, unsigned n_oss);
void bed_teardown(struct bed *b);
struct core *bed_mount(struct bed *b,
                       const struct core_options *more); /* more: NULL, or options to start from */
void bed_unmount(struct bed *b, struct core *c, bool force, int expect);

void bed_op_init(struct bed_op *o);
int bed_wait(struct bed *b, struct bed_op *o);
void bed_spin(struct bed *b, uint64_t ns); /* lets so much time pass */

struct bed_late { /* lives until another policy is set */
    unsigned n;
    uint64_t delay_ns;
};
/* The second message from now on comes so late: an answer, behind its question. */
void bed_answer_late(struct bed_late *l, uint64_t delay_ns);

struct core_file *bed_create(struct bed *b, struct core *c, const char *name);
struct core_file *bed_open(struct bed *b, struct core *c, const char *name, int flags,
                           struct core_opened *ret_opened);
int bed_write(struct bed *b, struct core *c, struct core_file *f, uint64_t offset, const void *data,
              uint32_t len);
int bed_read(struct bed *b, struct core *c, struct core_file *f, uint64_t offset, void *data,
             uint32_t len); /* bytes or error */
int bed_flush(struct bed *b, struct core *c, struct core_file *f);
int bed_fsync(struct bed *b, struct core *c, struct core_file *f);
int bed_truncate(struct bed *b, struct core *c, struct core_file *f, uint64_t size);
int bed_size(struct bed *b, struct core *c, uint64_t ino, uint64_t *ret_size);
/* The file is so long, and that is what its targets or the server have durably of it. */
void bed_expect_durable(struct bed *b, const char *name, const uint8_t *data, uint32_t len);
void bed_pattern(uint8_t *data, size_t len, uint64_t offset, unsigned seed);

#endif
