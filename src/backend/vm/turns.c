/* Frames, and the turns of a block's gangs.
 *
 * Gangs run in order, each until it ends or waits. A barrier opens when all gangs that have not ended
 * wait there, a warp operation when those it names have come (warp.c), grid.sync when all blocks have
 * come. Where gangs only spin, the block yields with budget left: what they wait for is elsewhere.
 */
#include "backend/vm/vm.h"

#include <string.h>

/* ---- frames ---- */

static void *place_of(const vm_code *c, vm_frame *f, vm_gang *of, vm_gang *g, char *cells,
                      const vm_entry *e) {
    switch ((vm_place)e->place) {
    case VM_AT_CONST: return c->constants + e->offset;
    case VM_AT_CELL: return cells + e->offset;
    case VM_AT_SLOT: return g->slots + e->offset;
    case VM_AT_SPECIAL:
        if (e->offset >= IR_INDEX_X) return &of->index[e->offset - IR_INDEX_X];
        return e->offset <= IR_CTAID_Z ? &f->ctaid[e->offset - IR_CTAID_X]
                                       : &f->nctaid[e->offset - IR_NCTAID_X];
    case VM_AT_TID: return &of->tid[e->offset];
    case VM_AT_PARAM: return (void *)&f->launch->args[e->offset];
    default: return NULL;
    }
}

/* of: the gang; g: the same, or its state in a function. Their code's memory comes behind g. */
void vm_set_up(const vm_code *c, vm_frame *f, vm_gang *of, vm_gang *g, char *shared) {
    char *at = (char *)g + vm_align64(sizeof *g);
    *g = (vm_gang){.entry = (void **)at, .first = of->first, .code = c, .top = g};
    at += vm_align64(c->nentries * sizeof(void *));
    g->sets = (vm_set *)at;
    at += vm_align64(c->nsets * sizeof(vm_set));
    char *cells = at;
    at += vm_align64(c->cell_bytes);
    g->ended = (uint32_t *)at;
    at += c->ended_bytes;
    for (uint32_t k = 0; k <= c->nsets; k++, at += c->set_bytes) {
        if (k < c->nsets)
            g->sets[k] = (vm_set){.bytes = (uint8_t *)at};
        else
            g->now.bytes = (uint8_t *)at;
    }
    at = (char *)g + c->gang_bytes - c->local_bytes - c->slot_bytes;
    g->slots = at;
    char *local = at + c->slot_bytes;
    for (uint32_t k = 0; k < c->nentries; k++)
        g->entry[k] = place_of(c, f, of, g, cells, &c->entries[k]);
    for (uint32_t k = 0; k < c->naddresses; k++) {
        const vm_address *a = &c->addresses[k];
        uint32_t offset =
            a->offset == VM_DYNAMIC ? (uint32_t)vm_align64(c->shared_bytes) : a->offset;
        *(char **)g->entry[a->entry] = (a->local ? local : shared) + offset;
    }
}

static void set_up_gang(const vm_code *c, vm_frame *f, uint32_t i) {
    vm_gang *g = vm_gang_of(c, f, i);
    uint32_t x = c->box[0], y = c->box[1];
    g->first = i * c->lanes;
    vm_set_up(c, f, g, g, (char *)f + c->shared_offset);
    g->tid[0] = g->first % x, g->tid[1] = g->first / x % y, g->tid[2] = g->first / x / y;
    g->tid[3] = g->first % IR_WARP_SIZE;
}

enum { STREAM_LANES = 6 << 20 }; /* 24 MB of f32 written by the launch */

