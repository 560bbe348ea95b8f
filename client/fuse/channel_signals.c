/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a caller is to end, from the masks of signals in /proc/PID/status, or ends already, from
 * the flags in /proc/PID/stat (proc(5)). The kernel's pid is that of the thread; reading these
 * files waits for nothing that the thread holds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fuse/channel.h"

#define EXITING 0x4u /* PF_EXITING of the kernel */

#define BIT(sig) (1ull << ((sig)-1))

/* What a process that does nothing about them lives on after. */
#define HARMLESS                                                                                   \
    (BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH) | BIT(SIGSTOP) | BIT(SIGTSTP) |     \
     BIT(SIGTTIN) | BIT(SIGTTOU))

static const char *const labels[] = {"SigPnd:", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:"};

/* How many of the masks it has found. */
static unsigned read_masks(FILE *f, uint64_t masks[ARRAY_LEN(labels)])
{
    char line[64];
    unsigned found = 0;
    bool whole = true; /* line begins where a line begins: "Groups:" is longer than any buffer */

    while (found < ARRAY_LEN(labels) && fgets(line, sizeof(line), f)) {
        if (whole && strncmp(line, labels[found], 7) == 0)
            masks[found++] = strtoull(line + 7, NULL, 16);
        whole = strchr(line, '\n') != NULL;
    }
    return found;
}

bool channel_req_ends(const struct channel_req *q)
{
    uint64_t masks[ARRAY_LEN(labels)], pending;
    char path[64];
    unsigned found;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%u/status", q->pid);
    f = fopen(path, "re");
    if (!f)
        return true;
    found = read_masks(f, masks);
    fclose(f);
    if (found < ARRAY_LEN(labels))
        return true;
    pending = masks[0] | masks[1];
    return pending & BIT(SIGKILL) || pending & ~(masks[2] | masks[3] | masks[4] | HARMLESS);
}

bool channel_req_exits(const struct channel_req *q)
{
    unsigned flags = 0;
    char path[64], line[512]; /* up to the flags: two names and six numbers */
    const char *after;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%u/stat", q->pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    after = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL; /* a name may have one too */
    fclose(f);
    return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & EXITING;
}
