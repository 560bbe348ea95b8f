/* SPDX-License-Identifier: Apache-2.0 */
/* Medians, numbers for people, and plots as SVG. Colours and fonts are the page's (CSS classes). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/report.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double report_median(const double *values, unsigned n)
{
    double sorted[REPORT_RUNS_MAX];

    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double report_value(const struct report_row *row)
{
    return report_median(row->values, row->n);
}

double report_limit(const struct report_row *row)
{
    return report_median(row->limits, row->n);
}

void html_text(FILE *f, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

double plot_ceiling(double v)
{
    static const double steps[] = {1, 2, 5, 10};
    double power;

    if (!(v > 0))
        return 1;
    power = pow(10, floor(log10(v)));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        if (v <= steps[i] * power * (1 + 1e-9))
            return steps[i] * power;
    return 10 * power;
}

const char *plot_number(double v, char *out, size_t len)
{
    double size = fabs(v);

    snprintf(out, len, "%.*f", size >= 100 || size <= 0 ? 0 : size >= 10 ? 1 : 2, v);
    return out;
}

/* ---- bars ---- */

#define BAR_LEFT   250
#define BAR_WIDTH  420
#define BAR_HEIGHT 16
#define BAR_STEP   26

static double largest(const struct report_group *g, const char *unit, unsigned *ret_n)
{
    double most = 0;

    *ret_n = 0;
    for (unsigned i = 0; i < g->n_rows; i++) {
        if (strcmp(g->rows[i].unit, unit) != 0)
            continue;
        most = fmax(most, fmax(report_value(&g->rows[i]), report_limit(&g->rows[i])));
        ++*ret_n;
    }
    return most;
}

static void one_bar(FILE *f, const struct report_row *row, double most, unsigned y)
{
    double value = report_value(row), limit = report_limit(row), width = BAR_WIDTH * value / most;
    char text[32];

    fprintf(f, "<text class=label x=%d y=%u text-anchor=end>", BAR_LEFT - 10, y + 12);
    html_text(f, row->name);
    fprintf(f, "</text>\n<rect class=track x=%d y=%u width=%d height=%d rx=3 />", BAR_LEFT, y,
            BAR_WIDTH, BAR_HEIGHT);
    fprintf(f, "<rect class=bar x=%d y=%u width=%.1f height=%d rx=3 />", BAR_LEFT, y, width,
            BAR_HEIGHT);
    if (limit > 0)
        fprintf(f, "<line class=limit x1=%.1f x2=%.1f y1=%u y2=%u />",
                BAR_LEFT + BAR_WIDTH * limit / most, BAR_LEFT + BAR_WIDTH * limit / most, y - 3,
                y + BAR_HEIGHT + 3);
    fprintf(f, "<text class=value x=%d y=%u>%s", BAR_LEFT + BAR_WIDTH + 12, y + 12,
            plot_number(value, text, sizeof text));
    if (limit > 0)
        fprintf(f, " · %.0f %%", 100 * value / limit);
    fputs("</text>\n", f);
}

void plot_bars(FILE *f, const struct report_group *g, const char *unit)
{
    unsigned n, y = 24;
    double most = plot_ceiling(largest(g, unit, &n));

    if (n == 0)
        return;
    fprintf(f,
            "<figure><svg viewBox=\"0 0 800 %u\" role=img aria-label=\"%s\">\n"
            "<text class=axis x=%d y=12>%s</text>\n",
            30 + n * BAR_STEP, unit, BAR_LEFT, unit);
    for (unsigned i = 0; i < g->n_rows; i++) {
        if (strcmp(g->rows[i].unit, unit) != 0)
            continue;
        one_bar(f, &g->rows[i], most, y);
        y += BAR_STEP;
    }
    fputs("</svg></figure>\n", f);
}

/* ---- scaling ---- */

#define PLOT_LEFT   52
#define PLOT_TOP    30
#define PLOT_WIDTH  300
#define PLOT_HEIGHT 200

struct point {
    unsigned servers, clients;
    double value, limit;
};

/* "scale.<access>.<what>.s<servers>.c<clients>" */
static bool is_point(const struct report_row *row, const char *access, const char *what,
                     struct point *p)
{
    char prefix[48];
    int end = 0;

