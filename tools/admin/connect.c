/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the cluster and talking to it. Where is it: --mds and --key-file; else the file named by
 * --config or $AIFS_CONFIG; else /etc/aifs/admin.conf; else the one file in /run/aifs/admin.d
 * (clusters running on this machine), or among several that of the mount the command is about, or
 * the only one that runs. The file has lines "mds = ADDRESS[,ADDRESS]" and "key_file = PATH".
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/err.h"
#include "common/base/ids.h"
#include "common/base/text.h"
#include "common/conf/conf.h"
#include "tools/admin/admin.h"
#include "tools/admin/published.h"

static const struct conf_option options[] = {
    {.name = "mds", .type = CONF_STRING, .help = "addresses of the metadata server"},
    {.name = "key_file", .type = CONF_STRING, .help = "key of role admin or server"},
    {.name = NULL},
};

/* Does the environment say so? Then it is not on the line, where one would look. */
static bool says_env(const char *value, const char *name)
{
    const char *text = getenv(name);

    return text && !strcmp(text, value);
}

/* 0 or what is wrong; err has a sentence when that is -AIFS_ECONFIG. */
static int load_config(struct admin *a, const char *path, char *err, size_t err_len)
{
    const struct conf_option *const tables[] = {options, NULL};
    struct conf *c;
    int rc = conf_create(tables, &c);

    if (rc < 0)
        return rc;
    rc = conf_load_file(c, path, err, err_len);
    if (rc < 0) {
        conf_destroy(c);
        return rc;
    }
    if (!a->mds && conf_str(c, "mds")) {
        snprintf(a->mds_text, sizeof a->mds_text, "%s", conf_str(c, "mds"));
        a->mds = a->mds_text;
    }
    if (!a->key_file && conf_str(c, "key_file")) {
        snprintf(a->key_text, sizeof a->key_text, "%s", conf_str(c, "key_file"));
        a->key_file = a->key_text;
    }
    conf_destroy(c);
    return 0;
}

static int read_config(struct admin *a, const char *path)
{
    char err[512];
    int rc = load_config(a, path, err, sizeof err);

    if (rc == -AIFS_ECONFIG) {
        admin_error("%s", err);
        return ADMIN_USAGE;
    }
    return rc < 0 ? admin_fail(rc, "config file %s%s", path,
                               says_env(path, "AIFS_CONFIG") ? " (of AIFS_CONFIG)" : "")
                  : ADMIN_OK;
}

#define ADMIN_CONF "/etc/aifs/admin.conf"

struct published {
    char *paths[PUBLISHED_MAX];
    unsigned n, n_live;
    bool live[PUBLISHED_MAX], broken[PUBLISHED_MAX];
    const char *chosen; /* the only one, the one that is meant, or the only one that runs */
};

/* Is it the cluster of --mds, or of the mount that the command is about? One that cannot be read is
 * mentioned where somebody has to choose, not by every command that does not mean it. */
static void look_at(const struct admin *a, struct published *p, unsigned i)
{
    struct admin other = {0};
    char err[512];

    if (load_config(&other, p->paths[i], err, sizeof err) < 0 || !other.mds) {
        p->broken[i] = true;
        return;
    }
    if ((a->mount_source[0] && !strcmp(other.mds, a->mount_source)) ||
        (a->mds && !strcmp(other.mds, a->mds)))
        p->chosen = p->paths[i];
    p->live[i] = published_is_live(other.mds);
    p->n_live += p->live[i];
}

static void find_published(const struct admin *a, struct published *ret)
{
    *ret = (struct published){0};
    ret->n = published_find(ret->paths);
    for (unsigned i = 0; ret->n > 1 && i < ret->n; i++)
        look_at(a, ret, i);
    for (unsigned i = 0; !ret->chosen && i < ret->n; i++)
        if (ret->n == 1 || (ret->n_live == 1 && ret->live[i]))
            ret->chosen = ret->paths[i];
}

/* Those that do not run only when none does. */
static void list_published(const struct published *p)
{
    char target[PATH_MAX];

    if (p->n_live)
        admin_error("%u clusters run on this machine; say which:", p->n_live);
    else
        admin_error("none of the %u clusters of this machine runs; say which is meant:", p->n);
    for (unsigned i = 0; i < p->n; i++)
        if (p->live[i] || p->broken[i] || !p->n_live)
            admin_detail("  --config %s%s", realpath(p->paths[i], target) ? target : p->paths[i],
                         p->broken[i] ? " (which cannot be read)" : "");
}

