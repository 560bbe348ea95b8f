/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of aifs-admin: global options, then the row of the command table that noun and verb
 * name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/standard.h"
#include "common/base/text.h"
#include "tools/admin/admin.h"

/* The option that arg names, its value if it is part of arg; NULL if there is none. */
static const struct admin_option *find_option(const struct admin_option *options, unsigned n,
                                              const char *arg, const char **inline_value)
{
    *inline_value = NULL;
    for (unsigned i = 0; i < n; i++) {
        size_t len = strlen(options[i].name);

        if (arg[1] != '-') {
            if (options[i].letter && arg[1] == options[i].letter) {
                *inline_value = arg[2] ? arg + 2 : NULL;
                return &options[i];
            }
        } else if (!strncmp(arg + 2, options[i].name, len) &&
                   (arg[2 + len] == '\0' || arg[2 + len] == '=')) {
            *inline_value = arg[2 + len] ? arg + 2 + len + 1 : NULL;
            return &options[i];
        }
    }
    return NULL;
}

int admin_options(const struct admin_option *options, unsigned n, int argc, char **argv)
{
    int left = 0;

    for (int i = 0; i < argc; i++) {
        const struct admin_option *o;
        const char *value;

        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[left++] = argv[i];
            continue;
        }
        if (!strcmp(argv[i], "--")) {
            while (++i < argc)
                argv[left++] = argv[i];
            break;
        }
        o = find_option(options, n, argv[i], &value);
        if (!o) {
            admin_error("unknown option %s; see aifs-admin --help", argv[i]);
            return -1;
        }
        if (o->flag) {
            if (value) {
                admin_error("option %s takes no value", argv[i]);
                return -1;
            }
            *o->flag = true;
            continue;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!value) {
            admin_error("option --%s needs a value", o->name);
            return -1;
        }
        *o->value = value;
    }
    return left;
}

static void print_help(const char *noun)
{
    printf("usage: aifs-admin [options] <noun> <verb> [arguments]\n\n");
    for (unsigned i = 0; i < admin_n_commands; i++) {
        const struct admin_command *c = &admin_commands[i];
        char line[160];

        if (noun && strcmp(noun, c->noun))
            continue;
        snprintf(line, sizeof line, "%s%s%s %s", c->noun, c->verb ? " " : "",
                 c->verb ? c->verb : "", c->args);
        printf("  %-46s %s\n", line, c->help);
    }
    printf("\noptions, anywhere on the line:\n"
           "  --json             one JSON document instead of text\n"
           "  --config FILE      how to reach the cluster (default: $AIFS_CONFIG, "
           "/etc/aifs/admin.conf, or the one\n"
           "                     cluster known on this machine)\n"
           "  --mds HOST:PORT    the metadata server ($AIFS_MDS)\n"
           "  --key-file FILE    the key to prove who we are ($AIFS_KEY_FILE)\n"
           "  --timeout TIME     longest wait for a server, 5s unless told\n"
           "  --yes              do what would otherwise only be shown\n"
           "  --no-header, --raw (bytes and counts as plain numbers), -q, -v\n"
           "\nexit status: 0 done, 1 failed, 2 usage, 3 partial (a server did not answer), 4 not "
           "found, 5 conflict,\n"
           "             6 permission, 7 unreachable, 8 needs --yes\n");
}

static bool take_flag(struct admin *a, const char *arg)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--json", &a->json},
                 {"--yes", &a->yes},
                 {"--no-header", &a->no_header},
                 {"--raw", &a->raw},
                 {"-q", &a->quiet}};

    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (!strcmp(arg, flags[i].name)) {
            *flags[i].flag = true;
            return true;
        }
    if (!strcmp(arg, "-v")) {
        log_set_level(LOG_LEVEL_DEBUG);
        return true;
    }
    return false;
}

/* An empty variable is one that is not set, as in "AIFS_CONFIG= aifs-admin ...". */
static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Takes the global options out of argv, wherever they stand before a "--". */
static int global_options(struct admin *a, int argc, char **argv)
{
    const char *timeout = environment("AIFS_TIMEOUT");
    const struct {
        const char *name;
        const char **value;
    } values[] = {{"--config", &a->config},
                  {"--mds", &a->mds},
                  {"--key-file", &a->key_file},
                  {"--timeout", &timeout}};
    int left = 0, i;

    for (i = 0; i < argc && strcmp(argv[i], "--"); i++) {
        size_t k, len = 0;

        for (k = 0; k < ARRAY_LEN(values); k++) {
            len = strlen(values[k].name);
            if (!strncmp(argv[i], values[k].name, len) &&
                (argv[i][len] == '\0' || argv[i][len] == '='))
                break;
        }
        if (k < ARRAY_LEN(values)) {
            if (argv[i][len] == '=')
                *values[k].value = argv[i] + len + 1;
            else if (i + 1 < argc)
                *values[k].value = argv[++i];
            else {
                admin_error("option %s needs a value", values[k].name);
                return -1;
            }
        } else if (!take_flag(a, argv[i])) {
            argv[left++] = argv[i];
        }
    }
    for (; i < argc; i++)
        argv[left++] = argv[i];
    a->timeout_ns = 5 * NS_PER_S;
    a->timeout_told = timeout != NULL;
    if (timeout && (text_parse_duration(timeout, &a->timeout_ns) < 0 || a->timeout_ns == 0)) {
        admin_error("--timeout \"%s\" is not a time to wait (5s, 500ms)", timeout);
        return -1;
    }
    return left;
}

