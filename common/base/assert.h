/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assertions that stay on in release builds. For programmer errors only: anything that came from
 * the network, the disk, a user or a configuration file is checked and answered with an error,
 * never asserted on.
 */
#ifndef AIFS_COMMON_BASE_ASSERT_H
#define AIFS_COMMON_BASE_ASSERT_H

#include "common/base/compiler.h"

NORETURN void assert_fail(const char *expr, const char *file, int line, const char *func);

#define ASSERT(expr) (LIKELY(expr) ? (void)0 : assert_fail(#expr, __FILE__, __LINE__, __func__))

#endif
