/* SPDX-License-Identifier: Apache-2.0 */
/* library SOURCE KEY_FILE PATH: libaifs over RDMA. Writes PATH, makes it durable, reads it with a
 * session of its own, compares; and one process has one list of devices. Exit 0: all is well. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/aifs.h"

#define PIECE  (1u << 20)
#define PIECES 12u

static unsigned char data[PIECE];

static void fill(unsigned piece)
{
    unsigned long long x = 88172645463325252ull + piece;

    for (unsigned k = 0; k < PIECE; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[k] = (unsigned char)x;
    }
}

static int failed(const char *what)
{
    fprintf(stderr, "library: %s: %s\n", what, strerror(errno));
    return 1;
}

static int write_it(struct aifs *fs, const char *path)
{
    struct aifs_file *f = aifs_open(fs, path, O_WRONLY | O_CREAT | O_EXCL, 0644);

    if (!f)
        return failed("open for writing");
    for (unsigned k = 0; k < PIECES; k++) {
        fill(k);
        if (aifs_pwrite(f, data, PIECE, (off_t)k * PIECE) != PIECE)
            return failed("write");
    }
    if (aifs_fsync(f))
        return failed("fsync");
    return aifs_close(f) ? failed("close") : 0;
}

static int read_it(struct aifs *fs, const char *path)
{
    static unsigned char got[PIECE];
    struct aifs_file *f = aifs_open(fs, path, O_RDONLY, 0);

    if (!f)
        return failed("open for reading");
    for (unsigned k = 0; k < PIECES; k++) {
        fill(k);
        if (aifs_pread(f, got, PIECE, (off_t)k * PIECE) != PIECE)
            return failed("read");
        if (memcmp(got, data, PIECE) != 0) {
            fprintf(stderr, "library: other bytes in MiB %u\n", k);
            return 1;
        }
    }
    return aifs_close(f) ? failed("close") : 0;
}

/* A session, what is done with it, and its end. */
static int with_session(const char *source, const char *options, const char *path,
                        int (*what)(struct aifs *fs, const char *path))
{
    struct aifs *fs;
    int rc;

    if (aifs_mount(source, options, &fs)) {
        fprintf(stderr, "library: %s\n", aifs_mount_error());
        return 1;
    }
    rc = what(fs, path);
    return aifs_unmount(fs) || rc;
}

int main(int argc, char **argv)
{
    char options[512];
    struct aifs *fs;
    int rc;

    if (argc != 4)
        return 2;
    snprintf(options, sizeof options, "key_file=%s,net=rdma,net.devices=rxe0,mount_timeout=200s",
             argv[2]);
    rc = with_session(argv[1], options, argv[3], write_it) ||
         with_session(argv[1], options, argv[3], read_it);
    snprintf(options, sizeof options, "key_file=%s,net=rdma,net.devices=rxe1", argv[2]);
    if (rc == 0 && (aifs_mount(argv[1], options, &fs) == 0 || errno != EBUSY)) {
        fprintf(stderr, "library: a second list of devices is not refused\n");
        rc = 1;
    }
    return rc;
}
