/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration over the common options and a table of the test's own, fresh for each test. */
#ifndef AIFS_TESTS_UNIT_CONF_FIXTURE_H
#define AIFS_TESTS_UNIT_CONF_FIXTURE_H

#include "common/conf/conf.h"
#include "tests/support/suite.h"
#include "tests/support/tmp.h"

static const char *const colours[] = {"red", "green", "blue", NULL};
static const struct conf_option own_options[] = {
    {.name = "test.number",
     .type = CONF_U64,
     .default_value = "5",
     .min = 2,
     .max = 10,
     .help = "A number."},
    {.name = "test.size",
     .type = CONF_SIZE,
     .unit = "bytes",
     .default_value = "4Ki",
     .min = 1024,
     .help = "A size."},
    {.name = "test.time",
     .type = CONF_DURATION,
     .default_value = "1s",
     .max = 60 * NS_PER_S,
     .help = "A time."},
    {.name = "test.flag", .type = CONF_BOOL, .default_value = "no", .help = "A flag."},
    {.name = "test.colour",
     .type = CONF_ENUM,
     .default_value = "red",
     .values = colours,
     .help = "A colour."},
    {.name = "test.text", .type = CONF_STRING, .help = "Text."},
    {.name = "test.must_have", .type = CONF_STRING, .required = true, .help = "Must be there."},
    {.name = NULL},
};
static const struct conf_option *const tables[] = {conf_common_options, own_options, NULL};

static struct tmp tmp;
static struct conf *c;
static char err[512];

static void setup(void)
{
    tmp_make(&tmp);
    ck_assert_int_eq(conf_create(tables, &c), 0);
}

static void teardown(void)
{
    conf_destroy(c);
    tmp_remove(&tmp);
}

/* err has to be exactly this. */
static inline void expect_err(const char *text)
{
    ck_assert_str_eq(err, text);
}

#endif
