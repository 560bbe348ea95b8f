/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a seed is about. A bit of everything meets seldom where it matters: a bug in the reclaim of
 * leases shows when one file is wanted by two, one in batches when names are few. So each seed
 * draws a scene: how the operations are shared out, on how many names and places of files, and
 * which faults come more often (faults.c).
 */
#ifndef AIFS_TESTS_SIM_SCENE_H
#define AIFS_TESTS_SIM_SCENE_H

#include <stdbool.h>

enum scene_kind {
    SCENE_ALL,   /* a bit of everything */
    SCENE_FILES, /* much on few files; one client alone keeps what it writes to itself until another
                    one looks, in the end */
    SCENE_DUEL, /* one file, two places of it: one client has it alone, until it is kept from it and
                   the others come */
    SCENE_NAMES,  /* few names, made and removed, of files that are open */
    SCENE_LOCKS,  /* locks of one file, and who asks for one is kept from the answer */
    SCENE_BESIDE, /* one file that all have open to write, two places of it, and cuts; who writes is
                     kept from the answer */
    SCENE_KINDS
};

struct scene {
    enum scene_kind kind;
    unsigned names_percent, objects_percent; /* of the operations; the rest is on open files */
    unsigned first_client, n_clients, n_fds;
    unsigned close_per_thousand, write_per_thousand;
    unsigned locks_per_thousand; /* of what is done with open files */
    unsigned n_names;
    unsigned root_per_thousand;     /* of the directories that are drawn */
    unsigned together_per_thousand; /* of the changes of names: with one of the other process */
    unsigned first_cell, n_cells;
    bool one_file;        /* the first one is drawn more often than the others */
    unsigned cut_percent; /* of what is done with open files: truncations */
    bool alone;           /* the first of the clients is at work, nobody else yet */
    unsigned patience_ms;
};

extern struct scene scene;

void scene_draw(void);
/* Something has happened to a client: now the others come. */
void scene_enter_others(void);
bool scene_takes(unsigned client); /* part in the operations */
unsigned scene_name(void);         /* one of its names, drawn */
unsigned scene_cell(void);

#endif
