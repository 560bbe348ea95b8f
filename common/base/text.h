/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and printing for people: sizes ("4M", "4Mi", "4MiB" are all 4194304), durations ("250ms",
 * "3s", "2min"), bounded string building. */
#ifndef AIFS_COMMON_BASE_TEXT_H
#define AIFS_COMMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

int text_parse_u64(const char *s, uint64_t *ret_value)
    MUST_USE; /* whole string, decimal or 0x; -EINVAL, -ERANGE */
int text_parse_size(const char *s, uint64_t *ret_bytes) MUST_USE;
int text_parse_duration(const char *s, uint64_t *ret_ns) MUST_USE; /* a bare number is seconds */
int text_parse_bool(const char *s, bool *ret_value) MUST_USE; /* yes/no true/false on/off 1/0 */
/* "812.4MiB", "13.4GiB", "17B"; returns out. */
const char *text_format_size(uint64_t bytes, char *out, size_t out_len);
/* How many places a terminal gives it, as far as that is known: bytes of UTF-8 that belong to one
 * character are one. */
size_t text_width(const char *s);
/* In place: control characters become '?', but those in keep. What people are shown may have come
 * from names of files, and a terminal obeys what it is sent. */
void text_make_printable(char *s, const char *keep);
/* In place: "\040" and its like, as the kernel's tables of mounts (proc(5)) write spaces, tabs,
 * ends of lines and backslashes of a path. */
void text_unescape_octal(char *s);
/* Edit distance for "did you mean"; bounded to strings of 64 bytes. */
unsigned text_distance(const char *a, const char *b);
/* The candidate to suggest for word: its last part (behind a '.') is word, or the one nearest, at
 * most two slips away and less than half of what was written. NULL: there is none. */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);

/* Growing text. out of memory is remembered: check strbuf_failed() once at the end. */
struct strbuf {
    char *data; /* always NUL-terminated, never NULL after the first append unless failed */
    size_t len, cap;
    bool failed;
};
void strbuf_init(struct strbuf *b);
void strbuf_fini(struct strbuf *b);
void strbuf_append(struct strbuf *b, const char *data, size_t len);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool strbuf_failed(const struct strbuf *b);

#endif
