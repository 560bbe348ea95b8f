/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/self/mountinfo line by line; the last line for a mount point is the topmost mount. */
#include "client/fuse/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

/* "36 35 0:42 /root /mnt rw,... shared:1 - type source options": true when it is about path. */
static int parse_line(char *line, const char *path, struct mountinfo *ret_info)
{
    char *save = NULL, *field = strtok_r(line, " \n", &save);
    struct mountinfo info = {0};

    for (int i = 0; field && i < 5; i++) {
        if (i == 2 && sscanf(field, "%u:%u", &info.major, &info.minor) != 2)
            return 0;
        if (i == 4) {
            text_unescape_octal(field);
            if (strcmp(field, path) != 0)
                return 0;
        }
        field = strtok_r(NULL, " \n", &save);
    }
    while (field && strcmp(field, "-") != 0)
        field = strtok_r(NULL, " \n", &save);
    field = field ? strtok_r(NULL, " \n", &save) : NULL;
    if (!field)
        return 0;
    snprintf(info.type, sizeof(info.type), "%s", field);
    field = strtok_r(NULL, " \n", &save);
    if (field) {
        text_unescape_octal(field);
        snprintf(info.source, sizeof(info.source), "%s", field);
    }
    *ret_info = info;
    return 1;
}

int mountinfo_find(const char *path, struct mountinfo *ret_info)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    int found = 0;

    if (!f)
        return -errno;
    while (getline(&line, &cap, f) > 0)
        found |= parse_line(line, path, ret_info);
    free(line);
    fclose(f);
    return found;
}

int mountinfo_has_device(unsigned major, unsigned minor)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    int found = 0;

    if (!f)
        return -errno;
    while (!found && getline(&line, &cap, f) > 0) {
        unsigned a, b;

        found = sscanf(line, "%*u %*u %u:%u", &a, &b) == 2 && a == major && b == minor;
    }
    free(line);
    fclose(f);
    return found;
}
