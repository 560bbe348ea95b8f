/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters that run on this machine: `demo up` leaves a link to their admin.conf in one folder,
 * `demo down` removes it. */
#ifndef AIFS_TOOLS_ADMIN_PUBLISHED_H
#define AIFS_TOOLS_ADMIN_PUBLISHED_H

#include <stdbool.h>

#define PUBLISHED     "/run/aifs/admin.d"
#define PUBLISHED_MAX 64u

/* The files of the clusters, for published_free(). Links that lead nowhere, since a demo's folder
 * was removed by hand, are removed on the way. */
unsigned published_find(char *paths[PUBLISHED_MAX]);
void published_free(char *paths[PUBLISHED_MAX], unsigned n);
/* Does somebody listen at one of these addresses, host:port[,...]? */
bool published_is_live(const char *addresses);

#endif
