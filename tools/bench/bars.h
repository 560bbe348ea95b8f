/* SPDX-License-Identifier: Apache-2.0 */
/* What rows are held against: one line per bar, found by the names of rows. Pure. */
#ifndef AIFS_TOOLS_BENCH_BARS_H
#define AIFS_TOOLS_BENCH_BARS_H

#include <stdbool.h>
#include <stddef.h>

struct bar {
    const char *row; /* name of the row, with * as in file names */
    const char *title, *of;
    enum { BAR_SHARE, BAR_AT_LEAST, BAR_AT_MOST } kind; /* of value / limit; of the value alone */
    double need;
};
extern const struct bar bars[];
extern const size_t n_bars;

/* The bar of a row, or NULL. */
const struct bar *bar_of(const char *row);
/* What counts: value / limit, or the value. */
double bar_figure(const struct bar *bar, double value, double limit);
bool bar_holds(const struct bar *bar, double value, double limit);
/* "70 %", "7.6 x": as people read it. */
void bar_text(const struct bar *bar, double figure, char *out, size_t len);

#endif
