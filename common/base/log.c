// SPDX-License-Identifier: Apache-2.0
/*
 * Logging. A line is built on the stack, limited per call site, cleaned of control characters (tags
 * and texts may quote hostile input) and handed over in one write(2) or one syslog(3) call, so that
 * lines of several threads never mix. A line that cannot be written is lost: there is nowhere left
 * to say so. errno is the caller's before and after.
 */
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define LINE_BYTES    2048
#define DEFAULT_BURST 20

enum log_sink { SINK_UNKNOWN, SINK_STDERR, SINK_JOURNAL, SINK_SYSLOG, SINK_FILE };

_Atomic int log_threshold = LOG_LEVEL_INFO;
static _Atomic uint32_t burst = DEFAULT_BURST;
static _Atomic int sink = SINK_UNKNOWN;
static _Atomic int file_fd = -1;
static const char *_Atomic program = "aifs";

static const struct {
    const char *name, *upper;
    int priority;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", "ERROR", 3}, [LOG_LEVEL_WARN] = {"warn", "WARN", 4},
    [LOG_LEVEL_INFO] = {"info", "INFO", 5},    [LOG_LEVEL_DEBUG] = {"debug", "DEBUG", 7},
    [LOG_LEVEL_TRACE] = {"trace", "TRACE", 7},
};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&log_threshold, (int)level, memory_order_relaxed);
}

void log_set_burst(uint32_t lines)
{
    atomic_store_explicit(&burst, lines, memory_order_relaxed);
}

void log_set_program(const char *name)
{
    atomic_store(&program, name);
}

void log_open_syslog(void)
{
    openlog(atomic_load(&program), LOG_PID | LOG_NDELAY, LOG_DAEMON);
    atomic_store(&sink, SINK_SYSLOG);
}

int log_open_file(const char *path)
{
    int old = atomic_load(&file_fd);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
    int err = 0;

    if (fd < 0)
        return -errno;
    if (old >= 0) {
        /* Another thread may be writing to the old number: replace the file behind it, never close
         * it. */
        if (dup3(fd, old, O_CLOEXEC) < 0)
            err = -errno;
        close(fd);
    } else {
        atomic_store(&file_fd, fd);
    }
    if (!err)
        atomic_store(&sink, SINK_FILE);
    return err;
}

/* The journal announces itself by the device and inode of the stderr that it gave us. */
static enum log_sink detect_sink(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long dev, ino;
    struct stat st;

    if (stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
        st.st_dev == dev && st.st_ino == ino)
        return SINK_JOURNAL;
    return SINK_STDERR;
}

static enum log_sink current_sink(void)
{
    int s = atomic_load_explicit(&sink, memory_order_relaxed);
    int unknown = SINK_UNKNOWN;

    if (s == SINK_UNKNOWN) {
        s = (int)detect_sink();
        if (!atomic_compare_exchange_strong(&sink, &unknown, s))
            s = unknown;
    }
    return (enum log_sink)s;
}

static size_t format_prefix(enum log_sink to, enum log_level level, char *out, size_t cap)
{
    struct timespec now;
    struct tm tm;
    size_t n;

    if (to == SINK_SYSLOG)
        return 0;
    if (to == SINK_JOURNAL)
        return (size_t)snprintf(out, cap, "<%d>", levels[level].priority);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    n = strftime(out, cap, "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(out + n, cap - n, ".%03ldZ %.32s[%d] ", now.tv_nsec / 1000000,
                          atomic_load(&program), (int)getpid());
    return n;
}

static size_t clamp_len(int n, size_t cap)
{
    return n < 0 ? 0 : MIN((size_t)n, cap - 1);
}

static void clean(char *s, size_t len)
{
    size_t i;

    for (i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            s[i] = s[i] == '\n' || s[i] == '\t' ? ' ' : '?';
    }
}

PRINTF_LIKE(3, 0)
static void emit(enum log_level level, const char *tag, const char *fmt, va_list ap)
{
    enum log_sink to = current_sink();
    char line[LINE_BYTES];
    size_t cap = sizeof line - 1; /* leaves room for the newline */
    int saved = errno;
    size_t n, start;
    ssize_t rc;

    n = start = format_prefix(to, level, line, cap);
    n += clamp_len(snprintf(line + n, cap - n, "%s %.200s: ", levels[level].upper, tag), cap - n);
    errno = saved; /* for %m */
    n += clamp_len(vsnprintf(line + n, cap - n, fmt, ap), cap - n);
    clean(line + start, n - start);
    if (to == SINK_SYSLOG) {
        line[n] = '\0';
        syslog(levels[level].priority, "%s", line);
        return;
    }
    line[n++] = '\n';
    do {
        rc = write(to == SINK_FILE ? atomic_load(&file_fd) : STDERR_FILENO, line, n);
    } while (rc < 0 && errno == EINTR);
}

PRINTF_LIKE(3, 4)
static void emit_text(enum log_level level, const char *tag, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    emit(level, tag, fmt, ap);
    va_end(ap);
}

/* Whether this site may print now; starts a new second and returns what the old one dropped. */
static bool site_admit(struct log_site *site, uint32_t *ret_dropped)
{
    uint32_t limit = atomic_load_explicit(&burst, memory_order_relaxed);
    uint64_t now = clock_mono_ns(clock_real()) / NS_PER_S + 1;
    uint64_t second = atomic_load(&site->second);

    *ret_dropped = 0;
    if (second != now && atomic_compare_exchange_strong(&site->second, &second, now)) {
        atomic_store(&site->printed, 0);
        *ret_dropped = atomic_exchange(&site->dropped, 0);
    }
    if (!limit || atomic_fetch_add(&site->printed, 1) < limit)
        return true;
    atomic_fetch_add(&site->dropped, 1);
    return false;
}

void log_write(struct log_site *site, enum log_level level, const char *tag, const char *fmt, ...)
{
    int saved = errno;
    uint32_t dropped = 0;
    va_list ap;

    /* Debug and trace are asked for by somebody who wants all of it. */
    if (level <= LOG_LEVEL_INFO && !site_admit(site, &dropped))
        return;
    if (dropped)
        emit_text(level, tag, "lines like the next left out: %u", dropped);
    va_start(ap, fmt);
    errno = saved;
    emit(level, tag, fmt, ap);
    va_end(ap);
    errno = saved;
}
