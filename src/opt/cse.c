/* Common subexpressions.
 *
 * In and out: any valid function. Of pure operations with equal op, operands, immediate and type, the first
 * that dominates serves all (dominance is nesting plus order: a table of what is available, whose entries
 * end with the region that made them). Plain loads of one address are merged while nothing wrote and no
 * barrier, construct or ordered load (it may acquire) came between, inside one region.
 */
#include "opt/walk.h"

#include <string.h>

#define BUCKETS 1024

typedef struct entry {
    ir_inst *inst;
    uint32_t next; /* index + 1 */
    uint32_t bucket;
} entry;

typedef struct table {
    uint32_t heads[BUCKETS];
    entry *entries;
    uint32_t count, capacity;
    arena *mem;
} table;

static uint64_t hash_inst(const ir_inst *inst) {
    uint64_t h = (uint64_t)inst->op * 0x9e3779b97f4a7c15ull ^ inst->imm * 0xc2b2ae3d27d4eb4full ^
                 inst->results->type;
    for (unsigned i = 0; i < inst->nargs; i++)
        h = (h ^ (uintptr_t)inst->args[i]) * 0x9fb21c651e98df25ull;
    return h ^ h >> 29;
}

static bool equal(const ir_inst *a, const ir_inst *b) {
    if (a->op != b->op || a->imm != b->imm || a->nargs != b->nargs ||
        a->results->type != b->results->type)
        return false;
    for (unsigned i = 0; i < a->nargs; i++)
        if (a->args[i] != b->args[i]) return false;
    return true;
}

/* The equal instruction, or NULL after adding this one. */
static ir_inst *find_or_add(table *t, ir_inst *inst) {
    uint32_t bucket = (uint32_t)(hash_inst(inst) % BUCKETS);
    for (uint32_t i = t->heads[bucket]; i; i = t->entries[i - 1].next)
        if (t->entries[i - 1].inst && equal(t->entries[i - 1].inst, inst))
            return t->entries[i - 1].inst;
    if (t->count == t->capacity) {
        uint32_t capacity = t->capacity ? t->capacity * 2 : 256;
        entry *grown = ARENA_ARRAY(t->mem, entry, capacity);
        if (t->count) memcpy(grown, t->entries, sizeof *grown * t->count);
        t->entries = grown;
        t->capacity = capacity;
    }
    t->entries[t->count] = (entry){inst, t->heads[bucket], bucket};
    t->heads[bucket] = ++t->count;
    return NULL;
}

static void end_scope(table *t, uint32_t count) {
    while (t->count > count) {
        entry *e = &t->entries[--t->count];
        t->heads[e->bucket] = e->next;
    }
}

/* Loads recorded since `from` are no longer what is in memory. */
static void forget_loads(table *t, uint32_t from) {
    for (uint32_t i = from; i < t->count; i++)
        if (t->entries[i].inst && t->entries[i].inst->op == IR_LOAD) t->entries[i].inst = NULL;
}

/* One order for the operands of commutative operations: the older value first, constants last. */
static void order_operands(ir_inst *inst) {
    if (!ir_op_table[inst->op].commutative || inst->nargs != 2) return;
    bool constants[2] = {opt_is_const(inst->args[0]), opt_is_const(inst->args[1])};
    bool in_order =
        constants[0] == constants[1] ? inst->args[0]->id <= inst->args[1]->id : constants[1];
    if (in_order) return;
    ir_value *swap = inst->args[0];
    inst->args[0] = inst->args[1];
    inst->args[1] = swap;
}

/* Compares are cheaper made again than kept for a region inside: there it is often the rare case, and
 * where only an `if` looks at one, a back end need not compute it for each thread. */
static bool is_compare(ir_op op) { return op >= IR_EQ && op <= IR_FLE; }

static void visit(table *t, ir_region *region) {
    uint32_t start = t->count;
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        opt_resolve_args(inst);
        const ir_op_info *info = &ir_op_table[inst->op];
        bool plain_load = inst->op == IR_LOAD && IR_MEM_ORDER(inst->imm) == IR_PLAIN;
        if ((info->pure && inst->op != IR_ALLOC) || plain_load) {
            order_operands(inst);
            ir_inst *same = find_or_add(t, inst);
            if (same && (same->parent == region || !is_compare(inst->op))) {
                opt_forward(inst->results, same->results);
                ir_inst_remove(inst);
            }
            continue;
        }
        if (inst->regions[0]) forget_loads(t, start); /* a region starts without known loads */
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(t, inst->regions[r]);
        if (info->writes || info->reads || inst->regions[0]) forget_loads(t, start);
    }
    end_scope(t, start);
}

void opt_cse(ir_func *f, arena *mem) {
    opt_clear_notes(f);
    ir_func_renumber(f);
    table t;
    memset(&t, 0, sizeof t);
    t.mem = mem;
    visit(&t, &f->body);
}
