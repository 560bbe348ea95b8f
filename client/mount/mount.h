/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aifs-mount, which is also mount.aifs(8): what is asked for (options), whether it can be done
 * (check), and the two processes that do it: the one mount(8) waits for, and the daemon behind the
 * mount that tells it how things went (report, daemon).
 */
#ifndef AIFS_CLIENT_MOUNT_MOUNT_H
#define AIFS_CLIENT_MOUNT_MOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/core/core.h"
#include "common/base/compiler.h"
#include "common/base/text.h"
#include "common/conf/conf.h"

#define MOUNT_KEY_FILE    "/etc/aifs/client.key"
#define MOUNT_CONFIG_FILE "/etc/aifs/client.conf"
#define MOUNT_ERROR_BYTES 1024
#define MOUNT_UMOUNT_MAX  16 /* umount commands that wait at once */

/* Exit codes of mount(8). */
enum mount_exit {
    MOUNT_OK = 0,
    MOUNT_USAGE = 1,
    MOUNT_SYSTEM = 2,
    MOUNT_INTERNAL = 4,
    MOUNT_INTERRUPTED = 8,
    MOUNT_FAILED = 32,
    MOUNT_SOME = 64,
};

/* "mds1[:port][,mds2...]:/[subdir]", or "aifs://name/subdir" with the servers in
 * /etc/aifs/name.conf. */
struct mount_source {
    char servers[CORE_MDS_MAX][256];
    unsigned n_servers;
    char name[64]; /* of aifs://name; "" else */
    char subdir[PATH_MAX];
};

struct mount_request {
    const char *source_text;
    struct mount_source source;
    char dir[PATH_MAX];
    struct conf *conf;
    struct strbuf flags;   /* for the kernel */
    struct strbuf unknown; /* options that have no meaning when remounting */
    enum { MOUNT_ATIME_UNSAID, MOUNT_RELATIME, MOUNT_NOATIME } atime_word;
    bool no_dir_time;
    bool read_only, remount, multi, nonempty, recover, background, fake, verbose, sloppy,
        foreground, debug;
};

extern const struct conf_option mount_conf_options[];

/* ---- options.c, source.c ---- */

/* 0, or an exit code with its text in err. */
int mount_parse(struct mount_request *m, int argc, char **argv, char *err, size_t err_len) MUST_USE;
void mount_request_fini(struct mount_request *m);
/* "-o" text: options separated by commas; "\," is a comma, "\\" a backslash in a value. */
int mount_parse_options(struct mount_request *m, const char *text, char *err,
                        size_t err_len) MUST_USE;
int mount_parse_source(const char *text, struct mount_source *ret_source, char *err,
                       size_t err_len) MUST_USE;
/* A server list "host[:port],..." into source. */
int mount_parse_servers(const char *list, size_t len, struct mount_source *source, char *err,
                        size_t err_len) MUST_USE;
void mount_usage(const struct mount_request *m);

/* ---- check.c ---- */

/* The mount point: is there, is a directory, alive, not in use by aifs. Makes m->dir canonical.
 * 0 or an exit code. */
int mount_check_dir(struct mount_request *m, char *err, size_t err_len) MUST_USE;
/* What the kernel is told of the mount, as words of mount(8): into out. privileged: devices and
 * set-id bits count where nothing says otherwise. */
void mount_kernel_words(const struct mount_request *m, bool privileged, struct strbuf *out);
/* mount -o remount: what the kernel alone can change. */
int mount_remount(const struct mount_request *m, char *err, size_t err_len) MUST_USE;

/* ---- report.c: from the daemon to the process that started it ---- */

struct mount_report {
    int fd; /* -1: nobody waits, text goes to the log */
};

/* Forks. In the child: 0, with the report to use. In the parent: does not return before the daemon
 * has reported; its exit code goes to *ret_exit and 1 is returned. */
int mount_fork(const struct mount_request *m, struct mount_report *ret_report, int *ret_exit,
               char *err, size_t err_len) MUST_USE;
/* Exactly one counts; text may be NULL for MOUNT_OK. */
void mount_report(struct mount_report *r, int exit_code, const char *text);

/* ---- daemon.c ---- */

/* Connects, mounts, serves until unmounted. Exit code of the daemon. */
int mount_serve(const struct mount_request *m, struct mount_report *report);

/* ---- umount.c ---- */

/* umount.aifs DIR [-flnrv]: umount(2), then waits until the daemon has written everything back. */
int mount_umount_main(int argc, char **argv);
/* The daemon's side: who connects sees its end. When it cannot be had nobody waits. */
struct mount_umount {
    int listener; /* -1: none */
    int waiting[MOUNT_UMOUNT_MAX];
    unsigned n_waiting;
};
void mount_umount_init(struct mount_umount *u);
/* Of the mount with this device number. */
void mount_umount_listen(struct mount_umount *u, unsigned major, unsigned minor);
/* It is unmounted, and the next mount may get its number: whoever comes now does not mean it. */
void mount_umount_gone(struct mount_umount *u);
/* To all who wait: why not everything has been written back. They wait on for the end of the
 * process, which closes what is open here. */
void mount_umount_tell(const struct mount_umount *u, const char *text);

#endif
