/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of runs, and medians. Fails: a file that is none of ours, or more than there is room
 * for. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/report.h"

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void join(const json_t *list, char *out, size_t len)
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(list) && at < len; i++)
        at += (size_t)snprintf(out + at, len - at, "%s%s", i ? " " : "",
                               json_string_value(json_array_get(list, i)));
}

static struct report_group *group_of(struct report *r, const json_t *doc)
{
    const json_t *host = json_object_get(doc, "host");
    struct report_group *g;
    char arguments[512];

    join(json_object_get(doc, "arguments"), arguments, sizeof arguments);
    for (unsigned i = 0; i < r->n_groups; i++)
        if (!strcmp(r->groups[i].scenario, text_of(doc, "scenario")) &&
            !strcmp(r->groups[i].arguments, arguments))
            return &r->groups[i];
    if (r->n_groups == REPORT_GROUPS_MAX)
        return NULL;
    g = &r->groups[r->n_groups];
    g->rows = calloc(REPORT_ROWS_MAX, sizeof *g->rows);
    if (!g->rows)
        return NULL;
    r->n_groups++;
    snprintf(g->scenario, sizeof g->scenario, "%s", text_of(doc, "scenario"));
    snprintf(g->arguments, sizeof g->arguments, "%s", arguments);
    snprintf(g->when, sizeof g->when, "%s", text_of(doc, "when"));
    snprintf(g->version, sizeof g->version, "%s", text_of(doc, "version"));
    snprintf(g->host, sizeof g->host, "%.0f processors, %.0f GiB of memory, %s %.*s",
             number_of(host, "cpus"), number_of(host, "memory_bytes") / (double)GIB,
             text_of(host, "system"), (int)strcspn(text_of(host, "release"), "-"),
             text_of(host, "release"));
    return g;
}

static struct report_row *row_of(struct report_group *g, const char *name)
{
    for (unsigned i = 0; i < g->n_rows; i++)
        if (!strcmp(g->rows[i].name, name))
            return &g->rows[i];
    if (g->n_rows == REPORT_ROWS_MAX)
        return NULL;
    snprintf(g->rows[g->n_rows].name, sizeof g->rows->name, "%s", name);
    return &g->rows[g->n_rows++];
}

static double cost(const json_t *item, const char *name)
{
    const json_t *v = json_object_get(item, name);

    return v ? json_number_value(v) : -1;
}

static bool add_item(struct report_group *g, const json_t *item)
{
    struct report_row *row = row_of(g, text_of(item, "name"));

    if (!row || row->n == REPORT_RUNS_MAX)
        return false;
    snprintf(row->unit, sizeof row->unit, "%s", text_of(item, "unit"));
    snprintf(row->limit_name, sizeof row->limit_name, "%s", text_of(item, "limit_name"));
    row->values[row->n] = number_of(item, "value");
    row->limits[row->n++] = number_of(item, "limit");
    row->p50_ns = number_of(item, "p50_ns");
    row->p95_ns = number_of(item, "p95_ns");
    row->p99_ns = number_of(item, "p99_ns");
    row->cpu_seconds = number_of(item, "cpu_seconds");
    row->cost_client = cost(item, "client_cpu_s_per_gib");
    row->cost_server = cost(item, "server_cpu_s_per_gib");
    return true;
}

static bool add_document(struct report *r, const json_t *doc)
{
    const json_t *items = json_object_get(doc, "items"), *notes = json_object_get(doc, "notes");
    struct report_group *g = group_of(r, doc);

    if (!g)
        return false;
    g->n_runs++;
    g->load = number_of(json_object_get(doc, "host"), "load");
    g->n_notes = 0;
    for (size_t i = 0; i < json_array_size(notes) && g->n_notes < BENCH_NOTES_MAX; i++)
        snprintf(g->notes[g->n_notes++], sizeof g->notes[0], "%s",
                 json_string_value(json_array_get(notes, i)));
    for (size_t i = 0; i < json_array_size(items); i++)
        if (!add_item(g, json_array_get(items, i)))
            return false;
    return true;
}

int report_load(struct report *r, const char *path)
{
    json_error_t err;
    json_t *doc = json_load_file(path, 0, &err);
    int rc = 1;

    if (!doc && err.line < 0)
        bench_error("%s: %s", path, strerror(errno)); /* not even opened */
    else if (!doc)
        bench_error("%s: line %d: %s", path, err.line, err.text);
    else if (strcmp(text_of(doc, "schema"), "aifs.bench/1") != 0)
        bench_error("%s: not a document of aifs-bench --json", path);
    else if (!add_document(r, doc))
        bench_error("%s: at most %u kinds of run, %u runs of each, %u rows", path,
                    REPORT_GROUPS_MAX, REPORT_RUNS_MAX, REPORT_ROWS_MAX);
    else
        rc = 0;
    json_decref(doc);
    return rc;
}

void report_free(struct report *r)
{
    for (unsigned i = 0; i < r->n_groups; i++)
        free(r->groups[i].rows);
}
