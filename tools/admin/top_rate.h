/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of `top`: what two answers to LOAD say of the time in between, added up by client,
 * job or server, busiest first. Pure. Out of memory ends the program, as in out.c.
 */
#ifndef AIFS_TOOLS_ADMIN_TOP_RATE_H
#define AIFS_TOOLS_ADMIN_TOP_RATE_H

#include <stddef.h>

#include "proto/msg_admin.h"

enum top_by { TOP_BY_CLIENT, TOP_BY_JOB, TOP_BY_SERVER };

struct top_link { /* one struct msg_load, kept */
    struct msg_load load;
    char name[64];
};

struct top_sample { /* one server's answer, by link; all zero: none */
    struct uuid boot;
    uint64_t now_ns;
    bool more;
    uint32_t n_links;
    struct top_link *links;
};

void top_sample_take(struct top_sample *s, const struct msg_load_rep *rep); /* s is empty */
void top_sample_drop(struct top_sample *s);

struct top_row {
    char key[96];    /* what is added up */
    uint32_t server; /* as given to top_add() */
    uint64_t session, job;
    uint32_t role;
    char name[64];                                         /* of the other end */
    uint32_t n_clients;                                    /* sessions in it */
    double operations, read_bytes, written_bytes, busy_ns; /* each per second */
    uint64_t waiting, oldest_ns;
    uint32_t oldest_op; /* 0: nothing waits */
};

struct top_table { /* all zero: empty */
    struct top_row *rows;
    size_t n, cap;
};

/* One row for each link of `after`, with its key. A link that is not in `before` began in between,
 * if that is known: both are of one boot, and `before` is complete; else its rates are 0. */
void top_add(struct top_table *t, enum top_by by, uint32_t server, const struct top_sample *before,
             const struct top_sample *after);
/* A row of nothing, so that the server is in the table whatever it answers. */
void top_add_server(struct top_table *t, uint32_t server);
/* Rows of one key become one; those with nothing to tell go, but for servers; the busiest first:
 * most time in service, then most waiting, most operations, and by key. */
void top_finish(struct top_table *t, enum top_by by);
void top_drop(struct top_table *t);

/* A rate that is not 0 does not become 0. */
uint64_t top_whole(double per_second);
/* Of one operation, on the average; 0 when there were none. */
uint64_t top_latency_ns(const struct top_row *r);

#endif