/* The folders of keys, and what leads to them, are for root. */
static bool is_hidden(const char *path)
{
    return access(path, R_OK) != 0 && errno == EACCES;
}

static int say_none_known(void)
{
    if (is_hidden(ADMIN_CONF) || is_hidden(PUBLISHED)) {
        admin_error("which clusters this machine knows is for root to see: sudo aifs-admin ..., or "
                    "say --config FILE, or --mds ADDRESS and --key-file FILE");
        return ADMIN_PERMISSION;
    }
    admin_error("no cluster known: say --config FILE, or --mds ADDRESS and --key-file FILE");
    return ADMIN_USAGE;
}

static int read_published(struct admin *a)
{
    struct published p;
    int rc = ADMIN_USAGE;

    find_published(a, &p);
    if (p.chosen)
        rc = read_config(a, p.chosen);
    else if (a->mds)
        rc = ADMIN_OK; /* it is known which; not its key */
    else if (p.n == 0)
        rc = say_none_known();
    else
        list_published(&p);
    published_free(p.paths, p.n);
    return rc;
}

bool admin_knows_cluster(const struct admin *a)
{
    struct published p;

    if (a->mds || a->config || access(ADMIN_CONF, R_OK) == 0)
        return true;
    find_published(a, &p);
    published_free(p.paths, p.n);
    return p.chosen != NULL;
}

/* The mount that path is on: the one whose mount point is the longest beginning of it. */
void admin_connect_by(struct admin *a, const char *path)
{
    char real[PATH_MAX], line[PATH_MAX * 2], at[PATH_MAX], source[1024];
    size_t best = 0;
    FILE *f = realpath(path, real) ? fopen("/proc/self/mountinfo", "re") : NULL;

    while (f && fgets(line, sizeof line, f)) {
        const char *dash = strstr(line, " - fuse.aifs ");
        size_t n;

        if (!dash || sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1 ||
            sscanf(dash, " - %*s %1023s", source) != 1)
            continue;
        text_unescape_octal(at);
        n = strlen(at);
        if (n >= best && !strncmp(real, at, n) && (real[n] == '/' || !real[n] || n == 1)) {
            best = n;
            source[strcspn(source, "/")] = '\0'; /* host:port:/sub */
            n = strlen(source);
            snprintf(a->mount_source, sizeof a->mount_source, "%.*s", (int)(n ? n - 1 : 0), source);
        }
    }
    if (f)
        fclose(f);
}

static int find_cluster(struct admin *a)
{
    int rc = ADMIN_OK;

    if (a->mds && a->key_file)
        return ADMIN_OK;
    if (a->config)
        rc = read_config(a, a->config);
    else if (access(ADMIN_CONF, R_OK) == 0)
        rc = read_config(a, ADMIN_CONF);
    else
        rc = read_published(a);
    if (rc == ADMIN_OK && (!a->mds || !a->key_file)) {
        admin_error("%s is not known: say --%s", a->mds ? "the key" : "the metadata server",
                    a->mds ? "key-file FILE" : "mds ADDRESS");
        rc = ADMIN_USAGE;
    }
    return rc;
}

