/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of aifs-bench: picks the scenario and reads its options. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/standard.h"
#include "common/base/text.h"
#include "tools/bench/bench.h"
#include "tools/bench/roofline.h"

static const struct bench_scenario *const scenarios[] = {
    &bench_io,    &bench_md,  &bench_small, &bench_ckpt,   &bench_train, &bench_kv,
    &bench_scale, &bench_net, &bench_null,  &bench_limits, &bench_bars,  &bench_report};

static bool errors_as_json;

void bench_error(const char *fmt, ...)
{
    char text[4096], *json = NULL;
    json_t *root = NULL;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (errors_as_json)
        root = json_pack("{s:s, s:s}", "schema", "aifs.bench.error/1", "message", text);
    json = root ? json_dumps(root, 0) : NULL;
    fflush(stdout);
    if (json) /* else, too, where a name is no UTF-8 */
        fprintf(stderr, "%s\n", json);
    else
        fprintf(stderr, "aifs-bench: %s\n", text);
    free(json);
    json_decref(root);
}

static int set_option(const struct bench_option *o, const char *value)
{
    uint64_t v;
    char *end;

    switch (o->type) {
    case BENCH_TEXT:
        *(const char **)o->value = value;
        return 0;
    case BENCH_NUMBER:
        if (text_parse_u64(value, &v) < 0 || v > UINT32_MAX)
            return -1;
        *(unsigned *)o->value = (unsigned)v;
        return 0;
    case BENCH_SIZE:
        return text_parse_size(value, o->value);
    case BENCH_SECONDS:
        *(double *)o->value = strtod(value, &end);
        return *end || end == value || *(double *)o->value < 0 ? -1 : 0;
    case BENCH_FLAG:
    default:
        return -1;
    }
}

int bench_options(const struct bench_option *options, unsigned n, int argc, char **argv)
{
    int left = 0;

    for (int i = 0; i < argc; i++) {
        const struct bench_option *o = NULL;
        const char *value = NULL;

        if (strncmp(argv[i], "--", 2) != 0) {
            argv[left++] = argv[i];
            continue;
        }
        for (unsigned k = 0; k < n && !o; k++) {
            size_t len = strlen(options[k].name);

            if (!strncmp(argv[i] + 2, options[k].name, len) &&
                (argv[i][len + 2] == '\0' || argv[i][len + 2] == '=')) {
                o = &options[k];
                value = argv[i][len + 2] ? argv[i] + len + 3 : NULL;
            }
        }
        if (!o) {
            bench_error("unknown option %s (see --help)", argv[i]);
            return -1;
        }
        if (o->type == BENCH_FLAG && !value) {
            *(bool *)o->value = true;
            continue;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value || set_option(o, value) < 0) {
            bench_error("--%s: \"%s\" is not what it takes: %s", o->name, value ? value : "",
                        o->help);
            return -1;
        }
    }
    return left;
}

static void help(const struct bench_scenario *one)
{
    printf("usage: aifs-bench [--json] [--roofline] [--demo DIR] <scenario> [options]\n\n"
           "  --json          one JSON document instead of text, errors as objects, too\n"
           "  --roofline      and what this machine can do at most, measured for each row\n"
           "  --demo DIR      a cluster on this machine: what its processes spend\n");
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        const struct bench_scenario *s = scenarios[i];

        if (one && one != s)
            continue;
        printf("\n  %s %s\n      %s\n", s->name, s->args, s->help);
        for (unsigned k = 0; k < s->n_options; k++)
            printf("      --%-14s %s\n", s->options[k].name, s->options[k].help);
    }
}

static int run_scenario(struct bench *b, const struct bench_scenario *s, int argc, char **argv)
{
    int left, rc;

    b->scenario = s->name;
    b->n_arguments = argc;
    b->arguments = calloc((size_t)argc + 1, sizeof *argv); /* options leave argv as they are read */
    if (!b->arguments)
        return 1;
    memcpy(b->arguments, argv, (size_t)argc * sizeof *argv);
    left = bench_options(s->options, s->n_options, argc, argv);
    if (left < 0)
        return 2;
    if (b->demo && bench_find_demo(b) != 0)
        return 2;
    /* The machines of one wait for each other, and end with it; the other lasts until a signal. */
    if (s != &bench_scale && s != &bench_null)
        bench_catch_signals();
    rc = s->run(b, left, argv);
    if (rc == 0 && b->roofline)
        rc = roofline_measure(b, s, left, argv);
    if (b->n_results)
        bench_print(b);
    if (bench_stopped()) {
        bench_error("interrupted: the figures end before what was not finished; what was made is "
                    "removed, but for what --keep keeps");
        return 128 + bench_stopped();
    }
    return rc;
}

/* The exit status, unless what was to be told could not be. */
static int end_output(int rc)
{
    int err = standard_flush();

    if (err == 0 || rc != 0)
        return rc;
    bench_error("cannot write to standard output: %s", strerror(-err));
    return 1;
}

int main(int argc, char **argv)
{
    static struct bench b;
    bool want_help = false;
    int left = 0;

    standard_open();
    log_set_program("aifs-bench");
    log_set_level(LOG_LEVEL_WARN);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            b.json = errors_as_json = true;
        else if (!strcmp(argv[i], "--roofline"))
            b.roofline = true;
        else if (!strncmp(argv[i], "--demo=", 7))
            b.demo = argv[i] + 7;
        else if (!strcmp(argv[i], "--demo") && i + 1 < argc)
            b.demo = argv[++i];
        else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            want_help = true;
        else if (!strcmp(argv[i], "--version")) {
            printf("aifs-bench " AIFS_VERSION "\n");
            return end_output(0);
        } else
            argv[left++] = argv[i];
    }
    for (size_t i = 0; left > 0 && i < ARRAY_LEN(scenarios); i++) {
        if (strcmp(argv[0], scenarios[i]->name) != 0)
            continue;
        if (!want_help)
            return end_output(run_scenario(&b, scenarios[i], left - 1, argv + 1));
        help(scenarios[i]);
        return end_output(0);
    }
    if (left > 0 && !want_help)
        bench_error("there is no scenario %s", argv[0]);
    else if (b.json && !want_help)
        bench_error("say which scenario (see --help)");
    if (want_help || !b.json)
        help(NULL);
    return want_help ? end_output(0) : 2;
}
