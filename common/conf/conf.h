/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: one static table of options per program, from which the file parser, the
 * environment, the command line, --help and the man page all come.
 *
 * Precedence: default < file < environment (AIFS_<NAME IN CAPITALS, '.' and '-' as '_'>) < command
 * line (--name=value or --name value; --name alone is yes for a boolean), in whatever order they
 * are loaded; of two equals the later wins. File syntax: "name = value" lines, '#' comments (at the
 * start or behind white space), "quotes" around a value where it needs them, '[section]' prefixes
 * "section."; *.conf in FILE.d/ (for mds.conf: mds.conf.d/) are read after it in name order. An
 * unknown name, a name given twice in one file, a bad value or a value out of range is an error
 * that names file and line and suggests the nearest option; nothing is ever ignored. (In the
 * environment other AIFS_* variables may belong to other programs: only one that is a single slip
 * away from an option is refused.) After conf_freeze() values are read-only and may be read by any
 * thread.
 */
#ifndef AIFS_COMMON_CONF_CONF_H
#define AIFS_COMMON_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

enum conf_type { CONF_STRING, CONF_U64, CONF_SIZE, CONF_DURATION, CONF_BOOL, CONF_ENUM };

struct conf_option {
    const char *name; /* "net.ping_interval" */
    enum conf_type type;
    const char *unit;          /* for --help: "bytes", "ns", NULL */
    const char *default_value; /* text form; NULL = no default, must be given if required */
    uint64_t min, max;         /* for numbers; max 0 = no bound */
    const char *const *values; /* for CONF_ENUM, NULL-terminated */
    bool required;
    const char *help;
};

struct conf; /* owns all strings it returns */

/* tables: NULL-terminated array of option arrays, each ended by a NULL name (a program adds its own
 * to those of common/). Borrowed for ever. */
int conf_create(const struct conf_option *const *tables, struct conf **ret_conf) MUST_USE;
void conf_destroy(struct conf *c);
/* Errors are text in err (never truncated silently: bounded at err_len), and -AIFS_ECONFIG; -errno
 * when the file cannot be read. */
int conf_load_file(struct conf *c, const char *path, char *err, size_t err_len) MUST_USE;
int conf_load_env(struct conf *c, char *err, size_t err_len) MUST_USE;
int conf_set(struct conf *c, const char *name, const char *value, const char *source, char *err,
             size_t err_len) MUST_USE;
/* Consumes known --options of argv; leaves the rest, in order, in argv[0..*argc). --help and
 * --version are left for the caller. */
int conf_load_args(struct conf *c, int *argc, char **argv, char *err, size_t err_len) MUST_USE;
/* For a caller without options of its own: the first word of argv[1..argc) that looks like an
 * option is an error with a suggestion. */
int conf_check_rest(const struct conf *c, int argc, char *const *argv, char *err,
                    size_t err_len) MUST_USE;
/* For a daemon, all of it: the file of --config, or the default one if that is there, environment,
 * command line, and nothing left over; then conf_freeze(). argv is permuted. err always says why.
 */
int conf_load_daemon(struct conf *c, const char *default_path, int argc, char **argv, char *err,
                     size_t err_len) MUST_USE;
/* Is this word ("--help") on the command line? */
bool conf_is_asked(int argc, char *const *argv, const char *option);
int conf_freeze(struct conf *c, char *err, size_t err_len) MUST_USE; /* checks "required" */

const char *conf_str(
    const struct conf *c,
    const char *name); /* NULL if unset. Asking for a name not in a table is a programmer's error */
uint64_t conf_u64(const struct conf *c,
                  const char *name); /* also sizes (bytes) and durations (ns) */
bool conf_bool(const struct conf *c, const char *name);
int conf_enum(const struct conf *c, const char *name); /* index into values */
const char *
conf_source(const struct conf *c,
            const char *name); /* "default", "environment NAME", "command line", "FILE:LINE" */
bool conf_is_set(const struct conf *c, const char *name); /* given anywhere, not only by default */
void conf_print_help(const struct conf *c, void *file);   /* FILE * */

/* Options every daemon shares (logging, reactor, net, key file, metrics address). */
extern const struct conf_option conf_common_options[];

#endif
