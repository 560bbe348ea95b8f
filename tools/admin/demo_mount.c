/* SPDX-License-Identifier: Apache-2.0 */
/* Mounting through our own mount helper, found beside this program, so that an installed and a
 * freshly built tree behave alike. */
#include "tools/admin/demo_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "tools/admin/admin.h"
#include "tools/admin/proc.h"

#define ANSWER_MS 2000
#define LEAST_NS  (500 * NS_PER_MS) /* for each, however long others have taken */
#define KILLED_NS (100 * NS_PER_MS)

/* What the kernel answers for a daemon that has died (the last two: only just now, with a ring). */
static bool says_dead(int err)
{
    return err == ENOTCONN || err == ECONNABORTED || err == ECANCELED;
}

/* Is something of ours mounted exactly there? */
static bool is_mounted(const char *path)
{
    char line[PATH_MAX * 2], at[PATH_MAX], type[64];
    bool found = false;
    FILE *f = fopen("/proc/self/mountinfo", "re");

    while (f && !found && fgets(line, sizeof line, f)) {
        const char *dash = strstr(line, " - ");

        found = dash && sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1 &&
                sscanf(dash, " - %63s", type) == 1 && !strcmp(at, path) &&
                !strncmp(type, "fuse.aifs", 9);
    }
    if (f)
        fclose(f);
    return found;
}

enum answer { ANSWERS, SAYS_DEAD, SILENT };

