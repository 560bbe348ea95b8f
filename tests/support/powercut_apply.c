/* SPDX-License-Identifier: Apache-2.0 */
/*
 * powercut-apply ROOT SHADOW [SEED]: after the programs were killed, makes the files below ROOT
 * what a disk would hold: the durable names and contents that powercut.so kept in SHADOW. With a
 * SEED, each 4 KiB block written but not synced survives with probability 1/2, for a disk may have
 * got to it. What ROOT becomes is the new durable state: SHADOW is rebuilt from it.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096         /* what a disk writes as a whole */
#define PIECE (64 * BLOCK) /* what is read and written at once */

static const char *root, *shadow;
static unsigned long long seed;
static char next_root[PATH_MAX], next_shadow[PATH_MAX];

static void die(const char *what, const char *path)
{
    fprintf(stderr, "powercut-apply: %s %s: %m\n", what, path);
    exit(1);
}

static int coin(void)
{
    if (!seed)
        return 0;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)((seed >> 33) & 1);
}

/* The live content of a durable file: the shadow's link name is the inode number of the live
 * file. */
static int open_live(const char *rel)
{
    char path[PATH_MAX * 2];

    snprintf(path, sizeof path, "%s%s", root, rel);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Of the blocks that differ some have got to the disk. */
static void mix_blocks(char *durable, size_t len, const char *live, size_t live_len)
{
    for (size_t at = 0; at < len; at += BLOCK) {
        size_t n = len - at < BLOCK ? len - at : BLOCK;

        if (at + n <= live_len && memcmp(durable + at, live + at, n) != 0 && coin())
            memcpy(durable + at, live + at, n);
    }
}

static void copy_file(const char *from_path, const char *rel)
{
    static char durable[PIECE], live[PIECE];
    char to_path[PATH_MAX * 2];
    int from = open(from_path, O_RDONLY | O_CLOEXEC), now = seed ? open_live(rel) : -1, to;
    struct stat st, now_st;

    snprintf(to_path, sizeof to_path, "%s%s", next_root, rel);
    to = open(to_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (from < 0 || to < 0 || fstat(from, &st) != 0)
        die("copy", to_path);
    /* the same inode? a name may have been reused for another file */
    if (now >= 0) {
        char data[PATH_MAX * 2];
        struct stat data_st;

        if (fstat(now, &now_st) == 0) {
            snprintf(data, sizeof data, "%s/data/%lu", shadow, (unsigned long)now_st.st_ino);
            if (stat(data, &data_st) != 0 || data_st.st_ino != st.st_ino) {
                close(now);
                now = -1;
            }
        }
    }
    for (off_t at = 0; at < st.st_size; at += PIECE) {
        ssize_t n = pread(from, durable, PIECE, at),
                m = now >= 0 ? pread(now, live, PIECE, at) : -1;

        if (n <= 0)
            break;
        if (m > 0)
            mix_blocks(durable, (size_t)n, live, (size_t)m);
        if (pwrite(to, durable, (size_t)n, at) != n)
            die("write", to_path);
    }
    if (ftruncate(to, st.st_size) != 0)
        die("truncate", to_path);
    close(from);
    close(to);
    if (now >= 0)
        close(now);
}

static size_t tree_len;

static void duplicate(const char *from, const char *to)
{
    static char buf[PIECE];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    if (in < 0 || out < 0)
        die("copy", to);
    while ((n = read(in, buf, sizeof buf)) > 0)
        if (write(out, buf, (size_t)n) != n)
            die("write", to);
    close(in);
    close(out);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char to[PATH_MAX * 2], data[PATH_MAX * 2];
    const char *rel = path + tree_len;
    struct stat made;

    (void)st;
    (void)ftw;
    snprintf(to, sizeof to, "%s%s", next_root, rel);
    if (type == FTW_D) {
        if (mkdir(to, 0750) != 0)
            die("mkdir", to);
        snprintf(to, sizeof to, "%s/tree%s", next_shadow, rel);
        if (mkdir(to, 0750) != 0)
            die("mkdir", to);
        return 0;
    }
    copy_file(path, rel);
    if (stat(to, &made) != 0)
        die("stat", to);
    /* and the same content as the durable image of the new inode */
    snprintf(data, sizeof data, "%s/data/%lu", next_shadow, (unsigned long)made.st_ino);
    duplicate(to, data);
    snprintf(to, sizeof to, "%s/tree%s", next_shadow, rel);
    if (link(data, to) != 0)
        die("link", to);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    char tree[PATH_MAX], data[PATH_MAX + 8];

    if (argc < 3) {
        fprintf(stderr, "usage: powercut-apply ROOT SHADOW [SEED]\n");
        return 2;
    }
    root = argv[1];
    shadow = argv[2];
    seed = argc > 3 ? strtoull(argv[3], NULL, 0) * 0x9E3779B97F4A7C15ull : 0;
    snprintf(tree, sizeof tree, "%s/tree", shadow);
    if (access(tree, F_OK) != 0) /* the first time: all that is there counts as durable */
        snprintf(tree, sizeof tree, "%s", root);
    snprintf(next_root, sizeof next_root, "%s.next", root);
    snprintf(next_shadow, sizeof next_shadow, "%s.next", shadow);
    nftw(next_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    nftw(next_shadow, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    mkdir(next_shadow, 0750);
    snprintf(data, sizeof data, "%s/data", next_shadow);
    mkdir(data, 0750);
    tree_len = strlen(tree);
    if (nftw(tree, visit, 16, FTW_PHYS) != 0)
        die("walk", tree);
    if (nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        die("remove", root);
    if (nftw(shadow, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        die("remove", shadow);
    if (rename(next_root, root) != 0 || rename(next_shadow, shadow) != 0)
        die("rename", root);
    return 0;
}
