// SPDX-License-Identifier: Apache-2.0
/* Copies past the caches: what is copied, and that nothing else is touched. */
#include "common/base/stream.h"

#include <string.h>

#include "tests/support/suite.h"

#define LINE 64u
#define ROOM (32 * LINE)

static uint8_t from[ROOM + LINE], to[ROOM] __attribute__((aligned(LINE))), want[ROOM];

/* len bytes, to at and from a byte with that number. */
static void check(size_t at, size_t source, size_t len)
{
    memset(to, 0xee, sizeof to);
    memset(want, 0xee, sizeof want);
    memcpy(want + at, from + source, len);
    stream_copy(to + at, from + source, len);
    stream_end();
    ck_assert_int_eq(memcmp(to, want, sizeof to), 0);
}

START_TEST(all_that_is_asked_for_is_copied_and_nothing_else)
{
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 7 % 0xee); /* never what surrounds it */
    for (size_t lines = 0; lines <= 20; lines++)
        for (size_t source = 0; source < LINE; source += 9)
            check(LINE, source, lines * LINE);
    check(0, 0, ROOM);
    for (size_t len = 0; len < 3 * LINE; len++)
        for (size_t at = 0; at < 2 * LINE; at += 13)
            check(at, 5, len);
}
END_TEST

SUITE_MAIN("stream", NULL, NULL, all_that_is_asked_for_is_copied_and_nothing_else)
