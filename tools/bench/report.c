/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `report --out FILE RUN.json...`: one page of HTML that needs nothing else: plots are SVG in it,
 * there are no scripts, and it follows the reader's choice of light or dark. Runs of the same
 * scenario with the same arguments are shown as one, by their medians.
 */
#include "tools/bench/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/bars.h"

static struct {
    const char *out, *title;
} opt = {.out = "report.html", .title = "aifs-bench"};

static const struct bench_option options[] = {
    {"out", BENCH_TEXT, &opt.out, "the page (report.html)"},
    {"title", BENCH_TEXT, &opt.title, "its title (aifs-bench)"},
};

static const char style[] =
    ":root{--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5d6b7c;--rule:#e3e7ec;--bar:#2f6fde;--"
    "track:#eef1f5;"
    "--limit:#d9480f;--good:#157347;--goodbg:#e3f4ea;--bad:#b42318;--badbg:#fdeceb;--c0:#2f6fde;--"
    "c1:#12876f;"
    "--c2:#b0568f;--c3:#b7791f;--c4:#6b5bd2;--c5:#3d8fa8;--c6:#8a6d3b;--c7:#777}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#11161d;--card:#19202a;--ink:#e6ebf2;--soft:#"
    "93a1b3;"
    "--rule:#2b3543;--bar:#5b94f5;--track:#232c38;--limit:#ff8a4c;--good:#63d297;--goodbg:#173425;-"
    "-bad:#ff8a80;"
    "--badbg:#3b1d1c;--c0:#5b94f5;--c1:#3fc5a8;--c2:#e08cc0;--c3:#e5b04f;--c4:#a79bf5;--c5:#6cc3dc;"
    "--c6:#cbb07a;"
    "--c7:#aaa}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\n"
    "main{max-width:1120px;margin:0 auto;padding:32px 20px 64px}h1{font-size:28px;margin:0 0 4px}"
    "h2{font-size:19px;margin:0}p{margin:4px 0}.soft{color:var(--soft)}.small{font-size:13px}\n"
    "section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:20px "
    "22px;margin-top:22px}"
    "code{font:13px/1.5 ui-monospace,'DejaVu Sans "
    "Mono',monospace;color:var(--soft);overflow-wrap:anywhere}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;margin-top:14px;font-size:"
    "14px}"
    "th{font-weight:600;text-align:right;color:var(--soft);font-size:12.5px;padding:5px "
    "10px;border-bottom:1px solid "
    "var(--rule);white-space:nowrap}td{padding:5px 8px;text-align:right;border-bottom:1px solid "
    "var(--rule);"
    "font-variant-numeric:tabular-nums;white-space:nowrap}th:first-child,td:first-child{text-align:"
    "left;padding-left:0}"
    "tr:last-child "
    "td{border-bottom:0}td.left,th.left{text-align:left}td.wrap{white-space:normal}th.wrap{white-"
    "space:normal;width:120px}\n"
    ".verdict{font-weight:600;font-size:12.5px;border-radius:9px;padding:2px "
    "9px}.pass{color:var(--good);"
    "background:var(--goodbg)}.miss{color:var(--bad);background:var(--badbg)}\n"
    ".roof{display:inline-block;width:64px;height:8px;border-radius:4px;background:var(--track);"
    "margin-right:8px;"
    "overflow:hidden;vertical-align:1px}.roof i{display:block;height:100%;background:var(--bar)}\n"
    "figure{margin:16px 0 0}.halves{display:flex;flex-wrap:wrap;gap:8px}.half{flex:1 1 "
    "380px;max-width:480px}"
    "svg{width:100%;height:auto;font:12px system-ui,'DejaVu Sans',sans-serif}"
    "svg text{fill:var(--ink)}svg .axis,svg .label{fill:var(--soft)}svg "
    ".title{font-weight:600;font-size:13px}"
    "svg .value{font-variant-numeric:tabular-nums}.bar{fill:var(--bar)}.track{fill:var(--track)}"
    ".limit{stroke:var(--limit);stroke-width:2}.grid{stroke:var(--rule)}.ideal{stroke:var(--soft);"
    "stroke-dasharray:4 4}.line{stroke-width:2;fill:none}.dot{fill:var(--card);stroke-width:2}\n"
    ".dot.c0{stroke:var(--c0)}.dot.c1{stroke:var(--c1)}.dot.c2{stroke:var(--c2)}.dot.c3{stroke:var("
    "--c3)}"
    ".dot.c4{stroke:var(--c4)}.dot.c5{stroke:var(--c5)}.dot.c6{stroke:var(--c6)}.dot.c7{stroke:var("
    "--c7)}\n";

