/* SPDX-License-Identifier: Apache-2.0 */
/* Read-ahead detector: see the header for the idea. Nothing here can fail. */
#include "client/core/readahead.h"

#include "common/base/compiler.h"

#define SLACK_BYTES  (512u * 1024u) /* how far requests of one stream may be out of order */
#define FALLING_DOWN 3u             /* so many reads before each other: they go on like that */
#define SURE_RUN     3u             /* so many reads make a run that nobody doubts, */
#define SURE_PART    4u             /* and one more for each so many that have belonged to none */
#define ALONE_MAX    32u            /* of which so many count */
#define STALE_READS  32u            /* until so many others have come, */
#define STALE_LARGE  8u             /* large ones: these come near by chance, their slack is wide */
#define STRIDE_RUN   2u             /* so many equal distances */
#define AROUND_HITS  4u
#define RUN_MAX      1000000u

/* One read, and what is known of the file. */
struct seen {
    uint64_t offset, end, size, unit, max;
    uint32_t len;
    bool eager;
};

static bool is_large(const struct seen *r)
{
    return r->len >= 64 * KIB;
}

/* It has stood for long: what comes near it may do so by chance. */
static bool is_stale(const struct readahead *ra, const struct readahead_stream *s,
                     const struct seen *r)
{
    return ra->clock - s->used >= (is_large(r) ? STALE_LARGE : STALE_READS);
}

/* A file that is read at random for long has reads behind each other by chance, more and more of
 * them where nothing is read twice: there a run has to be longer until it is one. */
static bool is_sure(const struct readahead *ra, const struct readahead_stream *s)
{
    return s->run >= SURE_RUN + ra->alone / SURE_PART;
}

/* How far from the place where it is expected a read may be to be the next one of a run. Of a
 * short run nobody knows that it is one, and readers at random would come near it by chance. */
static uint64_t slack_of(const struct readahead *ra, const struct readahead_stream *s,
                         const struct seen *r)
{
    uint64_t slack =
        is_large(r) ? MAX((uint64_t)SLACK_BYTES, (uint64_t)r->len * 4) : (uint64_t)r->len * 2;

    if (is_stale(ra, s, r))
        return 0;
    return is_sure(ra, s) ? slack : MIN(slack, r->len);
}

/* Not to give way to a read at random. */
static bool is_run(const struct readahead *ra, const struct readahead_stream *s,
                   const struct seen *r)
{
    return s->run >= SURE_RUN || (s->run > 1 && !is_stale(ra, s, r));
}

static bool near(uint64_t at, uint64_t expected, uint64_t before, uint64_t behind)
{
    return at < expected ? expected - at <= before : at - expected <= behind;
}

/* ---- streams ---- */

static uint64_t next_window(const struct readahead_stream *s, const struct seen *r)
{
    uint64_t window = r->eager ? r->max : s->window ? s->window * 2 : MAX(r->unit, r->len);

    return MIN(window, r->max);
}

/* Reads in advance, from where was asked for to a window from the reader. */
static void ahead(struct readahead_stream *s, const struct seen *r, struct readahead_plan *plan)
{
    if (s->fetched > s->next && s->fetched - s->next > s->window / 2)
        return;
    s->window = next_window(s, r);
    plan->start = MAX(s->next, s->fetched);
    plan->end = MIN((s->next + s->window + r->unit - 1) / r->unit * r->unit, r->size);
    if (plan->start < plan->end)
        s->fetched = plan->end;
    else
        plan->start = plan->end = 0;
}

static void ahead_down(struct readahead_stream *s, const struct seen *r,
                       struct readahead_plan *plan)
{
    uint64_t from;

    if (s->fetched < s->low && s->low - s->fetched > s->window / 2)
        return;
    s->window = next_window(s, r);
    from = s->low > s->window ? (s->low - s->window) / r->unit * r->unit : 0;
    plan->end = MIN(s->low, s->fetched);
    plan->start = MIN(from, plan->end);
    s->fetched = plan->start;
}

static void turn(struct readahead_stream *s, bool down)
{
    s->down = down;
    s->window = 0;
    s->fetched = down ? s->low : s->next;
}

static void follow(struct readahead *ra, struct readahead_stream *s, const struct seen *r,
                   struct readahead_plan *plan)
{
    ra->alone -= ra->alone > 0;
    s->falling = r->offset < s->last ? s->falling + 1 : 0;
    s->run += s->run < RUN_MAX;
    s->last = r->offset;
    if (s->down && !s->falling) {
        s->next = r->end;
        turn(s, false);
    }
    s->next = MAX(s->next, r->end);
    s->low = MIN(s->low, r->offset);
    if (!s->down && s->falling >= FALLING_DOWN) {
        s->low = r->offset;
        turn(s, true);
    }
    if (!is_sure(ra, s) && r->len < r->unit && !r->eager)
        return; /* two that meet by chance must not fetch many times what they ask for */
    plan->sequential = true;
    if (r->max && s->down)
        ahead_down(s, r, plan);
    else if (r->max && !s->falling) /* which way is not clear before */
        ahead(s, r, plan);
}

