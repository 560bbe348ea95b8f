/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables: cells are collected row by row, then printed as aligned text or as one JSON document
 * {"schema": "...", "items": [{...}], "warnings": [...]}. In JSON numbers are integers in base
 * units and absent values null. Warnings go to standard error in text mode. A document may have
 * totals, and further lists beside the items; as text the totals are left to the caller, and the
 * lists are tables of their own when they have rows.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "tools/admin/say.h"

struct out_cell {
    char *text; /* NULL: a number, or none */
    uint64_t number;
    bool none;
};

struct out {
    const struct admin *admin;
    const char *schema;
    const struct out_column *columns;
    unsigned n_columns;
    struct out_cell *cells;
    size_t n_cells, cap;
    json_t *warnings, *totals;
    const char *also_name; /* of the list beside this one */
    struct out *also;
};

struct out *out_table(const struct admin *a, const char *schema, const struct out_column *columns,
                      unsigned n)
{
    struct out *o = calloc(1, sizeof *o);

    if (!o) {
        admin_error("out of memory");
        exit(admin_end(ADMIN_FAILED));
    }
    o->admin = a;
    o->schema = schema;
    o->columns = columns;
    o->n_columns = n;
    o->warnings = json_array();
    return o;
}

static struct out_cell *next_cell(struct out *o)
{
    if (o->n_cells == o->cap) {
        o->cap = o->cap ? o->cap * 2 : 64;
        o->cells = realloc(o->cells, o->cap * sizeof *o->cells);
        if (!o->cells) {
            admin_error("out of memory");
            exit(admin_end(ADMIN_FAILED));
        }
    }
    o->cells[o->n_cells] = (struct out_cell){0};
    return &o->cells[o->n_cells++];
}

void out_text(struct out *o, const char *value)
{
    struct out_cell *c = next_cell(o);

    c->none = !value || !*value;
    c->text = c->none ? NULL : strdup(value);
    if (c->text && !o->admin->json)
        text_make_printable(c->text, "");
}

void out_number(struct out *o, uint64_t value)
{
    next_cell(o)->number = value;
}

void out_none(struct out *o)
{
    next_cell(o)->none = true;
}

void out_warning(struct out *o, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(o->warnings, admin_json_text(text));
    text_make_printable(text, "");
    if (!o->admin->json)
        fprintf(stderr, "aifs-admin: warning: %s\n", text);
}

void out_total(struct out *o, const char *name, uint64_t value)
{
    if (!o->totals)
        o->totals = json_object();
    json_object_set_new(o->totals, name, json_integer((json_int_t)value));
}

void out_also(struct out *o, const char *name, struct out *also)
{
    o->also_name = name;
    o->also = also;
}

static const char *cell_text(const struct out *o, const struct out_cell *c, unsigned kind,
                             char buf[64])
{
    if (c->none)
        return "-";
    if (c->text)
        return c->text;
    if (o->admin->raw || kind == OUT_COUNT || kind == OUT_TEXT)
        snprintf(buf, 64, "%llu", (unsigned long long)c->number);
    else if (kind == OUT_SIZE)
        text_format_size(c->number, buf, 64);
    else if (kind == OUT_PERCENT)
        snprintf(buf, 64, "%llu%%", (unsigned long long)c->number);
    else if (kind == OUT_LATENCY && c->number < NS_PER_MS)
        snprintf(buf, 64, "%lluus", (unsigned long long)(c->number / NS_PER_US));
    else if (kind == OUT_LATENCY && c->number < NS_PER_S)
        snprintf(buf, 64, "%.1fms", (double)c->number / (double)NS_PER_MS);
    else if (c->number < 10 * NS_PER_S)
        snprintf(buf, 64, "%.1fs", (double)c->number / (double)NS_PER_S);
    else
        snprintf(buf, 64, "%llus", (unsigned long long)(c->number / NS_PER_S));
    return buf;
}