static void start_block(const vm_code *c, vm_frame *f, const code_launch *launch, uint64_t block) {
    f->launch = launch;
    if (__builtin_expect(f->serial != c->serial || f->self != f, 0)) {
        for (uint32_t i = 0; i < c->gangs; i++) set_up_gang(c, f, i);
        f->serial = c->serial;
        f->self = f;
        f->args = NULL;
    }
    bool new_args = f->args != launch->args;
    f->args = launch->args;
    f->block = block;
    f->at = 0;
    f->met = false;
    f->spare = NULL;
    f->streams = c->kernels->moves->stream != NULL &&
                 (uint64_t)launch->grid[0] * launch->block[0] * launch->block[1] > STREAM_LANES;
    uint64_t gx = launch->grid[0], gy = launch->grid[1];
    f->ctaid[0] = (uint32_t)block, f->ctaid[1] = f->ctaid[2] = 0;
    if (block >= gx) {
        f->ctaid[0] = (uint32_t)(block % gx);
        f->ctaid[1] = (uint32_t)(block / gx % gy);
        f->ctaid[2] = (uint32_t)(block / gx / gy);
    }
    for (int i = 0; i < 3; i++) f->nctaid[i] = launch->grid[i];
    for (uint32_t i = 0; i < c->gangs; i++) {
        vm_gang *g = vm_gang_of(c, f, i);
        g->pc = 0;
        g->top = g;
        g->stack = NULL; /* what an abandoned launch had left is freed */
        g->state = VM_RUNNING;
        g->now.count = g->now.top =
            c->spreads ? vm_start_spread(c, launch, block, g->index) : c->lanes;
        for (int d = 0; d < 3 && !c->spreads; d++)
            g->index[d] = (int64_t)f->ctaid[d] * c->box[d] + g->tid[d];
        if (c->ended_bytes > 0) memset(g->ended, 0, c->ended_bytes);
        for (uint32_t k = 0; k < c->nparams && new_args; k++) {
            uint32_t e = c->params[k];
            g->entry[e] = (void *)&launch->args[c->entries[e].offset];
        }
    }
}

/* ---- turns ---- */

/* A gang that ends may be what others of its warp wait for. */
static void gang_ended(const vm_code *c, vm_frame *f, uint32_t at) {
    if ((c->nwarps == 0 && c->nfunctions == 0) || c->lanes > 1) return;
    uint32_t base = at & ~(IR_WARP_SIZE - 1u);
    for (uint32_t i = base; i < c->gangs && i < base + IR_WARP_SIZE; i++)
        if (vm_gang_of(c, f, i)->state == VM_AT_WARP && vm_warp_meet(c, f, i)) return;
}

typedef enum vm_turn { TURN_IDLE, TURN_MOVED, TURN_BUDGET, TURN_STUCK, TURN_MEMORY } vm_turn;

static vm_turn run_turn(const vm_code *c, vm_frame *f, int64_t *budget, code_fault *fault) {
    vm_gang *g = vm_gang_of(c, f, f->at);
    int64_t before = *budget;
    switch (vm_gang_run(f, g, budget, fault)) {
    case STOP_DONE:
        g->state = VM_DONE;
        if (g->stack != NULL) vm_end_calls(f, g);
        gang_ended(c, f, f->at);
        return TURN_MOVED;
    case STOP_BARRIER: g->state = VM_AT_BARRIER; return TURN_MOVED;
    case STOP_GRID_SYNC: g->state = VM_AT_GRID_SYNC; return TURN_MOVED;
    case STOP_WARP:
        g->state = VM_AT_WARP;
        if (vm_warp_meet(c, f, f->at)) f->at--; /* goes on at once */
        return TURN_MOVED;
    case STOP_SPIN: return *budget < before ? TURN_MOVED : TURN_IDLE;
    case STOP_BUDGET: return TURN_BUDGET;
    case STOP_MEMORY: return TURN_MEMORY;
    default: return TURN_STUCK;
    }
}

/* A turn for every gang that can run: idle, moved (some did more than spin), or what ended it early. */
static vm_turn run_gangs_once(const vm_code *c, vm_frame *f, int64_t *budget, code_fault *fault) {
    vm_turn all = TURN_IDLE;
    for (; f->at < c->gangs; f->at++) {
        if (vm_gang_of(c, f, f->at)->state != VM_RUNNING) continue;
        vm_turn turn = run_turn(c, f, budget, fault);
        if (turn > TURN_MOVED) {
            f->at++; /* the next one's turn comes first */
            return turn;
        }
        if (turn == TURN_MOVED) all = TURN_MOVED;
    }
    f->at = 0;
    return all;
}

static uint32_t count_state(const vm_code *c, vm_frame *f, vm_state state) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->gangs; i++) n += vm_gang_of(c, f, i)->state == state;
    return n;
}

static void release(const vm_code *c, vm_frame *f, vm_state state) {
    for (uint32_t i = 0; i < c->gangs; i++) {
        vm_gang *g = vm_gang_of(c, f, i);
        if (g->state == state) g->state = VM_RUNNING;
    }
}

/* back: 1 where pc is behind the instruction. */
static const vm_inst *stopped_at(const vm_gang *top, uint32_t back) {
    return &top->code->insts[top->pc - back];
}

