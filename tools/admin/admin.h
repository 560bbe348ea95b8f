/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aifs-admin: `aifs-admin <noun> <verb> [args]`. One file per noun; every verb is a row of a table
 * (commands.c) from which dispatch, help and suggestions come.
 *
 * Standard output carries data only, standard error everything else. Exit codes: enum admin_exit.
 * With --json each of the two has one JSON object at most: what a command lists or has done, and
 * what went wrong.
 * Nothing hangs when a server is down: every RPC has a deadline (--timeout, 5 s), a server that
 * does not answer is a row with state "unreachable", and the exit code says so.
 */
#ifndef AIFS_TOOLS_ADMIN_ADMIN_H
#define AIFS_TOOLS_ADMIN_ADMIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"
#include "proto/map.h"
#include "proto/msg.h"
#include "proto/rpc.h"

enum admin_exit {
    ADMIN_OK = 0,
    ADMIN_FAILED = 1,
    ADMIN_USAGE = 2,
    ADMIN_PARTIAL = 3,
    ADMIN_NOT_FOUND = 4,
    ADMIN_CONFLICT = 5,
    ADMIN_PERMISSION = 6,
    ADMIN_UNREACHABLE = 7,
    ADMIN_CONFIRM = 8,
};

struct admin {
    bool json, yes, no_header, raw, quiet;
    uint64_t timeout_ns;
    bool timeout_told;  /* by --timeout or AIFS_TIMEOUT */
    const char *config; /* --config FILE or AIFS_CONFIG */
    const char *mds;    /* --mds, AIFS_MDS, or from the configuration */
    const char *key_file;
    char mds_text[1024], key_text[1024];
    char mount_source[1024]; /* admin_connect_by() */
    struct rpc_sync *sync;   /* made by admin_connect() */
    struct rpc_peer *mds_peer;
    char mds_address[NET_ADDR_BYTES];
};

struct admin_command {
    const char *noun, *verb; /* verb NULL: the noun alone ("status") */
    const char *args;        /* for help */
    const char *help;
    int (*run)(struct admin *a, int argc,
               char **argv); /* argv[0] is the first argument; returns enum admin_exit */
};

extern const struct admin_command admin_commands[];
extern const unsigned admin_n_commands;

/* ---- talking to people (see say.c) ---- */

