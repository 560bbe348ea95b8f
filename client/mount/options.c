/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments and options. Words of fstab(5) that concern mount(8) or the boot are swallowed, those
 * of the kernel are passed on, ours are the program's configuration (with short names for what
 * people type often), and anything else is an error that names the option and suggests the nearest
 * one (ignored with -s).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/mount/mount.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/mem.h"

static const char *const channel_values[] = {"auto", "fuse", "libfuse", "io_uring",
                                             NULL}; /* channel_kind */

const struct conf_option mount_conf_options[] = {
    {.name = "mds",
     .type = CONF_STRING,
     .unit = "host:port,...",
     .help = "Metadata servers, for sources of the form aifs://name/."},
    {.name = "memory_limit",
     .type = CONF_SIZE,
     .unit = "bytes",
     .default_value = "1Gi",
     .min = 32 * MIB,
     .help = "Memory for cached data, dirty data and metadata together."},
    {.name = "attr_timeout",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "1h",
     .max = 3600 * NS_PER_S,
     .help = "How long the kernel believes attributes under a lease, at most."},
    {.name = "entry_timeout",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "1h",
     .max = 3600 * NS_PER_S,
     .help = "How long the kernel believes names under a lease, at most."},
    {.name = "negative_timeout",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "1h",
     .max = 3600 * NS_PER_S,
     .help = "How long the kernel believes under a lease that a name does not exist, at most."},
    {.name = "soft",
     .type = CONF_BOOL,
     .default_value = "no",
     .help = "Fail with ETIMEDOUT after timeo instead of waiting for servers for ever."},
    {.name = "relatime",
     .type = CONF_BOOL,
     .default_value = "no",
     .help = "Reading sets the time of last access if that is not after the last change, or a day "
             "old."},
    {.name = "timeo",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "30s",
     .min = 100 * NS_PER_MS,
     .max = 24 * 3600 * NS_PER_S,
     .help = "With soft: age at which a request fails."},
    {.name = "remove_ahead",
     .type = CONF_BOOL,
     .default_value = "yes",
     .help = "Answer removals, and renames in one directory, before the server has them, where "
             "nobody else can tell."},
    {.name = "create_ahead",
     .type = CONF_BOOL,
     .default_value = "yes",
     .help = "Answer creations before the server has them, where nobody else can tell."},
    {.name = "hung_log",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "30s",
     .min = 100 * NS_PER_MS,
     .max = 24 * 3600 * NS_PER_S,
     .help = "Age at which a waiting request is logged with what it waits for."},
    {.name = "job",
     .type = CONF_STRING,
     .help = "Job id sent with every request; default: SLURM_JOB_ID of the environment."},
    {.name = "read_ahead",
     .type = CONF_SIZE,
     .unit = "bytes",
     .default_value = "0",
     .max = GIB,
     .help = "Bound of read-ahead per open file; 0: from stripes and memory."},
    {.name = "kernel_read_ahead",
     .type = CONF_SIZE,
     .unit = "bytes",
     .default_value = "1Mi",
     .max = 64 * MIB,
     .help = "Read-ahead of the kernel on this mount; 0: the kernel's default."},
    {.name = "rails",
     .type = CONF_U64,
     .default_value = "4",
     .min = 1,
     .max = NET_RAILS_MAX,
     .help = "How many addresses of a storage server are used at once, where it has several."},
    {.name = "channel",
     .type = CONF_ENUM,
     .default_value = "auto",
     .values = channel_values,
     .help = "How to speak to the kernel: by ourselves (fuse, io_uring: root only) or through "
             "libfuse."},
    {.name = "mount_timeout",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "30s",
     .min = 100 * NS_PER_MS,
     .max = 24 * 3600 * NS_PER_S,
     .help = "How long mounting waits for the servers."},
    {.name = "retry",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "0",
     .max = 7 * 24 * 3600 * NS_PER_S,
     .help = "Mounting waits at least so long; for unattended boot."},
    {.name = "umount_timeout",
     .type = CONF_DURATION,
     .unit = "time",
     .default_value = "120s",
     .max = 24 * 3600 * NS_PER_S,
     .help = "How long the daemon writes back after unmounting before it gives up and says so."},
    {.name = NULL}};

