/* SPDX-License-Identifier: Apache-2.0 */
/* Telling systemd (sd_notify(3) protocol, datagrams to $NOTIFY_SOCKET) that a daemon is ready. Does
 * nothing where nobody asked. Any thread. */
#ifndef AIFS_COMMON_RT_NOTIFY_H
#define AIFS_COMMON_RT_NOTIFY_H

void notify_ready(const char *status);
void notify_stopping(void);

#endif
