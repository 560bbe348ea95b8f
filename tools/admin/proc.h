/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping the daemons of a demo cluster: by pid file or command line, and only
 * processes whose command line names the demo's folder. */
#ifndef AIFS_TOOLS_ADMIN_PROC_H
#define AIFS_TOOLS_ADMIN_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/compiler.h"

/* Path of a program of ours: beside this one, in ../sbin, or where the build puts it. -ENOENT. */
int proc_program(const char *name, char *ret_path, size_t len) MUST_USE;
/* Starts argv in a session of its own, output appended to log_path, its pid in dir/run/started: who
 * starts it may be stopped before it serves. -errno. */
int proc_start(const char *const *argv, const char *dir, const char *log_path,
               pid_t *ret_pid) MUST_USE;
/* The pid in dir/run/pid, or in dir/run/started, if that process lives and its command line
 * contains dir; else 0. */
pid_t proc_running(const char *dir);
/* The process of a program of this name with this argument; 0: there is none. */
pid_t proc_find(const char *program, const char *argument);
/* Stops the server of the folder dir, also when nothing there says any more which process it is:
 * SIGTERM, after patience_ms SIGKILL; true when it is gone. */
bool proc_stop(const char *dir, unsigned patience_ms);
/* Waits until dir/run/<file> exists and holds something, or the process is gone: -ESRCH,
 * -ETIMEDOUT. */
int proc_wait_file(const char *dir, const char *file, pid_t pid, unsigned timeout_ms,
                   char *ret_text, size_t len) MUST_USE;
/* exit status, or -errno. What it says goes to err_fd; below 0: where we say what we do. */
int proc_run(const char *const *argv, int err_fd);

#endif
