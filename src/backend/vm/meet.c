/* Whether a gang of many lanes can run the warp operations of a kernel.
 *
 * In such a gang the lanes that went another way wait for the rest where a construct ends: an operation
 * whose mask names them would wait for ever. So all lanes that a mask names must come to the operation
 * together. Where that is not seen here, each thread becomes a gang: threads then meet at their
 * operations whenever they come, as on a GPU, in other rounds of a loop or past its end.
 *
 * What is seen: by masks that are known when the kernel is compiled, that no `if` on the way and no jump
 * out of a construct parts a thread from those that its mask names (ir_find_group_shapes); by a mask that
 * is what activemask, a ballot or a match gave, that nothing on the way from there parts a warp.
 */
#include "backend/vm/vm.h"

#include <string.h>

typedef struct meetings {
    vm_plan *p;
    const ir_thread_value *values;
    uint32_t *with, *found_for; /* groups in question; of the shapes that are at hand, or NULL */
    const ir_construct_shape **shapes; /* by node */
    simt_status status;
} meetings;

static const ir_construct_shape *shape_of(const meetings *m, const ir_inst *in) {
    return m->shapes[vm_node_of(in) - m->p->nodes];
}

static const ir_value *mask_of(const ir_inst *in) {
    return in->op >= IR_SHFL_IDX && in->op <= IR_SHFL_BFLY ? in->args[2] : in->args[in->nargs - 1];
}

/* ---- groups ---- */

/* Each thread with those that the mask names; a mask that is not known may name all. */
static void group_by_mask(meetings *m, const ir_value *mask) {
    const ir_thread_value *known = mask != NULL ? &m->values[mask->id] : NULL;
    for (uint32_t t = 0; t < m->p->threads; t++) {
        bool whole = known != NULL && ir_thread_value_is_whole(known);
        m->with[t] =
            (whole ? (uint32_t)ir_thread_has(known, t) : UINT32_MAX) | 1u << t % IR_WARP_SIZE;
    }
}

/* Threads that can't come to the operation are no group. */
static void drop_others(meetings *m, const ir_inst *in) {
    for (const ir_inst *o; (o = in->parent->owner) != NULL; in = o) {
        if (o->op != IR_IF) continue;
        const ir_thread_value *cond = &m->values[o->args[0]->id];
        for (uint32_t t = 0; ir_thread_value_is_whole(cond) && t < m->p->threads; t++)
            if ((ir_thread_has(cond, t) != 0) != (in->parent == o->regions[0]))
                m->with[t] = 1u << t % IR_WARP_SIZE;
    }
}

static void find_shapes(meetings *m) {
    vm_plan *p = m->p;
    size_t bytes = p->threads * sizeof *m->with;
    if (m->status != SIMT_OK || (m->found_for != NULL && memcmp(m->found_for, m->with, bytes) == 0))
        return;
    ir_groups groups = {.with = m->with, .threads = p->threads, .values = m->values};
    ir_shapes shapes;
    m->found_for = arena_alloc(p->mem, bytes);
    m->status = m->found_for == NULL ? status_fail(SIMT_ERR_MEMORY, "no memory to compile a kernel")
                                     : ir_find_group_shapes(p->f, p->box, &groups, p->mem, &shapes);
    if (m->status != SIMT_OK) return;
    memcpy(m->found_for, m->with, bytes);
    const ir_construct_shape *next = shapes.constructs;
    for (uint32_t i = 0; i < p->nnodes; i++) {
        p->nodes[i].inst->note = &p->nodes[i]; /* the shapes had put theirs there */
        if (p->nodes[i].inst->regions[0] != NULL) m->shapes[i] = next++;
    }
}

/* ---- the way to an operation, from the start of the kernel or from the instruction `from` ---- */

/* Some threads of a group may come to this jump, others not. */
static bool parts_groups(const meetings *m, const ir_inst *jump) {
    for (const ir_inst *o = jump->parent->owner; o != jump->label; o = o->parent->owner)
        if (shape_of(m, o)->splits || !shape_of(m, o)->calm) return true;
    return false;
}

