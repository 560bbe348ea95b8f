/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which key a metadata directory is served with: the file `key.id` in it has the uuid of the
 * cluster and the fingerprint of the key that served it first, never the key. Storage servers and
 * clients prove themselves by that key, so a server that starts with another one is alone: said
 * at every start, and no error, for a key that was lost or given away is followed by a new one.
 */
#ifndef AIFS_MDS_DIR_KEY_H
#define AIFS_MDS_DIR_KEY_H

#include "common/crypto/crypto.h"

/* key_file: for the log. What cannot be read or written is only said, too. */
void dir_key_check(const char *dir, const struct crypto_key *key, const char *key_file);
void dir_key_forget(const char *dir); /* a new file system is made there */

#endif