    snprintf(prefix, sizeof prefix, "scale.%s.%s.", access, what);
    if (strncmp(row->name, prefix, strlen(prefix)) != 0)
        return false;
    if (sscanf(row->name + strlen(prefix), "s%u.c%u%n", &p->servers, &p->clients, &end) != 2 ||
        row->name[strlen(prefix) + (size_t)end] != '\0')
        return false;
    p->value = report_value(row);
    p->limit = report_limit(row);
    return true;
}

struct frame {
    double most_x, most_y;
};

static double at_x(const struct frame *fr, double servers)
{
    return PLOT_LEFT + PLOT_WIDTH * servers / fr->most_x;
}

static double at_y(const struct frame *fr, double value)
{
    return PLOT_TOP + PLOT_HEIGHT * (1 - value / fr->most_y);
}

static void grid(FILE *f, const struct frame *fr)
{
    char text[32];

    for (unsigned i = 0; i <= 4; i++) {
        double v = fr->most_y * i / 4;

        fprintf(f,
                "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f /><text class=axis x=%d y=%.1f "
                "text-anchor=end>%s</text>\n",
                PLOT_LEFT, PLOT_LEFT + PLOT_WIDTH, at_y(fr, v), at_y(fr, v), PLOT_LEFT - 6,
                at_y(fr, v) + 4, plot_number(v, text, sizeof text));
    }
}

static void line(FILE *f, const struct report_group *g, const char *access, const char *what,
                 unsigned clients, unsigned colour, const struct frame *fr)
{
    struct point p, last = {0};
    bool any = false;

    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < g->n_rows; i++) {
            if (!is_point(&g->rows[i], access, what, &p) || p.clients != clients)
                continue;
            if (pass == 0)
                fprintf(f, "%s%.1f,%.1f",
                        any ? " " : "<polyline fill=none class=\"line c\" points=\"",
                        at_x(fr, p.servers), at_y(fr, p.value));
            else
                fprintf(f, "<circle class=\"dot c%u\" cx=%.1f cy=%.1f r=3.5 />", colour,
                        at_x(fr, p.servers), at_y(fr, p.value));
            any = true;
            last = p;
        }
        if (pass == 0 && any)
            fprintf(f, "\" style=\"stroke:var(--c%u)\" />\n", colour);
    }
    if (any)
        fprintf(f, "<text class=key x=%d y=%u style=\"fill:var(--c%u)\">%u client%s</text>\n",
                PLOT_LEFT + 10, PLOT_TOP + 16 + colour * 16, colour, last.clients,
                last.clients > 1 ? "s" : "");
}

void plot_scaling(FILE *f, const struct report_group *g, const char *access, const char *what)
{
    struct frame fr = {0};
    unsigned seen[8], n_seen = 0;
    struct point p;

    for (unsigned i = 0; i < g->n_rows; i++) {
        bool known = false;

        if (!is_point(&g->rows[i], access, what, &p))
            continue;
        fr.most_x = fmax(fr.most_x, p.servers);
        fr.most_y = fmax(fr.most_y, fmax(p.value, p.limit));
        for (unsigned k = 0; k < n_seen; k++)
            known |= seen[k] == p.clients;
        if (!known && n_seen < ARRAY_LEN(seen))
            seen[n_seen++] = p.clients;
    }
    if (n_seen == 0)
        return;
    fprintf(f,
            "<figure class=half><svg viewBox=\"0 0 370 270\" role=img aria-label=\"%s by %s\">\n",
            what, access);
    fprintf(f, "<text class=title x=%d y=16>%s, %s · MB/s against servers</text>\n", PLOT_LEFT,
            what, strcmp(access, "lib") ? "mount" : "libaifs");
    grid(f, &fr);
    fprintf(f, "<line class=ideal x1=%.1f y1=%.1f x2=%.1f y2=%.1f />\n", at_x(&fr, 0), at_y(&fr, 0),
            at_x(&fr, fr.most_x), at_y(&fr, fr.most_y));
    for (unsigned k = 0; k < n_seen; k++)
        line(f, g, access, what, seen[k], k, &fr);
    for (unsigned s = 1; s <= (unsigned)fr.most_x; s *= 2)
        fprintf(f, "<text class=axis x=%.1f y=%d text-anchor=middle>%u</text>", at_x(&fr, s),
                PLOT_TOP + PLOT_HEIGHT + 18, s);
    fputs("</svg></figure>\n", f);
}
