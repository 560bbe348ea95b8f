/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the mount daemon. Everything on its one reactor, unless it says otherwise. */
#ifndef AIFS_CLIENT_MOUNT_DAEMON_H
#define AIFS_CLIENT_MOUNT_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/fuse/fs.h"
#include "client/mount/mount.h"
#include "common/stat/metrics_http.h"
#include "common/stat/stat.h"
#define MOUNT_CORE_GAUGES 44

enum mount_state { MOUNT_STATE_CONNECTING, MOUNT_STATE_SERVING, MOUNT_STATE_ENDING };

struct mount_daemon {
    const struct mount_request *m;
    struct mount_report *report;
    struct fs fs;
    enum mount_state state;
    int exit_code;
    struct core_req req;        /* core_mount, later core_unmount */
    struct reactor_timer timer; /* mount_timeout, second signal, umount_timeout */
    uint64_t wait_ns;
    bool timed_out, core_mounted;

    struct reactor_watch signals;
    unsigned n_signals;
    pthread_t unmounter;
    bool unmounting;            /* its thread was started */
    bool detached;              /* and has done its work: the mount is gone, or in use */
    struct reactor_work detach; /* of which it tells so */
    struct mount_umount umount;

    _Atomic bool ready; /* read by the metrics thread */
    struct metrics_http *http;
    struct stat_gauge gauges[MOUNT_CORE_GAUGES];
    struct reactor_timer gauge_timer;
};

/* signals.c: is told of them from now on; -errno. */
int mount_signals_start(struct mount_daemon *d) MUST_USE;

/* explain.c */
const char *mount_net_name(const struct conf *c); /* as in net=NAME */
/* May connect to each server for a second. */
void mount_explain(const struct mount_daemon *d, int status, char *text, size_t len);

/* metrics.c: what the core counts, copied once a second for the metrics thread. */
void mount_metrics_start(struct mount_daemon *d);
void mount_metrics_stop(struct mount_daemon *d);

#endif
