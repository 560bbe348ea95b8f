// SPDX-License-Identifier: Apache-2.0
/*
 * Random identifiers and their text form. Drawing one fails only where getrandom() does; parsing
 * accepts exactly the 36 characters of RFC 4122 (hex digits of either case) and answers -EINVAL to
 * everything else.
 */
#include "common/base/ids.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

int uuid_random(struct uuid *ret_id)
{
    struct uuid id;
    size_t got = 0;

    while (got < sizeof id.b) {
        ssize_t n = getrandom(id.b + got, sizeof id.b - got, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        got += (size_t)n;
    }
    id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x40);
    id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
    *ret_id = id;
    return 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static int dash_follows(size_t byte)
{
    return byte == 3 || byte == 5 || byte == 7 || byte == 9;
}

int uuid_parse(const char *text, struct uuid *ret_id)
{
    struct uuid id;
    size_t i;

    for (i = 0; i < sizeof id.b; i++) {
        int high = hex_value(text[0]);
        int low = high < 0 ? -1 : hex_value(text[1]);

        if (low < 0)
            return -EINVAL;
        id.b[i] = (uint8_t)(high << 4 | low);
        text += 2;
        if (dash_follows(i) && *text++ != '-')
            return -EINVAL;
    }
    if (*text)
        return -EINVAL;
    *ret_id = id;
    return 0;
}

void uuid_format(const struct uuid *id, char text[UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    size_t i;

    for (i = 0; i < sizeof id->b; i++) {
        *text++ = digits[id->b[i] >> 4];
        *text++ = digits[id->b[i] & 15];
        if (dash_follows(i))
            *text++ = '-';
    }
    *text = '\0';
}

bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

bool uuid_is_zero(const struct uuid *id)
{
    static const struct uuid zero;

    return uuid_equal(id, &zero);
}
