/* SPDX-License-Identifier: Apache-2.0 */
/* Why mounting has failed, as one sentence that names the server, the key or the directory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/mount/daemon.h"
#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "proto/rpc.h"

const char *mount_net_name(const struct conf *c)
{
    static const char *const names[] = {"auto", "tcp", "shm", "rdma"}; /* enum net_want */

    return names[conf_enum(c, "net.transport")];
}

/* A plain connection, to one of its places at least: NULL, or what was said of the first. */
static const char *probe(const struct net_addr *a)
{
    struct timeval second = {.tv_sec = 1};
    const char *what = NULL;

    for (unsigned k = 0; k < a->n_places; k++) {
        const struct sockaddr *sa = (const struct sockaddr *)a->places[k].sockaddr;
        AUTO_CLOSE int fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
        if (connect(fd, sa, a->places[k].len) == 0)
            return NULL;
        if (!what)
            what = errno == EINPROGRESS ? "does not answer" : strerror(errno);
    }
    return what;
}

/* What a plain connection to each server says; last_error is of ours. */
static void probe_servers(const struct mount_source *source, int last_error, char *text, size_t len)
{
    const char *silent = last_error == -AIFS_ECONN
                             ? "takes connections and closes them: it is starting or stopping, is "
                               "no aifs server, or its log says why"
                             : "connects, but does not answer";
    size_t used = 0;

    for (unsigned i = 0; i < source->n_servers && used < len; i++) {
        const char *server = source->servers[i], *what;
        struct net_addr a;
        char err[160], name[NET_ADDR_NAME_BYTES];

        net_addr_name(server, RPC_PORT_DEFAULT, name, sizeof(name));
        if (net_addr_resolve(server, RPC_PORT_DEFAULT, &a, err, sizeof(err)) != 0)
            what = err;
        else
            what = probe(&a);
        used += (size_t)snprintf(text + used, len - used, "%s%s: %s", used ? "; " : "", name,
                                 what ? what : silent);
    }
}

void mount_explain(const struct mount_daemon *d, int status, char *text, size_t len)
{
    const char *key = conf_str(d->m->conf, "key_file");
    struct strbuf servers;
    char answers[512] = "", name[NET_ADDR_NAME_BYTES];
    const char *why;
    int last_error = core_mds_error(d->fs.core, &why);

    strbuf_init(&servers);
    for (unsigned i = 0; i < d->m->source.n_servers; i++) {
        net_addr_name(d->m->source.servers[i], RPC_PORT_DEFAULT, name, sizeof(name));
        strbuf_printf(&servers, "%s%s", i ? "," : "", name);
    }
    key = key ? key : MOUNT_KEY_FILE;
    if (d->n_signals) {
        snprintf(text, len, "interrupted while connecting to %s", servers.data);
    } else if (d->timed_out) {
        probe_servers(&d->m->source, last_error, answers, sizeof(answers));
        snprintf(text, len, "no session within %llu s: %s",
                 (unsigned long long)(d->wait_ns / NS_PER_S), answers);
    } else if (status == -AIFS_EAUTH) {
        snprintf(text, len, "%s refuses the key %s: it is not a key of this cluster", servers.data,
                 key);
    } else if (status == -AIFS_ECLUSTER) {
        snprintf(text, len, "%s belongs to another cluster than the key %s", servers.data, key);
    } else if (status == -ENOTSUP && last_error == -ENOTSUP) {
        snprintf(text, len, "the transport asked for here (net=%s), or by %s, cannot be used: %s",
                 mount_net_name(d->m->conf), servers.data, why ? why : err_text(status));
    } else if (status == -EOPNOTSUPP) {
        snprintf(text, len, "%s is an object storage server, and no metadata server", servers.data);
    } else if (status == -AIFS_EROLE) {
        snprintf(text, len, "%s does not serve the role of the key %s", servers.data, key);
    } else if (status == -ENOENT || status == -ENOTDIR) {
        snprintf(text, len, "there is no directory %.400s in the file system of %s: %s",
                 d->m->source.subdir, servers.data, err_text(status));
    } else {
        snprintf(text, len, "cannot open a session with %s: %s", servers.data, err_text(status));
    }
    strbuf_fini(&servers);
}