static void latency_cell(FILE *f, double ns)
{
    if (ns <= 0)
        fputs("<td class=soft>–</td>", f);
    else if (ns < 1e6)
        fprintf(f, "<td>%.0f µs</td>", ns / 1e3);
    else
        fprintf(f, "<td>%.1f ms</td>", ns / 1e6);
}

static void share_cell(FILE *f, const struct report_row *row)
{
    double limit = report_limit(row), share = limit > 0 ? report_value(row) / limit : 0;

    if (limit <= 0) {
        fputs("<td class=\"left soft\">–</td>", f);
        return;
    }
    fprintf(f,
            "<td class=left><span class=roof><i style=\"width:%.0f%%\"></i></span>%.0f %% <span "
            "class=soft>of ",
            100 * MIN(share, 1.0), 100 * share);
    html_text(f, row->limit_name);
    fputs("</span></td>", f);
}

static void cost_cell(FILE *f, const struct report_row *row)
{
    if (row->cost_client < 0 || row->cost_server < 0)
        fputs("<td class=soft>–</td>", f);
    else
        fprintf(f, "<td>%.2f + %.2f</td>", row->cost_client, row->cost_server);
}

static bool any_cost(const struct report_group *g)
{
    for (unsigned i = 0; i < g->n_rows; i++)
        if (g->rows[i].cost_client >= 0 && g->rows[i].cost_server >= 0)
            return true;
    return false;
}

