/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of fixed-width integers in a stated byte order, at any alignment. Little-endian
 * on the wire, big-endian in keys. */
#ifndef AIFS_COMMON_BASE_BYTES_H
#define AIFS_COMMON_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BYTES_DEFINE(order, bits)                                                                  \
    static inline uint##bits##_t order##bits##_load(const void *p)                                 \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof v);                                                                   \
        return order##bits##toh(v);                                                                \
    }                                                                                              \
    static inline void order##bits##_store(void *p, uint##bits##_t v)                              \
    {                                                                                              \
        v = hto##order##bits(v);                                                                   \
        memcpy(p, &v, sizeof v);                                                                   \
    }
BYTES_DEFINE(le, 16)
BYTES_DEFINE(le, 32)
BYTES_DEFINE(le, 64)
BYTES_DEFINE(be, 16)
BYTES_DEFINE(be, 32)
BYTES_DEFINE(be, 64)
#undef BYTES_DEFINE

#endif
