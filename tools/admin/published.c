/* SPDX-License-Identifier: Apache-2.0 */
/* Who was killed or removed without `demo down` leaves an entry: one that leads nowhere is of no
 * use to anybody and goes; one whose cluster only does not run may be started again, and stays. */
#include "tools/admin/published.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/rpc.h"

#define CONNECT_MS 300

/* Only a link, which is what `demo up` makes, never a file that somebody has put there. */
static void remove_dangling(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) != 0 && errno == ENOENT)
        unlink(path);
}

unsigned published_find(char *paths[PUBLISHED_MAX])
{
    unsigned n = 0;
    struct dirent *e;
    DIR *d = opendir(PUBLISHED);

    while (d && n < PUBLISHED_MAX && (e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        if (asprintf(&paths[n], "%s/%s", PUBLISHED, e->d_name) < 0)
            break;
        if (access(paths[n], R_OK) == 0) {
            n++;
            continue;
        }
        remove_dangling(paths[n]);
        free(paths[n]);
    }
    if (d)
        closedir(d);
    return n;
}

void published_free(char *paths[PUBLISHED_MAX], unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free(paths[i]);
}

static bool listens_at(const struct net_place *p)
{
    const struct sockaddr *sa = (const struct sockaddr *)p->sockaddr;
    struct pollfd pfd = {.events = POLLOUT};
    socklen_t len = sizeof(int);
    int err = 0;

    pfd.fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (pfd.fd < 0)
        return false;
    if (connect(pfd.fd, sa, p->len))
        err = errno;
    if (err == EINPROGRESS && poll(&pfd, 1, CONNECT_MS) == 1 &&
        getsockopt(pfd.fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0)
        err = errno;
    close(pfd.fd);
    return err == 0;
}

static bool listens(const char *address)
{
    struct net_addr addr;
    char why[128];

    if (net_addr_resolve(address, RPC_PORT_DEFAULT, &addr, why, sizeof why) < 0)
        return false;
    for (unsigned k = 0; k < addr.n_places; k++)
        if (listens_at(&addr.places[k]))
            return true;
    return false;
}

bool published_is_live(const char *addresses)
{
    char one[NET_ADDR_BYTES];

    for (const char *at = addresses; *at;) {
        size_t len = strcspn(at, ",");

        snprintf(one, sizeof one, "%.*s", (int)len, at);
        if (listens(one))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}
