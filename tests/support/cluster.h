/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real daemons as children of a test: one aifs-mds and some aifs-oss with a target each, in a
 * directory that is gone afterwards. $AIFS_BUILD names the build directory; without it the programs
 * are looked for beside the test's own. Everything here fails the test when it fails, except
 * cluster_start(), which says whether the programs are there at all.
 */
#ifndef AIFS_TESTS_SUPPORT_CLUSTER_H
#define AIFS_TESTS_SUPPORT_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/support/suite.h"
#include "tests/support/tmp.h"

#define CLUSTER_OSS_MAX 4u

struct cluster {
    struct tmp tmp;
    char build[512];
    char source[64]; /* "127.0.0.1:port:/" */
    char options[PATH_MAX + 64];
    char key[PATH_MAX];
    unsigned n_oss;
    uint64_t capacity; /* of a target; 0: what is there. Set before cluster_start() */
    pid_t mds, oss[CLUSTER_OSS_MAX];
    uint16_t mds_port, oss_port[CLUSTER_OSS_MAX];
    const char *net; /* "auto", "tcp"; NULL: auto */
};

bool cluster_start(struct cluster *c, unsigned n_oss); /* false: no programs to start */
void cluster_stop(struct cluster *c);
void cluster_kill_oss(struct cluster *c, unsigned k, int signal); /* and waits until it is gone */
void cluster_start_oss(struct cluster *c, unsigned k);            /* at the port it had */
void cluster_kill_mds(struct cluster *c, int signal);
void cluster_start_mds(struct cluster *c);

/* For main(), before Check forks. */
bool cluster_built(void); /* are there daemons to start? If not it says so: the test ends with 77 */
unsigned cluster_number(const char *env, unsigned otherwise); /* what a variable asks for */

#define CLUSTER_SUITE_MAIN(name, setup, teardown, ...)                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
                                                                                                   \
        if (!cluster_built())                                                                      \
            return 77;                                                                             \
        return suite_run(name, setup, teardown, tests, sizeof tests / sizeof tests[0]);            \
    }

#endif
