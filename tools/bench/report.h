/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of several runs, read from their JSON documents: runs of the same scenario with the same
 * arguments are one group, and its rows hold one value of each run.
 */
#ifndef AIFS_TOOLS_BENCH_REPORT_H
#define AIFS_TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "tools/bench/bench.h"

#define REPORT_GROUPS_MAX 64u
#define REPORT_RUNS_MAX   32u
#define REPORT_ROWS_MAX   256u

struct report_row {
    char name[64], unit[16], limit_name[64];
    unsigned n;
    double values[REPORT_RUNS_MAX];
    double limits[REPORT_RUNS_MAX]; /* 0: none */
    double p50_ns, p95_ns, p99_ns, cpu_seconds;
    double cost_client, cost_server; /* CPU seconds per GiB; below 0: not known */
};

struct report_group {
    char scenario[16], arguments[512], when[32], version[16], host[128];
    double load; /* of the machine, when the last run had ended */
    unsigned n_runs, n_notes;
    char notes[BENCH_NOTES_MAX][400];
    unsigned n_rows;
    struct report_row *rows;
};

struct report {
    unsigned n_groups;
    struct report_group groups[REPORT_GROUPS_MAX];
};

/* Adds a document. 0, or 1 after printing. */
int report_load(struct report *r, const char *path) MUST_USE;
void report_free(struct report *r);
double report_median(const double *values, unsigned n); /* n > 0 */
double report_value(const struct report_row *row);
double report_limit(const struct report_row *row); /* 0: none */

/* ---- pieces of the page ---- */

void html_text(FILE *f, const char *text); /* escaped */
/* The smallest of 1, 2, 5 times a power of ten that is not below v; 1 for nothing. */
double plot_ceiling(double v);
/* "1234", "56.7", "8.90": three digits at least. */
const char *plot_number(double v, char *out, size_t len);
/* Bars of all rows of a unit, with ticks at their limits. */
void plot_bars(FILE *f, const struct report_group *g, const char *unit);
/* Throughput against servers, a line for each number of clients; what: "read", "write". */
void plot_scaling(FILE *f, const struct report_group *g, const char *access, const char *what);

#endif
