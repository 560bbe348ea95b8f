/* SPDX-License-Identifier: Apache-2.0 */
/* See known.h. */
#include "tests/sim/known.h"

#include "tests/sim/model.h"
#include "tests/sim/scene.h"
#include "tests/sim/sim.h"

#define KNOWN_MAX MODEL_INODES

static struct known known[KNOWN_MAX];
static unsigned n_known;
static uint64_t drawn_more; /* 0: none is */

void known_forget(void)
{
    n_known = 0;
    drawn_more = 0;
}

void known_draw_more(uint64_t ino)
{
    scene_enter_others();
    for (unsigned i = 0; i < n_known; i++)
        if (known[i].ino == ino && known[i].kind != KNOWN_LINK)
            drawn_more = ino;
}

const struct known *known_at(unsigned i)
{
    return i < n_known ? &known[i] : NULL;
}

void known_learn(uint64_t ino, enum known_kind kind)
{
    for (unsigned i = 0; i < n_known; i++)
        if (known[i].ino == ino)
            return;
    if (n_known < KNOWN_MAX)
        known[n_known++] = (struct known){ino, kind};
    if (scene.one_file && kind == KNOWN_FILE && !drawn_more)
        drawn_more = ino;
}

uint64_t known_draw(bool want_dir, bool any)
{
    if (drawn_more && !want_dir && sim_chance(600))
        return drawn_more;
    for (unsigned tries = 0; tries < 8; tries++) {
        /* the latest are the most interesting */
        unsigned back = sim_below(sim_chance(500) ? MIN(4u, n_known) : n_known);
        const struct known *k = &known[n_known - 1 - back];

        if (k->kind != KNOWN_LINK && (any || (k->kind == KNOWN_DIR) == want_dir))
            return k->ino;
    }
    return sim.history.root;
}

bool known_is_dir(uint64_t ino)
{
    for (unsigned i = 0; i < n_known; i++)
        if (known[i].ino == ino)
            return known[i].kind == KNOWN_DIR;
    return false;
}

uint64_t known_draw_link(void)
{
    for (unsigned back = 1, first = sim_below(2); back <= n_known; back++)
        if (known[n_known - back].kind == KNOWN_LINK && first-- == 0)
            return known[n_known - back].ino;
    return 0;
}

uint64_t known_last_dir(void)
{
    for (unsigned back = 1; back <= n_known; back++)
        if (known[n_known - back].kind == KNOWN_DIR)
            return known[n_known - back].ino;
    return sim.history.root;
}

uint64_t known_draw_dir(void)
{
    return sim_chance(scene.root_per_thousand) ? sim.history.root : known_draw(true, false);
}