/* The gangs that wait at a barrier may go on; those that count predicates get the result. */
static void open_barrier(const vm_code *c, vm_frame *f) {
    uint32_t yes = 0, come = 0;
    for (uint32_t i = 0; c->gangs > 1 && i < c->gangs; i++) {
        const vm_gang *of = vm_gang_of(c, f, i), *g = of->top;
        const vm_inst *in = stopped_at(g, 1);
        if (of->state != VM_AT_BARRIER || in->imm == IR_BARRIER) continue;
        come++;
        yes += *(uint32_t *)g->entry[in->a] != 0;
    }
    for (uint32_t i = 0; come > 0 && i < c->gangs; i++) {
        const vm_gang *of = vm_gang_of(c, f, i), *g = of->top;
        const vm_inst *in = stopped_at(g, 1);
        if (of->state != VM_AT_BARRIER || in->imm == IR_BARRIER) continue;
        *(uint32_t *)g->entry[in->dst] = in->imm == IR_BARRIER_COUNT ? yes
                                         : in->imm == IR_BARRIER_AND ? yes == come
                                                                     : yes > 0;
    }
    release(c, f, VM_AT_BARRIER);
}

/* All gangs of the block that have not ended wait for the other blocks: true when they have come. */
static bool meet_grid(const vm_code *c, vm_frame *f) {
    code_meeting *m = f->launch->meeting;
    if (m != NULL && !f->met) {
        f->round = code_meeting_arrive(m);
        f->met = true;
    }
    if (m != NULL && m->round == f->round) return false;
    f->met = false;
    release(c, f, VM_AT_GRID_SYNC);
    return true;
}

/* No gang can run: says where the first one waits. */
static void say_where(const vm_code *c, vm_frame *f, code_fault *fault) {
    for (uint32_t i = 0; i < c->gangs; i++) {
        const vm_gang *g = vm_gang_of(c, f, i);
        if (g->state == VM_DONE) continue;
        const vm_warp *warps = g->top->code->warps;
        const vm_inst *in = stopped_at(g->top, g->state == VM_AT_WARP ? 0 : 1);
        ir_op op = g->state == VM_AT_WARP      ? warps[in->imm].op
                   : g->state == VM_AT_BARRIER ? (ir_op)in->imm
                                               : IR_GRID_SYNC;
        fault->at = g->state == VM_AT_WARP ? warps[in->imm].pos : vm_pos_of(in);
        vm_where(c, f, g, 0, &fault->at_block, &fault->at_thread);
        fault->at_what = ir_op_table[op].name;
        if (g->state == VM_AT_WARP) break;
    }
}

/* After a turn of all: opens what can open; true: some gang can run. */
static bool goes_on(const vm_code *c, vm_frame *f, code_fault *fault, code_result *result) {
    uint32_t done = count_state(c, f, VM_DONE);
    *result = CODE_DONE;
    if (done == c->gangs) return false;
    if (count_state(c, f, VM_RUNNING) > 0) return true;
    if (count_state(c, f, VM_AT_BARRIER) + done == c->gangs) {
        open_barrier(c, f);
        return true;
    }
    *result = CODE_YIELD;
    bool at_grid = count_state(c, f, VM_AT_GRID_SYNC) + done == c->gangs;
    if (at_grid && meet_grid(c, f)) return true;
    say_where(c, f, fault);
    if (!at_grid) *result = CODE_STUCK;
    return false;
}

static code_result run_gangs(const vm_code *c, vm_frame *f, int64_t *budget, code_fault *fault) {
    enum { IDLE_TURNS = 2 }; /* all gangs spin: what they wait for is in another block */
    for (int idle = 0; idle < IDLE_TURNS;) {
        vm_turn turn = run_gangs_once(c, f, budget, fault);
        if (turn == TURN_BUDGET) return CODE_YIELD;
        if (turn == TURN_STUCK) return CODE_STUCK;
        if (turn == TURN_MEMORY) return CODE_NO_MEMORY;
        code_result result;
        if (!goes_on(c, f, fault, &result)) {
            if (f->spare != NULL && result == CODE_DONE) vm_end_stacks(f);
            return result;
        }
        idle = turn == TURN_MOVED ? 0 : idle + 1;
    }
    return CODE_YIELD;
}

code_result vm_run(const code_blocks *self, const code_launch *launch, void *frame, uint64_t block,
                   bool resume, int64_t *budget, code_fault *fault) {
    const vm_code *c = vm_choose((const vm_code *)self, launch);
    vm_frame *f = frame;
    if (!resume) start_block(c, f, launch, block);
    return run_gangs(c, f, budget, fault);
}
