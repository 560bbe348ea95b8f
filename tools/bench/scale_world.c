/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Name spaces, veth pairs and the bridge, made with ip(8) and tc(8). Fails: not root, no such
 * programs, a kernel without veth, bridge or tbf; ip and tc have then said why.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tools/admin/proc.h"
#include "tools/bench/scale.h"

#define MTU         "9000" /* as storage networks have: less work per byte */
#define BURST_BYTES (256u * KIB)
#define QUEUE_BYTES (8u * MIB)

static const char *world_dir;
/* The kernel takes networks down a while after their last process: each set of machines gets a
 * bridge and names that no earlier one had. */
static unsigned bridge, n_ports;

const char *scale_world_dir(void)
{
    return world_dir;
}

/* Runs a command given as words; 0, or 1 after it has said why. */
static int command(const char *fmt, ...) PRINTF_LIKE(1, 2);
static int command(const char *fmt, ...)
{
    const char *argv[32];
    char line[512], *save = NULL;
    unsigned n = 0;
    va_list ap;
    int rc;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *word = strtok_r(line, " ", &save); word && n < ARRAY_LEN(argv) - 1;
         word = strtok_r(NULL, " ", &save))
        argv[n++] = word;
    argv[n] = NULL;
    rc = proc_run(argv, -1);
    if (rc != 0)
        bench_error("scale: %s failed (%d)%s", argv[0], rc,
                    rc == 127 ? ": is iproute2 installed?" : "");
    return rc != 0;
}

/* ---- the world ---- */

static const char *place_for_data(void)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    /* mounted over in here only; but not over our own programs */
    return n > 5 && !strncmp(self, "/mnt/", 5) ? "/media" : "/mnt";
}

static int furnish(void)
{
    world_dir = place_for_data();
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, NULL) != 0 ||
        mount("scale", world_dir, "tmpfs", 0, "mode=0755,size=90%") != 0) {
        bench_error("scale: cannot mount in a name space: %m");
        return 1;
    }
    return command("ip link set lo up");
}

static int read_all(int fd, void *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = read(fd, (char *)data + done, len - done);

        if (n <= 0)
            return -EIO;
        done += (size_t)n;
    }
    return 0;
}

static void first_process(struct bench *b, int (*fn)(struct bench *b, void *arg), void *arg,
                          int told)
{
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rc = furnish();
    if (rc == 0)
        rc = fn(b, arg);
    fflush(NULL);
    if (file_write_all(told, b, sizeof *b) < 0)
        rc = 1;
    _exit(rc);
}

int scale_world_run(struct bench *b, int (*fn)(struct bench *b, void *arg), void *arg)
{
    const unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | SIGCHLD;
    struct bench *theirs = malloc(sizeof *theirs);
    int told[2], status = 0;
    long pid;

    if (!theirs || pipe(told) != 0) {
        bench_error("scale: %m");
        free(theirs);
        return 1;
    }
    fflush(NULL);
    pid = syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
    if (pid == 0) {
        close(told[0]);
        first_process(b, fn, arg, told[1]);
    }
    close(told[1]);
    if (pid < 0)
        bench_error("scale: new name spaces: %m (root can make them)");
    else if (read_all(told[0], theirs, sizeof *theirs) == 0)
        *b = *theirs; /* the same program: its pointers to constants are ours too */
    close(told[0]);
    free(theirs);
    if (pid < 0 || waitpid((pid_t)pid, &status, 0) != pid)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- machines ---- */

static int bound(const char *device, uint64_t bytes_per_s)
{
    return bytes_per_s
               ? command("tc qdisc add dev %s root tbf rate %llubit burst %u limit %u", device,
                         (unsigned long long)bytes_per_s * 8, BURST_BYTES, QUEUE_BYTES)
               : 0;
}

/* The cable, seen from the bridge; the machine's end is called eth0. */
static int plug_in(pid_t machine, uint64_t bytes_per_s)
{
    char device[16];

    if (n_ports == 0 && (command("ip link add br%u type bridge", bridge) ||
                         command("ip link set br%u mtu " MTU " up", bridge)))
        return 1;
    snprintf(device, sizeof device, "p%u-%u", bridge, n_ports++);
    return command("ip link add %s mtu " MTU " type veth peer name eth0 mtu " MTU " netns %d",
                   device, (int)machine) ||
           command("ip link set %s master br%u up", device, bridge) || bound(device, bytes_per_s);
}

static int machine_process(unsigned number, uint64_t bytes_per_s, int plugged)
{
    char c;

    if (read(plugged, &c, 1) != 1)
        return 1;
    return command("ip link set lo up") || command("ip addr add 10.77.0.%u/24 dev eth0", number) ||
           command("ip link set eth0 up") || bound("eth0", bytes_per_s);
}

pid_t scale_machine_start(unsigned number, uint64_t bytes_per_s, int (*fn)(void *arg), void *arg)
{
    int apart[2], plugged[2];
    pid_t pid;
    char c = 0;
    bool good;

    if (pipe(apart) != 0)
        return 0;
    if (pipe(plugged) != 0) {
        close(apart[0]);
        close(apart[1]);
        return 0;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(apart[0]);
        close(plugged[1]);
        if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 || write(apart[1], &c, 1) != 1)
            _exit(1);
        close(apart[1]);
        if (machine_process(number, bytes_per_s, plugged[0]) != 0)
            _exit(1);
        close(plugged[0]);
        _exit(fn(arg));
    }
    close(apart[1]);
    close(plugged[0]);
    good = pid > 0 && read(apart[0], &c, 1) == 1 && plug_in(pid, bytes_per_s) == 0 &&
           write(plugged[1], &c, 1) == 1;
    close(apart[0]);
    close(plugged[1]);
    if (good)
        return pid;
    bench_error("scale: machine %u cannot be made", number);
    return 0;
}

void scale_machines_stop(void)
{
    kill(-1, SIGKILL); /* all of this name space; the first process is spared */
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
    bridge++;
    n_ports = 0;
}
