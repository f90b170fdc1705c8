/* Common subexpressions.
 *
 * In and out: any valid function. Of pure operations with equal op, operands, immediate and type, the first
 * that dominates serves all (dominance is nesting plus order: a table of what is available, whose entries
 * end with the region that made them). Plain loads of one address are merged while nothing wrote and no
 * barrier, construct or ordered load (it may acquire) came between, inside one region. Compares serve only
 * their own region where the back end wishes it.
 */
#include "opt/walk.h"

#include <string.h>

typedef struct entry {
    ir_inst *inst;
    uint32_t next; /* index + 1 */
    uint32_t bucket;
    bool dead; /* a load of what may have been written since */
} entry;

typedef struct table {
    uint32_t *heads; /* as many as there are values, or more: a power of 2 */
    unsigned bits;
    entry *entries;
    uint32_t count, capacity;
    uint32_t *loads; /* entries of loads that are not dead, all of one region */
    uint32_t nloads;
    const kernel_wishes *wishes;
    arena *mem;
} table;

static uint64_t mixed(uint64_t h) {
    h *= 0x9fb21c651e98df25ull;
    return h ^ h >> 32;
}

static uint32_t bucket_of(const table *t, const ir_inst *inst) {
    uint64_t h = mixed((uint64_t)inst->op << 8 ^ inst->results->type) ^ inst->imm;
    for (unsigned i = 0; i < inst->nargs; i++) h = mixed(h) ^ (uintptr_t)inst->args[i];
    return (uint32_t)(mixed(h) * 0x9e3779b97f4a7c15ull >> (64 - t->bits));
}

static bool equal(const ir_inst *a, const ir_inst *b) {
    if (a->op != b->op || a->imm != b->imm || a->nargs != b->nargs ||
        a->results->type != b->results->type)
        return false;
    for (unsigned i = 0; i < a->nargs; i++)
        if (a->args[i] != b->args[i]) return false;
    return true;
}

static void add_entry(table *t, ir_inst *inst, uint32_t bucket) {
    if (t->count == t->capacity) {
        uint32_t capacity = t->capacity ? t->capacity * 2 : 256;
        entry *grown = ARENA_ARRAY(t->mem, entry, capacity);
        if (t->count) memcpy(grown, t->entries, sizeof *grown * t->count);
        t->entries = grown;
        t->capacity = capacity;
    }
    t->entries[t->count] = (entry){.inst = inst, .next = t->heads[bucket], .bucket = bucket};
    t->heads[bucket] = ++t->count;
}

/* The equal instruction, or NULL after adding this one. A dead entry of this region, whose entries begin
 * at `start`, is taken over: there is one for each address. */
static ir_inst *find_or_add(table *t, ir_inst *inst, uint32_t start) {
    uint32_t bucket = bucket_of(t, inst), i = t->heads[bucket];
    for (; i; i = t->entries[i - 1].next) {
        entry *e = &t->entries[i - 1];
        if (!equal(e->inst, inst)) continue;
        if (!e->dead) return e->inst;
        if (i > start) break;
    }
    if (i == 0) {
        add_entry(t, inst, bucket);
        i = t->count;
    }
    t->entries[i - 1].inst = inst;
    t->entries[i - 1].dead = false;
    if (inst->op == IR_LOAD) t->loads[t->nloads++] = i - 1;
    return NULL;
}

static void end_scope(table *t, uint32_t count) {
    t->nloads = 0;
    while (t->count > count) {
        entry *e = &t->entries[--t->count];
        t->heads[e->bucket] = e->next;
    }
}

/* What was loaded is no longer what is in memory. */
static void forget_loads(table *t) {
    while (t->nloads > 0) t->entries[t->loads[--t->nloads]].dead = true;
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

static bool is_compare(ir_op op) {
    return ir_op_group(op) == IR_IN_COMPARE || ir_op_group(op) == IR_IN_FCOMPARE;
}

static void visit(table *t, ir_region *region) {
    uint32_t start = t->count;
    for (ir_inst *inst = region->first, *next; inst; inst = next) {
        next = inst->next;
        opt_resolve_args(inst);
        const ir_op_info *info = &ir_op_table[inst->op];
        bool plain_load = inst->op == IR_LOAD && IR_MEM_ORDER(inst->imm) == IR_PLAIN;
        if ((info->pure && inst->op != IR_ALLOC) || plain_load) {
            order_operands(inst);
            ir_inst *same = find_or_add(t, inst, start);
            bool again = t->wishes->compares_again && is_compare(inst->op);
            if (same && (same->parent == region || !again)) {
                opt_forward(inst->results, same->results);
                ir_inst_remove(inst);
            }
            continue;
        }
        if (inst->regions[0]) forget_loads(t); /* a region starts without known loads */
        for (int r = 0; r < 2 && inst->regions[r]; r++) visit(t, inst->regions[r]);
        if (info->writes || info->reads || inst->regions[0]) forget_loads(t);
    }
    end_scope(t, start);
}

void opt_cse(ir_func *f, const kernel_wishes *wishes, arena *mem) {
    opt_clear_notes(f);
    ir_func_renumber(f);
    table t = {.bits = 6, .wishes = wishes, .mem = mem};
    while (t.bits < 31 && 1u << t.bits < f->next_id) t.bits++;
    t.heads = ARENA_ARRAY(mem, uint32_t, 1u << t.bits);
    t.loads = ARENA_ARRAY(mem, uint32_t, f->next_id + 1);
    visit(&t, &f->body);
}
