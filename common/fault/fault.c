// SPDX-License-Identifier: Apache-2.0
/*
 * The table of armed fault points: fixed size, behind one mutex, and without allocation, because
 * the allocator itself is a fault point. A specification is parsed as a whole before any of it is
 * armed; arming a name again replaces it and starts its count anew. Only armed processes ever take
 * the mutex; the sleep and the crash happen after it is released.
 */
#include "common/fault/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/text.h"

#define POINTS_MAX   32
#define NAME_BYTES   64
#define SPEC_BYTES   1024
#define CRASH_STATUS 137 /* what a shell reports for a process killed by SIGKILL */

enum fault_action { ACTION_ERROR, ACTION_CRASH, ACTION_DELAY };

struct fault_point {
    char name[NAME_BYTES];
    enum fault_action action;
    uint64_t delay_ms;
    uint64_t nth; /* 0 = every time */
    bool onward;  /* the n-th time and every one after it */
    unsigned count;
};

_Atomic int fault_armed;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fault_point points[POINTS_MAX];
static int n_points;

static struct fault_point *find(struct fault_point *table, int n, const char *name)
{
    int i;

    for (i = 0; i < n; i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

static int parse_nth(char *text, struct fault_point *p)
{
    size_t len = strlen(text);

    p->onward = len && text[len - 1] == '+';
    if (p->onward)
        text[len - 1] = '\0';
    return text_parse_u64(text, &p->nth) || p->nth == 0 ? -EINVAL : 0;
}

static int parse_action(const char *text, struct fault_point *p)
{
    if (strcmp(text, "error") == 0)
        p->action = ACTION_ERROR;
    else if (strcmp(text, "crash") == 0)
        p->action = ACTION_CRASH;
    else if (strncmp(text, "delay:", 6) == 0 && text_parse_u64(text + 6, &p->delay_ms) == 0 &&
             p->delay_ms <= 3600000)
        p->action = ACTION_DELAY;
    else
        return -EINVAL;
    return 0;
}

/* "name=action[:arg][@nth]"; cuts up text. */
static int parse_point(char *text, struct fault_point *ret_point)
{
    char *action = strchr(text, '=');
    struct fault_point p = {0};
    char *nth;

    if (!action || action == text || action - text >= NAME_BYTES)
        return -EINVAL;
    *action++ = '\0';
    memcpy(p.name, text, strlen(text));
    nth = strchr(action, '@');
    if (nth) {
        *nth++ = '\0';
        if (parse_nth(nth, &p))
            return -EINVAL;
    }
    if (parse_action(action, &p))
        return -EINVAL;
    *ret_point = p;
    return 0;
}

static int parse_spec(const char *spec, struct fault_point *ret_points)
{
    char text[SPEC_BYTES];
    char *rest = text, *item;
    int n = 0;

    if (strlen(spec) >= sizeof text)
        return -EINVAL;
    strcpy(text, spec);
    while ((item = strsep(&rest, ","))) {
        if (n == POINTS_MAX || parse_point(item, &ret_points[n]))
            return -EINVAL;
        n++;
    }
    return n;
}

int fault_arm(const char *spec)
{
    struct fault_point parsed[POINTS_MAX], merged[POINTS_MAX];
    int i, n, m;

    n = parse_spec(spec, parsed);
    if (n < 0)
        return n;
    pthread_mutex_lock(&mutex);
    m = n_points;
    memcpy(merged, points, sizeof merged);
    for (i = 0; i < n; i++) {
        struct fault_point *p = find(merged, m, parsed[i].name);

        if (!p && m == POINTS_MAX)
            break;
        *(p ? p : &merged[m++]) = parsed[i];
    }
    if (i == n) {
        memcpy(points, merged, sizeof points);
        n_points = m;
        atomic_store(&fault_armed, m);
    }
    pthread_mutex_unlock(&mutex);
    return i == n ? 0 : -EINVAL;
}

void fault_disarm_all(void)
{
    pthread_mutex_lock(&mutex);
    n_points = 0;
    atomic_store(&fault_armed, 0);
    pthread_mutex_unlock(&mutex);
}

unsigned fault_count(const char *name)
{
    struct fault_point *p;
    unsigned count;

    pthread_mutex_lock(&mutex);
    p = find(points, n_points, name);
    count = p ? p->count : 0;
    pthread_mutex_unlock(&mutex);
    return count;
}

int fault_arm_from_env(void)
{
    const char *spec = getenv("AIFS_FAULT");

    return spec && *spec ? fault_arm(spec) : 0;
}

static void delay(uint64_t ms)
{
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

bool fault_hit(const char *name)
{
    struct fault_point *p, hit = {0};
    bool fires;

    pthread_mutex_lock(&mutex);
    p = find(points, n_points, name);
    if (p) {
        p->count++;
        hit = *p;
    }
    pthread_mutex_unlock(&mutex);
    fires = p && (!hit.nth || hit.count == hit.nth || (hit.onward && hit.count > hit.nth));
    if (!fires)
        return false;
    if (hit.action == ACTION_CRASH)
        _exit(CRASH_STATUS);
    if (hit.action == ACTION_DELAY)
        delay(hit.delay_ms);
    return hit.action == ACTION_ERROR;
}
