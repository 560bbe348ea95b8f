// SPDX-License-Identifier: Apache-2.0
/*
 * The state of a configuration: one entry per option, from conf_create() (defaults) through any
 * number of sources in any order, each with its rank, to conf_freeze(). What comes from outside
 * fails with a sentence that says where; a broken option table, or asking for a name that is in no
 * table, is a programmer's error and asserted.
 */
#include "common/conf/conf_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/text.h"

int conf_fail(int rc, char *err, size_t err_len, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(err, err_len, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n >= err_len && err_len > 3)
        strcpy(err + err_len - 4, "...");
    return rc;
}

static bool same_name(const char *option, const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < len && option[i]; i++) {
        if (option[i] != (name[i] == '-' ? '_' : name[i]))
            return false;
    }
    return i == len && !option[i];
}

struct conf_entry *conf_find(const struct conf *c, const char *name, size_t name_len)
{
    size_t i;

    for (i = 0; i < c->count; i++) {
        if (same_name(c->entries[i].option->name, name, name_len))
            return &c->entries[i];
    }
    return NULL;
}

int conf_unknown(const struct conf *c, const char *where, const char *name, char *err,
                 size_t err_len)
{
    const char *near = text_nearest(name, c->names, c->count);

    if (near)
        return conf_fail(-AIFS_ECONFIG, err, err_len,
                         "%s: unknown option \"%s\"; did you mean \"%s\"?", where, name, near);
    return conf_fail(-AIFS_ECONFIG, err, err_len, "%s: unknown option \"%s\"", where, name);
}

int conf_entry_set(struct conf_entry *e, const char *value, enum conf_rank rank, const char *where,
                   char *err, size_t err_len)
{
    char *copy = NULL, *source = NULL;
    uint64_t number;
    int rc;

    rc = conf_parse_value(e->option, value, where, &number, err, err_len);
    if (rc || rank < e->rank)
        return rc;
    copy = mem_strdup(value);
    source = mem_strdup(where);
    if (!copy || !source) {
        mem_free(copy);
        mem_free(source);
        return conf_fail(-ENOMEM, err, err_len, "%s: out of memory", where);
    }
    mem_free(e->value);
    mem_free(e->source);
    e->value = copy;
    e->source = source;
    e->number = number;
    e->rank = rank;
    return 0;
}

static int add_entry(struct conf *c, const struct conf_option *o)
{
    struct conf_entry *e = &c->entries[c->count];
    char err[256] = "";
    int rc;

    ASSERT(!conf_find(c, o->name, strlen(o->name)));
    ASSERT((o->type == CONF_ENUM) == (o->values != NULL));
    e->option = o;
    c->names[c->count++] = o->name;
    if (!o->default_value)
        return 0;
    rc = conf_entry_set(e, o->default_value, RANK_DEFAULT, "default", err, sizeof err);
    ASSERT(rc != -AIFS_ECONFIG);
    return rc;
}

int conf_create(const struct conf_option *const *tables, struct conf **ret_conf)
{
    const struct conf_option *const *t;
    const struct conf_option *o;
    struct conf *c = mem_zalloc(sizeof *c);
    size_t n = 0;
    int rc = 0;

    if (!c)
        return -ENOMEM;
    for (t = tables; *t; t++) {
        for (o = *t; o->name; o++)
            n++;
    }
    c->entries = mem_array(n, sizeof *c->entries);
    c->names = mem_array(n, sizeof *c->names);
    if (!c->entries || !c->names)
        rc = -ENOMEM;
    for (t = tables; *t && !rc; t++) {
        for (o = *t; o->name && !rc; o++)
            rc = add_entry(c, o);
    }
    if (rc) {
        conf_destroy(c);
        return rc;
    }
    *ret_conf = c;
    return 0;
}

void conf_destroy(struct conf *c)
{
    size_t i;

    if (!c)
        return;
    for (i = 0; i < c->count; i++) {
        mem_free(c->entries[i].value);
        mem_free(c->entries[i].source);
    }
    mem_free(c->entries);
    mem_free(c->names);
    mem_free(c);
}

int conf_set(struct conf *c, const char *name, const char *value, const char *source, char *err,
             size_t err_len)
{
    struct conf_entry *e = conf_find(c, name, strlen(name));

    ASSERT(!c->frozen);
    if (!e)
        return conf_unknown(c, source, name, err, err_len);
    return conf_entry_set(e, value, RANK_COMMAND, source, err, err_len);
}

int conf_freeze(struct conf *c, char *err, size_t err_len)
{
    size_t i;

    for (i = 0; i < c->count; i++) {
        const struct conf_entry *e = &c->entries[i];

        if (e->option->required && (!e->value || !*e->value))
            return conf_fail(-AIFS_ECONFIG, err, err_len, "option \"%s\" is missing: %s",
                             e->option->name, e->option->help);
    }
    c->frozen = true;
    return 0;
}

static const struct conf_entry *get(const struct conf *c, const char *name)
{
    const struct conf_entry *e = conf_find(c, name, strlen(name));

    ASSERT(e);
    return e;
}

const char *conf_str(const struct conf *c, const char *name)
{
    return get(c, name)->value;
}

uint64_t conf_u64(const struct conf *c, const char *name)
{
    const struct conf_entry *e = get(c, name);

    ASSERT(e->option->type == CONF_U64 || e->option->type == CONF_SIZE ||
           e->option->type == CONF_DURATION);
    return e->number;
}

bool conf_bool(const struct conf *c, const char *name)
{
    const struct conf_entry *e = get(c, name);

    ASSERT(e->option->type == CONF_BOOL);
    return e->number != 0;
}

int conf_enum(const struct conf *c, const char *name)
{
    const struct conf_entry *e = get(c, name);

    ASSERT(e->option->type == CONF_ENUM);
    return (int)e->number;
}

const char *conf_source(const struct conf *c, const char *name)
{
    const struct conf_entry *e = get(c, name);

    return e->source ? e->source : "default";
}

bool conf_is_set(const struct conf *c, const char *name)
{
    return get(c, name)->rank > RANK_DEFAULT;
}
