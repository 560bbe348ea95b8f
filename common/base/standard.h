/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input, output and error of a program, which whoever starts it may have closed ("2>&-")
 * or have on a full disk. For main() alone: before there are threads, and at the end.
 */
#ifndef AIFS_COMMON_BASE_STANDARD_H
#define AIFS_COMMON_BASE_STANDARD_H

#include <stdbool.h>

#include "common/base/compiler.h"

/* First of all: the number of one that is closed would be that of the next file opened, and what
 * the program says would be written into that. It is taken by something that can be neither read
 * nor written: EBADF, as before. */
void standard_open(void);

/* All that was printed is out, or -errno; what failed earlier counts (-EIO). */
int standard_flush(void) MUST_USE;

/* The same as an exit status: 0, or 1 after saying on standard error what program could not
 * (but not that the reader of a pipe is gone). */
int standard_end(const char *program) MUST_USE;

#endif
