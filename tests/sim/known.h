/* SPDX-License-Identifier: Apache-2.0 */
/* The inodes that clients have heard of so far, in that order: what the workload draws from, and
 * what is read at its end. The first one is the root. */
#ifndef AIFS_TESTS_SIM_KNOWN_H
#define AIFS_TESTS_SIM_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

enum known_kind { KNOWN_FILE, KNOWN_DIR, KNOWN_LINK };

struct known {
    uint64_t ino;
    enum known_kind kind;
};

void known_forget(void);
void known_learn(uint64_t ino, enum known_kind kind);
const struct known *known_at(unsigned i); /* NULL behind the last */
bool known_is_dir(uint64_t ino);
uint64_t known_draw(bool want_dir,
                    bool any);  /* of the wanted kind if it is easily found; no link */
uint64_t known_draw_link(void); /* 0: there is none */
uint64_t known_last_dir(void);  /* the latest */
uint64_t known_draw_dir(void);
void known_draw_more(
    uint64_t ino); /* this file or directory, if known, more often than others, from now on */

#endif