/* As they were given, each with the port that was meant if it has none. */
static void name_servers(const struct admin *a, char *out, size_t len)
{
    char one[NET_ADDR_BYTES], name[NET_ADDR_NAME_BYTES];
    size_t used = 0;

    out[0] = '\0';
    for (const char *at = a->mds; *at && used < len;) {
        size_t n = strcspn(at, ",");

        snprintf(one, sizeof one, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
        net_addr_name(one, RPC_PORT_DEFAULT, name, sizeof name);
        used += (size_t)snprintf(out + used, len - used, "%s%s", used ? "," : "", name);
    }
}

/* One sentence about why no server could be used, the key named where it is to blame. */
static int explain(const struct admin *a, int rc)
{
    char servers[512];

    name_servers(a, servers, sizeof servers);
    if (rc == -AIFS_EAUTH) {
        admin_error("metadata server %s refuses the key %s: it is not a key of this cluster",
                    servers, a->key_file);
        return ADMIN_PERMISSION;
    }
    if (rc == -AIFS_ECLUSTER) {
        admin_error("metadata server %s belongs to another cluster than the key %s", servers,
                    a->key_file);
        return ADMIN_PERMISSION;
    }
    if (rc == -ECONNREFUSED)
        admin_error("metadata server %s: connection refused: nobody serves there; is it running?",
                    servers);
    else if (rc == -AIFS_ETIMEOUT)
        admin_error("metadata server %s: no answer within %.1f s", servers,
                    (double)a->timeout_ns / (double)NS_PER_S);
    else if (rc == -AIFS_ECONN)
        admin_error("metadata server %s: it closes connections without an answer: it is starting "
                    "or stopping, or is no aifs server",
                    servers);
    else if (rc == -AIFS_EPROTO)
        admin_error("metadata server %s: what answers there is no aifs server", servers);
    if (rc == -ECONNREFUSED || rc == -AIFS_ETIMEOUT || rc == -AIFS_ECONN || rc == -AIFS_EPROTO)
        return ADMIN_UNREACHABLE;
    return admin_fail(rc, "metadata server %s", servers);
}

/* Tries one address after the other: 0 with a->mds_peer, or an exit code after saying why. */
static int connect_first(struct admin *a)
{
    char first[NET_ADDR_BYTES], why[256] = "no address given";
    int rc = 0, unresolved = -EINVAL;

    for (const char *at = a->mds; *at;) {
        size_t len = strcspn(at, ",");
        struct net_addr resolved;
        int one;

        snprintf(first, sizeof first, "%.*s", (int)len, at);
        at += len + (at[len] == ',');
        one = net_addr_resolve(first, RPC_PORT_DEFAULT, &resolved, why, sizeof why);
        if (one < 0) {
            unresolved = one;
            continue;
        }
        rc = rpc_sync_connect(a->sync, first, a->timeout_ns, &a->mds_peer);
        if (rc == 0) {
            memcpy(a->mds_address, first, sizeof first);
            return ADMIN_OK;
        }
    }
    if (rc < 0)
        return explain(a, rc);
    admin_error("metadata server: %s", why);
    return unresolved == -EHOSTUNREACH ? ADMIN_UNREACHABLE : ADMIN_USAGE;
}

int admin_connect(struct admin *a)
{
    struct crypto_key key;
    char err[512];
    int rc;

    if (a->mds_peer)
        return ADMIN_OK;
    rc = find_cluster(a);
    if (rc != ADMIN_OK)
        return rc;
    rc = crypto_key_load(a->key_file, &key, err, sizeof err);
    if (rc < 0) {
        admin_error("%s%s", err,
                    says_env(a->key_file, "AIFS_KEY_FILE") ? " (of AIFS_KEY_FILE)" : "");
        return rc == -ENOENT ? ADMIN_NOT_FOUND : ADMIN_PERMISSION;
    }
    admin_say_key(a->key_file, crypto_role_name(key.role));
    rc = rpc_sync_create(&key, "aifs-admin", &a->sync);
    if (rc < 0)
        return admin_fail(rc, "cannot start");
    rc = connect_first(a);
    if (rc != ADMIN_OK)
        admin_disconnect(a);
    return rc;
}

void admin_disconnect(struct admin *a)
{
    if (a->sync)
        rpc_sync_destroy(a->sync); /* and its peers */
    a->sync = NULL;
    a->mds_peer = NULL;
}

int admin_call_mds(struct admin *a, unsigned op, const void *req, const void **ret_rep)
{
    int rc = rpc_sync_call(a->sync, a->mds_peer, op, req, a->timeout_ns, ret_rep);

    if (rc == -EOPNOTSUPP && (op == RPC_OP_MAP_GET || op == RPC_OP_STATUS)) {
        admin_error("%s is an object storage server: say where the metadata server is (--mds, or "
                    "mds of the configuration)",
                    a->mds_address);
        return ADMIN_FAILED;
    }
    return rc < 0 ? admin_fail(rc, "%s at %s", rpc_op_name(op), a->mds_address) : ADMIN_OK;
}

int admin_get_map(struct admin *a, struct cluster_map **ret_map)
{
    struct msg_map_req req = {.epoch = 0};
    const struct msg_map_rep *rep;
    const void *answer;
    int rc = admin_call_mds(a, RPC_OP_MAP_GET, &req, &answer);

    if (rc != ADMIN_OK)
        return rc;
    rep = answer;
    *ret_map = rep->map ? map_copy(rep->map) : NULL;
    return *ret_map ? ADMIN_OK : admin_fail(-ENOMEM, "cluster map");
}

int admin_connect_node(struct admin *a, const struct map_node *node, struct rpc_peer **ret_peer)
{
    int rc = -EHOSTUNREACH;

    for (uint32_t i = 0; i < node->n_addresses && rc < 0; i++)
        rc = rpc_sync_connect(a->sync, node->addresses[i], a->timeout_ns, ret_peer);
    return rc;
}

/* The mount's metadata server is older than aifs.fs: its address has to do. */
static int check_by_address(struct admin *a, const char *path)
{
    char fid[64];

    if (getxattr(path, "aifs.fid", fid, sizeof fid) < 0)
        return admin_fail_path(-errno, path);
    if (strcmp(a->mount_source, a->mds) != 0 && !a->json && !a->quiet)
        admin_error("warning: whether %s is in the file system of %s cannot be told: its metadata "
                    "server is older than this program",
                    path, a->mds_address);
    return ADMIN_OK;
}

int admin_check_mount(struct admin *a, const char *path)
{
    char of_mount[UUID_TEXT_BYTES], here[UUID_TEXT_BYTES];
    ssize_t n = getxattr(path, "aifs.fs", of_mount, sizeof of_mount - 1);
    struct cluster_map *map;
    int rc;

    if (n < 0)
        return errno == ENODATA ? check_by_address(a, path) : admin_fail_path(-errno, path);
    of_mount[n] = '\0';
    rc = admin_get_map(a, &map);
    if (rc != ADMIN_OK)
        return rc;
    uuid_format(&map->fs, here);
    map_put(map);
    if (!strcmp(of_mount, here))
        return ADMIN_OK;
    admin_error("%s is in the file system of another cluster than that of %s: say --config, or "
                "--mds and --key-file, of its own",
                path, a->mds_address);
    return ADMIN_USAGE;
}

bool admin_node_is(const struct map_node *n, const char *text)
{
    char id[16];

    snprintf(id, sizeof id, "%u", n->id);
    return !strcmp(n->alias, text) || !strcmp(id, text);
}

static void say_namesakes(const struct cluster_map *map, const char *text, uint32_t n_found)
{
    admin_error("%u servers are called %s: say the number of the one that is meant:", n_found,
                text);
    for (uint32_t i = 0; i < map->n_nodes; i++)
        if (map->nodes[i].type == MAP_NODE_OSS && admin_node_is(&map->nodes[i], text))
            admin_detail("  %u (%s)", map->nodes[i].id, map->nodes[i].addresses[0]);
}

/* A number is that of one server; names are whatever was configured, machines' names unless told.
 */
int admin_find_oss(const struct cluster_map *map, const char *text,
                   const struct map_node **ret_node)
{
    const struct map_node *found = NULL, *mds = NULL;
    uint32_t n_found = 0;
    uint64_t id = 0;

    if (text_parse_u64(text, &id) < 0)
        id = 0;
    for (uint32_t i = 0; i < map->n_nodes; i++) {
        const struct map_node *n = &map->nodes[i];

        if (!admin_node_is(n, text))
            continue;
        if (n->type != MAP_NODE_OSS)
            mds = n;
        else if (n->id == id || !n_found || found->id != id)
            found = n;
        n_found += n->type == MAP_NODE_OSS;
    }
    if (n_found == 1 || (found && found->id == id)) {
        *ret_node = found;
        return ADMIN_OK;
    }
    if (!found)
        admin_error(mds ? "%s is the metadata server" : "there is no server %s", text);
    else
        say_namesakes(map, text, n_found);
    return found || mds ? ADMIN_CONFLICT : ADMIN_NOT_FOUND;
}

const struct map_target *admin_find_target(const struct cluster_map *map, const char *text)
{
    uint64_t id;

    if (text_parse_u64(text, &id) == 0 && id <= UINT32_MAX)
        return map_target(map, (uint32_t)id);
    for (uint32_t i = 0; i < map->n_targets; i++)
        if (!strcmp(map->targets[i].alias, text))
            return &map->targets[i];
    return NULL;
}