static bool is_noun(const char *text)
{
    for (unsigned i = 0; i < admin_n_commands; i++)
        if (!strcmp(admin_commands[i].noun, text))
            return true;
    return false;
}

static int unknown(const char *noun, const char *verb)
{
    const char *names[128];
    const char *nearest;
    size_t n = 0;
    bool known = is_noun(noun);

    for (unsigned i = 0; i < admin_n_commands && n < ARRAY_LEN(names); i++) {
        if (!known)
            names[n++] = admin_commands[i].noun;
        else if (!strcmp(admin_commands[i].noun, noun) && admin_commands[i].verb)
            names[n++] = admin_commands[i].verb;
    }
    admin_say_of(noun, known ? verb : NULL);
    nearest = text_nearest(known ? (verb ? verb : "") : noun, names, n);
    if (known && !verb)
        return admin_usage(noun, NULL, "%s what?", noun);
    if (noun[0] == '-') {
        admin_error("unknown option %s; see aifs-admin --help", noun);
        return ADMIN_USAGE;
    }
    if (known && !nearest)
        return admin_usage(noun, NULL, "there is no \"%s %s\"", noun, verb);
    admin_error("there is no \"%s%s%s\"; %s%s%ssee aifs-admin --help", noun, known ? " " : "",
                known ? verb : "", nearest ? "did you mean \"" : "", nearest ? nearest : "",
                nearest ? "\"? " : "");
    return ADMIN_USAGE;
}

static int run(struct admin *a, const struct admin_command *c, int argc, char **argv)
{
    int rc;

    admin_say_of(c->noun, c->verb);
    if (!strstr(c->args, "--") && !strstr(c->args, "[-")) /* else it looks for its own */
        argc = admin_options(NULL, 0, argc, argv);
    rc = argc < 0 ? ADMIN_USAGE : c->run(a, argc, argv);
    admin_disconnect(a);
    return rc;
}

static int choose(struct admin *a, int n, char **argv)
{
    if (n > 0 && !strcmp(argv[0], "--version")) {
        printf("aifs-admin " AIFS_VERSION "\n");
        return ADMIN_OK;
    }
    if (n > 1 && !strcmp(argv[0], "help") && !is_noun(argv[1]))
        return unknown(argv[1], NULL);
    if (n == 0 || !strcmp(argv[0], "help") || !strcmp(argv[0], "--help") ||
        !strcmp(argv[0], "-h")) {
        print_help(n > 1 ? argv[1] : NULL);
        return n == 0 ? ADMIN_USAGE : ADMIN_OK;
    }
    if (n > 1 && (!strcmp(argv[n - 1], "--help") || !strcmp(argv[n - 1], "-h"))) {
        print_help(argv[0]);
        return ADMIN_OK;
    }
    for (unsigned i = 0; i < admin_n_commands; i++) {
        const struct admin_command *c = &admin_commands[i];
        int skip = c->verb ? 2 : 1;

        if (n >= skip && !strcmp(argv[0], c->noun) && (!c->verb || !strcmp(argv[1], c->verb)))
            return run(a, c, n - skip, argv + skip);
    }
    return unknown(argv[0], n > 1 ? argv[1] : NULL);
}

/* The exit status, unless what was to be told could not be. */
static int end_output(int rc)
{
    int err = standard_flush();

    if (err == 0 || rc != ADMIN_OK)
        return rc;
    admin_error("cannot write the result: %s", err_text(err));
    return ADMIN_FAILED;
}

int main(int argc, char **argv)
{
    struct admin a = {.config = environment("AIFS_CONFIG"),
                      .mds = environment("AIFS_MDS"),
                      .key_file = environment("AIFS_KEY_FILE")};
    int n, rc;

    standard_open();
    log_set_program("aifs-admin");
    log_set_level(LOG_LEVEL_ERROR);
    argv++;
    for (int i = 0; i < argc - 1 && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--json"))
            admin_say_json(); /* also what is wrong with another option */
    n = global_options(&a, argc - 1, argv);
    if (a.quiet)
        admin_say_little();
    rc = n < 0 ? ADMIN_USAGE : choose(&a, n, argv);
    return admin_end(end_output(rc));
}
