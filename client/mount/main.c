/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aifs-mount SOURCE DIR [-o options], the same program as mount.aifs (called by mount(8)) and,
 * under the name umount.aifs or umount.fuse.aifs, the helper of umount(8).
 *
 * Happy path: parse, check the mount point, fork the daemon, wait until the mount is usable. Every
 * failure is one line on stderr and an exit code of mount(8).
 */
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "client/mount/mount.h"
#include "common/base/log.h"
#include "common/base/standard.h"
#include "common/fault/fault.h"

static int fail(int code, const char *text)
{
    fprintf(stderr, "mount.aifs: %s\n", text);
    return code;
}

/* ps(1) shows what this is, whatever name it was called by. */
static void set_title(char **argv)
{
    char *base = strrchr(argv[0], '/');

    base = base ? base + 1 : argv[0];
    if (strcmp(base, "mount.aifs") == 0)
        memcpy(base, "aifs-mount", strlen("aifs-mount"));
    prctl(PR_SET_NAME, "aifs-mount");
}

static int run(struct mount_request *m)
{
    struct mount_report report = {.fd = -1};
    char err[MOUNT_ERROR_BYTES] = "";
    int code = MOUNT_OK;

    if (m->remount) {
        code = m->fake ? MOUNT_OK : mount_remount(m, err, sizeof(err));
        return code == MOUNT_OK ? code : fail(code, err);
    }
    code = mount_check_dir(m, err, sizeof(err));
    if (code != MOUNT_OK)
        return fail(code, err);
    if (m->fake)
        return MOUNT_OK;
    if (!m->foreground && mount_fork(m, &report, &code, err, sizeof(err)) != 0) {
        if (code != MOUNT_OK)
            return fail(code, err);
        if (m->verbose)
            printf("mount.aifs: %s mounted on %s\n", m->source_text, m->dir);
        return MOUNT_OK;
    }
    return mount_serve(m, &report);
}

int main(int argc, char **argv)
{
    const char *base = strrchr(argv[0], '/');
    struct mount_request m;
    char err[MOUNT_ERROR_BYTES] = "";
    int code;

    standard_open();
    base = base ? base + 1 : argv[0];
    if (strcmp(base, "umount.aifs") == 0 || strcmp(base, "umount.fuse.aifs") == 0)
        return mount_umount_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--umount") == 0)
        return mount_umount_main(argc - 1, argv + 1);
    log_set_program("aifs-mount");
    if (fault_arm_from_env() < 0)
        return fail(MOUNT_USAGE, "AIFS_FAULT: cannot understand it");
    code = mount_parse(&m, argc, argv, err, sizeof(err));
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        mount_usage(&m);
        code = standard_end("aifs-mount") ? MOUNT_SYSTEM : MOUNT_OK;
    } else if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("aifs-mount %s\n", AIFS_VERSION);
        code = standard_end("aifs-mount") ? MOUNT_SYSTEM : MOUNT_OK;
    } else if (code != MOUNT_OK) {
        code = fail(code, err);
    } else {
        set_title(argv);
        code = run(&m);
    }
    mount_request_fini(&m);
    return code;
}
