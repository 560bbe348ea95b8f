/* SPDX-License-Identifier: Apache-2.0 */
/* Supplementary groups of the caller, from the line "Groups:" in /proc/PID/status (proc(5)), which
 * may be longer than any buffer. The kernel's pid is that of the thread. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/fuse/channel.h"

/* Behind the label; false: there is none. */
static bool find_groups(FILE *f)
{
    char line[64];
    bool whole = true; /* line begins where a line begins */

    while (fgets(line, sizeof(line), f)) {
        if (whole && strncmp(line, "Groups:", 7) == 0)
            return fseek(f, 7 - (long)strlen(line), SEEK_CUR) == 0;
        whole = strchr(line, '\n') != NULL;
    }
    return false;
}

int channel_req_groups(const struct channel_req *q, uint32_t *groups, unsigned max)
{
    char path[64];
    unsigned n = 0;
    uint64_t group = 0;
    bool digits = false;
    FILE *f;
    int ch;

    snprintf(path, sizeof(path), "/proc/%u/status", q->pid);
    f = fopen(path, "re");
    if (!f)
        return -errno;
    if (!find_groups(f)) {
        fclose(f);
        return -EIO;
    }
    do {
        ch = fgetc(f);
        if (isdigit(ch)) {
            group = group * 10 + (uint64_t)(ch - '0');
            digits = true;
        } else if (digits) {
            if (n < max)
                groups[n] = (uint32_t)group;
            n++;
            group = 0;
            digits = false;
        }
    } while (ch != EOF && ch != '\n');
    fclose(f);
    return (int)n;
}
