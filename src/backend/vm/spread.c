/* Spread code: of kernels whose blocks do not matter (opt/grid.c), in which a gang is a stretch of the
 * grid's threads along x, however they are blocked: addresses mostly grow evenly along it.
 *
 * Not for loops that threads leave apart: their neighbours in two dimensions stay together longer. Kernels
 * in blocks of one row have spread code only; others have both, and the launch decides: a grid that is
 * narrow along x is run by blocks.
 */
#include "backend/vm/vm.h"

#include <string.h>

enum { ROW = 512, LEAST_ROW = 64, WANTED_RUNS = 16, MOST_LOCAL_BYTES = 1 << 20 };

uint32_t vm_spread_lanes(const uint32_t block[3]) { return block[0] > ROW ? block[0] : ROW; }

bool vm_plan_spreads(const vm_plan *p) {
    const kernel_facts *k = p->facts;
    if (p->lanes != p->threads || k->any_spins) return false;
    if ((uint64_t)k->shapes.local_bytes * p->lanes > MOST_LOCAL_BYTES) return false;
    for (uint32_t i = 0; i < k->places.nconstructs && p->lanes > 1; i++)
        if (k->places.constructs[i].inst->op == IR_LOOP && !k->shapes.constructs[i].calm)
            return false;
    return true;
}

/* ---- launches ---- */

static uint64_t threads_along(const code_launch *l, int axis) {
    return (uint64_t)l->grid[axis] * l->block[axis];
}

static bool is_small(const code_launch *l) {
    for (int i = 0; i < 3; i++)
        if (threads_along(l, i) > INT32_MAX) return false;
    return true;
}

const vm_code *vm_choose(const vm_code *c, const code_launch *l) {
    if (c->spread != NULL) {
        uint64_t row = threads_along(l, 0);
        if ((row < c->spread->lanes ? row : c->spread->lanes) >= c->lanes / 2) c = c->spread;
    }
    return c->general != NULL && !is_small(l) ? c->general : c;
}

/* Threads of a run: equal parts of a row, and fewer where the grid has few. */
static uint64_t span_of(const vm_code *c, const code_launch *l) {
    uint64_t row = threads_along(l, 0), most = c->lanes,
             part = row * threads_along(l, 1) * threads_along(l, 2) / WANTED_RUNS;
    if (most > part) most = part < LEAST_ROW ? LEAST_ROW : part;
    if (most < l->block[0]) most = l->block[0];
    if (most > c->lanes) most = c->lanes;
    uint64_t parts = (row + most - 1) / most, span = (row + parts - 1) / parts;
    span = (span + 15) & ~(uint64_t)15;
    return span < c->lanes ? span : c->lanes;
}

uint64_t vm_runs(const code_blocks *self, const code_launch *l) {
    const vm_code *c = vm_choose((const vm_code *)self, l);
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (!c->spreads || blocks == 0) return blocks;
    uint64_t span = span_of(c, l);
    return (threads_along(l, 0) + span - 1) / span * threads_along(l, 1) * threads_along(l, 2);
}

uint32_t vm_start_spread(const vm_code *c, const code_launch *l, uint64_t run, int64_t index[3]) {
    uint64_t row = threads_along(l, 0), height = threads_along(l, 1), span = span_of(c, l),
             parts = (row + span - 1) / span, at = run % parts * span;
    index[0] = (int64_t)at;
    index[1] = (int64_t)(run / parts % height);
    index[2] = (int64_t)(run / parts / height);
    return (uint32_t)(row - at < span ? row - at : span);
}

void vm_where(const vm_code *c, const vm_frame *f, const vm_gang *g, uint32_t lane, uint64_t *block,
              uint32_t *thread) {
    *block = f->block;
    *thread = g->first + lane;
    if (!c->spreads) return;
    const code_launch *l = f->launch;
    uint64_t x = (uint64_t)g->index[0] + lane, y = (uint64_t)g->index[1], z = (uint64_t)g->index[2];
    const uint32_t *n = l->block;
    *block = x / n[0] + l->grid[0] * (y / n[1] + l->grid[1] * (z / n[2]));
    *thread = (uint32_t)(x % n[0] + n[0] * (y % n[1] + n[1] * (z % n[2])));
}
