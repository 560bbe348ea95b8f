/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA devices of this machine, as libibverbs and the kernel tell them. For people; the choice
 * of a device for a connection is UCX's. */
#ifndef AIFS_COMMON_NET_DEVICE_H
#define AIFS_COMMON_NET_DEVICE_H

#include <stdint.h>

#include "common/base/compiler.h"

struct net_device_port {
    char device[64];
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

#endif
