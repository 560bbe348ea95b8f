// SPDX-License-Identifier: Apache-2.0
/*
 * The file parser: "name = value" lines, comments, sections; then the snippets in FILE.d/ by name.
 * A file is read line by line, bounded in length and number of lines. The first thing wrong ends it
 * with "FILE:LINE: ..."; what was set before stays set, the caller gives up.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/conf/conf_int.h"

#define LINE_BYTES    4096
#define LINES_MAX     100000u
#define SECTION_BYTES 64
#define WHERE_BYTES   512
#define SNIPPETS_MAX  1024

struct parser {
    struct conf *conf;
    const char *path;
    unsigned line;
    char where[WHERE_BYTES]; /* "PATH:LINE" */
    char section[SECTION_BYTES];
    char *err;
    size_t err_len;
};

static int fail_at(const struct parser *p, const char *what)
{
    return conf_fail(-AIFS_ECONFIG, p->err, p->err_len, "%s: %s", p->where, what);
}

static char *trim(char *s)
{
    size_t n;

    while (isspace((unsigned char)*s))
        s++;
    for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = '\0';
    return s;
}

/* A '#' begins a comment at the start of a line or behind white space, outside quotes. */
static void cut_comment(char *s)
{
    bool quoted = false;
    char *p;

    for (p = s; *p; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '#' && !quoted && (p == s || isspace((unsigned char)p[-1]))) {
            *p = '\0';
            return;
        }
    }
}

static int parse_section(struct parser *p, char *s)
{
    size_t n = strlen(s);
    char *name;

    if (s[n - 1] != ']')
        return fail_at(p, "a section is written [name]");
    s[n - 1] = '\0';
    name = trim(s + 1);
    if (strlen(name) >= sizeof p->section)
        return fail_at(p, "section name too long");
    strcpy(p->section, name);
    return 0;
}

/* Takes a pair of quotes around the value off. */
static int unquote(struct parser *p, char **value)
{
    char *v = *value;
    size_t n = strlen(v);

    if (*v != '"')
        return 0;
    if (n < 2 || strchr(v + 1, '"') != v + n - 1)
        return fail_at(p, "quotes do not match");
    v[n - 1] = '\0';
    *value = v + 1;
    return 0;
}

static int assign(struct parser *p, const char *name, const char *value)
{
    struct conf_entry *e;
    char full[LINE_BYTES + SECTION_BYTES];
    int rc;

    snprintf(full, sizeof full, "%s%s%s", p->section, *p->section ? "." : "", name);
    e = conf_find(p->conf, full, strlen(full));
    if (!e)
        return conf_unknown(p->conf, p->where, full, p->err, p->err_len);
    if (e->file_serial == p->conf->file_serial)
        return conf_fail(-AIFS_ECONFIG, p->err, p->err_len, "%s: %s is already set in line %u",
                         p->where, full, e->file_line);
    rc = conf_entry_set(e, value, RANK_FILE, p->where, p->err, p->err_len);
    if (!rc) {
        e->file_serial = p->conf->file_serial;
        e->file_line = p->line;
    }
    return rc;
}

static int parse_line(struct parser *p, char *line)
{
    char *name, *value;
    int rc;

    cut_comment(line);
    name = trim(line);
    if (!*name)
        return 0;
    if (*name == '[')
        return parse_section(p, name);
    value = strchr(name, '=');
    if (!value)
        return fail_at(p, "expected \"name = value\"");
    *value++ = '\0';
    name = trim(name);
    value = trim(value);
    if (!*name)
        return fail_at(p, "expected a name before \"=\"");
    rc = unquote(p, &value);
    return rc ? rc : assign(p, name, value);
}

static int parse_stream(struct parser *p, FILE *f)
{
    char line[LINE_BYTES];
    size_t len;
    int rc = 0;

    while (!rc) {
        memset(line, 'x',
               sizeof line); /* so that the last NUL is the one fgets() put behind the line */
        if (!fgets(line, sizeof line, f))
            break;
        len = (size_t)((char *)memrchr(line, '\0', sizeof line) - line);
        snprintf(p->where, sizeof p->where, "%s:%u", p->path, ++p->line);
        if (strlen(line) != len)
            rc = fail_at(p, "not a text file: it contains a NUL byte");
        else if (len == sizeof line - 1 && line[len - 1] != '\n')
            rc = fail_at(p, "line too long");
        else if (p->line > LINES_MAX)
            rc = fail_at(p, "too many lines");
        else
            rc = parse_line(p, line);
    }
    if (!rc && ferror(f)) {
        rc = -errno;
        conf_fail(rc, p->err, p->err_len, "%s: %s", p->path, err_text(rc));
    }
    return rc;
}

static int load_one(struct conf *c, const char *path, char *err, size_t err_len)
{
    struct parser p = {.conf = c, .path = path, .err = err, .err_len = err_len};
    FILE *f = fopen(path, "re");
    int rc;

    if (!f) {
        rc = -errno;
        return conf_fail(rc, err, err_len, "%s: %s", path, err_text(rc));
    }
    c->file_serial++;
    rc = parse_stream(&p, f);
    fclose(f);
    return rc;
}

static int is_snippet(const struct dirent *d)
{
    size_t n = strlen(d->d_name);

    return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

/* By bytes, not by the locale: the order must not depend on who starts the daemon. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_snippets(struct conf *c, const char *path, char *err, size_t err_len)
{
    char *dir = mem_printf("%s.d", path);
    struct dirent **found = NULL;
    int i, n, rc = 0;

    if (!dir)
        return conf_fail(-ENOMEM, err, err_len, "%s: out of memory", path);
    n = scandir(dir, &found, is_snippet, by_name);
    if (n < 0 && errno != ENOENT && errno != ENOTDIR) {
        rc = -errno;
        conf_fail(rc, err, err_len, "%s: %s", dir, err_text(rc));
    }
    if (n > SNIPPETS_MAX)
        rc = conf_fail(-AIFS_ECONFIG, err, err_len, "%s: more than %d files", dir, SNIPPETS_MAX);
    for (i = 0; i < n; i++) {
        char *file = rc ? NULL : mem_printf("%s/%s", dir, found[i]->d_name);

        if (!rc)
            rc = file ? load_one(c, file, err, err_len)
                      : conf_fail(-ENOMEM, err, err_len, "%s: out of memory", dir);
        mem_free(file);
        free(found[i]);
    }
    free(found);
    mem_free(dir);
    return rc;
}

int conf_load_file(struct conf *c, const char *path, char *err, size_t err_len)
{
    int rc = load_one(c, path, err, err_len);

    return rc ? rc : load_snippets(c, path, err, err_len);
}
