/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A demo: a whole cluster on this machine in one folder.
 *
 *   DIR/demo.json     what it is: number of servers and targets, ports, mounts
 *   DIR/admin.conf    how to reach it (aifs-admin --config DIR/admin.conf)
 *   DIR/key/          server.key admin.key client.key
 *   DIR/mds/          mds.conf data/ run/ log
 *   DIR/ossN/         oss.conf tM/ run/ log
 *   DIR/mountN.log    log of the N-th mount
 */
#ifndef AIFS_TOOLS_ADMIN_DEMO_H
#define AIFS_TOOLS_ADMIN_DEMO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define DEMO_OSS_MAX    64
#define DEMO_MOUNTS_MAX 64
#define DEMO_PATH_BYTES 1024 /* leaves room for file names in PATH_MAX */
#define DEMO_START_MS   30000u

struct admin;
struct out;
struct rpc_sync;

struct demo_mount {
    char path[PATH_MAX];
    char options[512]; /* given with -o, used by `up` again; "" = none */
    unsigned number;   /* DIR/mountN.log */
    bool made;         /* the mount point was made for it and goes with it */
};

struct demo {
    char dir[DEMO_PATH_BYTES]; /* absolute */
    char net[8];
    char capacity[32];                 /* per target; "" = what the file system has */
    char targets_dir[DEMO_PATH_BYTES]; /* where target data goes; "" = in dir */
    unsigned oss, targets;
    uint16_t mds_port;
    uint16_t oss_port[DEMO_OSS_MAX];
    unsigned n_mounts, next_mount;
    struct demo_mount mounts[DEMO_MOUNTS_MAX];
    uint64_t started_ns[DEMO_OSS_MAX]; /* not saved: by this command; 0: it ran before */
};

/* path, absolute, into out; its last part need not be there. These three return an exit code, after
 * saying why. */
int demo_path_resolve(const char *path, char *out, size_t len) MUST_USE;
/* Does all of it go through configuration files and mount options? */
int demo_path_check(const char *absolute) MUST_USE;
int demo_path_new(const char *path, char *out, size_t len) MUST_USE; /* both */
/* d->dir, from what was given (NULL: where it is unless told). ret_made: was it made now? NULL: it
 * is not to be made. */
int demo_resolve(struct demo *d, const char *dir, bool *ret_made) MUST_USE;
/* One command at a time per demo; the lock goes with the process. ret_made: was its file? */
int demo_lock(const struct demo *d, bool *ret_made) MUST_USE;
/* The demo in dir, locked and loaded. Exit codes as well. */
int demo_open(struct demo *d, const char *dir) MUST_USE;
/* Says why demo_load() failed, and what is left to do; an exit code. */
int demo_say_damaged(const struct demo *d, int err);
/* -EEXIST: no demo, but something else is in d->dir, which must not become one: what a demo makes
 * there it removes again. */
int demo_check_empty(const struct demo *d) MUST_USE;
int demo_load(struct demo *d) MUST_USE; /* d->dir set; -ENOENT: no demo there; -EINVAL */
int demo_save(const struct demo *d) MUST_USE;
/* Keys and folders that are not there yet. */
int demo_prepare(const struct demo *d) MUST_USE;
int demo_write_mds_conf(const struct demo *d) MUST_USE;
int demo_write_oss_conf(const struct demo *d, unsigned n) MUST_USE; /* n from 1 */
int demo_write_admin_conf(const struct demo *d) MUST_USE;
struct demo_count {
    unsigned oss, targets, online;
    unsigned refused; /* as far as a server has said so since it was started */
};

/* Does what listens at this port of ours answer a ping, within twice this time at most? */
bool demo_server_answers(struct rpc_sync *sync, uint16_t port, uint64_t limit_ns);
/* How long what was found running may take to answer. */
uint64_t demo_patience_ns(const struct admin *a);
/* Until every server has answered and the metadata server has heard of every target, from its
 * server as it runs now. ADMIN_PARTIAL: all but those that it refuses, or whose server does not
 * answer; ADMIN_FAILED: not in time; o has got warnings that say why. */
int demo_wait_online(struct admin *a, const struct demo *d, struct out *o,
                     struct demo_count *ret_count) MUST_USE;
/* A place where aifs-admin finds clusters of this machine without being told: /run/aifs/admin.d
 * (root only; others skip it). */
void demo_publish(const struct demo *d);
void demo_unpublish(const struct demo *d);
/* Its servers have stopped: says so, and with purge removes what demo_prepare() and the daemons
 * have made, and nothing else; d->dir itself only when nothing is left in it. An exit code. */
int demo_end(const struct admin *a, const struct demo *d, bool purge) MUST_USE;

#endif