static const char *const swallowed[] = {"auto",
                                        "noauto",
                                        "nofail",
                                        "user",
                                        "users",
                                        "nouser",
                                        "owner",
                                        "group",
                                        "defaults",
                                        "_netdev",
                                        "loud",
                                        "silent",
                                        "mand",
                                        "nomand",
                                        "lazytime",
                                        "nolazytime",
                                        "nostrictatime",
                                        "diratime",
                                        "iversion",
                                        "noiversion",
                                        "allow_other",
                                        "default_permissions",
                                        "fd",
                                        "rootmode",
                                        "user_id",
                                        "group_id",
                                        "max_read"};

static const char *const kernel_flags[] = {"suid",   "nosuid", "dev",   "nodev",  "exec",
                                           "noexec", "sync",   "async", "dirsync"};

static const char *const kernel_values[] = {"context", "fscontext", "defcontext", "rootcontext"};

/* What people type, and the option it is. */
static const struct {
    const char *alias, *option;
} aliases[] = {
    {"keyfile", "key_file"},  {"net", "net.transport"},       {"log", "log.file"},
    {"logfile", "log.file"},  {"loglevel", "log.level"},      {"log_level", "log.level"},
    {"log_file", "log.file"}, {"metrics", "metrics.address"}, {"cache_size", "memory_limit"}};

static bool is_in(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

static const char *real_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcmp(name, aliases[i].alias) == 0)
            return aliases[i].option;
    }
    return name;
}

static bool in_table(const char *name, const struct conf_option *table)
{
    for (; table->name; table++) {
        if (strcmp(table->name, name) == 0)
            return true;
    }
    return false;
}

static bool is_option(const char *name)
{
    return in_table(name, mount_conf_options) || in_table(name, conf_common_options);
}

