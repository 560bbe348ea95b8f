/* SPDX-License-Identifier: Apache-2.0 */
/* What the network code counts, for the whole process. Recording never fails. */
#include "common/net/net_int.h"

struct net_counters net_counters;

static const struct {
    size_t offset;
    const char *name, *labels, *help;
} table[] = {
#define ENTRY(field, name, labels, help)                                                           \
    {                                                                                              \
        offsetof(struct net_counters, field), name, labels, help                                   \
    }
    ENTRY(sent[NET_SOCKET], "aifs_net_messages_sent_total", "transport=\"socket\"",
          "Messages the transport has taken over"),
    ENTRY(sent[NET_UCX], "aifs_net_messages_sent_total", "transport=\"ucx\"", NULL),
    ENTRY(sent_bytes[NET_SOCKET], "aifs_net_sent_bytes_total", "transport=\"socket\"",
          "Bytes of heads and bulk in them"),
    ENTRY(sent_bytes[NET_UCX], "aifs_net_sent_bytes_total", "transport=\"ucx\"", NULL),
    ENTRY(received[NET_SOCKET], "aifs_net_messages_received_total", "transport=\"socket\"",
          "Messages taken by their owner"),
    ENTRY(received[NET_UCX], "aifs_net_messages_received_total", "transport=\"ucx\"", NULL),
    ENTRY(received_bytes[NET_SOCKET], "aifs_net_received_bytes_total", "transport=\"socket\"",
          "Bytes of heads and bulk in them"),
    ENTRY(received_bytes[NET_UCX], "aifs_net_received_bytes_total", "transport=\"ucx\"", NULL),
    ENTRY(opened, "aifs_net_connections_opened_total", NULL, "Connections made or accepted"),
    ENTRY(closed, "aifs_net_connections_closed_total", NULL, "Connections closed, by whomever"),
    ENTRY(silent, "aifs_net_connections_silent_total", NULL,
          "Connections closed because the peer gave no sign of life"),
    ENTRY(garbage, "aifs_net_connections_garbage_total", NULL,
          "Connections closed because of bytes that are no message"),
    ENTRY(stalls, "aifs_net_stalls_total", NULL,
          "Messages that had to wait because their owner had no room"),
    ENTRY(failed, "aifs_net_messages_failed_total", NULL,
          "Messages given back because their connection died"),
    ENTRY(stayed, "aifs_net_upgrades_failed_total", NULL,
          "Connections that stayed on the socket although a better transport was chosen"),
    ENTRY(arms, "aifs_net_arms_total", NULL,
          "Times that UCX was asked to tell of what comes, before a sleep"),
    ENTRY(lone_acks, "aifs_net_lone_acks_total", NULL,
          "Acknowledgements of bulk data that had nothing to go with"),
    ENTRY(mapped_bytes, "aifs_net_mapped_bytes_total", NULL,
          "Bulk data copied out of a peer's memory that is mapped here"),
#undef ENTRY
};

void net_register_stats(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++)
        stat_counter_register((void *)((char *)&net_counters + table[i].offset), table[i].name,
                              table[i].labels, table[i].help ? table[i].help : table[i - 1].help);
}
