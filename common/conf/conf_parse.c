// SPDX-License-Identifier: Apache-2.0
/*
 * Values: text to number by type, bounds, and numbers back to text for messages and help. A refused
 * value names the option, what was given and what would have been right.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "common/conf/conf_int.h"

static int fail_value(const struct conf_option *o, const char *where, const char *value,
                      const char *what, char *err, size_t err_len)
{
    return conf_fail(-AIFS_ECONFIG, err, err_len, "%s: %s = \"%s\": %s", where, o->name, value,
                     what);
}

static int parse_enum(const struct conf_option *o, const char *value, const char *where,
                      uint64_t *ret_number, char *err, size_t err_len)
{
    struct strbuf expected;
    const char *near;
    size_t i;

    for (i = 0; o->values[i]; i++) {
        if (strcmp(value, o->values[i]) == 0) {
            *ret_number = i;
            return 0;
        }
    }
    near = text_nearest(value, o->values, i);
    strbuf_init(&expected);
    strbuf_printf(&expected, "expected one of");
    for (i = 0; o->values[i]; i++)
        strbuf_printf(&expected, "%s %s", i ? "," : "", o->values[i]);
    if (near)
        strbuf_printf(&expected, "; did you mean \"%s\"?", near);
    fail_value(o, where, value, strbuf_failed(&expected) ? "no such choice" : expected.data, err,
               err_len);
    strbuf_fini(&expected);
    return -AIFS_ECONFIG;
}

const char *conf_format_number(enum conf_type type, uint64_t number, char *out, size_t out_len)
{
    static const struct {
        uint64_t size;
        const char *name;
    } sizes[] = {{1ull << 60, "EiB"}, {1ull << 50, "PiB"}, {1ull << 40, "TiB"},
                 {GIB, "GiB"},        {MIB, "MiB"},        {KIB, "KiB"}},
      times[] = {{86400 * NS_PER_S, "d"}, {3600 * NS_PER_S, "h"}, {60 * NS_PER_S, "min"},
                 {NS_PER_S, "s"},         {NS_PER_MS, "ms"},      {NS_PER_US, "us"}};
    bool is_size = type == CONF_SIZE, is_time = type == CONF_DURATION;
    size_t i, n = is_size ? ARRAY_LEN(sizes) : is_time ? ARRAY_LEN(times) : 0;

    for (i = 0; i < n && number; i++) {
        uint64_t unit = is_size ? sizes[i].size : times[i].size;

        if (number % unit)
            continue;
        snprintf(out, out_len, "%" PRIu64 "%s", number / unit,
                 is_size ? sizes[i].name : times[i].name);
        return out;
    }
    snprintf(out, out_len, "%" PRIu64 "%s", number, is_time ? "ns" : "");
    return out;
}

static int check_range(const struct conf_option *o, const char *value, const char *where,
                       uint64_t number, char *err, size_t err_len)
{
    char low[32], high[32], what[96];

    if (number >= o->min && (!o->max || number <= o->max))
        return 0;
    conf_format_number(o->type, o->min, low, sizeof low);
    conf_format_number(o->type, o->max, high, sizeof high);
    if (o->max)
        snprintf(what, sizeof what, "out of range, %s to %s", low, high);
    else
        snprintf(what, sizeof what, "out of range, at least %s", low);
    return fail_value(o, where, value, what, err, err_len);
}

int conf_parse_value(const struct conf_option *o, const char *value, const char *where,
                     uint64_t *ret_number, char *err, size_t err_len)
{
    const char *expected = NULL;
    uint64_t number = 0;
    bool truth = false;
    int rc = 0;

    switch (o->type) {
    case CONF_STRING:
        break;
    case CONF_ENUM:
        return parse_enum(o, value, where, ret_number, err, err_len);
    case CONF_BOOL:
        rc = text_parse_bool(value, &truth);
        number = truth;
        expected = "expected yes or no";
        break;
    case CONF_U64:
        rc = text_parse_u64(value, &number);
        expected = "expected a whole number";
        break;
    case CONF_SIZE:
        rc = text_parse_size(value, &number);
        expected = "expected a size, such as 4096, 256Ki or 1GiB";
        break;
    case CONF_DURATION:
        rc = text_parse_duration(value, &number);
        expected = "expected a duration, such as 250ms, 3s or 2min";
        break;
    }
    if (rc)
        return fail_value(o, where, value, rc == -ERANGE ? "far too large" : expected, err,
                          err_len);
    if (o->type == CONF_U64 || o->type == CONF_SIZE || o->type == CONF_DURATION)
        rc = check_range(o, value, where, number, err, err_len);
    if (!rc)
        *ret_number = number;
    return rc;
}
