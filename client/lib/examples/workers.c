/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers SOURCE KEY_FILE PATH N: N processes read a file that their parent has opened, each its
 * part, as the workers of a data loader do. Prints how many bytes each has read.
 */
#include <aifs.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(struct aifs *fs, struct aifs_file *f, long part, long parts)
{
    static char buf[1 << 16];
    struct stat st;
    off_t at, end;
    long sum = 0;
    ssize_t n = 0;

    if (aifs_fstat(f, &st)) /* the first call here: this process gets connections of its own */
        return 1;
    end = st.st_size * (part + 1) / parts;
    for (at = st.st_size * part / parts; at < end && n >= 0; at += n) {
        size_t len = (size_t)(end - at) < sizeof buf ? (size_t)(end - at) : sizeof buf;

        n = aifs_pread(f, buf, len, at);
        sum += n > 0 ? n : 0;
    }
    printf("%ld\n", sum);
    fflush(stdout);
    return aifs_close(f) || aifs_unmount(fs) || n < 0;
}

int main(int argc, char **argv)
{
    long n = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
    int failed = 0, status;
    struct aifs_file *f;
    struct aifs *fs;
    char options[512];

    if (n < 1) {
        fprintf(stderr, "usage: workers SOURCE KEY_FILE PATH N\n");
        return 2;
    }
    snprintf(options, sizeof options, "key_file=%s,memory_limit=64Mi", argv[2]);
    if (aifs_mount(argv[1], options, &fs)) {
        fprintf(stderr, "%s\n", aifs_mount_error());
        return 1;
    }
    f = aifs_open(fs, argv[3], O_RDONLY, 0);
    if (!f) {
        perror(argv[3]);
        return 1;
    }
    for (long k = 0; k < n; k++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(work(fs, f, k, n));
        failed |= pid < 0;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return aifs_close(f) || aifs_unmount(fs) || failed;
}
