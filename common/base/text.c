// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers, sizes, durations and words as people write them. Parsers take the whole string or refuse
 * it: -EINVAL for what is no such thing, -ERANGE for what does not fit; the output is untouched
 * then.
 */
#include "common/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX      64u
#define FRACTION_MAX  9u
#define DISTANCE_NONE (WORD_MAX + 1)
#define NEAR_MAX      2u

/* Reads digits of this base up to the first other character; -EINVAL if there is none. */
static int parse_digits(const char **s, unsigned base, uint64_t *ret_value)
{
    const char *p = *s;
    uint64_t v = 0;

    for (;; p++) {
        unsigned digit;

        if (*p >= '0' && *p <= '9')
            digit = (unsigned)(*p - '0');
        else if (base == 16 && isxdigit((unsigned char)*p))
            digit = (unsigned)(tolower((unsigned char)*p) - 'a') + 10;
        else
            break;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
            return -ERANGE;
    }
    if (p == *s)
        return -EINVAL;
    *s = p;
    *ret_value = v;
    return 0;
}

int text_parse_u64(const char *s, uint64_t *ret_value)
{
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    uint64_t v;
    int rc;

    s += hex ? 2 : 0;
    rc = parse_digits(&s, hex ? 16 : 10, &v);
    if (rc)
        return rc;
    if (*s)
        return -EINVAL;
    *ret_value = v;
    return 0;
}

/* "", "B", "K", "Ki", "KiB", ... as a shift. "KB" is refused: people disagree about what it
 * means. */
static int parse_size_unit(const char *s, unsigned *ret_shift)
{
    static const char letters[] = "KMGTPE";
    const char *l;

    *ret_shift = 0;
    if (!*s || strcasecmp(s, "b") == 0)
        return 0;
    l = strchr(letters, toupper((unsigned char)*s));
    if (!l || (s[1] && strcasecmp(s + 1, "i") != 0 && strcasecmp(s + 1, "ib") != 0))
        return -EINVAL;
    *ret_shift = 10 * (unsigned)(l - letters + 1);
    return 0;
}

/* ".25" as 25 and 100; leaves fraction 0 of 1 where there is none. */
static int parse_fraction(const char **s, uint64_t *ret_part, uint64_t *ret_of)
{
    const char *start = *s + 1;
    int rc;

    *ret_part = 0;
    *ret_of = 1;
    if (**s != '.')
        return 0;
    *s = start;
    rc = parse_digits(s, 10, ret_part);
    if (rc || (size_t)(*s - start) > FRACTION_MAX)
        return -EINVAL;
    for (; start < *s; start++)
        *ret_of *= 10;
    return 0;
}

int text_parse_size(const char *s, uint64_t *ret_bytes)
{
    uint64_t whole, part, of;
    unsigned __int128 bytes;
    unsigned shift;
    int rc;

    rc = parse_digits(&s, 10, &whole);
    if (!rc)
        rc = parse_fraction(&s, &part, &of);
    if (!rc)
        rc = parse_size_unit(s, &shift);
    if (rc)
        return rc;
    bytes = ((unsigned __int128)whole << shift) + ((unsigned __int128)part << shift) / of;
    if (bytes > UINT64_MAX)
        return -ERANGE;
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

int text_parse_duration(const char *s, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", NS_PER_S},         {"ns", 1},
                 {"us", NS_PER_US},      {"ms", NS_PER_MS},
                 {"s", NS_PER_S},        {"m", 60 * NS_PER_S},
                 {"min", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
                 {"d", 86400 * NS_PER_S}};
    uint64_t v;
    size_t i;
    int rc;

    rc = parse_digits(&s, 10, &v);
    if (rc)
        return rc;
    for (i = 0; i < ARRAY_LEN(units); i++) {
        if (strcmp(s, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(v, units[i].ns, &v))
            return -ERANGE;
        *ret_ns = v;
        return 0;
    }
    return -EINVAL;
}

int text_parse_bool(const char *s, bool *ret_value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    size_t i;

    for (i = 0; i < ARRAY_LEN(words); i++) {
        if (strcasecmp(s, words[i]) == 0) {
            *ret_value = i % 2 == 1;
            return 0;
        }
    }
    return -EINVAL;
}

const char *text_format_size(uint64_t bytes, char *out, size_t out_len)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    size_t u = 0;

    if (bytes < 1024) {
        snprintf(out, out_len, "%uB", (unsigned)bytes);
        return out;
    }
    while (v >= 1023.95 && u + 1 < ARRAY_LEN(units)) { /* 1023.95 would print as 1024.0 */
        v /= 1024;
        u++;
    }
    snprintf(out, out_len, "%.1f%s", v, units[u]);
    return out;
}

size_t text_width(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void text_make_printable(char *s, const char *keep)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c < 0x20 || c == 0x7f) && !strchr(keep, c))
            *s = '?';
        else if (c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0)
            s[0] = s[1] = '?'; /* U+0080 to U+009F */
    }
}

void text_unescape_octal(char *s)
{
    char *out = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 3;
        } else {
            *out++ = *s;
        }
    }
    *out = '\0';
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, with
 * three rows of the usual table. */
unsigned text_distance(const char *a, const char *b)
{
    size_t la = strnlen(a, WORD_MAX), lb = strnlen(b, WORD_MAX), i, j;
    unsigned rows[3][WORD_MAX + 1];

    for (j = 0; j <= lb; j++)
        rows[0][j] = (unsigned)j;
    for (i = 1; i <= la; i++) {
        unsigned *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (j = 1; j <= lb; j++) {
            row[j] = up[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = MIN(row[j], MIN(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], up2[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

/* "interval" of "net.interval": whoever has left out the rest has meant this one. */
static bool is_last_part(const char *word, const char *whole)
{
    const char *dot = strrchr(whole, '.');

    return dot && strcmp(word, dot + 1) == 0;
}

const char *text_nearest(const char *word, const char *const *candidates, size_t n)
{
    unsigned best = DISTANCE_NONE, len = (unsigned)strnlen(word, WORD_MAX);
    const char *found = NULL;
    size_t i;

    for (i = 0; i < n; i++) {
        unsigned d = is_last_part(word, candidates[i]) ? 0 : text_distance(word, candidates[i]);

        if (d < best) {
            best = d;
            found = candidates[i];
        }
    }
    return best <= NEAR_MAX && (best == 0 || 2 * best < len) ? found : NULL;
}
