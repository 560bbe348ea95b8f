/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging. The function that first sees a failure logs it once with the exact cause; callers
 * propagate.
 *
 * A line reads "LEVEL tag: text": the tag names the object ("target 3", "session 17", "net
 * 10.0.0.1:7000"). To stderr it carries a time stamp, or the "<n>" prefix that the journal turns
 * into a priority when stderr is the journal ($JOURNAL_STREAM); log_open_syslog() sends to syslog
 * instead. Each call site of a warning, error or info line may print 20 lines a second
 * (log_set_burst()); the rest is counted, and the count is reported before the site's next line in
 * a later second. Debug and trace lines are not limited. Any thread may call.
 */
#ifndef AIFS_COMMON_BASE_LOG_H
#define AIFS_COMMON_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_TRACE
};

/* Per call site; zero-initialised static storage. */
struct log_site {
    _Atomic uint64_t second;
    _Atomic uint32_t printed;
    _Atomic uint32_t dropped;
};

extern _Atomic int log_threshold; /* enum log_level; lines above it cost one load */

void log_set_level(enum log_level level);
/* Lines a second and call site; 0 = no limit. */
void log_set_burst(uint32_t lines);
/* Program name in each line; borrowed for ever. */
void log_set_program(const char *name);
/* From now on to syslog(3) (facility daemon) instead of stderr. */
void log_open_syslog(void);
/* From now on appended to this file (opened here, 0640); -errno when it cannot be opened. */
int log_open_file(const char *path) MUST_USE;
void log_write(struct log_site *site, enum log_level level, const char *tag, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

#define LOG_AT(level, tag, ...)                                                                    \
    do {                                                                                           \
        static struct log_site log_site_;                                                          \
        if ((int)(level) <= atomic_load_explicit(&log_threshold, memory_order_relaxed))            \
            log_write(&log_site_, (level), (tag), __VA_ARGS__);                                    \
    } while (0)
#define LOG_ERROR(tag, ...) LOG_AT(LOG_LEVEL_ERROR, tag, __VA_ARGS__)
#define LOG_WARN(tag, ...)  LOG_AT(LOG_LEVEL_WARN, tag, __VA_ARGS__)
#define LOG_INFO(tag, ...)  LOG_AT(LOG_LEVEL_INFO, tag, __VA_ARGS__)
#define LOG_DEBUG(tag, ...) LOG_AT(LOG_LEVEL_DEBUG, tag, __VA_ARGS__)
#define LOG_TRACE(tag, ...) LOG_AT(LOG_LEVEL_TRACE, tag, __VA_ARGS__)

#endif
