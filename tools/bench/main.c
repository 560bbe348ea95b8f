/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of aifs-bench: picks the scenario, prints its rows. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "tools/bench/bench.h"

static const struct bench_scenario *const scenarios[] = {&bench_io, &bench_md, &bench_net,
                                                         &bench_limits};

void bench_error(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fputs("aifs-bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
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

static const char *latency(uint64_t ns, char *out, size_t len)
{
    if (ns == 0)
        snprintf(out, len, "-");
    else if (ns < 10000000)
        snprintf(out, len, "%.1fus", (double)ns / 1e3);
    else
        snprintf(out, len, "%.1fms", (double)ns / 1e6);
    return out;
}

static void print_text(const struct bench *b)
{
    char p50[24], p99[24], roof[32];

    printf("%-34s %12s %-6s %10s %10s %9s %s\n", "MEASUREMENT", "VALUE", "UNIT", "P50", "P99",
           "CPU", "OF LIMIT");
    for (unsigned i = 0; i < b->n_results; i++) {
        const struct bench_result *r = &b->results[i];

        roof[0] = '\0';
        if (r->limit > 0)
            snprintf(roof, sizeof roof, "%.0f%% of ", 100.0 * r->value / r->limit);
        printf("%-34s %12.*f %-6s %10s %10s %8.2fs %s%s\n", r->name, r->value < 100 ? 2 : 0,
               r->value, r->unit, latency(r->p50_ns, p50, sizeof p50),
               latency(r->p99_ns, p99, sizeof p99), r->cpu_seconds, roof,
               r->limit > 0 ? r->limit_name : "");
    }
}

static void print_json(const struct bench *b)
{
    json_t *items = json_array(), *root;

    for (unsigned i = 0; i < b->n_results; i++) {
        const struct bench_result *r = &b->results[i];
        json_t *row = json_pack("{s:s, s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "name",
                                r->name, "unit", r->unit, "value", r->value, "seconds", r->seconds,
                                "operations", (json_int_t)r->operations, "bytes",
                                (json_int_t)r->bytes, "p50_ns", (json_int_t)r->p50_ns, "p95_ns",
                                (json_int_t)r->p95_ns, "p99_ns", (json_int_t)r->p99_ns, "max_ns",
                                (json_int_t)r->max_ns, "cpu_seconds", r->cpu_seconds);

        if (r->limit > 0) {
            json_object_set_new(row, "limit", json_real(r->limit));
            json_object_set_new(row, "limit_name", json_string(r->limit_name));
        }
        json_array_append_new(items, row);
    }
    root = json_pack("{s:s, s:o}", "schema", "aifs.bench/1", "items", items);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

void bench_print(const struct bench *b)
{
    if (b->json)
        print_json(b);
    else
        print_text(b);
}

static void help(const struct bench_scenario *one)
{
    printf("usage: aifs-bench [--json] <scenario> [options]\n");
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        const struct bench_scenario *s = scenarios[i];

        if (one && one != s)
            continue;
        printf("\n  %s %s\n      %s\n", s->name, s->args, s->help);
        for (unsigned k = 0; k < s->n_options; k++)
            printf("      --%-14s %s\n", s->options[k].name, s->options[k].help);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    bool want_help = false;
    int left = 0;

    log_set_program("aifs-bench");
    log_set_level(LOG_LEVEL_WARN);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            b.json = true;
        else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            want_help = true;
        else if (!strcmp(argv[i], "--version")) {
            printf("aifs-bench " AIFS_VERSION "\n");
            return 0;
        } else
            argv[left++] = argv[i];
    }
    for (size_t i = 0; left > 0 && i < ARRAY_LEN(scenarios); i++) {
        int rc;

        if (strcmp(argv[0], scenarios[i]->name) != 0)
            continue;
        if (want_help) {
            help(scenarios[i]);
            return 0;
        }
        left = bench_options(scenarios[i]->options, scenarios[i]->n_options, left - 1, argv + 1);
        if (left < 0)
            return 2;
        rc = scenarios[i]->run(&b, left, argv + 1);
        if (b.n_results)
            bench_print(&b);
        return rc;
    }
    if (left > 0 && !want_help)
        bench_error("there is no scenario %s", argv[0]);
    help(NULL);
    return want_help ? 0 : 2;
}
