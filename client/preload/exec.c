/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec(3), in all its spellings: another program takes the process over, and nothing of this one
 * runs any more. Sessions are given back before, as at the end of the process. An exec that fails
 * lets the program go on, and so do we.
 *
 * The C library's own calls among them (execv is execve) do not come through here, hence each name
 * of its own. A child that shares our memory (vfork) is not the owner of anything: preload_end()
 * knows.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "client/preload/preload_int.h"

#define EXPORT __attribute__((visibility("default")))

typedef char *const *strings;

static struct {
    int (*execve)(const char *path, strings argv, strings envp);
    int (*execveat)(int dir, const char *path, strings argv, strings envp, int flags);
    int (*execvpe)(const char *file, strings argv, strings envp);
    int (*fexecve)(int fd, strings argv, strings envp);
} next;

static void find(const char *name, void *ret_function)
{
    *(void **)ret_function = dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void find_all(void)
{
    find("execveat", &next.execveat);
    find("execvpe", &next.execvpe);
    find("fexecve", &next.fexecve);
    find("execve", &next.execve);
}

static void begin(void)
{
    if (!next.execve)
        find_all();
    preload_end();
}

/* It has failed. */
static int back(int result)
{
    preload_go_on();
    return result;
}

EXPORT int execve(const char *path, strings argv, strings envp)
{
    begin();
    return back(next.execve(path, argv, envp));
}

EXPORT int execv(const char *path, strings argv)
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, strings argv, strings envp)
{
    begin();
    return back(next.execvpe(file, argv, envp));
}

EXPORT int execvp(const char *file, strings argv)
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, strings argv, strings envp)
{
    begin();
    return back(next.fexecve(fd, argv, envp));
}

EXPORT int execveat(int dir, const char *path, strings argv, strings envp, int flags)
{
    begin();
    return back(next.execveat(dir, path, argv, envp, flags));
}

/* ---- arguments one by one ---- */

static size_t count(va_list ap)
{
    size_t n = 1; /* the first is not in the list */

    while (va_arg(ap, char *))
        n++;
    return n;
}

/* On the stack: a child of vfork() must leave nothing behind. */
#define COLLECT(argv, arg, ap)                                                                     \
    do {                                                                                           \
        size_t n_;                                                                                 \
                                                                                                   \
        va_start(ap, arg);                                                                         \
        n_ = count(ap);                                                                            \
        va_end(ap);                                                                                \
        (argv) = alloca((n_ + 1) * sizeof *(argv));                                                \
        (argv)[0] = (char *)(uintptr_t)(arg);                                                      \
        va_start(ap, arg);                                                                         \
        for (size_t k_ = 1; k_ <= n_; k_++)                                                        \
            (argv)[k_] = va_arg(ap, char *);                                                       \
    } while (0)

EXPORT int execl(const char *path, const char *arg, ...)
{
    char **argv;
    va_list ap;

    COLLECT(argv, arg, ap);
    va_end(ap);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
    char **argv;
    va_list ap;

    COLLECT(argv, arg, ap);
    va_end(ap);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
    char **argv, **envp;
    va_list ap;

    COLLECT(argv, arg, ap);
    envp = va_arg(ap, char **); /* behind the NULL */
    va_end(ap);
    return execve(path, argv, envp);
}
