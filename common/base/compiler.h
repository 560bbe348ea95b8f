/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the compiler attributes this project uses, and the few macros every file wants. */
#ifndef AIFS_COMMON_BASE_COMPILER_H
#define AIFS_COMMON_BASE_COMPILER_H

#include <stddef.h>

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
#define UNUSED            __attribute__((unused))
#define LIKELY(x)         __builtin_expect(!!(x), 1)
#define UNLIKELY(x)       __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define MIN(a, b)                       ((a) < (b) ? (a) : (b))
#define MAX(a, b)                       ((a) > (b) ? (a) : (b))
#define KIB                             (1024u)
#define MIB                             (1024u * 1024u)
#define GIB                             (1024ull * 1024u * 1024u)
#define NS_PER_US                       (1000ull)
#define NS_PER_MS                       (1000000ull)
#define NS_PER_S                        (1000000000ull)

#endif
