/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said on standard error. As text it is printed at once. With --json it is kept until the
 * program ends and printed then, as one object on one line:
 *   {"schema": "aifs.error/1", "command": "target show", "exit": 4, "reason": "not_found",
 *    "message": "there is no target 99", "more": [...]}
 * message is what was said first; more is everything after it. No memory: it is text after all.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/text.h"
#include "tools/admin/say.h"

#define TEXT_BYTES 4096

static struct {
    pthread_mutex_t lock; /* of said: the thread that watches the time (watch.c) speaks, too */
    bool json, little;
    char command[64];
    const char *key, *role; /* what the servers were shown */
    json_t *said;           /* strings */
} say = {.lock = PTHREAD_MUTEX_INITIALIZER};

void admin_say_json(void)
{
    say.json = true;
}

void admin_say_key(const char *path, const char *role)
{
    say.key = path;
    say.role = role;
}

bool admin_says_json(void)
{
    return say.json;
}

void admin_say_little(void)
{
    say.little = true;
}

bool admin_says_little(void)
{
    return say.little;
}

void admin_say_of(const char *noun, const char *verb)
{
    snprintf(say.command, sizeof say.command, "%s%s%s", noun, verb ? " " : "", verb ? verb : "");
}

json_t *admin_json_text(const char *text)
{
    json_t *value = json_string(text);
    char *ascii = value ? NULL : strdup(text);

    for (char *p = ascii; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    if (ascii)
        value = json_string(ascii);
    free(ascii);
    return value;
}

static bool keep(const char *text)
{
    bool kept;

    pthread_mutex_lock(&say.lock);
    if (!say.said)
        say.said = json_array();
    kept = say.said && json_array_append_new(say.said, admin_json_text(text)) == 0;
    pthread_mutex_unlock(&say.lock);
    return kept;
}

static void put(const char *prefix, char *text)
{
    if (say.json && keep(text))
        return;
    text_make_printable(text, "\n\t"); /* the end of a log is lines */
    fflush(stdout);
    fprintf(stderr, "%s%s\n", prefix, text);
}

void admin_error(const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put("aifs-admin: ", text);
}

void admin_detail(const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put("", text);
}

static int exit_of(int err)
{
    switch (-err) {
    case ENOENT:
    case AIFS_ENOTARGET:
        return ADMIN_NOT_FOUND;
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY:
        return ADMIN_CONFLICT;
    case EACCES:
    case EPERM:
    case AIFS_EAUTH:
    case AIFS_ECLUSTER:
    case AIFS_EROLE:
        return ADMIN_PERMISSION;
    case AIFS_ETIMEOUT:
    case AIFS_ECONN:
    case AIFS_EDOWN:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case EHOSTUNREACH:
        return ADMIN_UNREACHABLE;
    case EINVAL:
        return ADMIN_USAGE;
    default:
        return ADMIN_FAILED;
    }
}

int admin_fail(int err, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (err == -AIFS_EROLE && say.key)
        admin_error("%s needs a key of role admin or server; %s is of role %s", say.command,
                    say.key, say.role);
    else
        admin_error("%s: %s", text, err_text(err));
    return exit_of(err);
}

int admin_fail_path(int err, const char *path)
{
    if (err != -EOPNOTSUPP && err != -ENODATA)
        return admin_fail(err, "%s", path);
    admin_error("%s: not on an aifs mount", path);
    return ADMIN_USAGE;
}

int admin_usage(const char *noun, const char *verb, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    admin_error("%s", text);
    for (unsigned i = 0; i < admin_n_commands; i++) {
        const struct admin_command *c = &admin_commands[i];

        if (!strcmp(c->noun, noun) && (!verb || (c->verb && !strcmp(c->verb, verb))))
            admin_detail("usage: aifs-admin %s%s%s%s%s", c->noun, c->verb ? " " : "",
                         c->verb ? c->verb : "", c->args[0] ? " " : "", c->args);
    }
    return ADMIN_USAGE;
}

int admin_end(int rc)
{
    static const char *const reasons[] = {
        [ADMIN_OK] = "ok",
        [ADMIN_FAILED] = "failed",
        [ADMIN_USAGE] = "usage",
        [ADMIN_PARTIAL] = "partial",
        [ADMIN_NOT_FOUND] = "not_found",
        [ADMIN_CONFLICT] = "conflict",
        [ADMIN_PERMISSION] = "permission",
        [ADMIN_UNREACHABLE] = "unreachable",
        [ADMIN_CONFIRM] = "needs_yes",
    };
    json_t *root, *message, *said;
    char *text;

    pthread_mutex_lock(&say.lock);
    said = say.said;
    say.said = NULL;
    pthread_mutex_unlock(&say.lock);
    if (!said)
        return rc;
    message = json_incref(json_array_get(said, 0));
    json_array_remove(said, 0);
    root =
        json_pack("{s:s, s:s, s:i, s:s, s:o, s:o}", "schema", "aifs.error/1", "command",
                  say.command, "exit", rc, "reason", reasons[rc], "message", message, "more", said);
    text = root ? json_dumps(root, 0) : NULL;
    fflush(stdout);
    fprintf(stderr, "%s\n", text ? text : "aifs-admin: out of memory");
    free(text);
    json_decref(root);
    return rc;
}
