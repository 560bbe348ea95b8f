/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a caller is to end, or ends already, from /proc/PID/status (proc(5)): the masks of
 * signals, and whether it has memory. The kernel's pid is that of the thread; reading this file
 * waits for nothing that the thread holds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fuse/channel.h"

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

/* Whoever ends has no memory any more when it closes its files, of which there are lines ("Vm...")
 * before that of its threads. Not from /proc/PID/stat: that waits for an execve(2), which may be
 * what waits for us (it closes files, too). */
bool channel_req_exits(const struct channel_req *q)
{
    char path[64], line[64];
    bool has_memory = false, seen = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%u/status", q->pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    while (!seen && fgets(line, sizeof(line), f)) {
        has_memory |= strncmp(line, "Vm", 2) == 0;
        seen = strncmp(line, "Threads:", 8) == 0;
    }
    fclose(f);
    return seen && !has_memory;
}
