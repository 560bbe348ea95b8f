// SPDX-License-Identifier: Apache-2.0
/*
 * The environment and the command line as sources, and --help made from the same table. A command
 * line is compacted in place: options of the table are taken out, everything else keeps its order
 * for the caller. "--" ends the options and stays with the rest.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/text.h"
#include "common/conf/conf_int.h"

#define ENV_PREFIX "AIFS_"
#define ENV_BYTES  96u

static void env_name(const char *option, char out[ENV_BYTES])
{
    size_t i, n = strlen(ENV_PREFIX);

    ASSERT(strlen(option) < ENV_BYTES - n);
    strcpy(out, ENV_PREFIX);
    for (i = 0; option[i]; i++)
        out[n++] =
            option[i] == '.' || option[i] == '-' ? '_' : (char)toupper((unsigned char)option[i]);
    out[n] = '\0';
}

/* A variable that is one slip away from an option is a mistake; any other AIFS_* belongs to another
 * program. */
static int check_typos(const struct conf *c, char *err, size_t err_len)
{
    char expected[ENV_BYTES], given[ENV_BYTES];
    char **v;
    size_t i;

    for (v = environ; v && *v; v++) {
        size_t len = strcspn(*v, "=");

        if (strncmp(*v, ENV_PREFIX, strlen(ENV_PREFIX)) != 0 || len >= sizeof given)
            continue;
        memcpy(given, *v, len);
        given[len] = '\0';
        for (i = 0; i < c->count; i++) {
            env_name(c->names[i], expected);
            if (text_distance(given + strlen(ENV_PREFIX), expected + strlen(ENV_PREFIX)) == 1)
                return conf_fail(-AIFS_ECONFIG, err, err_len,
                                 "environment: unknown variable %s; did you mean %s?", given,
                                 expected);
        }
    }
    return 0;
}

int conf_load_env(struct conf *c, char *err, size_t err_len)
{
    char name[ENV_BYTES], where[ENV_BYTES + 16];
    size_t i;
    int rc;

    ASSERT(!c->frozen);
    for (i = 0; i < c->count; i++) {
        const char *value;

        env_name(c->names[i], name);
        value = getenv(name);
        if (!value)
            continue;
        snprintf(where, sizeof where, "environment %s", name);
        rc = conf_entry_set(&c->entries[i], value, RANK_ENV, where, err, err_len);
        if (rc)
            return rc;
    }
    return check_typos(c, err, err_len);
}

/* Takes argv[i] (and its value) if it is an option of the table: returns how many words, 0 if it is
 * none, or an error. */
static int take_arg(struct conf *c, int argc, char **argv, int i, char *err, size_t err_len)
{
    const char *name = argv[i] + 2, *equals = strchr(name, '=');
    struct conf_entry *e = conf_find(c, name, equals ? (size_t)(equals - name) : strlen(name));
    const char *value = equals ? equals + 1 : NULL;
    int rc, words = 1;

    if (!e)
        return 0;
    if (!value && e->option->type == CONF_BOOL) {
        value = "yes";
    } else if (!value) {
        if (i + 1 >= argc)
            return conf_fail(-AIFS_ECONFIG, err, err_len, "command line: --%s needs a value", name);
        value = argv[i + 1];
        words = 2;
    }
    rc = conf_entry_set(e, value, RANK_COMMAND, "command line", err, err_len);
    return rc ? rc : words;
}

int conf_load_args(struct conf *c, int *argc, char **argv, char *err, size_t err_len)
{
    int i = 0, kept = 0;

    ASSERT(!c->frozen);
    while (i < *argc) {
        int words = 0;

        if (i > 0 && strcmp(argv[i], "--") == 0)
            break;
        if (i > 0 && strncmp(argv[i], "--", 2) == 0)
            words = take_arg(c, *argc, argv, i, err, err_len);
        if (words < 0)
            return words;
        if (words == 0)
            argv[kept++] = argv[i++];
        i += words;
    }
    while (i < *argc)
        argv[kept++] = argv[i++];
    argv[kept] = NULL;
    *argc = kept;
    return 0;
}

int conf_check_rest(const struct conf *c, int argc, char *const *argv, char *err, size_t err_len)
{
    char name[ENV_BYTES];
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i], "="), argv[i]);
        if (strncmp(name, "--", 2) == 0)
            return conf_unknown(c, "command line", name + 2, err, err_len);
        return conf_fail(-AIFS_ECONFIG, err, err_len, "command line: unknown option \"%s\"", name);
    }
    return 0;
}

static void print_values(FILE *f, const struct conf_option *o)
{
    static const char *const types[] = {[CONF_STRING] = "TEXT",
                                        [CONF_U64] = "N",
                                        [CONF_SIZE] = "SIZE",
                                        [CONF_DURATION] = "DURATION",
                                        [CONF_BOOL] = "yes|no"};
    size_t i;

    if (o->type != CONF_ENUM) {
        fprintf(f, "%s", types[o->type]);
        return;
    }
    for (i = 0; o->values[i]; i++)
        fprintf(f, "%s%s", i ? "|" : "", o->values[i]);
}

static void print_facts(FILE *f, const struct conf_option *o)
{
    char low[32], high[32];

    fprintf(f, "        (");
    if (o->required)
        fprintf(f, "required");
    else if (o->default_value)
        fprintf(f, "default \"%s\"", o->default_value);
    else
        fprintf(f, "no default");
    if (o->unit)
        fprintf(f, "; %s", o->unit);
    if (o->max)
        fprintf(f, "; %s to %s", conf_format_number(o->type, o->min, low, sizeof low),
                conf_format_number(o->type, o->max, high, sizeof high));
    else if (o->min)
        fprintf(f, "; at least %s", conf_format_number(o->type, o->min, low, sizeof low));
    fprintf(f, ")\n");
}

void conf_print_help(const struct conf *c, void *file)
{
    size_t i;

    for (i = 0; i < c->count; i++) {
        const struct conf_option *o = c->entries[i].option;

        fprintf(file, "  --%s=", o->name);
        print_values(file, o);
        fprintf(file, "\n        %s\n", o->help);
        print_facts(file, o);
    }
}