static bool has_ended(pid_t child, uint64_t limit_ns, int *ret_status)
{
    uint64_t end = clock_mono_ns(clock_real()) + limit_ns;

    while (waitpid(child, ret_status, WNOHANG) == 0) {
        if (clock_mono_ns(clock_real()) >= end)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

/* A child asks: one that is alive but waits for its servers does not answer. What a daemon has
 * taken and does not answer lets nobody go who waits for it, not even when killed: such a child is
 * left behind, without anything that somebody else could wait for. */
static enum answer ask_mount(const char *path, uint64_t limit_ns)
{
    struct statfs s;
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        close_range(0, ~0u, 0);
        _exit(statfs(path, &s) != 0 && says_dead(errno));
    }
    if (child < 0)
        return SILENT;
    if (!has_ended(child, limit_ns, &status)) {
        kill(child, SIGKILL);
        (void)has_ended(child, KILLED_NS, &status);
        return SILENT;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? SAYS_DEAD : ANSWERS;
}

enum demo_mount_state demo_mount_state(const char *path, uint64_t patience_ns)
{
    static const enum demo_mount_state states[] = {
        [ANSWERS] = DEMO_MOUNTED, [SAYS_DEAD] = DEMO_DEAD, [SILENT] = DEMO_SILENT};

    return is_mounted(path) ? states[ask_mount(path, patience_ns)] : DEMO_UNMOUNTED;
}

/* With a daemon that lives, whatever it waits for. */
static bool is_served(const char *path)
{
    enum demo_mount_state state = demo_mount_state(path, ANSWER_MS * NS_PER_MS);

    return state == DEMO_MOUNTED || state == DEMO_SILENT;
}

pid_t demo_mount_pid(const char *path)
{
    return proc_find("aifs-mount", path);
}

int demo_mounts_answer(const struct demo *d, struct out *o, uint64_t patience_ns)
{
    uint64_t now = clock_mono_ns(clock_real()), end = now + patience_ns;
    int rc = ADMIN_OK;

    for (unsigned i = 0; i < d->n_mounts; i++) {
        const struct demo_mount *m = &d->mounts[i];
        bool well;

        now = clock_mono_ns(clock_real());
        admin_waits_for("demo: waiting for the mount %s (process %d) to answer; its log is "
                        "%s/mount%u.log",
                        m->path, (int)demo_mount_pid(m->path), d->dir, m->number);
        well = ask_mount(m->path, MAX(end > now ? end - now : 0, LEAST_NS)) == ANSWERS;
        admin_waited();
        if (well)
            continue;
        out_warning(o, "the mount %s (process %d) does not answer: see %s/mount%u.log", m->path,
                    (int)demo_mount_pid(m->path), d->dir, m->number);
        rc = ADMIN_PARTIAL;
    }
    return rc;
}

/* Makes the mount point when there is none; what a dead mount leaves there counts as one. */
static int make_place(struct demo_mount *m)
{
    if (mkdir(m->path, 0755) == 0)
        m->made = true;
    else if (errno != EEXIST && !says_dead(errno))
        return admin_fail(-errno, "demo: cannot make %s", m->path);
    return ADMIN_OK;
}

/* What the mount helper says goes where it belongs as text, and is kept for the object of --json.
 */
static int helper_output(void)
{
    return admin_says_json() ? memfd_create("said", MFD_CLOEXEC) : -1;
}

static void helper_said(int fd, bool failed)
{
    char text[1500];
    ssize_t n = fd >= 0 && failed ? pread(fd, text, sizeof text - 1, 0) : 0;

    if (n > 0) {
        text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
        admin_detail("%s", text);
    }
    if (fd >= 0)
        close(fd);
}

static int mount_one(const struct demo *d, struct demo_mount *m)
{
    char program[PATH_MAX], source[64], all[PATH_MAX * 2];
    const char *argv[] = {program, source, m->path, "-o", all, NULL};
    int rc = proc_program("aifs-mount", program, sizeof program), err_fd;

    if (rc < 0)
        return admin_fail(rc, "demo: the program aifs-mount is not installed");
    rc = make_place(m);
    if (rc != ADMIN_OK)
        return rc;
    snprintf(source, sizeof source, "127.0.0.1:%u:/", d->mds_port);
    snprintf(all, sizeof all, "keyfile=%s/key/client.key,net=%s,log=%s/mount%u.log,recover%s%s",
             d->dir, d->net, d->dir, m->number, m->options[0] ? "," : "", m->options);
    err_fd = helper_output();
    rc = proc_run(argv, err_fd);
    if (rc != 0)
        admin_error("demo: mounting %s failed (%d)", m->path, rc);
    helper_said(err_fd, rc != 0);
    return rc ? ADMIN_FAILED : ADMIN_OK;
}

int demo_mount_again(struct demo *d)
{
    int rc = ADMIN_OK;

    for (unsigned i = 0; i < d->n_mounts && rc == ADMIN_OK; i++)
        if (!is_served(d->mounts[i].path))
            rc = mount_one(d, &d->mounts[i]);
    return rc;
}

static int absolute(const char *path, char out[PATH_MAX])
{
    if (realpath(path, out))
        return ADMIN_OK;
    if (says_dead(errno) &&
        path[0] == '/') { /* what a dead mount leaves: cannot be resolved, can be named */
        snprintf(out, PATH_MAX, "%s", path);
        return ADMIN_OK;
    }
    return admin_fail(-errno, "demo: %s", path);
}

static int save(const struct demo *d)
{
    int rc = demo_save(d);

    return rc < 0 ? admin_fail(rc, "demo: cannot write into %s", d->dir) : ADMIN_OK;
}

/* Its index, or d->n_mounts. */
static unsigned find_mount(const struct demo *d, const char *path)
{
    unsigned i = 0;

    while (i < d->n_mounts && strcmp(d->mounts[i].path, path) != 0)
        i++;
    return i;
}

static bool has_word(const char *options, const char *word)
{
    size_t len = strlen(word), n;

    for (; options && *options; options += n + (options[n] == ',')) {
        n = strcspn(options, ",");
        if (n == len && memcmp(options, word, n) == 0)
            return true;
    }
    return false;
}

int demo_mount_check(const struct demo *d, const char *path, const char *options)
{
    char real[PATH_MAX];
    struct stat st;

    if (realpath(path, real) && !is_mounted(real) && stat(real, &st) == 0 && !S_ISDIR(st.st_mode)) {
        admin_error("demo: %s is not a directory: nothing can be mounted there", real);
        return ADMIN_CONFLICT;
    }
    if (!realpath(path, real) || find_mount(d, real) < d->n_mounts || is_mounted(real) ||
        has_word(options, "nonempty") || file_dir_in_use(real) <= 0)
        return ADMIN_OK;
    admin_error("demo: %s is not empty, and a mount would hide what is in it; take an empty "
                "directory, or a new one (or aifs-admin demo mount -o nonempty)",
                real);
    return ADMIN_CONFLICT;
}

/* One that is remembered. Other options replace those it had, unless it is in use with them. */
static int mount_known(struct demo *d, struct demo_mount *m, const char *options)
{
    bool other = options && strcmp(options, m->options) != 0;
    int rc;

    if (is_served(m->path)) {
        if (!other)
            return ADMIN_OK;
        admin_error("demo: %s is mounted with other options; aifs-admin demo umount it first",
                    m->path);
        return ADMIN_CONFLICT;
    }
    if (other)
        snprintf(m->options, sizeof m->options, "%s", options);
    rc = mount_one(d, m);
    return rc == ADMIN_OK ? save(d) : rc;
}

int demo_mount_add(struct demo *d, const char *path, const char *options)
{
    struct demo_mount *m = &d->mounts[d->n_mounts];
    bool made = false;
    unsigned known;
    int rc;

    if (d->n_mounts == DEMO_MOUNTS_MAX) {
        admin_error("demo: at most %d mounts", DEMO_MOUNTS_MAX);
        return ADMIN_FAILED;
    }
    if (options && strlen(options) >= sizeof m->options) {
        admin_error("demo: the options are too long");
        return ADMIN_USAGE;
    }
    if (mkdir(path, 0755) == 0)
        made = true;
    else if (errno != EEXIST && !says_dead(errno))
        return admin_fail(-errno, "demo: cannot make %s", path);
    *m = (struct demo_mount){.number = d->next_mount, .made = made};
    rc = absolute(path, m->path);
    if (rc != ADMIN_OK)
        return rc;
    known = find_mount(d, m->path);
    if (known < d->n_mounts)
        return mount_known(d, &d->mounts[known], options);
    rc = demo_mount_check(d, m->path, options);
    if (rc != ADMIN_OK)
        return rc;
    snprintf(m->options, sizeof m->options, "%s", options ? options : "");
    d->n_mounts++; /* on record before it is there: a stop in between leaves no unknown mount */
    d->next_mount++;
    rc = save(d);
    if (rc == ADMIN_OK)
        rc = mount_one(d, m);
    if (rc == ADMIN_OK)
        return rc;
    if (m->made)
        rmdir(m->path);
    d->n_mounts--;
    (void)save(d);
    return rc;
}

/* As umount.aifs does: also waits until the daemon has written everything back and ended. */
static int umount_path(const char *path)
{
    char program[PATH_MAX];
    const char *argv[] = {program, "--umount", path, NULL};
    int rc, err_fd;

    if (!is_mounted(path))
        return ADMIN_OK;
    if (proc_program("aifs-mount", program, sizeof program) < 0)
        return admin_fail(-ENOENT, "demo: the program aifs-mount is not installed");
    err_fd = helper_output();
    rc = proc_run(argv, err_fd);
    if (rc != 0 && is_mounted(path)) {
        admin_error("demo: %s is in use and stays mounted", path);
        rc = ADMIN_CONFLICT;
    } else if (rc != 0) {
        admin_error("demo: %s is unmounted, but not all that was written is on the servers", path);
        rc = ADMIN_PARTIAL;
    }
    helper_said(err_fd, rc != ADMIN_OK);
    return rc;
}

int demo_umount_one(struct demo *d, const char *path)
{
    char at[PATH_MAX];
    int rc = absolute(path, at), saved;

    for (unsigned i = 0; rc == ADMIN_OK && i < d->n_mounts; i++) {
        if (strcmp(d->mounts[i].path, at) != 0)
            continue;
        rc = umount_path(at);
        if (rc != ADMIN_OK && rc != ADMIN_PARTIAL)
            return rc;
        if (d->mounts[i].made)
            rmdir(at); /* not empty: it stays */
        d->mounts[i] = d->mounts[--d->n_mounts];
        saved = save(d);
        return saved == ADMIN_OK ? rc : saved;
    }
    if (rc == ADMIN_OK) {
        admin_error("demo: %s is not a mount of the demo in %s", at, d->dir);
        rc = ADMIN_NOT_FOUND;
    }
    return rc;
}

/* Asks the kernel, and changes nothing: the first such call only marks a mount that is not in use,
 * and what is opened there takes the mark of an earlier one away. */
static bool is_in_use(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return false;
    close(fd);
    return umount2(path, MNT_EXPIRE | UMOUNT_NOFOLLOW) != 0 && errno == EBUSY;
}

/* All are looked at before the first goes. Those in use are tried, which tells who uses them. */
static int umount_used(const struct demo *d)
{
    int rc = ADMIN_OK;

    for (unsigned i = 0; i < d->n_mounts; i++) {
        const char *path = d->mounts[i].path;

        if (is_mounted(path) && is_in_use(path) && umount_path(path) == ADMIN_CONFLICT)
            rc = ADMIN_CONFLICT;
    }
    return rc;
}

int demo_umount_all(const struct demo *d)
{
    int rc = umount_used(d);

    if (rc != ADMIN_OK)
        return rc;
    for (unsigned i = 0; i < d->n_mounts; i++) {
        int one = umount_path(d->mounts[i].path);

        if (rc == ADMIN_OK || (rc == ADMIN_PARTIAL && one != ADMIN_OK)) /* one that stays tells */
            rc = one;
    }
    return rc;
}

void demo_say_stopped(const struct admin *a, const struct demo *d)
{
    char dir[PATH_MAX], names[DEMO_OSS_MAX * 8] = "";
    size_t at = 0;
    bool mounted = false;

    for (unsigned i = 0; i < d->n_mounts; i++)
        mounted = mounted || is_served(d->mounts[i].path);
    for (unsigned n = 0; mounted && n <= d->oss; n++) {
        char name[16];

        snprintf(name, sizeof name, n ? "oss%u" : "mds", n);
        snprintf(dir, sizeof dir, "%s/%s", d->dir, name);
        if (!proc_running(dir) && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", name);
    }
    if (at && !a->json && !a->quiet)
        fprintf(stderr,
                "aifs-admin: demo: stopped: %s. What mounts still have to write there is waited "
                "for, then lost; aifs-admin demo up starts what is stopped\n",
                names);
}
