/* What the blocks of a launch share: where they meet, the memory that they take, its structs (code.h). */
#include "base/code.h"

#include "base/heap.h"

#include <string.h>

static void end_round(code_meeting *m) {
    if (m->arrived == 0 || m->arrived + m->ended < m->blocks) return;
    m->arrived = 0;
    m->round++;
}

uint64_t code_meeting_arrive(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    uint64_t round = m->round;
    m->arrived++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
    return round;
}

void code_meeting_leave(code_meeting *m) {
    pthread_mutex_lock(&m->lock);
    m->ended++;
    end_round(m);
    pthread_mutex_unlock(&m->lock);
}

/* In front of the memory. */
struct code_piece {
    code_piece *before, *after;
};
enum { HEAD = 64 };

void code_memory_begin(code_memory *m) {
    m->first = NULL;
    pthread_mutex_init(&m->lock, NULL);
}

void *code_memory_take(code_memory *m, size_t bytes) {
    code_piece *p = heap_aligned(HEAD, HEAD + bytes);
    if (p == NULL) return NULL;
    pthread_mutex_lock(&m->lock);
    *p = (code_piece){.after = m->first};
    if (m->first != NULL) m->first->before = p;
    m->first = p;
    pthread_mutex_unlock(&m->lock);
    return (char *)p + HEAD;
}

void code_memory_give(code_memory *m, void *taken) {
    code_piece *p = (code_piece *)((char *)taken - HEAD);
    pthread_mutex_lock(&m->lock);
    if (p->before != NULL)
        p->before->after = p->after;
    else
        m->first = p->after;
    if (p->after != NULL) p->after->before = p->before;
    pthread_mutex_unlock(&m->lock);
    heap_free(p);
}

void code_memory_end(code_memory *m) {
    while (m->first != NULL) {
        code_piece *p = m->first;
        m->first = p->after;
        heap_free(p);
    }
    pthread_mutex_destroy(&m->lock);
}

static size_t align_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

uint64_t *code_copy_structs(const code *c, const uint64_t *args) {
    size_t slots = (c->nparams + (size_t)c->nvariables) * sizeof *args, bytes = slots, most = 16;
    for (uint32_t i = 0; i < c->nstructs; i++) {
        bytes = align_up(bytes, c->structs[i].align) + c->structs[i].bytes;
        if (c->structs[i].align > most) most = c->structs[i].align;
    }
    char *copy = heap_aligned(most, align_up(bytes, most));
    if (copy == NULL) return NULL;
    memcpy(copy, args, slots);
    size_t at = slots;
    for (uint32_t i = 0; i < c->nstructs; i++) {
        const code_struct *s = &c->structs[i];
        at = align_up(at, s->align);
        memcpy(copy + at, (const void *)(uintptr_t)args[s->param], s->bytes);
        ((uint64_t *)copy)[s->param] = (uint64_t)(uintptr_t)(copy + at);
        at += s->bytes;
    }
    return (uint64_t *)copy;
}
