/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/conf/ only: the state of a configuration, and what its parts use of each other. */
#ifndef AIFS_COMMON_CONF_CONF_INT_H
#define AIFS_COMMON_CONF_CONF_INT_H

#include "common/conf/conf.h"

/* Who wins: the higher rank, and of equal ranks the later one. */
enum conf_rank { RANK_DEFAULT, RANK_FILE, RANK_ENV, RANK_COMMAND };

struct conf_entry {
    const struct conf_option *option;
    char *value;     /* text; NULL = unset */
    char *source;    /* NULL = default */
    uint64_t number; /* numbers, sizes, durations; bool and enum as index */
    enum conf_rank rank;
    unsigned file_serial; /* which file set it last, to find a name given twice in one */
    unsigned file_line;
};

struct conf {
    struct conf_entry *entries;
    size_t count;
    const char **names; /* of the entries, in order, for suggestions */
    unsigned file_serial;
    bool frozen;
};

/* Writes a sentence to err; one that does not fit ends in "...". Returns rc. */
int conf_fail(int rc, char *err, size_t err_len, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* name as written, where '-' may stand for '_'; NULL if there is none. */
struct conf_entry *conf_find(const struct conf *c, const char *name, size_t name_len);
/* Checks value and makes it the entry's unless something of higher rank is. where begins error
 * messages and becomes the source. */
int conf_entry_set(struct conf_entry *e, const char *value, enum conf_rank rank, const char *where,
                   char *err, size_t err_len) MUST_USE;
/* Fails with "where: unknown option "name"; did you mean ...?". */
int conf_unknown(const struct conf *c, const char *where, const char *name, char *err,
                 size_t err_len) MUST_USE;

/* Text to number by the option's type, checked against its bounds; conf_parse.c. */
int conf_parse_value(const struct conf_option *o, const char *value, const char *where,
                     uint64_t *ret_number, char *err, size_t err_len) MUST_USE;
/* A number as the option's type would be written, "256KiB" or "250ms"; returns out. */
const char *conf_format_number(enum conf_type type, uint64_t number, char *out, size_t out_len);

#endif
