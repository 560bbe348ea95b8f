/* SPDX-License-Identifier: Apache-2.0 */
/* read_file SOURCE KEY_FILE PATH: writes a file of an aifs cluster to standard output. */
#include <aifs.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static char buf[1 << 20];
    struct aifs_file *f;
    struct aifs *fs;
    char options[512];
    off_t at = 0;
    ssize_t n;

    if (argc != 4) {
        fprintf(stderr, "usage: read_file SOURCE KEY_FILE PATH\n");
        return 2;
    }
    snprintf(options, sizeof options, "key_file=%s,ro", argv[2]);
    if (aifs_mount(argv[1], options, &fs)) {
        fprintf(stderr, "%s\n", aifs_mount_error());
        return 1;
    }
    f = aifs_open(fs, argv[3], O_RDONLY, 0);
    if (!f) {
        fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
        aifs_unmount(fs);
        return 1;
    }
    while ((n = aifs_pread(f, buf, sizeof buf, at)) > 0) {
        if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
            break;
        at += n;
    }
    if (n < 0)
        fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
    aifs_close(f);
    aifs_unmount(fs);
    return n != 0;
}
