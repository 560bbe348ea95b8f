/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random messages of any operation that obey the rules of the codec, built from the schema's own
 * descriptors: so a field that somebody adds is tested without anybody thinking of it.
 */
#ifndef AIFS_TESTS_RANDOM_MSG_H
#define AIFS_TESTS_RANDOM_MSG_H

#include "proto/codec/codec_int.h"

/* A number that makes sense there, so that it is not always the same field that does not. */
struct rng_fit {
    const char *msg; /* "aifs.OpenReq"; NULL: any */
    const char *field;
    uint64_t number;
};
struct rng {
    uint64_t state;
    const struct rng_fit *fits; /* if any */
    unsigned n_fits;
    const uint64_t *likes; /* if any: numbers and names that come more often than others */
    unsigned n_likes;
    const char *const *names;
    unsigned n_names;
};
uint64_t rng_next(struct rng *g);
uint32_t rng_below(struct rng *g, uint32_t n);

/* Packed bytes in the arena; n_items: how many elements arrays have at most. */
const void *random_msg(const struct codec *c, struct rng *g, uint32_t n_items, struct arena *a,
                       uint32_t *ret_len);

#endif
