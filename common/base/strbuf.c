// SPDX-License-Identifier: Apache-2.0
/*
 * Growing text. Appending doubles the buffer as needed; when memory runs out the buffer is freed,
 * "failed" is set, and every later append is a no-op, so that a caller builds a whole document and
 * checks once.
 */
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

#define MIN_CAP 256u

void strbuf_init(struct strbuf *b)
{
    memset(b, 0, sizeof *b);
}

void strbuf_fini(struct strbuf *b)
{
    mem_free(b->data);
    strbuf_init(b);
}

static void strbuf_fail(struct strbuf *b)
{
    strbuf_fini(b);
    b->failed = true;
}

/* Room for len more bytes and a NUL; false when there is none and never will be. */
static bool strbuf_reserve(struct strbuf *b, size_t len)
{
    size_t need, cap = b->cap ? b->cap : MIN_CAP;
    char *data;

    if (b->failed)
        return false;
    if (__builtin_add_overflow(b->len, len, &need) || need > SIZE_MAX / 4) {
        strbuf_fail(b);
        return false;
    }
    need++;
    if (need <= b->cap)
        return true;
    while (cap < need)
        cap *= 2;
    data = mem_realloc(b->data, cap);
    if (!data) {
        strbuf_fail(b);
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void strbuf_append(struct strbuf *b, const char *data, size_t len)
{
    if (!strbuf_reserve(b, len))
        return;
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap, again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        strbuf_fail(b);
    } else if (strbuf_reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the well-formed UTF-8 sequence at p (RFC 3629: no surrogates, nothing overlong, at most
 * U+10FFFF); 0 if there is none. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    unsigned char c = p[0];

    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4 || left < 2 || !is_tail(p[1]))
        return 0;
    if (c < 0xe0)
        return 2;
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || left < 3 || !is_tail(p[2]))
        return 0;
    if (c < 0xf0)
        return 3;
    if ((c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) || left < 4 || !is_tail(p[3]))
        return 0;
    return 4;
}

void strbuf_json(struct strbuf *b, const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t n;

    strbuf_append(b, "\"", 1);
    while (len) {
        n = utf8_len(p, len);
        if (*p == '"' || *p == '\\')
            strbuf_printf(b, "\\%c", *p);
        else if (*p == '\n')
            strbuf_append(b, "\\n", 2);
        else if (*p == '\t')
            strbuf_append(b, "\\t", 2);
        else if (n == 0 || *p < 0x20 || *p == 0x7f)
            strbuf_printf(b, "\\u%04x", *p);
        else
            strbuf_append(b, (const char *)p, n);
        n = MAX(n, (size_t)1);
        p += n;
        len -= n;
    }
    strbuf_append(b, "\"", 1);
}

bool strbuf_failed(const struct strbuf *b)
{
    return b->failed;
}
