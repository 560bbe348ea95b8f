/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts of a demo cluster: each is an aifs-mount of its own, remembered in demo.json so that `up`
 * mounts it again. All return enum admin_exit after printing why. */
#ifndef AIFS_TOOLS_ADMIN_DEMO_MOUNT_H
#define AIFS_TOOLS_ADMIN_DEMO_MOUNT_H

#include <sys/types.h>

#include "tools/admin/admin.h"
#include "tools/admin/demo.h"

enum demo_mount_state {
    DEMO_UNMOUNTED,
    DEMO_MOUNTED,
    DEMO_SILENT, /* mounted, and does not answer: it hangs, or waits for servers */
    DEMO_DEAD,   /* its daemon has died */
};
/* patience_ns: how long it may take to answer. */
enum demo_mount_state demo_mount_state(const char *path, uint64_t patience_ns);
pid_t demo_mount_pid(const char *path); /* of its daemon; 0: there is none */
/* Waits until each has answered. ADMIN_PARTIAL: o tells of those that have not in time. */
int demo_mounts_answer(const struct demo *d, struct out *o, uint64_t patience_ns);
/* Would a mount at path, with these options or NULL, hide files? Is it no directory? Said, and
 * ADMIN_CONFLICT. */
int demo_mount_check(const struct demo *d, const char *path, const char *options);
int demo_mount_add(struct demo *d, const char *path, const char *options);
int demo_mount_again(struct demo *d); /* those remembered that are not mounted or dead */
int demo_umount_one(struct demo *d, const char *path);
int demo_umount_all(const struct demo *d); /* they stay remembered */

/* Names servers that are stopped while something is mounted: mounts that have something to write
 * back there wait for them. */
void demo_say_stopped(const struct admin *a, const struct demo *d);

#endif
