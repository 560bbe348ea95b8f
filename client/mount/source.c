/* SPDX-License-Identifier: Apache-2.0 */
/* The first argument: what to mount. Fails with a sentence about the part that is wrong. */
#include <stdio.h>
#include <string.h>

#include "client/mount/mount.h"
#include "common/base/err.h"

#define URL "aifs://"

static bool host_ok(const char *s, size_t len)
{
    size_t colons = 0, digits = 0;

    if (len == 0)
        return false;
    if (s[0] == '[') { /* [v6] or [v6]:port */
        const char *end = memchr(s, ']', len);

        if (!end || end == s + 1)
            return false;
        len -= (size_t)(end + 1 - s);
        s = end + 1;
        return len == 0 || (s[0] == ':' && len > 1 && strspn(s + 1, "0123456789") >= len - 1);
    }
    for (size_t i = 0; i < len; i++) {
        bool digit = s[i] >= '0' && s[i] <= '9';

        if (s[i] == ':' && i > 0)
            colons++;
        else if (colons && digit)
            digits++;
        else if (colons ||
                 !(digit || (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                   s[i] == '.' || s[i] == '-' || s[i] == '_'))
            return false;
    }
    return colons == 0 || (colons == 1 && digits > 0);
}

int mount_parse_servers(const char *list, size_t len, struct mount_source *source, char *err,
                        size_t err_len)
{
    const char *end = list + len;

    source->n_servers = 0;
    while (list <= end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t n = (size_t)((comma ? comma : end) - list);

        if (!host_ok(list, n) || n >= sizeof(source->servers[0])) {
            snprintf(err, err_len, "\"%.*s\" is not a server: host, host:port or [address]:port",
                     (int)MIN(n, 100u), list);
            return -EINVAL;
        }
        if (source->n_servers == CORE_MDS_MAX) {
            snprintf(err, err_len, "more than %u servers", CORE_MDS_MAX);
            return -EINVAL;
        }
        memcpy(source->servers[source->n_servers], list, n);
        source->servers[source->n_servers++][n] = '\0';
        list += n + 1;
    }
    return 0;
}

/* The sub-directory, always with one slash in front. ".." is refused: a mount must not climb. */
static int parse_subdir(const char *text, struct mount_source *source, char *err, size_t err_len)
{
    size_t used = 0;

    while (*text) {
        size_t n;

        text += strspn(text, "/");
        n = strcspn(text, "/");
        if (n == 2 && memcmp(text, "..", 2) == 0) {
            snprintf(err, err_len, "the source's path must not contain \"..\"");
            return -EINVAL;
        }
        if (n == 0 || (n == 1 && text[0] == '.')) {
            text += n;
            continue;
        }
        if (used + n + 2 > sizeof(source->subdir)) {
            snprintf(err, err_len, "the source's path is too long");
            return -EINVAL;
        }
        source->subdir[used++] = '/';
        memcpy(source->subdir + used, text, n);
        used += n;
        text += n;
    }
    if (used == 0)
        source->subdir[used++] = '/';
    source->subdir[used] = '\0';
    return 0;
}

int mount_parse_source(const char *text, struct mount_source *ret_source, char *err, size_t err_len)
{
    const char *colon = strstr(text, ":/");
    char why[300];

    memset(ret_source, 0, sizeof(*ret_source));
    if (strncmp(text, URL, strlen(URL)) == 0) {
        const char *name = text + strlen(URL);
        size_t n = strcspn(name, "/");

        if (n == 0 || n >= sizeof(ret_source->name) || name[0] == '.') {
            snprintf(err, err_len, "source \"%s\": no file system name after %s", text, URL);
            return -EINVAL;
        }
        memcpy(ret_source->name, name, n);
        return parse_subdir(name + n, ret_source, err, err_len);
    }
    if (!colon) {
        snprintf(err, err_len,
                 "source \"%s\": expected host[:port][,host2...]:/[subdir] or aifs://name/subdir",
                 text);
        return -EINVAL;
    }
    if (mount_parse_servers(text, (size_t)(colon - text), ret_source, why, sizeof(why)) != 0) {
        snprintf(err, err_len, "source \"%s\": %s", text, why);
        return -EINVAL;
    }
    return parse_subdir(colon + 1, ret_source, err, err_len);
}
