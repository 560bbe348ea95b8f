// SPDX-License-Identifier: Apache-2.0
/*
 * Stores that go past the caches, as wide as the processor has them, four lines at a time where
 * that is 64 bytes. Nothing can fail.
 */
#include "common/base/stream.h"

#include <stdint.h>
#include <string.h>

#include "common/base/compiler.h"

#define LINE_BYTES 64u

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx512f"))) static void copy_wide(uint8_t *to, const uint8_t *from,
                                                         size_t len)
{
    for (; len >= 4 * LINE_BYTES; to += 4 * LINE_BYTES, from += 4 * LINE_BYTES) {
        __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + LINE_BYTES),
                c = _mm512_loadu_si512(from + 2 * LINE_BYTES),
                d = _mm512_loadu_si512(from + 3 * LINE_BYTES);

        _mm512_stream_si512((void *)to, a);
        _mm512_stream_si512((void *)(to + LINE_BYTES), b);
        _mm512_stream_si512((void *)(to + 2 * LINE_BYTES), c);
        _mm512_stream_si512((void *)(to + 3 * LINE_BYTES), d);
        len -= 4 * LINE_BYTES;
    }
    for (; len; len -= LINE_BYTES, to += LINE_BYTES, from += LINE_BYTES)
        _mm512_stream_si512((void *)to, _mm512_loadu_si512(from));
}

static void copy_lines(uint8_t *to, const uint8_t *from, size_t len)
{
    if (__builtin_cpu_supports("avx512f")) {
        copy_wide(to, from, len);
        return;
    }
    for (; len; len -= LINE_BYTES, to += LINE_BYTES, from += LINE_BYTES)
        for (unsigned i = 0; i < LINE_BYTES; i += sizeof(__m128i))
            _mm_stream_si128((void *)(to + i), _mm_loadu_si128((const void *)(from + i)));
}

void stream_end(void)
{
    _mm_sfence();
}

#else

static void copy_lines(uint8_t *to, const uint8_t *from, size_t len)
{
    memcpy(to, from, len);
}

void stream_end(void)
{
}

#endif

void stream_copy(void *to, const void *from, size_t len)
{
    if (UNLIKELY((uintptr_t)to % LINE_BYTES || len % LINE_BYTES))
        memcpy(to, from, len);
    else
        copy_lines(to, from, len);
}
