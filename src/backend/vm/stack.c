/* Calls of functions beside the kernel.
 *
 * A gang of code with calls is one thread. It has a stack of its own, in pieces that are taken from the launch
 * when they are needed: on it each call that has not returned has a vm_gang with its values, as the kernel
 * has one in the frame. The stack may grow up to a limit; then the thread ends with a fault, and so do later
 * ones of this launch at their first call: they would only take as long to come to the same end.
 * What an earlier call has set up at the same place for the same function is used again.
 */
#include "backend/vm/vm.h"

#include <string.h>

enum { MOST_BYTES = CODE_MOST_STACK_MB << 20, PIECE = 32 << 10, MOST_PIECE = 1 << 20 };

/* At the start of each piece; the first one knows of the whole. */
typedef struct vm_stack vm_stack;
struct vm_stack {
    vm_stack *below, *above; /* above: a piece that is kept, though nothing is on it */
    char *next, *end;        /* of this piece: where the next call's values come */
    char *set_up;            /* what lies below is set up for calls one after the other */
    size_t bytes;            /* of this piece and those below */
};

static char *start_of(vm_stack *s) { return (char *)s + vm_align64(sizeof *s); }

static vm_stack *new_piece(vm_frame *f, vm_stack *below, size_t needed) {
    size_t bytes = below != NULL ? (size_t)(below->end - (char *)below) * 2 : PIECE;
    if (bytes > MOST_PIECE) bytes = MOST_PIECE;
    if (bytes < needed + vm_align64(sizeof(vm_stack)))
        bytes = needed + vm_align64(sizeof(vm_stack));
    code_memory *m = f->launch->memory;
    vm_stack *s = m != NULL ? code_memory_take(m, bytes) : NULL;
    if (s == NULL) return NULL;
    *s = (vm_stack){.end = (char *)s + bytes, .bytes = bytes};
    return s;
}

static void free_piece(vm_frame *f, vm_stack *s) { code_memory_give(f->launch->memory, s); }

/* Puts an empty piece on the stack. */
static void put_piece(vm_gang *of, vm_stack *s) {
    vm_stack *below = of->stack;
    s->below = below, s->above = NULL;
    s->next = s->set_up = start_of(s);
    s->bytes = (size_t)(s->end - (char *)s) + (below != NULL ? below->bytes : 0);
    if (below != NULL) below->above = s;
    of->stack = s;
}

/* A piece with room; false: no memory. */
static bool make_room(vm_frame *f, vm_gang *of, size_t bytes) {
    vm_stack *s = of->stack, *kept = NULL;
    if (s == NULL)
        kept = f->spare, f->spare = NULL;
    else
        kept = s->above, s->above = NULL;
    if (kept != NULL && (size_t)(kept->end - start_of(kept)) < bytes) {
        free_piece(f, kept);
        kept = NULL;
    }
    if (kept == NULL) kept = new_piece(f, s, bytes);
    if (kept != NULL) put_piece(of, kept);
    return kept != NULL;
}

static inline void copy_value(void *to, const void *from, uint32_t size) {
    switch (size) {
    case 0: memcpy(to, from, 1); return;
    case 1: memcpy(to, from, 2); return;
    case 2: memcpy(to, from, 4); return;
    default: memcpy(to, from, 8); return;
    }
}

/* ---- ends ---- */

void vm_note_calls(const vm_gang *g, code_fault *fault) {
    fault->ncalls = 0;
    for (; g->caller != NULL; g = g->caller) {
        const vm_code *c = g->caller->code;
        uint32_t i = fault->ncalls < CODE_FAULT_CALLS ? fault->ncalls : CODE_FAULT_CALLS - 1;
        fault->calls[i] = c->calls[c->insts[g->caller->pc - 1].imm].pos;
        fault->ncalls++;
    }
}

static vm_stop end_too_deep(vm_frame *f, const vm_gang *g, const vm_call *x, code_fault *fault) {
    uint64_t block;
    uint32_t thread;
    vm_where(g->code, f, g, 0, &block, &thread);
    if (fault->set && (block > fault->block || (block == fault->block && thread >= fault->thread)))
        return STOP_DONE;
    *fault = (code_fault){
        .set = true, .number = CODE_FAULT_DEEP, .pos = x->pos, .block = block, .thread = thread};
    vm_note_calls(g, fault);
    return STOP_DONE;
}

/* ---- in and out ---- */

vm_stop vm_enter(vm_frame *f, vm_gang *of, const vm_call *x, code_fault *fault) {
    vm_gang *caller = of->top;
    const vm_code *c = caller->code->functions[x->function];
    size_t bytes = c->gang_bytes;
    vm_stack *s = of->stack;
    uint32_t depth = caller->depth + 1;
    if (__builtin_expect(fault->set && fault->number == CODE_FAULT_DEEP, 0)) return STOP_DONE;
    if (s == NULL || (size_t)(s->end - s->next) < bytes) {
        if (s != NULL && s->bytes + bytes > MOST_BYTES) return end_too_deep(f, caller, x, fault);
        if (!make_room(f, of, bytes)) return STOP_MEMORY;
        s = of->stack;
    }
    if (depth > CODE_MOST_CALLS) return end_too_deep(f, caller, x, fault);
    vm_gang *g = (vm_gang *)s->next;
    s->next += bytes;
    if ((char *)g >= s->set_up || g->code != c) {
        const vm_code *kernel = of->code;
        vm_set_up(c, f, of, g, (char *)f + kernel->shared_offset);
        s->set_up = s->next;
    }
    g->caller = caller;
    g->depth = depth;
    g->pc = 0;
    g->now.count = g->now.top = 1;
    for (uint32_t i = 0; i < x->nargs; i++)
        copy_value(g->entry[c->params[i]], caller->entry[x->args[i].entry], x->args[i].size);
    of->top = g;
    return STOP_NOT;
}

void vm_leave(vm_frame *f, vm_gang *of, const vm_call *returned) {
    vm_gang *g = of->top, *caller = g->caller;
    const vm_code *c = caller->code;
    const vm_call *x = &c->calls[c->insts[caller->pc - 1].imm];
    vm_stack *s = of->stack;
    for (uint32_t i = 0; i < x->nresults; i++)
        copy_value(caller->entry[x->results[i].entry], g->entry[returned->args[i].entry],
                   x->results[i].size);
    s->next = (char *)g;
    if (s->next == start_of(s) &&
        s->below != NULL) { /* this piece is kept, the one above no more */
        if (s->above != NULL) free_piece(f, s->above);
        s->above = NULL;
        of->stack = s->below;
    }
    of->top = caller;
}

void vm_end_calls(vm_frame *f, vm_gang *of) {
    vm_stack *s = of->stack;
    of->stack = NULL;
    of->top = of;
    if (s->above != NULL) free_piece(f, s->above);
    for (vm_stack *below; s->below != NULL; s = below) {
        below = s->below;
        free_piece(f, s);
    }
    if (f->spare == NULL)
        f->spare = s, s->above = NULL;
    else
        free_piece(f, s);
}

void vm_end_stacks(vm_frame *f) {
    free_piece(f, f->spare);
    f->spare = NULL;
}