static void rows_table(FILE *f, const struct report_group *g)
{
    bool cost = any_cost(g);
    char text[32];

    fprintf(f,
            "<div class=scroll><table><tr><th>measurement<th>%s<th "
            "class=left>unit<th>P50<th>P95<th>P99%s"
            "<th class=left>of its limit</tr>\n",
            g->n_runs > 1 ? "median" : "value",
            cost ? "<th class=wrap>CPU s / GiB: client + servers" : "");
    for (unsigned i = 0; i < g->n_rows; i++) {
        const struct report_row *row = &g->rows[i];

        fputs("<tr><td>", f);
        html_text(f, row->name);
        fprintf(f, "<td>%s<td class=\"left soft\">%s",
                plot_number(report_value(row), text, sizeof text), row->unit);
        latency_cell(f, row->p50_ns);
        latency_cell(f, row->p95_ns);
        latency_cell(f, row->p99_ns);
        if (cost)
            cost_cell(f, row);
        share_cell(f, row);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
}

static void plots(FILE *f, const struct report_group *g)
{
    static const char *const units[] = {"MB/s", "op/s", "sample/s", "%"};
    static const char *const accesses[] = {"lib", "mount"}, *const whats[] = {"read", "write"};

    if (!strcmp(g->scenario, "scale")) {
        fputs("<div class=halves>\n", f);
        for (unsigned a = 0; a < ARRAY_LEN(accesses); a++)
            for (unsigned w = 0; w < ARRAY_LEN(whats); w++)
                plot_scaling(f, g, accesses[a], whats[w]);
        fputs("</div><p class=\"small soft\">Dashed: the sum of the servers' links.</p>\n", f);
        return;
    }
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        plot_bars(f, g, units[i]);
}

static void group(FILE *f, const struct report_group *g)
{
    fputs("<section><h2>", f);
    html_text(f, g->scenario);
    fputs("</h2><p><code>aifs-bench ", f);
    html_text(f, g->scenario);
    fputc(' ', f);
    html_text(f, g->arguments);
    fprintf(f, "</code></p><p class=\"small soft\">%u run%s, ", g->n_runs,
            g->n_runs > 1 ? "s" : "");
    html_text(f, g->when);
    fprintf(f, ", load of the machine %.1f</p>\n", g->load);
    for (unsigned i = 0; i < g->n_notes; i++) {
        fputs("<p class=small>", f);
        html_text(f, g->notes[i]);
        fputs("</p>\n", f);
    }
    plots(f, g);
    if (!strcmp(g->scenario, "scale"))
        fputs("<details><summary class=\"small soft\">all rows</summary>\n", f);
    rows_table(f, g);
    if (!strcmp(g->scenario, "scale"))
        fputs("</details>\n", f);
    fputs("</section>\n", f);
}

/* Over what, where a run was told: the same row may be there over each transport. */
static void bar_transport(FILE *f, const struct report_group *g)
{
    const char *at = strstr(g->arguments, "--net");
    char net[16];

    if (!at || sscanf(at, "--net%*[ =]%15[a-z]", net) != 1)
        return;
    fputs("<span class=soft>, over ", f);
    html_text(f, net);
    fputs("</span>", f);
}

static void bar_row(FILE *f, const struct report_group *g, const struct report_row *row,
                    const struct bar *bar)
{
    double value = report_value(row), limit = report_limit(row);
    bool holds = bar_holds(bar, value, limit);
    char figure[32], need[32];

    bar_text(bar, bar_figure(bar, value, limit), figure, sizeof figure);
    bar_text(bar, bar->need, need, sizeof need);
    fputs("<tr><td class=wrap>", f);
    html_text(f, bar->title);
    bar_transport(f, g);
    fputs("<td class=\"left soft wrap\">", f);
    html_text(f, bar->of);
    fprintf(f, "<td>%s<td>%s %s<td>%u<td><span class=\"verdict %s\">%s</span></tr>\n", figure,
            bar->kind == BAR_AT_MOST ? "≤" : "≥", need, row->n, holds ? "pass" : "miss",
            holds ? "PASS" : "MISS");
}

static void bars_section(FILE *f, const struct report *r)
{
    bool any = false;

    for (size_t b = 0; b < n_bars; b++)
        for (unsigned g = 0; g < r->n_groups; g++)
            for (unsigned i = 0; i < r->groups[g].n_rows; i++) {
                if (bar_of(r->groups[g].rows[i].name) != &bars[b])
                    continue;
                if (!any)
                    fputs("<section><h2>Bars</h2><div class=scroll><table><tr><th>what<th "
                          "class=left>held "
                          "against<th>reached<th>bar<th>runs<th></tr>\n",
                          f);
                any = true;
                bar_row(f, &r->groups[g], &r->groups[g].rows[i], &bars[b]);
            }
    if (any)
        fputs("</table></div></section>\n", f);
}

static void page(FILE *f, const struct report *r)
{
    fputs("<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
          "<meta name=color-scheme content=\"light dark\">\n<title>",
          f);
    html_text(f, opt.title);
    fprintf(f, "</title>\n<style>\n%s</style></head>\n<body><main>\n<h1>", style);
    html_text(f, opt.title);
    fputs("</h1>\n<p class=soft>", f);
    html_text(f, r->groups[0].host);
    fputs(" · aifs ", f);
    html_text(f, r->groups[0].version);
    fputs(" · ", f);
    html_text(f, r->groups[0].when);
    fputs("</p>\n", f);
    bars_section(f, r);
    for (unsigned i = 0; i < r->n_groups; i++)
        group(f, &r->groups[i]);
    fputs("<p class=\"small soft\">MB/s are 10⁶ bytes per second. Orange ticks are limits measured "
          "in the same run. "
          "Latencies are upper bounds of histogram buckets, about 6 % wide, of the last run.</p>\n"
          "</main></body></html>\n",
          f);
}

static int run(struct bench *b, int argc, char **argv)
{
    struct report *r = calloc(1, sizeof *r);
    FILE *f = NULL;
    int rc = 0;

    (void)b;
    if (!r || argc < 1) {
        bench_error("report: say which runs: the outputs of aifs-bench --json");
        free(r);
        return 2;
    }
    for (int i = 0; i < argc && rc == 0; i++)
        rc = report_load(r, argv[i]); /* has said why */
    if (rc == 0) {
        f = fopen(opt.out, "we");
        rc = !f;
        if (f) {
            page(f, r);
            rc = ferror(f) != 0;
            rc |= fclose(f) != 0;
        }
        if (rc)
            bench_error("report: %s: %s", opt.out, f ? "not written" : strerror(errno));
        else
            printf("%s\n", opt.out);
    }
    report_free(r);
    free(r);
    return rc;
}

const struct bench_scenario bench_report = {
    "report", "[options] RUN.json...", "a page of HTML with plots, from the output of --json",
    options,  ARRAY_LEN(options),      run};