static struct readahead_stream *find(struct readahead *ra, const struct seen *r)
{
    for (unsigned k = 0; k < READAHEAD_STREAMS; k++) {
        struct readahead_stream *s = &ra->streams[k];
        uint64_t slack = slack_of(ra, s, r), back = s->run > 1 ? slack : 0;

        if (!s->run)
            continue;
        if (near(r->offset, s->next, back, slack) ||
            ((s->down || s->run <= FALLING_DOWN) &&
             near(r->end, s->down ? s->low : s->last, slack, back)))
            return s;
    }
    return NULL;
}

/* The place of a new run: of one that never was, of one that did not go on, of the oldest. */
static struct readahead_stream *place(struct readahead *ra, const struct seen *r)
{
    struct readahead_stream *best = &ra->streams[0];

    for (unsigned k = 0; k < READAHEAD_STREAMS; k++) {
        struct readahead_stream *s = &ra->streams[k];
        bool worse = is_run(ra, s, r), best_worse = is_run(ra, best, r);

        if (!s->run)
            return s;
        if (worse != best_worse ? best_worse : ra->clock - s->used > ra->clock - best->used)
            best = s;
    }
    return best;
}

/* ---- strides ---- */

static bool strided(struct readahead *ra, const struct seen *r, struct readahead_plan *plan)
{
    int64_t step = (int64_t)(r->offset - ra->stride.last);
    uint64_t room, size = (uint64_t)(step < 0 ? -step : step);
    uint32_t depth, ahead_of;

    ra->stride.last = r->offset;
    if (!step || step != ra->stride.step || r->len != ra->stride.len) {
        ra->stride.step = step;
        ra->stride.len = r->len;
        ra->stride.run = 1;
        ra->stride.depth = 0;
        return false;
    }
    ra->stride.run += ra->stride.run < RUN_MAX;
    if (ra->stride.run < STRIDE_RUN || !r->max)
        return false;
    ahead_of = ra->stride.depth ? ra->stride.depth - 1 : 0; /* this read was one of them */
    depth = MIN(ahead_of ? ahead_of * 2 : 2u, READAHEAD_STRIDE_DEPTH);
    depth = (uint32_t)MIN(depth, r->max / r->len);
    room = step > 0 ? (r->size > r->end ? (r->size - r->end) / size : 0) : r->offset / size;
    depth = (uint32_t)MIN(depth, room);
    ra->stride.depth = MAX(depth, ahead_of);
    if (depth > ahead_of) {
        plan->step = step;
        plan->count = depth - ahead_of;
        plan->start = r->offset + (uint64_t)(step * (int64_t)(ahead_of + 1));
        plan->end = plan->start + r->len;
    }
    return true;
}

/* ---- neighbours ---- */

static void around(struct readahead *ra, const struct seen *r, struct readahead_plan *plan)
{
    uint64_t area = r->offset / READAHEAD_AROUND;
    unsigned hits = 0;

    ra->recent[ra->clock % READAHEAD_RECENT] = area + 1;
    for (unsigned k = 0; k < READAHEAD_RECENT; k++)
        hits += ra->recent[k] == area + 1;
    if (hits < AROUND_HITS || r->max < READAHEAD_AROUND)
        return;
    for (unsigned k = 0; k < READAHEAD_RECENT; k++)
        if (ra->recent[k] == area + 1)
            ra->recent[k] = 0;
    plan->sequential = true;
    plan->start = area * READAHEAD_AROUND;
    plan->end = MIN(plan->start + READAHEAD_AROUND, r->size);
}

struct readahead_plan readahead_next(struct readahead *ra, uint64_t offset, uint32_t len,
                                     uint64_t file_size, uint64_t unit, uint64_t max)
{
    struct seen r = {
        offset, offset + len, file_size, unit, max, len, ra->advice == READAHEAD_SEQUENTIAL};
    struct readahead_stream *s = find(ra, &r);
    struct readahead_plan plan = {0};

    if (ra->advice == READAHEAD_RANDOM)
        return plan;
    ra->clock++;
    if (!s) {
        ra->alone += ra->alone < ALONE_MAX;
        s = place(ra, &r);
        *s = (struct readahead_stream){
            .next = r.end, .low = offset, .last = offset, .run = 1, .used = ra->clock};
        if (offset == 0 || r.eager) { /* whoever begins at the beginning goes on */
            s->run = SURE_RUN;
            plan.sequential = true;
            if (max)
                ahead(s, &r, &plan);
        } else if (!strided(ra, &r, &plan)) {
            around(ra, &r, &plan);
        }
        return plan;
    }
    s->used = ra->clock;
    follow(ra, s, &r, &plan);
    return plan;
}
