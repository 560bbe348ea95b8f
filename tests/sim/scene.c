/* SPDX-License-Identifier: Apache-2.0 */
/* See scene.h. Files that few have open, for a while, are worked on under leases. */
#include "tests/sim/scene.h"

#include "common/base/compiler.h"
#include "tests/sim/sim.h"
#include "tests/sim/work_int.h"

struct scene scene;

static enum scene_kind draw_kind(void)
{
    static const unsigned percent[SCENE_KINDS] = {21, 15, 27, 15, 12, 10};
    unsigned what = sim_below(100), kind = 0;

    while (what >= percent[kind])
        what -= percent[kind++];
    return (enum scene_kind)kind;
}

static void draw_everything(void)
{
    scene.names_percent = 30;
    scene.objects_percent = 15;
    scene.n_names = SIM_NAMES;
    scene.root_per_thousand = 600;
    scene.together_per_thousand = 700;
    scene.n_cells = SIM_CELLS;
    scene.n_clients = sim_chance(500) ? SIM_CLIENTS : 2;
    scene.n_fds = 1 + sim_below(FDS);
    scene.locks_per_thousand = sim_chance(350) ? 150 + sim_below(600) : 0;
    scene.close_per_thousand = sim_below(3) * (scene.locks_per_thousand ? 40 : 150);
    scene.write_per_thousand = sim_chance(650) ? 650 : 250;
    scene.cut_percent = 7;
    scene.patience_ms = 20 + sim_below(400);
}

static void draw_two_cells(void)
{
    scene.n_cells = 2;
    scene.first_cell = sim_below(SIM_CELLS - 1);
}

/* Behind what is kept inline. */
static void draw_beside(void)
{
    scene.names_percent = scene.objects_percent = 3;
    scene.one_file = true;
    scene.n_clients = SIM_CLIENTS;
    scene.n_fds = 1;
    scene.locks_per_thousand = 0;
    scene.close_per_thousand = 20;
    scene.write_per_thousand = 950;
    scene.cut_percent = 4 + sim_below(12);
    scene.patience_ms = 20 + sim_below(60);
    draw_two_cells();
    scene.first_cell = MAX(scene.first_cell, 2u);
}

void scene_draw(void)
{
    scene = (struct scene){.kind = draw_kind()};
    draw_everything();
    switch (scene.kind) {
    case SCENE_FILES:
        scene.names_percent = scene.objects_percent = 6;
        if (sim_chance(400))
            scene.n_clients = scene.first_client = 1;
        break;
    case SCENE_DUEL:
        scene.names_percent = scene.objects_percent = 4;
        scene.one_file = true;
        scene.n_fds = 1;
        scene.locks_per_thousand = 0;
        scene.close_per_thousand = 60;
        scene.write_per_thousand = 650;
        scene.alone = sim_chance(700);
        scene.cut_percent = scene.alone ? 7 : 15;
        draw_two_cells();
        break;
    case SCENE_NAMES:
        scene.names_percent = 55;
        scene.objects_percent = 5;
        scene.n_names = 2;
        scene.n_fds = FDS;
        scene.root_per_thousand = 850;
        scene.together_per_thousand = 950;
        scene.close_per_thousand = 30;
        scene.locks_per_thousand = 0;
        draw_two_cells();
        break;
    case SCENE_LOCKS:
        scene.names_percent = scene.objects_percent = 4;
        scene.one_file = true;
        scene.locks_per_thousand = 500 + sim_below(400);
        scene.close_per_thousand = 20;
        break;
    case SCENE_BESIDE:
        draw_beside();
        break;
    default:
        break;
    }
}

void scene_enter_others(void)
{
    scene.alone = false;
}

bool scene_takes(unsigned client)
{
    return client - scene.first_client < (scene.alone ? 1 : scene.n_clients);
}

unsigned scene_name(void)
{
    return sim_below(scene.n_names);
}

unsigned scene_cell(void)
{
    return scene.first_cell + sim_below(scene.n_cells);
}
