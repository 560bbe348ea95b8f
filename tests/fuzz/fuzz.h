/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small fuzzing driver without an engine: cases make inputs from a seed and feed them to what is
 * tested; the sanitizers are the judges. Every iteration has a seed of its own, which is printed
 * when the process dies, and with which that one iteration can be repeated:
 *
 *   fuzz-proto [--case NAME] [--seconds N] [--seed S] [--count N]
 */
#ifndef AIFS_TESTS_FUZZ_H
#define AIFS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/proto/random_msg.h"

struct fuzz_case {
    const char *name;
    void (*run)(struct rng *g); /* one iteration, from the seed to the end */
};

/* Damages len bytes in place in one of several ways; returns the new length, never larger. */
size_t fuzz_mutate(struct rng *g, uint8_t *data, size_t len);
/* What must hold: prints and aborts otherwise. */
#define FUZZ_CHECK(expr) ((expr) ? (void)0 : fuzz_failed(#expr, __FILE__, __LINE__))
void fuzz_failed(const char *expr, const char *file, int line) __attribute__((noreturn));

int fuzz_main(int argc, char **argv, const struct fuzz_case *cases, size_t n);

#endif
