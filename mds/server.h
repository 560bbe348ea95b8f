/* SPDX-License-Identifier: Apache-2.0 */
/* The process: options, shards, network, modules, from start to stop. */
#ifndef AIFS_MDS_SERVER_H
#define AIFS_MDS_SERVER_H

#include "common/conf/conf.h"
#include "mds/mds.h"

extern const struct conf_option mds_options[];

/* In the order of their start. NULL-terminated (modules.c). */
extern const struct mds_module *const mds_modules[];

struct mds_server;
/* Errors are logged. */
int mds_server_create(const struct conf *c, struct mds_server **ret_server) MUST_USE;
int mds_server_run(
    struct mds_server *s) MUST_USE; /* until SIGTERM or SIGINT; 0, or why it had to end */
void mds_server_destroy(struct mds_server *s);

/* Makes a new file system in mds.dir. */
int mds_server_format(const struct conf *c) MUST_USE;

#endif
