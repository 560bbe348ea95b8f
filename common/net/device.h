/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA devices of this machine, as libibverbs and the kernel tell them, and lists of those that
 * may be used. Which of the allowed ones a connection takes is UCX's choice.
 *
 * A list is text: "mlx5_0,mlx5_1:2" means every port of mlx5_0 and port 2 of mlx5_1; "+" does for
 * the comma, which ends an option of mount(8). It is in force for the whole process, because UCX
 * has one context per process.
 */
#ifndef AIFS_COMMON_NET_DEVICE_H
#define AIFS_COMMON_NET_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

#define NET_DEVICE_NAME_BYTES 64u
#define NET_DEVICES_MAX       64u /* ports looked at, and entries of a list */

struct net_device_port {
    char device[NET_DEVICE_NAME_BYTES];
    unsigned port;
    const char *state;  /* "active", "down", "initialising", ... */
    const char *layer;  /* "infiniband", "ethernet" */
    uint64_t rate_bits; /* per second; 0: not known */
    int numa;           /* -1: not known */
};

/* The first max ports of all devices; returns how many there are in ports. None is no error. */
unsigned net_devices(struct net_device_port *ports, unsigned max);

/* Gb/s of a lane by the verbs' speed code, times the lanes of its width code, in bits per second; 0
 * for codes of later versions. */
uint64_t net_device_rate(uint8_t width_code, uint8_t speed_code);

/* n = 0: all devices. */
struct net_device_list {
    struct {
        char device[NET_DEVICE_NAME_BYTES];
        unsigned port; /* 0: all */
    } entries[NET_DEVICES_MAX];
    unsigned n;
};

/* -EINVAL with a sentence in err. NULL and "" are all devices. */
int net_device_list_parse(const char *text, struct net_device_list *ret_list, char *err,
                          size_t err_len) MUST_USE;
/* Does every entry mean a port that is there, whatever its state? -ENODEV with a sentence. */
int net_device_list_check(const struct net_device_list *l, const struct net_device_port *ports,
                          unsigned n_ports, char *err, size_t err_len) MUST_USE;
/* Is there one of them that could be used some day: any, but those that this process may not open?
 * -ENODEV with a sentence. */
int net_device_list_usable(const struct net_device_list *l, const struct net_device_port *ports,
                           unsigned n_ports, char *err, size_t err_len) MUST_USE;
bool net_device_list_has(const struct net_device_list *l, const struct net_device_port *port);
/* The ports of it that are active, as UCX wants to be told: "mlx5_0:1,mlx5_1:2". How many. */
unsigned net_device_list_active(const struct net_device_list *l,
                                const struct net_device_port *ports, unsigned n_ports, char *text,
                                size_t text_len);

/*
 * From now on this process uses no other devices. Checks text against the devices of this machine;
 * -EINVAL, -ENODEV, or -EBUSY when another list is in force already, each with a sentence in err.
 * NULL and "" change nothing. Any thread.
 */
int net_limit_devices(const char *text, char *err, size_t err_len) MUST_USE;
/* For who insists on RDMA, after net_limit_devices(): -ENODEV with a sentence in err when there is
 * no device for it. One whose ports are down is there: they may come up. */
int net_need_rdma(char *err, size_t err_len) MUST_USE;

#endif