/* "aifs-admin: ..." on standard error; with --json a part of the object of admin_end(). */
void admin_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* One more line of it, without "aifs-admin: ": usage, the end of a log. */
void admin_detail(const char *fmt, ...) PRINTF_LIKE(1, 2);
void admin_say_json(void);
void admin_say_key(const char *path, const char *role); /* for errors about roles; both are kept */
bool admin_says_json(void);
void admin_say_little(void); /* -q */
bool admin_says_little(void);
void admin_say_of(const char *noun, const char *verb); /* what runs; verb may be NULL */
/* The program is about to end with rc, which is returned. */
int admin_end(int rc);
/* Prints what failed and how, returns the exit code for err. */
int admin_fail(int err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same for what the mount says of a path: no attribute of ours there is no mount of ours, which
 * is a mistake of who asks (ADMIN_USAGE). */
int admin_fail_path(int err, const char *path);
/* Usage error of the running command: prints its synopsis. */
int admin_usage(const char *noun, const char *verb, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Options of one command: "--name VALUE", "--name=VALUE" or "-n VALUE"; flags have no value.
 * Permutes: what is left over stays in argv. */
struct admin_option {
    const char *name;   /* without dashes */
    char letter;        /* 0: none */
    const char **value; /* where the value goes, or */
    bool *flag;
};
/* Number of remaining arguments, or -1 after printing why. */
int admin_options(const struct admin_option *options, unsigned n, int argc, char **argv);

/* ---- tables, as text or JSON (see out.c) ---- */

enum out_kind {
    OUT_TEXT,
    OUT_SIZE,
    OUT_COUNT,
    OUT_PERCENT,
    OUT_AGE,
    OUT_LATENCY,
    OUT_JSON_ONLY = 0x100, /* together with one of them: no column of the text */
};
struct out_column {
    const char *title; /* "USED"; JSON name is the title in lower case with '-' as '_' unless json
                          is given */
    unsigned kind;     /* enum out_kind */
    const char *json;
};
struct out;
struct out *out_table(const struct admin *a, const char *schema, const struct out_column *columns,
                      unsigned n);
void out_text(struct out *o, const char *value); /* the next cell; NULL prints "-" */
void out_number(struct out *o, uint64_t value);
void out_none(struct out *o); /* "-" or null */
void out_warning(struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
void out_total(struct out *o, const char *name, uint64_t value);
void out_also(struct out *o, const char *name, struct out *also); /* is given away; one at most */
void out_print(struct out *o);                                    /* and frees it */
void out_drop(struct out *o);                                     /* frees it only */

/* What a command that lists nothing has done: with --json one item, else nothing. */
struct out_field {
    const char *name, *text; /* text NULL: a number */
    uint64_t number;
};
void out_fields(const struct admin *a, const char *schema, const struct out_field *fields,
                unsigned n);

/* ---- talking to servers (see connect.c) ---- */

/* The commands that name a path find its cluster by the mount, when several are known. */
void admin_connect_by(struct admin *a, const char *path);
int admin_connect(struct admin *a); /* 0, or an exit code after printing why */
/* Is path, on a mount, in the file system that is talked to? Inode numbers of another one mean
 * other files here. ADMIN_OK, or after saying so. */
int admin_check_mount(struct admin *a, const char *path);
/* Is it said which cluster, by whatever means? */
bool admin_knows_cluster(const struct admin *a);
void admin_disconnect(struct admin *a);
/* Reply is valid until the next call. */
int admin_call_mds(struct admin *a, unsigned op, const void *req, const void **ret_rep);
int admin_get_map(struct admin *a, struct cluster_map **ret_map); /* counted: map_put() */
int admin_connect_node(struct admin *a, const struct map_node *node, struct rpc_peer **ret_peer);
/* Is text the number or alias of this server? */
bool admin_node_is(const struct map_node *n, const char *text);
/* The object storage server that text means: that of this number, else the only one of this name.
 * ADMIN_OK, or after saying why it is none. */
int admin_find_oss(const struct cluster_map *map, const char *text,
                   const struct map_node **ret_node);
/* Target by number or alias; NULL if there is none. */
const struct map_target *admin_find_target(const struct cluster_map *map, const char *text);

/* Around calls on a path, which wait for as long as its mount waits for servers: when they take
 * longer than a->timeout_ns the program ends with ADMIN_UNREACHABLE after saying so. NULL: done. */
void admin_watch(const struct admin *a, const char *path);
/* watch.c: a thread that runs to the end of the program; changed is made for it, on the monotonic
 * clock. false: there is none. */
bool admin_clock_start(pthread_cond_t *changed, void *(*run)(void *arg)) MUST_USE;

/* Around what may take long: what is waited for is told on standard error, once, when it has taken
 * two seconds (see waits.c), unless with --json or -q. Said again before it is over, it has other
 * words and still the same beginning. */
void admin_waits_for(const char *fmt, ...) PRINTF_LIKE(1, 2);
void admin_waited(void);

/* ---- commands ---- */

int cmd_demo_up(struct admin *a, int argc, char **argv);
int cmd_demo_down(struct admin *a, int argc, char **argv);
int cmd_demo_status(struct admin *a, int argc, char **argv);
int cmd_demo_mount(struct admin *a, int argc, char **argv);
int cmd_demo_umount(struct admin *a, int argc, char **argv);
int cmd_status(struct admin *a, int argc, char **argv);
int cmd_top(struct admin *a, int argc, char **argv);
int cmd_node_list(struct admin *a, int argc, char **argv);
int cmd_node_show(struct admin *a, int argc, char **argv);
int cmd_node_remove(struct admin *a, int argc, char **argv);
int cmd_client_list(struct admin *a, int argc, char **argv);
int cmd_net_show(struct admin *a, int argc, char **argv);
int cmd_target_list(struct admin *a, int argc, char **argv);
int cmd_target_show(struct admin *a, int argc, char **argv);
int cmd_target_add(struct admin *a, int argc, char **argv);
int cmd_target_replace(struct admin *a, int argc, char **argv);
int cmd_df(struct admin *a, int argc, char **argv);
int cmd_pool_list(struct admin *a, int argc, char **argv);
int cmd_pool_show(struct admin *a, int argc, char **argv);
int cmd_pool_create(struct admin *a, int argc, char **argv);
int cmd_pool_add(struct admin *a, int argc, char **argv);
int cmd_pool_remove(struct admin *a, int argc, char **argv);
int cmd_stripe_get(struct admin *a, int argc, char **argv);
int cmd_stripe_set(struct admin *a, int argc, char **argv);
int cmd_stripe_create(struct admin *a, int argc, char **argv);
int cmd_file_info(struct admin *a, int argc, char **argv);
int cmd_file_where(struct admin *a, int argc, char **argv);
int cmd_file_locks(struct admin *a, int argc, char **argv);
int cmd_rmtree(struct admin *a, int argc, char **argv);
int cmd_mds_dump(struct admin *a, int argc, char **argv);
int cmd_mds_load(struct admin *a, int argc, char **argv);
int cmd_fsck_check(struct admin *a, int argc, char **argv);
int cmd_key_create(struct admin *a, int argc, char **argv);
int cmd_key_derive(struct admin *a, int argc, char **argv);
int cmd_version(struct admin *a, int argc, char **argv);

#endif