static void print_text(const struct out *o)
{
    size_t rows = o->n_cells / o->n_columns;
    char buf[64];
    unsigned last = 0;
    size_t *width = calloc(o->n_columns, sizeof *width);

    if (!width)
        return;
    for (unsigned c = 0; c < o->n_columns; c++)
        if (!(o->columns[c].kind & OUT_JSON_ONLY))
            last = c;
    for (unsigned c = 0; c < o->n_columns; c++) {
        width[c] = o->admin->no_header ? 1 : text_width(o->columns[c].title);
        for (size_t r = 0; r < rows; r++) {
            size_t len =
                text_width(cell_text(o, &o->cells[r * o->n_columns + c], o->columns[c].kind, buf));

            width[c] = MAX(width[c], len);
        }
    }
    for (size_t r = 0; r <= rows; r++) {
        if (r == 0 && o->admin->no_header)
            continue;
        for (unsigned c = 0; c < o->n_columns; c++) {
            const char *s;

            if (o->columns[c].kind & OUT_JSON_ONLY)
                continue;
            s = r == 0
                    ? o->columns[c].title
                    : cell_text(o, &o->cells[(r - 1) * o->n_columns + c], o->columns[c].kind, buf);

            if (c != last)
                printf("%s%*s  ", s, (int)(width[c] - text_width(s)), "");
            else
                fputs(s, stdout);
        }
        putchar('\n');
    }
    free(width);
}

static void json_name(const struct out_column *c, char out[64])
{
    size_t n = 0;

    if (c->json) {
        snprintf(out, 64, "%s", c->json);
        return;
    }
    for (const char *p = c->title; *p && n < 63; p++)
        if (*p != '%')
            out[n++] = *p == '-' || *p == ' ' ? '_' : (char)tolower((unsigned char)*p);
    out[n] = '\0';
}

static json_t *json_items(const struct out *o)
{
    size_t rows = o->n_cells / o->n_columns;
    json_t *items = json_array();

    for (size_t r = 0; r < rows; r++) {
        json_t *row = json_object();

        for (unsigned c = 0; c < o->n_columns; c++) {
            const struct out_cell *cell = &o->cells[r * o->n_columns + c];
            char name[64];

            json_name(&o->columns[c], name);
            json_object_set_new(row, name,
                                cell->none   ? json_null()
                                : cell->text ? admin_json_text(cell->text)
                                             : json_integer((json_int_t)cell->number));
        }
        json_array_append_new(items, row);
    }
    return items;
}

static void print_json(const struct out *o)
{
    json_t *root = json_pack("{s:s, s:o, s:O}", "schema", o->schema, "items", json_items(o),
                             "warnings", o->warnings);

    if (o->totals)
        json_object_set(root, "totals", o->totals);
    if (o->also)
        json_object_set_new(root, o->also_name, json_items(o->also));
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

void out_print(struct out *o)
{
    if (o->admin->json)
        print_json(o);
    else
        print_text(o);
    if (!o->admin->json && o->also && o->also->n_cells) {
        putchar('\n');
        print_text(o->also);
    }
    out_drop(o);
}

void out_fields(const struct admin *a, const char *schema, const struct out_field *fields,
                unsigned n)
{
    json_t *row = a->json ? json_object() : NULL, *root;

    if (!row)
        return;
    for (unsigned i = 0; i < n; i++)
        json_object_set_new(row, fields[i].name,
                            fields[i].text ? admin_json_text(fields[i].text)
                                           : json_integer((json_int_t)fields[i].number));
    root = json_pack("{s:s, s:[o], s:[]}", "schema", schema, "items", row, "warnings");
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

void out_drop(struct out *o)
{
    for (size_t i = 0; i < o->n_cells; i++)
        free(o->cells[i].text);
    free(o->cells);
    json_decref(o->warnings);
    json_decref(o->totals);
    if (o->also)
        out_drop(o->also);
    free(o);
}
