/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the caller is beside its user and group, which come with the request: supplementary groups
 * and capabilities, from /proc/PID/status (proc(5)), where the line of groups may be longer than
 * any buffer; and which ids its user name space knows. The kernel's pid is that of the thread.
 *
 * Failure modes: a caller that cannot be seen has no groups and no capabilities.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/fuse/channel.h"
#include "common/base/mem.h"

/* Behind the label; false: there is none. */
static bool find_line(FILE *f, const char *label)
{
    size_t len = strlen(label);
    char line[64];
    bool whole = true; /* line begins where a line begins */

    while (fgets(line, sizeof(line), f)) {
        if (whole && strncmp(line, label, len) == 0)
            return fseek(f, (long)len - (long)strlen(line), SEEK_CUR) == 0;
        whole = strchr(line, '\n') != NULL;
    }
    return false;
}

static FILE *open_proc(const struct channel_req *q, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/%s", q->pid, name);
    return fopen(path, "re");
}

/* A line of numbers; at most max of them are kept, and how many there are is returned. */
static int read_groups(FILE *f, uint32_t *groups, unsigned max)
{
    unsigned n = 0;
    uint64_t group = 0;
    bool digits = false;
    int ch;

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
    return (int)n;
}

/* The line of capabilities is behind that of groups. */
int channel_req_groups(const struct channel_req *q, uint32_t *groups, unsigned max,
                       uint32_t *ret_caps)
{
    FILE *f = open_proc(q, "status");
    uint64_t caps = 0;
    int n;

    *ret_caps = 0;
    if (!f)
        return -errno;
    n = find_line(f, "Groups:") ? read_groups(f, groups, max) : -EIO;
    if (n >= 0 && find_line(f, "CapEff:") && fscanf(f, "%" SCNx64, &caps) == 1)
        *ret_caps = (uint32_t)caps & MSG_CAP_ALL;
    fclose(f);
    return n;
}

/* ---- over which ids ---- */

/* Ours is where all ids are known that the kernel tells us of. 1, 0, or -errno. */
static int is_our_user_ns(const struct channel_req *q)
{
    char path[64];
    struct stat ours, theirs;

    snprintf(path, sizeof(path), "/proc/%u/ns/user", q->pid);
    if (stat(path, &theirs) != 0 || stat("/proc/self/ns/user", &ours) != 0)
        return -errno;
    return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

#define RANGES_ROOM (MSG_ID_RANGES_MAX * 2 + 2) /* with a place to see that there are no more */

/* Pairs, as they are called here; how many numbers, or -EIO. What has no name here is left out. */
static int read_ranges(const struct channel_req *q, const char *map, uint32_t *ranges)
{
    FILE *f = open_proc(q, map);
    uint32_t inside, first, many;
    int n = 0, got = 0;

    if (!f)
        return -EIO;
    while (n < (int)RANGES_ROOM &&
           (got = fscanf(f, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &first, &many)) == 3) {
        if (first == UINT32_MAX)
            continue;
        ranges[n++] = first;
        ranges[n++] = many;
    }
    fclose(f);
    return got == EOF ? n : -EIO;
}

uint32_t *channel_req_caps(const struct channel_req *q, uint32_t caps, struct msg_cred *c)
{
    uint32_t *ranges;
    int ours = caps ? is_our_user_ns(q) : -ENOENT, n_uids, n_gids;

    c->caps = ours == 1 ? caps : 0;
    if (ours != 0)
        return NULL;
    ranges = mem_array((size_t)RANGES_ROOM * 2, sizeof *ranges);
    if (!ranges)
        return NULL;
    n_uids = read_ranges(q, "uid_map", ranges);
    n_gids = n_uids < 0 ? n_uids : read_ranges(q, "gid_map", ranges + n_uids);
    if (n_gids < 0) {
        mem_free(ranges);
        return NULL;
    }
    c->caps = caps;
    c->mapped = true;
    c->uids = ranges;
    c->gids = ranges + n_uids;
    c->n_uids = (uint32_t)n_uids;
    c->n_gids = (uint32_t)n_gids;
    return ranges;
}
