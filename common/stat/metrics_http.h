/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics, /healthz and /readyz over HTTP (libmicrohttpd, one thread of its own named
 * "metrics"), on loopback unless configured otherwise. */
#ifndef AIFS_COMMON_STAT_METRICS_HTTP_H
#define AIFS_COMMON_STAT_METRICS_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/compiler.h"

struct metrics_http;
/* address is numeric ("127.0.0.1:9100", "[::1]:9100"); "127.0.0.1:0" picks a free port. ready() is
 * asked on the HTTP thread. -errno when the port cannot be had. */
int metrics_http_start(const char *address, bool (*ready)(void *arg), void *arg,
                       struct metrics_http **ret_server) MUST_USE;
uint16_t metrics_http_port(const struct metrics_http *s);
void metrics_http_stop(struct metrics_http *s); /* waits for its thread; NULL is a no-op */

#endif
