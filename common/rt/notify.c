/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol is one datagram; a library for it would be one more dependency of every daemon.
 * Failure is of no consequence to us: the service manager's time-out reports it. */
#include "common/rt/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void send_text(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (len < 2 || len >= sizeof addr.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void notify_ready(const char *status)
{
    char text[256];

    snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    send_text(text);
}

void notify_stopping(void)
{
    send_text("STOPPING=1\n");
}