static int unknown_option(const char *name, char *err, size_t err_len)
{
    const char *words[128], *near;
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        words[n++] = aliases[i].alias;
    for (size_t i = 0; i < ARRAY_LEN(kernel_flags); i++)
        words[n++] = kernel_flags[i];
    for (size_t i = 0; mount_conf_options[i].name && n < ARRAY_LEN(words); i++)
        words[n++] = mount_conf_options[i].name;
    for (size_t i = 0; conf_common_options[i].name && n < ARRAY_LEN(words); i++)
        words[n++] = conf_common_options[i].name;
    near = text_nearest(name, words, n);
    snprintf(err, err_len, "unknown mount option \"%s\"%s%s%s", name,
             near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return MOUNT_USAGE;
}

/* ---- one option ---- */

static void flag_add(struct mount_request *m, const char *text)
{
    strbuf_printf(&m->flags, "%s%s", m->flags.len ? "," : "", text);
}

/* Times of last access are kept as with relatime, or not at all. */
static bool take_atime(struct mount_request *m, const char *name)
{
    static const char *const on[] = {"relatime", "atime", "strictatime"};
    static const char *const off[] = {"noatime", "norelatime"};
    bool sets = is_in(name, on, ARRAY_LEN(on));
    char err[64];

    if (strcmp(name, "nodiratime") == 0)
        m->no_dir_time = true;
    else if (!sets && !is_in(name, off, ARRAY_LEN(off)))
        return false;
    else if (conf_set(m->conf, "relatime", sets ? "yes" : "no", "-o", err, sizeof(err)) == 0)
        m->atime_word = sets ? MOUNT_RELATIME : MOUNT_NOATIME;
    return true;
}

/* Words without a value that set something of ours. */
static bool take_word(struct mount_request *m, const char *name)
{
    if (strcmp(name, "ro") == 0 || strcmp(name, "rw") == 0)
        m->read_only = name[1] == 'o';
    else if (strcmp(name, "remount") == 0)
        m->remount = true;
    else if (strcmp(name, "multi") == 0)
        m->multi = true;
    else if (strcmp(name, "nonempty") == 0)
        m->nonempty = true;
    else if (strcmp(name, "recover") == 0 || /* mount(8) keeps the other to itself */
             strcmp(name, "x-aifs.recover") == 0)
        m->recover = true;
    else if (strcmp(name, "bg") == 0 || strcmp(name, "fg") == 0)
        m->background = name[0] == 'b';
    else
        return take_atime(m, name);
    return true;
}

/* They say it all by themselves. */
static bool is_word(const char *name)
{
    static const char *const words[] = {
        "ro", "rw",    "remount", "multi",       "nonempty",   "recover",    "bg",
        "fg", "atime", "noatime", "strictatime", "norelatime", "nodiratime", "hard"};

    return is_in(name, words, ARRAY_LEN(words)) ||
           is_in(name, kernel_flags, ARRAY_LEN(kernel_flags));
}

static int take_ours(struct mount_request *m, const char *given, const char *value, char *err,
                     size_t err_len)
{
    const char *name = real_name(given);
    char why[400];

    if (value && is_word(given) && !m->sloppy) {
        snprintf(err, err_len, "mount option \"%s\" takes no value: it is not \"%s=%.100s\"", given,
                 given, value);
        return MOUNT_USAGE;
    }
    if (strcmp(name, "hard") == 0 && !value) {
        name = "soft";
        value = "no";
    }
    if (!is_option(name))
        return m->sloppy ? MOUNT_OK : unknown_option(given, err, err_len);
    strbuf_printf(&m->unknown, "%s%s%s%s", m->unknown.len ? "," : "", given, value ? "=" : "",
                  value ? value : "");
    if (conf_set(m->conf, name, value ? value : "yes", "-o", why, sizeof(why)) != 0) {
        snprintf(err, err_len, "mount option \"%s\": %s", given, why);
        return MOUNT_USAGE;
    }
    return MOUNT_OK;
}

static int take_option(struct mount_request *m, char *text, char *err, size_t err_len)
{
    char *value = strchr(text, '=');

    if (value)
        *value++ = '\0';
    if (!value && take_word(m, text))
        return MOUNT_OK;
    if (is_in(text, swallowed, ARRAY_LEN(swallowed)) || strncmp(text, "x-", 2) == 0 ||
        strncmp(text, "X-", 2) == 0 || strcmp(text, "comment") == 0 || strcmp(text, "config") == 0)
        return MOUNT_OK; /* config was read before */
    if (!value && is_in(text, kernel_flags, ARRAY_LEN(kernel_flags))) {
        flag_add(m, text);
        return MOUNT_OK;
    }
    if (value && is_in(text, kernel_values, ARRAY_LEN(kernel_values))) {
        strbuf_printf(&m->flags, "%s%s=\"%s\"", m->flags.len ? "," : "", text, value);
        return MOUNT_OK;
    }
    return take_ours(m, text, value, err, err_len);
}

/* Copies the next option to out, without the backslashes; returns what follows, or NULL at the end
 * or when it is too long. */
static const char *next_option(const char *text, char *out, size_t out_len)
{
    size_t n = 0;
    bool quoted = false; /* context="system_u:object_r:x:s0:c1,c2" */

    for (; *text && (*text != ',' || quoted); text++) {
        if (*text == '"') {
            quoted = !quoted;
            continue;
        }
        if (*text == '\\' && text[1])
            text++;
        if (n + 1 >= out_len)
            return NULL;
        out[n++] = *text;
    }
    out[n] = '\0';
    return *text == ',' ? text + 1 : text;
}

int mount_parse_options(struct mount_request *m, const char *text, char *err, size_t err_len)
{
    char option[PATH_MAX + 64];

    while (*text) {
        int rc;

        text = next_option(text, option, sizeof(option));
        if (!text) {
            snprintf(err, err_len, "a mount option is too long");
            return MOUNT_USAGE;
        }
        rc = option[0] ? take_option(m, option, err, err_len) : MOUNT_OK;
        if (rc != MOUNT_OK)
            return rc;
    }
    return MOUNT_OK;
}

/* ---- configuration files ---- */

/* The value of the last config= in the options, or NULL. */
static char *find_config(const char *text)
{
    char option[PATH_MAX + 64], *found = NULL;

    while (text && *text) {
        text = next_option(text, option, sizeof(option));
        if (text && strncmp(option, "config=", 7) == 0) {
            mem_free(found);
            found = mem_strdup(option + 7);
        }
    }
    return found;
}

static int load_file(struct mount_request *m, const char *path, bool must_exist, char *err,
                     size_t err_len)
{
    if (!must_exist && access(path, F_OK) != 0)
        return MOUNT_OK;
    return conf_load_file(m->conf, path, err, err_len) == 0 ? MOUNT_OK : MOUNT_FAILED;
}

static int load_config(struct mount_request *m, const char *options, char *err, size_t err_len)
{
    AUTO_FREE char *config = find_config(options);
    char path[PATH_MAX];
    const char *servers;
    int rc = load_file(m, config ? config : MOUNT_CONFIG_FILE, config != NULL, err, err_len);

    if (rc != MOUNT_OK)
        return rc;
    if (m->source.name[0]) {
        snprintf(path, sizeof(path), "/etc/aifs/%s.conf", m->source.name);
        rc = load_file(m, path, !config, err, err_len);
        if (rc != MOUNT_OK)
            return rc;
    }
    if (conf_load_env(m->conf, err, err_len) != 0)
        return MOUNT_FAILED;
    servers = conf_str(m->conf, "mds");
    if (m->source.n_servers > 0)
        return MOUNT_OK;
    if (!servers) {
        snprintf(err, err_len, "%s names no servers (mds = host:port,...) for %s",
                 config ? config : path, m->source_text);
        return MOUNT_FAILED;
    }
    return mount_parse_servers(servers, strlen(servers), &m->source, err, err_len) == 0
               ? MOUNT_OK
               : MOUNT_FAILED;
}

/* The daemon's working directory is "/", not that of whoever typed a path. */
static int absolute_path(struct mount_request *m, const char *name, char *err, size_t err_len)
{
    const char *value = conf_str(m->conf, name);
    char here[PATH_MAX], path[2 * PATH_MAX];

    if (!value || !value[0] || value[0] == '/')
        return MOUNT_OK;
    if (!getcwd(here, sizeof(here)) ||
        snprintf(path, sizeof(path), "%s/%s", here, value) >= (int)sizeof(path)) {
        snprintf(err, err_len, "%s \"%.200s\": cannot make it absolute", name, value);
        return MOUNT_FAILED;
    }
    return conf_set(m->conf, name, path, "-o", err, err_len) == 0 ? MOUNT_OK : MOUNT_FAILED;
}

/* ---- arguments ---- */

void mount_usage(const struct mount_request *m)
{
    printf("usage: mount.aifs SOURCE DIR [-fnsv] [-o options]\n"
           "       aifs-mount [--foreground] [--debug] SOURCE DIR [-o options]\n"
           "       aifs-mount --umount DIR [-fl]\n\n"
           "SOURCE is host[:port][,host2...]:/[subdir] or aifs://name/subdir (servers in "
           "/etc/aifs/name.conf).\n"
           "Short names: keyfile (key_file), net (net.transport), log (log.file), log_level, "
           "metrics (metrics.address), hard.\n"
           "Words: ro rw bg multi nonempty recover config=FILE, and what mount(8) knows.\n\n"
           "Options, in -o as name=value:\n");
    conf_print_help(m->conf, stdout);
}

/* One argument that begins with '-'. Sets *options for -o. */
static int take_switch(struct mount_request *m, int argc, char **argv, int *i,
                       struct strbuf *options, char *err, size_t err_len)
{
    const char *a = argv[*i];

    if (strcmp(a, "--foreground") == 0) {
        m->foreground = true;
        return MOUNT_OK;
    }
    if (strcmp(a, "--debug") == 0) {
        m->debug = m->foreground = true;
        return MOUNT_OK;
    }
    for (a++; *a; a++) {
        const char *value = NULL;

        if (strchr("oNt", *a)) {
            value = a[1] ? a + 1 : *i + 1 < argc ? argv[++*i] : NULL;
            if (!value) {
                snprintf(err, err_len, "-%c needs a value", *a);
                return MOUNT_USAGE;
            }
            if (*a == 'o')
                strbuf_printf(options, "%s%s", options->len ? "," : "", value);
            return MOUNT_OK;
        }
        switch (*a) {
        case 'f':
            m->fake = true;
            break;
        case 's':
            m->sloppy = true;
            break;
        case 'v':
            m->verbose = true;
            break;
        case 'n':
            break;
        case 'r':
            m->read_only = true;
            break;
        case 'w':
            break;
        default:
            snprintf(err, err_len, "unknown argument \"%s\"; see --help", argv[*i]);
            return MOUNT_USAGE;
        }
    }
    return MOUNT_OK;
}

static int parse_all(struct mount_request *m, int argc, char **argv, struct strbuf *options,
                     char *err, size_t err_len)
{
    const char *places[2] = {NULL, NULL};
    int n = 0, rc = MOUNT_OK;

    for (int i = 1; i < argc && rc == MOUNT_OK; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            rc = take_switch(m, argc, argv, &i, options, err, err_len);
        } else if (n < 2) {
            places[n++] = argv[i];
        } else {
            snprintf(err, err_len, "one argument too many: \"%s\"", argv[i]);
            rc = MOUNT_USAGE;
        }
    }
    if (rc != MOUNT_OK)
        return rc;
    if (n < 2 || strlen(places[1]) >= sizeof(m->dir)) {
        snprintf(err, err_len, "usage: mount.aifs SOURCE DIR [-fnsv] [-o options]; see --help");
        return MOUNT_USAGE;
    }
    m->source_text = places[0];
    snprintf(m->dir, sizeof(m->dir), "%s", places[1]);
    if (mount_parse_source(places[0], &m->source, err, err_len) != 0)
        return MOUNT_USAGE;
    return MOUNT_OK;
}

