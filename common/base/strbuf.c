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

bool strbuf_failed(const struct strbuf *b)
{
    return b->failed;
}