/* A jump behind the operation that leads to where it has another round without those who jumped. */
static bool leaves_a_round(const ir_inst *jump, const ir_inst *in, const ir_inst *from) {
    for (const ir_inst *o = jump->parent->owner;; o = o->parent->owner) {
        bool stays = jump->op == IR_CONTINUE && o == jump->label;
        if (o->op == IR_LOOP && !stays && vm_stands_in(in, o) &&
            !(from != NULL && vm_stands_in(from, o)))
            return true;
        if (o == jump->label) return false;
    }
}

static bool jumps_keep_groups(const meetings *m, const ir_inst *in, const ir_inst *from) {
    uint32_t at = vm_node_of(in)->at, begin = from != NULL ? vm_node_of(from)->at : 0;
    for (uint32_t i = 0; i < m->p->nnodes; i++) {
        const vm_node *n = &m->p->nodes[i];
        const ir_inst *jump = n->inst;
        bool jumps = jump->op == IR_BR || jump->op == IR_CONTINUE;
        if (!jumps || !vm_stands_in(in, jump->label) || !parts_groups(m, jump)) continue;
        if (n->at < at ? n->at > begin : leaves_a_round(jump, in, from)) return false;
    }
    return true;
}

static bool is_reached(const meetings *m, const ir_inst *in, const ir_inst *from) {
    const ir_inst *last = from != NULL ? from->parent->owner : NULL, *o;
    const ir_value *named = from != NULL && from->op == IR_BALLOT ? from->args[0] : NULL;
    for (const ir_inst *i = in; (o = i->parent->owner) != last; i = o) {
        bool those = o->op == IR_IF && o->args[0] == named && i->parent == o->regions[0];
        if (shape_of(m, o)->splits && !those) return false;
    }
    return jumps_keep_groups(m, in, from);
}

/* What gave the mask: it, or less of it, names lanes that were together there. */
static const ir_inst *source_of(const ir_value *mask, unsigned depth) {
    const ir_inst *in = mask->inst, *found = NULL;
    if (in == NULL || depth > 4) return NULL;
    if (in->op == IR_ACTIVEMASK || in->op == IR_BALLOT || in->op == IR_MATCH_ANY ||
        in->op == IR_MATCH_ALL)
        return in;
    for (unsigned i = 0; in->op == IR_AND && i < 2 && found == NULL; i++)
        found = source_of(in->args[i], depth + 1);
    return found;
}

static bool is_met(meetings *m, const ir_inst *in) {
    group_by_mask(m, mask_of(in));
    drop_others(m, in);
    find_shapes(m);
    if (m->status != SIMT_OK || is_reached(m, in, NULL)) return true;
    const ir_inst *from = source_of(mask_of(in), 0);
    if (from == NULL) return false;
    group_by_mask(m, NULL);
    find_shapes(m);
    return m->status != SIMT_OK || is_reached(m, in, from);
}

/* ---- all operations ---- */

/* All threads of the block come to it together. */
static bool is_calm(const ir_inst *in) {
    for (const ir_inst *o = in->parent->owner; o != NULL; o = o->parent->owner)
        if (vm_node_of(o)->vector_if || !vm_node_of(o)->calm) return false;
    return true;
}

static bool waits(const ir_inst *in) { return ir_op_is_warp(in->op) && in->op != IR_ACTIVEMASK; }

simt_status vm_plan_meetings(vm_plan *p, bool *together) {
    meetings m = {.p = p};
    *together = true;
    for (uint32_t i = 0; i < p->nnodes && *together && m.status == SIMT_OK; i++) {
        const ir_inst *in = p->nodes[i].inst;
        if (!waits(in) || is_calm(in)) continue;
        if (m.with == NULL) {
            ir_thread_value *values;
            SIMT_TRY(ir_find_thread_values(p->f, p->box, p->mem, &values));
            m.values = values;
            m.with = ARENA_ARRAY(p->mem, uint32_t, p->threads);
            m.shapes = ARENA_ARRAY(p->mem, const ir_construct_shape *, p->nnodes);
            if (m.with == NULL || m.shapes == NULL)
                return status_fail(SIMT_ERR_MEMORY, "no memory to compile kernel %s", p->f->name);
        }
        *together = is_met(&m, in);
    }
    return m.status;
}