int mount_parse(struct mount_request *m, int argc, char **argv, char *err, size_t err_len)
{
    static const struct conf_option *const tables[] = {mount_conf_options, conf_common_options,
                                                       NULL};
    struct strbuf options;
    int rc;

    memset(m, 0, sizeof(*m));
    strbuf_init(&m->flags);
    strbuf_init(&m->unknown);
    strbuf_init(&options);
    if (conf_create(tables, &m->conf) != 0) {
        snprintf(err, err_len, "out of memory");
        return MOUNT_SYSTEM;
    }
    rc = parse_all(m, argc, argv, &options, err, err_len);
    if (rc == MOUNT_OK)
        rc = mount_parse_options(m, options.len ? options.data : "", err, err_len);
    if (rc == MOUNT_OK && !m->remount)
        rc = load_config(m, options.len ? options.data : "", err, err_len);
    if (rc == MOUNT_OK)
        rc = absolute_path(m, "key_file", err, err_len);
    if (rc == MOUNT_OK)
        rc = absolute_path(m, "log.file", err, err_len);
    if (rc == MOUNT_OK && conf_freeze(m->conf, err, err_len) != 0)
        rc = MOUNT_FAILED;
    if (rc == MOUNT_OK && (strbuf_failed(&options) || strbuf_failed(&m->flags))) {
        snprintf(err, err_len, "out of memory");
        rc = MOUNT_SYSTEM;
    }
    strbuf_fini(&options);
    return rc;
}

void mount_request_fini(struct mount_request *m)
{
    conf_destroy(m->conf);
    strbuf_fini(&m->flags);
    strbuf_fini(&m->unknown);
}
